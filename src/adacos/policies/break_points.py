"""Up to which amount of a cost a policy asks every row the same.

A complete row that walks along a sequence continues where a gain is positive
(`Decider.gain`). As long as all gains along its walk keep their signs it is asked the same: which
of them is the first to change its sign is found in a few steps. Other rows are walked at amounts
between two at which they are and are not asked the same, by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adacos.deciders.mixing import run_mixed
from adacos.decision import STOP, AnyDecider, Rows
from adacos.policies.recosting import OWN, Alternatives
from adacos.policies.uncertain_costs import at_amounts
from adacos.typing import Bools, Floats, Ints

# Amounts on each side of the stated one at which questions are looked at, the end among them. The
# set of COS can change and change back as an error cost rises.
_LOOKS, _MORE_LOOKS = 2, 8


@dataclass(frozen=True, eq=False)
class Asked:
    """What rows are asked at the stated costs.

    Attributes
    ----------
    every : the policy and the rows.
    order : what each row acquires, in order.
    steps : the states that complete rows pass, and which rows continue there; empty for a policy
        that has no gains.
    by_gain : mask of the rows in these states.
    """

    every: Alternatives
    order: Ints
    steps: tuple[tuple[Any, Bools], ...]
    by_gain: Bools

    @classmethod
    def at_stated_costs(cls, every: Alternatives) -> Asked:
        """Walk the rows at the stated costs."""
        decider, encoded = _decider_at(every, every.stated), every.rows.encoded
        complete = np.asarray(~np.isnan(encoded).any(axis=1))
        steps = () if decider.terms.mixture is not None else _steps(decider, encoded[complete])
        return cls(
            every,
            every.kept(OWN, every.stated).order,
            steps,
            complete if steps else np.zeros_like(complete),
        )

    def same_up_to(self, k: int, end: float, tolerance: float) -> float | None:
        """The amount of one cost towards an end up to which all are asked the same.

        None where that holds up to the end. A change that is undone between two of the amounts
        looked at is not seen.
        """
        cost, stated = self.every.costs[k], self.every.stated

        def amounts(amount: float) -> Floats:
            changed = stated.copy()
            changed[k] = amount
            return changed

        def changed(amount: float) -> Bools:
            order = self.every.kept(OWN, amounts(amount)).order
            return np.asarray((order != self.order).any(axis=1))

        looks, outer, rows = _LOOKS if self.steps else _MORE_LOOKS, cost.stated, np.zeros(0, bool)
        for share in np.arange(1, looks + 1) / looks:
            inner, outer = outer, cost.stated + share * (end - cost.stated)
            rows = changed(outer)
            if rows.any():
                break
        else:
            return None
        near = tolerance * (abs(cost.stated) or cost.high - cost.low)
        if (rows & self.by_gain).any():
            outer = _root(lambda amount: self._gains(amounts(amount)), inner, outer, near)
        others = np.flatnonzero(rows & ~self.by_gain)
        if self.every.policy.mixture_ is not None:
            # Which of two deciders a row has follows from its place.
            others = np.arange(len(rows))
        if not len(others) or self._same(amounts(outer), others):
            return outer
        return _bisected(lambda amount: self._same(amounts(amount), others), inner, outer, near)

    def _gains(self, amounts: Floats) -> Floats:
        """The gains of the decisions at the stated costs; negative where one is different."""
        decider, found = _decider_at(self.every, amounts), []
        for state, going in self.steps:
            gain = decider.gain(state)
            assert gain is not None
            found.append(np.where(going, gain, -gain))
        return np.concatenate(found)

    def _same(self, amounts: Floats, rows: Ints) -> bool:
        """Whether these rows are asked the same at other amounts."""
        order = run_mixed(_decider_at(self.every, amounts), self.every.rows.encoded[rows]).order
        return bool(np.array_equal(order, self.order[rows]))


def _decider_at(every: Alternatives, amounts: Floats) -> AnyDecider:
    own = every.deciders[OWN]
    assert not isinstance(own, int)
    return own.with_costs(at_amounts(every.policy.cost_table_, every.costs, amounts))


def _steps(decider: AnyDecider, encoded: Floats) -> tuple[tuple[Any, Bools], ...]:
    """The states that complete rows pass; none if the decider has no gains."""
    n_covariates = len(decider.encoder.names)
    have, known = np.zeros((2, n_covariates), dtype=np.bool_)
    have[decider.opening] = True
    available = np.ones((len(encoded), n_covariates), dtype=np.bool_)
    if decider.budget is not None or len(encoded) == 0:
        return ()
    state, steps = decider.begin(Rows(encoded, available, have, known)), []
    while True:
        if decider.gain(state) is None:
            return ()
        covariates = decider.decide(state).covariates.reshape(-1, 1)
        going = covariates[:, 0] != STOP
        steps.append((state, going))
        if not going.any():
            return tuple(steps)
        state = decider.advance(state, going, covariates[going])


def _root(function: Callable[[float], Floats], inner: float, outer: float, near: float) -> float:
    """The last amount from `inner` on at which all values of a function are seen positive.

    Each of them is taken to be a line between the two ends, of which the first to cross zero says
    where to look next: a little beyond, then a little before.
    """
    first, last, tries = function(inner), function(outer), 0
    if last.min() > 0:
        # A tie that rounds to one side here and to the other in a walk.
        return outer
    while abs(outer - inner) > near:
        falls = last <= 0
        share = float((first[falls] / (first[falls] - last[falls])).min())
        middle = inner + min(max(share, 0.0), 1.0) * (outer - inner)
        aside = np.copysign(near / 3, outer - inner)
        middle = middle + aside if tries % 2 == 0 else middle - aside
        if tries % 4 == 3 or not min(inner, outer) < middle < max(inner, outer):
            middle = (inner + outer) / 2
        values, tries = function(middle), tries + 1
        if values.min() > 0:
            inner, first = middle, values
        else:
            outer, last = middle, values
    return inner


def _bisected(holds: Callable[[float], bool], inner: float, outer: float, near: float) -> float:
    """The last amount from `inner` towards `outer` at which something was found to hold."""
    while abs(outer - inner) > near:
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if holds(middle) else (inner, middle)
    return inner
