"""Evidence of a change against its definition: expectations by enumeration, ranks one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adacos.kernels.change import log_growth, log_growth_of_ranks, log_growth_of_share


def test_with_equal_weights_the_evidence_is_that_of_costs() -> None:
    missed, found = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 9.0], [2.0, 5.0]])
    total, cases = missed.sum(axis=1), (missed + found).sum(axis=1)
    expected = log_growth(total, 0.2 * cases[:, None], cases[:, None], [1.0])
    for weight in (1.0, 4.0):
        grown = log_growth_of_share(missed, found, np.full((2, 2), weight), 0.2)
        np.testing.assert_allclose(grown, expected, rtol=1e-12)
    # None may be missed: one that is refutes the promise as strongly as the bets go.
    np.testing.assert_allclose(
        log_growth_of_share([[1.0]], [[5.0]], [[1.0]], 0.0), log_growth([1], [[0]], [[6]], [1])
    )


@pytest.mark.parametrize("known", [(0.1, 0.9), (0.8, 0.3), (1.0, 1.0)])
@pytest.mark.parametrize(("share", "least", "most"), [(0.2, 0.0, 1e-12), (0.1, -1, -1e-3)])
def test_of_one_case_the_expectation_is_1_at_most(known, share, least, most) -> None:
    """Missed with a probability, and then known with that of its group."""
    weight, promised = 1 / np.array([known]), 0.2
    expected = -1.0
    for is_missed, is_known in itertools.product((True, False), repeat=2):
        coverage = known[0] if is_missed else known[1]
        chance = (share if is_missed else 1 - share) * (coverage if is_known else 1 - coverage)
        lost, right = np.zeros((1, 2)), np.zeros((1, 2))
        if is_known:
            (lost if is_missed else right)[0, 0 if is_missed else 1] = 1.0
        expected += chance * np.exp(log_growth_of_share(lost, right, weight, promised)[0])
    assert np.all((expected >= least - 1e-12) & (expected <= most))


def test_ranks_are_those_among_earlier_ones() -> None:
    rng = np.random.default_rng(0)
    codes, uniform = rng.integers(0, 5, size=40), rng.random(40)
    ranks = [
        (np.sum(codes[:k] > codes[k]) + uniform[k] * (np.sum(codes[:k] == codes[k]) + 1)) / (k + 1)
        for k in range(40)
    ]
    period = np.repeat([0, 2, 3, 4], 10)
    grown = log_growth_of_ranks(codes, period, uniform)
    assert grown.shape == (5, 8)
    assert not grown[1].any()
    first = np.log(1 - 0.9 * (2 * np.array(ranks) - 1))
    np.testing.assert_allclose(grown[[0, 2, 3, 4], 0], first.reshape(4, 10).sum(axis=1))


def test_evidence_from_ranks_has_expectation_1_over_all_orders() -> None:
    """Of five values in every order; of polynomials in the ties two points give the exact mean."""
    values, points = (0, 0, 1, 2, 2), (1 + np.array([-1, 1]) / np.sqrt(3)) / 2
    products = [
        np.exp(log_growth_of_ranks(np.array(order), np.zeros(5, dtype=int), np.array(uniform))[0])
        for order in itertools.permutations(values)
        for uniform in itertools.product(points, repeat=5)
    ]
    np.testing.assert_allclose(np.mean(products, axis=0), 1.0, rtol=1e-12)
