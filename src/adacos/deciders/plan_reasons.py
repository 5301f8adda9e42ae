"""Why a plan over all orders of questions asks for this covariate, or stops."""

from __future__ import annotations

import numpy as np

from adacos.decision import STOP, Decider, Decision, ObservedState, State
from adacos.kernels.class_risk import best_label, log_odds_of, probabilities
from adacos.kernels.planning import CLASSIFY
from adacos.models.plans import PlanTable
from adacos.reasons import Flip, Plan, Reasons
from adacos.tables.codes import Codes
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

# Share of the stakes by which expected costs that are alike may differ by rounding.
_ROUNDING = 1e-9


def plan_reasons(
    decider: Decider[State],
    state: ObservedState,
    decision: Decision,
    planned: Ints,
    table: PlanTable,
    codes: Codes,
    caution: float,
) -> Reasons:
    """One plan for each covariate that can come next: the one asked for, then what costs more.

    Amounts are those of the estimate, prices counted once. Where caution asks for another covariate
    than the cheapest, those that seem cheaper are not listed.
    """
    own, acquired = state.values[0, planned], state.acquired[0, planned]
    belief = class_shares(decision.log_odds)[0]
    # Members of a panel that the plan does not ask for may be there.
    price = decider.costs.of_next(state.acquired[0])[planned]
    now = float(decider.rule.risk(decision.log_odds)[0])
    near = _ROUNDING * float(np.ptp(decider.rule.matrix))
    asked = int(decision.covariates[0])
    ways = []
    for place in np.flatnonzero(~acquired).tolist():
        states, share = table.after(own, acquired, place)
        joint = _joint_after(share, class_shares(table.log_odds[states]), belief)
        if caution == 1 and table.continuing is not None:
            future = float((joint * _cost_by_class(decider, table, states)).sum())
        else:
            future = float(joint.sum(axis=1) @ np.nan_to_num(table.value[states]))
        future += float(price[place])
        if asked == STOP and caution == 1:
            # Only what the plan acquires next was weighed by what was acquired itself.
            future = max(future, now)
        future = now if abs(future - now) < near else future
        name = decider.encoder.names[planned[place]]
        ways.append((future, place, Plan((name,), float(price[place]), future), joint))
    ways.sort(key=lambda way: way[:2])
    first = 0 if asked == STOP else [planned[way[1]] for way in ways].index(asked)
    # What going on would tell is of interest, too, where caution alone stops.
    least = now if asked == STOP else ways[first][0] - near
    overruled = caution > 1 and bool(ways) and ways[0][0] < least
    flips: tuple[Flip, ...] = ()
    if asked != STOP or overruled:
        _, place, _, joint = ways[first]
        after = log_odds_of(joint / joint.sum(axis=1, keepdims=True))
        after = after.reshape(len(after), *decision.log_odds.shape[1:])
        flips = _flips(decider, codes, int(planned[place]), after, decision.log_odds)
    because = _describe_caution(caution) if overruled else ""
    return Reasons(tuple(plan for _, _, plan, _ in ways[first:]), flips, because=because)


def class_shares(log_odds: Floats) -> Floats:
    """Probability of every class, (rows, classes)."""
    return probabilities(log_odds.reshape(len(log_odds), -1))


def _joint_after(share: Floats, likely: Floats, belief: Floats) -> Floats:
    """P(code, class) of a covariate, (codes, classes), at another belief than that of the codes.

    `share` are the probabilities of the codes, and `likely` those of the classes after each, given
    the codes of what was acquired. Within a class the codes keep their probabilities.
    """
    joint = share[:, None] * likely
    joint = joint / np.maximum(joint.sum(axis=0), np.finfo(float).tiny) * belief
    return np.asarray(np.maximum(joint, np.finfo(float).tiny))


def _cost_by_class(decider: Decider[State], table: PlanTable, states: Ints) -> Floats:
    """What following the plan from states on costs by true class, (states, classes)."""
    matrix = decider.costs.matrix
    assert table.continuing is not None
    stops = table.action[states] == CLASSIFY
    wrong = matrix[:, best_label(table.log_odds[states], matrix)].T
    return np.where(stops[:, None], wrong, table.continuing[states])


def _describe_caution(caution: float) -> str:
    times = f"{caution:g} times" if caution < 1000 else "without limit: only free ones are acquired"
    return (
        f"Covariate costs count {times} when continuing is weighed: in cross-validation that "
        "made plans cheaper."
    )


def _flips(
    decider: Decider[State], codes: Codes, covariate: int, after: Floats, now: Floats
) -> tuple[Flip, ...]:
    """Codes of a covariate that would change the label, as values or ranges."""
    label, labels = int(decider.rule.label(now)[0]), decider.rule.label(after)
    name, cuts = decider.encoder.names[covariate], codes.cuts[covariate]
    flips = []
    for other in np.unique(labels[labels != label]).tolist():
        turning = np.flatnonzero(labels == other)
        answer = decider.decisions[other]
        answer = answer.item() if isinstance(answer, np.generic) else answer
        if decider.encoder.kinds[covariate] == CATEGORICAL:
            categories = decider.encoder.categories[covariate]
            flips.append(Flip(name, answer, (), tuple(categories[i] for i in turning)))
        else:
            ends = [None, *cuts.tolist(), None]
            # Neighbouring codes make one range.
            runs = np.split(turning, np.flatnonzero(np.diff(turning) > 1) + 1)
            ranges = tuple((ends[run[0]], ends[run[-1] + 1]) for run in runs)
            flips.append(Flip(name, answer, ranges, ()))
    return tuple(flips)
