"""What acquiring covariates says about three or more classes, as training rows showed it.

A row r moves from log-odds u_ri at S_i to u_rj at S_j. The difference is a log-likelihood ratio:
what S_j \\ S_i said about the classes. Rows of class k are a sample of what is seen when k is true,
so that a belief p becomes p_k exp(u_rj - u_ri)_k, normalised, with chance Σ_k p_k · share of r
among class k. Assumed: given the class, what is seen says as much wherever a row is. That is so
where covariates are normal with one covariance in all classes, and where they are independent given
the class. No shape is assumed: a level that rules a class out lowers its log-odds by much and
raises none by as much. The log-odds are of models that did not see the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.kernels.class_risk import with_first
from adacos.kernels.folds import drawn_rows
from adacos.models.followed import FollowedRows
from adacos.models.sequence_model import SequenceModel
from adacos.typing import Bools, Floats, Ints


def followed_rows(model: SequenceModel) -> FollowedRows:
    """The rows that a model follows; those with out-of-fold log-odds where its file names none."""
    if model.followed is not None:
        return model.followed
    known = ~np.isnan(model.out_of_fold_log_odds).any(axis=(1, 2))
    return FollowedRows(model.out_of_fold_log_odds[known], model.y[known], model.weight[known])


class Evidence(NamedTuple):
    """Training rows on their way along a sequence.

    Attributes
    ----------
    scores : (rows, sets, K) log-odds of every class against the first.
    label, weight : class of each row, and how often it counts.
    there : (rows, sets - 1) whether a row has the covariate that each step adds; None if all have.
    """

    scores: Floats
    label: Ints
    weight: Floats
    there: Bools | None

    @classmethod
    def of(cls, model: SequenceModel, most: int) -> Evidence:
        """That of the rows that a model follows, about `most` of them, drawn by class."""
        rows = followed_rows(model)
        chosen = drawn_rows(rows.y, most, 0)
        label = rows.y.astype(np.intp)
        size = model.intercepts.shape[1] + 1
        kept = np.bincount(label[chosen], rows.weight[chosen], size)
        share = np.bincount(label, rows.weight, size) / np.maximum(kept, 1e-300)
        steps = model.sequence.order[model.sequence.n_free :]
        return cls(
            with_first(rows.log_odds[chosen]),
            label[chosen],
            rows.weight[chosen] * share[label[chosen]],
            None if rows.there is None else rows.there[np.ix_(chosen, steps)],
        )

    def between(self, i: int, j: int, learned: Bools | None = None) -> tuple[Floats, Floats]:
        """Likelihoods (rows, K) of what S_j says at S_i, and the share of each by true class.

        `learned` is a mask over the steps between them; the others say nothing. Rows without a
        value on the way have no part, unless no row has all of them.
        """
        moved = self.scores[:, j] - self.scores[:, i]
        steps = np.ones(j - i, dtype=np.bool_) if learned is None else learned
        if not steps.all():
            each = np.diff(self.scores[:, i : j + 1], axis=1)
            moved = each[:, steps].sum(axis=1)
        likelihood = np.exp(moved - moved.max(axis=1, keepdims=True))
        weight = self.weight
        if self.there is not None:
            whole = self.there[:, i:j][:, steps].all(axis=1)
            weight = np.where(whole, weight, 0.0) if (weight[whole] > 0).any() else weight
        shares = weight[:, None] * np.eye(likelihood.shape[1])[self.label]
        # Nothing is known of how a class without rows would show.
        shares[:, shares.sum(axis=0) == 0] = self.weight[:, None]
        return likelihood, shares / shares.sum(axis=0)
