"""Depth-limited regression trees that pay for covariates, and ensembles of them.

`grow_tree` minimises, level by level on binned columns,

    1/2 Σ_i w_i (r_i - h(x_i))² + charge · Σ (cost of the covariates the tree is first to use)

where a covariate already used by the ensemble, or by an earlier split of the tree, is free and a
member of a panel already opened costs what is left of it. An unknown value (NaN) follows the
default child of a split. `Forest` holds trees as flat arrays; walking rows down all its trees
gives their values and when each row first uses each covariate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adacos.costs import CostTable
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState
from adacos.typing import Bools, Floats, Ints

MAX_BINS = 255

# A covariate that a row does not use is first used at this time.
NEVER = np.iinfo(np.intp).max

# Smallest net gain of a split, relative to the mean loss of a row: less is rounding.
_SMALLEST_GAIN = 1e-10

# A side of a split with less weight is empty.
_MIN_WEIGHT = 1e-9

# Rows × trees walked together, and rows × columns counted together: large enough for long
# vectors, small enough for the cache.
_WALKED_AT_ONCE = 1 << 18
_BINNED_AT_ONCE = 1 << 15


class Bins(NamedTuple):
    """Columns cut into bins: value x of column j lies in bin k if edge[k-1] < x <= edge[k].

    `codes` is (columns, rows); an unknown value has the code `edges.shape[1]`, beyond every bin.
    `edges` is (columns, bins), padded by NaN.
    """

    codes: Ints
    edges: Floats

    def rows(self, selection: Ints) -> Bins:
        """The same bins for some of the rows."""
        return Bins(self.codes.take(selection, axis=1), self.edges)


def cut(encoded: Floats, max_bins: int = MAX_BINS) -> Bins:
    """Cut each column between its distinct values, or at quantiles if they are too many."""
    columns = []
    for values in encoded.T:
        distinct = np.unique(values[~np.isnan(values)])
        if len(distinct) > max_bins:
            known = np.sort(values[~np.isnan(values)])
            ranks = np.arange(1, max_bins) * len(known) // max_bins
            below = np.unique(known[ranks - 1])
            below = below[below < distinct[-1]]
            above = distinct[np.searchsorted(distinct, below) + 1]
        else:
            below, above = distinct[:-1], distinct[1:]
        # Rounding must not lift the middle of two neighbours onto the upper one.
        columns.append(np.where((middle := below / 2 + above / 2) < above, middle, below))
    width = max((len(edges) for edges in columns), default=0) + 1
    edges = np.full((len(columns), width), np.nan)
    for j, own in enumerate(columns):
        edges[j, : len(own)] = own
    codes = np.stack(
        [
            np.where(np.isnan(values), width, np.searchsorted(own, values))
            for values, own in zip(encoded.T, columns, strict=True)
        ]
    )
    return Bins(codes, edges)


class HeapTree(NamedTuple):
    """A tree as a heap: the children of node i are 2i + 1 and 2i + 2; a leaf has column -1.

    A value x goes left if x <= threshold, an unknown one if `missing_left`.
    """

    column: Ints
    threshold: Floats
    missing_left: Bools
    value: Floats


def not_yet_paid(costs: CostTable, used: Bools) -> Floats:
    """What each covariate costs beyond those in `used`; nothing for these."""
    return costs.of(np.eye(len(used), dtype=np.bool_), given=used)


def grow_tree(
    bins: Bins,
    gradient: Floats,
    weight: Floats,
    *,
    depth: int,
    source: Ints,
    costs: CostTable,
    charge: float,
    used: Bools,
    ridge: float = 0.0,
    min_weight: float = _MIN_WEIGHT,
) -> tuple[HeapTree, Ints]:
    """Grow one tree; returns it with the leaf of each row.

    Parameters
    ----------
    gradient, weight : w_i r_i and w_i of each row. A leaf's value is Σ gradient / (Σ weight +
        ridge), which for the gradient and curvature of a loss is its Newton step.
    source : covariate of each column.
    charge : price in units of the loss of one unit of covariate cost.
    used : covariates that are free; those the tree uses are added in place.
    min_weight : least weight of a leaf, above zero.
    """
    n_nodes = 2 ** (depth + 1) - 1
    column = np.full(n_nodes, -1, dtype=np.intp)
    threshold = np.zeros(n_nodes)
    missing_left = np.zeros(n_nodes, dtype=np.bool_)
    leaf = np.zeros(len(gradient), dtype=np.intp)
    rows = np.arange(len(gradient))
    place = np.zeros(len(rows), dtype=np.intp)
    nodes = np.zeros(1, dtype=np.intp)
    floor = _SMALLEST_GAIN * float(gradient @ gradient / weight.sum())
    for _ in range(depth):
        gain, edge, default = _best_splits(
            bins, gradient, weight, rows, place, len(nodes), ridge, min_weight
        )
        best = _choose(gain, floor, source, costs, charge, used)
        split = np.flatnonzero(best >= 0)
        if len(split) == 0:
            break
        own = best[split]
        column[nodes[split]] = own
        threshold[nodes[split]] = bins.edges[own, edge[split, own]]
        missing_left[nodes[split]] = default[split, own]
        if len(split) < len(nodes):
            going = best[place] >= 0
            rows, place = rows[going], place[going]
        at = best[place]
        code = bins.codes[at, rows]
        left = np.where(code == bins.edges.shape[1], default[place, at], code <= edge[place, at])
        child = 2 - left
        leaf[rows] = 2 * leaf[rows] + child
        renumbered = np.zeros(len(nodes), dtype=np.intp)
        renumbered[split] = 2 * np.arange(len(split))
        place = renumbered[place] + child - 1
        nodes = (2 * nodes[split, None] + np.array([1, 2])).ravel()
    denominator = np.bincount(leaf, weight, n_nodes) + ridge
    value = np.zeros(n_nodes)
    np.divide(np.bincount(leaf, gradient, n_nodes), denominator, out=value, where=denominator > 0)
    return HeapTree(column, threshold, missing_left, value), leaf


def _choose(
    gain: Floats, floor: float, source: Ints, costs: CostTable, charge: float, used: Bools
) -> Ints:
    """Column to split each node of a level on, or -1; `used` is updated in place.

    Covariates that must be paid are acquired first, the best bargain of all nodes before the next:
    what it pays for is free for the others.
    """
    chosen = np.full(len(gain), -1, dtype=np.intp)
    nodes = np.arange(len(gain))
    while True:
        net = gain if charge == 0 else gain - charge * not_yet_paid(costs, used)[source]
        best = net.argmax(axis=1)
        value = net[nodes, best]
        worthwhile = value > floor
        affording = np.flatnonzero(worthwhile & ~used[source[best]])
        if len(affording) == 0:
            chosen[worthwhile] = best[worthwhile]
            return chosen
        first = affording[value[affording].argmax()]
        chosen[first] = best[first]
        used[source[best[first]]] = True
        gain[first] = -np.inf


def best_stumps(bins: Bins, gradient: Floats, weight: Floats, ridge: float) -> Floats:
    """Gain of the best first split on each column, -inf where there is none."""
    rows = np.arange(len(gradient))
    gain, *_ = _best_splits(bins, gradient, weight, rows, 0 * rows, 1, ridge, _MIN_WEIGHT)
    return np.asarray(gain[0])


def _best_splits(
    bins: Bins,
    gradient: Floats,
    weight: Floats,
    rows: Ints,
    place: Ints,
    n_nodes: int,
    ridge: float,
    min_weight: float,
) -> tuple[Floats, Ints, Bools]:
    """For each node and column the gain of the best split, its edge and its default child.

    `place` is the node of each of `rows`. The gain is the fall of 1/2 Σ w (r - h)² + ridge/2 Σ h².
    """
    n_columns, n_bins = bins.edges.shape
    width = n_bins + 1
    sums = np.empty((2, n_nodes, n_columns, width))
    own = gradient[rows], weight[rows]
    at_once = max(_BINNED_AT_ONCE // len(rows), 1)
    for first in range(0, n_columns, at_once):
        codes = bins.codes[first : first + at_once]
        count = len(codes)
        key = codes.take(rows, axis=1)
        key += place * (count * width)
        key += (np.arange(count) * width)[:, None]
        for total, values in zip(sums, own, strict=True):
            totals = np.bincount(key.ravel(), np.tile(values, count), n_nodes * count * width)
            total[:, first : first + count] = totals.reshape(n_nodes, count, width)
    left = sums[..., :-1].cumsum(axis=-1)
    missing = sums[..., -1:]
    whole = left[..., -1:] + missing
    allowed_edge = ~np.isnan(bins.edges)

    def score(left: Floats) -> Floats:
        right = whole - left
        allowed = (np.minimum(left[1], right[1]) >= min_weight) & allowed_edge
        value = left[0] ** 2 / (left[1] + ridge) + right[0] ** 2 / (right[1] + ridge)
        return np.where(allowed, value, -np.inf)

    with np.errstate(divide="ignore", invalid="ignore"):
        value = score(left)
        if missing[1].any():
            other = score(left + missing)
            edge = np.maximum(value, other).argmax(axis=2)
            best, with_missing = _at(value, edge), _at(other, edge)
            best, default = np.maximum(best, with_missing), with_missing > best
        else:
            edge = value.argmax(axis=2)
            best, default = _at(value, edge), np.zeros(edge.shape, dtype=np.bool_)
        gain = 0.5 * (best - whole[0, ..., 0] ** 2 / (whole[1, ..., 0] + ridge))
    # Without unknown values in the node the heavier child is the default.
    none = missing[1, ..., 0] == 0
    default = np.where(none, 2 * _at(left[1], edge) >= whole[1, ..., 0], default)
    return gain, edge, default


def _at(values: Floats, edge: Ints) -> Floats:
    """Entry of the last axis that `edge` names."""
    flat = values.reshape(-1, values.shape[-1])
    return np.asarray(flat[np.arange(len(flat)), edge.ravel()].reshape(edge.shape))


@dataclass(frozen=True)
class Forest:
    """Trees as flat arrays over all their nodes.

    Attributes
    ----------
    column, threshold, missing_left, value : as in `HeapTree`; values may have a further axis.
    children : (nodes, 2) left and right child of each node; a leaf is its own child.
    roots : first node of each tree.
    depth : most splits on a path.
    source : covariate of each column.
    """

    column: Ints
    threshold: Floats
    missing_left: Bools
    value: Floats
    children: Ints
    roots: Ints
    depth: int
    source: Ints

    def walk(self, encoded: Floats) -> tuple[Floats, Ints]:
        """Value of each row in each tree, and when each row first uses each covariate.

        Time counts levels of trees: `depth` steps per tree. A row uses a covariate where a split
        of its path asks for it and its value is known; `NEVER` means not at all.
        """
        n_trees, n_covariates = len(self.roots), int(self.source.max()) + 1
        values = np.empty((len(encoded), n_trees, *self.value.shape[1:]))
        first_use = np.full((len(encoded), n_covariates), NEVER)
        rows = max(_WALKED_AT_ONCE // max(n_trees, 1), 1)
        for start in range(0, len(encoded), rows):
            part = slice(start, start + rows)
            values[part] = self._walk(np.ascontiguousarray(encoded[part]), first_use[part])
        return values, first_use

    def ask(self, seen: ObservedState) -> tuple[Floats, Ints]:
        """Value of each row in each tree with what was acquired, and the covariate needed next.

        The first split, tree after tree, that needs an available covariate not yet acquired asks
        for it; `STOP` where none does. Values take the default child of what was not acquired.
        """
        visible = np.where(seen.acquired[:, self.source], seen.values, np.nan)
        wanted = np.where(seen.acquired, False, seen.available)
        values, covariate = [], []
        rows = max(_WALKED_AT_ONCE // max(len(self.roots), 1), 1)
        for start in range(0, len(visible), rows):
            part = slice(start, start + rows)
            use = np.full(wanted[part].shape, NEVER)
            values.append(self._walk(np.ascontiguousarray(visible[part]), use, wanted[part]))
            first = use.argmin(axis=1)
            there = use[np.arange(len(use)), first] < NEVER
            covariate.append(np.where(there, first, STOP))
        return np.concatenate(values), np.concatenate(covariate)

    def _walk(self, encoded: Floats, first_use: Ints, wanted: Bools | None = None) -> Floats:
        """Values of the rows; fills in when each first uses a covariate that is there.

        With a mask `wanted`, when it first needs one of these, which are not there.
        """
        row = np.arange(len(encoded))[:, None]
        time = np.arange(len(self.roots)) * self.depth
        node = np.broadcast_to(self.roots, (len(encoded), len(self.roots)))
        times = first_use.reshape(-1)
        for level in range(self.depth):
            column = self.column[node]
            x = encoded[row, column]
            missing = np.isnan(x)
            asked = column >= 0
            asked &= ~missing if wanted is None else wanted[row, self.source[column]]
            place = (row * first_use.shape[1] + self.source[column])[asked]
            np.minimum.at(times, place, np.broadcast_to(time + level, node.shape)[asked])
            left = np.where(missing, self.missing_left[node], x <= self.threshold[node])
            node = self.children[node, np.where(left, 0, 1)]
        return self.value[node]


@dataclass(frozen=True, eq=False)
class ForestDecider(ObservedDecider):
    """A decider that acquires what the trees ask for; their values add up to the log-odds.

    Attributes
    ----------
    forest : the trees.
    constant : added to their values.
    slope, intercept : calibration of the sum.
    """

    forest: Forest
    constant: float = 0.0
    slope: float = 1.0
    intercept: float = 0.0

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        values, covariate = self.forest.ask(state)
        log_odds = self.slope * (self.constant + values.sum(axis=1)) + self.intercept
        return Decision(covariate, log_odds)


def plant(trees: Sequence[HeapTree], depth: int, source: Ints) -> Forest:
    """The forest of these trees, in this order."""
    n_nodes = 2 ** (depth + 1) - 1
    roots = np.arange(len(trees)) * n_nodes
    column = np.concatenate([tree.column for tree in trees])
    place = np.tile(np.arange(n_nodes), len(trees))
    root = np.repeat(roots, n_nodes)
    children = np.where(
        column[:, None] >= 0,
        (root + 2 * place)[:, None] + np.array([1, 2]),
        np.arange(len(column))[:, None],
    )
    return Forest(
        column=column,
        threshold=np.concatenate([tree.threshold for tree in trees]),
        missing_left=np.concatenate([tree.missing_left for tree in trees]),
        value=np.concatenate([tree.value for tree in trees]),
        children=children,
        roots=roots,
        depth=depth,
        source=source,
    )


def order_of(first_use: Ints) -> Ints:
    """Covariates of each row in order of first use, then -1."""
    listed = np.argsort(first_use, axis=1, kind="stable")
    used = np.take_along_axis(first_use, listed, axis=1) < NEVER
    return np.where(used, listed, -1)
