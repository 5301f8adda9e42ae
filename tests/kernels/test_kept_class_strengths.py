"""Kept strengths of three or more classes: fits against Newton, strengths against the evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos.kernels import class_strengths
from adacos.kernels.class_strengths import keep_class_strengths
from adacos.kernels.multinomial import (
    class_gram,
    class_loss,
    contrasts,
    newton_classes,
    to_reference,
)
from adacos.kernels.multinomial_fits import ClassRows, advance_classes
from adacos.kernels.strengths import StrengthMixture, penalty_of

N_FOLDS, N_CLASSES = 4, 4
TERM = np.array([-1, 0, 0, 1, 1, 2, 2])
NEW = np.array([False, False, True])


def problem(signal: float) -> tuple[ClassRows, StrengthMixture]:
    """Two old terms and a new one; a common candidate and one per covariate, fitted without it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6))
    truth = rng.normal(size=(6, N_CLASSES)) * np.array([1, 1, 0.2, 0.2, signal, signal])[:, None]
    y = (X @ truth + rng.gumbel(size=(300, N_CLASSES))).argmax(axis=1)
    design, fold = np.column_stack([np.ones(300), X]), np.arange(300) % N_FOLDS
    rows = ClassRows(design, y, rng.uniform(0.5, 2.0, 300), fold, contrasts(N_CLASSES))
    strengths = np.empty((3, 2, N_FOLDS + 1))
    strengths[:, 0] = np.array([3.0, 3.0, 3.0])[:, None]
    strengths[:, 1] = np.array([0.5, 20.0, 30.0])[:, None]
    coefs = np.zeros((2, N_FOLDS + 1, N_CLASSES - 1, 7))
    for c in range(2):
        for f in range(N_FOLDS + 1):
            kept = fold != f
            part = design[kept][:, TERM < 2], y[kept], rows.weight[kept]
            penalty = penalty_of(TERM, strengths[:, c, f])[TERM < 2]
            fit = newton_classes(*part, penalty, rows.basis)
            coefs[c, f][:, TERM < 2] = to_reference(fit.coef, rows.basis)
    return rows, StrengthMixture(strengths, np.array([False, True]), coefs)


def test_fits_are_those_of_newton_at_the_kept_strengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """And out-of-fold log-odds those of the blend of true refits."""
    exact: Any = lambda *given: advance_classes(*given, tolerance=1e-13)  # noqa: E731
    monkeypatch.setattr(class_strengths, "advance_classes", exact)
    rows, mixture = problem(1.0)
    blend = keep_class_strengths(rows, TERM, mixture, NEW)
    assert blend.mixture is not None
    assert blend.used is not None
    kept = blend.mixture
    np.testing.assert_array_equal(kept.strengths[:2], mixture.strengths[:2, blend.used])
    common = np.flatnonzero(~kept.per_covariate)
    np.testing.assert_array_equal(kept.strengths[2, common], 3.0)
    for c in range(len(kept.coefs)):
        for f in range(N_FOLDS + 1):
            inside = rows.fold != f
            penalty = penalty_of(TERM, kept.strengths[:, c, f])
            part = rows.design[inside], rows.y[inside], rows.weight[inside]
            fit = newton_classes(*part, penalty, rows.basis)
            np.testing.assert_allclose(
                kept.coefs[c, f], to_reference(fit.coef, rows.basis), atol=1e-5
            )


@pytest.mark.parametrize("signal", [0.0, 0.1, 0.3])
def test_the_strength_of_a_new_term_has_a_high_restricted_likelihood(signal: float) -> None:
    """By Laplace's integral over all coefficients, on a grid: within 1 of the highest.

    The search sees the likelihood to second order where the new term is zero.
    """
    rows, mixture = problem(signal)
    both = StrengthMixture(mixture.strengths[:, 1:], np.array([True]), mixture.coefs[1:])
    blend = keep_class_strengths(rows, TERM, both, NEW)
    assert blend.mixture is not None

    def restricted(strength: float, inside: Any) -> float:
        penalty = penalty_of(TERM, np.array([0.5, 20.0, strength]))
        part = rows.design[inside], rows.y[inside], rows.weight[inside]
        fit = newton_classes(*part, penalty, rows.basis)
        hessian = class_gram(part[0], fit.log_odds, part[2], rows.basis)
        hessian += np.diag(np.tile(penalty, N_CLASSES - 1))
        loss = float(part[2] @ class_loss(fit.log_odds, part[1], rows.basis))
        loss += 0.5 * float((fit.coef**2 @ penalty).sum())
        n_new = (N_CLASSES - 1) * 2
        volume = n_new * np.log(strength) - np.linalg.slogdet(hessian)[1]
        return float(0.5 * volume - loss)

    for f in range(N_FOLDS + 1):
        inside = rows.fold != f
        best = max(restricted(strength, inside) for strength in np.geomspace(1e-2, 1e5, 36))
        assert restricted(float(blend.mixture.strengths[2, 0, f]), inside) >= best - 1.0
