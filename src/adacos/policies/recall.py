"""A target recall in place of a false-negative cost: thresholds, and certificates of recall.

A row is answered positive where its probability reaches the threshold t, which is Bayes' rule for
the false-negative cost c10 = (1 - t) / t * c01. Thresholds are handled here as log-odds.

`boldest_threshold` finds a t at which enough positive training rows are found where the policy
stops, judged by out-of-fold probabilities. `recall_threshold` is the paper's estimate: the boldest
t that enough of them reach at every set, which is a lower bound of the recall. `certify` adds a
promise for new rows: thresholds are tried on held-out positives from cautious to bold, each by an
exact binomial test, up to the first that fails. A wrong threshold is certified only if the first
wrong one passes its own test, so the number of thresholds costs no confidence, and nothing is
assumed about the model.

The test counts independent rows. Where rows come in groups, or look like copies of each other, one
held-out positive row of each group is drawn and counted: what is certified is the recall of a row
that is drawn so from a new group.

Where not even the first threshold passes, the refusal holds the largest recall that these rows do
certify: the exact lower bound at the first threshold of the same fixed sequence. Taking it is part
of the same attempt. If the recall of the first threshold reaches the target, a refusal's bound lies
below it and cannot be wrong; if not, a wrong certificate and a wrong bound both need the bound at
the first threshold to exceed its recall. Asking again for a lower recall on the same rows is
another attempt, with its own share of wrong certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_consistent_length, column_or_1d

from adacos.costs import Costs
from adacos.decision import DecisionRule
from adacos.document.blocks import Plain, fragment
from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.kernels.binomial import lower_bound, trials_needed
from adacos.kernels.folds import classes_of_groups
from adacos.kernels.groups import one_of_each
from adacos.tables.encoder import TableEncoder, covariate_names, table_rows, validate_table
from adacos.tables.labels import check_labels
from adacos.tables.row_digests import RowDigests
from adacos.tables.weights import groups_of
from adacos.typing import Floats
from adacos.validation import LARGEST_COST, Constraints, finite, maybe, one_of, real

# What to do when a recall cannot be certified.
ON_UNCERTIFIABLE = ("error", "largest", "always_positive")
# What a certificate says of its method where rows come in groups.
GROUPED = "; of each group of rows one was drawn and counted"
# Log-odds below which a threshold is as good as zero; keeps the false-negative cost finite.
_LOWEST = -300.0
# Accuracy of a threshold that is found by bisection; a share of rows may round below the target.
_ACCURACY, _ROUNDING = 1e-4, 1e-9


@dataclass(frozen=True)
class RecallCertificate:
    """Proof that the recall of a policy on new rows is at least `bound`, at some confidence.

    Parameters
    ----------
    recall : float
        What was asked for.
    bound : float
        What holds: at least `recall`, or the largest recall that could be certified.
    confidence : float
        At most 1 - confidence of all attempts end in a certificate that is wrong. Every request to
        certify is an attempt, refused ones included.
    n_positives : int
        Held-out positive rows it rests on.
    misses : int
        How many of them the certified policy answers negative.
    threshold : float
        Probability from which on the policy answers positive.
    method : str
        How the certificate was obtained.

    Notes
    -----
    It goes beyond section 6 of the paper, which estimates a recall without a confidence.

    Examples
    --------
    >>> from adacos import RecallCertificate
    >>> print(RecallCertificate(0.95, 0.953, 0.9, 134, 2, 0.15, "exact binomial tests"))
    Sensitivity (recall) at least 95.3% for cases like these, at 90% confidence (requested: 95%).
    Tested on 134 calibration positives; 2 missed. Cut-off 0.15.
    Method: exact binomial tests.
    The 90% covers every certification attempt, including refused ones.
    """

    recall: float
    bound: float
    confidence: float
    n_positives: int
    misses: int
    threshold: float
    method: str

    @property
    def always_positive(self) -> bool:
        """Whether the certified policy answers positive for every row."""
        return self.threshold == 0

    def _repr_html_(self) -> str:
        return fragment([Plain(str(self))])

    def __str__(self) -> str:
        if self.always_positive:
            return (
                f"A recall of {percent(self.recall)} with {percent(self.confidence)} confidence "
                f"could not be certified on {self.n_positives} calibration positives.\n"
                "The model calls everyone positive; it does not discriminate."
            )
        return (
            f"Sensitivity (recall) at least {percent(self.bound)} for cases like these, at "
            f"{percent(self.confidence)} confidence (requested: {percent(self.recall)}).\n"
            f"Tested on {self.n_positives} calibration positives; {self.misses} missed. "
            f"Cut-off {self.threshold:.4g}.\n"
            f"Method: {self.method}.\n"
            f"The {percent(self.confidence)} covers every certification attempt, including refused "
            "ones."
        )


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
    """Cost of a false negative for which Bayes' rule answers positive from a threshold on.

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
    """The rule that answers positive from these log-odds on, with the cost they stand for."""
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


def allowed_misses(n_positives: int, recall: float, confidence: float) -> int:
    """Most misses that still prove a recall.

    Parameters
    ----------
    n_positives : int
        Held-out positive rows.
    recall : float
        What is to be proved.
    confidence : float
        With which confidence.

    Returns
    -------
    int
        The number of misses; -1 if even none would be too many.

    Examples
    --------
    >>> from adacos.policies.recall import allowed_misses
    >>> allowed_misses(44, 0.95, 0.9), allowed_misses(45, 0.95, 0.9), allowed_misses(200, 0.95, 0.9)
    (-1, 0, 5)
    """
    misses = np.arange(n_positives + 1)
    return int(np.sum(lower_bound(n_positives - misses, n_positives, confidence) >= recall)) - 1


def certify(
    misses_at: Callable[[float], int],
    thresholds: Sequence[float] | Floats,
    n_positives: int,
    recall: float,
    confidence: float,
    at_most: Callable[[float], int] | None = None,
) -> tuple[RecallCertificate, float]:
    """Certificate for the boldest threshold before the first that fails its test.

    The certified bound is that of the most misses allowed rather than of those observed: it does
    not depend on the labels, so that it holds with the same confidence as the recall asked for.

    Parameters
    ----------
    misses_at : callable
        From a threshold to the number of held-out positives that the policy with this threshold
        answers negative.
    thresholds : sequence of float
        Thresholds to try, cautious first. Neither they nor `misses_at` may have been chosen on
        these rows.
    n_positives : int
        Number of held-out positive rows.
    recall : float
        What is asked for.
    confidence : float
        With which confidence.
    at_most : callable or None, default=None
        From a threshold to a bound on `misses_at` that is quicker to come by.

    Returns
    -------
    certificate : RecallCertificate
        What was proved.
    threshold : float
        The certified threshold, as given.

    Raises
    ------
    NotCertifiableError
        If the first threshold fails, or the rows are too few for any. It holds the certificate of
        the largest recall that the first threshold has; begin with one that tells rows apart
        (`from_first_discriminating`).

    Examples
    --------
    >>> from adacos.policies.recall import certify
    >>> certificate, threshold = certify(lambda t: 0 if t < 1 else 9, [0.0, 1.0], 100, 0.95, 0.9)
    >>> threshold, certificate.misses
    (0.0, 0)
    """
    allowed = allowed_misses(n_positives, recall, confidence)
    counted = cache(misses_at)
    passed = None
    for threshold in map(float, thresholds) if allowed >= 0 else ():
        quick = at_most is not None and at_most(threshold) <= allowed
        if not quick and counted(threshold) > allowed:
            break
        passed = threshold
    if passed is None:
        first = float(thresholds[0])
        raise not_certifiable(recall, confidence, n_positives, counted(first), first)
    certificate = RecallCertificate(
        recall=recall,
        bound=float(lower_bound(n_positives - allowed, n_positives, confidence)),
        confidence=confidence,
        n_positives=n_positives,
        misses=counted(passed),
        threshold=float(expit(passed)),
        method="exact binomial tests on calibration positives, from cautious to bold cut-off",
    )
    return certificate, passed


def from_first_discriminating(thresholds: Floats, discriminates: Callable[[float], bool]) -> Floats:
    """The thresholds from the first on at which a policy tells rows apart; all if none does.

    It is found by bisection. `discriminates` must not look at the positives that certify:
    calibration rows of the other class are independent of them.
    """
    low, high = 0, len(thresholds) - 1
    if not discriminates(float(thresholds[high])):
        return thresholds
    while low < high:
        middle = (low + high) // 2
        if discriminates(float(thresholds[middle])):
            high = middle
        else:
            low = middle + 1
    return thresholds[low:]


def always_positive(recall: float, confidence: float, n_positives: int) -> RecallCertificate:
    """Certificate of the policy that answers positive for every row."""
    return RecallCertificate(
        recall=recall,
        bound=1.0,
        confidence=confidence,
        n_positives=n_positives,
        misses=0,
        threshold=0.0,
        method="every row is called positive",
    )


def not_certifiable(
    recall: float, confidence: float, n_positives: int, misses: int, threshold: float
) -> NotCertifiableError:
    """The refusal of a recall, with the certificate of the largest one at this threshold.

    `misses` counts the positives that are missed at it; it must be the first of the sequence.
    """
    bound = float(lower_bound(n_positives - misses, n_positives, confidence))
    largest = RecallCertificate(
        recall=recall,
        bound=bound,
        confidence=confidence,
        n_positives=n_positives,
        misses=misses,
        threshold=float(expit(threshold)),
        method="exact lower bound at the most cautious cut-off that discriminates",
    )
    needed = trials_needed(recall, confidence, misses)
    return NotCertifiableError(recall, confidence, n_positives, misses, bound, needed, largest)


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


# What the parameters of a policy with a target recall must satisfy.
RECALL_CONSTRAINTS: Constraints = {
    "target_recall": maybe(recall_target),
    "recall_confidence": maybe(finite(above=0, below=1)),
    "calibration_fraction": finite(above=0, below=1),
    "on_uncertifiable": one_of(*ON_UNCERTIFIABLE),
}


def check_recall_parameters(policy: Any) -> None:
    """A confidence without a target recall says nothing."""
    if policy.recall_confidence is not None and policy.target_recall is None:
        raise InvalidInputError(
            "recall_confidence",
            "needs a target_recall",
            policy.recall_confidence,
            "Say which recall is to hold with this confidence, for example target_recall=0.95.",
        )


def value_or_default(name: str, value: Any, parameter: Any) -> float:
    """A probability given to a method, or else the policy's parameter."""
    if value is None and parameter is None:
        raise InvalidInputError(
            name, "must be given", None, "Pass it to calibrate or set it as a parameter."
        )
    return real(name, parameter if value is None else value, above=0, below=1)


class Part(NamedTuple):
    """Some rows of a table, with their classes and their groups, if there are any."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[np.intp] | None


def set_aside(
    policy: Any, X: Any, y: Any, groups: Any, fraction: float, seed: int
) -> tuple[Part, Part]:
    """Training and calibration rows: a random `fraction` of the rows of each class, or the groups.

    Rows of a group, or that look like copies of each other, are on the same side.
    """
    table = validate_table(policy, X, reset=True)
    _, labels = check_labels(y, many=policy.takes_many_classes)
    check_consistent_length(X, labels)
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
    """Refuse calibration rows that the policy has learned from, as far as they can be told."""
    found, beyond_chance = trained_on.found(encoded)
    if beyond_chance:
        raise InvalidInputError(
            "X",
            "calibration rows must not be rows that the policy was trained on: on these it errs "
            "less than on new ones, and the certificate would promise too much",
            f"{found} of {len(encoded)} rows that are equal to training rows",
            "Pass other rows, or let fit set some aside (recall_confidence). If the rows are new "
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


def positive_rows(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[np.bool_]:
    """Mask of the calibration rows of the second class, of which there must be some."""
    positive = np.asarray(class_numbers(y, classes, n_rows) == 1)
    if not positive.any():
        raise InvalidInputError(
            "y",
            "calibration needs rows of the positive class",
            f"no row of class {classes[1]!r} among {n_rows}",
            "Recall is a share of positive rows: add some.",
        )
    return positive


class ProvingRows(NamedTuple):
    """Calibration rows as a certificate uses them.

    Attributes
    ----------
    positive : independent rows of the positive class, which are counted.
    others : rows of the other class that are independent of them.
    note : which rows they are, where not all count.
    """

    positive: Floats
    others: Floats
    note: str


def proving_rows(
    encoded: Floats, positive: NDArray[np.bool_], groups: Any, seed: int
) -> ProvingRows:
    """Of each group, or of rows that look like copies of each other, one positive row, drawn."""
    found = groups_of(groups, encoded, positive.astype(np.float64), split=False)
    if found is None:
        return ProvingRows(encoded[positive], encoded[~positive], "")
    drawn = one_of_each(np.flatnonzero(positive), found, seed)
    return ProvingRows(encoded[drawn], encoded[~np.isin(found, found[drawn])], GROUPED)


def percent(share: float) -> str:
    """Rounded down, so that no promise grows by printing it."""
    return f"{np.floor(share * 1000 + 1e-9) / 10:g}%"


def refuse_false_negative_cost(costs: Costs | None) -> None:
    """A target recall and a cost of false negatives exclude each other."""
    if isinstance(costs, Costs) and costs.false_negative_given and len(costs.matrix) == 2:
        raise InvalidInputError(
            "target_recall",
            "cannot be combined with a false-negative cost: either follows from the other",
            "",
            "Give Costs(..., false_positive=...) alone, or leave the target recall out.",
        )
