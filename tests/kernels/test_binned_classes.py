"""Sums over rows as codes of several classes, and fits from them, against the written design."""

from functools import partial

import numpy as np
import pytest

from adacos.kernels import binned
from adacos.kernels.binned import Design, block_of
from adacos.kernels.binned_classes import (
    class_hessian,
    class_log_odds,
    class_sums,
    flat_of,
    later_of,
)
from adacos.kernels.binned_fit import fit_in_passes, without_folds
from adacos.kernels.multinomial import (
    class_fellner_schall,
    class_gram,
    class_loss,
    contrasts,
    fold_class_grams,
    newton_classes,
    residuals,
    to_reference,
    turned,
)

FOLDS, K = 3, 4
BASIS = contrasts(K)


def problem(n=900, seed=0):
    """Blocks of rows, the design as tables and written out, and the term of each column."""
    rng = np.random.default_rng(seed)
    levels, widths = (3, 40, 300), (1, 3, 4)
    tables = [rng.standard_normal((m, c)) for m, c in zip(levels, widths, strict=True)]
    codes = [rng.integers(0, m, n).astype(np.uint16) for m in levels]
    written = np.hstack([np.ones((n, 1))] + [t[c] for t, c in zip(tables, codes, strict=True)])
    truth = 0.6 * rng.standard_normal((written.shape[1], K))
    y = (written @ truth + rng.gumbel(size=(n, K))).argmax(axis=1)
    weight, fold = rng.integers(1, 4, n).astype(float), rng.integers(0, FOLDS, n)
    cut = [slice(0, 350), slice(350, n)]
    blocks = [
        block_of([c[r] for c in codes], y[r].astype(float), weight[r], fold[r], FOLDS) for r in cut
    ]
    term = np.repeat(np.arange(len(widths)), widths)
    return blocks, Design((0, 1, 2), tuple(tables)), written, y, weight, fold, term


def summed(blocks, design):
    def evaluate(coef, gram):
        parts = [class_sums(block, design, coef, K, gram=gram) for block in blocks]
        found = parts[0].plus(parts[1])
        return found._replace(gram=class_hessian(found.gram, K)) if gram else found

    return evaluate


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(binned, "ROWS_AT_ONCE", 64)


def test_sums_and_log_odds_are_those_of_the_design_written_out():
    blocks, design, written, y, weight, fold, _ = problem()
    coef = 0.3 * np.random.default_rng(1).standard_normal((design.size, K - 1))
    found = summed(blocks, design)(coef.ravel(), True)
    u = (written @ coef).T
    for f in range(FOLDS):
        rows = fold == f
        loss = weight[rows] @ class_loss(u[:, rows], y[rows], BASIS)
        np.testing.assert_allclose(found.loss[f], loss, rtol=1e-12)
        left = weight[rows] * residuals(u[:, rows], y[rows], BASIS)
        np.testing.assert_allclose(
            found.gradient[f].reshape(-1, K - 1), (left @ written[rows]).T, rtol=0, atol=1e-10
        )
        gram = class_gram(written[rows], u[:, rows], weight[rows], BASIS)
        gram = gram.reshape(K - 1, design.size, K - 1, design.size).transpose(1, 0, 3, 2)
        np.testing.assert_allclose(found.gram[f].reshape(gram.shape), gram, rtol=0, atol=1e-10)
    assert summed(blocks, design)(coef.ravel(), False).gram is None
    coefs = np.random.default_rng(2).standard_normal((FOLDS, design.size * (K - 1)))
    own = np.concatenate([class_log_odds(block, design, coefs, K) for block in blocks])
    of_fold = np.stack([later_of(one, K) for one in coefs])[fold]
    np.testing.assert_allclose(own, np.einsum("ij,ikj->ik", written, of_fold), atol=1e-12)


def test_coefficients_go_and_come_back():
    later = np.random.default_rng(0).standard_normal((K - 1, 5))
    np.testing.assert_allclose(later_of(flat_of(later, K), K), later, atol=1e-14)


def test_the_fit_is_newtons_and_refits_without_a_fold_are_near():
    blocks, design, written, y, weight, fold, term = problem(6000)
    strengths = np.array([0.5, 3.0, 20.0])
    tiled, total = np.repeat(term, K - 1), weight.sum()
    start = np.zeros(design.size * (K - 1))
    fit = fit_in_passes(summed(blocks, design), total, tiled, strengths, start, search=False)
    penalty = np.append(0.0, strengths[term])
    optimum = partial(newton_classes, penalty=penalty, basis=BASIS)
    truth = optimum(written, y, weight).coef
    np.testing.assert_allclose(later_of(fit.coef, K), to_reference(truth, BASIS), atol=2e-5)
    without = without_folds(fit, total, tiled, search=False)
    for f in range(FOLDS):
        rows = fold != f
        refit = flat_of(to_reference(optimum(written[rows], y[rows], weight[rows]).coef, BASIS), K)
        moved = np.linalg.norm(refit - fit.coef)
        assert np.linalg.norm(without[f] - refit) < 0.15 * moved


def test_strengths_are_those_of_restricted_likelihood():
    blocks, design, written, y, weight, _, term = problem(4000)
    tiled, evaluate = np.repeat(term, K - 1), summed(blocks, design)
    start, strengths = np.zeros(design.size * (K - 1)), np.full(3, 3.0)
    for _ in range(2):
        fit = fit_in_passes(evaluate, weight.sum(), tiled, strengths, start, search=True)
        start, strengths = fit.coef, fit.strengths
    log_odds = written @ fit.coef.reshape(-1, K - 1)
    near = turned(log_odds.T, weight, BASIS)
    change = near.T @ BASIS
    grams = fold_class_grams(
        written, change @ log_odds.T, weight, np.zeros(len(y), dtype=int), 1, near
    )
    expected, _ = class_fellner_schall(
        written,
        y,
        weight[:, None],
        np.append(-1, term),
        strengths,
        change @ fit.coef.reshape(-1, K - 1).T,
        grams,
        near,
        tolerance=1e-4,
        max_iter=200,
    )
    np.testing.assert_allclose(strengths, expected[:, 0], rtol=0.05)
