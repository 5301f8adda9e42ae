"""The steps of a consultation and their explanations: plain values, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

Value = float | str | bool


# How an amount is written.
Money = Callable[[float], str]
plain_money: Money = "{:.2f}".format


@dataclass(frozen=True)
class ValueWarning:
    """Something odd about a value that was nevertheless used.

    Parameters
    ----------
    covariate : str
        Its name.
    value : float, str or bool
        The value as it was used.
    kind : {"outside_range", "implausible", "unknown_category", "unknown_value"}
        What is odd; "implausible" is so far outside that the unit may be wrong.
    message : str
        The same in words.
    """

    covariate: str
    value: Value
    kind: str
    message: str

    def __str__(self) -> str:
        return self.message


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
        return f"{self.covariate} {' or '.join(words)} would turn the label to {self.label}"


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
        One for each way to go on that the policy weighs, the next covariates first. What was paid
        so far does not count in their expected total cost.
    flips : tuple of Flip
        Values of the next covariate that would change the label.
    intercept : float or None
        Where the log-odds start, if the policy has an additive model.
    contributions : tuple of Contribution
        What each covariate adds to them; the values are filled in by the consultation.
    because : str
        A reason in words: where the policy does not weigh this row's plans, or a budget or what
        became of training rows has a say.
    """

    plans: tuple[Plan, ...] = ()
    flips: tuple[Flip, ...] = ()
    intercept: float | None = None
    contributions: tuple[Contribution, ...] = ()
    because: str = ""


@dataclass(frozen=True)
class Explanation:
    """Why a step is what it is.

    Parameters
    ----------
    label : object
        Label if stopping now.
    probability : float
        Probability of the second class; of more than two classes that of the label.
    bayes_risk : float
        Expected misclassification cost of the label.
    paid : float
        Covariate cost so far.
    stop_now : float
        Expected total cost of classifying now, `paid` + `bayes_risk`.
    acquire_next : float or None
        The same of acquiring what comes next and then classifying; None if the policy weighs no
        plan.
    best_plan : Plan or None
        The cheapest further plan.
    expected_saving : float
        `stop_now` less the best plan, 0 if no plan is better.
    flips : tuple of Flip
        Values of the next covariate that would change the label.
    intercept : float or None
        Where the log-odds start, if the policy has an additive model.
    contributions : tuple of Contribution
        What each covariate adds to them: intercept and contributions sum to the log-odds now. Of
        more than two classes those of the label against the most probable other class.
    because : str
        A reason in words: where the policy does not weigh this row's plans, or a budget or what
        became of training rows has a say; else empty.
    probabilities : dict of str to float or None
        Of more than two classes the probability of each; None of two.
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
    because: str = ""
    probabilities: dict[str, float] | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, money: Money = plain_money) -> str:
        """The explanation in words, its amounts as `money` writes them."""
        each = self.probabilities or {}
        told = ", ".join(f"{name} {p:.1%}" for name, p in each.items())
        lines = [
            f"Probability {told or f'{self.probability:.1%}'}; label {self.label} now, "
            f"with a Bayes risk of {money(self.bayes_risk)}.",
            f"Paid so far {money(self.paid)}. "
            f"Expected total cost if stopping now {money(self.stop_now)}"
            + (
                f", after the next covariate {money(self.acquire_next)}"
                if self.acquire_next is not None
                else ""
            )
            + ".",
        ]
        if self.because:
            lines.append(self.because)
        if self.best_plan is not None:
            names = ", ".join(self.best_plan.covariates)
            cost = money(self.best_plan.cost)
            total = money(self.best_plan.expected_total_cost)
            lines.append(
                f"Best plan: acquire {names} for {cost}; expected total cost {total}, "
                f"a saving of {money(self.expected_saving)}."
                if self.expected_saving > 0
                else f"Going on does not pay: with {names} for {cost} the expected total cost "
                f"would be {total}."
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
        # The value of going on counts what may follow, and is that of the model with the covariate.
        return [
            f"{told}; the saving is expected of the model that includes it and of what may be "
            "asked after it."
        ]


@dataclass(frozen=True)
class Acquire:
    """The step of acquiring some covariates next.

    Parameters
    ----------
    covariates : tuple of str
        What to acquire.
    cost : float
        What that costs.
    sharing : tuple of (str, float)
        Further covariates that share a cost with them, and what each would cost once these are
        acquired.
    explanation : Explanation
        Why.
    warnings : tuple of ValueWarning, default=()
        What is odd about the values so far.

    See Also
    --------
    Classify : The other step.

    Examples
    --------
    >>> from adacos import Acquire, AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> step = AdaCOSClassifier(costs).fit(X, y).consultation().next()
    >>> isinstance(step, Acquire), step.covariates, step.cost
    (True, ('Age',), 1.0)
    """

    covariates: tuple[str, ...]
    cost: float
    sharing: tuple[tuple[str, float], ...]
    explanation: Explanation
    warnings: tuple[ValueWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the step as plain JSON values.

        Returns
        -------
        dict
            The action and the fields.
        """
        return {"action": "acquire", **_plain(asdict(self))}

    def __str__(self) -> str:
        return self.text()

    def text(self, money: Money = plain_money) -> str:
        """Say the step in words.

        Parameters
        ----------
        money : function, default=two decimals
            Puts an amount into words.

        Returns
        -------
        str
            One sentence.
        """
        return f"Acquire {', '.join(self.covariates)} for {money(self.cost)}."


@dataclass(frozen=True)
class Classify:
    """The step of stopping with a label.

    Parameters
    ----------
    label : object
        The label.
    probability : float
        Probability of the second class; of more than two classes that of the label.
    cost : float
        Covariate cost paid.
    expected_cost : float
        That plus the expected misclassification cost.
    explanation : Explanation
        Why.
    warnings : tuple of ValueWarning, default=()
        What is odd about the values so far.

    See Also
    --------
    Acquire : The other step.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Classify, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> step = AdaCOSClassifier(costs).fit(X, y).consultation().stop().next()
    >>> isinstance(step, Classify), step.label, step.cost
    (True, 1, 0.0)
    """

    label: Any
    probability: float
    cost: float
    expected_cost: float
    explanation: Explanation
    warnings: tuple[ValueWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the step as plain JSON values.

        Returns
        -------
        dict
            The action and the fields.
        """
        return {"action": "classify", **_plain(asdict(self))}

    def __str__(self) -> str:
        return self.text()

    def text(self, money: Money = plain_money) -> str:
        """Say the step in words.

        Parameters
        ----------
        money : function, default=two decimals
            Puts an amount into words.

        Returns
        -------
        str
            One sentence.
        """
        chance = f"(probability {self.probability:.1%})"
        return f"Classify as {self.label} {chance}, paid {money(self.cost)}."


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
        because=reasons.because,
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
        # Two classes have one probability.
        shown = {k: v for k, v in value.items() if k != "probabilities" or v is not None}
        return {name: _plain(item) for name, item in shown.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
