"""The approximations of the sigmoid that the paper compares, and their errors."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from adacos.typing import Floats

PIECES, BOUND = 40, 10.0
LINEAR = f"piecewise linear, ξ = {PIECES}"
BINS = f"discrete bins, ξ = {PIECES}"
NORMAL = "Φ(√(π/8) u)"


def approximations(u: Floats) -> dict[str, Floats]:
    """Each approximation of the sigmoid at u."""
    knots = np.linspace(-BOUND, BOUND, PIECES + 1)
    middle = (knots[1:] + knots[:-1]) / 2
    bin_of = np.clip(np.searchsorted(knots, u, side="right") - 1, 0, PIECES - 1)
    return {
        LINEAR: np.interp(u, knots, expit(knots)),
        BINS: expit(middle)[bin_of],
        NORMAL: norm.cdf(np.sqrt(np.pi / 8) * u),
    }


def largest_errors() -> dict[str, float]:
    """Largest absolute error of each approximation over [-15, 15]."""
    u = np.linspace(-15, 15, 300_001)
    return {
        name: float(np.abs(values - expit(u)).max()) for name, values in approximations(u).items()
    }
