"""How the log-odds after an acquisition are distributed: one file for each answer.

A forecast is asked two things about rows that stand at a set: the moments of their log-odds after
a later set, and the Bayes risk expected there. It is given the log-odds now and, from the
regression of what is still to come, mean and standard deviation of the log-odds after. A new
forecast is one file with a class like those here, and one line in `FORECASTS`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adacos.models.forecasts.coherent import CoherentForecast
from adacos.models.forecasts.paper import PaperForecast

Floats = NDArray[np.float64]


class Forecast(Protocol):
    """What the log-odds after an acquisition are expected to be; arrays broadcast."""

    def moments(self, now: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log-odds after the acquisition."""
        ...

    def expected_risk(self, now: Floats, mean: Floats, sd: Floats, matrix: Floats) -> Floats:
        """Expected Bayes risk after the acquisition, for misclassification costs C[y, label]."""
        ...


# By the parameter `outlook` of AdaCOS.
FORECASTS: dict[str, Forecast] = {"coherent": CoherentForecast(), "paper": PaperForecast()}
