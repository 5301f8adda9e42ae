"""Everything a report shows, as numbers: functions of a policy and held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs
from adacos.exceptions import InvalidInputError
from adacos.kernels.bayes_risk import label_of
from adacos.kernels.binomial import interval
from adacos.policies import AdaCOSClassifier, COSClassifier, FullModelClassifier
from adacos.policies.sequence_policy import SequencePolicy
from adacos.policy import AcquisitionResult
from adacos.preprocessing import validate_table

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_BINS = 10
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


class Mean(NamedTuple):
    """A mean over rows and its standard error."""

    value: float
    error: float


class Method(NamedTuple):
    """What one way of answering costs on the rows, and how right it is."""

    name: str
    total: Mean
    covariate: Mean
    recall: float
    specificity: float


class Bin(NamedTuple):
    """Rows of like probability: mean probability, observed share, exact interval, rows."""

    probability: float
    share: float
    low: float
    high: float
    rows: int


class Curve(NamedTuple):
    """Net benefit of one way of answering at each threshold."""

    name: str
    benefit: Floats


@dataclass(frozen=True)
class Held:
    """Held-out rows: the policy, the table, classes as 0 and 1, and the policy's answers."""

    policy: SequencePolicy
    table: Any
    true: Ints
    result: AcquisitionResult

    @property
    def label(self) -> Ints:
        """Answers as 0 and 1."""
        return np.searchsorted(self.policy.classes_, self.result.label)


def hold(policy: SequencePolicy, table: Any, y: NDArray[Any]) -> Held:
    """Run the policy on held-out rows."""
    strange = np.setdiff1d(y, policy.classes_)
    if len(strange):
        raise InvalidInputError(
            "target",
            f"classes must be {policy.classes_.tolist()}",
            strange.tolist()[:5],
            "Use the column and --positive that the model was fitted with.",
        )
    return Held(policy, table, np.searchsorted(policy.classes_, y), policy.acquire(table))


def methods(held: Held) -> list[Method]:
    """The policy, its relatives on the same model, and answering all rows alike."""
    policy, n = held.policy, len(held.true)
    found = [_method("this policy", held.result.cost, held.label, held)]
    for name, other in _relatives(policy, policy.cost_table_.matrix).items():
        if type(other) is not type(policy):
            result = other.acquire(held.table)
            label = np.searchsorted(policy.classes_, result.label)
            found.append(_method(name, result.cost, label, held))
    for name, answer in (("everyone positive", 1), ("everyone negative", 0)):
        label = np.full(n, answer, dtype=np.intp)
        found.append(_method(name, np.zeros(n), label, held))
    return found


def stops(held: Held) -> list[tuple[str, float, float, float]]:
    """For each covariate in order: name, cost, share of rows that acquire it, that stop there."""
    policy = held.policy
    sequence = policy.model_.sequence
    share = held.result.acquired.mean(axis=0)
    found = []
    for rank, k in enumerate(sequence.order):
        stage = rank + 1 - sequence.n_free
        stopped = float(np.mean(held.result.stage == stage)) if stage >= 0 else 0.0
        cost = float(policy.cost_table_.covariates[k])
        found.append((policy.encoder_.names[k], cost, float(share[k]), stopped))
    return found


def cost_by_set(held: Held) -> tuple[Floats, Floats, Floats]:
    """Mean total cost if every row stopped at a set: foretold, on these rows, its error."""
    policy = held.policy
    encoded = policy.encoder_.transform(validate_table(policy, held.table, reset=False))
    label = label_of(policy.model_.log_odds_by_set(encoded), policy.cost_table_.matrix)
    totals = policy.cost_table_.matrix[held.true[:, None], label] + policy.cost_table_.of(
        policy.model_.sequence.masks()
    )
    error = totals.std(axis=0, ddof=1) / np.sqrt(len(totals))
    return policy.expected_cost_, totals.mean(axis=0), error


def calibration(held: Held) -> list[Bin]:
    """Observed shares of the positive class by probability at the stop."""
    p = held.result.probability
    edges = np.unique(np.quantile(p, np.linspace(0, 1, _BINS + 1)))
    number = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    found = []
    for i in np.unique(number):
        rows = number == i
        hits, n = int(held.true[rows].sum()), int(rows.sum())
        low, high = interval(hits, n, 0.95)
        found.append(Bin(float(p[rows].mean()), hits / n, float(low), float(high), n))
    return found


def decision_curves(held: Held) -> tuple[Floats, list[Curve]]:
    """Net benefit TP/n - FP/n · t/(1 - t) at thresholds t.

    Covariate costs do not enter: it says how useful the probabilities are, whatever they cost.
    """
    threshold = np.linspace(0.01, 0.99, 99)
    full = _relatives(held.policy, held.policy.cost_table_.matrix)["full model"]
    positive = held.true.mean()
    odds = threshold / (1 - threshold)
    return threshold, [
        Curve("this policy", _net_benefit(held.result.probability, held.true, threshold)),
        Curve(
            "full model",
            _net_benefit(full.acquire(held.table).probability, held.true, threshold),
        ),
        Curve("everyone positive", positive - (1 - positive) * odds),
        Curve("everyone negative", np.zeros_like(threshold)),
    ]


def sensitivity(held: Held) -> list[tuple[float, list[Method]]]:
    """The methods again with the false-negative cost multiplied by each factor."""
    found = []
    for factor in FACTORS:
        matrix = held.policy.cost_table_.matrix.copy()
        matrix[1, 0] = matrix[1, 1] + factor * (matrix[1, 0] - matrix[1, 1])
        own = []
        for name, other in _relatives(held.policy, matrix).items():
            result = other.acquire(held.table)
            label = np.searchsorted(held.policy.classes_, result.label)
            own.append(_method(name, result.cost, label, held, matrix))
        found.append((factor, own))
    return found


def recall_of(held: Held) -> tuple[int, int, float, float]:
    """Positives found, positives, and the exact 95 % interval of the recall."""
    found = int(held.label[held.true == 1].sum())
    positives = int(held.true.sum())
    if positives == 0:
        return 0, 0, 0.0, 1.0
    low, high = interval(found, positives, 0.95)
    return found, positives, float(low), float(high)


def shapes(policy: SequencePolicy) -> list[tuple[str, NDArray[Any], Floats]]:
    """For each covariate: name, values over its range, contribution in the model of all."""
    basis, encoder = policy.model_.basis, policy.encoder_
    coefs = policy.model_.coefs[-1]
    found = []
    for k in policy.model_.sequence.order:
        own = np.flatnonzero(basis.source == k)
        if not (basis.group == k).any():
            continue
        values: NDArray[Any]
        if encoder.categories[k]:
            values, encoded = np.array(encoder.categories[k]), np.eye(len(own))
        else:
            values = np.linspace(basis.low[own[0]], basis.high[own[0]], 120)
            encoded = values[:, None]
        effect = basis.block(encoded, int(k)) @ coefs[basis.group == k]
        found.append((encoder.names[k], values, effect))
    return found


def _relatives(policy: SequencePolicy, matrix: Floats) -> dict[str, SequencePolicy]:
    """The three policies of the paper on the model of this one, with these error costs."""
    costs = (policy.costs or Costs()).with_misclassification(matrix)
    kinds = {"AdaCOS": AdaCOSClassifier, "COS": COSClassifier, "full model": FullModelClassifier}
    return {name: kind(costs).from_model(policy) for name, kind in kinds.items()}


def _method(
    name: str, cost: Floats, label: Ints, held: Held, matrix: Floats | None = None
) -> Method:
    matrix = held.policy.cost_table_.matrix if matrix is None else matrix
    total = cost + matrix[held.true, label]
    return Method(
        name,
        _mean(total),
        _mean(cost),
        _share(label[held.true == 1] == 1),
        _share(label[held.true == 0] == 0),
    )


def _mean(values: Floats) -> Mean:
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return Mean(float(values.mean()), error)


def _share(hits: NDArray[np.bool_]) -> float:
    return float(hits.mean()) if len(hits) else float("nan")


def _net_benefit(probability: Floats, true: Ints, threshold: Floats) -> Floats:
    positive = probability[:, None] >= threshold
    gained = np.mean(positive & (true == 1)[:, None], axis=0)
    lost = np.mean(positive & (true == 0)[:, None], axis=0)
    return np.asarray(gained - lost * threshold / (1 - threshold))
