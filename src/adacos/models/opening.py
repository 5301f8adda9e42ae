"""What rows will know once the covariates of the first set are there, all acquired together."""

from __future__ import annotations

from adacos.models.evidence import followed_rows
from adacos.models.lookahead import WalkState
from adacos.typing import Floats


def after_opening(state: WalkState) -> tuple[Floats, Floats]:
    """Log-odds of one row once its set is complete, and how likely each is.

    Where nothing is known, those of training rows by models that did not see them; else normal ones
    by what the missing covariates contribute.
    """
    model, i, missing_part = state.model, state.stage, state.missing_part
    assert missing_part is not None
    informative = state.informative
    assert informative is not None
    if i == 0 and not informative[0, model.sequence.set(0)].any():
        rows = followed_rows(model)
        weight = rows.weights_along(model.sequence, 0)[:, 0]
        on = weight > 0
        if on.any():
            return rows.log_odds[on, 0], weight[on] / weight.sum()
    part = state.part.reshape(-1, *model.intercepts.shape)[0, i]
    mean = (model.intercepts[i] + part).reshape(-1) + missing_part.mean[0]
    return model.family.normal(mean, missing_part.variance[0])
