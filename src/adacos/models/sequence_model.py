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
from adacos.kernels.class_risk import best_label, integrated_class_log_odds, roots
from adacos.kernels.folds import drawn_rows
from adacos.kernels.martingale import integrated_log_odds
from adacos.models.additive import AdditiveFit
from adacos.models.basis import AdditiveBasis
from adacos.models.density import ConditionalDensity, fit_densities
from adacos.models.followed import FollowedRows
from adacos.models.large_fits import LargeFits, PreparedRows
from adacos.models.missing import (
    JointModel,
    MissingContribution,
    fill_holes,
    missing_contribution,
    polarised,
    unpolarised,
)
from adacos.models.progress import tell
from adacos.models.recent import Recent
from adacos.models.sequences import (
    SetSequence,
    forward_sequence,
    group_lasso_sequence,
    payable_first,
)
from adacos.models.set_fits import SetFits
from adacos.typing import Floats

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
    leave_out_log_odds : (rows, q) log-odds of the training rows by models that did not see them;
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
    leave_out_log_odds: Floats
    followed: FollowedRows | None = None
    derived: Recent[bytes, SequenceModel] = field(
        default_factory=lambda: Recent(_MOST_DERIVED), init=False, repr=False
    )

    @property
    def many_classes(self) -> bool:
        """Whether there are three or more classes: log-odds are then vectors."""
        return self.intercepts.ndim == 2

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
            ((len(self.y), q, *later), (self.leave_out_log_odds,)),
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

        Each then stands for as many of its class as there are for one kept.
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
            leave_out_log_odds=self.leave_out_log_odds[rows],
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
        left_out = self.leave_out_log_odds
        known = np.asarray(~np.isnan(left_out.reshape(len(left_out), -1)).any(axis=1))
        parts = left_out[known], self.y[known], self.weight[known]
        weight, last = np.zeros(len(known)), len(self.sequence) - 1
        rows = FollowedRows(*parts, there=there[known])
        weight[known] = rows.weights_along(self.sequence, last)[:, last]
        return weight

    def expected_costs(self, costs: CostTable) -> Floats:
        """Mean total cost of always stopping at each set, from the out-of-fold log-odds."""
        means, weights = [], []
        for first in range(0, len(self.y), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            label = best_label(self.leave_out_log_odds[rows], costs.matrix)
            wrong = costs.matrix[self.y[rows].astype(np.intp)[:, None], label]
            means.append(np.average(wrong, axis=0, weights=self.weight[rows]))
            weights.append(self.weight[rows].sum())
        return np.asarray(np.average(means, axis=0, weights=weights) + self.sequence.costs(costs))

    def unavailable(self, encoded: Floats, stage: int) -> MissingContribution:
        """What the unavailable values of S_stage contribute, given its available ones.

        Values outside the set are not read. Of two classes what they contribute to every model, of
        more to the log-odds by that of the set.
        """
        inside = np.isin(self.basis.source, self.sequence.set(stage))
        holes = fill_holes(self.joint, encoded, inside, numeric_values=False)
        if not self.many_classes:
            return missing_contribution(self.joint, self.basis, self.coefs, holes)
        part = missing_contribution(self.joint, self.basis, polarised(self.coefs[stage]), holes)
        size = self.intercepts.shape[1]
        means = {k: mean[:, :size] for k, mean in part.means.items()}
        return MissingContribution(part.mean[:, :size], unpolarised(part.variance, size), means)

    def log_odds(self, encoded: Floats, stage: int) -> Floats:
        """Log-odds by the model of one set, with what is unavailable integrated out."""
        result = np.full((len(encoded), *self.intercepts.shape[1:]), self.intercepts[stage])
        lacking = np.zeros(len(encoded), dtype=np.bool_)
        for covariate in self.sequence.set(stage):
            own = encoded[:, self.basis.source == covariate]
            there = ~np.isnan(own).any(axis=1)
            coef = self.coefs[stage][..., self.basis.group == covariate]
            result[there] += self.basis.block(own[there], covariate) @ coef.T
            lacking |= ~there
        if lacking.any() and self.many_classes:
            part = self.unavailable(encoded[lacking], stage)
            root = roots(part.variance)
            result[lacking] = integrated_class_log_odds(result[lacking] + part.mean, root)
        elif lacking.any():
            part = self.unavailable(encoded[lacking], stage)
            result[lacking] = integrated_log_odds(
                result[lacking] + part.mean[:, stage], np.sqrt(part.variance[:, stage])
            )
        return result

    def log_odds_by_set(self, encoded: Floats) -> Floats:
        """Log-odds by the model of every set, shape (rows, sets); of K > 2 classes (…, K - 1)."""
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
        tell("set", i + 1, len(sets))
    basis = fits.basis
    coefs = np.stack([model.coef for model in models])
    left_out = np.stack([model.leave_out_log_odds for model in models], axis=1)
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
        leave_out_log_odds=left_out,
        followed=_followed(fits, left_out),
    )


def _followed(fits: PreparedRows, left_out: Floats) -> FollowedRows:
    """The rows with out-of-fold log-odds, drawn by class where there are many."""
    known = (fits.weight > 0) & ~np.isnan(left_out).any(axis=tuple(range(1, left_out.ndim)))
    there = np.ones((len(known), len(fits.basis.kinds)), dtype=np.bool_)
    if isinstance(fits, SetFits) and fits.holes is not None:
        # Unlabelled rows come last.
        for pattern in fits.holes.patterns:
            labelled = pattern.rows[pattern.rows < len(known)]
            there[np.ix_(labelled, np.unique(fits.basis.source[pattern.missing]))] = False
    rows = np.flatnonzero(known)
    rows = rows[drawn_rows(fits.y[rows], FOLLOWED_ROWS, 0)]
    label, size = fits.y.astype(np.intp), left_out.shape[2] + 1 if left_out.ndim == 3 else 2
    share = np.bincount(label[known], fits.weight[known], size).astype(np.float64)
    share /= np.maximum(np.bincount(label[rows], fits.weight[rows], size), 1e-300)
    return FollowedRows(
        left_out[rows],
        fits.y[rows],
        fits.weight[rows] * share[label[rows]],
        there=None if there[rows].all() else there[rows],
    )
