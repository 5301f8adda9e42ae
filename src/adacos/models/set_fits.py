"""Prepared training rows and the models of covariate sets on them, each fitted once.

Everything here is independent of the costs, so one `SetFits` serves several: the group-lasso
sequence and forward selections under different misclassification costs share their fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from adacos.kernels.gaussian import conditional_mean, covariance_with_missing
from adacos.kernels.strengths import central_strengths, stratified_folds
from adacos.models.basis import AdditiveBasis, fit_basis
from adacos.models.gam import AdditiveFit, fit_additive
from adacos.tables.encoder import TableEncoder

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# A screening fit is compared with others of its step, not used: it may stop earlier.
SCREENING_TOLERANCE = 1e-6


@dataclass(frozen=True)
class SetFits:
    """Training rows ready for fitting, and the fits made so far.

    Attributes
    ----------
    basis : basis of the additive models.
    mean, covariance : joint normal model of the encoded values.
    complete : encoded values with missing ones at their conditional mean; unlabelled rows last.
    columns : basis columns of these rows.
    y, weight, fold : labels, weights and folds of the labelled rows.
    families : candidates of the strengths.
    n_jobs : fits of one step that run at the same time.
    """

    basis: AdditiveBasis
    mean: Floats
    covariance: Floats
    complete: Floats
    columns: Floats
    y: Floats
    weight: Floats
    fold: Ints
    families: tuple[str, ...]
    n_jobs: int | None
    _fitted: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)
    _screened: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)

    def fit(self, covariates: Ints, start: AdditiveFit | None) -> AdditiveFit:
        """Model of one set."""
        key = frozenset(covariates.tolist())
        if key not in self._fitted:
            self._fitted[key] = fit_additive(
                self.columns[: len(self.y)],
                self.basis,
                covariates,
                self.y,
                self.weight,
                self.fold,
                families=self.families,
                start=start,
            )
        return self._fitted[key]

    def screen(self, sets: list[Ints]) -> list[Floats]:
        """Leave-out log-odds of several sets at central strengths, for comparing them.

        Each set starts from the screened set that it extends by its last covariate.
        """
        keys = [frozenset(members.tolist()) for members in sets]
        new = [i for i, key in enumerate(keys) if key not in self._screened]
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._screen_one)(sets[i]) for i in new
        )
        self._screened.update({keys[i]: fit for i, fit in zip(new, fits, strict=True)})
        return [self._screened[key].leave_out_log_odds for key in keys]

    def _screen_one(self, covariates: Ints) -> AdditiveFit:
        return fit_additive(
            self.columns[: len(self.y)],
            self.basis,
            covariates,
            self.y,
            self.weight,
            self.fold,
            strengths=central_strengths(self.basis.linear),
            start=self._screened.get(frozenset(covariates[:-1].tolist())),
            tolerance=SCREENING_TOLERANCE,
        )


def prepare(
    encoded: Floats,
    y: Floats,
    encoder: TableEncoder,
    *,
    n_splines: int,
    families: tuple[str, ...],
    cv: int,
    random_state: int,
    n_jobs: int | None = None,
    unlabeled: Floats | None = None,
) -> SetFits:
    """Fill in what is missing, build the basis and deal the folds."""
    weight = np.ones(len(y))
    every = encoded if unlabeled is None else np.vstack([encoded, unlabeled])
    mean, covariance = covariance_with_missing(every)
    complete = conditional_mean(every, ~np.isnan(every), mean, covariance)
    basis, columns = fit_basis(complete[: len(y)], weight, encoder.source, encoder.kinds, n_splines)
    return SetFits(
        basis=basis,
        mean=mean,
        covariance=covariance,
        complete=complete,
        columns=columns if unlabeled is None else basis.transform(complete),
        y=y,
        weight=weight,
        fold=stratified_folds(encoded, y, cv, random_state),
        families=families,
        n_jobs=n_jobs,
    )
