"""Which covariate to acquire next, by dynamic programming over all states.

A state is (S, x_S): what was acquired, and its values. With P(y, x_S) known,

    V(S, x_S) = min( min over label of E[C[y, label] | x_S],
                     min over i not in S of c_i + Σ_v P(x_i = v | x_S) V(S ∪ {i}, x_S ∪ v) ).

States form a table with one axis per covariate: one place per value and a last one for "not
acquired". W = P(x_S) · V is stored in place of V, which turns the sum over v into a plain sum along
an axis and needs no division. Sets S are worked off from the largest down, all x_S at once: with L
values each, (L + 1)^p states, and p L / (L + 1) additions for each on average.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.typing import Bools, Floats

Actions = NDArray[np.int8]

# The action of a state in which nothing more is acquired.
CLASSIFY = -1
# An acquisition must lower the expected cost by more than rounding, relative to the stakes.
ROUNDING = 1e-12


class StateTables(NamedTuple):
    """Tables over states.

    Attributes
    ----------
    marginal : P(y, x_S), y first.
    weighted_value : W = P(x_S) · V.
    action : the chosen action.
    going : the best covariate to acquire, whether or not it pays; `CLASSIFY` where none is left.
    continuing : P(y, x_S) times the expected cost of acquiring it when y is the class, y first,
        covariate costs counted with caution. Infinite where none is left.
    """

    marginal: Floats
    weighted_value: Floats
    action: Actions
    going: Actions
    continuing: Floats


def solve(
    joint: Floats,
    prices: Callable[[Bools], Floats],
    matrix: Floats,
    cautions: tuple[float, ...] = (1.0,),
) -> list[StateTables]:
    """Value and best action of every state for P(y, x), shape (classes, values of x_0, …).

    `prices` gives what each covariate costs once those in masks (sets, covariates) have been
    acquired, `matrix` the misclassification costs with the true class first. With a caution prices
    count that many times in what is chosen; V is what the plan costs all the same. Plans of several
    cautions are made at once: there are many small sets, on each of which little is computed.
    """
    sizes = joint.shape[1:]
    marginal = marginals(joint)
    labels = [np.tensordot(matrix[:, k], marginal, axes=1) for k in range(matrix.shape[1])]
    answered = matrix[:, np.argmin(labels, axis=0)] * marginal
    # Of each caution, first: what the plan costs by true class, by which it is chosen and judged at
    # other beliefs than a state's own; covariate costs count with caution.
    by_class = np.stack([answered] * len(cautions))
    continuing = np.full(by_class.shape, np.inf)
    value = np.stack([np.minimum.reduce(labels)] * len(cautions))
    action = np.full(value.shape, CLASSIFY, dtype=np.int8)
    going = action.copy()
    tolerance = ROUNDING * np.ptp(matrix)
    every, everything = slice(None), range(len(sizes))
    for n_acquired in reversed(everything):
        masks = _subsets(len(sizes), n_acquired)
        times = np.reshape(cautions, (-1, *(1,) * n_acquired))
        for mask, price in zip(masks, prices(masks), strict=True):
            # Where S is acquired and nothing else, as an index of the tables.
            place = [slice(n) if inside else n for n, inside in zip(sizes, mask, strict=True)]
            here, each = (every, *place), (every, every, *place)
            mass = marginal[here].sum(axis=0)
            ahead, next_one, paid = continuing[each], going[here], value[here].copy()
            least = np.full(paid.shape, np.inf)
            for i in np.flatnonzero(~mask):
                after = (every, *place[:i], slice(sizes[i]), *place[i + 1 :])
                axis = 1 + int(mask[:i].sum())
                split = times[:, None] * price[i] * marginal[here]
                split = split + by_class[(every, *after)].sum(axis=axis + 1)
                future = split.sum(axis=1)
                nearer = future < least - tolerance * mass
                np.copyto(least, future, where=nearer)
                np.copyto(next_one, np.int8(i), where=nearer)
                np.copyto(ahead, split, where=nearer[:, None])
                own = price[i] * mass + value[after].sum(axis=axis)
                np.copyto(paid, own, where=nearer)
            pays = least < by_class[each].sum(axis=1) - tolerance * mass
            action[here] = np.where(pays, next_one, CLASSIFY)
            by_class[each] = np.where(pays[:, None], ahead, by_class[each])
            value[here] = np.where(pays, paid, value[here])
    tables = zip(value, action, going, continuing, strict=True)
    return [StateTables(marginal, *each) for each in tables]


def _subsets(n: int, size: int) -> Bools:
    """All sets of `size` of n things, as masks."""
    members = list(combinations(range(n), size))
    masks = np.zeros((len(members), n), dtype=np.bool_)
    for mask, inside in zip(masks, members, strict=True):
        mask[list(inside)] = True
    return masks


def marginals(joint: Floats) -> Floats:
    """P(y, x_S) of every state: each axis is given one more place for its sum."""
    sizes = joint.shape[1:]
    table = np.empty((len(joint), *(n + 1 for n in sizes)))
    inside = [slice(None), *(slice(n) for n in sizes)]
    table[tuple(inside)] = joint
    for axis, n in enumerate(sizes, start=1):
        total = [*[slice(None)] * axis, n, *inside[axis + 1 :]]
        table[tuple(total)] = table[tuple(inside)].sum(axis=axis)
        inside[axis] = slice(None)
    return table
