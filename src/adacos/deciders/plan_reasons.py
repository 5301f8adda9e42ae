"""Why a plan over all orders of questions asks for this covariate, or stops."""

from __future__ import annotations

import numpy as np

from adacos.decision import STOP, Decider, Decision, ObservedState, State
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
    # Members of a panel that the plan does not ask for may be there.
    price = decider.costs.of_next(state.acquired[0])[planned]
    now = float(decider.rule.risk(decision.log_odds)[0])
    near = _ROUNDING * float(np.ptp(decider.rule.matrix))
    ways = []
    for place in np.flatnonzero(~acquired).tolist():
        states, share = table.after(own, acquired, place)
        future = float(price[place] + share @ np.nan_to_num(table.value[states]))
        future = now if abs(future - now) < near else future
        name = decider.encoder.names[planned[place]]
        ways.append((future, place, Plan((name,), float(price[place]), future), states))
    ways.sort(key=lambda way: way[:2])
    asked = int(decision.covariates[0])
    first = 0 if asked == STOP else [planned[way[1]] for way in ways].index(asked)
    # What going on would tell is of interest, too, where caution alone stops.
    least = now if asked == STOP else ways[first][0] - near
    overruled = caution > 1 and bool(ways) and ways[0][0] < least
    flips: tuple[Flip, ...] = ()
    if asked != STOP or overruled:
        _, place, _, states = ways[first]
        flips = _flips(
            decider, codes, int(planned[place]), table.log_odds[states], decision.log_odds
        )
    because = _describe_caution(caution) if overruled else ""
    return Reasons(tuple(plan for _, _, plan, _ in ways[first:]), flips, because=because)


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
        answer = decider.classes[other]
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
