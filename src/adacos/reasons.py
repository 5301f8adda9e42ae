"""Why a policy decides as it does about one row, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Value = float | str | bool


@dataclass(frozen=True)
class Contribution:
    """What one covariate adds to the log-odds.

    Parameters
    ----------
    covariate : str
        Its name.
    value : float, str, bool or None
        Its value; None if it was not available.
    log_odds : float
        What it adds.
    """

    covariate: str
    value: Value | None
    log_odds: float


@dataclass(frozen=True)
class Flip:
    """Values of the next covariate that would change the label.

    Parameters
    ----------
    covariate : str
        The next covariate.
    label : object
        The label that they would change it to.
    ranges : tuple of (float or None, float or None)
        Ranges of a number. An end is None where the range runs on to the end of the training
        values.
    values : tuple of value
        Single values of a covariate that has few.
    """

    covariate: str
    label: Any
    ranges: tuple[tuple[float | None, float | None], ...]
    values: tuple[Value, ...]

    def __str__(self) -> str:
        words = [_range_in_words(low, high) for low, high in self.ranges]
        words += [f"= {value}" for value in self.values]
        return f"{self.covariate} {' or '.join(words)} would change the label to {self.label}"


@dataclass(frozen=True)
class WeighedDecision:
    """What a decision would cost now.

    Parameters
    ----------
    decision : str
        Its name.
    expected_cost : float
        What it is expected to cost, acquisitions aside.
    above, below : float or None
        With two classes, the probabilities of the second one between which it is the cheapest; None
        if it never is, and with three or more classes.
    """

    decision: str
    expected_cost: float
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True)
class Plan:
    """Acquire some covariates and then decide.

    Parameters
    ----------
    covariates : tuple of str
        What is acquired, in order.
    cost : float
        What that costs.
    expected_total_cost : float
        Covariate cost, with what was paid before, plus the expected misclassification cost after.
    """

    covariates: tuple[str, ...]
    cost: float
    expected_total_cost: float


@dataclass(frozen=True)
class Reasons:
    """Why a policy decides as it does about one row; empty where it does not weigh.

    Parameters
    ----------
    plans : tuple of Plan
        One for each way to continue that the policy weighs, the next covariates first. What was
        paid so far does not count in their expected total cost.
    flips : tuple of Flip
        Values of the next covariate that would change the label.
    intercept : float or None
        Where the log-odds start, if the policy has an additive model.
    contributions : tuple of Contribution
        What each covariate adds to them; the values are filled in by the consultation.
    because : str
        A reason in words: where the policy does not weigh this row's plans, or a budget or what
        became of training rows has a say.
    node : int or None
        Number of the node of a tree whose question comes next, if there is one.

    Examples
    --------
    >>> from adacos import Reasons
    >>> Reasons(because="Every row is asked for its age.").because
    'Every row is asked for its age.'
    """

    plans: tuple[Plan, ...] = ()
    flips: tuple[Flip, ...] = ()
    intercept: float | None = None
    contributions: tuple[Contribution, ...] = ()
    because: str = ""
    node: int | None = None


def _range_in_words(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "at any value"
    if low is None:
        return f"below {high:.4g}"
    if high is None:
        return f"above {low:.4g}"
    return f"between {low:.4g} and {high:.4g}"
