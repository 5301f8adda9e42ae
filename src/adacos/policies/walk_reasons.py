"""Why a policy over a set sequence decides so about one row that walks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.consultation.class_reasons import class_reasons
from adacos.consultation.reasons import opening_reasons, sequence_reasons
from adacos.consultation.steps import Reasons
from adacos.engine import STOP, Decision
from adacos.kernels.bayes_risk import bayes_risk
from adacos.models.class_outlook import look_ahead_classes
from adacos.models.outlook import Outlook, WalkState, look_ahead
from adacos.policies.budgets import told_of_budgets
from adacos.policies.class_recall import told_of_recalls

Floats = NDArray[np.float64]


def walk_reasons(policy: Any, state: WalkState, decision: Decision) -> Reasons:
    """The reasons, for two classes or more."""
    asked = [int(k) for k in decision.covariates.flat if k != STOP]
    if state.available is not None and np.isin(asked, state.upcoming).all():
        # Of a batch, what is not to be had is passed over.
        asked = [k for k in asked if state.available[0, k]]
    classes = policy.classes_.tolist()
    if state.model.many_classes:
        ahead = decision.weighed or look_ahead_classes(state, policy.weighed_costs)
        if ahead.future is None:
            ahead = ahead.weighed(policy.rule_.matrix)
        ahead = ahead.in_money(1 + policy.multiplier_)
        reasons = class_reasons(
            state, ahead, policy.rule_, policy.encoder_, classes, asked, policy.cost_table_
        )
        told = told_of_recalls(policy), told_of_budgets(policy, state, ahead)
        return replace(reasons, because=" ".join(filter(None, told)))
    outlook: Outlook = decision.weighed or look_ahead(state, policy.weighed_costs)
    turned = told_of_rows_left_out(outlook, policy.rule_.matrix)
    outlook = outlook.in_money(1 + policy.multiplier_)
    if np.isin(asked, state.model.sequence.set(state.stage)).any():
        return opening_reasons(
            state, outlook, policy.rule_, policy.encoder_, classes, asked, policy.cost_table_
        )
    reasons = sequence_reasons(
        state, outlook, policy.rule_, policy.encoder_, classes, asked[0] if asked else None
    )
    because = " ".join(filter(None, (turned, told_of_budgets(policy, state, outlook))))
    return replace(reasons, because=because)


def told_of_rows_left_out(outlook: Outlook, matrix: Floats) -> str:
    """In words, that what going on did for rows left out turns the decision about one row."""
    if outlook.future is None or outlook.shown is None:
        return ""
    now = float(bayes_risk(outlook.log_odds, matrix)[0])
    best = float(outlook.future[0].min(initial=np.inf))
    go_on, by_model = best < now, best + float(outlook.shown[0]) < now
    if go_on == by_model:
        return ""
    alike = "training rows of about this probability, left out of the model, fared"
    if go_on:
        return f"By the model alone going on would not pay; {alike} better with it."
    return f"By the model alone going on would pay; {alike} no better with it."
