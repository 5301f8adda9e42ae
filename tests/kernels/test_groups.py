"""Errors and intervals of rows that belong together, against simulation and against exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels.binomial import interval
from adacos.kernels.groups import share_interval, standard_error


@pytest.mark.parametrize("found", [0, 1, 7, 40])
def test_rows_that_are_groups_of_their_own_have_the_exact_interval(found: int) -> None:
    hits = np.arange(40) < found
    for groups in (None, np.random.default_rng(0).permutation(40)):
        np.testing.assert_allclose(share_interval(hits, groups, 0.95), interval(found, 40, 0.95))


def test_copies_of_rows_say_as_much_as_the_rows() -> None:
    rng = np.random.default_rng(1)
    values, hits, row = rng.normal(size=50), rng.random(50) < 0.3, np.repeat(np.arange(50), 6)
    assert standard_error(values[row], row) == pytest.approx(standard_error(values, None))
    reported = share_interval(hits[row], row, 0.95)
    np.testing.assert_allclose(reported, interval(int(hits.sum()), 50, 0.95), atol=0.02)
    assert share_interval(np.ones(300, dtype=bool), row, 0.95)[0] == pytest.approx(
        interval(50, 50, 0.95)[0], abs=0.01
    )
    assert share_interval(hits[row], np.zeros_like(row), 0.95) == (0.0, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_error_is_that_of_repeated_draws(weighted: bool) -> None:
    """Patients with one to five visits, whose cost is mostly their own."""
    rng = np.random.default_rng(2)
    means, errors = [], []
    for _ in range(600):
        who = np.repeat(np.arange(60), rng.integers(1, 6, 60))
        values = rng.exponential(size=60)[who] + 0.3 * rng.normal(size=len(who))
        weight = rng.uniform(0.2, 2.0, 60)[who] if weighted else None
        means.append(np.average(values, weights=weight))
        errors.append(standard_error(values, who, weight))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.08)


def test_the_interval_of_a_share_holds_where_rows_belong_together() -> None:
    """The exact one, of rows taken as independent, misses the share far too often."""
    rng = np.random.default_rng(3)
    inside = np.zeros((1000, 2), dtype=bool)
    for trial in range(len(inside)):
        who = np.repeat(np.arange(40), rng.integers(2, 9, 40))
        # Each patient has a chance of his own, 0.8 on average.
        hits = rng.random(len(who)) < rng.beta(1.6, 0.4, 40)[who]
        for column, groups in enumerate((None, who)):
            low, high = share_interval(hits, groups, 0.95)
            inside[trial, column] = low <= 0.8 <= high
    assert inside[:, 1].mean() >= 0.94
    assert inside[:, 0].mean() < 0.85
