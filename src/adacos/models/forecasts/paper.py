"""The paper's forecast: normal, with the mean and standard deviation of the regression.

Nothing ties its expected probability to the probability now: information may seem to do harm.
"""

from __future__ import annotations

from adacos.kernels.bayes_risk import expected_bayes_risk
from adacos.models.forecasts.forecast import Forecast
from adacos.typing import Floats


class PaperForecast(Forecast):
    """N(mean, sd²)."""

    def moments(self, now: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Those of the regression."""
        return mean, sd

    def expected_risk(self, now: Floats, mean: Floats, sd: Floats, matrix: Floats) -> Floats:
        """Expected Bayes risk under them."""
        return expected_bayes_risk(mean, sd, matrix)
