"""Values that are missing: their distribution given the observed ones, and functions of it.

Each numeric covariate has a normal score, the normal quantile of its rank among the observed
values; scores and indicators are jointly normal as far as conditional means and covariances go
(see `adacos.kernels.gaussian`). Given the observed values
- a numeric covariate has a normal score, and so a value within its range and with its skewness;
- a two-valued or categorical covariate has probabilities by the linear discriminant that the same
  moments make, so that they never leave the simplex.

Each is a distribution on a few points, under which any function of the covariate has a mean, a
variance and a correlation with the others: functions of two missing covariates are correlated as
far as each is linear in its score. With them the E-step of EM is made for basis columns:
E[vv' | observed] = mean mean' + conditional covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, softmax

from adacos.kernels.gaussian import (
    NUMBERS_AT_ONCE,
    MissingPatterns,
    conditional_normal,
    covariance_with_missing,
)
from adacos.kernels.spline_moments import interval_polynomials, spline_moments
from adacos.models.basis import AdditiveBasis
from adacos.tables.kinds import BINARY, CATEGORICAL, NUMERIC
from adacos.typing import Bools, Floats, Ints

# Points at which a numeric covariate is evaluated: normal quantiles with mean square 1.
N_POINTS = 16
_POINTS = ndtri((np.arange(N_POINTS) + 0.5) / N_POINTS)
_POINTS /= np.sqrt(np.mean(_POINTS**2))
# Quantiles that describe a numeric column.
_GRID = 65
# Squared canonical correlation of a category with the observed values that is believed at most.
_LARGEST_R2 = 0.99


@dataclass(frozen=True, eq=False)
class JointModel:
    """Joint model of the encoded values of a row.

    Attributes
    ----------
    mean, covariance : of the encoded columns, numeric ones as normal scores.
    low, high : range of the observed values of each column.
    scores : grid of normal scores.
    quantiles : (encoded columns, grid) value of each column at these scores.
    source : covariate of each encoded column.
    kinds : kind of each covariate.
    """

    mean: Floats
    covariance: Floats
    low: Floats
    high: Floats
    scores: Floats
    quantiles: Floats
    source: Ints
    kinds: tuple[str, ...]

    def to_scores(self, encoded: Floats) -> Floats:
        """Encoded rows with numeric columns as normal scores; equal values share the middle one."""
        result = encoded.copy()
        for j, covariate in enumerate(self.source):
            if self.kinds[covariate] == NUMERIC:
                values, inverse = np.unique(self.quantiles[j], return_inverse=True)
                middle = np.bincount(inverse, self.scores) / np.bincount(inverse)
                result[:, j] = np.interp(encoded[:, j], values, middle)
        return result


def fit_joint(
    encoded: Floats, source: Ints, kinds: tuple[str, ...], weight: Floats | None = None
) -> JointModel:
    """Joint model of encoded rows, NaN where a value is missing; of weight 2 are two rows."""
    end = 0.5 / (len(encoded) if weight is None else float(weight.sum()))
    level = np.clip(np.linspace(0, 1, _GRID), end, 1 - end)
    joint = JointModel(
        mean=np.empty(0),
        covariance=np.empty((0, 0)),
        low=np.nanmin(encoded, axis=0),
        high=np.nanmax(encoded, axis=0),
        scores=ndtri(level),
        quantiles=_quantiles(encoded, weight),
        source=source,
        kinds=kinds,
    )
    mean, covariance = covariance_with_missing(joint.to_scores(encoded), weight)
    return replace(joint, mean=mean, covariance=covariance)


def _quantiles(encoded: Floats, weight: Floats | None) -> Floats:
    """Quantiles of the observed values of each column, (encoded columns, grid).

    A value of weight w takes w places of the sorted column, between which is interpolated.
    """
    level = np.linspace(0, 1, _GRID)
    if weight is None:
        return np.asarray(np.nanquantile(encoded, level, axis=0).T)
    quantiles = []
    for column in encoded.T:
        order = np.argsort(column)[: int(np.sum(~np.isnan(column)))]
        counts = weight[order]
        first = np.cumsum(counts) - counts
        last = np.maximum(first + counts - 1, first)
        place, value = np.column_stack([first, last]).ravel(), np.repeat(column[order], 2)
        quantiles.append(np.interp(level * place[-1], place, value))
    return np.array(quantiles)


class FilledRows(NamedTuple):
    """What is known about the missing values of some rows.

    Attributes
    ----------
    values : encoded rows with missing values at their conditional mean.
    spread : conditional standard deviation of each encoded value, zero where observed.
    center, deviation : conditional mean and standard deviation of the missing scores.
    patterns : rows with the same values missing, with the covariance of their scores.
    """

    values: Floats
    spread: Floats
    center: Floats
    deviation: Floats
    patterns: list[MissingPatterns]


class Points(NamedTuple):
    """Distribution of one missing covariate for each row, on a few points.

    Attributes
    ----------
    values : (rows, points, encoded columns of the covariate).
    weight : (rows, points), sums to one.
    score : (rows, points, encoded columns) standardised deviation of each encoded column.
    """

    values: Floats
    weight: Floats
    score: Floats


def fill_missing(
    joint: JointModel, encoded: Floats, inside: Bools, *, numeric_values: bool = True
) -> FilledRows:
    """Conditional moments of what is missing among the encoded columns `inside` of some rows.

    Columns outside are neither read nor filled: they come back as NaN. So do missing numeric values
    where only their scores are asked for.
    """
    columns = np.flatnonzero(inside)
    scores = joint.to_scores(encoded)[:, columns]
    filled, same_missing = conditional_normal(
        scores, ~np.isnan(scores), joint.mean[columns], joint.covariance[np.ix_(columns, columns)]
    )
    center = np.full_like(encoded, np.nan)
    center[:, columns] = filled
    values = np.where(inside, encoded, np.nan)
    deviation, spread = np.zeros_like(encoded), np.zeros_like(encoded)
    patterns = []
    for found in same_missing:
        own = found._replace(missing=columns[found.missing])
        patterns.append(own)
        diagonal = np.diagonal(own.covariance, axis1=1, axis2=2)
        here = own.rows[:, None], own.missing[own.which]
        deviation[here] = np.sqrt(np.maximum(diagonal, 0.0))[own.which]
        for covariate in np.unique(joint.source[own.missing]).tolist():
            if joint.kinds[covariate] not in (BINARY, CATEGORICAL):
                continue
            without, local = positions_of(joint.source, own.missing, covariate)
            block = own.covariance[without[:, None, None], local[:, :, None], local[:, None]]
            place = np.full(len(own.missing), -1)
            place[without] = np.arange(len(without))
            which = place[own.which]
            rows, which = own.rows[which >= 0], which[which >= 0]
            target = np.ix_(rows, np.flatnonzero(joint.source == covariate))
            values[target], deviation[target] = discriminate(
                joint, covariate, center[target], block, which
            )
            spread[target] = deviation[target]
    for j in columns.tolist():
        numeric = joint.kinds[joint.source[j]] == NUMERIC
        if numeric and not numeric_values:
            continue
        absent = np.flatnonzero(np.isnan(values[:, j]))
        if numeric:
            points = at_scores(joint, j, center[absent, j], deviation[absent, j])
            values[absent, j], spread[absent, j] = points.mean(axis=1), points.std(axis=1)
        else:
            values[absent, j] = center[absent, j]
    return FilledRows(values, spread, center, deviation, patterns)


def positions_of(source: Ints, missing: Ints, covariate: int) -> tuple[Ints, Ints]:
    """The patterns (patterns, columns) without a covariate, and where its columns are in each."""
    without, position = np.nonzero(source[missing] == covariate)
    width = int(np.sum(source == covariate))
    return without[::width], position.reshape(-1, width)


def at_scores(joint: JointModel, column: int, center: Floats, deviation: Floats) -> Floats:
    """Values of a numeric column at the points of its score's distribution, (rows, points)."""
    scores = center[:, None] + deviation[:, None] * _POINTS
    return np.asarray(np.interp(scores, joint.scores, joint.quantiles[column]))


def discriminate(
    joint: JointModel, covariate: int, linear: Floats, left: Floats, which: Ints
) -> tuple[Floats, Floats]:
    """Probabilities of the categories of one covariate as encoded values, and their deviations.

    `linear` (rows, columns) holds the conditional means by linear regression, `left` (patterns,
    columns, columns) the covariances that it leaves, `which` the pattern of each row. Class means
    and the covariance within classes follow from the joint moments: with π the shares,
    S = Π^-½ (explained covariance) Π^-½ and a = Π^-1 (linear - π), the log of the probabilities is,
    up to a constant, log π + Π^-½ (I - S)^-1 Π^½ a - ½ diag(Π^-½ S (I - S)^-1 Π^-½).
    """
    columns = np.flatnonzero(joint.source == covariate)
    low, width = 0.0, 1.0
    if joint.kinds[covariate] == BINARY:
        low, width = (
            float(joint.low[columns[0]]),
            float(joint.high[columns[0]] - joint.low[columns[0]]),
        )
        share = np.clip((joint.mean[columns] - low) / width, 1e-9, 1 - 1e-9)
        share = np.append(1 - share, share)
        deviation = (linear - joint.mean[columns]) / width
        deviation = np.hstack([-deviation, deviation])
        sign = np.array([-1.0, 1.0]) / width
        explained = np.outer(sign, sign) * (joint.covariance[np.ix_(columns, columns)] - left)
    else:
        share = np.clip(joint.mean[columns], 1e-9, None)
        share = share / share.sum()
        deviation = linear - joint.mean[columns]
        explained = joint.covariance[np.ix_(columns, columns)] - left
    root = np.sqrt(share)
    eigenvalues, vectors = np.linalg.eigh(explained / np.outer(root, root))
    eigenvalues = np.clip(eigenvalues, 0.0, _LARGEST_R2)[..., None, :]
    sharpened = (vectors / (1 - eigenvalues)) @ np.swapaxes(vectors, -1, -2)
    quadratic = np.sum(vectors**2 * (eigenvalues / (1 - eigenvalues)), axis=-1) / share
    scaled, moved = deviation / root, np.empty_like(deviation)
    size = max(NUMBERS_AT_ONCE // sharpened[0].size, 1) if len(sharpened) else 1
    for first in range(0, len(which), size):
        rows = slice(first, first + size)
        moved[rows] = np.matmul(scaled[rows, None], sharpened[which[rows]])[:, 0]
    score = np.log(share) + moved / root - 0.5 * quadratic[which]
    probability = softmax(score, axis=1)
    if joint.kinds[covariate] == BINARY:
        probability = probability[:, 1:]
    spread = np.sqrt(probability * (1 - probability)) * width
    return low + width * probability, spread


def points_of(joint: JointModel, filled: FilledRows, rows: Ints, covariate: int) -> Points:
    """Distribution of one covariate in rows where it is missing."""
    columns = np.flatnonzero(joint.source == covariate)
    mean, deviation = filled.values[np.ix_(rows, columns)], filled.deviation[np.ix_(rows, columns)]
    kind = joint.kinds[covariate]
    if kind == NUMERIC:
        j = columns[0]
        values = at_scores(joint, j, filled.center[rows, j], filled.deviation[rows, j])
        score = np.broadcast_to(_POINTS, values.shape)
        weight = np.full(values.shape, 1.0 / N_POINTS)
        return Points(values[:, :, None], weight, score[:, :, None])
    if kind == CATEGORICAL:
        corners = np.eye(len(columns))
        weight = mean
    else:
        low, high = joint.low[columns[0]], joint.high[columns[0]]
        corners = np.array([[low], [high]])
        share = (mean[:, 0] - low) / (high - low) if high > low else np.zeros(len(rows))
        weight = np.column_stack([1 - share, share])
    values = np.broadcast_to(corners, (len(rows), *corners.shape))
    score = (values - mean[:, None, :]) / np.maximum(deviation, 1e-12)[:, None, :]
    return Points(values, weight, score)


class Moments(NamedTuple):
    """Moments of several functions of one missing covariate.

    Attributes
    ----------
    mean : (rows, functions).
    centred : (rows, points, functions) deviations from it times the root of the weight.
    loading : (rows, encoded columns, functions) how far each function moves with one standard
        deviation of an encoded column.
    """

    mean: Floats
    centred: Floats
    loading: Floats


def moments_of(
    joint: JointModel,
    filled: FilledRows,
    rows: Ints,
    covariate: int,
    functions: Callable[[Floats], Floats],
) -> Moments:
    """Moments of functions of one covariate's encoded columns in rows where it is missing."""
    points = points_of(joint, filled, rows, covariate)
    n, n_points, width = points.values.shape
    values = functions(points.values.reshape(n * n_points, width)).reshape(n, n_points, -1)
    mean = np.einsum("rp,rpf->rf", points.weight, values)
    root = np.sqrt(points.weight)[:, :, None]
    centred = (values - mean[:, None, :]) * root
    if joint.kinds[covariate] == CATEGORICAL:
        # Functions are linear in the indicators: a value at a corner is a coefficient.
        columns = np.flatnonzero(joint.source == covariate)
        loading = (values - mean[:, None, :]) * filled.deviation[np.ix_(rows, columns)][:, :, None]
    else:
        loading = np.einsum("rpe,rpf->ref", points.score * root, centred)
    return Moments(mean, centred, loading)


class ContributionMoments(NamedTuple):
    """Moments of what one missing covariate contributes to the log-odds of several models.

    Attributes
    ----------
    mean, variance : (rows, models).
    loading : (rows, encoded columns, models), see `Moments`.
    """

    mean: Floats
    variance: Floats
    loading: Floats


def contribution_moments(
    joint: JointModel,
    basis: AdditiveBasis,
    coefs: Floats,
    filled: FilledRows,
    rows: Ints,
    covariate: int,
) -> ContributionMoments:
    """Moments of one covariate's contribution in rows where it is missing.

    `coefs` (models, basis columns) holds the additive models. Rows that know the same about a
    numeric covariate share its moments.
    """
    weights = coefs[:, basis.group == covariate].T
    if joint.kinds[covariate] != NUMERIC:
        functions = partial(weighted_block, basis, covariate, weights)
        moments = moments_of(joint, filled, rows, covariate, functions)
        variance = np.einsum("rpf,rpf->rf", moments.centred, moments.centred)
        return ContributionMoments(moments.mean, variance, moments.loading)
    j = int(np.searchsorted(joint.source, covariate))
    center, deviation = filled.center[rows, j], filled.deviation[rows, j]
    distinct, which = np.unique(center + 1j * deviation, return_inverse=True)
    low, high = float(basis.low[j]), float(basis.high[j])
    polynomials = interval_polynomials(
        weights,
        basis.center[basis.group == covariate],
        low,
        high,
        float(basis.mean[j]),
        float(basis.scale[j]),
        basis.n_splines,
    )
    values = basis.maps.column(at_scores(joint, j, distinct.real, distinct.imag), j)
    mean, variance, loading = spline_moments(polynomials, values, _POINTS, low, high)
    return ContributionMoments(mean[which], variance[which], loading[which, None])


class MissingContribution(NamedTuple):
    """What missing covariates contribute.

    Attributes
    ----------
    mean, variance : (rows, models) of the sum over the missing covariates. Of the log-odds of K > 2
        classes by one model: mean (rows, K - 1) and covariance (rows, K - 1, K - 1).
    means : (rows, models) mean by covariate, zero where it is not missing; (rows, K - 1) likewise.
    """

    mean: Floats
    variance: Floats
    means: dict[int, Floats]


def missing_contribution(
    joint: JointModel, basis: AdditiveBasis, coefs: Floats, filled: FilledRows
) -> MissingContribution:
    """Moments of what the missing covariates of each row contribute to the log-odds.

    `coefs` (models, basis columns) holds the additive models.
    """
    size = (len(filled.values), len(coefs))
    mean, variance = np.zeros(size), np.zeros(size)
    missing, loadings, means = rows_without(joint, filled), {}, {}
    for covariate, rows in missing.items():
        moments = contribution_moments(joint, basis, coefs, filled, rows, covariate)
        means[covariate] = np.zeros(size)
        means[covariate][rows] = moments.mean
        mean += means[covariate]
        variance[rows] += moments.variance
        loadings[covariate] = moments.loading
    for patterns in filled.patterns:
        between = between_covariates(joint, patterns)
        if not between.any():
            continue
        number = patterns.missing.shape[1]
        for part in patterns.parts(number * (number + len(coefs))):
            together = loadings_of(joint, part, missing, loadings)
            moved = np.matmul(between[part.which], together)
            variance[part.rows] += np.einsum("rej,rej->rj", together, moved)
    return MissingContribution(mean, np.maximum(variance, 0.0), means)


def weighted_block(basis: AdditiveBasis, covariate: int, coefs: Floats, values: Floats) -> Floats:
    """Combinations `coefs` (columns, functions) of the basis columns of one covariate."""
    return basis.block(values, covariate) @ coefs


def rows_without(joint: JointModel, filled: FilledRows) -> dict[int, Ints]:
    """Rows in which each covariate is missing, in order."""
    without = np.zeros((len(filled.values), len(joint.kinds)), dtype=np.bool_)
    for patterns in filled.patterns:
        without[patterns.rows[:, None], joint.source[patterns.missing[patterns.which]]] = True
    return {k: np.flatnonzero(without[:, k]) for k in np.flatnonzero(without.any(axis=0)).tolist()}


def loadings_of(
    joint: JointModel, part: MissingPatterns, missing: dict[int, Ints], loadings: dict[int, Floats]
) -> Floats:
    """Loadings (rows, missing columns, functions) of some rows.

    `missing` holds the rows in which each covariate is missing, in order, and `loadings` those of
    each covariate in these rows.
    """
    functions = next(iter(loadings.values())).shape[2]
    result = np.zeros((len(part.rows), part.missing.shape[1], functions))
    for k in np.unique(joint.source[part.missing]).tolist():
        without, position = positions_of(joint.source, part.missing, k)
        place = np.full(len(part.missing), -1)
        place[without] = np.arange(len(without))
        which = place[part.which]
        here = np.flatnonzero(which >= 0)
        at = np.searchsorted(missing[k], part.rows[here])
        result[here[:, None], position[which[here]]] = loadings[k][at]
    return result


def between_covariates(joint: JointModel, patterns: MissingPatterns) -> Floats:
    """Correlation of the missing encoded columns of each pattern, zero within a covariate."""
    diagonal = np.diagonal(patterns.covariance, axis1=1, axis2=2)
    deviation = np.sqrt(np.maximum(diagonal, 0.0))
    inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    covariate = joint.source[patterns.missing]
    different = covariate[:, :, None] != covariate[:, None]
    scale = inverse[:, :, None] * inverse[:, None]
    return np.asarray(patterns.covariance * scale * different)


def polarised(coefs: Floats) -> Floats:
    """Functions (…, L, columns), and the sum of each two of them: (functions, columns), L first.

    Their variances give the covariances: 2 cov(f, g) = var(f + g) - var f - var g.
    """
    size = coefs.shape[-2]
    first, second = np.triu_indices(size, 1)
    every = np.concatenate([coefs, coefs[..., first, :] + coefs[..., second, :]], axis=-2)
    return every.reshape(int(np.prod(every.shape[:-1])), coefs.shape[-1])


def unpolarised(variance: Floats, size: int) -> Floats:
    """Covariances (…, L, L) from the variances (…, functions) of `polarised` functions."""
    first, second = np.triu_indices(size, 1)
    single, both = variance[..., :size], variance[..., size:]
    result = np.zeros((*variance.shape[:-1], size, size))
    diagonal = np.arange(size)
    result[..., diagonal, diagonal] = single
    result[..., first, second] = 0.5 * (both - single[..., first] - single[..., second])
    result[..., second, first] = result[..., first, second]
    return result
