"""A certificate of recalls, earned on held-out rows by a sequence of decision rules.

The rules, thresholds of two classes or surcharges of more, are fixed in advance on training rows
and tried on held-out ones from cautious to bold, up to the first that fails. One passes if the
exact binomial test of every class with a target does. A wrong rule is certified only if the first
wrong one passes its own test, so the number of rules costs no confidence. If a class has less than
its recall, all tests pass with a probability of at most 1 - confidence, since its own must pass: so
the number of classes costs none either. Nothing is assumed about the model.

The test counts independent rows. Where rows come in groups, or look like copies of each other, one
held-out row of each class of each group is drawn and counted: what is certified is the recall of a
row that is drawn so from a new group.

Where not even the first rule passes, `on_uncertifiable="largest"` certifies the recalls that it
does prove: the exact lower bounds at the first rule. Taking them is part of the same attempt. If
the first rule has all recalls asked for, such bounds, which are never above these, cannot be wrong.
If not, a wrong certificate and a wrong bound both need the bound of some class to exceed its recall
at the first rule. Bounds of several classes that are read off the same rows must share the
confidence: each then has 1 - (1 - confidence) / number of classes, in the tests before as well.
Asking again for a lower recall on the same rows is another attempt, with its own share of wrong
certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from adacos.document.blocks import Plain, fragment
from adacos.exceptions import NotCertifiableError
from adacos.kernels.binomial import lower_bound, trials_needed
from adacos.policies.recall import ProvingRows, Targets, percent
from adacos.typing import Floats, Ints

Rule = TypeVar("Rule")

# How it was obtained, with two classes and with more: by the first rule, or by one that passed.
_METHODS = (
    (
        "exact lower bound at the most cautious cut-off that discriminates",
        "exact binomial tests on calibration positives, the most cautious cut-off first",
    ),
    (
        "exact lower bounds at the most cautious surcharges, which share the confidence",
        "exact binomial tests of every class on held-out rows, the most cautious surcharges first",
    ),
)


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
    The test allows 3 misses, and the bound is that of 3: fewer do not raise it.
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

    @property
    def _why_no_higher(self) -> str:
        """Why the bound is not the one that the misses themselves would prove; else empty."""
        allowed = allowed_misses(self.n_positives, self.recall, self.confidence)
        if self.bound < self.recall or self.misses >= allowed:
            return ""
        misses = "1 miss" if allowed == 1 else f"{allowed} misses"
        bound = f"the bound is that of {allowed}: fewer do not raise it"
        return f"The test allows {misses}, and {bound}.\n"

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
            f"{self._why_no_higher}"
            f"Method: {self.method}.\n"
            f"The {percent(self.confidence)} covers every certification attempt, including refused "
            "ones."
        )


@dataclass(frozen=True)
class ClassRecallCertificate:
    """Proof that the recalls of some classes on new rows are at least `bounds`, all together.

    Parameters
    ----------
    classes : tuple
        The classes.
    recalls : tuple of float
        What was asked for, of each class.
    bounds : tuple of float
        What holds, of each class.
    confidence : float
        At most 1 - confidence of all attempts end in a certificate of which some bound is wrong.
        Every request to certify is an attempt, refused ones included.
    n_rows : tuple of int
        Held-out rows of each class.
    misses : tuple of int
        How many of them the certified policy answers with another class.
    method : str
        How the certificate was obtained.

    See Also
    --------
    RecallCertificate : The certificate for two classes.

    Examples
    --------
    >>> from adacos import ClassRecallCertificate
    >>> print(ClassRecallCertificate(("a", "b"), (0.9, 0.8), (0.91, 0.8), 0.9, (80, 60), (2, 6),
    ...                              "exact binomial tests"))
    Sensitivities (recalls) for cases like these, at 90% confidence for all of them together:
    a: at least 91% (requested: 90%); 2 of 80 calibration rows missed.
    b: at least 80% (requested: 80%); 6 of 60 calibration rows missed.
    Method: exact binomial tests.
    The 90% covers every certification attempt, including refused ones.
    """

    classes: tuple[Any, ...]
    recalls: tuple[float, ...]
    bounds: tuple[float, ...]
    confidence: float
    n_rows: tuple[int, ...]
    misses: tuple[int, ...]
    method: str

    def _repr_html_(self) -> str:
        return fragment([Plain(str(self))])

    def __str__(self) -> str:
        each = zip(self.classes, self.recalls, self.bounds, self.n_rows, self.misses, strict=True)
        return "\n".join(
            [
                f"Sensitivities (recalls) for cases like these, at {percent(self.confidence)} "
                "confidence for all of them together:",
                *(
                    f"{name}: at least {percent(bound)} (requested: {percent(recall)}); {misses} "
                    f"of {n} calibration rows missed."
                    for name, recall, bound, n, misses in each
                ),
                f"Method: {self.method}.",
                f"The {percent(self.confidence)} covers every certification attempt, including "
                "refused ones.",
            ]
        )


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
    >>> from adacos.policies.certificate import allowed_misses
    >>> allowed_misses(44, 0.95, 0.9), allowed_misses(45, 0.95, 0.9), allowed_misses(200, 0.95, 0.9)
    (-1, 0, 5)
    """
    misses = np.arange(n_positives + 1)
    return int(np.sum(lower_bound(n_positives - misses, n_positives, confidence) >= recall)) - 1


def from_first_discriminating(thresholds: Floats, discriminates: Callable[[float], bool]) -> Floats:
    """The thresholds from the first on at which a policy discriminates; all if none does.

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


class Proof(NamedTuple, Generic[Rule]):
    """What held-out rows prove of one of the rules that were tried.

    Attributes
    ----------
    rule : the rule, as given.
    bounds : recalls that are certified, of each class.
    misses : held-out rows of each class that it answers with another.
    passed : whether it passed the tests; else it is the first, with what it does prove.
    """

    rule: Rule
    bounds: Floats
    misses: Ints
    passed: bool


def certify(
    misses_at: Callable[[Rule], ArrayLike],
    rules: Sequence[Rule],
    n_rows: ArrayLike,
    recalls: ArrayLike,
    confidence: float,
    *,
    largest: bool = False,
    at_most: Callable[[Rule], ArrayLike] | None = None,
    labels: Sequence[Any] | None = None,
) -> Proof[Rule]:
    """Certify the boldest rule before the first that fails a test.

    The certified bounds are those of the most misses allowed rather than of those observed: they do
    not depend on the labels, so that they hold with the same confidence as the recalls asked for.

    Parameters
    ----------
    misses_at : callable
        From a rule to the number of held-out rows, of each class with a target, that the policy
        with this rule answers with another class.
    rules : sequence
        Thresholds, surcharges or the like, cautious first; begin with one that discriminates.
        Neither they nor `misses_at` may have been chosen on these rows.
    n_rows : int or array-like of int of shape (n_targets,)
        Number of held-out rows of each class.
    recalls : float or array-like of shape (n_targets,)
        What is asked for.
    confidence : float
        With which confidence, for all classes together.
    largest : bool, default=False
        Whether to certify what the first rule proves, where it fails or the rows are too few.
    at_most : callable, default=None
        From a rule to bounds on `misses_at` that are quicker to come by.
    labels : sequence, default=None
        The classes by name, for an error; None for the positive one of two.

    Returns
    -------
    Proof
        The rule, the certified bounds, and the misses that were counted.

    Raises
    ------
    NotCertifiableError
        If no rule passes and `largest` is False.

    Examples
    --------
    >>> from adacos.policies.certificate import certify
    >>> proof = certify(lambda t: 0 if t < 1 else 9, [0.0, 1.0], 100, 0.95, 0.9)
    >>> proof.rule, proof.bounds.round(3), proof.misses
    (0.0, array([0.962]), array([0]))
    """
    n, wanted = np.atleast_1d(n_rows), np.atleast_1d(recalls)
    shared = confidence if len(n) == 1 else 1 - (1 - confidence) / len(n)
    each = shared if largest else confidence
    allowed = np.array([allowed_misses(int(m), r, each) for m, r in zip(n, wanted, strict=True)])

    @cache
    def misses(number: int) -> Ints:
        return np.atleast_1d(misses_at(rules[number])).astype(np.intp)

    passed = -1
    for number in range(len(rules)) if np.all(allowed >= 0) else ():
        quick = at_most is not None and np.all(at_most(rules[number]) <= allowed)
        if not quick and np.any(misses(number) > allowed):
            break
        passed = number
    if passed >= 0:
        return Proof(rules[passed], lower_bound(n - allowed, n, each), misses(passed), True)
    missed = misses(0)
    bounds = np.minimum(lower_bound(n - missed, n, shared), wanted)
    if largest:
        return Proof(rules[0], bounds, missed, False)
    k = int(np.argmax(missed > allowed))
    raise NotCertifiableError(
        float(wanted[k]),
        confidence,
        int(n[k]),
        int(missed[k]),
        float(bounds[k]),
        trials_needed(float(wanted[k]), confidence, int(missed[k])),
        of_class=None if labels is None else labels[k],
    )


class Proved(NamedTuple, Generic[Rule]):
    """A rule with its certificate, and the recall of the rows that prove it, as estimated."""

    rule: Rule
    certificate: RecallCertificate | ClassRecallCertificate
    estimate: Any


def prove(
    classes: NDArray[Any],
    on_uncertifiable: str,
    targets: Targets,
    rules: Sequence[Rule],
    misses_at: Callable[[Rule], ArrayLike],
    proving: ProvingRows,
    confidence: float,
    *,
    at_most: Callable[[Rule], ArrayLike] | None = None,
    positive: Rule | None = None,
) -> Proved[Rule]:
    """The boldest rule that passes, with its certificate.

    `positive` is the rule that answers positive for every row, where there is one.
    """
    n_rows = np.array([len(rows) for rows in proving.members])
    names = targets.names(classes)
    try:
        proof = certify(
            misses_at,
            rules,
            n_rows,
            targets.recalls,
            confidence,
            largest=on_uncertifiable == "largest",
            at_most=at_most,
            labels=names if targets.by_class else None,
        )
        method = _METHODS[targets.by_class][proof.passed] + proving.note
    except NotCertifiableError:
        if positive is None or on_uncertifiable != "always_positive":
            raise
        proof = Proof(positive, np.ones(1), np.zeros(1, dtype=np.intp), True)
        method = "every row is called positive"
    found = targets.by_name(classes, (1 - proof.misses / n_rows).tolist())
    recalls, bounds, counts, misses = (
        tuple(each.tolist()) for each in (targets.recalls, proof.bounds, n_rows, proof.misses)
    )
    if targets.by_class:
        of_classes = tuple(names), recalls, bounds, confidence, counts, misses, method
        return Proved(proof.rule, ClassRecallCertificate(*of_classes), found)
    (estimate,), threshold = found.values(), float(expit(proof.rule))
    of_two = recalls[0], bounds[0], confidence, counts[0], misses[0], threshold, method
    return Proved(proof.rule, RecallCertificate(*of_two), estimate)
