"""Everything a report shows, as numbers: functions of a policy and evaluation rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.kernels.bayes_risk import label_of
from adacos.kernels.binomial import interval
from adacos.policies import AdaCOSClassifier, COSClassifier, FullModelClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.sequence_policy import SequencePolicy
from adacos.tables.encoder import validate_table

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_BINS = 10
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
# The one name that the policy of the report has in its tables and figures.
OWN = "this policy"


class Mean(NamedTuple):
    """A mean over rows and its standard error."""

    value: float
    error: float


class Method(NamedTuple):
    """What one way of answering costs on the rows, and how right it is.

    `more` is what it costs more than the policy of the report, row by row.
    """

    name: str
    total: Mean
    more: Mean
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


class Stop(NamedTuple):
    """A covariate in order: its cost, and shares of rows that acquire it, stop there, lack it."""

    covariate: str
    cost: float
    acquired: float
    stopped: float
    missing: float


class Panel(NamedTuple):
    """Covariates that share a cost."""

    name: str
    shared: float
    members: tuple[str, ...]


class Curve(NamedTuple):
    """Net benefit of one way of answering at each threshold."""

    name: str
    benefit: Floats


@dataclass(frozen=True)
class Held:
    """Evaluation rows: the policy, the table, classes as 0 and 1, and the policy's answers."""

    policy: BasePolicy
    table: Any
    true: Ints
    result: AcquisitionResult

    @property
    def label(self) -> Ints:
        """Answers as 0 and 1."""
        return np.searchsorted(self.policy.classes_, self.result.label)

    @property
    def encoded(self) -> Floats:
        """The rows as the model takes them, NaN where there is no value."""
        policy = self.policy
        table = validate_table(policy, self.table, reset=False)
        return np.asarray(policy.encoder_.transform(table))


def hold(policy: BasePolicy, table: Any, y: NDArray[Any]) -> Held:
    """Run the policy on evaluation rows."""
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
    found = [_method(OWN, held.result.cost, held.label, held)]
    for name, other in _relatives(policy, policy.rule_.matrix).items():
        if name != OWN:
            result = other.acquire(held.table)
            label = np.searchsorted(policy.classes_, result.label)
            found.append(_method(name, result.cost, label, held))
    for name, answer in (("everyone positive", 1), ("everyone negative", 0)):
        label = np.full(n, answer, dtype=np.intp)
        found.append(_method(name, np.zeros(n), label, held))
    return found


def stops(held: Held) -> list[Stop]:
    """What the policy does with each covariate, in their order."""
    policy = held.policy
    sequence = policy.model_.sequence
    share = held.result.acquired.mean(axis=0)
    first = np.searchsorted(policy.encoder_.source, np.arange(len(share)))
    missing = np.isnan(held.encoded[:, first]).mean(axis=0)
    found = []
    for rank, k in enumerate(sequence.order):
        stage = rank + 1 - sequence.n_free
        stopped = float(np.mean(held.result.stage == stage)) if stage >= 0 else 0.0
        cost = float(policy.cost_table_.covariates[k])
        name = policy.encoder_.names[k]
        found.append(Stop(name, cost, float(share[k]), stopped, float(missing[k])))
    return found


def panels(policy: BasePolicy) -> list[Panel]:
    """The panels of the policy's costs."""
    costs = policy.cost_table_
    return [
        Panel(
            title,
            float(costs.shared[number]),
            tuple(costs.names[k] for k in np.flatnonzero(costs.panel == number)),
        )
        for number, title in enumerate(policy.costs.panels if policy.costs else ())
    ]


def cost_by_set(held: Held) -> tuple[Floats, Floats, Floats]:
    """Mean total cost if every row stopped at a set: foretold, on these rows, its error."""
    policy = held.policy
    label = label_of(policy.model_.log_odds_by_set(held.encoded), policy.rule_.matrix)
    totals = policy.rule_.matrix[held.true[:, None], label] + policy.cost_table_.of(
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
    positive = held.true.mean()
    odds = threshold / (1 - threshold)
    found = [Curve(OWN, _net_benefit(held.result.probability, held.true, threshold))]
    full = _relatives(held.policy, held.policy.rule_.matrix).get("full model")
    if full is not None:
        probability = full.acquire(held.table).probability
        found.append(Curve("full model", _net_benefit(probability, held.true, threshold)))
    return threshold, [
        *found,
        Curve("everyone positive", positive - (1 - positive) * odds),
        Curve("everyone negative", np.zeros_like(threshold)),
    ]


def sensitivity(held: Held) -> list[tuple[float, list[Method]]]:
    """The methods again with the false-negative cost multiplied by each factor."""
    found = []
    for factor in FACTORS:
        matrix = held.policy.rule_.matrix.copy()
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


def _relatives(policy: BasePolicy, matrix: Floats) -> dict[str, SequencePolicy]:
    """This policy and the others of the paper on its model, with these error costs.

    None for a policy without a set sequence, whose model would not serve them.
    """
    if not isinstance(policy, SequencePolicy):
        return {}
    costs = (policy.costs or Costs()).with_misclassification(matrix)
    kinds = {"AdaCOS": AdaCOSClassifier, "COS": COSClassifier, "full model": FullModelClassifier}
    return {
        OWN if kind is type(policy) else name: kind(costs).from_model(policy)
        for name, kind in kinds.items()
    }


def _method(
    name: str, cost: Floats, label: Ints, held: Held, matrix: Floats | None = None
) -> Method:
    matrix = held.policy.rule_.matrix if matrix is None else matrix
    total = cost + matrix[held.true, label]
    own = held.result.cost + matrix[held.true, held.label]
    return Method(
        name,
        _mean(total),
        _mean(total - own),
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
