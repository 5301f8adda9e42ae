"""How the log-odds after an acquisition are distributed: one file for each answer.

A forecast is asked two things about rows that stand at a set: the moments of their log-odds after
a later set, and the Bayes risk expected there. It is given the log-odds now and, from the
regression of what is still to come, mean and standard deviation of the log-odds after. A new
forecast is one file with a `Forecast` like those here, and one line in `FORECASTS`.
"""

from __future__ import annotations

from adacos.models.forecasts.coherent import CoherentForecast
from adacos.models.forecasts.forecast import Forecast
from adacos.models.forecasts.paper import PaperForecast

__all__ = ["FORECASTS", "Forecast"]

_COHERENT = CoherentForecast()
# By the parameter `lookahead` of AdaCOS. Dynamic programming (`adacos.models.dynamic`) rests on the
# coherent forecast.
FORECASTS: dict[str, Forecast] = {
    "realised": _COHERENT,
    "dynamic": _COHERENT,
    "coherent": _COHERENT,
    "paper": PaperForecast(),
}
