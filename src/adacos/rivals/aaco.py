"""AACO (Valancius, Lennon, Oliva 2024): the acquisition conditioned oracle.

At values x_A the training rows nearest to them in A stand for what the row may hold. For a set
B ⊇ A they give the mean loss of a classifier that sees B; with the cost of B \\ A that is the
plan's expected total cost. The row acquires one member of the best plan, and plans again.

Classifiers are additive models of sets of covariates, and the neighbours' loss is that of models
which did not see the neighbour. There are models of all sets, or of a pool of them: a plan is then
judged by the largest set of the pool within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs, CostTable, total_of
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.engine import acquired_in, walk
from adacos.kernels.bayes_risk import label_of
from adacos.kernels.folds import stratified_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES
from adacos.models.basis import AdditiveBasis
from adacos.models.progress import report_progress
from adacos.models.set_fits import SetFits, prepare
from adacos.policies.base import BasePolicy
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, each, whole

Codes = NDArray[np.int8]

# Values are compared in this number of steps to a standard deviation, up to eight deviations.
_STEPS, _FURTHEST = 16, 127
# Rows whose distances are held at the same time.
_ROWS_AT_ONCE = 256
# A plan must save more than this share of the misclassification costs: rounding is no reason.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Neighbors:
    """Training rows, and what models that did not see them answer.

    Attributes
    ----------
    codes : (rows, encoded columns) rounded values.
    y : classes, 0 or 1.
    label : (rows, sets) out-of-fold answer of each set's model.
    sets : (sets, covariates) membership, from the empty set to larger ones; of one size the better
        model comes later.
    source : covariate of each encoded column.
    k : number of neighbours.
    """

    codes: Codes
    y: Codes
    label: Codes
    sets: Bools
    source: Ints
    k: int

    def rows(self, selection: Bools) -> Neighbors:
        """Some of the rows."""
        return replace(
            self,
            codes=self.codes[selection],
            y=self.y[selection],
            label=self.label[selection],
            k=min(self.k, int(selection.sum())),
        )

    def model_of(self, masks: Bools) -> Ints:
        """Number of the largest set inside each mask (masks, covariates)."""
        inside = masks.astype(np.float32) @ self.sets.T.astype(np.float32) == self.sets.sum(axis=1)
        last: Ints = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return last

    def losses(self, codes: Codes, acquired: Bools, matrix: Floats) -> Floats:
        """Mean loss (rows, sets) of each set's model over the neighbours in `acquired`.

        Neighbours are counted by class and answer, so that the sums are exact in any order.
        """
        columns = np.flatnonzero(acquired[self.source])
        distance = np.zeros((len(codes), len(self.codes)), dtype=np.int32)
        for column in columns:
            step = codes[:, column, None].astype(np.int32) - self.codes[:, column]
            distance += step * step
        # What is as near as the k-th is a neighbour too.
        reach = np.partition(distance, self.k - 1, axis=1)[:, self.k - 1, None]
        near = (distance <= reach).astype(np.float32)
        total = np.zeros((len(codes), self.label.shape[1]))
        for y in (0, 1):
            own = near[:, self.y == y]
            positive = (own @ self.label[self.y == y].astype(np.float32)).astype(np.float64)
            count = own.sum(axis=1, dtype=np.float64)[:, None]
            total += matrix[y, 1] * positive + matrix[y, 0] * (count - positive)
        return np.asarray(total / near.sum(axis=1, dtype=np.float64)[:, None])

    def plan(self, seen: ObservedState, costs: CostTable) -> tuple[Ints, Ints]:
        """Covariate to acquire next (or `STOP`), and the number of the model that would answer.

        The values of `seen` are codes.
        """
        covariate = np.full(len(seen.values), STOP)
        model = np.empty(len(seen.values), dtype=np.intp)
        patterns, number = np.unique(seen.acquired, axis=0, return_inverse=True)
        for which, acquired in enumerate(patterns):
            every = np.flatnonzero(number.ravel() == which)
            model[every] = self.model_of(acquired[None])[0]
            for first in range(0, len(every), _ROWS_AT_ONCE):
                rows = every[first : first + _ROWS_AT_ONCE]
                covariate[rows] = self._next(
                    seen.values[rows], seen.available[rows], acquired, costs
                )
        return covariate, model

    def _next(self, codes: Codes, available: Bools, acquired: Bools, costs: CostTable) -> Ints:
        """Next covariate of rows that have acquired the same."""
        losses = self.losses(codes, acquired, costs.matrix)
        added = self.sets & ~acquired
        plans = acquired | self.sets
        total = losses[:, self.model_of(plans)] + costs.of(plans, given=acquired)
        missing = (~available).astype(np.float32) @ added.T.astype(np.float32) > 0
        total[missing] = np.inf
        # The first plan adds the empty set: stop.
        best = total.argmin(axis=1)
        rows = np.arange(len(codes))
        saved = total[:, 0] - total[rows, best]
        going = saved > _ROUNDING * np.ptp(costs.matrix)
        alone = acquired | np.eye(len(acquired), dtype=np.bool_)
        single = losses[:, self.model_of(alone)] + costs.of(alone, given=acquired)
        single[~added[best]] = np.inf
        return np.where(going, single.argmin(axis=1), STOP)


class AACOClassifier(BasePolicy):
    """Plan a set of covariates by what it would have been worth to the nearest training rows.

    Among the candidate sets B the plan is the one with the least cost of B \\ A plus mean
    misclassification cost of the k training rows nearest in the acquired covariates A; of it the
    covariate that is best alone is acquired. The row stops where the plan is to acquire nothing.

    Misclassification costs: the neighbours' loss is C[y, label] of the Bayes decision of a model
    that did not see them, and so is the label at the stop.

    The original takes k = 5 and boosted trees for any mask; here k is the one of `n_neighbors` with
    the least out-of-fold total cost, and the classifiers are additive models of their own set. All
    rows as near as the k-th count. With up to log2(`max_sets`) covariates every set has a model;
    beyond, the empty set, single covariates, pairs, random sets and all covariates together, of
    which the largest inside a plan judges it and the largest inside A answers.

    The method needs the training rows wherever it decides: a fitted policy, and so its file, holds
    them rounded to sixteenths of a standard deviation, with their classes.

    Parameters
    ----------
    n_neighbors : sequence of int, default=(5, 20, 80)
        Numbers of neighbours tried.
    max_sets : int, default=256
        Most sets that have a model.
    cv : int, default=5
        Number of folds of the out-of-fold answers.
    random_state : int, default=0
        Seed of the folds and of the random sets.

    Attributes
    ----------
    neighbors_ : Neighbors
        The training rows and what the models of the sets say about them.
    basis_ : AdditiveBasis
        Basis of the additive models.
    intercepts_ : ndarray of shape (n_sets,)
        Intercept of each set's model.
    coefs_ : ndarray of shape (n_sets, n_columns)
        Its coefficients on the columns of the basis.
    n_neighbors_ : int
        What was chosen.
    out_of_fold_cost_ : ndarray
        Mean out-of-fold total cost for each of `n_neighbors`.

    References
    ----------
    M. Valancius, M. Lennon and J. B. Oliva, "Acquisition conditioned oracle for nongreedy active
    feature acquisition", ICML 2024.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import AACOClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AACOClassifier(costs, max_sets=12, cv=2).fit(X[:300], y[:300])
    >>> policy.acquire(X[300:]).acquired.shape
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "basis_": AdditiveBasis,
        "intercepts_": Floats,
        "coefs_": Floats,
        "out_of_fold_cost_": Floats,
        "n_neighbors_": int,
        "neighbors_": Neighbors,
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "n_neighbors": each(whole(1)),
        "max_sets": whole(2),
        "cv": whole(2),
        "random_state": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        n_neighbors: Sequence[int] = (5, 20, 80),
        max_sets: int = 256,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.n_neighbors = n_neighbors
        self.max_sets = max_sets
        self.cv = cv
        self.random_state = random_state

    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the models of the sets, then choose the number of neighbours."""
        training = self.begin_fit(X, y)
        encoded, labels, costs = training.encoded, training.y, training.costs
        fold = stratified_folds(encoded, labels, self.cv, self.random_state, training.groups)
        fits = prepare(
            encoded,
            labels,
            self.encoder_,
            n_splines=10,
            families=FAMILIES["common"],
            fold=fold,
        )
        rng = np.random.default_rng(self.random_state)
        pool = candidate_sets(len(costs.names), self.max_sets, rng)
        sets, out_of_fold, self.intercepts_, self.coefs_ = _models(fits, pool, len(costs.names))
        self.basis_ = fits.basis
        neighbors = Neighbors(
            code_values(fits.complete[: len(labels)], fits.basis),
            labels.astype(np.int8),
            label_of(out_of_fold, costs.matrix).astype(np.int8),
            sets,
            self.encoder_.source,
            1,
        )
        numbers = [min(int(k), len(labels)) for k in self.n_neighbors]
        codes = code_values(encoded, fits.basis)
        available = ~np.isnan(encoded[:, self.encoder_.first])
        self.out_of_fold_cost_ = np.array(
            [
                _out_of_fold_cost(
                    replace(neighbors, k=k), codes, available, out_of_fold, fold, costs
                )
                for k in numbers
            ]
        )
        self.n_neighbors_ = numbers[int(self.out_of_fold_cost_.argmin())]
        self.neighbors_ = replace(neighbors, k=self.n_neighbors_)
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> NeighborsDecider:
        """Give the decider that decides by what was learned."""
        return NeighborsDecider(terms, self.basis_, self.neighbors_, self.intercepts_, self.coefs_)


@dataclass(frozen=True, eq=False)
class NeighborsDecider(ObservedDecider):
    """A decider that acquires what pays for the nearest training rows.

    Attributes
    ----------
    basis : basis of the additive models.
    neighbors : training rows, with what each set would have cost them.
    intercepts, coefs : model of each set.
    """

    basis: AdditiveBasis
    neighbors: Neighbors
    intercepts: Floats
    coefs: Floats

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        codes = code_values(state.values, self.basis)
        covariate, model = self.neighbors.plan(replace(state, values=codes), self.costs)
        log_odds = self.intercepts[model]
        for number in np.unique(model):
            rows = np.flatnonzero(model == number)
            for k in np.flatnonzero(self.neighbors.sets[number]):
                own = state.values[np.ix_(rows, np.flatnonzero(self.basis.source == k))]
                coef = self.coefs[number, self.basis.group == k]
                log_odds[rows] += self.basis.block(own, int(k)) @ coef
        return Decision(covariate, log_odds)


def code_values(encoded: Floats, basis: AdditiveBasis) -> Codes:
    """Standardised values in whole steps; 0 for what is unknown, which nobody reads."""
    steps = np.rint(np.nan_to_num(basis.standardise(encoded)) * _STEPS)
    return np.clip(steps, -_FURTHEST, _FURTHEST).astype(np.int8)


def candidate_sets(p: int, most: int, rng: np.random.Generator) -> list[Ints]:
    """All sets of p covariates if there are at most that many, else a pool of them.

    A pool holds the empty set, as many single covariates as fit, all covariates together, pairs for
    half of what is left, and random sets of every size alike. Smaller sets come first.
    """
    if p <= np.log2(most):
        sizes = range(p + 1)
        return [np.array(s, dtype=np.intp) for size in sizes for s in combinations(range(p), size)]
    singles = [(int(k),) for k in rng.permutation(p)]
    subsets = dict.fromkeys([(), tuple(range(p)), *singles][:most])
    pairs = list(combinations(range(p), 2))
    space = most - len(subsets)
    subsets |= dict.fromkeys(pairs[int(k)] for k in rng.permutation(len(pairs))[: space // 2])
    for _ in range(10 * most):
        if len(subsets) == most:
            break
        size = int(rng.integers(2, p))
        subsets[tuple(int(k) for k in np.sort(rng.choice(p, size, replace=False)))] = None
    return [np.array(s, dtype=np.intp) for s in sorted(subsets, key=lambda s: (len(s), s))]


def _models(fits: SetFits, pool: list[Ints], p: int) -> tuple[Bools, Floats, Floats, Floats]:
    """Membership, out-of-fold log-odds, intercept and coefficients of each set's model.

    Sets are in the order of `Neighbors`.
    """
    models = []
    for size in range(p + 1):
        models += fits.screened([members for members in pool if len(members) == size])
        report_progress("set", len(models), len(pool))
    order = sorted(range(len(pool)), key=lambda i: (len(pool[i]), -models[i].out_of_fold_loss))
    sets = np.zeros((len(pool), p), dtype=np.bool_)
    for place, i in enumerate(order):
        sets[place, pool[i]] = True
    return (
        sets,
        np.stack([models[i].out_of_fold_log_odds for i in order], axis=1),
        np.array([models[i].intercept for i in order]),
        np.stack([models[i].coef for i in order]),
    )


def _out_of_fold_cost(
    neighbors: Neighbors,
    codes: Codes,
    available: Bools,
    out_of_fold: Floats,
    fold: Ints,
    costs: CostTable,
) -> float:
    """Mean total cost of the training rows, each with neighbours of other folds."""
    total = np.empty(len(codes))
    for held in range(int(fold.max()) + 1):
        inside = fold == held
        others = neighbors.rows(~inside)
        nothing = np.zeros(available[inside].shape, dtype=np.bool_)
        unused = np.zeros(len(codes))

        def decide(
            seen: ObservedState, others: Neighbors = others, unused: Floats = unused
        ) -> Decision:
            return Decision(others.plan(seen, costs)[0], unused[: len(seen.values)])

        order = walk(
            ObservedState(codes[inside], available[inside], nothing),
            decide,
            ObservedState.after,
            available[inside],
            np.full(nothing.shape, STOP),
        ).order
        model = neighbors.model_of(acquired_in(order))
        answer = out_of_fold[np.flatnonzero(inside), model]
        label = label_of(answer, costs.matrix)
        y = neighbors.y[inside]
        total[inside] = total_of(costs.of_order(order), y, label, costs.matrix)
    return float(total.mean())
