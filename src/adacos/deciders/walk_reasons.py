"""Why a policy over a set sequence decides so about one row that walks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adacos.consultation.reasons import sequence_reasons
from adacos.deciders.weighing import look_ahead_by
from adacos.decision import STOP, Decider, Decision, State
from adacos.kernels.bayes_risk import bayes_risk
from adacos.models.lookahead import Lookahead, WalkState
from adacos.reasons import Reasons
from adacos.typing import Floats

if TYPE_CHECKING:
    from adacos.deciders.sequence import SequenceDecider


def walk_reasons(decider: SequenceDecider, state: WalkState, decision: Decision) -> Reasons:
    """The reasons, for two classes or more."""
    asked = [int(k) for k in decision.covariates.flat if k != STOP]
    if state.available is not None and np.isin(asked, state.upcoming).all():
        # Covariates of a batch that are unavailable are passed over.
        asked = [k for k in asked if state.available[0, k]]
    lookahead = decision.weighed_as(Lookahead)  # type: ignore[type-abstract]
    if lookahead is None:
        lookahead = look_ahead_by(state, decider.weighed_costs)
    past = describe_past_cases(lookahead, decider.rule.matrix)
    lookahead = lookahead.unweighted(1 + decider.multiplier)
    own = state, lookahead, decider.rule, decider.encoder, decider.decisions.tolist(), asked
    reasons = sequence_reasons(*own, decider.costs, decider.worth)
    described = past, describe_recalls(decider), describe_budgets(decider, state, lookahead)
    return replace(reasons, because=" ".join(filter(None, described)))


def describe_past_cases(lookahead: Lookahead, matrix: Floats) -> str:
    """Say where what continuing did for past cases, cross-validated, changes a decision."""
    if lookahead.future is None or lookahead.shown is None:
        return ""
    now = float(bayes_risk(lookahead.log_odds, matrix)[0])
    best = float(lookahead.future[0].min(initial=np.inf))
    continues, by_model = best < now, best + float(lookahead.shown[0]) < now
    if continues == by_model:
        return ""
    alike = "for past cases with a similar probability (cross-validated)"
    if continues:
        return f"The model alone would stop, but {alike} continuing lowered cost. So it continues."
    return f"The model alone would ask more, but {alike} that did not lower cost. So it stops."


def describe_budgets(decider: Decider[WalkState], state: WalkState, lookahead: Lookahead) -> str:
    """What budgets have to do with a decision about one row, in words."""
    described, times = [], 1 + decider.multiplier
    if state.left is not None and np.isinf(lookahead.cost).any():
        first = state.upcoming[int(np.argmax(np.isinf(lookahead.cost[0])))]
        described.append(
            f"{state.left[0] / times:.2f} of the {decider.budget:.2f} budget is left: not "
            f"enough for {decider.encoder.names[first]}."
        )
    if times > 1:
        described.append(
            f"To keep the mean budget of {decider.terms.mean_budget:.2f}, covariate costs count "
            f"{times:.2f} times when continuing is weighed."
        )
    return " ".join(described)


def describe_recalls(decider: Decider[State]) -> str:
    """What target recalls have to do with a decision, in words."""
    if len(decider.classes) == 2 and decider.costs.decisions is None:
        return ""
    # An error about a class with a target costs more than was stated, whichever it is.
    surcharge = (decider.rule.matrix - decider.costs.matrix).max(axis=1)
    names = [
        f"those about {label} {more:.2f} more"
        for label, more in zip(decider.classes.tolist(), surcharge.tolist(), strict=True)
        if more > 0
    ]
    if not names:
        return ""
    return f"For the target recalls errors count more than was stated: {', '.join(names)}."
