"""Exact bounds on a proportion, against scipy's test and by enumerating every outcome."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from adacos.exceptions import InvalidInputError
from adacos.kernels.binomial import interval, lower_bound, trials_needed, upper_bound


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 10, 45, 1000])
def test_bounds_are_those_of_scipy(trials, confidence):
    for successes in {0, 1, trials // 3, trials - 1, trials}:
        for alternative, bounds in {
            "two-sided": interval(successes, trials, confidence),
            "greater": (lower_bound(successes, trials, confidence), 1.0),
            "less": (0.0, upper_bound(successes, trials, confidence)),
        }.items():
            test = binomtest(successes, trials, alternative=alternative)
            expected = test.proportion_ci(confidence, method="exact")
            assert bounds == pytest.approx((expected.low, expected.high), abs=1e-10)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("trials", [1, 5, 20, 100])
def test_bounds_cover_the_proportion_often_enough(trials, confidence):
    outcomes = np.arange(trials + 1)
    lower = lower_bound(outcomes, trials, confidence)
    upper = upper_bound(outcomes, trials, confidence)
    low, high = interval(outcomes, trials, confidence)
    for p in np.linspace(0.005, 0.995, 100):
        probability = binom.pmf(outcomes, trials, p)
        for covers in (lower <= p, p <= upper, (low <= p) & (p <= high)):
            assert probability[covers].sum() >= confidence - 1e-12


def test_no_higher_lower_bound_covers():
    # Just below a bound the outcomes that miss have probability 1 - confidence: it is exact.
    trials, confidence = 20, 0.9
    for successes in range(1, trials + 1):
        p = lower_bound(successes, trials, confidence)
        assert binom.sf(successes - 1, trials, p) == pytest.approx(1 - confidence, rel=1e-9)


def test_no_trials_say_nothing():
    assert interval(0, 0, 0.95) == (0, 1)
    assert lower_bound(0, 0, 0.95) == 0
    assert upper_bound(0, 0, 0.95) == 1


def test_counts_broadcast():
    low, high = interval(np.arange(3)[:, None], [2, 5, 9, 100], 0.9)
    assert low.shape == high.shape == (3, 4)
    assert low[1, 2] == lower_bound(1, 9, 0.95)
    assert np.all(low < high)


@pytest.mark.parametrize(
    ("proportion", "confidence", "failures", "trials"),
    [(0.95, 0.90, 0, 45), (0.99, 0.90, 0, 230), (0.95, 0.95, 0, 59), (0.95, 0.95, 1, 93)],
)
def test_trials_needed_as_tabulated(proportion, confidence, failures, trials):
    assert trials_needed(proportion, confidence, failures) == trials


@pytest.mark.parametrize("failures", [0, 1, 7, 60])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("proportion", [0.02, 0.3, 0.8, 0.95, 0.999])
def test_trials_needed_are_the_fewest(proportion, confidence, failures):
    trials = trials_needed(proportion, confidence, failures)
    assert lower_bound(trials - failures, trials, confidence) >= proportion
    if trials > failures + 1:
        assert lower_bound(trials - 1 - failures, trials - 1, confidence) < proportion


@pytest.mark.parametrize(
    ("successes", "trials"), [(3, 2), (-1, 2), (0, -1), (0.5, 2), (np.nan, 2), ([1, 4], 3)]
)
@pytest.mark.parametrize("function", [lower_bound, upper_bound, interval])
def test_impossible_counts_are_rejected(function, successes, trials):
    with pytest.raises(InvalidInputError, match="successes"):
        function(successes, trials, 0.9)


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, float("nan")])
@pytest.mark.parametrize("function", [lower_bound, upper_bound, interval])
def test_impossible_confidence_is_rejected(function, confidence):
    with pytest.raises(InvalidInputError, match="confidence"):
        function(1, 2, confidence)


def test_impossible_targets_are_rejected():
    with pytest.raises(InvalidInputError, match="proportion"):
        trials_needed(1.0, 0.9)
    with pytest.raises(InvalidInputError, match="confidence"):
        trials_needed(0.9, 1.0)
    with pytest.raises(InvalidInputError, match="failures"):
        trials_needed(0.9, 0.9, failures=-1)
