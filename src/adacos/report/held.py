"""Held-out rows: a policy run on them, and what it costs next to its alternatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.card import deciding_matrix
from adacos.costs import Costs
from adacos.deciders.mixing import run_mixed
from adacos.decision import AnyDecider, DecisionRule
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.families import family_of
from adacos.kernels.groups import standard_error
from adacos.kernels.threads import one_blas_thread
from adacos.models.sequence_model import SequenceModel
from adacos.policies.base import BasePolicy
from adacos.policies.costed import BEST, CostedClassifier
from adacos.policies.fitting import inner_fits
from adacos.policies.recosting import OWN, charged_matrix, related_deciders
from adacos.policies.sequence_policy import has_sets
from adacos.tables.description import Description, description_of
from adacos.tables.encoder import validate_table
from adacos.tables.row_digests import RowDigests, trained_among
from adacos.tables.weights import group_numbers
from adacos.typing import Floats, Ints
from adacos.validation import listed

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
BOOSTED = "boosting on the best fixed set"


class Mean(NamedTuple):
    """A mean over rows and its standard error."""

    value: float
    error: float


class MethodCost(NamedTuple):
    """What one way of answering costs on the rows, and how right it is.

    `more` is what it costs more than the policy of the report, row by row; `right` the share of
    right answers.
    """

    name: str
    total: Mean
    more: Mean
    covariate: Mean
    recall: float
    specificity: float
    right: float


class Boosted(NamedTuple):
    """Boosting on the best fixed set of covariates, fitted on training rows.

    `rows` is how many there were, `learned_from` how many of them the model was fitted on as well;
    None if it is unknown.
    """

    policy: CostedClassifier
    rows: int
    learned_from: int | None


@dataclass(frozen=True)
class Held:
    """Held-out rows: the policy, the table, classes as 0, 1, …, and the policy's answers.

    `policy` is the one that decides, `given` the one that the report is asked for: another where
    the policy was chosen automatically. `boosted` is boosting on the best fixed set, if training
    rows were given to fit it on. `groups` are the numbers of the rows' groups, if some belong
    together.
    """

    given: BasePolicy
    policy: BasePolicy
    table: Any
    true: Ints
    result: AcquisitionResult
    boosted: Boosted | None = None
    groups: Ints | None = None

    @property
    def label(self) -> Ints:
        """Answers as 0, 1, …"""
        return self.policy.numbers_of(self.result.label)

    @property
    def model(self) -> SequenceModel:
        """The sequence model of a policy that has one."""
        model = self.policy.sequence_model
        assert model is not None
        return model

    @property
    def said(self) -> Description:
        """The words of the model."""
        return description_of(self.policy)

    @property
    def class_names(self) -> list[str]:
        """The classes in words."""
        return [self.said.class_name(label) for label in self.policy.classes_.tolist()]

    @property
    def two_classes(self) -> bool:
        """Whether one of two classes is the positive one."""
        return len(self.policy.classes_) == 2

    @property
    def decides(self) -> bool:
        """Whether decisions take the place of labels."""
        return self.policy.cost_table_.decisions is not None

    @property
    def has_cut_off(self) -> bool:
        """Whether the positive class is given at or above one probability."""
        return self.two_classes and not self.decides

    @property
    def label_names(self) -> list[str]:
        """What may be answered, in words: the classes, or the decisions."""
        return [self.said.class_name(label) for label in self.policy.decisions_.tolist()]

    def answered(self, name: str) -> str:
        """The heading of what is answered or decided so."""
        return name if self.decides else f"answered {name}"

    @property
    def probabilities(self) -> Floats:
        """Probability of every class at the stop, (rows, K)."""
        return family_of(self.result.probability).of_each(self.result.probability)

    @property
    def encoded(self) -> Floats:
        """The rows as the model takes them, NaN where there is no value."""
        policy = self.policy
        table = validate_table(policy, self.table, reset=False)
        return np.asarray(policy.encoder_.transform(table))

    @property
    def trained_on(self) -> int:
        """How many of the rows the policy was trained on, as far as it is known."""
        return max(
            trained_among(policy.training_rows_, self.encoded)
            for policy in (self.given, self.policy)
        )

    @property
    def missed_is_priced(self) -> bool:
        """Whether somebody stated what a missed positive costs; a target recall replaces it."""
        return self.policy.false_negative_cost_ is None

    @property
    def interval(self) -> str:
        """What the intervals of shares are, in words."""
        return "exact 95% interval" if self.groups is None else "95% interval over groups"

    @property
    def counted(self) -> str:
        """What the costs of the report are, in words."""
        return "total cost" if self.missed_is_priced else "covariates and false alarms"

    @property
    def charged(self) -> Floats:
        """Misclassification costs that are counted: without a missed positive if it has none."""
        return charged_matrix(self.policy, self.policy.cost_table_.matrix)


def hold(
    policy: BasePolicy,
    table: Any,
    y: NDArray[Any],
    training: tuple[Any, NDArray[Any]] | None = None,
    groups: Any = None,
) -> Held:
    """Run the policy on held-out rows; with training rows boosting is compared with it.

    With the groups of the rows standard errors and intervals are those of independent groups.
    """
    strange = np.setdiff1d(y, policy.classes_)
    if len(strange):
        raise InvalidInputError(
            "target",
            f"classes must be {policy.classes_.tolist()}",
            strange.tolist()[:5],
            "Use the column and --positive that the model was fitted with.",
        )
    true = np.searchsorted(policy.classes_, y)
    own = None if groups is None else group_numbers(groups, len(true))
    held = Held(policy, policy.chosen, table, true, policy.acquire(table), groups=own)
    return held if training is None else replace(held, boosted=_boosted(held, *training))


def _boosted(held: Held, table: Any, y: NDArray[Any]) -> Boosted:
    """Boosting on the best fixed set, fitted on training rows by the costs of the policy."""
    policy = held.policy
    absent = np.setdiff1d(policy.classes_, y)
    if len(absent):
        raise InvalidInputError(
            "training",
            f"must have rows of every class of the model: {listed(policy.classes_.tolist())}",
            f"none of {listed(absent.tolist())}",
            "Pass the rows that the model was fitted on.",
        )
    encoded = policy._encode(table)
    shared, beyond_chance = RowDigests.of(encoded, 0).found(held.encoded)
    if beyond_chance:
        raise InvalidInputError(
            "training",
            "must be other rows than the held-out ones, on which boosting is judged as well",
            f"{shared:,} rows that are in both",
            "Pass the rows that the model was fitted on, without those held out.",
        )
    named = policy.cost_table_.decisions
    costs = (policy.costs or Costs()).with_misclassification(deciding_matrix(policy), named)
    budgets = (policy.decider_.budget, policy.mean_budget)
    most = min((budget for budget in budgets if budget is not None), default=None)
    boosted = CostedClassifier(None, costs, covariates=BEST, budget=most)
    with inner_fits():
        boosted.fit(table, y)
    known = None
    if policy.training_rows_ is not None:
        known = trained_among(policy.training_rows_, encoded)
    return Boosted(boosted, len(y), known)


def own_method(held: Held) -> MethodCost:
    """The policy of the report."""
    return _method(OWN, held.result.cost, held.label, held, held.charged)


def methods(held: Held) -> list[MethodCost]:
    """The policy, its relatives on the same model, and answering all rows alike."""
    n = len(held.true)
    methods = [own_method(held)]
    for name, result in relatives(held, deciding_matrix(held.policy)).items():
        if name != OWN:
            methods.append(_method(name, result.cost, result.label, held, held.charged))
    if held.boosted is not None:
        result = held.boosted.policy.acquire(held.table)
        label = held.boosted.policy.numbers_of(result.label)
        methods.append(_method(BOOSTED, result.cost, label, held, held.charged))
    alike = [("everyone positive", 1)] + [("everyone negative", 0)] * held.missed_is_priced
    if not held.has_cut_off:
        alike = [(f"everyone {name}", k) for k, name in enumerate(held.label_names)]
    for name, answer in alike:
        label = np.full(n, answer, dtype=np.intp)
        methods.append(_method(name, np.zeros(n), label, held, held.charged))
    return methods


def sensitivity(held: Held) -> list[tuple[float, list[MethodCost]]]:
    """The methods again with the false-negative cost multiplied by each factor.

    With three or more classes with what every error costs beyond a right answer.
    """
    methods = []
    for factor in FACTORS:
        matrix = held.policy.cost_table_.matrix.copy()
        if held.has_cut_off:
            matrix[1, 0] = matrix[1, 1] + factor * (matrix[1, 0] - matrix[1, 1])
        else:
            right = matrix.min(axis=1)[:, None] if held.decides else np.diag(matrix)[:, None]
            matrix = right + factor * (matrix - right)
        own = []
        for name, result in relatives(held, matrix).items():
            own.append(_method(name, result.cost, result.label, held, matrix))
        methods.append((factor, own))
    return methods


@one_blas_thread
def relatives(held: Held, matrix: Floats) -> dict[str, AcquisitionResult]:
    """What this policy and the others of the paper on its model do, with these error costs.

    Labels are 0, 1, …
    None for a policy without a set sequence, nor for one that answers everyone positive.
    """
    policy = held.policy
    if not has_sets(policy) or policy.always_positive_:
        return {}
    named = policy.cost_table_.decisions
    costs = (policy.costs or Costs()).with_misclassification(matrix, named)
    # Budgets and branches stay as they are; what is asked follows the costs.
    deciders: dict[str, AnyDecider] = {OWN: policy.decider_.with_rule(DecisionRule(matrix))}
    deciders |= related_deciders(policy, costs)
    encoded = held.encoded
    return {name: run_mixed(decider, encoded) for name, decider in deciders.items()}


def _method(name: str, cost: Floats, label: Ints, held: Held, matrix: Floats) -> MethodCost:
    total = cost + matrix[held.true, label]
    own = held.result.cost + matrix[held.true, held.label]
    return MethodCost(
        name,
        _mean(total, held.groups),
        _mean(total - own, held.groups),
        _mean(cost, held.groups),
        _share(label[held.true == 1] == 1),
        _share(label[held.true == 0] == 0),
        _share(label == held.true),
    )


def _mean(values: Floats, groups: Ints | None) -> Mean:
    return Mean(float(values.mean()), standard_error(values, groups))


def _share(hits: NDArray[np.bool_]) -> float:
    return float(hits.mean()) if len(hits) else float("nan")
