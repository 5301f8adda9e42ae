"""The coherent forecast: normal, with a mean that keeps the probability.

Beliefs are a martingale: E[p(y | more) | x_A] = p(y | x_A). The standard deviation is that of the
regression; the mean is the one for which the expected probability is the probability now. The
Bayes risk is concave in the probability, so that by Jensen's inequality information is never
expected to raise it, whatever the costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.kernels.martingale import coherent_mean

Floats = NDArray[np.float64]


class CoherentForecast:
    """N(m, sd²) with E[g(N(m, sd²))] = g(now)."""

    def moments(self, now: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """The mean that keeps the probability, and the regression's standard deviation."""
        return coherent_mean(now, sd), sd

    def expected_risk(self, now: Floats, mean: Floats, sd: Floats, matrix: Floats) -> Floats:
        """Expected Bayes risk under them, at most the Bayes risk now."""
        mean = coherent_mean(now, sd)
        expected = expected_bayes_risk(mean, sd, matrix, positive=expit(now))
        # Jensen holds to the accuracy of the two kernels; where nothing is to be learned they
        # would otherwise make a difference of 1e-6 of the costs.
        return np.asarray(np.minimum(expected, bayes_risk(now, matrix)))
