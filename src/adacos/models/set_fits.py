"""Prepared training rows and the models of covariate sets on them, each fitted once.

Everything here is independent of the costs, so one `SetFits` serves several: the group-lasso
sequence and forward selections under different misclassification costs share their fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import pairwise_shrink
from adacos.kernels.martingale import shrink
from adacos.kernels.multinomial import symmetric
from adacos.kernels.strengths import central_strengths
from adacos.models.additive import AdditiveFit, fit_additive
from adacos.models.basis import AdditiveBasis, affordable_splines, fit_basis
from adacos.models.density import moment_matrix
from adacos.models.expected_rows import MissingMoments, expected_rows
from adacos.models.long_sequences import KeptSet, fit_kept, fit_kept_classes
from adacos.models.missing import JointModel, fill_missing, fit_joint
from adacos.tables.encoder import TableEncoder
from adacos.typing import Bools, Floats, Ints

# A screening fit is compared with others of its step, not used: it may stop earlier.
SCREENING_TOLERANCE = 1e-6
# Coefficients of a model of three or more classes: more take minutes for each fit.
MOST_COEFFICIENTS = 2_000
# Small sets choose their strengths among all candidates. Once a set has more covariates than the
# first, or its design more entries than the second, only those used by the set before are tried,
# until sets have grown by the third since all were. With K classes an entry counts (K - 1)² times.
SMALL_SET, SMALL_DESIGN, GROWTH = 16, 250_000, 1.5
# Sets of more covariates, or of more entries than that, keep their strengths until then, see
# `adacos.models.long_sequences`.
LONG_SEQUENCE = 40
# Rough fits that find how uncertain the missing values of a row leave its log-odds; one where the
# design has many entries and the set before says how uncertain they were there.
SHRINKING_FITS = 3


@dataclass(frozen=True)
class SetFits:
    """Training rows ready for fitting, and the fits made so far.

    Attributes
    ----------
    basis : basis of the additive models.
    joint : joint model of the encoded values.
    complete : encoded values with missing ones at their conditional mean; unlabelled rows last.
    standardised, columns : standardised values and basis columns of these rows, those of missing
        values at their conditional mean.
    moments : Gram matrix of [1, standardised values, columns] in expectation: what is missing
        counts with its conditional covariance.
    y, weight, fold : labels, weights and folds of the labelled rows.
    families : candidates of the strengths.
    n_jobs : fits of one step that run at the same time.
    missing : conditional covariance of what is missing; None when nothing is.
    table : the labelled rows and their classes as they were given, to fit on some of them.
    n_classes : number of classes.
    directions : in which direction functions of covariates go, see `adacos.models.monotone`.
    """

    basis: AdditiveBasis
    joint: JointModel
    complete: Floats
    standardised: Floats
    columns: Floats
    moments: Floats
    y: Floats
    weight: Floats
    fold: Ints
    families: tuple[str, ...]
    n_jobs: int | None
    missing: MissingMoments | None = None
    table: tuple[Any, Any, Ints | None] | None = None
    n_classes: int = 2
    directions: Ints | None = None
    _fitted: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)
    _screened: dict[frozenset[int], AdditiveFit] = field(default_factory=dict)
    # The last fits at kept strengths, with the leave-out log-odds they belong to.
    _kept: list[tuple[AdditiveFit, KeptSet]] = field(default_factory=list)

    def fit(self, covariates: Ints, start: AdditiveFit | None) -> AdditiveFit:
        """Model of one set."""
        key = frozenset(covariates.tolist())
        if key not in self._fitted:
            if start is not None and not self._adds(covariates, start):
                self._fitted[key] = start
                return start
            if self.missing is not None and start is None:
                # How wiggly the functions are decides how much the missing values vary.
                start = self._fit_from(covariates, None)
            if start is not None and self._keeps_strengths(covariates, start):
                self._fitted[key] = self._fit_kept(covariates, start)
            else:
                self._fitted[key] = self._fit_from(covariates, start)
        return self._fitted[key]

    def _is_large(self, covariates: Ints) -> bool:
        """Whether the design of a set has many entries, each for every block of a Hessian."""
        columns = int(np.isin(self.basis.group, covariates).sum())
        return columns * len(self.y) * (self.n_classes - 1) ** 2 > SMALL_DESIGN

    def _adds(self, covariates: Ints, start: AdditiveFit) -> bool:
        """Whether a set has terms that `start` has not; a constant covariate brings none."""
        return bool(np.isnan(start.strengths[np.isin(self.basis.term_group, covariates)]).any())

    def _is_first_wiggly(self, covariates: Ints, start: AdditiveFit) -> bool:
        """Whether a set has a wiggly part and `start`, which then knows no smoothness, has none."""
        wiggly = ~self.basis.linear
        has_one = np.isin(self.basis.term_group[wiggly], covariates).any()
        return bool(has_one and np.isnan(start.strengths[wiggly]).all())

    def _candidates(self, covariates: Ints, start: AdditiveFit | None) -> Bools | None:
        """Candidates of the strengths worth trying for a set, None for all of them."""
        small = len(covariates) <= SMALL_SET and not self._is_large(covariates)
        if small or start is None or len(covariates) >= GROWTH * start.chosen_at:
            return None
        return None if self._is_first_wiggly(covariates, start) else start.used

    def _keeps_strengths(self, covariates: Ints, start: AdditiveFit) -> bool:
        """Whether the set is large, and grew little since strengths were chosen."""
        near = len(covariates) < GROWTH * start.chosen_at
        large = len(covariates) > LONG_SEQUENCE or self._is_large(covariates)
        grown = start.mixture is not None and self._adds(covariates, start)
        grown = grown and not self._is_first_wiggly(covariates, start)
        # Fits at kept strengths know no directions.
        return near and large and grown and self.directions is None

    def _fit_kept(self, covariates: Ints, start: AdditiveFit) -> AdditiveFit:
        before = next((kept for fit, kept in self._kept if fit is start), None)
        rows = self.columns[: len(self.y)], self.basis, covariates, self.y, self.weight, self.fold
        if self.n_classes > 2:
            return fit_kept_classes(*rows, start, self._shrink(covariates, start))
        known = None if before is None else before.shrink
        fit, kept = fit_kept(*rows, start, before, self._shrink(covariates, start, known))
        self._kept[:] = [(fit, kept)]
        return fit

    def screen(self, sets: list[Ints]) -> list[Floats]:
        """Out-of-fold log-odds of several sets at central strengths, for comparing them."""
        return [fit.out_of_fold_log_odds for fit in self.screened(sets)]

    def screened(self, sets: list[Ints]) -> list[AdditiveFit]:
        """Models of several sets at central strengths.

        Each set starts from the screened set that it extends by its last covariate.
        """
        keys = [frozenset(members.tolist()) for members in sets]
        new = [i for i, key in enumerate(keys) if key not in self._screened]
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._screen_one)(sets[i]) for i in new
        )
        self._screened.update({keys[i]: fit for i, fit in zip(new, fits, strict=True)})
        return [self._screened[key] for key in keys]

    def _fit_from(self, covariates: Ints, start: AdditiveFit | None) -> AdditiveFit:
        return fit_additive(
            self.columns[: len(self.y)],
            self.basis,
            covariates,
            self.y,
            self.weight,
            self.fold,
            families=self.families,
            start=start,
            shrink=self._shrink(covariates, start),
            candidates=self._candidates(covariates, start),
            n_classes=self.n_classes,
            directions=self.directions,
        )

    def _shrink(
        self, covariates: Ints, start: AdditiveFit | None, known: Floats | None = None
    ) -> Floats | None:
        """Factor of each row's log-odds that integrates its missing values out, or None.

        It is logit E[g(u)] / E[u] for a missing part whose variance depends on the model, which is
        found with it in a few rough fits, at the strengths of `start` where it has them. `known` is
        the factor that `start` was fitted with.
        """
        if self.missing is None:
            return None
        shrink, rough_fits = np.ones(len(self.y)), SHRINKING_FITS
        strengths = central_strengths(self.basis.linear)
        if start is not None:
            strengths = np.where(np.isnan(start.strengths), strengths, start.strengths)
            if self._is_large(covariates):
                shrink, rough_fits = self._factor(start) if known is None else known, 1
        for _ in range(rough_fits):
            start = fit_additive(
                self.columns[: len(self.y)],
                self.basis,
                covariates,
                self.y,
                self.weight,
                None,
                strengths=strengths,
                start=start,
                tolerance=SCREENING_TOLERANCE,
                shrink=shrink,
                n_classes=self.n_classes,
            )
            shrink = self._factor(start)
        return shrink

    def _factor(self, fit: AdditiveFit) -> Floats:
        """The factor of each row's log-odds by the variance that one model has."""
        assert self.missing is not None
        if self.n_classes > 2:
            return pairwise_shrink(self._pair_variance(fit.coef))
        variance = self.missing.variance(self.basis, fit.coef, len(self.y))
        return shrink(fit.intercept + self.columns[: len(self.y)] @ fit.coef, variance)

    def _pair_variance(self, coef: Floats) -> Floats:
        """Variance of what is missing of each row contributes to the log-odds of two classes.

        The mean over all pairs of classes, which is twice the sum of the variances of the centred
        log-odds over K - 1.
        """
        assert self.missing is not None
        own = [self.missing.variance(self.basis, one, len(self.y)) for one in symmetric(coef)]
        return np.asarray(2.0 * np.sum(own, axis=0) / (self.n_classes - 1))

    def _screen_one(self, covariates: Ints) -> AdditiveFit:
        start = self._screened.get(frozenset(covariates[:-1].tolist()))
        return fit_additive(
            self.columns[: len(self.y)],
            self.basis,
            covariates,
            self.y,
            self.weight,
            self.fold,
            strengths=central_strengths(self.basis.linear),
            start=start,
            tolerance=SCREENING_TOLERANCE,
            shrink=self._shrink(covariates, start),
            n_classes=self.n_classes,
        )


def refuse_large(n_classes: int, n_columns: int) -> None:
    """Refuse more coefficients than can be fitted together: time grows with their third power."""
    count = (n_classes - 1) * n_columns
    if n_classes > 2 and count > MOST_COEFFICIENTS:
        raise InvalidInputError(
            "y",
            f"classes less one, times basis columns, must be at most {MOST_COEFFICIENTS:,} where "
            "classes are more than two",
            f"{n_classes} classes and {n_columns} columns, {count:,} in all",
            "Join rare classes, leave covariates out, or lower n_splines.",
        )


def prepare(
    encoded: Floats,
    y: Floats,
    encoder: TableEncoder,
    *,
    n_splines: int,
    families: tuple[str, ...],
    fold: Ints,
    weight: Floats | None = None,
    n_jobs: int | None = None,
    unlabeled: Floats | None = None,
    n_classes: int = 2,
    ends: tuple[Floats, Floats] | None = None,
    directions: Ints | None = None,
) -> SetFits:
    """Fill in what is missing and build the basis; a row of weight w counts as w rows.

    `ends` is the range of each encoded column, where these rows are some of more. `directions` are
    those in which functions of covariates go.
    """
    every, every_weight = encoded, weight
    if unlabeled is not None:
        every = np.vstack([encoded, unlabeled])
        if weight is not None:
            every_weight = np.append(weight, np.ones(len(unlabeled)))
    weight = np.ones(len(y)) if weight is None else weight
    joint = fit_joint(every, encoder.source, encoder.kinds, every_weight)
    filled = fill_missing(joint, every, np.ones(every.shape[1], dtype=np.bool_))
    complete = filled.values
    n_splines = affordable_splines(len(y), encoder.kinds, n_splines)
    kinds = encoder.kinds
    basis, columns = fit_basis(
        complete[: len(y)], weight, encoder.source, kinds, n_splines, ends, encoded
    )
    refuse_large(n_classes, columns.shape[1])
    if unlabeled is not None:
        columns = basis.transform(complete)
    expected = expected_rows(joint, basis, filled, every_weight) if filled.patterns else None
    if expected is not None:
        # The intercept is to be the log-odds of an average row in expectation.
        shift = np.average(expected.columns[: len(y)], axis=0, weights=weight)
        basis, columns = replace(basis, center=basis.center + shift), expected.columns - shift
    standardised = basis.standardise(complete) if expected is None else expected.standardised
    moments = moment_matrix(standardised, columns, every_weight)
    if expected is not None:
        moments += expected.covariance
    return SetFits(
        basis=basis,
        joint=joint,
        complete=complete,
        standardised=standardised,
        columns=columns,
        moments=moments,
        y=y,
        weight=weight,
        fold=fold,
        families=families,
        n_jobs=n_jobs,
        missing=None if expected is None else expected.moments,
        n_classes=n_classes,
        directions=directions,
    )
