"""What rows will know once the covariates of the first set are there, all acquired together."""

from __future__ import annotations

import numpy as np

from adacos.kernels.class_risk import normal_points, roots, with_first
from adacos.models.evidence import followed_rows
from adacos.models.lookahead import WalkState
from adacos.typing import Floats

_POINTS, _MASSES = np.polynomial.hermite_e.hermegauss(31)


def after_opening(state: WalkState) -> tuple[Floats, Floats]:
    """Log-odds of one row once its set is complete, and how likely each is.

    Where nothing is known, those of training rows by models that did not see them; else normal ones
    by what the missing covariates contribute.
    """
    model, i, lacking = state.model, state.stage, state.lacking
    assert lacking is not None
    assert state.available is not None
    if i == 0 and not state.available[0, model.sequence.set(0)].any():
        rows = followed_rows(model)
        weight = rows.weights_along(model.sequence, 0)[:, 0]
        on = weight > 0
        if on.any():
            return rows.log_odds[on, 0], weight[on] / weight.sum()
    if model.many_classes:
        part = state.part.reshape(-1, *model.intercepts.shape)[0, i]
        spread = normal_points(model.intercepts.shape[1]) @ roots(lacking.variance[0]).T
        mean = model.intercepts[i] + part + lacking.mean[0]
        moved = with_first(mean) + spread
        return moved[:, 1:] - moved[:, :1], np.full(len(spread), 1 / len(spread))
    mean = float(model.intercepts[i] + state.part[0, i] + lacking.mean[0, i])
    deviation = np.sqrt(float(lacking.variance[0, i]))
    return mean + deviation * _POINTS, _MASSES / _MASSES.sum()
