from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from adacos.bench.pairing import (
    fold_interval,
    geometric_ratio_by_folds,
    geometric_ratio_by_rows,
    row_interval,
)
from adacos.exceptions import InvalidInputError

RNG = np.random.default_rng(3)


def test_fold_interval_without_overlap_is_the_paired_t_interval():
    a, b = RNG.normal(size=(2, 7))
    expected = stats.ttest_rel(a, b).confidence_interval(0.9)
    found = fold_interval(a - b, overlap=0.0, confidence=0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.estimate == pytest.approx((a - b).mean())


def test_overlap_widens_the_interval_by_nadeau_and_bengio():
    d = RNG.normal(size=5)
    plain, wide = fold_interval(d, overlap=0.0), fold_interval(d, overlap=1 / 4)
    assert (wide.high - wide.low) / (plain.high - plain.low) == pytest.approx(1.5)


def test_row_interval_is_the_normal_one():
    d = RNG.normal(size=400)
    low, high = stats.norm.interval(0.95, d.mean(), stats.sem(d))
    found = row_interval(d)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_geometric_ratio_by_folds_of_a_constant_ratio():
    found = geometric_ratio_by_folds(np.full(5, np.log(0.8)))
    assert (found.estimate, found.low, found.high) == pytest.approx((0.8, 0.8, 0.8))


def test_geometric_ratio_by_rows_of_proportional_costs():
    cost = RNG.exponential(size=50)
    cells = {("x", "1"): (2 * cost, cost), ("x", "2"): (cost, 2 * cost), ("y", "1"): (cost, cost)}
    found = geometric_ratio_by_rows(cells, n_draws=50)
    assert (found.estimate, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


def test_geometric_ratio_by_rows_covers_the_truth():
    truth = 0.9
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        second = rng.exponential(size=200)
        first = truth * second * rng.lognormal(-0.02, 0.2, size=200)
        found = geometric_ratio_by_rows({("x", "1"): (first, second)}, n_draws=200, seed=seed)
        covered += found.low <= truth <= found.high
    # Two-sided binomial allowance around 95 of 100.
    assert covered >= 88


def exchangeable(n, seed):
    """Total costs of the rows under two methods that differ by chance only.

    Each discriminates linearly by a noisy covariate of its own and five of pure noise, is tested
    in two five-fold cross-validations and pays 1 a row; a miss costs ten false alarms.
    """
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = rng.random(n) < expit(2 * z - 1)
    own = [np.c_[np.ones(n), z + rng.normal(size=n), rng.normal(size=(n, 5))] for _ in range(2)]
    total = np.zeros((2, n))
    for _ in range(2):
        fold = rng.permutation(n) % 5
        for k, (method, X) in product(range(5), enumerate(own)):
            test = fold == k
            score = X @ np.linalg.lstsq(X[~test], y[~test].astype(float), rcond=None)[0]
            no, yes = score[~test & ~y], score[~test & y]
            within = (no.var() * len(no) + yes.var() * len(yes)) / (len(no) + len(yes))
            distance = (score[test] - (no.mean() + yes.mean()) / 2) / within
            log_odds = np.log(len(yes) / len(no)) + (yes.mean() - no.mean()) * distance
            positive = log_odds > np.log(1 / 10)
            wrong = np.where(positive, 100.0 * ~y[test], 1000.0 * y[test])
            total[method, test] += (1 + wrong) / 2
    return total


def test_exchangeable_methods_are_rarely_told_apart():
    """Quantiles of plain bootstrap draws say so in 8 to 10 % of data sets at a nominal 5 %."""
    rejected, worlds = 0, 250
    for seed in range(worlds):
        first, second = exchangeable(150, seed)
        found = geometric_ratio_by_rows({("x", "1"): (first, second)}, n_draws=200, seed=seed)
        rejected += found.excludes(1.0)
    assert rejected <= 0.065 * worlds
    # The test must be able to reject: it is not the interval of everything.
    first, second = exchangeable(150, 0)
    told = geometric_ratio_by_rows({("x", "1"): (0.5 * first, second)}, n_draws=200)
    assert told.excludes(1.0)


def test_repeated_splits_do_not_narrow_the_fold_interval_without_end():
    d = RNG.normal(size=1000)
    width = np.diff([getattr(fold_interval(d), side) for side in ("low", "high")])[0]
    assert width > 2 * 1.9 * np.sqrt(1 / 4) * d.std() * 0.9


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_too_little_to_compare_is_refused(bad):
    with pytest.raises(InvalidInputError):
        fold_interval(bad)
