from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from adacos.bench.pairing import (
    Pairs,
    fold_interval,
    geometric_ratio_by_folds,
    geometric_ratio_by_rows,
)
from adacos.exceptions import InvalidInputError
from adacos.kernels.intervals import row_interval

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


def once_each(first, second):
    """Every row tested in one of five folds."""
    rows = np.arange(len(first))
    return Pairs(first, second, rows, rows % 5)


def test_geometric_ratio_by_rows_of_proportional_costs():
    cost = RNG.exponential(size=50)
    pairs = {("x", "1"): (2 * cost, cost), ("x", "2"): (cost, 2 * cost), ("y", "1"): (cost, cost)}
    found = geometric_ratio_by_rows({key: once_each(*pair) for key, pair in pairs.items()})
    assert (found.estimate, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


def test_geometric_ratio_by_rows_of_many_normal_rows_is_the_delta_method():
    """Without fold effects, skewness or repeats: log ratio ± 1.96 standard errors."""
    first, second = 10 + RNG.normal(size=(2, 40_000))
    second = second + 0.5
    folds = np.arange(40_000) // 20  # so many folds that chance does not show between them
    found = geometric_ratio_by_rows({("x", "1"): Pairs(first, second, np.arange(40_000), folds)})
    error = np.std(first / first.mean() - second / second.mean()) / 200
    assert np.log(found.high / found.low) == pytest.approx(2 * 1.96 * error, rel=0.04)
    assert found.estimate == pytest.approx(first.mean() / second.mean())


def test_repeated_tests_of_the_same_rows_do_not_narrow_the_interval():
    first, second = RNG.exponential(size=(2, 300))
    once = geometric_ratio_by_rows({("x", "1"): once_each(first, second)})
    rows = np.tile(np.arange(300), 10)
    again = Pairs(first[rows], second[rows], rows, np.arange(3000) % 50)
    often = geometric_ratio_by_rows({("x", "1"): again})
    assert np.log(often.high / often.low) > 0.9 * np.log(once.high / once.low)


def test_geometric_ratio_by_rows_covers_the_truth():
    truth = 0.9
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        second = rng.exponential(size=200)
        first = truth * second * rng.lognormal(-0.02, 0.2, size=200)
        found = geometric_ratio_by_rows({("x", "1"): once_each(first, second)})
        covered += found.low <= truth <= found.high
    # Binomial allowance below 190 of 200.
    assert covered >= 184


def exchangeable(n, seed, moved=0.0):
    """Total costs of the rows under two methods that differ by chance only, as tested.

    Each discriminates linearly by a noisy covariate of its own and five of pure noise, is tested
    in two five-fold cross-validations and pays 1 a row; a miss costs ten false alarms. Training
    may go well or badly: the log-odds of each trained model are `moved` by a normal amount.
    """
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = rng.random(n) < expit(2 * z - 1)
    own = [np.c_[np.ones(n), z + rng.normal(size=n), rng.normal(size=(n, 5))] for _ in range(2)]
    total, folds = np.zeros((2, 2, n)), np.zeros((2, n), dtype=int)
    for repeat in range(2):
        fold = rng.permutation(n) % 5
        folds[repeat] = 5 * repeat + fold
        for k, (method, X) in product(range(5), enumerate(own)):
            test = fold == k
            score = X @ np.linalg.lstsq(X[~test], y[~test].astype(float), rcond=None)[0]
            no, yes = score[~test & ~y], score[~test & y]
            within = (no.var() * len(no) + yes.var() * len(yes)) / (len(no) + len(yes))
            distance = (score[test] - (no.mean() + yes.mean()) / 2) / within
            log_odds = np.log(len(yes) / len(no)) + (yes.mean() - no.mean()) * distance
            positive = log_odds + moved * rng.normal() > np.log(1 / 10)
            wrong = np.where(positive, 100.0 * ~y[test], 1000.0 * y[test])
            total[method, repeat, test] = 1 + wrong
    first, second = total.reshape(2, -1)
    return Pairs(first, second, np.tile(np.arange(n), 2), folds.ravel())


@pytest.mark.parametrize(
    ("n", "moved", "problems"),
    [
        (150, 0.0, 250),
        (300, 1.0, 250),
        *(
            pytest.param(n, moved, 2000, marks=pytest.mark.study)
            for n, moved in product((150, 300, 700), (0.0, 0.5, 1.0))
        ),
    ],
)
def test_exchangeable_methods_are_rarely_distinguished(n, moved, problems):
    """Quantiles of plain bootstrap draws over rows say so in 7 to 9 and in 20% of data sets."""
    rejected = sum(
        geometric_ratio_by_rows({("x", "1"): exchangeable(n, seed, moved)}).excludes(1.0)
        for seed in range(problems)
    )
    print(f"{n} rows, moved by {moved}: told apart in {rejected / problems:.3f} of {problems}")
    assert rejected <= 0.065 * problems


def test_methods_that_differ_are_reported_apart():
    """It is not the interval of everything."""
    reported = 0
    for seed in range(20):
        found = exchangeable(300, seed)
        half = Pairs(0.5 * found.first, found.second, found.rows, found.folds)
        reported += geometric_ratio_by_rows({("x", "1"): half}).excludes(1.0)
    assert reported >= 15


def test_repeated_splits_do_not_narrow_the_fold_interval_without_end():
    d = RNG.normal(size=1000)
    width = np.diff([getattr(fold_interval(d), side) for side in ("low", "high")])[0]
    assert width > 2 * 1.9 * np.sqrt(1 / 4) * d.std() * 0.9


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_too_little_to_compare_is_refused(bad):
    with pytest.raises(InvalidInputError):
        fold_interval(bad)
