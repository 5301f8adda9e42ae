"""What a covariate, a panel and a wrong answer cost.

`Costs` is what the user states: covariate costs by name or by position, panels by name, and the
misclassification costs. `CostTable` is the same bound to the columns of one table: arrays only.
A panel is a set of covariates of which the first member acquired pays its full cost and every later
member its discounted cost: its cost less the one that all share (one blood draw, say), or a cost of
its own. Where the discounts differ, a set costs more or less by the member that comes first: what
was acquired is charged in its order of acquisition, and a set without an order in its cheapest one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.error_costs import decision_names, error_costs, protecting, warn_of_never_cheapest
from adacos.exceptions import InvalidInputError
from adacos.kernels.decisions import cheapest_somewhere
from adacos.kernels.namespace import like, namespace, put_along, sum_where
from adacos.typing import Bools, Fields, Floats
from adacos.validation import (
    choices,
    covariate_costs,
    one_cost,
    several,
)

# Share of a ceiling by which a sum of costs may exceed it by rounding.
ROUNDING = 1e-9
# Shared cost and members, or members with their discounted costs.
Panel = tuple[float, tuple[str | int, ...]] | dict[str | int, float]


class Costs:
    """Covariate costs, panels and misclassification costs.

    A panel is a set of covariates of which the first member acquired pays its full cost, every
    later member its discounted cost: its cost less a shared one, or a cost of its own.

    Parameters
    ----------
    covariates : mapping of str to float, array-like of float or None, default=None
        Cost of each covariate, by name (a pandas series with names too) or in column order. None
        makes every covariate free.
    false_positive : float or None, default=None
        Cost of answering 1 when the class is 0, c01 in the paper. Where neither error has a cost,
        each costs 1; `fit` refuses one of the two without the other.
    false_negative : float or None, default=None
        Cost of answering 0 when the class is 1, c10 in the paper. A target recall takes its place.
    misclassification : array-like of shape (n_classes, n_classes) or None, default=None
        The whole matrix C[true class, label] in place of these two, classes in their order; three
        or more classes need it. Entries may be negative, but a wrong label must cost more than
        the right one. With `decisions` of shape (n_classes, n_decisions).
    decisions : sequence of str or None, default=None
        What may be decided, where that is not which class it is: names for the columns of
        `misclassification`, such as "treat", "refer" and "discharge". `predict` then gives these.
    protects : mapping of class to sequence of str or None, default=None
        Which decisions protect the rows of a class. A recall of the class counts these; a target
        recall needs them.
    panels : mapping of str to (float, sequence of str or int) or to mapping, default=None
        For each panel the shared cost, which is part of each member's cost, and its members, by
        name or position; or the members with what each costs once another has been paid.
    round_cost : float, default=0.0
        Cost of waiting for results. What is ordered together returns together, and waits once.
    immediate : collection of str or int, default=()
        Covariates whose results are there at once, by name or position. So are those of free ones.

    Attributes
    ----------
    covariates : dict, tuple or None
        The covariate costs, as given.
    matrix : ndarray of shape (n_classes, n_classes) or (n_classes, n_decisions)
        C[true class, label].
    decisions : tuple of str or None
        Names of the columns; None for the classes.
    protects : dict
        Decisions that protect each class, as given.
    panels : dict
        Shared cost and members of each panel, or a dict of members and discounted costs.

    Raises
    ------
    InvalidInputError
        If a cost is negative or not finite, or not 0 and not between 1e-50 and 1e50 in size, the
        matrix does not favour right answers, or a panel has fewer than two members.

    Notes
    -----
    The costs of section 2 of the paper, where they are written c_i and c_{y,y*}. Panels are not in
    the paper.

    Examples
    --------
    >>> from adacos import Costs
    >>> costs = Costs({"glucose": 17.61, "insulin": 22.78, "age": 1.0},
    ...               false_positive=100, false_negative=1000,
    ...               panels={"blood": (2.10, ["glucose", "insulin"])})
    >>> costs.of(["glucose", "insulin"])
    38.29
    >>> costs.of(["insulin"], given=["glucose"])
    20.68

    Discounts may differ between members; then the order of acquisition matters:

    >>> costs = Costs({"biopsy": 90.0, "stain": 60.0},
    ...               panels={"tissue": {"biopsy": 80.0, "stain": 5.0}})
    >>> costs.of(["biopsy", "stain"]), costs.of(["stain", "biopsy"]), costs.of({"stain", "biopsy"})
    (95.0, 140.0, 95.0)

    More decisions than classes, at a cost for each true class:

    >>> costs = Costs({"glucose": 17.61}, decisions=("discharge", "refer", "treat"),
    ...               misclassification=[[0, 20, 100], [1000, 120, 50]])
    >>> costs.matrix.shape
    (2, 3)
    """

    # What a model file holds, by type.
    saved_fields: ClassVar[Fields] = {
        "covariates": dict[Any, float] | tuple[float, ...] | None,
        "matrix": Floats,
        "panels": dict[Any, Panel],
        "round_cost": float,
        "immediate": tuple[str | int, ...],
        "decisions": tuple[str, ...] | None,
        "protects": dict[Any, tuple[str, ...]],
        "_false_positive_given": bool,
        "_false_negative_given": bool,
    }
    round_cost: float = 0.0  # not in older model files
    immediate: tuple[str | int, ...] = ()
    decisions: tuple[str, ...] | None = None
    protects: Mapping[Any, tuple[str, ...]] = MappingProxyType({})
    _false_positive_given: bool = True

    def __init__(
        self,
        covariates: Mapping[str, float] | ArrayLike | None = None,
        *,
        false_positive: float | None = None,
        false_negative: float | None = None,
        misclassification: ArrayLike | None = None,
        decisions: Sequence[str] | None = None,
        protects: Mapping[Any, Sequence[str]] | None = None,
        panels: Mapping[str, tuple[float, Sequence[str | int]] | Mapping[Any, float]] | None = None,
        round_cost: float = 0.0,
        immediate: Collection[str | int] = (),
    ) -> None:
        self.covariates = covariate_costs(covariates)
        self.matrix = error_costs(false_positive, false_negative, misclassification, decisions)
        self.decisions = decision_names(decisions, self.matrix)
        self.protects = protecting(protects, self.decisions)
        if self.decisions is not None:
            warn_of_never_cheapest(self.decisions, self.matrix)
        self.panels = _checked_panels(panels)
        self.round_cost = one_cost("round_cost", round_cost)
        self.immediate = several("immediate", immediate, "['age', 'sex']")
        self._false_positive_given = false_positive is not None or misclassification is not None
        self._false_negative_given = false_negative is not None or misclassification is not None

    @property
    def false_negative_given(self) -> bool:
        """Whether the cost of a false negative was stated, rather than left at its default."""
        return self._false_negative_given

    @property
    def unstated(self) -> tuple[str, ...]:
        """Names of the error costs that were left at their default of 1."""
        stated = self._false_positive_given, self._false_negative_given
        names = zip(("false_positive", "false_negative"), stated, strict=True)
        return tuple(name for name, given in names if not given)

    def with_misclassification(
        self, matrix: ArrayLike, decisions: Sequence[str] | None = None
    ) -> Costs:
        """Combine the same covariate costs and panels with another misclassification matrix.

        Parameters
        ----------
        matrix : array-like of shape (n_classes, n_classes) or (n_classes, n_decisions)
            C[true class, label].
        decisions : sequence of str, default=None
            Names of its columns, where they are decisions and other ones than those of these costs.

        Returns
        -------
        Costs
            New costs; these stay as they are.
        """
        made = copy(self)
        named = decisions or self.decisions
        made.matrix = error_costs(None, None, matrix, named)
        made.decisions = decision_names(named, made.matrix)
        made._false_positive_given = made._false_negative_given = True
        return made

    def without_false_negative(self) -> Costs:
        """Combine the same costs with no cost of a false negative, of two classes.

        Returns
        -------
        Costs
            New costs; these stay as they are.
        """
        made = copy(self)
        made.matrix = self.matrix.copy()
        made.matrix[1, 0] = made.matrix[1, 1] + 1.0
        made._false_negative_given = False
        return made

    def matrix_for(self, n_classes: int) -> Floats:
        """Misclassification costs for a number of classes.

        Parameters
        ----------
        n_classes : int
            The number of classes.

        Returns
        -------
        ndarray of shape (n_classes, n_classes) or (n_classes, n_decisions)
            The matrix as given. Where every error of two classes costs 1, as it does when nothing
            was said, so does every error of more.

        Raises
        ------
        InvalidInputError
            If the costs are those of another number of classes.
        """
        if len(self.matrix) == n_classes:
            return self.matrix
        if self.decisions is None and np.array_equal(self.matrix, 1.0 - np.eye(2)):
            return 1.0 - np.eye(n_classes)
        rule = f"must say what each error costs between the {n_classes} classes of y"
        received = f"costs for {len(self.matrix)} classes"
        remedy = f"Pass Costs(..., misclassification=C), C of {n_classes} rows and columns."
        raise InvalidInputError("costs", rule, received, remedy)

    def bind(self, names: Sequence[str], n_classes: int = 2) -> CostTable:
        """Bind these costs to the columns of a table.

        Parameters
        ----------
        names : sequence of str
            The columns, in order.
        n_classes : int, default=2
            The number of classes.

        Returns
        -------
        CostTable
            The costs as arrays in this order.

        Raises
        ------
        InvalidInputError
            If costs and columns or classes do not match, or a panel names a column that is not
            there.
        """
        names, (matrix, decisions) = list(names), self._taken(n_classes)
        if self.covariates is None:
            values = np.zeros(len(names))
        elif isinstance(self.covariates, dict):
            there = set(names)
            unknown = [name for name in self.covariates if name not in there]
            if unknown:
                raise InvalidInputError(
                    "costs",
                    "every covariate cost must belong to a column",
                    unknown,
                    choices(map(str, unknown), names, "The columns are")
                    + " Correct the name, or leave the cost out.",
                )
            missing = [name for name in names if name not in self.covariates]
            if missing:
                raise InvalidInputError(
                    "costs",
                    "every column needs a covariate cost",
                    f"none for {missing}",
                    "Add their costs (0 if they are free) or drop the columns.",
                )
            values = np.array([self.covariates[name] for name in names])
        else:
            values = np.array(self.covariates, dtype=np.float64)
            if len(values) != len(names):
                raise InvalidInputError(
                    "costs",
                    f"there must be one covariate cost per column ({len(names)})",
                    f"{len(values)} costs",
                    "Give the costs in column order, or by name.",
                )
        panel, shared, excess = _bound_panels(self.panels, values, names)
        immediate = values == 0
        immediate[[_position(item, names, "immediate") for item in self.immediate]] = True
        waits = immediate if self.round_cost > 0 else None
        return CostTable(
            tuple(names), values, panel, shared, matrix, excess, self.round_cost, waits, decisions
        )

    def _taken(self, n_classes: int) -> tuple[Floats, tuple[str, ...] | None]:
        """Costs and names of the decisions that can be the cheapest, see `CostTable.decisions`."""
        matrix = self.matrix_for(n_classes)
        if self.decisions is None or self.protects:
            # With a target recall others may be taken, too.
            return matrix, self.decisions
        taken = cheapest_somewhere(matrix)
        return np.ascontiguousarray(matrix[:, taken]), tuple(self.decisions[d] for d in taken)

    def of(self, covariates: Collection[str | int], given: Collection[str | int] = ()) -> float:
        """Cost of acquiring some covariates when others have been acquired already.

        Parameters
        ----------
        covariates : collection of str or int
            What is acquired, by name or position: a sequence in its order; a set, which has none,
            in its cheapest order.
        given : collection of str or int, default=()
            What has been acquired before: it is not paid again, and panels count it.

        Returns
        -------
        float
            The covariate cost, rounded to ten digits.
        """
        if self.covariates is None:
            return 0.0
        names = (
            list(self.covariates)
            if isinstance(self.covariates, dict)
            else [str(i) for i in range(len(self.covariates))]
        )
        table = self.bind(names, len(self.matrix))
        before = np.zeros(len(names), dtype=np.bool_)
        before[[_position(item, names, "given") for item in given]] = True
        order = np.array([_position(item, names, "covariates") for item in covariates], np.intp)
        if isinstance(covariates, Sequence):
            return round(float(table.of_order(order, given=before)), 10)
        after = before.copy()
        after[order] = True
        return round(float(table.of(after, given=before)), 10)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Costs) and (
            self.covariates == other.covariates
            and self.panels == other.panels
            and bool(np.array_equal(self.matrix, other.matrix))
            and self.unstated == other.unstated
            and (self.decisions, dict(self.protects)) == (other.decisions, dict(other.protects))
            and (self.round_cost, self.immediate) == (other.round_cost, other.immediate)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        wrong = f", misclassification={self.matrix.tolist()}"
        if self.decisions is not None:
            wrong += f", decisions={self.decisions}"
            wrong += f", protects={dict(self.protects)}" if self.protects else ""
        elif len(self.matrix) == 2 and not np.diag(self.matrix).any():
            amounts = {"false_positive": self.matrix[0, 1], "false_negative": self.matrix[1, 0]}
            stated = [f", {k}={v:g}" for k, v in amounts.items() if k not in self.unstated]
            wrong = "".join(stated)
        panels = f", panels={self.panels}" if self.panels else ""
        rounds = f", round_cost={self.round_cost:g}" if self.round_cost else ""
        rounds += f", immediate={self.immediate}" if self.immediate else ""
        return f"Costs({self.covariates}{wrong}{panels}{rounds})"


@dataclass(frozen=True)
class CostTable:
    """Costs bound to columns: arrays over covariates, and sums over sets of them.

    Attributes
    ----------
    names, covariates : columns and their covariate costs.
    panel : number of each covariate's panel, -1 for none.
    shared : of each panel what every later member is spared: the least discount of its members.
    matrix : C[true class, label].
    excess : by how much each covariate's discount exceeds the shared one; None if none does.
    round_cost : cost of waiting for what is ordered together.
    immediate : mask of the covariates that are not waited for; None if waiting costs nothing.
    decisions : names of the columns of the matrix, None for the classes; those that can be the
        cheapest, of two classes from the least probable second class to the most probable, or all
        as stated if it was said which protect a class.
    """

    names: tuple[str, ...]
    covariates: Floats
    panel: NDArray[np.intp]
    shared: Floats
    matrix: Floats
    excess: Floats | None = None
    round_cost: float = 0.0
    immediate: Bools | None = None
    decisions: tuple[str, ...] | None = field(default=None, metadata={"digested_if_given": True})

    def waiting(self, ordered: Bools) -> Floats:
        """Cost of waiting for covariates that are ordered together, a mask over the last axis."""
        late = ordered & (True if self.immediate is None else ~self.immediate)
        return np.asarray(self.round_cost * late.any(axis=-1))

    def of_batch(self, acquired: Bools, given: Bools | None = None, rank: Any = None) -> Floats:
        """Cost of ordering together the covariates in `acquired` beyond those in `given`."""
        new = acquired if given is None else acquired & ~given
        return self.of(acquired, given, rank) + self.waiting(new)

    def of(self, acquired: Bools, given: Bools | None = None, rank: Any = None) -> Floats:
        """Cost of the covariates in `acquired` beyond those in `given`.

        Both are masks whose last axis runs over covariates; leading axes broadcast. `rank` says
        which of the acquired come earlier (less is earlier, likewise broadcast); it matters where
        the members of a panel have different discounts. Without it they come in the cheapest order.
        """
        total = self._paid(acquired if given is None else acquired | given)
        total = total if given is None else total - self._paid(given)
        return total if self.excess is None else total - self._spared(acquired, given, rank)

    def of_order(self, order: NDArray[np.intp], given: Bools | None = None) -> Floats:
        """Cost of orders of acquisition: covariates along the last axis, then -1."""
        rank = rank_in(order, len(self.names))
        return self.of(rank < len(self.names), given, rank)

    def of_next(self, acquired: Bools) -> Floats:
        """Cost of each covariate as the next one after `acquired`, of the same shape."""
        if not len(self.shared):
            return np.broadcast_to(self.covariates, acquired.shape)
        before = acquired[..., None, :]
        return self.of(before | np.eye(len(self.names), dtype=np.bool_), given=before)

    @property
    def discount(self) -> Floats:
        """What each covariate is spared once another member of its panel has been paid."""
        common: Floats = np.append(self.shared, 0.0)[self.panel]
        return common if self.excess is None else common + self.excess

    def scaled(self, factor: float) -> CostTable:
        """The costs with every covariate cost multiplied by a factor."""
        if factor == 1.0:
            return self
        return replace(
            self,
            covariates=factor * self.covariates,
            shared=factor * self.shared,
            excess=None if self.excess is None else factor * self.excess,
            round_cost=factor * self.round_cost,
        )

    def only(self, kept: Bools) -> CostTable:
        """The costs of some of the columns."""
        return CostTable(
            tuple(name for name, inside in zip(self.names, kept, strict=True) if inside),
            self.covariates[kept],
            self.panel[kept],
            self.shared,
            self.matrix,
            None if self.excess is None else self.excess[kept],
            self.round_cost,
            None if self.immediate is None else self.immediate[kept],
            self.decisions,
        )

    def _paid(self, acquired: Bools) -> Floats:
        paid: Floats = sum_where(acquired, self.covariates)
        for number, amount in enumerate(self.shared):
            members = acquired[..., like(acquired, self.panel == number)].sum(axis=-1)
            paid = paid - namespace(members).clip(members - 1, 0, len(self.names)) * float(amount)
        return paid

    def _spared(self, acquired: Bools, given: Bools | None, rank: Any) -> Floats:
        """What is spared beyond the shared costs: each panel's excesses but that of its first."""
        assert self.excess is not None
        given = np.zeros_like(acquired) if given is None else given
        new = acquired & ~given
        first = np.broadcast_to(self.excess if rank is None else rank, new.shape)
        spared: Floats = new @ self.excess
        for number in np.unique(self.panel[self.panel >= 0]):
            own = self.panel == number
            among = np.where(new[..., own], first[..., own], np.inf).argmin(axis=-1)
            opens = new[..., own].any(axis=-1) & ~given[..., own].any(axis=-1)
            spared = spared - np.where(opens, self.excess[own][among], 0.0)
        return spared


def rank_in(order: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Place of each of n covariates in orders of acquisition, which end in -1; n where in none."""
    xp = namespace(order)
    rank = xp.full((*order.shape[:-1], n + 1), n, dtype=xp.int64, device=order.device)
    places = xp.broadcast_to(like(order, np.arange(order.shape[-1])), order.shape)
    # What is -1 falls into a place of its own, past the last covariate.
    put_along(rank, order, places)
    ranks: NDArray[np.intp] = rank[..., :n]
    return ranks


def remaining_budget(ceiling: float, paid: Floats) -> Floats:
    """What can still be paid below a ceiling; a sum that exceeds it by rounding only does not."""
    return np.maximum(ceiling * (1 + ROUNDING) - paid, 0.0)


def total_of(paid: Floats, true: NDArray[Any], label: NDArray[Any], matrix: Floats) -> Floats:
    """Total cost: covariate cost paid plus C[true class, label], classes as 0, 1, …

    The arrays broadcast against each other.
    """
    return np.asarray(paid + matrix[true.astype(np.intp), label.astype(np.intp)])


def _checked_panels(panels: Any) -> dict[str, Panel]:
    checked: dict[str, Panel] = {}
    if panels is not None and not isinstance(panels, Mapping):
        raise InvalidInputError(
            "panels",
            "must be a mapping from panel name to (shared cost, members)",
            panels,
            "For example panels={'blood': (2.10, ['glucose', 'insulin'])}.",
        )
    for title, content in (panels or {}).items():
        name = f"panels[{title!r}]"
        try:
            amount, listed = (None, content) if isinstance(content, Mapping) else content
            members = tuple(listed)
        except (TypeError, ValueError):
            raise InvalidInputError(
                name,
                "must be (shared cost, members), or a mapping from member to discounted cost",
                content,
                "For example panels={'blood': (2.10, ['glucose', 'insulin'])}.",
            ) from None
        if isinstance(listed, str) or len(set(members)) != len(members) or len(members) < 2:
            raise InvalidInputError(
                name,
                "needs at least two different members",
                listed,
                "List the names of the covariates that share the cost.",
            )
        if isinstance(content, Mapping):
            checked[str(title)] = {
                member: one_cost(f"{name}[{member!r}]", cost) for member, cost in content.items()
            }
        else:
            checked[str(title)] = (one_cost(f"{name} shared cost", amount), members)
    return checked


def _bound_panels(
    panels: Mapping[str, Panel], values: Floats, names: list[str]
) -> tuple[NDArray[np.intp], Floats, Floats | None]:
    """Panel of each column, shared cost of each panel, and excess discounts, see `CostTable`."""
    panel = np.full(len(names), -1, dtype=np.intp)
    shared, excess = np.zeros(len(panels)), np.zeros(len(names))
    for number, (title, content) in enumerate(panels.items()):
        parameter = f"panels[{title!r}]"
        listed = content if isinstance(content, dict) else content[1]
        members = [_position(member, names, parameter) for member in listed]
        for position in members:
            if panel[position] >= 0:
                raise InvalidInputError(
                    parameter,
                    "a covariate may belong to one panel only",
                    names[position],
                    "Merge the panels or drop the member from one of them.",
                )
            panel[position] = number
        own = values[members]
        if isinstance(content, dict):
            discount = own - np.array(list(content.values()))
            rule = "a member must not cost more once another has been paid"
        else:
            discount = np.full(len(own), content[0])
            rule = "the shared cost is part of each member's cost and cannot exceed it"
        wrong = np.flatnonzero((discount < 0) | (discount > own))
        for k in wrong[:1]:
            later = "" if isinstance(content, dict) else f"shared {content[0]:g}, "
            later += f"{names[members[k]]} costs {own[k]:g}"
            later += f", then {own[k] - discount[k]:g}" if isinstance(content, dict) else ""
            remedy = "Give each member the cost of acquiring it alone."
            raise InvalidInputError(parameter, rule, later, remedy)
        shared[number] = discount.min()
        excess[members] = discount - shared[number]
    # Discounts that differ by rounding only are one discount.
    excess[excess <= 1e-9 * values] = 0.0
    return panel, shared, excess if excess.any() else None


def _position(item: str | int, names: list[str], parameter: str) -> int:
    if isinstance(item, str) and item in names:
        return names.index(item)
    whole = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
    if whole and 0 <= int(item) < len(names):
        return int(item)
    raise InvalidInputError(
        parameter,
        "must name columns of the table",
        item,
        choices([str(item)], names, "The columns are"),
    )
