"""A policy and its alternatives on the same rows at other costs, without another fit.

The models do not depend on costs, so that the decider of a fitted policy decides at other costs as
`Decider.with_costs` says. What rows acquired and were answered is a behaviour; at other costs than
those it was decided by, a behaviour costs

    total(a) = total(a0) + Σ_k exposure_k (a_k - a0_k),

where exposure_k is 1 for a row that pays cost k and 0 else: linear in the amounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adacos.costs import Costs
from adacos.deciders.mixing import run_mixed
from adacos.decision import STOP, AnyDecider, Kept
from adacos.exceptions import InvalidInputError
from adacos.metrics.evaluation import EvaluatedRows
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.cos import COSClassifier
from adacos.policies.fitted import fitted_policy
from adacos.policies.full_model import FullModelClassifier
from adacos.policies.sequence_policy import has_sets
from adacos.policies.uncertain_costs import UncertainCost, at_amounts
from adacos.restricted import restricted
from adacos.typing import Bools, Floats, Ints
from adacos.validation import listed

# The one name that the policy looked at has in tables and figures.
OWN = "this policy"


def related_deciders(policy: BasePolicy, costs: Costs) -> dict[str, AnyDecider]:
    """Deciders of the paper's other policies on the model of a policy, at these costs.

    None for a policy without a set sequence, nor for one that answers everyone positive.
    """
    if not has_sets(policy) or policy.always_positive_:
        return {}
    deciders: dict[str, AnyDecider] = {}
    lists = policy.decider_.lists
    kinds = {"AdaCOS": AdaCOSClassifier, "COS": COSClassifier, "full model": FullModelClassifier}
    for name, kind in kinds.items():
        if not (policy.in_one_order and isinstance(policy, kind)):
            other = kind(costs)
            if other.resolved_lookahead is not None and policy.resolved_lookahead is not None:
                other.set_params(lookahead=policy.resolved_lookahead)
            deciders[name] = restricted(other.from_model(policy).decider_, *lists)
    return deciders


def charged_matrix(policy: BasePolicy, matrix: Floats) -> Floats:
    """The misclassification costs that are counted: without a missed positive if it has none."""
    if policy.false_negative_cost_ is None:
        return matrix
    counted = np.ones_like(matrix)
    counted[1] = 0.0
    return matrix * counted


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What rows acquired and were answered at some amounts of the uncertain costs.

    Attributes
    ----------
    amounts : the amounts that were decided by.
    acquired, order : what each row acquired, as a mask and in order.
    answer : number of each answer.
    probability : of the classes at the stop, (rows, K); None where nothing was asked of a model.
    total : what each row cost at these amounts.
    exposure : mask (rows, costs) of the uncertain costs that each row pays.
    """

    amounts: Floats
    acquired: Bools
    order: Ints
    answer: Ints
    probability: Floats | None
    total: Floats
    exposure: Bools

    def total_at(self, amounts: Floats) -> Floats:
        """What each row costs at other amounts, doing the same."""
        return np.asarray(self.total + self.exposure @ (amounts - self.amounts))


@dataclass(frozen=True, eq=False)
class Alternatives:
    """A policy and what it is compared with, on the same rows.

    Attributes
    ----------
    policy : the policy that decides.
    rows : the rows.
    costs : the uncertain costs.
    deciders : by name; in place of a decider the number of the answer that everyone is given.
    related : names of those that decide by the costs in force of the policy: with a target recall
        by the false-negative cost that it implies.
    encoded : rows as other policies take them, by name.
    found : behaviours that were asked for before.
    states : states of the rows that do not depend on costs, by name of whose rows they are.
    """

    policy: BasePolicy
    rows: EvaluatedRows
    costs: tuple[UncertainCost, ...]
    deciders: dict[str, AnyDecider | int]
    related: frozenset[str]
    encoded: dict[str, Floats]
    found: dict[tuple[str, str], Behaviour] = field(default_factory=dict, repr=False)
    states: dict[str, Kept] = field(default_factory=dict, repr=False)

    @property
    def stated(self) -> Floats:
        """The amounts that the policy was given."""
        return np.array([cost.stated for cost in self.costs])

    @property
    def expected(self) -> Floats:
        """The expected amounts."""
        return np.array([cost.mean for cost in self.costs])

    def kept(self, name: str, amounts: Floats) -> Behaviour:
        """As `behaviour`, remembered for the next time."""
        # Amounts that differ by rounding are one.
        key = name, " ".join(f"{amount:.12g}" for amount in amounts.tolist())
        if key not in self.found:
            self.found[key] = self.behaviour(name, amounts)
        return self.found[key]

    def behaviour(self, name: str, amounts: Floats) -> Behaviour:
        """What an alternative does with the rows when it decides by these amounts."""
        stated = self.policy.cost_table_
        table, decider = at_amounts(stated, self.costs, amounts), self.deciders[name]
        true, probability = self.rows.true, None
        if isinstance(decider, int):
            acquired = np.zeros((len(true), len(table.names)), dtype=np.bool_)
            order, answer = np.full(acquired.shape, STOP), np.full(len(true), decider)
            paid = np.zeros(len(true))
        else:
            own = table
            if name in self.related:
                rule = self.policy.rule_.restated(stated.matrix, table.matrix)
                own = replace(table, matrix=rule.matrix)
            encoded = self.encoded.get(name, self.rows.encoded)
            states = self.states.setdefault(name if name in self.encoded else OWN, {})
            result = run_mixed(decider.with_costs(own).remembering(states), encoded)
            acquired, order, answer = result.acquired, result.order, result.label
            paid = result.cost
            p = result.probability
            probability = np.column_stack([1 - p, p]) if p.ndim == 1 else p
        total = paid + charged_matrix(self.policy, table.matrix)[true, answer]
        exposure = [cost.exposure(acquired, true, answer) for cost in self.costs]
        paid_for = np.column_stack(exposure)
        # Many behaviours are held at once: orders are kept small.
        order = order.astype(np.int16)
        return Behaviour(amounts, acquired, order, answer, probability, total, paid_for)


def alternatives(
    policy: BasePolicy,
    rows: EvaluatedRows,
    costs: tuple[UncertainCost, ...],
    answers: Sequence[str],
    compared: Mapping[str, BasePolicy] | None = None,
    X: Any = None,
) -> Alternatives:
    """The policy, its relatives on the same model, answering everyone alike, and other policies.

    `answers` names the answers, and `X` holds the rows as other policies take them.
    """
    in_force = policy.costs or Costs()
    if not np.array_equal(policy.rule_.matrix, policy.cost_table_.matrix):
        in_force = in_force.with_misclassification(
            policy.rule_.matrix, policy.cost_table_.decisions
        )
    related = related_deciders(policy, in_force)
    # A copy at the same costs shares with those at other costs what does not depend on them.
    deciders: dict[str, AnyDecider | int] = {
        name: decider.with_costs(decider.costs)
        for name, decider in {OWN: policy.decider_, **related}.items()
    }
    if policy.cost_table_.matrix.shape == (2, 2):
        deciders["everyone positive"] = 1
        if policy.false_negative_cost_ is None:
            deciders["everyone negative"] = 0
    else:
        deciders.update({f"everyone {name}": k for k, name in enumerate(answers)})
    encoded = {}
    others: object = {} if compared is None else compared
    if not isinstance(others, Mapping):
        kind, example = type(others).__name__, "For example {'simple': other_policy}."
        raise InvalidInputError("compared", "must be policies by name", kind, example)
    for name, other in others.items():
        _check_compared(name, other, policy, deciders)
        deciders[name], encoded[name] = other.chosen.decider_, other.chosen._encode(X)
    return Alternatives(policy, rows, costs, deciders, frozenset(related), encoded)


def _check_compared(
    name: str, other: Any, policy: BasePolicy, deciders: Mapping[str, object]
) -> None:
    """Refuse a policy that decides about other covariates or classes, or has a name in use."""
    parameter = f"compared[{name!r}]"
    fitted_policy(other, parameter)
    for what, own, its in (
        ("covariates", policy.encoder_.names, other.chosen.encoder_.names),
        ("classes", tuple(policy.classes_.tolist()), tuple(other.classes_.tolist())),
        ("decisions", tuple(policy.decisions_.tolist()), tuple(other.decisions_.tolist())),
    ):
        if own != its:
            rule = f"must be about the same {what}, in the same order: {listed(own)}"
            raise InvalidInputError(parameter, rule, listed(its), "Fit it to the same columns.")
    if name in deciders:
        raise InvalidInputError(
            "compared", "must not name what is compared anyway", name, "Choose another name."
        )
