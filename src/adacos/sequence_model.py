"""One fit shared by Full Model, COS and AdaCOS: set sequence, models of the sets, densities.

`SequenceModel` holds what is learned from data and depends on the covariate costs at most through
the order of the sequence. Misclassification costs come in only when a policy uses it, so one model
serves any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adacos.basis import AdditiveBasis, fit_basis
from adacos.costs import CostTable
from adacos.density import ConditionalDensity, fit_densities
from adacos.gam import FAMILIES, AdditiveFit, fit_additive
from adacos.kernels.bayes_risk import label_of
from adacos.kernels.gaussian import conditional_mean, covariance_with_missing
from adacos.kernels.strengths import stratified_folds
from adacos.policy import TrainingTable
from adacos.preprocessing import TableEncoder
from adacos.sequences import SetSequence, group_lasso_sequence

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class SequenceModel:
    """Sequence S_1 ⊂ … ⊂ S_q with p(y | x_S) for each set and p(z | x_S) for each pair.

    Attributes
    ----------
    basis : basis of the additive models.
    mean, covariance : joint normal model of the encoded values, for what is unavailable.
    sequence : the sets.
    intercepts, coefs : model of each set on the basis columns, shapes (q,) and (q, columns).
    densities : one per set but the last.
    y : training labels.
    leave_out_log_odds : (rows, q) log-odds of the training rows by models that did not see them.
    """

    basis: AdditiveBasis
    mean: Floats
    covariance: Floats
    sequence: SetSequence
    intercepts: Floats
    coefs: Floats
    densities: tuple[ConditionalDensity, ...]
    y: Floats
    leave_out_log_odds: Floats

    def expected_costs(self, costs: CostTable) -> Floats:
        """Mean total cost of always stopping at each set, from the leave-out log-odds."""
        label = label_of(self.leave_out_log_odds, costs.matrix)
        wrong = costs.matrix[self.y.astype(np.intp)[:, None], label].mean(axis=0)
        return wrong + costs.of(self.sequence.masks())

    def fill(self, encoded: Floats, stage: int) -> Floats:
        """Rows with the unavailable values of S_stage at their mean given its available ones.

        Values outside the set are neither read nor filled: they come back as NaN.
        """
        inside = np.isin(self.basis.source, self.sequence.set(stage))
        filled = np.full_like(encoded, np.nan)
        values = encoded[:, inside]
        known = ~np.isnan(values)
        if not known.all():
            values = conditional_mean(
                values, known, self.mean[inside], self.covariance[np.ix_(inside, inside)]
            )
        filled[:, inside] = values
        return filled

    def log_odds(self, encoded: Floats, stage: int) -> Floats:
        """Log-odds by the model of one set."""
        filled = self.fill(encoded, stage)
        result = np.full(len(encoded), self.intercepts[stage])
        for covariate in self.sequence.set(stage):
            own = filled[:, self.basis.source == covariate]
            coef = self.coefs[stage, self.basis.group == covariate]
            result += self.basis.block(own, covariate) @ coef
        return result

    def log_odds_by_set(self, encoded: Floats) -> Floats:
        """Log-odds by the model of every set, shape (rows, sets)."""
        result = np.empty((len(encoded), len(self.sequence)))
        incomplete = np.isnan(encoded).any(axis=1)
        complete = self.basis.transform(encoded[~incomplete])
        result[~incomplete] = self.intercepts + complete @ self.coefs.T
        if incomplete.any():
            for stage in range(len(self.sequence)):
                result[incomplete, stage] = self.log_odds(encoded[incomplete], stage)
        return result


def fit_sequence_model(
    training: TrainingTable,
    encoder: TableEncoder,
    *,
    n_splines: int,
    strengths: str,
    cv: int,
    random_state: int,
    unlabeled: Floats | None = None,
) -> SequenceModel:
    """Learn the sequence, the models and the densities."""
    encoded, y = training.encoded, training.y
    weight = np.ones(len(y))
    every = encoded if unlabeled is None else np.vstack([encoded, unlabeled])
    mean, covariance = covariance_with_missing(every)
    complete = conditional_mean(every, ~np.isnan(every), mean, covariance)
    labelled = complete[: len(y)]
    basis = fit_basis(labelled, weight, encoder.source, encoder.kinds, n_splines)
    sequence = group_lasso_sequence(basis, labelled, y, weight, training.costs.covariates)
    columns = basis.transform(complete)
    fold = stratified_folds(encoded, y, cv, random_state)
    fits: list[AdditiveFit] = []
    for i in range(len(sequence)):
        fits.append(
            fit_additive(
                columns[: len(y)],
                basis,
                sequence.set(i),
                y,
                weight,
                fold,
                families=FAMILIES[strengths],
                start=fits[-1] if fits else None,
            )
        )
    coefs = np.stack([fit.coef for fit in fits])
    densities = fit_densities(
        (complete - basis.mean) / basis.scale,
        basis.source,
        columns,
        basis.group,
        coefs,
        sequence.order,
        sequence.sizes,
    )
    return SequenceModel(
        basis=basis,
        mean=mean,
        covariance=covariance,
        sequence=sequence,
        intercepts=np.array([fit.intercept for fit in fits]),
        coefs=coefs,
        densities=tuple(densities),
        y=y,
        leave_out_log_odds=np.stack([fit.leave_out_log_odds for fit in fits], axis=1),
    )
