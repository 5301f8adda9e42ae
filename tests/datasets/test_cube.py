"""CUBE: which covariates tell the class, and what the context says."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.datasets import make_cube_problem
from adacos.exceptions import InvalidInputError


def test_three_covariates_are_the_corner_and_others_are_uniform() -> None:
    X, y = make_cube_problem(noise=0.05).sample(8000, seed=0)
    assert X.shape == (8000, 20)
    for k in range(8):
        own = X[y == k]
        corner = [int(digit) for digit in f"{k:03b}"]
        error = 4 * 0.05 / np.sqrt(len(own))
        np.testing.assert_allclose(own[:, k : k + 3].mean(axis=0), corner, atol=error)
        others = np.delete(own, [k, k + 1, k + 2], axis=1)
        # A uniform number has a standard deviation of 0.289.
        np.testing.assert_allclose(others.mean(axis=0), 0.5, atol=4.5 * 0.289 / np.sqrt(len(own)))


def test_a_context_says_which_block_decides_and_nothing_by_itself() -> None:
    problem = make_cube_problem(contexts=3, noise=0.05)
    X, y = problem.sample(9000, seed=1)
    assert next(iter(problem.prices)) == "context"
    counts = np.array([[np.sum((X[:, 0] == c) & (y == k)) for k in range(8)] for c in range(3)])
    expected = len(y) / 24
    # Chi-squared with 23 degrees of freedom: 99.9% lie below 49.7.
    assert ((counts - expected) ** 2 / expected).sum() < 49.7
    block = X[(X[:, 0] == 2) & (y == 7), 1:].reshape(-1, 3, 10)
    np.testing.assert_allclose(block[:, 2, 7:].mean(axis=0), 1.0, atol=0.02)
    np.testing.assert_allclose(block[:, :2].mean(axis=(0, 2)), 0.5, atol=0.05)


def test_costs() -> None:
    prices = np.array(list(make_cube_problem(prices="random", seed=3).prices.values()))
    assert prices.min() >= 0.25
    assert prices.max() <= 4
    assert len(np.unique(prices)) > 10
    telling = list(make_cube_problem(contexts=2, prices="informative").prices.values())
    assert telling == [1.0] + 2 * [*[2.0] * 10]


@pytest.mark.parametrize(
    ("given", "named"),
    [({"contexts": 0}, "contexts"), ({"noise": -1}, "noise"), ({"prices": "x"}, "prices")],
)
def test_bad_input(given: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        make_cube_problem(**given)  # type: ignore[arg-type]
