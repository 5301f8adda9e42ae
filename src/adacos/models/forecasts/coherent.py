"""The coherent forecast: normal, with a mean that keeps the probability.

Beliefs are a martingale: E[p(y | more) | x_A] = p(y | x_A). The standard deviation is that of the
regression; the mean is the one for which the expected probability is the probability now. The
Bayes risk is concave in the probability, so that by Jensen's inequality information is never
expected to raise it, whatever the costs.
"""

from __future__ import annotations

from adacos.kernels.martingale import coherent_mean
from adacos.kernels.saving import Savings, kept_risk
from adacos.models.forecasts.forecast import Forecast
from adacos.typing import Bools, Floats


class CoherentForecast(Forecast):
    """N(m, sd²) with E[g(N(m, sd²))] = g(now)."""

    def moments(self, now: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """The mean that keeps the probability, and the regression's standard deviation."""
        return coherent_mean(now, sd), sd

    def expected_risk(self, now: Floats, mean: Floats, sd: Floats, matrix: Floats) -> Floats:
        """Expected Bayes risk under them, at most the Bayes risk now."""
        return kept_risk(now, sd, matrix)

    def any_worthwhile(
        self, now: Floats, mean: Floats, sd: Floats, cost: Floats, savings: Savings
    ) -> Bools:
        """Whether some acquisition is expected to save more than it costs, for each row."""
        return savings.any_worthwhile(now, sd, cost)
