"""The engine: how a decider takes rows to their stop, or one row by one step.

`run` takes all rows to their stop; `step` asks about one row what comes next. Both call the same
functions of the decider (`adacos.decision.Decider`), so a decision is in the code once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable, remaining_budget
from adacos.decision import BY_RULE, STOP, Decider, Decision, Rows, State, probability_at
from adacos.document.blocks import Grid, Plain, fragment
from adacos.families import family, family_of
from adacos.kernels.namespace import host, is_tensor, like, namespace
from adacos.typing import Bools, Floats, Ints

# Rows walked together: enough for long vectors, few enough to stay in the cache.
ROWS_AT_ONCE = 8192
# Encoded values of tensors walked together, 1 GiB of them: enough to keep a GPU busy between two
# decisions, each of which takes dozens of launches.
TENSOR_VALUES_AT_ONCE = 1 << 27


class Budget(NamedTuple, Generic[State]):
    """What rows may pay: nothing is acquired that would take a row beyond it.

    Attributes
    ----------
    ceiling : what a row may pay at most.
    costs : covariate costs.
    known : mask (rows, covariates) of what was known from the start.
    limit : gives a state of rows that can pay that much more, at most.
    """

    ceiling: float
    costs: CostTable
    known: Bools
    limit: Callable[[State, Floats], State]

    def left(self, order: Ints, rows: Ints) -> Floats:
        """What rows can still pay after acquiring in this order."""
        return remaining_budget(self.ceiling, self.costs.of_order(order, given=self.known[rows]))

    def payable(self, order: Ints, rows: Ints, wanted: Ints, available: Bools) -> Ints:
        """What rows can pay of the covariates (rows, k) that they want, in this order."""
        have, left = acquired_in(order) | self.known[rows], self.left(order, rows)
        each, wanted = np.arange(len(rows)), wanted.copy()
        for column in wanted.T:
            price = np.where(available[each, column], self.costs.of_next(have)[each, column], 0.0)
            column[price > left] = STOP
            had = np.flatnonzero((column != STOP) & available[each, column])
            have[had, column[had]] = True
            left[had] -= price[had]
        return compact_left(wanted)


class Trail(NamedTuple):
    """Where rows stopped: log-odds and set there, and what they acquired, in order, then -1.

    `rounds` counts how often they waited for results. `label` is the one that the decider fixed,
    `BY_RULE` where it fixed none. `waiting` holds the covariates (rows,
    covariates) for whose values a row waits, then -1; None where all values are there.
    """

    log_odds: Floats
    stage: Ints
    order: Ints
    rounds: Ints
    label: Ints
    waiting: Ints | None = None


@dataclass(frozen=True, repr=False)
class AcquisitionResult:
    """What a policy did with each row.

    Parameters
    ----------
    label : ndarray of shape (n_rows,)
        Class given to the row.
    probability : ndarray of shape (n_rows,) or (n_rows, n_classes)
        P(second class) when the row was classified; with three or more classes that of each.
    acquired : ndarray of bool of shape (n_rows, n_covariates)
        Mask of what was acquired.
    order : ndarray of int of shape (n_rows, n_covariates)
        Acquired covariates by position in order of acquisition, then -1.
    cost : ndarray of shape (n_rows,)
        Covariate cost paid, with what waiting for results cost.
    stage : ndarray of int of shape (n_rows,)
        Number of the set at which the row stopped (counted from 0), or the number of acquisitions
        for a policy without a set sequence.
    expected_cost : ndarray of shape (n_rows,)
        Covariate cost paid plus the expected misclassification cost at the stop.
    names : tuple of str
        Covariate names.

    Examples
    --------
    >>> from adacos import COSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> result = COSClassifier(costs).fit(X, y).acquire(X)
    >>> result
    AcquisitionResult(768 rows, 2.00 of 8 covariates and 2.00 paid per row)
    >>> result.covariates(0), float(result.cost[0])
    (('Age', 'BMI'), 2.0)
    """

    label: NDArray[Any]
    probability: Floats
    acquired: Bools
    order: Ints
    cost: Floats
    stage: Ints
    expected_cost: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        if not len(self):
            return "AcquisitionResult(0 rows)"
        return (
            f"AcquisitionResult({len(self)} rows, {self.acquired.sum() / len(self):.2f} of "
            f"{len(self.names)} covariates and {self.cost.mean():.2f} paid per row)"
        )

    def _repr_html_(self) -> str:
        if not len(self):
            return fragment([Plain(repr(self))])
        shares = [f"{share:.1%}" for share in host(self.acquired).mean(axis=0)]
        rows = tuple(zip(self.names, shares, strict=True))
        caption = (
            f"{len(self):,} rows. Per row: {self.cost.mean():.2f} paid, "
            f"{self.expected_cost.mean():.2f} expected in total."
        )
        return fragment([Grid(("covariate", "rows that acquire it"), rows, caption=caption)])

    def covariates(self, row: int) -> tuple[str, ...]:
        """Names acquired for one row, in order.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        tuple of str
            The names.
        """
        return tuple(self.names[i] for i in self.order[row] if i >= 0)

    def rows(self, selection: slice | Bools | Ints) -> AcquisitionResult:
        """Take the result of some of the rows.

        Parameters
        ----------
        selection : slice, mask or array of int
            The rows.

        Returns
        -------
        AcquisitionResult
            Their result.
        """
        return AcquisitionResult(
            **{
                f.name: getattr(self, f.name)[selection]
                for f in fields(AcquisitionResult)
                if f.name != "names"
            },
            names=self.names,
        )

    def probability_columns(self) -> dict[str, Floats]:
        """Give the probabilities as columns of a table.

        Returns
        -------
        dict of str to ndarray
            One column, probability, or with three or more classes probability_0, probability_1, …
            in their order.
        """
        return probability_columns(self.probability)

    def to_frame(self) -> Any:
        """Make a pandas data frame of it, one line per row, with what was acquired as text.

        pandas is no dependency of adacos; `pip install pandas` brings it.

        Returns
        -------
        pandas.DataFrame
            Columns label, probability, cost, expected_cost, stage and acquired; with three
            or more classes probability_0, probability_1, … in their order.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = pandas_module()
        return pandas.DataFrame(
            {
                "label": host(self.label),
                **{name: host(own) for name, own in self.probability_columns().items()},
                "cost": host(self.cost),
                "expected_cost": host(self.expected_cost),
                "stage": host(self.stage),
                "acquired": [", ".join(self.covariates(row)) for row in range(len(self))],
            }
        )


def pandas_module() -> Any:
    """pandas, which is no dependency."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas") from error
    return pandas


def probability_columns(probability: Floats) -> dict[str, Floats]:
    """Probabilities as columns of a table, see `AcquisitionResult.probability_columns`."""
    return family_of(probability).columns(probability, range(probability.shape[-1]), "_")


def run(
    decider: Decider[State],
    encoded: Floats,
    known: Bools | None = None,
) -> AcquisitionResult:
    """Every row walked to its stop; labels are 0, 1, …

    `known` is a mask of what is known from the start, for each row or for all of them alike;
    nothing is if it is None.
    """
    n_rows, n_covariates = len(encoded), len(decider.encoder.names)
    if known is None:
        known = np.zeros(n_covariates, dtype=np.bool_)
    available = ~namespace(encoded).isnan(encoded[:, like(encoded, decider.encoder.first)])
    trail = empty_trail(decider, encoded)
    # Rows with the same categories never seen walk together: what they show, they show at once.
    unseen = None if is_tensor(encoded) else decider.encoder.unseen(encoded)
    kinds = np.atleast_2d(known)
    if unseen is not None:
        kinds = np.column_stack([np.broadcast_to(kinds, unseen.shape), unseen])
    patterns, number = np.unique(kinds, axis=0, return_inverse=True)
    number = np.broadcast_to(number.ravel(), n_rows)
    opening = np.zeros(n_covariates, dtype=np.bool_)
    opening[decider.opening] = True
    # Complete rows have a quicker way than the others: they are taken separately.
    complete = available.all(axis=1)
    for kind, pattern in enumerate(patterns[:, :n_covariates]):
        for incomplete in (False, True):
            chosen = (complete != incomplete) & like(encoded, number == kind)
            rows = namespace(encoded).nonzero(chosen)[0]
            # What is missing is integrated out in numpy, wherever the other rows are.
            at_once = ROWS_AT_ONCE
            if is_tensor(encoded) and not incomplete:
                at_once = max(TENSOR_VALUES_AT_ONCE // encoded.shape[1], 1)
            for part in in_pieces(rows, at_once):
                values, there = encoded[part], available[part]
                if incomplete:
                    values, there = host(values), host(there)
                whole = Rows(values, there, pattern | opening, pattern, part)
                begin = decider.admitted(whole)
                walked = walk(
                    decider.begin(begin),
                    decider.decide,
                    decider.advance,
                    begin.available,
                    _opened(begin),
                    budget_of(decider, np.broadcast_to(pattern, (len(part), n_covariates))),
                    immediate=decider.costs.immediate,
                )
                for every, piece in zip(trail[:5], walked[:5], strict=True):
                    every[part] = like(encoded, piece)
    return result_of(decider, trail, np.atleast_2d(known))


def log_odds_given(decider: Decider[State], encoded: Floats, known: Bools) -> Floats:
    """Log-odds of rows of which exactly the values in a mask (rows, covariates) are known."""
    later, n_covariates = family(len(decider.classes)).later, len(decider.encoder.names)
    log_odds = np.empty((len(encoded), *later))
    for part in alike(known):
        pattern = known[part[0]]
        values = np.where(pattern[decider.encoder.source], encoded[part], np.nan)
        every = np.ones((len(part), n_covariates), dtype=np.bool_)
        state = decider.begin(Rows(values, every, pattern, pattern, part))
        log_odds[part] = decider.log_odds(state)
    return log_odds


def alike(*masks: Bools) -> Iterator[Ints]:
    """The places of rows of which masks (rows, any) hold the same, in pieces that are run together.

    Groups come in the order of their masks, and the rows of each in their own order.
    """
    patterns, number = np.unique(np.column_stack(masks), axis=0, return_inverse=True)
    for kind in range(len(patterns)):
        yield from in_pieces(np.flatnonzero(number.ravel() == kind))


def in_pieces(rows: Ints, at_once: int = ROWS_AT_ONCE) -> Iterator[Ints]:
    """Rows in pieces that are run together."""
    for first in range(0, len(rows), at_once):
        yield rows[first : first + at_once]


def empty_trail(decider: Decider[State], encoded: Floats) -> Trail:
    """A trail of these rows to be filled."""
    later, n_covariates = family(len(decider.classes)).later, len(decider.encoder.names)
    xp, device, n_rows = namespace(encoded), encoded.device, len(encoded)
    return Trail(
        xp.empty((n_rows, *later), dtype=xp.float64, device=device),
        xp.empty((n_rows,), dtype=xp.int64, device=device),
        xp.full((n_rows, n_covariates), STOP, dtype=xp.int64, device=device),
        xp.zeros((n_rows,), dtype=xp.int64, device=device),
        xp.full((n_rows,), BY_RULE, dtype=xp.int64, device=device),
    )


def budget_of(decider: Decider[State], known: Bools) -> Budget[State] | None:
    """What rows that know these covariates from the start may pay; None for any amount."""
    if decider.budget is None:
        return None
    return Budget(decider.budget, decider.costs, known, decider.limit)


def _opened(begin: Rows) -> Ints:
    """The order of rows that have acquired the opening and nothing else."""
    xp, available = namespace(begin.available), begin.available
    order: Ints = xp.full(available.shape, STOP, dtype=xp.int64, device=available.device)
    first = like(order, np.flatnonzero(begin.have & ~begin.known))
    if is_tensor(order):
        # Rows that are followed as tensors are complete.
        order[:, : len(first)] = first
    else:
        order[:, : len(first)] = compact_left(np.where(available[:, first], first, STOP))
    return order


def walk(
    state: State,
    decide: Callable[[State], Decision],
    advance: Callable[[State, Bools, Ints], State],
    available: Bools,
    order: Ints,
    budget: Budget[State] | None = None,
    present: Bools | None = None,
    immediate: Bools | None = None,
) -> Trail:
    """Let the rows of a state acquire until each has stopped.

    `order` holds what they acquired so far and is filled in place. What a row cannot pay from its
    budget is passed over. `present` is a mask of the values that are there, all of them if it is
    None; a row that wants another one waits for it. `immediate` is a mask of the covariates whose
    results are there at once; for others that it orders together, a row waits one round.
    """
    xp, device = namespace(order), order.device
    log_odds = xp.empty((0,), dtype=xp.float64, device=device)
    count = (order >= 0).sum(axis=1)
    stage, rounds, label = xp.zeros_like(count), xp.zeros_like(count), xp.full_like(count, BY_RULE)
    waiting = None if present is None else np.full(order.shape, STOP)
    live = xp.arange(len(order), device=device)
    while len(live):
        seen = state
        if budget is not None:
            seen = budget.limit(state, budget.left(order[live], live))
        decision = decide(seen)
        if len(log_odds) == 0:
            log_odds = xp.empty(decision.log_odds.shape, dtype=xp.float64, device=device)
        covariates = decision.covariates.reshape(len(live), -1)
        if budget is not None:
            covariates = budget.payable(order[live], live, covariates, available[live])
        going = covariates[:, 0] != STOP
        stops = xp.nonzero(~going)[0]
        if present is not None and waiting is not None:
            absent = among(available[live] & ~present[live], covariates)
            waiting[live[absent], : covariates.shape[1]] = covariates[absent]
            going &= ~absent
        stopped = live[stops]
        log_odds[stopped] = decision.log_odds[stops]
        if decision.label is not None:
            label[stopped] = decision.label[stops]
        if isinstance(decision.stage, int):
            stage[stopped] = decision.stage
        else:
            stage[stopped] = (count[live] if decision.stage is None else decision.stage)[stops]
        goes = xp.nonzero(going)[0]
        live, covariates = live[goes], covariates[goes]
        if immediate is not None:
            rounds[live] += among(available[live] & ~immediate, covariates)
        for column in covariates.T:
            rows, got = live, column
            if not is_tensor(order):
                # Rows that are followed as tensors are complete.
                had = (column != STOP) & available[live, column]
                rows, got = live[had], column[had]
            order[rows, count[rows]] = got
            count[rows] += 1
        if len(live):
            state = advance(seen, going, covariates)
    return Trail(log_odds, stage, order, rounds, label, waiting)


def among(mask: Bools, covariates: Ints) -> Bools:
    """Whether some of the covariates (rows, k) of each row are in its mask."""
    inside = np.take_along_axis(mask, covariates, axis=1) & (covariates != STOP)
    return np.asarray(inside.any(axis=1))


def compact_left(order: Ints) -> Ints:
    """Each row's covariates moved to the front, then -1."""
    listed = np.argsort(order < 0, axis=1, kind="stable")
    return np.take_along_axis(order, listed, axis=1)


def acquired_in(order: Ints) -> Bools:
    """Mask (rows, covariates) of what is listed in each row of an order."""
    xp = namespace(order)
    acquired: Bools = xp.zeros(order.shape, dtype=xp.bool, device=order.device)
    row, place = xp.nonzero(order != STOP)
    acquired[row, order[row, place]] = True
    return acquired


def result_of(decider: Decider[State], trail: Trail, known: Bools) -> AcquisitionResult:
    """The labels of rows that stopped so, and what they paid."""
    costs, rule = decider.costs, decider.rule
    acquired = acquired_in(trail.order)
    # Both sums run over arrays of one shape, so that they round alike: nothing acquired costs 0.
    given = None
    if known.any():
        given = namespace(acquired).broadcast_to(like(acquired, known), acquired.shape)
    paid = costs.of_order(trail.order, given=given)
    if costs.immediate is not None:
        paid = paid + costs.round_cost * trail.rounds
    label, risk = rule.answer(trail.log_odds, trail.label)
    return AcquisitionResult(
        label=label,
        probability=probability_at(trail.log_odds),
        acquired=acquired,
        order=trail.order,
        cost=paid,
        stage=trail.stage,
        expected_cost=paid + risk,
        names=costs.names,
    )


class Step(NamedTuple, Generic[State]):
    """The next step of rows: what each acquires (rows, k), then `STOP`, and its log-odds now.

    `label` is the one that the decider fixes if it stopped now, else `BY_RULE`. `state` and
    `decision` are what the last of them was decided by; of a single row its own.
    """

    covariates: Ints
    log_odds: Floats
    label: Ints
    state: State
    decision: Decision


def step(decider: Decider[State], rows: Rows, paid: Floats) -> Step[State]:
    """What comes next for rows that have the same covariates, and what they have paid.

    A covariate that a row does not have can be acquired unless it is unavailable or costs more than
    what is left of the budget. If the decider asks for an unavailable one, it is passed over.
    """
    rows, opening = decider.admitted(rows), np.asarray(decider.opening)
    n_rows, n_covariates = rows.available.shape
    pending, own_opening = opening[~rows.have[opening]], opening[~decider.lists[0][opening]]
    first = compact_left(np.where(rows.available[:, pending], pending, STOP))
    opens = (first != STOP).any(axis=1)
    covariates = np.full((n_rows, n_covariates), STOP)
    covariates[:, : len(pending)] = first
    log_odds, label = np.empty(0), np.full(n_rows, BY_RULE)
    state, live = decider.begin(rows), np.arange(n_rows)
    while True:
        seen = state
        if decider.budget is not None:
            seen = decider.limit(state, remaining_budget(decider.budget, paid[live]))
        decision = decider.decide(seen)
        now = decision.log_odds
        if np.isnan(now).any():
            # Of many rows that continue, a decider need not say what they would answer now.
            now = decider.log_odds(seen)
        log_odds = log_odds if len(log_odds) else np.empty((n_rows, *now.shape[1:]))
        log_odds[live] = now
        if decision.label is not None:
            label[live] = decision.label
        planned = decision.covariates.reshape(len(live), -1)
        if decider.costs.immediate is None:
            planned = planned[:, :1]
        there = np.take_along_axis(rows.available[live], planned, axis=1)
        wanted = compact_left(np.where(there, planned, STOP))
        ready = opens[live] | (wanted[:, 0] != STOP) | (planned[:, 0] == STOP)
        own = ready & ~opens[live]
        covariates[live[own], : wanted.shape[1]] = wanted[own]
        if ready.all():
            if opens[live].any() and not rows.have[own_opening].all():
                decision = decision._replace(covariates=covariates[live])
            return Step(covariates, log_odds, label, seen, decision)
        live, going = live[~ready], ~ready
        state = decider.advance(seen, going, planned[going])
