"""One fit shared by Full Model, COS and AdaCOS: set sequence, models of the sets, densities.

`SequenceModel` holds what is learned from data and depends on the covariate costs at most through
the order of the sequence. Misclassification costs come in only when a policy uses it, so one model
serves any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.families import Family, family
from adacos.kernels.class_risk import best_label
from adacos.kernels.folds import drawn_rows
from adacos.models.additive import AdditiveFit
from adacos.models.basis import AdditiveBasis
from adacos.models.density import ConditionalDensity, fit_densities
from adacos.models.followed import FollowedRows
from adacos.models.large_fits import LargeFits, PreparedRows
from adacos.models.missing import (
    JointModel,
    MissingContribution,
    fill_missing,
    missing_contribution,
    polarised,
    unpolarised,
)
from adacos.models.progress import report_progress
from adacos.models.recent import Recent
from adacos.models.sequences import (
    SetSequence,
    forward_sequence,
    group_lasso_sequence,
    payable_first,
)
from adacos.tables.categories import unseen_categories
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

# Rows whose labels at every set are held at once.
ROWS_AT_ONCE = 131_072
# Training rows that are followed along the sequence at most, see `adacos.models.realised`.
FOLLOWED_ROWS = 20_000
# Derived models that are kept at most.
_MOST_DERIVED = 64


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """Sequence S_1 ⊂ … ⊂ S_q with p(y | x_S) for each set and p(z | x_S) for each pair.

    Attributes
    ----------
    basis : basis of the additive models.
    joint : joint model of the encoded values, for what is unavailable.
    sequence : the sets.
    intercepts, coefs : model of each set on the basis columns, shapes (q,) and (q, columns). With
        K > 2 classes there is one function for each later class against the first: shapes
        (q, K - 1) and (q, K - 1, columns).
    densities : one per set but the last.
    moments : Gram matrix of [1, standardised values, basis columns], for sets off the sequence.
    y, weight : training labels, and how often each row counts.
    out_of_fold_log_odds : (rows, q) log-odds of the training rows by models that did not see them;
        (rows, q, K - 1) for K > 2.
    followed : some of these rows, by which the lookahead is made or corrected.
    derived : models of rows that know some covariates from the start, see `adacos.models.known`.
    """

    basis: AdditiveBasis
    joint: JointModel
    sequence: SetSequence
    intercepts: Floats
    coefs: Floats
    densities: Sequence[ConditionalDensity]
    moments: Floats
    y: Floats
    weight: Floats
    out_of_fold_log_odds: Floats
    followed: FollowedRows | None = None
    derived: Recent[bytes, SequenceModel] = field(
        default_factory=lambda: Recent(_MOST_DERIVED), init=False, repr=False
    )

    @property
    def many_classes(self) -> bool:
        """Whether there are three or more classes: log-odds are then vectors."""
        return self.intercepts.ndim == 2

    @property
    def family(self) -> Family:
        """What the number of classes means for log-odds."""
        return family(1 + self.intercepts[0].size)

    @property
    def vector_shape(self) -> tuple[int, int]:
        """Shape of the coefficients of one set with a row for each of its L functions."""
        return self.intercepts[0].size, self.coefs.shape[-1]

    @property
    def functions(self) -> Floats:
        """Coefficients of every function of the covariates, (functions, columns).

        Of two classes one for each set; of more one for each set and later class, sets slowest.
        """
        return self.coefs.reshape(self.intercepts.size, self.coefs.shape[-1])

    def check(self) -> None:
        """Refuse a model whose parts do not fit each other, as a foreign file may hold it."""
        basis, joint = self.basis, self.joint
        e, m, q = len(basis.source), len(basis.group), len(self.sequence)
        later = self.intercepts.shape[1:]
        shapes: list[tuple[tuple[int, ...], Sequence[NDArray[Any]]]] = [
            ((e,), (basis.low, basis.high, basis.mean, basis.scale)),
            ((e,), (joint.mean, joint.low, joint.high, joint.source)),
            ((e, e), (joint.covariance,)),
            ((m,), (basis.term, basis.center)),
            ((len(basis.linear),), (basis.term_group,)),
            ((q, *later), (self.intercepts,)),
            ((q, *later, m), (self.coefs,)),
            ((1 + e + m, 1 + e + m), (self.moments,)),
            ((len(self.y),), (self.weight,)),
            ((len(self.y), q, *later), (self.out_of_fold_log_odds,)),
        ]
        if self.followed is not None:
            n = len(self.followed.y)
            shapes += [((n, q, *later), (self.followed.log_odds,)), ((n,), (self.followed.weight,))]
            if self.followed.there is not None:
                shapes.append(((n, len(basis.kinds)), (self.followed.there,)))
            classes = np.arange(2 if not later else later[0] + 1)
            if not (np.isin(self.followed.y, classes).all() and 0 <= self.followed.first <= q):
                raise ValueError("the rows that are followed do not fit the sequence model")
        if (
            len(self.densities) != q - 1
            or sorted(self.sequence.order) != list(range(len(basis.kinds)))
            or any(part.shape != shape for shape, parts in shapes for part in parts)
        ):
            raise ValueError("the parts of the sequence model do not fit each other")

    def with_some_rows(self, most: int, seed: int) -> SequenceModel:
        """The same with the out-of-fold log-odds of about `most` rows, drawn by class.

        Each then represents as many of its class as there are for one kept.
        """
        rows = drawn_rows(self.y, most, seed)
        if len(rows) == len(self.y):
            return self
        label = self.y.astype(np.intp)
        share = np.bincount(label, self.weight) / np.bincount(label[rows], self.weight[rows])
        return replace(
            self,
            y=self.y[rows],
            weight=self.weight[rows] * share[label[rows]],
            out_of_fold_log_odds=self.out_of_fold_log_odds[rows],
        )

    def weights_of_complete(self, encoded: Floats) -> Floats:
        """How often each complete training row counts for the table; 0 for the others.

        All are 0 where some class has too few complete rows.
        """
        there = np.ones((len(self.y), len(self.basis.kinds)), dtype=np.bool_)
        row, column = np.nonzero(np.isnan(encoded))
        if len(row) == 0:
            return self.weight
        there[row, self.basis.source[column]] = False
        out_of_fold = self.out_of_fold_log_odds
        known = np.asarray(~np.isnan(out_of_fold.reshape(len(out_of_fold), -1)).any(axis=1))
        parts = out_of_fold[known], self.y[known], self.weight[known]
        weight, last = np.zeros(len(known)), len(self.sequence) - 1
        rows = FollowedRows(*parts, there=there[known])
        weight[known] = rows.weights_along(self.sequence, last)[:, last]
        return weight

    def set_costs(self, costs: CostTable) -> Floats:
        """What rows like those of training pay for what they have of each set, on average."""
        rows = self.followed
        if rows is None or rows.there is None:
            return self.sequence.costs(costs)
        patterns, number = np.unique(rows.there, axis=0, return_inverse=True)
        share = np.bincount(number.ravel(), rows.weight) / rows.weight.sum()
        masks, rank = self.sequence.masks(), self.sequence.rank
        return np.array([share @ costs.of_batch(own & patterns, rank=rank) for own in masks])

    def expected_costs(self, costs: CostTable, deciding: Floats | None = None) -> Floats:
        """Mean total cost of always stopping at each set, from the out-of-fold log-odds.

        Rows pay for what they have of a set. Their answers are the best by the matrix `deciding`,
        by default that of the costs.
        """
        deciding = costs.matrix if deciding is None else deciding
        means, weights = [], []
        for first in range(0, len(self.y), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            label = best_label(self.out_of_fold_log_odds[rows], deciding)
            wrong = costs.matrix[self.y[rows].astype(np.intp)[:, None], label]
            means.append(np.average(wrong, axis=0, weights=self.weight[rows]))
            weights.append(self.weight[rows].sum())
        return np.asarray(np.average(means, axis=0, weights=weights) + self.set_costs(costs))

    def without_unseen(self, encoded: Floats, covariates: Ints) -> Floats:
        """Rows with NaN for categories of these covariates that were never seen in training.

        They were acquired and say nothing, as if they were unavailable. The same array comes back
        where there are none.
        """
        kinds, source = self.basis.kinds, self.basis.source
        own = np.array([k for k in covariates.tolist() if kinds[k] == CATEGORICAL], dtype=np.intp)
        unseen = unseen_categories(encoded, source, own)
        if not unseen.any():
            return encoded
        encoded = encoded.copy()
        for covariate, rows in zip(own.tolist(), unseen.T, strict=True):
            encoded[np.ix_(rows, source == covariate)] = np.nan
        return encoded

    def unavailable(self, encoded: Floats, stage: int) -> MissingContribution:
        """What the unavailable values of S_stage contribute, given its available ones.

        Values outside the set are not read. Means (rows, L) and covariances (rows, L, L) are those
        of the log-odds by the model of the set, of which there are L = K - 1.
        """
        inside = np.isin(self.basis.source, self.sequence.set(stage))
        filled = fill_missing(self.joint, encoded, inside, numeric_values=False)
        functions = np.atleast_2d(self.coefs[stage])
        part = missing_contribution(self.joint, self.basis, polarised(functions), filled)
        size = len(functions)
        means = {k: mean[:, :size] for k, mean in part.means.items()}
        return MissingContribution(part.mean[:, :size], unpolarised(part.variance, size), means)

    def log_odds(self, encoded: Floats, stage: int) -> Floats:
        """Log-odds by the model of one set, with what is unavailable integrated out."""
        encoded = self.without_unseen(encoded, self.sequence.set(stage))
        result = np.full((len(encoded), *self.intercepts.shape[1:]), self.intercepts[stage])
        has_missing = np.zeros(len(encoded), dtype=np.bool_)
        for covariate in self.sequence.set(stage):
            own = encoded[:, self.basis.source == covariate]
            there = ~np.isnan(own).any(axis=1)
            coef = self.coefs[stage][..., self.basis.group == covariate]
            result[there] += self.basis.block(own[there], covariate) @ coef.T
            has_missing |= ~there
        if has_missing.any():
            part = self.unavailable(encoded[has_missing], stage)
            result[has_missing] = self.family.integrated(
                result[has_missing], part.mean, part.variance
            )
        return result

    def log_odds_by_set(self, encoded: Floats) -> Floats:
        """Log-odds by the model of every set, shape (rows, sets); of K > 2 classes (…, K - 1)."""
        encoded = self.without_unseen(encoded, np.arange(len(self.basis.kinds)))
        result = np.empty((len(encoded), *self.intercepts.shape))
        incomplete = np.isnan(encoded).any(axis=1)
        complete = self.basis.transform(encoded[~incomplete])
        parts = complete @ self.functions.T
        result[~incomplete] = self.intercepts + parts.reshape(-1, *self.intercepts.shape)
        if incomplete.any():
            for stage in range(len(self.sequence)):
                result[incomplete, stage] = self.log_odds(encoded[incomplete], stage)
        return result


def build_sequence_model(
    fits: PreparedRows, costs: CostTable, sequence: str, budget: float | None = None
) -> SequenceModel:
    """Find the sequence, fit the models of its sets and the densities.

    `sequence` is "group_lasso" or "forward". What can be paid within a budget comes first.
    """
    some = fits.sample if isinstance(fits, LargeFits) else fits
    if sequence == "forward":
        sets = forward_sequence(costs, some.y, some.weight, some.screen)
    else:
        labelled = some.complete[: len(some.y)]
        sets = group_lasso_sequence(
            some.basis, labelled, some.y, some.weight, costs.covariates, some.n_classes
        )
    sets = payable_first(sets, costs, budget)
    models: list[AdditiveFit] = []
    for i in range(len(sets)):
        models.append(fits.fit(sets.set(i), models[-1] if models else None))
        report_progress("set", i + 1, len(sets))
    basis = fits.basis
    coefs = np.stack([model.coef for model in models])
    out_of_fold = np.stack([model.out_of_fold_log_odds for model in models], axis=1)
    densities = fit_densities(
        fits.moments, basis.source, basis.group, coefs, sets.order, sets.sizes
    )
    return SequenceModel(
        basis=basis,
        joint=fits.joint,
        sequence=sets,
        intercepts=np.array([model.intercept for model in models]),
        coefs=coefs,
        densities=tuple(densities),
        moments=fits.moments,
        y=fits.y,
        weight=fits.weight,
        out_of_fold_log_odds=out_of_fold,
        followed=_followed(fits, out_of_fold),
    )


def _followed(fits: PreparedRows, out_of_fold: Floats) -> FollowedRows:
    """The rows with out-of-fold log-odds, drawn by class where there are many."""
    known = (fits.weight > 0) & ~np.isnan(out_of_fold.reshape(len(out_of_fold), -1)).any(axis=1)
    there = np.ones((len(known), len(fits.basis.kinds)), dtype=np.bool_)
    if isinstance(fits, LargeFits):
        there = there if fits.there is None else fits.there
    elif fits.missing is not None:
        # Unlabelled rows come last.
        for k, rows in fits.missing.rows.items():
            there[rows[rows < len(known)], k] = False
    rows = np.flatnonzero(known)
    rows = rows[drawn_rows(fits.y[rows], FOLLOWED_ROWS, 0)]
    label, size = fits.y.astype(np.intp), 1 + out_of_fold[0, 0].size
    share = np.bincount(label[known], fits.weight[known], size).astype(np.float64)
    share /= np.maximum(np.bincount(label[rows], fits.weight[rows], size), 1e-300)
    return FollowedRows(
        out_of_fold[rows],
        fits.y[rows],
        fits.weight[rows] * share[label[rows]],
        there=None if there[rows].all() else there[rows],
    )
