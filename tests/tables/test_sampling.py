"""How rows came into a table: shares of classes by design, values missing by class or by rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from adacos import AdaCOSClassifier, COSClassifier, Costs, load_pima
from adacos.exceptions import TableWarning
from adacos.tables.sampling import LEVEL, missing_by_class, missing_by_values
from adacos.tables.suspicions import suspicions

pandas = pytest.importorskip("pandas")

COSTS = Costs([1.0, 1.0, 1.0], false_positive=10.0, false_negative=10.0)


def kinds(X: Any, y: Any, groups: Any = None) -> dict[str, str]:
    return {found.kind: str(found) for found in suspicions(X, y, groups)}


def drawn(n: int, seed: int = 0, share: float = 0.3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], y


def with_missing(X: Any, chance: Any, seed: int = 1) -> Any:
    X = X.copy()
    X[np.random.default_rng(seed).random(len(X)) < chance, 1] = np.nan
    return X


def test_classes_of_exactly_one_size_are_asked_about() -> None:
    X, y = drawn(400)
    assert "class_shares" not in kinds(X, y)
    half = np.concatenate([np.flatnonzero(y == k)[:100] for k in (0, 1)])
    reported = kinds(X[half], y[half])["class_shares"]
    assert "exactly 100 rows" in reported
    assert "sample_weight" in reported
    assert "class_shares" not in kinds(X[half[1:]], y[half[1:]])
    few = half[[*range(20), *range(100, 120)]]
    assert "class_shares" not in kinds(X[few], y[few])


def test_a_class_that_was_drawn_again_is_asked_about() -> None:
    X, y = drawn(600)
    again = np.random.default_rng(0).choice(np.flatnonzero(y == 1), 200)
    rows = np.concatenate([np.arange(600), again])
    assert "Rows of class 1 are repeated" in kinds(X[rows], y[rows])["class_shares"]
    # All rows twice is no design of the shares.
    assert "class_shares" not in kinds(np.repeat(X, 2, axis=0), np.repeat(y, 2))


def test_missing_at_random_is_named_no_more_often_than_the_level() -> None:
    for classes in (2, 3):
        alarms, repetitions = 0, 600
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            labels = rng.integers(0, classes, 300).astype(float)
            missing = rng.random((300, 5)) < [0.02, 0.1, 0.3, 0.5, 0.9]
            alarms += any(True for _ in missing_by_class(missing, labels))
        assert binom.sf(alarms - 1, repetitions, LEVEL) > 0.01, alarms


def test_chance_is_named_by_values_no_more_often_than_the_level() -> None:
    """Covariates depend on the class and on each other; one is a category, two have few values."""
    for classes in (1, 2, 3):
        alarms, repetitions = 0, 400
        for seed in range(repetitions):
            rng = np.random.default_rng([seed, classes])
            labels = rng.integers(0, classes, 300).astype(float)
            codes = rng.normal(size=(300, 6)) + labels[:, None] + rng.normal(size=(300, 1))
            codes[:, 1], codes[:, 2] = codes[:, 1].round(), rng.integers(0, 9, 300)
            codes[rng.random(codes.shape) < [0.02, 0.1, 0.3, 0.5, 0.9, 0.0]] = np.nan
            alarms += any(True for _ in missing_by_values(codes, np.arange(6) == 2, labels))
        assert binom.sf(alarms - 1, repetitions, LEVEL) > 0.01, alarms


def test_what_the_class_decides_is_not_named_by_values() -> None:
    alarms = 0
    for seed in range(100):
        X, y = drawn(500, seed)
        found = kinds(with_missing(X, np.where(y == 1, 0.1, 0.5), seed + 1000), y)
        assert "missing_by_class" in found
        alarms += "missing_by_values" in found
    assert binom.sf(alarms - 1, 100, LEVEL) > 0.01, alarms


def test_the_warning_of_the_first_page_is_short() -> None:
    """What the five lines of the README print; two lines of a wide terminal."""
    X, y, *_ = load_pima(zeros="missing")
    text = kinds(X, y)["missing_by_values"]
    assert "Insulin (37% to 65% of rows, by DiabetesPedigreeFunction)" in text
    assert len(text) <= 280


def test_a_value_that_decides_what_is_missing_is_named_with_the_shares() -> None:
    """In the middle of x0 the second test is done, at either end it is not, in both classes."""
    X, y = drawn(500)
    centred = X[:, 0] - y
    # The share of each class is the same, so that the class says nothing of it.
    X = with_missing(X, np.where(np.abs(centred - np.median(centred)) > 1, 0.9, 0.05))
    found = kinds(X, y)
    assert "missing_by_class" not in found
    assert found["missing_by_values"].startswith("x1 (")
    assert "of rows, by x0): missing more often" in found["missing_by_values"]
    table = pandas.DataFrame(X, columns=list("abc")).assign(
        d=np.where(centred > 0.5, "high", "low")
    )
    table.loc[(table["d"] == "high").to_numpy() & (np.arange(500) % 3 > 0), "c"] = np.nan
    assert "c (0% to 6" in kinds(table, y)["missing_by_values"]


def test_rows_recorded_by_a_policy_are_named() -> None:
    """It stops as soon as either class is clear, so that the class says nothing of what it asks."""
    costs = Costs([1.0, 2.0, 2.0, 3.0], false_positive=100.0, false_negative=100.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = np.arange(1000) % 2
        X = rng.normal(size=(1000, 4)) + [0.9, 0.8, 1.0, 0.6] * y[:, None]
        policy = AdaCOSClassifier(costs, strengths="common", n_splines=5, cv=3)
        first = policy.fit(X[:400], y[:400]).acquire(X[400:])
        recorded = np.where(first.acquired, X[400:], np.nan)
        assert "missing_by_values" in kinds(recorded, y[400:])
        assert "missing_by_values" not in kinds(X[400:], y[400:])


def test_a_fifth_of_missing_values_is_reported() -> None:
    X, y = drawn(500)
    assert "many_missing" not in kinds(with_missing(X, 0.15), y)
    reported = kinds(with_missing(X, 0.25), y)["many_missing"]
    assert reported.startswith("x1 (missing in 2")
    assert "too low" in reported


def test_thousands_of_pairs_are_looked_at_on_some_of_the_rows() -> None:
    """300 columns of 20,000 rows, one of which decides about another."""
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(20_000, 300))
    codes[rng.random(codes.shape) < 0.1] = np.nan
    codes[codes[:, 7] > 0.5, 11] = np.nan
    found = list(missing_by_values(codes, np.zeros(300, dtype=bool), np.arange(20_000) % 2.0))
    assert [(one.position, one.other) for one in found] == [(11, 7)]


@pytest.mark.parametrize("classes", [2, 3])
def test_tests_that_were_ordered_for_one_class_are_named(classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 600)
    X = rng.normal(size=(600, 3)) + y[:, None]
    assert "missing_by_class" not in kinds(with_missing(X, 0.3), y)
    reported = kinds(with_missing(X, np.where(y == 1, 0.1, 0.5)), y)["missing_by_class"]
    assert reported.startswith("x1 (missing in ")
    assert "missing at random" in reported


def test_rows_of_a_group_count_once() -> None:
    """Each patient has eight rows, which lack the value together: no sign of the class."""
    alarms = {True: 0, False: 0}
    for seed in range(40):
        X, y = drawn(60, seed, 0.5)
        X = np.repeat(with_missing(X, 0.4, seed + 100), 8, axis=0)
        X = X + 0.01 * np.random.default_rng(seed).normal(size=X.shape)
        y, who = np.repeat(y, 8), np.repeat(np.arange(60), 8)
        alarms[True] += "missing_by_class" in kinds(X, y, who)
        alarms[False] += "missing_by_class" in kinds(X, y)
    assert alarms[True] <= 2
    assert alarms[False] > 10


def test_fit_warns_once_and_weights_answer_the_question() -> None:
    X, y = drawn(500)
    half = np.concatenate([np.flatnonzero(y == k)[:100] for k in (0, 1)])
    X, y = X[half], y[half]
    policy = COSClassifier(COSTS, strengths="common", n_splines=5, cv=3)
    with pytest.warns(TableWarning, match="looks designed") as reported:
        policy.fit(X, y)
    assert len([item for item in reported if item.category is TableWarning]) == 1
    assert "class_shares" in {found.kind for found in policy.check(X, y)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        policy.fit(X, y, sample_weight=np.where(y == 1, 0.6, 1.4))
    with pytest.warns(TableWarning, match=r"x1 \(missing in"):
        policy.fit(with_missing(X, np.where(y == 1, 0.05, 0.6)), y, sample_weight=np.ones(len(y)))
