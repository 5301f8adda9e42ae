"""A target recall in place of a false-negative cost: what is asked for, rows and thresholds.

A row is answered positive where its probability reaches the threshold t, which is Bayes' rule for
the false-negative cost c10 = (1 - t) / t * c01. Thresholds are handled here as log-odds.

`boldest_threshold` finds a t at which enough positive training rows are found where the policy
stops, judged by out-of-fold probabilities. `recall_threshold` is the paper's estimate: the boldest
t that enough of them reach at every set, which is a lower bound of the recall. A promise for new
rows needs held-out ones, see `adacos.policies.certificate`; with three or more classes surcharges
take the place of the threshold, see `adacos.policies.surcharges`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import column_or_1d

from adacos.costs import Costs
from adacos.decision import DecisionRule
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import classes_of_groups
from adacos.kernels.groups import one_of_each
from adacos.tables.encoder import TableEncoder, covariate_names, table_rows, validate_table
from adacos.tables.labels import check_labels, check_one_label_each
from adacos.tables.row_digests import RowDigests
from adacos.tables.weights import groups_of
from adacos.typing import Bools, Floats, Ints
from adacos.validation import LARGEST_COST, Constraints, choices, finite, maybe, one_of, real

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# What to do when a recall cannot be certified.
ON_UNCERTIFIABLE = ("error", "largest", "always_positive")
# Log-odds below which a threshold is as good as zero; keeps the false-negative cost finite.
_LOWEST = -300.0
# Accuracy of a threshold that is found by bisection; a share of rows may round below the target.
_ACCURACY, _ROUNDING = 1e-4, 1e-9


def recall_threshold(log_odds: Floats, recall: float, weight: Floats | None = None) -> float:
    """Largest threshold that enough positive rows reach: the paper's estimate (section 6).

    Parameters
    ----------
    log_odds : ndarray of shape (n_positives,)
        Out-of-fold log-odds of positive rows. Probabilities do as well, or any other score. For a
        policy that may stop at several sets pass each row's least log-odds over them: a row that
        reaches the threshold at every set is answered positive wherever it stops.
    recall : float
        Least share of the rows that must reach it, between 0 and 1.
    weight : ndarray of shape (n_positives,), default=None
        How often each row counts.

    Returns
    -------
    float
        The threshold, in the unit of `log_odds`.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos.policies.recall import recall_threshold
    >>> recall_threshold(np.array([-2.0, -1.0, 0.0, 1.0, 3.0]), 0.8)
    -1.0
    """
    if weight is not None:
        order = np.argsort(log_odds, kind="stable")
        reaching = np.cumsum(weight[order][::-1])[::-1]
        enough = reaching >= (recall - 1e-9) * reaching[0]
        return float(log_odds[order[np.flatnonzero(enough)[-1]]])
    ordered = np.sort(log_odds)
    # The tolerance keeps 0.95 * 20 from rounding up to 20 rows; one row at least must reach it.
    needed = max(int(np.ceil(recall * len(ordered) - 1e-9)), 1)
    return float(ordered[len(ordered) - needed])


def boldest_threshold(
    recall_at: Callable[[float], float], recall: float, low: float, high: float
) -> tuple[float, float]:
    """A threshold as large as a recall allows, with its recall, by bisection.

    Where the recall rises and falls with the threshold it is one of those above which it falls
    below the target.

    Parameters
    ----------
    recall_at : callable
        From a threshold as log-odds to the recall of a policy that answers by it.
    recall : float
        What is to be reached.
    low, high : float
        Thresholds between which it lies. The recall is reached at `low`; it is returned where no
        other is known to reach it.

    Returns
    -------
    threshold : float
        The threshold.
    reached : float
        Its recall.

    Examples
    --------
    >>> from adacos.policies.recall import boldest_threshold
    >>> threshold, reached = boldest_threshold(lambda t: 1 - t, 0.75, 0.0, 1.0)
    >>> round(threshold, 3), round(reached, 3)
    (0.25, 0.75)
    """
    tried = {t: recall_at(t) for t in (low, high)}
    if tried[high] >= recall - _ROUNDING:
        return high, tried[high]
    while high - low > _ACCURACY:
        middle = (low + high) / 2
        tried[middle] = recall_at(middle)
        low, high = (middle, high) if tried[middle] >= recall - _ROUNDING else (low, middle)
    return low, tried[low]


def false_negative_cost(threshold: float, false_positive: float) -> float:
    """Cost of a false negative for which Bayes' rule answers positive at a threshold or above.

    Parameters
    ----------
    threshold : float
        Log-odds from which on the answer is positive.
    false_positive : float
        Cost of a false positive.

    Returns
    -------
    float
        c10 = (1 - t) / t * c01, t being the threshold as a probability (section 6 of the paper).

    Examples
    --------
    >>> from adacos.policies.recall import false_negative_cost
    >>> false_negative_cost(0.0, 100.0)
    100.0
    """
    return min(float(np.exp(-max(threshold, _LOWEST)) * false_positive), LARGEST_COST)


def threshold_rule(costs: Floats, log_odds: float) -> DecisionRule:
    """The rule that answers positive at these log-odds or above, with the cost they stand for."""
    false_positive = float(costs[0, 1])
    cost = false_negative_cost(log_odds, false_positive)
    matrix = np.array([[0.0, false_positive], [cost, 0.0]])
    return DecisionRule(matrix, 0.0 if np.isneginf(log_odds) else None)


def threshold_sequence(log_odds: Floats, size: int = 150) -> Floats:
    """Thresholds to try on held-out rows, cautious first.

    The sequence begins where the odds are a tenth of the least seen anywhere, and ends where every
    second row would be missed even at its best set.

    Parameters
    ----------
    log_odds : ndarray of shape (n_positives, n_sets)
        Out-of-fold log-odds of the positive training rows, one column per set at which the policy
        may stop.
    size : int, default=150
        Number of thresholds.

    Returns
    -------
    ndarray of shape (size,)
        Thresholds as log-odds, in rising order.
    """
    first = float(log_odds.min()) - np.log(10.0)
    last = float(np.median(log_odds.max(axis=1)))
    return np.linspace(first, max(last, first), size)


class Targets(NamedTuple):
    """Numbers of the classes that have a target recall, and their recalls.

    `by_class` says that there are three or more classes, or decisions in place of labels:
    surcharges reach what a threshold does. `protects` is the mask (classes, decisions) of those
    that count as found; None where labels do, each for its class.
    """

    classes: Ints
    recalls: Floats
    by_class: bool = True
    protects: Bools | None = None

    def found(self, n_classes: int) -> Bools:
        """Which labels or decisions count as found, for each class."""
        return np.eye(n_classes, dtype=np.bool_) if self.protects is None else self.protects

    def stricter(self, share: float) -> Targets:
        """The same with this share of the allowed misses."""
        return self._replace(recalls=1 - share * (1 - self.recalls))

    def names(self, classes: NDArray[Any]) -> list[Any]:
        """The classes by name."""
        names: list[Any] = classes[self.classes].tolist()
        return names

    def by_name(self, classes: NDArray[Any], values: Sequence[float]) -> dict[Any, float]:
        """A number for each of them."""
        return dict(zip(self.names(classes), values, strict=True))


def targets_of(wanted: Any, classes: NDArray[Any], protects: Bools | None = None) -> Targets:
    """The target recalls of these classes: a number of two, of more one for each that is named.

    `protects` says which decisions count as found, where they take the place of labels.
    """
    if wanted is None:
        raise InvalidInputError(
            "target_recall",
            "must be given",
            None,
            "Pass it to calibrate or set it as a parameter.",
        )
    recall_target("target_recall", wanted)
    known = classes.tolist()
    if protects is not None:
        wanted = by_name_of_class(wanted, classes)
    elif len(known) == 2:
        recall = np.array([recall_of_two(wanted, classes)])
        return Targets(np.ones(1, dtype=np.intp), recall, by_class=False)
    if not isinstance(wanted, Mapping):
        raise InvalidInputError(
            "target_recall",
            f"must name the class it protects, of {len(known)}",
            wanted,
            f"For example target_recall={{{known[-1]!r}: 0.95}}; several classes may have one.",
        )
    unknown = [label for label in wanted if label not in known]
    if unknown:
        raise InvalidInputError(
            "target_recall", "must name classes of y", unknown, _classes_meant(unknown, known)
        )
    numbers = [known.index(label) for label in wanted]
    unprotected = [known[k] for k in numbers if protects is not None and not protects[k].any()]
    if unprotected:
        raise InvalidInputError(
            "target_recall",
            "needs to know which decisions protect a class",
            f"nothing about {unprotected}",
            f"For example Costs(..., protects={{{unprotected[0]!r}: ('refer', 'treat')}}).",
        )
    recalls = np.array([*wanted.values()], dtype=float)
    return Targets(np.array(numbers, dtype=np.intp), recalls, protects=protects)


def counting_in_words(policy: BasePolicy, label: Any) -> str:
    """Which decisions count as having found a class; empty where its label does."""
    protects = protecting_of(policy)
    if protects is None:
        return ""
    own = protects[policy.classes_.tolist().index(label)]
    return " or ".join(policy.decisions_[own].tolist())


def counting_note(policy: BasePolicy, targets: Targets) -> str:
    """The same of all classes with a target, for the method of a certificate."""
    if targets.protects is None:
        return ""
    each = [f"{counting_in_words(policy, k)} for {k}" for k in targets.names(policy.classes_)]
    return f"; found is who gets {', '.join(each)}"


def by_name_of_class(wanted: Any, classes: NDArray[Any]) -> Any:
    """Target recalls by class; a number is that of the second of two."""
    named = isinstance(wanted, Mapping) or wanted is None or len(classes) > 2
    return wanted if named else {classes.tolist()[1]: wanted}


def protecting_of(policy: BasePolicy) -> Bools | None:
    """Mask (classes, decisions) of the decisions that protect each class; None without decisions.

    One that is not mentioned is protected by none.
    """
    named, classes = policy.cost_table_.decisions, policy.classes_.tolist()
    if named is None or policy.costs is None:
        return None
    stated = {str(label): own for label, own in policy.costs.protects.items()}
    return np.array([[one in stated.get(str(label), ()) for one in named] for label in classes])


def _classes_meant(unknown: list[Any], known: list[Any]) -> str:
    """What could have been meant by labels that are no classes."""
    for label in unknown:
        for own in known:
            if str(own) == str(label):
                kinds = type(own).__name__, type(label).__name__
                return f"Write {own!r}, which is of type {kinds[0]} in y, not {kinds[1]}."
    return choices(map(str, unknown), [str(label) for label in known], "The classes are")


def recall_of_two(target_recall: Any, classes: NDArray[Any]) -> Any:
    """The target recall of two classes as a number; it may name the second."""
    if not isinstance(target_recall, Mapping):
        return target_recall
    positive = classes.tolist()[1]
    if [*target_recall] != [positive]:
        raise InvalidInputError(
            "target_recall",
            f"must be one number where y has two classes: the recall of class {positive!r}",
            target_recall,
            f"For example target_recall=0.95, or {{{positive!r}: 0.95}}. To protect the other "
            "class, swap the two in y.",
        )
    return target_recall[positive]


def recall_target(name: str, value: Any) -> None:
    """A target recall: one number, or one for each of some classes."""
    if not isinstance(value, Mapping):
        real(name, value, above=0, below=1)
        return
    if not value:
        raise InvalidInputError(
            name, "must name a class", "", f"For example {name}={{'virginica': 0.95}}."
        )
    for label, recall in value.items():
        real(f"{name}[{label!r}]", recall, above=0, below=1)


@dataclass(frozen=True)
class RecallAim:
    """What is asked of the recall of a policy; the parameters of `TargetRecallClassifier`."""

    target_recall: float | Mapping[Any, float] | None = None
    recall_at: str = "stop"
    recall_confidence: float | None = None
    calibration_fraction: float = 0.5
    on_uncertifiable: str = "error"

    def asking(self, target_recall: Any = None, confidence: float | None = None) -> RecallAim:
        """The same with another recall or confidence, where they are given."""
        given = {"target_recall": target_recall, "recall_confidence": confidence}
        return replace(self, **{name: v for name, v in given.items() if v is not None})

    def __str__(self) -> str:
        """As arguments, those that are not the defaults."""
        given = {k: v for k, v in asdict(self).items() if v != getattr(RecallAim, k)}
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


class Reached(NamedTuple):
    """How a policy reaches target recalls.

    Attributes
    ----------
    rule : the decision rule.
    estimate : the recall, or those of the classes with a target, on the rows that were looked at.
    threshold, false_negative_cost : of two classes, the cut-off and the cost that it implies,
        where rows stop by it.
    surcharges : of more.
    certificate : what was proved.
    """

    rule: DecisionRule
    estimate: float | dict[Any, float]
    threshold: float | None = None
    false_negative_cost: float | None = None
    surcharges: dict[Any, float] | None = None
    certificate: Any = None

    @classmethod
    def by_stopping(cls, costs: Floats, log_odds: float, estimate: float) -> Reached:
        """By a threshold, for whose false-negative cost rows stop too."""
        rule = threshold_rule(costs, log_odds)
        return cls(rule, estimate, float(expit(log_odds)), float(rule.matrix[1, 0]))

    def give(self, policy: BasePolicy) -> None:
        """Let a fitted policy decide so, and say what was found."""
        for name in ("threshold", "false_negative_cost", "surcharges", "certificate"):
            if getattr(self, name) is not None:
                setattr(policy, f"{name}_", getattr(self, name))
        policy.recall_estimate_ = self.estimate
        policy.decider_ = policy.decider_.with_rule(self.rule)


# What the parameters of a policy with a target recall must satisfy.
RECALL_CONSTRAINTS: Constraints = {
    "target_recall": maybe(recall_target),
    "recall_confidence": maybe(finite(above=0, below=1)),
    "calibration_fraction": finite(above=0, below=1),
    "on_uncertifiable": one_of(*ON_UNCERTIFIABLE),
    "recall_at": one_of("stop", "every_set"),
}


def check_aim(aim: RecallAim) -> None:
    """A confidence without a target recall says nothing."""
    if aim.recall_confidence is not None and aim.target_recall is None:
        raise InvalidInputError(
            "recall_confidence",
            "needs a target_recall",
            aim.recall_confidence,
            "Say which recall is to hold with this confidence, for example target_recall=0.95.",
        )


def stated_confidence(aim: RecallAim) -> float:
    """The confidence of a certificate."""
    if aim.recall_confidence is None:
        raise InvalidInputError(
            "confidence", "must be given", None, "Pass it to calibrate or set it as a parameter."
        )
    return real("confidence", aim.recall_confidence, above=0, below=1)


class Part(NamedTuple):
    """Some rows of a table, with their classes and their groups, if there are any."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[np.intp] | None


def hold_out(
    policy: BasePolicy, X: Any, y: Any, groups: Any, fraction: float, seed: int
) -> tuple[Part, Part]:
    """Training and calibration rows: a random `fraction` of the rows of each class, or the groups.

    Rows of a group, or that look like copies of each other, are on the same side.
    """
    table = validate_table(policy, X, reset=True)
    _, labels = check_labels(y, many=policy.takes_many_classes)
    check_one_label_each(table, labels)
    encoded = TableEncoder.fit(table, covariate_names(policy)).transform(table)
    found = groups_of(groups, encoded, labels)
    number, of_unit = np.arange(len(labels)), labels
    if found is not None:
        number, of_unit = classes_of_groups(found, labels)
    rng = np.random.default_rng(seed)
    aside = np.zeros(len(of_unit), dtype=np.bool_)
    for label in np.unique(of_unit):
        units = rng.permutation(np.flatnonzero(of_unit == label))
        aside[units[: int(fraction * len(units))]] = True
    y = np.asarray(y).ravel()
    learned, held_out = [
        Part(table_rows(table, rows), y[rows], None if found is None else found[rows])
        for rows in (np.flatnonzero(~aside[number]), np.flatnonzero(aside[number]))
    ]
    return learned, held_out


def refuse_training_rows(trained_on: RowDigests, encoded: Floats) -> None:
    """Refuse calibration rows that the policy has learned from, as far as they are recognised."""
    found, beyond_chance = trained_on.found(encoded)
    if beyond_chance:
        raise InvalidInputError(
            "X",
            "calibration rows must not be rows that the policy was trained on: on these it errs "
            "less than on new ones, and the certificate would promise too much",
            f"{found} of {len(encoded)} rows that are equal to training rows",
            "Pass other rows, or let fit keep some for it (recall_confidence). If the rows are new "
            "and only look alike, pass allow_training_rows=True.",
        )


def class_numbers(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """Number of the class of each calibration row."""
    y = column_or_1d(y)
    if len(y) != n_rows:
        raise InvalidInputError(
            "y", f"needs one class for each of the {n_rows} rows", len(y), "Pass the y of X."
        )
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise InvalidInputError(
            "y",
            f"classes must be {classes.tolist()}",
            unknown.tolist(),
            "Pass the classes the model was fitted with.",
        )
    return np.asarray(np.searchsorted(classes, y), dtype=np.intp)


class ProvingRows(NamedTuple):
    """Calibration rows as a certificate uses them.

    Attributes
    ----------
    members : independent rows of each class with a target, which are counted.
    others : rows of the other classes that are independent of them.
    note : which rows they are, where not all count.
    """

    members: tuple[Ints, ...]
    others: Ints
    note: str


def check_members(number: Ints, targets: Targets, classes: NDArray[Any]) -> None:
    """Refuse rows, of which the class numbers are given, without a class with a target recall."""
    for k, name in zip(targets.classes, targets.names(classes), strict=True):
        if not np.any(number == k):
            raise InvalidInputError(
                "y",
                "calibration needs rows of every class with a target recall",
                f"no row of class {name!r} among {len(number)}",
                "Recall is a share of the rows of a class: add some.",
            )


def proving_rows(
    encoded: Floats, y: Any, classes: NDArray[Any], targets: Targets, groups: Any, seed: int
) -> ProvingRows:
    """Of each group, or of rows that look like copies of each other, one row of each class."""
    number = class_numbers(y, classes, len(encoded))
    check_members(number, targets, classes)
    found = groups_of(groups, encoded, number.astype(np.float64), split=False)
    members = tuple(one_of_each(np.flatnonzero(number == k), found, seed) for k in targets.classes)
    if found is None:
        return ProvingRows(members, np.flatnonzero(~np.isin(number, targets.classes)), "")
    apart = ~np.isin(found, found[np.concatenate(members)])
    others = np.flatnonzero(apart & ~np.isin(number, targets.classes))
    return ProvingRows(members, others, "; of each group of rows one was drawn and counted")


def percent(share: float) -> str:
    """Rounded down, so that no promise grows by printing it."""
    return f"{np.floor(share * 1000 + 1e-9) / 10:g}%"


def states_false_negative(costs: Costs | None) -> bool:
    """Whether costs of two classes state that of a false negative."""
    stated = isinstance(costs, Costs) and costs.false_negative_given and len(costs.matrix) == 2
    return stated and costs is not None and costs.decisions is None


def refuse_false_negative_cost(costs: Costs | None) -> None:
    """A target recall and a cost of false negatives exclude each other."""
    if states_false_negative(costs):
        raise InvalidInputError(
            "target_recall",
            "cannot be combined with a false-negative cost, since each follows from the other",
            "",
            "Leave out false_negative in Costs, or leave out the target recall.",
        )
