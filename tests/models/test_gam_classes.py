"""`LogisticGAM` with more than two classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from adacos import LogisticGAM, load, save
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds


def mixed() -> tuple[pd.DataFrame, Any]:
    """Numbers and a word, three classes by name, one of which bends with the number."""
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(
        {
            "dose": rng.normal(size=n),
            "age": rng.uniform(20, 80, size=n),
            "town": ["a", "b", "c"] * 100,
        }
    )
    scores = np.column_stack(
        [
            table["dose"] ** 2 - 1,
            (table["age"] - 50) / 10,
            1.5 * (table["town"] == "b") - table["dose"],
        ]
    )
    y = np.array(["bent", "old", "b"])[(scores + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return table, y


@pytest.fixture(scope="module")
def fitted() -> LogisticGAM:
    return LogisticGAM(cv=5).fit(*mixed())


def test_contributions_sum_to_log_odds_and_these_to_probabilities(fitted: LogisticGAM) -> None:
    table, _ = mixed()
    log_odds = fitted.decision_function(table)
    assert log_odds.shape == (300, 3)
    np.testing.assert_allclose(log_odds.sum(axis=1), 0.0, atol=1e-9)
    parts = fitted.contributions(table)
    assert parts.shape == (300, 3, 3)
    np.testing.assert_allclose(parts.sum(axis=1) + fitted.intercept_, log_odds, atol=1e-9)
    p = np.exp(log_odds)
    np.testing.assert_allclose(fitted.predict_proba(table), p / p.sum(axis=1, keepdims=True))
    assert list(fitted.classes_) == ["b", "bent", "old"]
    np.testing.assert_array_equal(fitted.predict(table), fitted.classes_[log_odds.argmax(axis=1)])
    values, shape = fitted.shape_function("dose")
    assert shape.shape == (len(values), 3)
    # The bent class gains at both ends.
    bent = shape[:, 1]
    assert bent[0] > bent[len(bent) // 2] < bent[-1]


def test_out_of_fold_probabilities_foretell_the_loss_on_fresh_rows(fitted: LogisticGAM) -> None:
    table, y = mixed()
    assert fitted.out_of_fold_proba_.shape == (300, 3)
    np.testing.assert_allclose(fitted.out_of_fold_proba_.sum(axis=1), 1.0)
    own = fitted.out_of_fold_proba_[np.arange(300), np.searchsorted(fitted.classes_, y)]
    assert -np.log(own).mean() == pytest.approx(fitted.out_of_fold_log_loss_)
    straight = LogisticRegression().fit(table[["dose", "age"]], y)
    seen = straight.predict_proba(table[["dose", "age"]])
    loss = -np.log(seen[np.arange(300), np.searchsorted(fitted.classes_, y)]).mean()
    assert fitted.out_of_fold_log_loss_ < loss


def test_given_strengths_are_the_ridge_of_scikit_learn() -> None:
    """Two-valued covariates have a slope each: the model is scikit-learn's."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 3)) < 0.5).astype(float)
    y = (X @ rng.normal(size=(3, 4)) * 2 + rng.gumbel(size=(400, 4))).argmax(axis=1)
    own = LogisticGAM(smoothness=1.0, ridge=0.5, cv=None).fit(X, y)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(standard, y)
    np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(standard), atol=1e-5)
    assert np.isnan(own.out_of_fold_proba_).all()


def test_weight_two_is_the_row_twice() -> None:
    X, y = load_iris(return_X_y=True)
    rows = np.repeat(np.arange(150), 1 + (np.arange(150) % 2))
    weight = 1.0 + (np.arange(150) % 2)
    given = {"smoothness": 5.0, "ridge": 1.0, "cv": None}
    one = LogisticGAM(**given).fit(X, y, sample_weight=weight)
    two = LogisticGAM(**given).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)


def test_a_file_holds_it(fitted: LogisticGAM, tmp_path: Path) -> None:
    table, _ = mixed()
    save(fitted, tmp_path / "gam.adacos")
    again = load(tmp_path / "gam.adacos")
    np.testing.assert_array_equal(again.predict_proba(table), fitted.predict_proba(table))


def test_every_class_is_in_the_training_part_of_every_fold() -> None:
    """A class of two rows is dealt to two folds, however many folds there are."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 2.0], [100, 50, 2])
    fold = stratified_folds(rng.normal(size=(152, 3)), y, 10, 0)
    assert len(np.unique(fold)) == 10
    assert len(np.unique(fold[y == 2.0])) == 2


def test_fifteen_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = (X @ rng.normal(size=(3, 15)) * 2 + rng.gumbel(size=(900, 15))).argmax(axis=1)
    gam = LogisticGAM(cv=3, strengths="common").fit(X, y)
    assert gam.predict_proba(X).shape == (900, 15)
    shares = np.bincount(y) / 900
    assert gam.out_of_fold_log_loss_ < 0.8 * -(shares * np.log(shares)).sum()


def test_costs_of_the_wrong_number_of_classes_are_refused() -> None:
    from adacos import Costs

    assert Costs().matrix_for(3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    matrix = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    costs = Costs([1.0], misclassification=matrix)
    assert costs.bind(["age"], 3).matrix.tolist() == matrix
    assert costs.of([0]) == 1.0
    assert "misclassification" in repr(costs)
    for wrong, n_classes in ((costs, 2), (Costs(false_positive=3), 3), (costs, 4)):
        with pytest.raises(InvalidInputError, match="misclassification="):
            wrong.matrix_for(n_classes)
    with pytest.raises(InvalidInputError, match="a wrong label must cost more"):
        Costs(misclassification=[[0, 1, 2], [3, 0, 4], [5, 6, 5.5]])
