"""Between which probabilities a rule decides what: its cut-off, or the range of each decision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from adacos.decision import Decider, DecisionRule, State
from adacos.kernels.bayes_risk import decision_threshold
from adacos.kernels.class_risk import probabilities
from adacos.kernels.decisions import pieces_if_two
from adacos.reasons import WeighedDecision
from adacos.typing import Floats


def cut_off_of(rule: DecisionRule) -> float:
    """Give the cut-off of a rule for two classes; 0 if everyone is called positive."""
    if rule.threshold is not None:
        return float(rule.threshold)
    return float(expit(decision_threshold(rule.matrix)))


def ranges_of(matrix: Floats) -> dict[int, tuple[float, float]]:
    """Range of the probability of the second class in which each decision is the cheapest.

    By number of the decision, from the least probable second class to the most probable; one that
    is never the cheapest has none, nor have those about three or more classes.
    """
    found = pieces_if_two(matrix)
    columns, cuts = found or ((), ())
    ends = [0.0, *(float(expit(cut)) for cut in cuts), 1.0]
    return {column: (ends[j], ends[j + 1]) for j, column in enumerate(columns)}


def named_ranges(
    names: Sequence[str], matrix: Floats, costs: Floats | None = None
) -> tuple[WeighedDecision, ...]:
    """Every decision by its name, in the order of the probability, with the range it is best in.

    `costs` are what each is expected to cost, which is not known without a row.
    """
    ranges = ranges_of(matrix)
    order = [*ranges, *(d for d in range(len(names)) if d not in ranges)]
    risk = np.full(len(names), np.nan) if costs is None else costs
    return tuple(WeighedDecision(names[d], float(risk[d]), *ranges.get(d, ())) for d in order)


def weighed_decisions(decider: Decider[State], log_odds: Floats) -> tuple[WeighedDecision, ...]:
    """What each decision about one row is expected to cost now, and when it is the cheapest."""
    shares = probabilities(log_odds.reshape(1, -1))[0]
    # By the costs as stated, whatever a target recall adds.
    risk = shares @ decider.costs.matrix
    names = decider.decisions.tolist()
    if not decider.answers_by_rule:
        # What is decided follows from no probability.
        each = zip(names, risk.tolist(), strict=True)
        return tuple(WeighedDecision(name, cost) for name, cost in each)
    return named_ranges(names, decider.rule.matrix, risk)


def percent(share: float) -> str:
    """Write a share in per cent, small ones with two digits."""
    return f"{100 * share:.1f}%" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"


def place_shown(decider: Decider[State], probability: Floats, number: int) -> int:
    """Of one, its place; of three or more that of the label, or of the most probable one."""
    named = decider.costs.decisions is None and probability.size > 1
    return number if named else int(np.argmax(probability))
