"""Mixtures of products, p(x, y) = Σ_k w_k π_k(y) Π_j f_kj(x_j), as functions of arrays.

A covariate takes one of a few levels, one of which may stand for "a number", with a normal density.
So every factor is an exponential family: a row has statistics (for each covariate one column for
each level and, where there are numbers, z and z²), all of them 0 where its value is missing, and

    log (w_k Π_j f_kj(x_j)) = log w_k + statistics · natural_k.

What is missing, or was not acquired, drops out of the product, which is what integrating it out
leaves. EM needs sums of statistics over rows and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adacos.typing import Bools, Floats, Ints

# Pseudo-rows behind the weight of a component, the levels of a covariate (spread as they are in the
# class that the component begins in), the mean and the variance of a number.
WEIGHT_ROWS, LEVEL_ROWS, MEAN_ROWS, VARIANCE_ROWS = 1.0, 1.0, 1.0, 4.0
# What all rows count for in what those of a class are like.
_OF_ALL = 1.0
# What a level counts besides its rows, in its share of all.
_HALF_A_ROW = 0.5
# Rows whose responsibilities are held at once.
ROWS_AT_ONCE = 32_768


@dataclass(frozen=True, eq=False)
class Layout:
    """What the columns of the statistics are.

    Attributes
    ----------
    group : covariate of each column.
    level : mask of the columns that say which level a covariate takes.
    number : of each covariate with numbers, the columns of their level, of z and of z², (m, 3).
    """

    group: Ints
    level: Bools
    number: Ints


class Parameters(NamedTuple):
    """A mixture of products.

    Attributes
    ----------
    log_weight : (components,) log w_k.
    class_share : (components, classes) π_k(y).
    share : (components, columns) probability of each level; 0 in columns that are none.
    mean, variance : (components, covariates with numbers), of z where there is a number.
    """

    log_weight: Floats
    class_share: Floats
    share: Floats
    mean: Floats
    variance: Floats


class ExpectedSums(NamedTuple):
    """Sums over rows: of responsibilities by component and class, of statistics, and the fit."""

    rows: Floats
    classes: Floats
    statistics: Floats
    log_likelihood: float


class Prior(NamedTuple):
    """What rows are like, of each component: probability of each level, mean and variance."""

    share: Floats
    mean: Floats
    variance: Floats


def natural(parameters: Parameters, layout: Layout) -> Floats:
    """Coefficients of the statistics, (components, columns)."""
    with np.errstate(divide="ignore"):
        coef = np.where(layout.level, np.log(parameters.share), 0.0)
    if len(layout.number):
        mean, variance = parameters.mean, parameters.variance
        level, linear, square = layout.number.T
        coef[:, level] -= 0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance)
        coef[:, linear] = mean / variance
        coef[:, square] = -0.5 / variance
    return coef


def log_components(statistics: Floats, log_weight: Floats, coef: Floats) -> Floats:
    """log (w_k Π_j f_kj(x_j)) of each row and component."""
    return np.asarray(statistics @ coef.T + log_weight)


def log_sum(values: Floats) -> Floats:
    """log Σ exp along the last axis, -inf where nothing has weight."""
    most = values.max(axis=-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - most).sum(axis=-1)) + most[..., 0])


def log_joint(log_component: Floats, class_share: Floats) -> Floats:
    """log p(y, x_S) of each row and class, from the logarithms of its components."""
    most = log_component.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_component - most) @ class_share) + most)


def prior_of(
    statistics: Floats, weight: Floats, layout: Layout, prior: Prior | None = None
) -> Prior:
    """Levels and numbers among rows; no level is impossible, whether or not a row has it.

    `prior` counts as one row more.
    """
    total = weight @ statistics
    each = np.where(layout.level, total, 0.0)
    each += _OF_ALL * prior.share if prior else np.where(layout.level, _HALF_A_ROW, 0.0)
    share = each / np.bincount(layout.group, each)[layout.group]
    level, linear, square = layout.number.T
    rows, first, second = total[level], total[linear], total[square]
    if prior:
        rows = rows + _OF_ALL
        first = first + _OF_ALL * prior.mean
        second = second + _OF_ALL * (prior.variance + prior.mean**2)
    rows = np.maximum(rows, 1e-300)
    mean = first / rows
    return Prior(share, mean, np.maximum(second / rows - mean**2, 1e-6))


def expectation(
    parameters: Parameters, layout: Layout, statistics: Floats, labels: Ints, weight: Floats
) -> ExpectedSums:
    """Sums of what each component is responsible for; a label of -1 is not known."""
    coef = natural(parameters, layout)
    with np.errstate(divide="ignore"):
        by_class = np.log(parameters.class_share).T
    by_class = np.vstack([by_class, np.zeros(by_class.shape[1])])
    n_components, n_classes = parameters.class_share.shape
    rows, total = np.zeros(n_components), np.zeros_like(coef)
    classes, fit = np.zeros((n_components, n_classes + 1)), 0.0
    for first in range(0, len(labels), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        log = log_components(statistics[part], parameters.log_weight, coef)
        log += by_class[labels[part]]
        each = log_sum(log)
        fit += float(weight[part] @ each)
        share = np.exp(log - each[:, None]) * weight[part, None]
        rows += share.sum(axis=0)
        total += share.T @ statistics[part]
        for k in range(n_classes):
            classes[:, k] += share[labels[part] == k].sum(axis=0)
    return ExpectedSums(rows, classes[:, :-1], total, fit)


def maximisation(sums: ExpectedSums, prior: Prior, layout: Layout) -> Parameters:
    """The parameters of greatest penalised likelihood for these responsibilities."""
    rows = sums.rows + WEIGHT_ROWS
    labelled = sums.classes.sum(axis=1, keepdims=True)
    counts = np.where(layout.level, sums.statistics, 0.0) + LEVEL_ROWS * prior.share
    of_covariate = np.zeros((len(rows), int(layout.group.max()) + 1))
    np.add.at(of_covariate.T, layout.group, counts.T)
    level, linear, square = layout.number.T
    n, first, second = (sums.statistics[:, columns] for columns in (level, linear, square))
    mean = (first + MEAN_ROWS * prior.mean) / (n + MEAN_ROWS)
    spread = second - 2 * mean * first + n * mean**2 + MEAN_ROWS * (mean - prior.mean) ** 2
    variance = (np.maximum(spread, 0.0) + VARIANCE_ROWS * prior.variance) / (n + VARIANCE_ROWS)
    return Parameters(
        np.log(rows / rows.sum()),
        sums.classes / np.maximum(labelled, 1e-300),
        counts / of_covariate[:, layout.group],
        mean,
        variance,
    )


def penalty(parameters: Parameters, prior: Prior, layout: Layout) -> float:
    """What the pseudo-rows add to the log-likelihood, up to a constant."""
    there = layout.level & (prior.share > 0)
    of_levels = LEVEL_ROWS * (np.log(parameters.share[there]) * prior.share[there]).sum()
    variance = parameters.variance
    of_variances = VARIANCE_ROWS * (np.log(variance) + prior.variance / variance).sum()
    of_means = MEAN_ROWS * ((parameters.mean - prior.mean) ** 2 / variance).sum()
    of_weights = WEIGHT_ROWS * parameters.log_weight.sum()
    return float(of_weights + of_levels - 0.5 * (of_variances + of_means))


def start(
    statistics: Floats,
    labels: Ints,
    weight: Floats,
    n_classes: int,
    each: int,
    layout: Layout,
    rng: np.random.Generator,
) -> tuple[Parameters, Prior]:
    """As many components in each class that has the rows, around rows far from each other."""
    every = prior_of(statistics, weight, layout)
    components, classes, total, priors = [], [], [], []
    distance_of = np.ones(statistics.shape[1])
    level, linear, square = layout.number.T
    distance_of[linear] = 1 / np.sqrt(every.variance)
    distance_of[square] = 0.0
    distance_of[level] = 1.0
    for k in range(n_classes):
        own = np.flatnonzero((labels == k) & (weight > 0))
        if not len(own):
            continue
        points = statistics[own] * distance_of
        share = weight[own] / weight[own].sum()
        seeds = [int(rng.choice(len(own), p=share))]
        apart = ((points - points[seeds[0]]) ** 2).sum(axis=1)
        while len(seeds) < min(each, len(own)) and (apart * share).sum() > 0:
            seeds.append(int(rng.choice(len(own), p=apart * share / (apart * share).sum())))
            apart = np.minimum(apart, ((points - points[seeds[-1]]) ** 2).sum(axis=1))
        near = points @ points[seeds].T - 0.5 * (points[seeds] ** 2).sum(axis=1)
        near = np.exp(near - near.max(axis=1, keepdims=True))
        near *= (weight[own] / near.sum(axis=1))[:, None]
        components.append(near.sum(axis=0))
        classes.append(np.eye(n_classes)[k] * near.sum(axis=0)[:, None])
        total.append(near.T @ statistics[own])
        priors += [prior_of(statistics[own], weight[own], layout, every)] * len(seeds)
    prior = Prior(*(np.stack(parts) for parts in zip(*priors, strict=True)))
    sums = ExpectedSums(np.concatenate(components), np.vstack(classes), np.vstack(total), 0.0)
    return maximisation(sums, prior, layout), prior


def fit_mixture(
    statistics: Floats,
    labels: Ints,
    weight: Floats,
    n_classes: int,
    each: int,
    layout: Layout,
    rng: np.random.Generator,
    *,
    most_steps: int = 30,
    tolerance: float = 1e-4,
) -> tuple[Parameters, list[float]]:
    """EM from a random start, and the penalised log-likelihood before each step."""
    parameters, prior = start(statistics, labels, weight, n_classes, each, layout, rng)
    history: list[float] = []
    for _ in range(most_steps if each > 1 or (labels < 0).any() else 1):
        sums = expectation(parameters, layout, statistics, labels, weight)
        history.append(sums.log_likelihood + penalty(parameters, prior, layout))
        parameters = maximisation(sums, prior, layout)
        if len(history) > 1 and history[-1] - history[-2] < tolerance * weight.sum():
            break
    return parameters, history
