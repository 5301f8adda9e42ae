"""The steps of a consultation and their explanations: plain values, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from adacos.consultation.cut_off import percent
from adacos.document.blocks import Block, Heading, Items, Plain, fragment
from adacos.reasons import Contribution, Flip, Plan, Reasons, Value, WeighedDecision

# How an amount is written.
Money = Callable[[float], str]
plain_money: Money = "{:,.2f}".format
# The least saving that is shown as an amount.
LEAST_SHOWN = 0.01
# Where a saving comes from if no value of the next covariate would change the label.
NO_SINGLE_VALUE = (
    "No single value would change the result, but the answer may make a later question worth "
    "asking, or unnecessary."
)
# What is there with more classes than two, or with decisions.
_IF_GIVEN = ("probabilities", "decisions")
# Why something is asked whose answer is not expected to save anything, where the policy is silent.
COSTS_NOTHING = "It costs nothing, so it comes first."
NO_PLAN = "This policy reports no expected cost of continuing."
OWN_RULE = "This policy asks by a rule of its own, not by the saving expected here."


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
        What is odd; "implausible" is outside the range that the description declares, or so far
        outside that of training that the unit may be wrong.
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
class Explanation:
    """Why a step is what it is.

    Parameters
    ----------
    label : object
        Label if stopping now.
    probability : float
        Probability of the second class; with three or more classes that of the label, or of the
        most probable class where decisions take its place.
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
        three or more classes those of the label against the most probable other class.
    because : str
        A reason in words: where the policy does not weigh this row's plans, or a budget or what
        became of training rows has a say; else empty.
    probabilities : dict of str to float or None
        With three or more classes the probability of each; else None.
    cut_off : float or None
        With two classes the probability at or above which the second one is the label; else None.
    decisions : tuple of WeighedDecision or None
        Where decisions take the place of labels, what each is expected to cost and when it is the
        cheapest; else None.
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
    cut_off: float | None = None
    decisions: tuple[WeighedDecision, ...] | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, money: Money = plain_money, *, asks: bool = True) -> str:
        """The explanation in words, its amounts as `money` writes them.

        Of a step that does not ask (`asks`) it says what asking would cost.
        """
        each = self.probabilities or {}
        chances = ", ".join(f"{name} {p:.1%}" for name, p in each.items())
        cut_off = "" if self.cut_off is None else f" (cut-off {percent(self.cut_off)})"
        cut_off = cut_off or _in_brackets(ranges_in_words(self.decisions or ()))
        wrong = "this decision" if self.decisions else "being wrong"
        lines = [
            f"Probability {chances or f'{self.probability:.1%}{cut_off}'}: {self._result()} if "
            f"you stop now. Expected cost of {wrong}: {money(self.bayes_risk)}.",
            f"Paid so far: {money(self.paid)}. "
            f"Expected total cost: {money(self.stop_now)} if you stop"
            + (
                f", {money(self.best_plan.expected_total_cost)} if you continue."
                if self.best_plan is not None
                else "."
            ),
        ]
        if self.decisions:
            each_cost = [f"{one.decision} {money(one.expected_cost)}" for one in self.decisions]
            lines.append(f"Expected cost of each decision: {', '.join(each_cost)}.")
        if self.because:
            lines.append(self.because)
        if self.best_plan is not None:
            lines.append(self._plan_in_words(self.best_plan, money, asks))
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

    def _result(self) -> str:
        """The label in words: a class that has a name, or positive or negative."""
        if self.cut_off is None or isinstance(self.label, str):
            return str(self.label)
        return "positive" if self.probability >= self.cut_off else "negative"

    def _plan_in_words(self, plan: Plan, money: Money, asks: bool) -> str:
        """What the best plan costs and saves."""
        names, cost = ", ".join(plan.covariates), money(plan.cost)
        several = len(plan.covariates) > 1
        if self.expected_saving <= 0:
            return f"Continuing does not pay for itself: the best plan would be {names} for {cost}."
        # A saving that would be rounded to nothing decides all the same.
        small = self.expected_saving < LEAST_SHOWN
        saving = f"less than {money(LEAST_SHOWN)}" if small else money(self.expected_saving)
        saves = f"expected to save {saving} net by making a wrong result less likely."
        if not asks:
            return f"Asking {names} would cost {cost} and is {saves}"
        together = "together they cost" if several else "it costs"
        return f"Worth asking {names}: {together} {cost} and {'are' if several else 'is'} {saves}"

    def _without_flips(self) -> list[str]:
        """What the next covariate is for if none of its values would change the label."""
        if self.best_plan is None or self.expected_saving <= 0:
            return []
        return [NO_SINGLE_VALUE]


@dataclass(frozen=True)
class Alternative:
    """An open question, as a choice of a person.

    Parameters
    ----------
    covariate : str
        Its name.
    cost : float
        What it costs now.
    expected_total_cost : float or None
        Of the policy's plan with this question; None where the policy has no figure for it.
    others : tuple of str
        The other questions of that plan.
    flips : tuple of str
        Values that would change the label, in words; those of the next question only.

    See Also
    --------
    Consultation.alternatives : Where they come from.
    """

    covariate: str
    cost: float
    expected_total_cost: float | None
    others: tuple[str, ...]
    flips: tuple[str, ...]


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
    ordered : bool, default=False
        Whether they were ordered and paid before, so that only their results are missing.

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
    ordered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give the step as plain JSON values.

        Returns
        -------
        dict
            The action and the fields; `ordered` only where it is true.
        """
        plain = _plain(asdict(self))
        if not self.ordered:
            del plain["ordered"]
        return {"action": "acquire", **plain}

    def __str__(self) -> str:
        return " ".join([self.text(), *map(str, self.warnings)])

    def _repr_html_(self) -> str:
        return _html(self)

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
        if self.ordered:
            were = "which were" if len(self.covariates) > 1 else "which was"
            return f"Wait for {', '.join(self.covariates)}, {were} ordered."
        return f"Acquire {', '.join(self.covariates)} for {money(self.cost)}."


@dataclass(frozen=True)
class Classify:
    """The step of stopping with a label.

    Parameters
    ----------
    label : object
        The label.
    probability : float
        Probability of the second class; with three or more classes that of the label, or of the
        most probable class where decisions take its place.
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
        return " ".join([self.text(), *map(str, self.warnings)])

    def _repr_html_(self) -> str:
        return _html(self)

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
        cut_off, decisions = self.explanation.cut_off, self.explanation.decisions
        if decisions is not None:
            own = [one for one in decisions if one.decision == self.label]
            each = self.explanation.probabilities or {}
            chances = ", ".join(f"{name} {p:.1%}" for name, p in each.items())
            chances = chances or f"probability {self.probability:.1%}"
            note = ", ".join(filter(None, [chances, ranges_in_words(own)]))
            return f"Decide: {self.label} ({note}), paid {money(self.cost)}."
        note = "" if cut_off is None else f", cut-off {percent(cut_off)}"
        chance = f"(probability {self.probability:.1%}{note})"
        return f"Classify as {self.label} {chance}, paid {money(self.cost)}."


def ranges_in_words(decisions: Sequence[WeighedDecision]) -> str:
    """Between which probabilities each decision is the cheapest; empty if that is not known."""
    described = []
    for one in decisions:
        if one.above is None or one.below is None:
            continue
        if one.above > 0 and one.below < 1:
            where = f"between {percent(one.above)} and {percent(one.below)}"
        elif one.above > 0:
            where = f"at or above {percent(one.above)}"
        else:
            where = f"below {percent(one.below)}" if one.below < 1 else "always"
        described.append(f"{one.decision} {where}")
    return ", ".join(described)


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


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


def asked_in_any_case(reasons: Reasons, labels: Sequence[str]) -> Reasons:
    """The reasons of a question that somebody demands: what was weighed are other questions."""
    because = f"Asked in any case, whatever it is worth: {', '.join(labels)}."
    return replace(reasons, plans=(), flips=(), because=because)


def reasons_in_words(step: Acquire | Classify, money: Money = plain_money) -> str:
    """Why a step is what it is, its amounts as `money` writes them."""
    return step.explanation.text(money, asks=isinstance(step, Acquire))


def with_reason(explanation: Explanation, cost: float) -> Explanation:
    """The explanation of a question with this cost; one that saves nothing has a reason."""
    if explanation.because or explanation.expected_saving > 0:
        return explanation
    reason = NO_PLAN if explanation.best_plan is None else OWN_RULE
    return replace(explanation, because=reason if cost > 0 else COSTS_NOTHING)


def _html(step: Acquire | Classify) -> str:
    """A step for a notebook: what to do, what is odd about the values, and why."""
    warned = Items(tuple(str(warning) for warning in step.warnings))
    blocks: list[Block] = [Heading(step.text(), 3), *([warned] if step.warnings else [])]
    return fragment([*blocks, Plain(reasons_in_words(step))])


def _shown(value: Value | None) -> str:
    if value is None:
        return "unavailable"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Tuples as lists, numpy scalars as Python's."""
    if isinstance(value, dict):
        shown = {k: v for k, v in value.items() if k not in _IF_GIVEN or v is not None}
        return {name: _plain(item) for name, item in shown.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
