"""Designs in coordinates of what their terms span: fewer columns, the same fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from adacos.kernels.multinomial import (
    class_fellner_schall,
    contrasts,
    fold_class_grams,
    newton_classes,
)
from adacos.kernels.spans import spanned
from adacos.kernels.splines import numeric_columns
from adacos.kernels.strengths import penalty_of


def problem(n_values: int) -> tuple[Any, Any, Any]:
    """Two covariates of so many values, with a linear and a wiggly term each; three classes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_values, size=(300, 2)).astype(float)
    y = (np.column_stack([X[:, 0], X[:, 1] ** 2 / 3, X.sum(axis=1) - 2])).argmax(axis=1)
    y = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), y)
    columns = np.hstack([numeric_columns(x, 0, n_values - 1, x.mean(), x.std(), 10) for x in X.T])
    term = np.concatenate([[-1], np.repeat([0, 1, 2, 3], [1, 8, 1, 8])])
    return np.column_stack([np.ones(300), columns - columns.mean(axis=0)]), y, term


def test_few_values_span_few_columns_and_the_fit_is_the_same() -> None:
    design, y, term = problem(4)
    small = spanned(design, term)
    assert np.bincount(small.term + 1).tolist() == [1, 1, 3, 1, 3]
    np.testing.assert_allclose(small.directions.T @ small.directions, np.eye(9), atol=1e-12)
    strengths, weight, basis = np.array([0.5, 2.0, 1.0, 0.03]), np.ones(300), contrasts(3)
    whole = newton_classes(design, y, weight, penalty_of(term, strengths), basis)
    fit = newton_classes(small.design, y, weight, penalty_of(small.term, strengths), basis)
    np.testing.assert_allclose(fit.coef @ small.directions.T, whole.coef, atol=1e-8)
    np.testing.assert_allclose(fit.log_odds, whole.log_odds, atol=1e-8)


def test_strengths_by_restricted_likelihood_are_the_same() -> None:
    design, y, term = problem(4)
    small = spanned(design, term)
    weight, basis, begin = np.ones(300), contrasts(3), np.array([3.0, 30.0, 3.0, 30.0])
    found = []
    for columns, of in ((design, term), (small.design, small.term)):
        fit = newton_classes(columns, y, weight, penalty_of(of, begin), basis)
        grams = fold_class_grams(columns, fit.log_odds, weight, np.zeros(300, int), 1, basis)
        found.append(
            class_fellner_schall(columns, y, weight[:, None], of, begin, fit.coef, grams, basis)[0]
        )
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_a_design_of_full_rank_is_kept_as_it_is() -> None:
    design, _, term = problem(40)
    same = spanned(design, term)
    assert same.design is design
    assert same.term is term
    np.testing.assert_array_equal(same.directions, np.eye(len(term)))


def test_a_term_that_no_row_has_keeps_no_column() -> None:
    design, _, term = problem(4)
    design[:, term == 3] = 0.0
    assert 3 not in spanned(design, term).term
