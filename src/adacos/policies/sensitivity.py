"""How much depends on costs that are not known exactly: one at a time, two, and all together.

A fitted policy decides at other costs without another fit (`adacos.policies.recosting`). The range
within which it asks the same questions of the rows is found by bisection between two amounts at
which it does and does not. Within that range an answer changes where another one becomes cheaper:
with probabilities p of the classes, one unit more of C[y, b] adds p_y to the risk of answer b, so
that the break-points are quotients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.consultation.cut_off import cut_off_of
from adacos.document.blocks import Grid, Items, fragment, plain_text
from adacos.exceptions import InvalidInputError
from adacos.kernels.groups import standard_error
from adacos.kernels.threads import one_blas_thread
from adacos.metrics.evaluation import drawn, held_out_rows
from adacos.policies.break_points import Asked
from adacos.policies.fitted import fitted_policy
from adacos.policies.information import (
    ComparedPolicy,
    Information,
    as_good_as_best,
    best_in_expectation,
    compare_in_expectation,
    drawn_amounts,
    of_all,
    of_one,
    with_error,
    worth_in_words,
)
from adacos.policies.recosting import OWN, Alternatives, Behaviour, alternatives
from adacos.policies.uncertain_costs import at_amounts, uncertain_costs
from adacos.tables.description import description_of
from adacos.typing import Floats
from adacos.validation import choices, integer, real

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# How far beyond a break-point it is looked whether an answer changes, as a share of the cost.
_NEAR = 1e-7


@dataclass(frozen=True)
class CostRange:
    """What depends on one uncertain cost, the others being as stated.

    Parameters
    ----------
    name : str
        The cost: a covariate, or an error.
    stated, expected : float
        What the policy was given, and the mean of the distribution.
    low, high : float
        Ends of the interval, or the 2.5% and 97.5% quantiles of the distribution.
    cost_at_low, cost_at_high : float
        Mean total cost of the policy that decides by that amount.
    more_at_low, more_at_high, error_at_low, error_at_high : float
        How much more that is than at the stated cost, row by row, and standard errors.
    acquired_at_low, acquired_at_high : float
        Mean number of covariates that a row acquires.
    changed_at_low, changed_at_high : float
        Share of the rows that are asked something else than at the stated cost.
    cut_off_at_low, cut_off_at_high : float or None
        Probability from which on the second class is answered; None with more classes.
    questions : tuple of (float or None, float or None)
        Least and largest amount at which every row is asked the same; None where that holds up to
        the end of the interval.
    answers : tuple of (float or None, float or None)
        Least and largest amount at which every row is asked and answered the same.
    known : float or None
        What knowing this cost exactly is worth per row (EVPPI); None if it was not computed.
    known_error : float or None
        Its standard error.
    """

    name: str
    stated: float
    expected: float
    low: float
    high: float
    cost_at_low: float
    cost_at_high: float
    more_at_low: float
    more_at_high: float
    error_at_low: float
    error_at_high: float
    acquired_at_low: float
    acquired_at_high: float
    changed_at_low: float
    changed_at_high: float
    cut_off_at_low: float | None
    cut_off_at_high: float | None
    questions: tuple[float | None, float | None]
    answers: tuple[float | None, float | None]
    known: float | None = None
    known_error: float | None = None

    @property
    def swing(self) -> float:
        """How far apart the total costs at the ends are."""
        return abs(self.cost_at_high - self.cost_at_low)


@dataclass(frozen=True)
class RegionMap:
    """Two costs at once: which alternative is the cheapest, and how far the questions change.

    Parameters
    ----------
    first, second : str
        The two costs.
    first_amounts, second_amounts : tuple of float
        The amounts on the axes.
    cheapest : tuple of tuple of str
        The cheapest alternative for each amount of the first cost (outer) and of the second.
    changed : tuple of tuple of float
        Share of the rows that the policy asks something else than at the stated costs.
    """

    first: str
    second: str
    first_amounts: tuple[float, ...]
    second_amounts: tuple[float, ...]
    cheapest: tuple[tuple[str, ...], ...]
    changed: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Sensitivity:
    """What depends on uncertain costs, see `sensitivity`.

    Parameters
    ----------
    costs : tuple of CostRange
        Each uncertain cost by itself, the one that moves the total cost most first.
    policies : tuple of ComparedPolicy
        The policy and its alternatives while costs are uncertain.
    best : str
        The alternative of least expected total cost on these rows.
    as_good : tuple of str
        Alternatives that these rows do not show to cost more than the best one.
    information : Information or None
        What knowing all costs exactly is worth per row (EVPI); None without draws.
    map : RegionMap or None
        The two most important costs at once.
    total, error : float
        Mean total cost of the policy at the stated costs, and its standard error.
    acquired : float
        Mean number of covariates that a row acquires at the stated costs.
    rows, draws : int
        How many rows were looked at, and how many draws were made of all costs.
    held_fixed : str
        What of the policy depends on costs and was not learned again.

    See Also
    --------
    sensitivity : Makes it.
    """

    costs: tuple[CostRange, ...]
    policies: tuple[ComparedPolicy, ...]
    best: str
    as_good: tuple[str, ...]
    information: Information | None
    map: RegionMap | None
    total: float
    error: float
    acquired: float
    rows: int
    draws: int
    held_fixed: str

    def __str__(self) -> str:
        return "\n\n".join([*map(plain_text, self.tables()), "\n".join(self.notes())])

    def _repr_html_(self) -> str:
        return fragment([*self.tables(), Items(tuple(self.notes()))])

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain JSON values.

        Returns
        -------
        dict
            Lists and numbers by name.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **own,
            "costs": [asdict(cost) for cost in self.costs],
            "policies": [item._asdict() for item in self.policies],
            "information": None if self.information is None else self.information._asdict(),
            "map": None if self.map is None else asdict(self.map),
        }

    def tables(self) -> list[Grid]:
        """Give the results as tables of texts.

        Returns
        -------
        list of Grid
            One cost at a time, then the alternatives.
        """
        return [_one_way(self), _policies(self)]

    def notes(self) -> list[str]:
        """Say in sentences what the tables do not.

        Returns
        -------
        list of str
            What full knowledge is worth, which policy is best, and what was held fixed.
        """
        lines = [f"Cheapest at the expected costs, on these rows: {self.best}."]
        if self.as_good:
            lines.append(f"Not shown to cost more than {self.best}: {', '.join(self.as_good)}.")
        if self.information is not None:
            lines.append(self._worth_of_knowing(self.information))
        return [*lines, self.held_fixed]

    def _worth_of_knowing(self, measured: Information) -> str:
        """The EVPI in a sentence; knowing cannot do harm, so a value below 0 has a reason."""
        error = (
            f"standard error {measured.whole_error:.2g} over {self.rows:,} rows and "
            f"{self.draws:,} draws"
        )
        if measured.value >= 0:
            return (
                f"Knowing all costs exactly is worth {measured.value:.4g} per row (EVPI), {error}."
            )
        if measured.value >= -2 * measured.whole_error:
            return (
                "Knowing all costs exactly is worth 0 per row within its error (EVPI): the "
                f"estimate is {measured.value:.2g}, {error}."
            )
        return (
            "Knowing all costs exactly is worth nothing on these rows (EVPI): the estimate is "
            f"{measured.value:.2g}, {error}. That is below 0 by more than chance: the "
            "probabilities of the models do not fit these rows."
        )

    def tornado(self, *, ax: Any = None, currency: str = "") -> Any:
        """Draw the tornado diagram: total cost and what is acquired, one cost at a time.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.
        currency : str, default=""
            Currency of the axis.

        Returns
        -------
        ndarray of Axes
            The axes.
        """
        from adacos.policies.sensitivity_figures import tornado

        return tornado(self, ax, currency)

    def regions(self, *, ax: Any = None) -> Any:
        """Draw the map of two costs: where which alternative is the cheapest.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        Axes
            The axes.
        """
        from adacos.policies.sensitivity_figures import regions

        if self.map is None:
            rule = "must have been made with a map of two costs"
            raise InvalidInputError("sensitivity", rule, "grid=0", "Pass grid=7.")
        return regions(self.map, ax)


@one_blas_thread
def sensitivity(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    uncertain: Mapping[Any, Any] | None = None,
    *,
    compared: Mapping[str, Any] | None = None,
    draws: int = 50,
    grid: int = 5,
    map_of: tuple[str, str] | None = None,
    tolerance: float = 1e-6,
    groups: ArrayLike | None = None,
    random_state: int = 0,
) -> Sensitivity:
    """Show what depends on costs that are not known exactly, without another fit.

    One cost at a time: total cost and what is acquired at the ends of its interval, and the range
    within which the policy asks and answers the same. Two costs: which policy is the cheapest
    where. All together: how likely each policy is the cheapest, which is best as long as costs are
    uncertain, and what it is worth to know them.

    Parameters
    ----------
    policy : policy
        A fitted policy; it is not changed.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on; at most 10,000 are used, drawn by class.
    y : array-like of shape (n_rows,)
        Their classes.
    uncertain : mapping of cost to interval or distribution, default=None
        Costs by name: a covariate, "false_positive", "false_negative", or a pair (true class,
        answer), also written "true -> answer". Each is (low, high), (low, likely, high),
        {"mean": m, "sd": s} for a gamma distribution, or a frozen distribution of `scipy.stats`.
        None for every cost between half of it and half as much again.
    compared : mapping of str to policy, default=None
        Further fitted policies by name, compared as well.
    draws : int, default=50
        Draws of all costs, for the value of knowing them: at least two, or 0 to leave that out.
    grid : int, default=5
        Amounts on each axis of the map of two costs; 0 leaves it out.
    map_of : tuple of (str, str), default=None
        The costs of the map; None for the two that move the total cost most.
    tolerance : float, default=1e-6
        How closely ranges are found, as a share of the stated cost.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    Sensitivity
        Tables, figures and numbers.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that the policy was trained on.

    See Also
    --------
    covariate_worth : What each covariate is worth.
    trade_off : Covariate cost against the cost of errors.

    Notes
    -----
    Policies decide again at other costs. What they learned stays, which for a set sequence or a
    tree may depend on costs: `held_fixed` says what. A range is that of the rows given. Questions
    are looked at at some amounts towards each end of the interval, two where rows walk along a
    sequence and else eight; a change that is undone between two of them is not seen.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima, sensitivity
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> uncertain = {"false_negative": (500, 2000), "Glucose": {"mean": 17.61, "sd": 4}}
    >>> found = sensitivity(policy, X[1::2], y[1::2], uncertain, draws=5, grid=0, tolerance=1e-3)
    >>> [cost.name for cost in found.costs]
    ['false_negative', 'Glucose']
    >>> found.costs[0].more_at_high > 0
    True
    """
    integer("draws", draws, at_least=0)
    if draws == 1:
        rule = "must be at least 2, as one draw has no error, or 0 to leave them out"
        raise InvalidInputError("draws", rule, "1", "Pass 50.")
    integer("grid", grid, at_least=0)
    real("tolerance", tolerance, above=0, below=1)
    every = _alternatives(policy, X, y, uncertain, compared, groups, random_state)
    at = every.kept(OWN, every.stated)
    asked = Asked.at_stated_costs(every)
    ranges = [_range_of(asked, k, tolerance, informed=draws > 0) for k in range(len(every.costs))]
    ranges.sort(key=lambda cost: -cost.swing)
    names = _names_of_map(map_of, [cost.name for cost in ranges])
    amounts = drawn_amounts(every, draws, random_state)
    return Sensitivity(
        costs=tuple(ranges),
        policies=compare_in_expectation(every, random_state),
        best=best_in_expectation(every)[0],
        as_good=as_good_as_best(every),
        information=of_all(every, amounts) if draws else None,
        map=_map(every, names, grid) if grid and len(names) == 2 else None,
        total=float(at.total.mean()),
        error=standard_error(at.total, every.rows.groups),
        acquired=float(at.acquired.sum(axis=1).mean()),
        rows=len(every.rows.true),
        draws=draws,
        held_fixed=every.policy.held_fixed,
    )


def _alternatives(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    uncertain: Mapping[Any, Any] | None,
    compared: Mapping[str, Any] | None,
    groups: ArrayLike | None,
    seed: int,
) -> Alternatives:
    """The policy and what it is compared with on the rows, some of them where they are many."""
    chosen = fitted_policy(policy).chosen
    said = description_of(chosen)
    classes, decisions = chosen.classes_.tolist(), chosen.decisions_.tolist()
    plain = [*map(str, classes)], [*map(str, decisions)]
    described = [*map(said.class_name, classes)], [*map(said.class_name, decisions)]
    costs = uncertain_costs(
        uncertain,
        chosen.cost_table_,
        [described, plain],
        missed_is_priced=chosen.false_negative_cost_ is None,
    )
    rows, kept = drawn(held_out_rows(policy, X, y, groups, "the costs are"), seed)
    every = alternatives(chosen, rows, costs, described[1], compared, X)
    return replace(every, encoded={name: part[kept] for name, part in every.encoded.items()})


def _range_of(asked: Asked, k: int, tolerance: float, *, informed: bool) -> CostRange:
    """What depends on one cost."""
    every = asked.every
    cost, at = every.costs[k], every.kept(OWN, every.stated)
    measured: dict[str, Any] = {}
    rule, stated = every.policy.rule_, every.policy.cost_table_
    for end, amount in (("low", cost.low), ("high", cost.high)):
        amounts = _with(every.stated, k, amount)
        act = every.kept(OWN, amounts)
        more = act.total - at.total
        measured[f"cost_at_{end}"] = float(act.total.mean())
        measured[f"more_at_{end}"] = float(more.mean())
        measured[f"error_at_{end}"] = standard_error(more, every.rows.groups)
        measured[f"acquired_at_{end}"] = float(act.acquired.sum(axis=1).mean())
        measured[f"changed_at_{end}"] = float(np.mean((act.order != at.order).any(axis=1)))
        there = rule.restated(stated.matrix, at_amounts(stated, every.costs, amounts).matrix)
        measured[f"cut_off_at_{end}"] = cut_off_of(there) if there.matrix.shape == (2, 2) else None
    # Where what was stated lies beyond an end, there is no way towards that end.
    questions = (
        asked.same_up_to(k, cost.low, tolerance) if cost.low < cost.stated else None,
        asked.same_up_to(k, cost.high, tolerance) if cost.high > cost.stated else None,
    )
    known = of_one(every, k) if informed else None
    return CostRange(
        cost.name,
        cost.stated,
        cost.mean,
        cost.low,
        cost.high,
        **measured,
        questions=questions,
        answers=_same_answers(every, k, at, questions),
        known=None if known is None else known.value,
        known_error=None if known is None else known.error,
    )


def _with(amounts: Floats, k: int, amount: float) -> Floats:
    changed = amounts.copy()
    changed[k] = amount
    return changed


def _same_answers(
    every: Alternatives, k: int, at: Behaviour, questions: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    """The same for answers too, by the break-points of the rows where they stop."""
    cost, rule = every.costs[k], every.policy.rule_
    low, high = questions
    if isinstance(cost.place, int) or rule.threshold is not None or at.probability is None:
        return low, high
    true, answer = cost.place
    risk, share = at.probability @ rule.matrix, at.probability[:, true]
    taken = at.answer == answer
    others = np.delete(risk, answer, axis=1).min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slack = (others - risk[:, answer]) / share
    least = cost.stated + float(slack[~taken & (share > 0)].max(initial=-np.inf))
    most = cost.stated + float(slack[taken & (share > 0)].min(initial=np.inf))

    def changes(amount: float) -> bool:
        # An answer that the policy fixes stays, whatever is cheaper.
        answers = every.behaviour(OWN, _with(every.stated, k, amount)).answer
        return not np.array_equal(answers, at.answer)

    aside = _NEAR * abs(cost.stated)
    if least > (cost.low if low is None else low) and changes(least - aside):
        low = least
    if most < (cost.high if high is None else high) and changes(most + aside):
        high = most
    return low, high


def _names_of_map(asked: tuple[str, str] | None, names: list[str]) -> list[str]:
    """The two costs of the map, most important first where nobody says."""
    if asked is None:
        return names[:2]
    pair = list(asked) if isinstance(asked, tuple | list) else []
    unknown = [str(name) for name in pair if name not in names]
    if len(pair) != 2 or unknown or pair[0] == pair[1]:
        raise InvalidInputError(
            "map_of",
            "must name two uncertain costs",
            asked,
            choices(unknown, names, "They are"),
        )
    return pair


def _map(every: Alternatives, names: list[str], points: int) -> RegionMap:
    """Both costs on a grid: the cheapest alternative, and the share of rows asked otherwise."""
    first, second = ([cost.name for cost in every.costs].index(name) for name in names)
    axes = [
        np.linspace(every.costs[k].low, every.costs[k].high, max(points, 2))
        for k in (first, second)
    ]
    order = every.kept(OWN, every.stated).order
    cheapest, changed = [], []
    for one in axes[0]:
        least, share = [], []
        for other in axes[1]:
            both = _with(_with(every.stated, first, one), second, other)
            acts = {name: every.kept(name, both) for name in every.deciders}
            least.append(min(acts, key=lambda name: float(acts[name].total.mean())))
            share.append(float(np.mean((acts[OWN].order != order).any(axis=1))))
        cheapest.append(tuple(least))
        changed.append(tuple(share))
    amounts = [tuple(axis.tolist()) for axis in axes]
    return RegionMap(names[0], names[1], amounts[0], amounts[1], tuple(cheapest), tuple(changed))


def _one_way(found: Sensitivity) -> Grid:
    """One cost at a time."""
    rows = []
    for cost in found.costs:
        known = () if cost.known is None else (worth_in_words(cost.known, cost.known_error or 0.0),)
        rows.append(
            (
                cost.name,
                f"{cost.stated:.4g}",
                f"{cost.low:.4g} to {cost.high:.4g}",
                f"{cost.cost_at_low:.4g} to {cost.cost_at_high:.4g}",
                f"{cost.acquired_at_low:.2f} to {cost.acquired_at_high:.2f}",
                in_words(cost, cost.questions),
                in_words(cost, cost.answers),
                *known,
            )
        )
    informed = ("knowing it is worth",) if found.costs[0].known is not None else ()
    header = ("cost", "stated", "from", "total cost", "acquired", "same questions", "same answers")
    caption = (
        f"At the stated costs a row costs {with_error(found.total, found.error)} and acquires "
        f"{found.acquired:.2f} covariates: means over {found.rows:,} rows. One cost at a time "
        "is changed, and the policy decides by it. A range holds for all of these rows, so more "
        "rows make it narrower."
    )
    return Grid((*header, *informed), tuple(rows), caption)


def in_words(cost: CostRange, ends: tuple[float | None, float | None]) -> str:
    """A range in words; an end of the interval that it goes beyond is not named."""
    low, high = ends
    if low is None and high is None:
        return "everywhere"
    if low is None:
        return f"up to {high:.4g}"
    return f"from {low:.4g}" if high is None else f"{low:.4g} to {high:.4g}"


def _policies(found: Sensitivity) -> Grid:
    """The alternatives while costs are uncertain."""
    rows = tuple(
        (
            item.name,
            f"{item.cost:.4g}",
            "" if item is found.policies[0] else with_error(item.more, item.error),
            f"{item.cheapest:.0%} ({item.cheapest_low:.0%} to {item.cheapest_high:.0%})",
        )
        for item in found.policies
    )
    header = ("policy", "expected total cost", f"more than {OWN}", "cheapest with probability")
    caption = (
        f"While costs are uncertain: every policy, {OWN} too, decides by the expected costs. In "
        "brackets: the 95% interval, because the rows are a sample."
    )
    return Grid(header, rows, caption)
