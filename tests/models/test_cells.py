"""What is believed of cells: brute-force sums, and the formulas of the mixture."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from adacos.kernels.folds import stratified_folds
from adacos.models.cells import (
    WEIGHTS,
    WithinCodes,
    log_shares_of,
    mixture_weight,
    pair_shares,
    pooled_joint,
    pooled_shares,
)
from adacos.models.pairs import class_probabilities, paired_fit
from adacos.models.set_fits import prepare
from adacos.models.table_mixture import Reading, TableMixture, fit_members, pooled
from adacos.tables.codes import Codes, fit_codes
from adacos.tables.encoder import TableEncoder


def drawn(n: int, seed: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers and a covariate of three values; what one says depends on another."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, n)])
    score = X[:, 0] * (X[:, 2] - 1) + X[:, 1] + rng.normal(size=n)
    return X, np.searchsorted(np.linspace(-1, 1, n_classes + 1)[1:-1], score)


def mixture_of(X: np.ndarray, y: np.ndarray) -> tuple[TableMixture, TableEncoder]:
    encoder = TableEncoder.fit(X, tuple(f"x{i}" for i in range(X.shape[1])))
    reading, n_classes = Reading.fit(X, encoder), int(y.max()) + 1
    folds = [stratified_folds(X, y.astype(float), 3, 0)]
    rows = reading.statistics(X), y, np.ones(len(y)), folds
    return pooled(fit_members(reading, *rows, n_classes, 0)[0]), encoder


def test_a_geometric_mean_of_two_models() -> None:
    rng = np.random.default_rng(0)
    one, other = np.log(rng.dirichlet(np.ones(3), 5)), np.log(rng.dirichlet(np.ones(3), 5))
    for weight in WEIGHTS:
        product_of = np.exp(one) ** weight * np.exp(other) ** (1 - weight)
        expected = product_of / product_of.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(np.exp(pooled_shares(one, other, weight)), expected)


def test_the_weight_is_that_of_the_better_model() -> None:
    """One model knows the truth, the other says what is independent of it."""
    rng = np.random.default_rng(1)
    truth, other = rng.uniform(0.02, 0.98, size=(2, 4000))
    y = (rng.random(4000) < truth).astype(int)
    right, wrong = (log_shares_of(np.column_stack([1 - p, p])) for p in (truth, other))
    assert mixture_weight(right, wrong, y) == 1.0
    assert mixture_weight(wrong, right, y) == 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cells_have_the_mixture_s_shares_and_pooled_classes(n_classes: int) -> None:
    rng = np.random.default_rng(2)
    joint = rng.dirichlet(np.ones(n_classes * 6)).reshape(n_classes, 2, 3)
    pairs = np.log(rng.dirichlet(np.ones(n_classes), size=(2, 3)))
    own = joint.reshape(n_classes, -1).sum(axis=1)
    np.testing.assert_allclose(pooled_joint(joint, pairs, 1.0, own), joint)
    share = rng.dirichlet(np.ones(n_classes))
    found = pooled_joint(joint, pairs, 0.25, share)
    np.testing.assert_allclose(found.reshape(n_classes, -1).sum(axis=1), share)
    # In each cell as by hand, up to a factor for each class.
    expected = np.empty_like(joint)
    for cell in product(range(2), range(3)):
        mixed = joint[(slice(None), *cell)] ** 0.25 * np.exp(pairs[cell]) ** 0.75
        expected[(slice(None), *cell)] = mixed / mixed.sum() * joint[(slice(None), *cell)].sum()
    factor = (found / expected).reshape(n_classes, -1)
    np.testing.assert_allclose(factor, np.tile(factor[:, :1], 6))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cells_have_the_probabilities_of_the_model_of_pairs(n_classes: int) -> None:
    """Where each cell is one row of values they are those of the model there."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, size=(600, 3)).astype(float)
    score = 2 * (X[:, 0] == X[:, 1]) + X[:, 2] + 0.5 * rng.normal(size=600)
    y = np.digitize(score, np.linspace(0.5, 2.5, n_classes + 1)[1:-1])
    encoder = TableEncoder.fit(X, ("a", "b", "c"))
    fold = np.arange(600) % 5
    fits = prepare(
        X,
        y.astype(float),
        encoder,
        n_splines=8,
        families=("common",),
        fold=fold,
        n_classes=n_classes,
    )
    model, codes = paired_fit(fits, np.arange(3)), fit_codes(X, encoder, 4)
    found = pair_shares(fits, model, codes.transform(X), codes.sizes)
    corners = np.array(list(product((0.0, 1.0), repeat=3)))
    columns = fits.basis.transform(corners), model.products.columns(fits.basis, corners)
    log_odds = model.intercept + columns[0] @ model.coef.T + columns[1] @ model.weights.T
    expected = log_shares_of(class_probabilities(log_odds)).reshape(2, 2, 2, n_classes)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_say_more_than_their_codes_by_the_mixture(n_classes: int) -> None:
    """Against sums over the cells of what was not acquired, of the mixture's joint distribution."""
    X, y = drawn(500, 4, n_classes)
    mixture, encoder = mixture_of(X, y)
    codes = fit_codes(X, encoder, 5)
    planned, within = np.arange(3), WithinCodes(mixture, 0.5)
    joint = mixture.joint_of_codes(codes, planned)
    values, statistics = codes.transform(X[:20]), within.statistics(X[:20])
    for mask in product((False, True), repeat=3):
        acquired = np.tile(np.array(mask), (20, 1))
        more = within.more_log_odds(statistics, values, acquired, codes, planned)
        exact = mixture.log_joint(statistics, acquired)
        for row in range(20):
            of_codes = joint[
                (slice(None), *(values[row, k] if mask[k] else slice(None) for k in planned))
            ]
            coded = np.log(of_codes.reshape(n_classes, -1).sum(axis=1))
            expected = 0.5 * ((exact[row, 1:] - exact[row, 0]) - (coded[1:] - coded[0]))
            np.testing.assert_allclose(np.atleast_1d(more[row]), expected, atol=1e-6)
    # Where a code is a value nothing more is said.
    assert [within.says_no_more(codes, k) for k in planned] == [False, False, True]


def test_codes_of_some_covariates() -> None:
    codes = Codes(
        np.array([0, 1, 1, 1, 2]), np.array([2, 3, 4]), (np.ones(1), np.empty(0), np.arange(3.0))
    )
    some = codes.only(np.array([1, 2]))
    np.testing.assert_array_equal(some.source, [0, 0, 0, 1])
    np.testing.assert_array_equal(some.sizes, [3, 4])
    np.testing.assert_array_equal(some.cuts[1], [0, 1, 2])
