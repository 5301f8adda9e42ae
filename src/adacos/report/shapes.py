"""Shape functions of the model that most rows stop at, with a pointwise band."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from adacos.models.missing import fill_missing
from adacos.policies.sequence_policy import asked_in_order
from adacos.report.held import Held
from adacos.typing import Floats

_POINTS = 120
_RUG = 300
_QUANTILE = 1.959963984540054
# A term whose coefficients vanish has no strength that explains them; this one keeps it there.
_STRONGEST = 1e8


class Shape(NamedTuple):
    """What each value of a covariate adds to the log-odds.

    With two classes `effects` has one column, for the second of them, and `half` is half the width
    of its 95% band. With more it has a column for each class against all of them, which sum to
    zero, and there is no band. `rug` are values of held-out rows, empty for categories.
    """

    covariate: str
    values: NDArray[Any]
    effects: Floats
    half: Floats | None
    rug: Floats


def usual_stage(held: Held) -> int:
    """The set at which most rows stop, of those that hold a covariate."""
    policy = held.policy
    assert asked_in_order(policy)
    counts = np.bincount(held.result.stage, minlength=len(policy.sets_))
    counts[[i for i, names in enumerate(policy.sets_) if not names]] = 0
    return int(np.argmax(counts)) if counts.any() else len(policy.sets_) - 1


def shapes(held: Held, stage: int) -> list[Shape]:
    """The shape functions of one set."""
    names, model, basis = held.policy.encoder_.names, held.model, held.model.basis
    spread = coefficient_covariance(held, stage) if held.two_classes else None
    found = []
    for k in model.sequence.set(stage).tolist():
        if not (basis.group == k).any():
            continue
        values, grid, rug = grid_of(held, k)
        block, half = basis.block(grid, k), None
        effects = block @ np.atleast_2d(model.coefs[stage])[:, basis.group == k].T
        if spread is None:
            effects = np.column_stack([np.zeros(len(effects)), effects])
            effects -= effects.mean(axis=1, keepdims=True)
        else:
            inside, covariance = spread
            part = np.flatnonzero(basis.group[inside] == k) + 1
            variance = np.einsum("ij,jk,ik->i", block, covariance[np.ix_(part, part)], block)
            half = _QUANTILE * np.sqrt(np.maximum(variance, 0.0))
        found.append(Shape(names[k], values, effects, half, rug))
    return found


def grid_of(held: Held, k: int) -> tuple[NDArray[Any], Floats, Floats]:
    """Values of a covariate as shown and as encoded, and those of the held-out rows.

    The latter are thinned out, and none of a category.
    """
    basis, encoder = held.model.basis, held.policy.encoder_
    own = np.flatnonzero(basis.source == k)
    if encoder.categories[k]:
        names = encoder.categories[k]
        shown = [held.said.shown(encoder.names[k], name) for name in names]
        return np.array(shown), np.eye(len(own)), np.empty(0)
    values, there = basis.grid(int(own[0]), _POINTS), held.encoded
    rug = np.unique(there[~np.isnan(there[:, own[0]]), own[0]])
    return values, values[:, None], rug[:: max(1, len(rug) // _RUG)]


def coefficient_covariance(held: Held, stage: int) -> tuple[NDArray[np.intp], Floats]:
    """Basis columns of a set, and the covariance of [intercept, their coefficients].

    It is the inverse of the curvature of the penalised likelihood. The curvature of the likelihood
    is that on the held-out rows, scaled to the number of training rows. The strength of a term is
    the one that its coefficients explain, lambda = effective degrees of freedom / |coef|^2 (Fellner
    and Schall): the fit blends several strengths and keeps none.
    """
    model, basis, trained = held.model, held.model.basis, held.policy.training_rows_
    assert trained is not None
    members = model.sequence.set(stage)
    inside = np.flatnonzero(np.isin(basis.group, members))
    filled = fill_missing(model.joint, held.encoded, np.isin(basis.source, members)).values
    # What lies outside the set is not read, but a basis wants a number.
    columns = basis.transform(np.where(np.isnan(filled), basis.mean, filled))[:, inside]
    design = np.column_stack([np.ones(len(columns)), columns])
    p = expit(design @ np.append(model.intercepts[stage], model.coefs[stage][inside]))
    scale = len(trained.digests) / len(design)
    curvature = scale * design.T @ (design * (p * (1 - p))[:, None])
    _, term = np.unique(basis.term[inside], return_inverse=True)
    squares = np.bincount(term, weights=model.coefs[stage][inside] ** 2)
    strengths = np.ones(len(squares))
    covariance = np.empty_like(curvature)
    for _ in range(30):
        penalty = np.append(1e-9, strengths[term])
        covariance = np.linalg.inv(curvature + np.diag(penalty))
        spent = np.bincount(term, weights=1 - penalty[1:] * np.diag(covariance)[1:])
        with np.errstate(divide="ignore"):
            strengths = np.minimum(np.maximum(spent, 1e-6) / squares, _STRONGEST)
    return inside, covariance
