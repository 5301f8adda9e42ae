"""Penalised multinomial logistic regression by Newton's method, for three or more classes.

Objective, for a design D (rows, P) whose first column is constant, classes y in 0 … K - 1, row
weights s, scores Z = D B' with one row of B (K, P) for each class, and a penalty d >= 0 per column:

    J(B) = sum_n s_n [ log sum_k exp(Z_nk) - Z_n,y_n ] + 1/2 sum_m d_m sum_k B_km^2

It is symmetric in the classes; at the optimum the rows of B sum to zero. B is therefore written
B = U b with U (K, K - 1) orthonormal columns that sum to zero, so that the penalty of the
*contrasts* b (K - 1, P) is that of B, and the Hessian has full rank. The search for strengths keeps
the curvature of a fit near it, of which only the blocks within a contrast are used: U is turned so
that the others vanish on average (`turned`), and a step then takes K - 1 small factors in place of
one large one. Arrays have the contrasts, or the classes, first: sums over them are sums of whole
arrays. As with two classes (`adacos.kernels.irls`), step halving and a floor under the penalty make
every fit end. For many fits to the same rows see `adacos.kernels.multinomial_fits`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs, dtrtri

from adacos.kernels.irls import (
    DAMPING,
    KEPT_CONTRACTION,
    PENALTY_FLOOR,
    SINGLE_PRECISION_FROM,
    cholesky,
    weighted_gram,
)
from adacos.kernels.line_search import halve
from adacos.typing import Floats, Ints

# Rows × fits of a block: its temporaries stay in the cache.
_BLOCK = 32768


class ClassFit(NamedTuple):
    """Optimum of the penalised objective: contrasts (K - 1, P) and their log-odds (K - 1, n)."""

    coef: Floats
    log_odds: Floats


@lru_cache(maxsize=64)
def contrasts(n_classes: int) -> Floats:
    """U (K, K - 1): orthonormal columns that sum to zero; not to be changed."""
    k = np.arange(1, n_classes)
    result = np.where(np.arange(n_classes)[:, None] < k, 1.0, 0.0)
    result[k, k - 1] = -k
    result /= np.sqrt(k * (k + 1.0))
    result.flags.writeable = False
    return result


def turned(log_odds: Floats, weight: Floats, basis: Floats) -> Floats:
    """Contrasts (K, K - 1) between which the curvature at these log-odds vanishes on average."""
    shares = shares_at(log_odds, basis)
    mean = basis.T @ shares
    average = (basis.T * (shares @ weight)) @ basis - (mean * weight) @ mean.T
    return np.asarray(basis @ np.linalg.eigh(average)[1])


def to_reference(values: Floats, basis: Floats) -> Floats:
    """Contrasts (K - 1, …) as values of each later class less those of the first, (K - 1, …)."""
    return np.asarray(np.tensordot(basis[1:] - basis[0], values, axes=(1, 0)))


def to_contrasts(values: Floats, basis: Floats) -> Floats:
    """The inverse of `to_reference`."""
    return np.asarray(np.tensordot(basis[1:].T, values, axes=(1, 0)))


def symmetric(values: Floats) -> Floats:
    """Values (K - 1, …) of each later class less the first as values (K, …) that sum to zero."""
    basis = contrasts(len(values) + 1)
    return np.asarray(np.tensordot(basis, to_contrasts(values, basis), axes=(1, 0)))


def shares_at(log_odds: Floats, basis: Floats) -> Floats:
    """Probabilities (K, …) at the contrasts of the log-odds (K - 1, …)."""
    scores = np.tensordot(basis, log_odds, axes=(1, 0))
    scores -= scores.max(axis=0)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=0)
    return np.asarray(scores)


def class_loss(log_odds: Floats, y: Ints, basis: Floats) -> Floats:
    """Negative log-likelihood (n, …) at contrasts (K - 1, n, …)."""
    scores = np.tensordot(basis, log_odds, axes=(1, 0))
    scores -= scores[y, np.arange(len(y))][None]
    top = np.maximum(scores.max(axis=0), 0.0)
    return np.asarray(top + np.log(np.exp(scores - top).sum(axis=0)))


def residuals(log_odds: Floats, y: Ints, basis: Floats) -> Floats:
    """Derivative (K - 1, n, …) of the loss in the contrasts."""
    shares = shares_at(log_odds, basis)
    shares[y, np.arange(len(y))] -= 1.0
    return np.asarray(np.tensordot(basis.T, shares, axes=(1, 0)))


def _directed_gram(
    design: NDArray[np.floating], direction: Floats, shares: Floats, weight: Floats
) -> Floats:
    """Hessian (P, P) along one direction of the classes, whose spread weighs the rows."""
    spread = (direction**2) @ shares - (direction @ shares) ** 2
    return weighted_gram(design, weight * np.maximum(spread, 0.0))


def class_gram(
    design: NDArray[np.floating], log_odds: Floats, weight: Floats, basis: Floats
) -> Floats:
    """Hessian of the loss in the contrasts, (Q, Q) with Q = (K - 1) P, contrasts slowest.

    The block of contrasts a and b is D' diag(s h_ab) D with h = U' (diag p - p p') U. Off the
    diagonal it follows from that of their sum, whose weights are not negative: each block is one
    symmetric product.
    """
    shares = shares_at(log_odds, basis)
    size, width = len(log_odds), design.shape[1]
    gram = np.empty((size, width, size, width))
    for a in range(size):
        gram[a, :, a] = _directed_gram(design, basis[:, a], shares, weight)
    for a in range(size):
        for b in range(a):
            both = _directed_gram(design, basis[:, a] + basis[:, b], shares, weight)
            gram[a, :, b] = 0.5 * (both - gram[a, :, a] - gram[b, :, b])
            gram[b, :, a] = gram[a, :, b]
    return gram.reshape(size * width, size * width)


def newton_classes(
    design: Floats,
    y: Ints,
    weight: Floats,
    penalty: Floats,
    basis: Floats,
    start: Floats | None = None,
    *,
    tolerance: float = 1e-12,
    max_iter: int = 200,
) -> ClassFit:
    """Minimise J from the contrasts `start`; for the tolerance see `adacos.kernels.irls.newton`."""
    penalty = np.maximum(penalty, PENALTY_FLOOR * weight.sum())
    size = basis.shape[1]
    coef = np.zeros((size, design.shape[1])) if start is None else start.copy()
    log_odds = coef @ design.T

    def penalised(log_odds: Floats, coef: Floats) -> float:
        return float(weight @ class_loss(log_odds, y, basis)) + 0.5 * float(
            (coef**2 @ penalty).sum()
        )

    value = penalised(log_odds, coef)
    rough: NDArray[np.floating] = (
        design.astype(np.float32) if design.size >= SINGLE_PRECISION_FROM else design
    )
    factor: Floats | None = None  # of the kept curvature; None if it must be computed
    previous, age = np.inf, 0
    for _ in range(max_iter):
        gradient = (weight * residuals(log_odds, y, basis)) @ design + penalty * coef
        while True:
            computed = factor is None
            if factor is None:
                hessian = class_gram(rough, log_odds, weight, basis)
                hessian[np.diag_indices_from(hessian)] += np.tile(penalty, size)
                factor, age = cholesky(hessian), 0
            step = dpotrs(factor, gradient.ravel(), lower=0)[0].reshape(gradient.shape)
            decrement = float((gradient * step).sum())
            if computed or decrement <= KEPT_CONTRACTION * previous:
                break
            rough = design if age == 1 else rough
            factor = None
        if decrement <= 2.0 * tolerance * (1.0 + abs(value)):
            coef, log_odds = coef - step, log_odds - step @ design.T
            break
        # Close to the optimum rounding would decide the comparison, and the step is safe.
        slack = np.inf if decrement <= 1e-9 * (1.0 + abs(value)) else 0.0
        length, log_odds, coef, value = halve(
            penalised, log_odds, -(step @ design.T), coef, -step, value, -decrement, slack=slack
        )
        previous = decrement
        factor = factor if length == 1.0 else None
        age += 1
    return ClassFit(coef, log_odds)


def fold_class_grams(
    design: Floats, log_odds: Floats, weight: Floats, fold: Ints, n_folds: int, basis: Floats
) -> Floats:
    """Curvature within each contrast over the rows of each fold, (folds, K - 1, P, P)."""
    exact = design.size < SINGLE_PRECISION_FROM
    shares = shares_at(log_odds, basis)
    grams = np.empty((n_folds, basis.shape[1], design.shape[1], design.shape[1]))
    for f in range(n_folds):
        rows = fold == f
        part = design[rows] if exact else design[rows].astype(np.float32)
        for a, direction in enumerate(basis.T):
            grams[f, a] = _directed_gram(part, direction, shares[:, rows], weight[rows])
    return grams


def class_fellner_schall(
    design: Floats,
    y: Ints,
    weights: Floats,
    term: Ints,
    strengths: Floats,
    start: Floats,
    grams: Floats,
    basis: Floats,
    *,
    bounds: tuple[float, float] = (1e-3, 1e6),
    tolerance: float = 0.05,
    max_iter: int = 40,
) -> tuple[Floats, Floats]:
    """One strength per term, shared by the classes, by Fellner–Schall steps.

    As `adacos.kernels.irls.fellner_schall`, with K - 1 times the columns of each term. Returns
    strengths (terms, problems) and contrasts (K - 1, P, problems).
    """
    n_problems, size = weights.shape[1], len(start)
    penalised = term >= 0
    of_term = np.zeros((len(strengths), len(term)))
    of_term[term[penalised], penalised.nonzero()[0]] = 1.0
    columns = size * of_term.sum(axis=1)[:, None]
    floor = PENALTY_FLOOR * weights.sum(axis=0)
    lam = np.repeat(strengths[:, None], n_problems, axis=1)
    coef = np.repeat(start[:, :, None], n_problems, axis=2)
    freedom = np.full((len(strengths), n_problems), np.inf)
    left = np.arange(n_problems)
    for _ in range(max_iter):
        penalty = np.maximum(of_term.T @ lam[:, left], floor[left])
        gradient = _gradients(design, y, weights[:, left], penalty, coef[:, :, left], basis)
        spread = np.zeros((len(term), len(left)))
        for place, k in enumerate(left.tolist()):
            factors = _factors(grams[k], penalty[:, place])
            coef[:, :, k] -= DAMPING * _step(factors, gradient[:, :, place])
            for factor in factors:
                root = dtrtri(factor, lower=0)[0]  # of the inverse
                spread[:, place] += np.einsum("ij,ij->i", root, root)
        previous = freedom[:, left]
        freedom[:, left] = np.maximum(columns - lam[:, left] * (of_term @ spread), 0.0)
        squares = of_term @ (coef[:, :, left] ** 2).sum(axis=0)
        lam[:, left] = np.clip(freedom[:, left] / np.maximum(squares, 1e-300), *bounds)
        left = left[(np.abs(freedom[:, left] - previous) > tolerance).any(axis=0)]
        if len(left) == 0:
            break
    return lam, coef


def _gradients(
    design: Floats, y: Ints, weights: Floats, penalty: Floats, coef: Floats, basis: Floats
) -> Floats:
    """Gradient (K - 1, P, fits) of J; `weights` (n, fits), `penalty` (P, fits)."""
    gradient = penalty * coef
    rows_at_once = max(_BLOCK // coef.shape[2], 64)
    for first in range(0, len(y), rows_at_once):
        rows = slice(first, first + rows_at_once)
        left = residuals(design[rows] @ coef, y[rows], basis) * weights[rows]
        gradient += design[rows].T @ left
    return np.asarray(gradient)


def _factors(grams: Floats, penalty: Floats) -> list[Floats]:
    """Cholesky factors of the curvature (K - 1, P, P) within each contrast."""
    diagonal = np.arange(len(penalty))
    hessians = grams.copy()
    hessians[:, diagonal, diagonal] += penalty
    return [cholesky(hessian) for hessian in hessians]


def _step(factors: list[Floats], gradient: Floats) -> Floats:
    """Newton's step for one gradient (K - 1, P)."""
    return np.stack(
        [dpotrs(factor, own, lower=0)[0] for factor, own in zip(factors, gradient, strict=True)]
    )
