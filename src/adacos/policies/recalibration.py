"""A fitted policy at another prevalence, or as the outcomes of a few local rows ask for.

What is promised of recalls rests on where rows stop, and recalibrated they stop elsewhere. A
certificate is therefore dropped, although under label shift it would hold on for the policy as it
was: the recall of a class depends on rows of this class alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from adacos.consultation.cut_off import percent
from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import log_odds_of
from adacos.kernels.prior_shift import LogOddsChange, fit_change, log_odds_at, shares_at
from adacos.tables.row_digests import trained_among
from adacos.tables.weights import shares_by_class
from adacos.typing import Floats, Ints
from adacos.validation import listed

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy
    from adacos.policies.face import PolicyFace

Policy = TypeVar("Policy", bound="PolicyFace")

# Slopes below say that local outcomes hardly follow the probabilities.
_LEAST_SLOPE = 0.1
# Probabilities below are as good as this one.
_LEAST_PROBABILITY = 1e-12
# What a fit finds and a policy at another prevalence does not have.
_DROPPED = ("certificate_", "recall_estimate_", "cost_estimates_", "misfit_", "misfit_states_")


@dataclass(frozen=True, eq=False)
class Recalibration:
    """How a policy was recalibrated: the shares of the classes, and local outcomes.

    With u the log-odds of the policy as it was fitted, and u_0 those before anything is known, they
    are now u_0 + shift + slope (u - u_0).

    Parameters
    ----------
    before : ndarray of shape (n_classes,)
        Share of each class where the policy was fitted.
    shift : ndarray of shape (n_classes - 1,)
        What is added to the log-odds of each later class against the first.
    slope : float, default=1.0
        Factor of the log-odds.
    rows : int, default=None
        Local rows with outcomes, if there were any.
    shift_error : ndarray of shape (n_classes - 1,), default=None
        Standard errors of the shift that they asked for.
    slope_error : float, default=None
        Standard error of their slope; 0 where none was looked for.

    Attributes
    ----------
    after : ndarray of shape (n_classes,)
        Share of each class that is assumed now.

    See Also
    --------
    AdaCOSClassifier.recalibrate : Gives a policy that has one.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import Recalibration
    >>> print(Recalibration(np.array([0.65, 0.35]), np.array([-3.27])))
    Recalibrated from a prevalence of 35.0% to 2.0%.
    """

    before: Floats
    shift: Floats
    slope: float = 1.0
    rows: int | None = None
    shift_error: Floats | None = None
    slope_error: float | None = None

    @property
    def after(self) -> Floats:
        """Share of each class that is assumed now."""
        return shares_at(log_odds_at(self.before) + self.shift)

    def then(
        self, change: LogOddsChange, rows: int | None, errors: tuple[Floats, float] | None
    ) -> Recalibration:
        """Combine this recalibration with a later one.

        Parameters
        ----------
        change : LogOddsChange
            The change.
        rows : int or None
            The rows whose outcomes asked for it.
        errors : tuple of ndarray and float, or None
            Standard errors of its shift and slope.

        Returns
        -------
        Recalibration
            Both as one.
        """
        shift, slope = self.shift + change.shift, self.slope * change.slope
        return Recalibration(self.before, shift, slope, rows, *(errors or (None, None)))

    def check(self) -> None:
        """Refuse parts that do not fit each other, as a foreign file may hold them."""
        size = len(self.before)
        if not (
            size >= 2
            and np.all(self.before > 0)
            and abs(self.before.sum() - 1) < 1e-6
            and self.shift.shape == (size - 1,)
            and np.isfinite(self.shift).all()
            and 0 < self.slope < np.inf
            and (self.shift_error is None or self.shift_error.shape == (size - 1,))
        ):
            raise ValueError("the parts of the recalibration do not fit each other")

    def __str__(self) -> str:
        return self.text()

    def text(self, classes: NDArray[Any] | None = None) -> str:
        """Say what was done.

        Parameters
        ----------
        classes : ndarray, default=None
            The classes, which three or more are named by.

        Returns
        -------
        str
            One sentence or two.
        """
        if len(self.before) == 2:
            described = (
                f"from a prevalence of {percent(self.before[1])} to {percent(self.after[1])}"
            )
        else:
            names = range(len(self.before)) if classes is None else classes.tolist()
            each = zip(names, self.before, self.after, strict=True)
            every = [f"{k} {percent(b)} (was {percent(a)})" for k, a, b in each]
            described = "to other shares of the classes, " + listed(every)
        if self.rows is None:
            return f"Recalibrated {described}."
        assert self.shift_error is not None
        errors = zip(self.shift, self.shift_error, strict=True)
        moved = listed([f"{shift:+.2f} ± {error:.2f}" for shift, error in errors])
        slope = f"; slope {self.slope:.2f} ± {self.slope_error:.2f}" if self.slope_error else ""
        return (
            f"Recalibrated {described} by {self.rows:,} local rows: log-odds {moved}{slope} "
            "(estimate ± standard error)."
        )


def recalibrated(
    policy: BasePolicy, X: Any, y: Any, prevalence: float | Mapping[Any, float] | None
) -> Any:
    """A copy of a fitted policy after the change that a prevalence or local outcomes ask for."""
    check_is_fitted(policy)
    if isinstance(X, int | float) and y is None:
        rule, remedy = "must be local rows", f"Did you mean recalibrate(prevalence={X:g})?"
        raise InvalidInputError("X", rule, X, remedy)
    if (prevalence is None) == (X is None and y is None) or (X is None) != (y is None):
        raise InvalidInputError(
            "prevalence",
            "must be given, or local rows X with their classes y, and not both",
            prevalence or ("" if X is None else "X without y"),
            "For example recalibrate(prevalence=0.02) or recalibrate(X_local, y_local).",
        )
    policy._check_recalibrates()
    inside = getattr(policy, "policy_", policy)
    known = policy.recalibration_ or Recalibration(
        inside._training_shares(), np.zeros(len(policy.classes_) - 1)
    )
    base = log_odds_at(known.before) + known.shift
    rows, errors = None, None
    if prevalence is not None:
        shares = shares_by_class(prevalence, policy.classes_.tolist())
        change = LogOddsChange(log_odds_at(shares) - base, 1.0, base)
    else:
        u, labels = _local(policy, X, y)
        rows, found = len(labels), fit_change(u, labels, base, inside._takes_slope)
        change, errors = found.change, (found.shift_error, found.slope_error)
        if change.slope < _LEAST_SLOPE:
            raise InvalidInputError(
                "y",
                "must follow the probabilities of the policy to some degree",
                f"a slope of {change.slope:.2f}",
                "Check that y and its columns are what the policy was fitted with, or fit again.",
            )
    moved = policy._changed(change)
    for one in (moved, getattr(moved, "policy_", moved)):
        one.recalibration_ = known.then(change, rows, errors)
    return moved


def without_promises(policy: Policy) -> Policy:
    """A copy without what holds of the policy as it was fitted only."""
    moved = copy(policy)
    for name in _DROPPED:
        vars(moved).pop(name, None)
    return moved


def refuse(policy: PolicyFace, name: str, rule: str, value: Any) -> None:
    """Refuse to recalibrate a policy, with the reason."""
    raise InvalidInputError(
        name,
        f"{rule}, so that {type(policy).__name__} cannot be recalibrated",
        value,
        "Fit it again with sample_weight=prevalence_weights(y, prevalence), if it takes weights.",
    )


def refuse_walked(policy: PolicyFace) -> None:
    """Refuse to recalibrate what was found by walking training rows, which are not kept."""
    if policy.mean_budget is not None:
        refuse(policy, "mean_budget", "is kept by the training rows", policy.mean_budget)
    recall = policy.recall_aim.target_recall
    if recall is not None and (policy._recall is None or policy.surcharges_ is not None):
        rule = "must be given to TargetRecallClassifier, and of two classes"
        refuse(policy, "target_recall", rule, recall)


def _local(policy: BasePolicy, X: Any, y: Any) -> tuple[Floats, Ints]:
    """Log-odds of local rows where the policy stops, and their classes."""
    encoded = policy._encode(X)
    given = np.asarray(y).ravel()
    if len(given) != len(encoded) or len(given) == 0:
        rule = f"needs one class for each of the {len(encoded)} rows, and at least one"
        raise InvalidInputError("y", rule, len(given), "Pass the y of X.")
    unknown = [label for label in np.unique(given).tolist() if label not in policy.classes_]
    if unknown:
        raise InvalidInputError(
            "y", f"classes must be {policy.classes_.tolist()}", unknown, "Correct them."
        )
    if seen := trained_among(policy.training_rows_, encoded):
        raise InvalidInputError(
            "X",
            "must not be rows that the policy was trained on: on these its probabilities fit "
            "better than on new ones",
            f"{seen} of {len(encoded)} rows that are equal to training rows",
            "Pass rows of the place where the policy is to be used.",
        )
    p = np.maximum(policy.predict_proba(X), _LEAST_PROBABILITY)
    return log_odds_of(p), np.searchsorted(policy.classes_, given)
