"""B-splines against scipy's, and the split of a spline into a linear and a wiggly part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from adacos.kernels.splines import DEGREE, bspline_basis, wiggly_directions

ranges = st.tuples(
    st.floats(-1e3, 1e3), st.floats(1e-2, 1e3), st.integers(4, 25), st.integers(0, 2**32 - 1)
)


def by_scipy(low: float, high: float, n_splines: int) -> BSpline:
    """All B-splines at once: the coefficients are the identity."""
    step = (high - low) / (n_splines - DEGREE)
    knots = low + step * np.arange(-DEGREE, n_splines + 1)
    return BSpline(knots, np.eye(n_splines), DEGREE)


@given(ranges)
def test_equals_scipy_inside_the_range(case: tuple[float, float, int, int]) -> None:
    low, width, n_splines, seed = case
    high = low + width
    x = np.random.default_rng(seed).uniform(low, high, 50)
    x[:2] = low, high
    ours = bspline_basis(x, low, high, n_splines)
    np.testing.assert_allclose(ours, by_scipy(low, high, n_splines)(x), atol=1e-9)


@given(ranges)
def test_continues_outside_with_value_and_slope_at_the_boundary(
    case: tuple[float, float, int, int],
) -> None:
    low, width, n_splines, seed = case
    high = low + width
    beyond = np.random.default_rng(seed).uniform(0, 3 * width, 20)
    theirs = by_scipy(low, high, n_splines)
    for edge, side in ((low, -1.0), (high, 1.0)):
        expected = theirs(edge) + np.outer(side * beyond, theirs(edge, nu=1))
        ours = bspline_basis(edge + side * beyond, low, high, n_splines)
        np.testing.assert_allclose(ours, expected, atol=1e-7)


@given(ranges)
def test_sums_to_one_everywhere(case: tuple[float, float, int, int]) -> None:
    low, width, n_splines, seed = case
    x = np.random.default_rng(seed).uniform(low - 2 * width, low + 3 * width, 50)
    total = bspline_basis(x, low, low + width, n_splines).sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-10)


def test_at_most_four_splines_are_active() -> None:
    x = np.linspace(0, 1, 201)
    assert np.all((bspline_basis(x, 0.0, 1.0, 12) > 1e-15).sum(axis=1) <= DEGREE + 1)


@pytest.mark.parametrize("n_splines", [4, 5, 10, 20])
def test_wiggly_directions_invert_the_differences(n_splines: int) -> None:
    b = np.random.default_rng(0).normal(size=n_splines)
    u = np.diff(b, n=2)
    wiggly = wiggly_directions(n_splines) @ u
    # The wiggly part has all second differences of b, so |u|^2 = b'D'Db is the same penalty ...
    np.testing.assert_allclose(np.diff(wiggly, n=2), u, atol=1e-10)
    # ... and what is left of b has none: it is linear in the index.
    np.testing.assert_allclose(np.diff(b - wiggly, n=2), 0.0, atol=1e-10)
    # The parts are orthogonal, so the wiggly part is the smallest with these differences.
    assert abs(wiggly @ (b - wiggly)) < 1e-10


@given(ranges)
def test_any_spline_is_a_line_plus_its_wiggly_part(case: tuple[float, float, int, int]) -> None:
    low, width, n_splines, seed = case
    high = low + width
    rng = np.random.default_rng(seed)
    b = rng.normal(size=n_splines)
    x = rng.uniform(low - width, high + width, 60)
    basis = bspline_basis(x, low, high, n_splines)
    rest = basis @ b - basis @ wiggly_directions(n_splines) @ np.diff(b, n=2)
    line = np.column_stack([np.ones(60), (x - low) / width])
    residual = rest - line @ np.linalg.lstsq(line, rest, rcond=None)[0]
    np.testing.assert_allclose(residual, 0.0, atol=1e-9)


@given(ranges, st.floats(-5, 5), st.floats(-5, 5))
def test_a_line_has_no_wiggly_part(
    case: tuple[float, float, int, int], level: float, slope: float
) -> None:
    low, width, n_splines, seed = case
    high = low + width
    # Coefficients at the Greville points: the mean of the three inner knots of each B-spline.
    knots = by_scipy(low, high, n_splines).t
    greville = np.array([knots[i + 1 : i + 1 + DEGREE].mean() for i in range(n_splines)])
    b = level + slope * (greville - low) / width
    np.testing.assert_allclose(np.diff(b, n=2), 0.0, atol=1e-9)
    x = np.random.default_rng(seed).uniform(low - width, high + width, 40)
    expected = level + slope * (x - low) / width
    np.testing.assert_allclose(bspline_basis(x, low, high, n_splines) @ b, expected, atol=1e-8)
