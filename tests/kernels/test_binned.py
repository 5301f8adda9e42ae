"""Sums over rows as codes, and fits from them, against the same design written out."""

import numpy as np
import pytest
from scipy.special import expit

from adacos.kernels import binned
from adacos.kernels.binned import Design, block_of, log_odds, plain_gram, sums
from adacos.kernels.binned_fit import fit_in_passes, without_folds
from adacos.kernels.irls import fellner_schall, newton, weighted_gram

FOLDS = 4


def problem(n=900, seed=0):
    """Blocks of rows, the design as tables and written out, and the term of each column."""
    rng = np.random.default_rng(seed)
    levels, widths = (3, 40, 300), (1, 3, 5)
    tables = [rng.standard_normal((m, c)) for m, c in zip(levels, widths, strict=True)]
    codes = [rng.integers(0, m, n).astype(np.uint8 if m <= 256 else np.uint16) for m in levels]
    written = np.hstack([np.ones((n, 1))] + [t[c] for t, c in zip(tables, codes, strict=True)])
    truth = 0.6 * rng.standard_normal(written.shape[1])
    y = (rng.random(n) < expit(written @ truth)).astype(float)
    weight, fold = rng.integers(1, 4, n).astype(float), rng.integers(0, FOLDS, n)
    cut = [slice(0, 350), slice(350, n)]
    blocks = [block_of([c[r] for c in codes], y[r], weight[r], fold[r], FOLDS) for r in cut]
    term = np.repeat(np.arange(len(widths)), widths)
    return blocks, Design((0, 1, 2), tuple(tables)), written, y, weight, fold, term


def summed(blocks, design):
    def evaluate(coef, gram):
        first, second = (sums(block, design, coef, gram=gram) for block in blocks)
        return first.plus(second)

    return evaluate


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(binned, "ROWS_AT_ONCE", 64)


def test_sums_and_log_odds_are_those_of_the_design_written_out():
    blocks, design, written, y, weight, fold, _ = problem()
    coef = 0.3 * np.random.default_rng(1).standard_normal(design.size)
    found = summed(blocks, design)(coef, True)
    u = written @ coef
    p = expit(u)
    for f in range(FOLDS):
        rows = fold == f
        loss = weight[rows] @ (np.logaddexp(0, u[rows]) - y[rows] * u[rows])
        np.testing.assert_allclose(found.loss[f], loss, rtol=1e-12)
        gradient = written[rows].T @ (weight * (p - y))[rows]
        np.testing.assert_allclose(found.gradient[f], gradient, rtol=0, atol=1e-11)
        gram = weighted_gram(written[rows], (weight * p * (1 - p))[rows])
        np.testing.assert_allclose(found.gram[f], gram, rtol=0, atol=1e-11)
    assert summed(blocks, design)(coef, False).gram is None
    plain = plain_gram(blocks[0], design) + plain_gram(blocks[1], design)
    np.testing.assert_allclose(plain, weighted_gram(written, weight), rtol=0, atol=1e-9)
    coefs = np.random.default_rng(2).standard_normal((FOLDS, design.size))
    own = np.concatenate([log_odds(block, design, coefs) for block in blocks])
    np.testing.assert_allclose(own, np.einsum("ij,ij->i", written, coefs[fold]), atol=1e-12)


def test_the_fit_is_newtons_and_refits_without_a_fold_are_near():
    blocks, design, written, y, weight, fold, term = problem(4000)
    strengths = np.array([0.5, 3.0, 20.0])
    start = np.zeros(design.size)
    total = weight.sum()
    fit = fit_in_passes(summed(blocks, design), total, term, strengths, start, search=False)
    penalty = np.append(0.0, strengths[term])
    np.testing.assert_allclose(fit.coef, newton(written, y, weight, penalty).coef, atol=1e-5)
    without = without_folds(fit, total, term, search=False)
    for f in range(FOLDS):
        rows = fold != f
        refit = newton(written[rows], y[rows], weight[rows], penalty).coef
        moved = np.linalg.norm(refit - fit.coef)
        assert np.linalg.norm(without[f] - refit) < 0.1 * moved


def test_strengths_are_those_of_restricted_likelihood():
    blocks, design, written, y, weight, _, term = problem(4000)
    begin = np.full(3, 3.0)
    start = np.zeros(design.size)
    rough = fit_in_passes(summed(blocks, design), weight.sum(), term, begin, start, search=True)
    start, begin = rough.coef, rough.strengths
    fit = fit_in_passes(summed(blocks, design), weight.sum(), term, begin, start, search=True)
    p = expit(written @ fit.coef)
    gram = weighted_gram(written, weight * p * (1 - p))[None]
    full = np.append(-1, term)
    strengths, _ = fellner_schall(
        written, y, weight[:, None], full, begin, fit.coef, gram, tolerance=1e-4, max_iter=200
    )
    np.testing.assert_allclose(fit.strengths, strengths[:, 0], rtol=0.05)


def test_a_fit_far_from_its_start_and_one_of_separated_classes_end():
    blocks, design, written, _, weight, _, term = problem()
    y = (written[:, 1] > 0).astype(float)
    codes = [
        block._replace(y=y[r][block.order])
        for block, r in zip(blocks, [slice(0, 350), slice(350, 900)], strict=True)
    ]
    strengths = np.full(3, 1e-3)
    far = np.full(design.size, 3.0)
    fit = fit_in_passes(summed(codes, design), weight.sum(), term, strengths, far, search=False)
    truth = newton(written, y, weight, np.append(0.0, strengths[term]))
    assert np.all((written @ fit.coef > 0) == (y == 1))
    # Where the loss is flat the coefficients are loose and the objective is not.
    value = sums_at(written, y, weight, fit.coef) + 0.5e-3 * fit.coef[1:] @ fit.coef[1:]
    best = sums_at(written, y, weight, truth.coef) + 0.5e-3 * truth.coef[1:] @ truth.coef[1:]
    assert value <= best + 1e-4


def sums_at(written, y, weight, coef):
    u = written @ coef
    return weight @ (np.logaddexp(0, u) - y * u)
