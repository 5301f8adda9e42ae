"""Nested covariate sets S_1 ⊂ S_2 ⊂ … ⊂ S_q = V along which a row is asked.

A `SetSequence` is an order of the covariates: S_1 holds the free ones, every later set adds the
next covariate of the order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adacos.costs import ROUNDING, CostTable
from adacos.kernels.class_risk import best_label, log_loss
from adacos.kernels.group_lasso import entry_order
from adacos.models.basis import AdditiveBasis, sequence_splines
from adacos.models.progress import report_progress
from adacos.tables.kinds import NUMERIC
from adacos.typing import Floats, Ints


@dataclass(frozen=True)
class SetSequence:
    """Sets S_1 ⊂ … ⊂ S_q = V as prefixes of one order.

    Attributes
    ----------
    order : all covariates in the order of acquisition, free ones first.
    n_free : number of covariates in S_1.
    """

    order: Ints
    n_free: int

    @property
    def sizes(self) -> Ints:
        """Number of covariates in each set."""
        return np.arange(self.n_free, len(self.order) + 1)

    def __len__(self) -> int:
        return len(self.order) - self.n_free + 1

    def set(self, i: int) -> Ints:
        """Covariates of the i-th set (counted from 0), in order of acquisition."""
        return self.order[: self.n_free + i]

    @property
    def rank(self) -> Ints:
        """Place of each covariate in the order."""
        rank = np.empty(len(self.order), dtype=np.intp)
        rank[self.order] = np.arange(len(self.order))
        return rank

    def masks(self) -> NDArray[np.bool_]:
        """Membership, shape (sets, covariates)."""
        return self.rank < self.sizes[:, None]

    def costs(self, costs: CostTable) -> Floats:
        """What each set costs, ordered at once and charged in the order of the sequence."""
        return costs.of_batch(self.masks(), rank=self.rank)


def payable_first(sequence: SetSequence, costs: CostTable, budget: float | None) -> SetSequence:
    """The sequence with what a budget pays for first, the rest after it; else the order stays.

    An expensive covariate that comes early would end every walk; later ones may still be acquired.
    """
    if budget is None:
        return sequence
    first: list[int] = sequence.set(0).tolist()
    rest: list[int] = []
    for k in sequence.order[sequence.n_free :].tolist():
        paid = costs.of_order(np.array([*first, k], dtype=np.intp))
        (first if paid <= budget * (1 + ROUNDING) else rest).append(k)
    return SetSequence(np.array([*first, *rest], dtype=np.intp), sequence.n_free)


def order_among(order: Ints, kept: NDArray[np.bool_]) -> Ints:
    """The order of some covariates, renumbered among them."""
    number = np.cumsum(kept) - 1
    return np.asarray(number[order[kept[order]]])


def group_lasso_sequence(
    basis: AdditiveBasis,
    encoded: Floats,
    y: Floats,
    weight: Floats,
    covariate_cost: Floats,
    n_classes: int = 2,
) -> SetSequence:
    """Order in which covariates enter the cost-weighted group-lasso path.

    Each covariate's B-spline columns, standardised, form a group with penalty factor
    c_i * sqrt(number of columns). The root makes groups of different size comparable; where all
    have the same size, as in the paper, it is absorbed by lambda. B-splines that no row reaches
    count too, so that numeric covariates are of one size. They are fewer where rows are few for
    many covariates, see `sequence_splines`. Free covariates are not penalised and
    make S_1; a constant covariate has nothing to offer and comes last. With three or more classes
    each is set against the others, and a covariate enters with the first path that it enters.
    """
    n_splines = sequence_splines(len(y), basis.kinds)
    columns, group = basis.standardised(encoded, weight, n_splines)
    free = np.flatnonzero(covariate_cost == 0)
    present, compact, size = np.unique(group, return_inverse=True, return_counts=True)
    size[[basis.kinds[i] == NUMERIC for i in present]] = n_splines
    order: list[int] = []
    if np.any(covariate_cost[present] > 0):
        penalty = covariate_cost[present] * np.sqrt(size)
        entered = (
            entry_order(columns, y, compact, penalty, sample_weight=weight).order
            if n_classes == 2
            else _first_entries(columns, y, compact, penalty, weight, n_classes)
        )
        order = [int(present[g]) for g in entered]
    left = [i for i in np.argsort(covariate_cost, kind="stable") if covariate_cost[i] > 0]
    order += [int(i) for i in left if i not in order]
    return SetSequence(np.array([*free, *order], dtype=np.intp), len(free))


def _first_entries(
    columns: Floats, y: Floats, group: Ints, penalty: Floats, weight: Floats, n_classes: int
) -> list[int]:
    """Groups by the largest λ at which they enter the path of one class against the others."""
    largest: dict[int, float] = {}
    for k in range(n_classes):
        path = entry_order(columns, (y == k).astype(float), group, penalty, sample_weight=weight)
        for g, level in zip(path.order, path.lam, strict=True):
            largest[int(g)] = max(float(level), largest.get(int(g), -np.inf))
    return sorted(largest, key=lambda g: (-largest[g], g))


def forward_sequence(
    costs: CostTable, y: Floats, weight: Floats, out_of_fold: Callable[[list[Ints]], list[Floats]]
) -> SetSequence:
    """Greedy order: each set adds the covariate with the least cross-validated total cost.

    `out_of_fold` gives the out-of-fold log-odds of the models of several sets at once. Cheap sets
    often give every row the same label; among covariates that tie in total cost the out-of-fold
    log-likelihood decides.
    """
    p = len(costs.covariates)
    order = [int(i) for i in np.flatnonzero(costs.covariates == 0)]
    n_free = len(order)
    while len(order) < p:
        left = [i for i in range(p) if i not in order]
        candidates = [np.array([*order, i], dtype=np.intp) for i in left]
        ranks = []
        for members, log_odds in zip(candidates, out_of_fold(candidates), strict=True):
            wrong = np.average(
                costs.matrix[y.astype(np.intp), best_label(log_odds, costs.matrix)], weights=weight
            )
            total = round(float(wrong + costs.of_order(members)), 9)
            ranks.append((total, float((weight * log_loss(log_odds, y)).sum())))
        order.append(left[ranks.index(min(ranks))])
        report_progress("forward step", len(order) - n_free, p - n_free)
    return SetSequence(np.array(order, dtype=np.intp), n_free)
