"""Moments by interval sums against the functions evaluated at every point."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels.spline_moments import interval_polynomials, spline_moments
from adacos.kernels.splines import numeric_columns


@pytest.mark.parametrize("n_splines", [4, 10, 20])
def test_moments_are_those_of_the_evaluated_functions(n_splines: int) -> None:
    rng = np.random.default_rng(n_splines)
    low, high, mean, scale = -2.0, 3.0, 0.4, 1.7
    coefs = rng.normal(size=(n_splines - 1, 5))
    center = rng.normal(size=n_splines - 1)
    # Points inside, at the ends, at knots and outside of the range.
    values = rng.uniform(-4, 5, size=(40, 16))
    values[0, :3] = [low, high, low + (high - low) / (n_splines - 3)]
    score = rng.normal(size=16)
    score -= score.mean()
    columns = numeric_columns(values.ravel(), low, high, mean, scale, n_splines) - center
    functions = (columns @ coefs).reshape(40, 16, 5)
    polynomials = interval_polynomials(coefs, center, low, high, mean, scale, n_splines)
    found = spline_moments(polynomials, values, score, low, high)
    np.testing.assert_allclose(found[0], functions.mean(axis=1), atol=1e-10)
    np.testing.assert_allclose(found[1], functions.var(axis=1), atol=1e-9)
    np.testing.assert_allclose(found[2], np.einsum("p,rpf->rf", score, functions) / 16, atol=1e-10)
