"""The steps of a consultation and their explanations: plain values, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

Value = float | str | bool


@dataclass(frozen=True)
class ValueWarning:
    """Something odd about a value that was nevertheless used.

    `kind` is "outside_range", "implausible" (so far outside that the unit may be wrong),
    "unknown_category" or "unknown_value".
    """

    covariate: str
    value: Value
    kind: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Contribution:
    """What one covariate adds to the log-odds; the value is None if it was not available."""

    covariate: str
    value: Value | None
    log_odds: float


@dataclass(frozen=True)
class Flip:
    """Values of the next covariate that would change the label to `label`.

    An end of a range is None where the range runs on to the end of the training values.
    """

    covariate: str
    label: Any
    ranges: tuple[tuple[float | None, float | None], ...]
    values: tuple[Value, ...]

    def __str__(self) -> str:
        words = [_range_in_words(low, high) for low, high in self.ranges]
        words += [f"= {value}" for value in self.values]
        return f"{self.covariate} {' or '.join(words)} would turn the label to {self.label}"


@dataclass(frozen=True)
class Plan:
    """Acquire these covariates and then decide; the expected total cost counts what is paid."""

    covariates: tuple[str, ...]
    cost: float
    expected_total_cost: float


@dataclass(frozen=True)
class Reasons:
    """Why a policy decides as it does about one row; empty where it does not weigh.

    Attributes
    ----------
    plans : one for each way to go on that the policy weighs, the next covariates first. What was
        paid so far does not count in their expected total cost.
    flips : values of the next covariate that would change the label.
    intercept, contributions : the log-odds now as a sum, where the policy has an additive model;
        the values are filled in by the consultation.
    """

    plans: tuple[Plan, ...] = ()
    flips: tuple[Flip, ...] = ()
    intercept: float | None = None
    contributions: tuple[Contribution, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why a step is what it is.

    Attributes
    ----------
    label, probability, bayes_risk : label if stopping now, probability of the second class,
        and expected misclassification cost of the label.
    paid : covariate cost so far.
    stop_now : expected total cost of classifying now, `paid` + `bayes_risk`.
    acquire_next : the same of acquiring what comes next and then classifying.
    best_plan : the cheapest further plan. Like `acquire_next`, None if the policy weighs none.
    expected_saving : `stop_now` less the best plan, 0 if no plan is better.
    flips : values of the next covariate that would change the label.
    intercept, contributions : the log-odds now as a sum, where the policy has an additive model.
    """

    label: Any
    probability: float
    bayes_risk: float
    paid: float
    stop_now: float
    acquire_next: float | None
    best_plan: Plan | None
    expected_saving: float
    flips: tuple[Flip, ...]
    intercept: float | None
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        lines = [
            f"Probability {self.probability:.1%}; label {self.label} now, "
            f"with a Bayes risk of {self.bayes_risk:.2f}.",
            f"Paid so far {self.paid:.2f}. Expected total cost if stopping now {self.stop_now:.2f}"
            + (
                f", after the next covariate {self.acquire_next:.2f}"
                if self.acquire_next is not None
                else ""
            )
            + ".",
        ]
        if self.best_plan is not None:
            names = ", ".join(self.best_plan.covariates)
            cost, total = self.best_plan.cost, self.best_plan.expected_total_cost
            lines.append(
                f"Best plan: acquire {names} for {cost:.2f}; expected total cost {total:.2f}, "
                f"a saving of {self.expected_saving:.2f}."
                if self.expected_saving > 0
                else f"Going on does not pay: with {names} for {cost:.2f} the expected total cost "
                f"would be {total:.2f}."
            )
        lines += [f"{flip}." for flip in self.flips] or self._without_flips()
        if self.contributions:
            base = "" if self.intercept is None else f", starting from {self.intercept:+.2f}"
            lines.append(f"Contributions to the log-odds{base}:")
            values = [_shown(item.value) for item in self.contributions]
            width = max(len(item.covariate) for item in self.contributions)
            across = max(len(value) for value in values)
            lines += [
                f"  {item.covariate:<{width}}  {value:>{across}}  {item.log_odds:+.2f}"
                for item, value in zip(self.contributions, values, strict=True)
            ]
        return "\n".join(lines)

    def _without_flips(self) -> list[str]:
        """Where a saving comes from if no value of the next covariate would change the label."""
        if self.best_plan is None or self.expected_saving <= 0:
            return []
        first, *later = self.best_plan.covariates
        told = f"No value of {first} alone would change the label"
        if later:
            return [f"{told}; the saving comes with what may follow: {', '.join(later)}."]
        # The Bayes risk afterwards is that of the model with the covariate, not of the one now.
        return [f"{told}; the model that includes it expects this label to be wrong less often."]


@dataclass(frozen=True)
class Acquire:
    """Acquire these covariates next, at this cost.

    `sharing` lists further covariates that share a cost with them, and what each would cost once
    these are acquired.
    """

    covariates: tuple[str, ...]
    cost: float
    sharing: tuple[tuple[str, float], ...]
    explanation: Explanation
    warnings: tuple[ValueWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The step as plain JSON values."""
        return {"action": "acquire", **_plain(asdict(self))}

    def __str__(self) -> str:
        return f"Acquire {', '.join(self.covariates)} for {self.cost:.2f}."


@dataclass(frozen=True)
class Classify:
    """Stop and give this label.

    `cost` is the covariate cost paid, `expected_cost` that plus the Bayes risk.
    """

    label: Any
    probability: float
    cost: float
    expected_cost: float
    explanation: Explanation
    warnings: tuple[ValueWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The step as plain JSON values."""
        return {"action": "classify", **_plain(asdict(self))}

    def __str__(self) -> str:
        return (
            f"Classify as {self.label} (probability {self.probability:.1%}), paid {self.cost:.2f}."
        )


def explain(
    reasons: Reasons,
    label: Any,
    probability: float,
    bayes_risk: float,
    values: Mapping[str, Value],
    paid: float,
) -> Explanation:
    """The reasons with total costs and with the values of the row; `paid` is what they cost."""
    plans = [
        replace(plan, expected_total_cost=paid + plan.expected_total_cost) for plan in reasons.plans
    ]
    best = min(plans, key=lambda plan: plan.expected_total_cost, default=None)
    stop_now = paid + bayes_risk
    return Explanation(
        label=label,
        probability=probability,
        bayes_risk=bayes_risk,
        paid=paid,
        stop_now=stop_now,
        acquire_next=plans[0].expected_total_cost if plans else None,
        best_plan=best,
        expected_saving=max(stop_now - best.expected_total_cost, 0.0) if best else 0.0,
        flips=reasons.flips,
        intercept=reasons.intercept,
        contributions=tuple(
            replace(item, value=values.get(item.covariate)) for item in reasons.contributions
        ),
    )


def _range_in_words(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "at any value"
    if low is None:
        return f"below {high:.4g}"
    if high is None:
        return f"above {low:.4g}"
    return f"between {low:.4g} and {high:.4g}"


def _shown(value: Value | None) -> str:
    if value is None:
        return "unavailable"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Tuples as lists, numpy scalars as Python's."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
