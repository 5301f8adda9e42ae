"""The joint model: enumeration and scipy for its formulas, known mixtures for its fits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from adacos.kernels.folds import stratified_folds
from adacos.kernels.product_mixture import expectation, fit_mixture
from adacos.models.table_mixture import (
    Reading,
    TableMixture,
    fit_members,
    held_out_joint,
    log_shares,
    pooled,
)
from adacos.tables.codes import Codes
from adacos.tables.encoder import TableEncoder, validate_table

SEVERAL = {"town": ["e", "n", "w"], "visits": [0.0, 1.0, 2.0, 4.0], "smokes": [0.0, 1.0]}


def checked(table: Any) -> Any:
    return validate_table(BaseEstimator(), pd.DataFrame(table), reset=True)


def encoded_of(table: Any) -> tuple[TableEncoder, Any]:
    """Encoder and encoded values of columns by name; text is a category."""
    encoder = TableEncoder.fit(checked(table), tuple(table))
    return encoder, encoder.transform(checked(table))


def fitted(encoded: Any, encoder: Any, labels: Any, each: int = 2, n_classes: int = 2) -> Any:
    reading = Reading.fit(encoded, encoder)
    statistics = reading.statistics(encoded)
    weight, rng = np.ones(len(labels)), np.random.default_rng(0)
    found, _ = fit_mixture(statistics, labels, weight, n_classes, each, reading.layout, rng)
    return TableMixture(reading, *found)


def members_of(encoded: Any, encoder: Any, labels: Any, n_classes: int = 2) -> Any:
    reading = Reading.fit(encoded, encoder)
    fold = stratified_folds(encoded, labels.astype(float), 5, 0)
    args = (reading.statistics(encoded), labels, np.ones(len(labels)), [fold], n_classes, 0)
    return fit_members(reading, *args)


def few_values(n: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, n)
    kind = rng.integers(0, 2, n)
    table = {
        "town": np.where(rng.random(n) < 0.6, np.array(SEVERAL["town"])[labels], "n"),
        "visits": np.array(SEVERAL["visits"])[(labels + kind + rng.integers(0, 2, n)) % 4],
        "smokes": (rng.random(n) < 0.2 + 0.6 * kind).astype(float),
    }
    return table, labels


def numbers(n: int, seed: int, n_classes: int = 2) -> tuple[Any, Any, Any]:
    """Two components in each class, and the true P(y | x_S)."""
    rng = np.random.default_rng(seed)
    drawn = np.random.default_rng(7)
    mean = 1.3 * drawn.normal(size=(2 * n_classes, 3))
    component = rng.integers(0, 2 * n_classes, n)
    X = rng.normal(mean[component], 0.9)

    def truth(rows: Any, acquired: Any) -> Any:
        density = np.ones((len(rows), len(mean)))
        for j in np.flatnonzero(acquired):
            density *= norm.pdf(rows[:, [j]], mean[:, j], 0.9)
        by_class = density.reshape(len(rows), n_classes, 2).sum(axis=2)
        return by_class / by_class.sum(axis=1, keepdims=True)

    return X, component // 2, truth


def encoder_of(X: Any) -> TableEncoder:
    return TableEncoder.fit(X, tuple(f"x{j}" for j in range(X.shape[1])))


def test_marginals_are_sums_over_what_was_not_acquired() -> None:
    """Every set S of a table of few values, all its rows listed, with three classes."""
    table, labels = few_values()
    encoder, encoded = encoded_of(table)
    mixture = fitted(encoded, encoder, labels, n_classes=3)
    listed = list(product(*SEVERAL.values()))
    every = {name: [row[i] for row in listed] for i, name in enumerate(SEVERAL)}
    statistics = mixture.reading.statistics(encoder.transform(checked(every)))
    whole = np.exp(mixture.log_joint(statistics, np.ones((len(listed), 3), dtype=bool)))
    assert whole.sum() == pytest.approx(1.0)
    for mask in product((False, True), repeat=3):
        acquired = np.array(mask)
        joint = np.exp(mixture.log_joint(statistics, np.tile(acquired, (len(listed), 1))))
        for row, own in zip(listed, joint, strict=True):
            alike = [
                all(a == b for a, b, k in zip(row, other, acquired, strict=True) if k)
                for other in listed
            ]
            np.testing.assert_allclose(own, whole[alike].sum(axis=0), rtol=1e-10)


def test_densities_are_those_of_scipy() -> None:
    """A number with an atom at 0, beside a category; and a missing value is left out."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 500)
    dose = np.where(rng.random(500) < 0.4, 0.0, np.exp(rng.normal(labels, 1.0)))
    table = {"dose": dose, "town": rng.choice(["e", "n"], 500)}
    encoder, encoded = encoded_of(table)
    mixture = fitted(encoded, encoder, labels)
    assert mixture.reading.levels[0].tolist() == [0.0]
    rows = np.array([[0.0, 1.0, 0.0], [2.5, 0.0, 1.0], [np.nan, 1.0, 0.0]])
    log = mixture.log_components(mixture.reading.statistics(rows), np.ones((3, 2), dtype=bool))
    score = mixture.reading.score(0, np.array([2.5]))
    number = norm.logpdf(score, mixture.mean[:, 0], np.sqrt(mixture.variance[:, 0]))
    share = np.log(np.maximum(mixture.share, 1e-300))
    expected = mixture.log_weight + np.array(
        [share[:, 0] + share[:, 4], share[:, 1] + number + share[:, 5], share[:, 4]]
    )
    np.testing.assert_allclose(log, expected, rtol=1e-12)
    # Four rows in ten are at the atom.
    assert np.exp(mixture.log_weight) @ mixture.share[:, 0] == pytest.approx(0.4, abs=0.07)


def test_probabilities_of_codes_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 600)
    table = {
        "dose": np.where(rng.random(600) < 0.3, 0.0, rng.normal(labels + 3.0)),
        "visits": rng.integers(0, 4, 600).astype(float),
    }
    encoder, encoded = encoded_of(table)
    mixture = fitted(encoded, encoder, labels)
    cuts = (np.array([1e-9, 2.5, 4.0]), np.array([1.5]))
    codes = Codes(encoder.source, np.array([4, 2]), cuts)
    dose, visits = (mixture.code_shares(codes, k) for k in range(2))
    below = norm.cdf(mixture.reading.score(0, cuts[0]), mixture.mean, np.sqrt(mixture.variance))
    other = mixture.share[:, 1:2] * np.diff(below, prepend=0.0, append=1.0)
    other[:, 0] += mixture.share[:, 0]
    np.testing.assert_allclose(dose, other, rtol=1e-10)
    np.testing.assert_allclose(visits[:, 0], mixture.share[:, 4:6].sum(axis=1))
    joint = mixture.joint_of_codes(codes, np.arange(2))
    weight = np.exp(mixture.log_weight)[:, None] * mixture.class_share
    np.testing.assert_allclose(joint, np.einsum("kc,ki,kj->cij", weight, dose, visits))
    assert joint.sum() == pytest.approx(1.0)


def missing(X: Any, share: float, seed: int) -> Any:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def test_the_penalised_likelihood_never_decreases() -> None:
    """With missing values, weights and rows of which the class is not known."""
    X, labels, _ = numbers(600, seed=0, n_classes=3)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(600) < 0.3, -1, labels)
    X = missing(np.column_stack([X, rng.integers(0, 3, 600)]), 0.2, 2)
    X[:200, 0] = 1.0
    reading = Reading.fit(X, encoder_of(X))
    weight = rng.exponential(size=600)
    for seed in range(3):
        _, history = fit_mixture(
            reading.statistics(X),
            labels,
            weight,
            3,
            4,
            reading.layout,
            np.random.default_rng(seed),
            most_steps=60,
            tolerance=0.0,
        )
        assert np.diff(history).min() > -1e-8 * abs(history[-1])
        assert history[-1] > history[0]


def test_a_weight_counts_as_that_number_of_copies() -> None:
    X, labels, _ = numbers(80, seed=3)
    X = missing(X, 0.1, 4)
    times = np.random.default_rng(5).integers(0, 4, 80)
    mixture = fitted(X, encoder_of(X), labels)
    statistics, layout = mixture.reading.statistics(X), mixture.reading.layout
    parameters = mixture._parameters
    one = expectation(parameters, layout, statistics, labels, times.astype(float))
    copies = np.repeat(np.arange(80), times)
    other = expectation(
        parameters, layout, statistics[copies], labels[copies], np.ones(len(copies))
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_known_mixture_is_found_for_every_set(n_classes: int) -> None:
    X, labels, truth = numbers(6000, seed=0, n_classes=n_classes)
    new, _, _ = numbers(2000, seed=1, n_classes=n_classes)
    mixture = pooled(members_of(X, encoder_of(X), labels, n_classes)[0])
    statistics = mixture.reading.statistics(new)
    for mask in product((False, True), repeat=3):
        acquired = np.tile(np.array(mask), (len(new), 1))
        found = np.exp(log_shares(mixture.log_joint(statistics, acquired)))
        assert np.abs(found - truth(new, mask)).mean() < 0.03


def test_probabilities_are_calibrated_where_values_are_missing() -> None:
    """30 % of the training values removed at random; random sets of new rows."""
    X, labels, _ = numbers(10_000, seed=5)
    members, _ = members_of(missing(X, 0.3, 6), encoder_of(X), labels)
    mixture = pooled(members)
    new, outcome, _ = numbers(40_000, seed=7)
    acquired = np.random.default_rng(8).random(new.shape) < 0.6
    log = mixture.log_joint(mixture.reading.statistics(new), acquired)
    odds = (log[:, 1] - log[:, 0])[:, None]
    slope = LogisticRegression(C=np.inf).fit(odds, outcome).coef_[0, 0]
    # Its standard error is about 0.012.
    assert 0.95 < slope < 1.05


def test_rows_without_a_class_help() -> None:
    """Two groups that lie apart; ten rows of known classes say which is which."""
    rng = np.random.default_rng(9)
    labels = np.arange(2000) % 2
    X = rng.normal(labels[:, None] * np.full(4, 1.5), 1.0)
    some = np.where(np.arange(2000) < 10, labels, -1)
    reading = Reading.fit(X, encoder_of(X))
    statistics, loss = reading.statistics(X), []
    for rows in (np.arange(10), np.arange(1000)):
        found, _ = fit_mixture(
            statistics[rows],
            some[rows],
            np.ones(len(rows)),
            2,
            1,
            reading.layout,
            np.random.default_rng(0),
            most_steps=100,
        )
        new, every = statistics[1000:], np.ones((1000, 4), dtype=bool)
        log = log_shares(TableMixture(reading, *found).log_joint(new, every))
        loss.append(-log[np.arange(1000), labels[1000:]].mean())
    assert loss[1] < 0.8 * loss[0]


def test_the_number_of_components_is_that_which_predicts() -> None:
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 2, 1000)
    X = rng.normal(labels[:, None] * [0.8, 0.5, 0.0], 1.0)
    _, loss = members_of(X, encoder_of(X), labels)
    assert min(loss, key=loss.get) == 1  # type: ignore[arg-type]
    # Which of two covariates is high says nothing by itself.
    X = rng.normal(size=(1000, 2))
    labels = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(np.intp)
    _, loss = members_of(X, encoder_of(X), labels)
    assert min(loss, key=loss.get) > 1  # type: ignore[arg-type]
    assert min(loss.values()) < loss[1] - 0.1


def test_held_out_probabilities_are_honest() -> None:
    """Where covariates say nothing, held-out rows are no better predicted than by the shares."""
    rng = np.random.default_rng(12)
    X, labels = rng.normal(size=(300, 6)), rng.integers(0, 2, 300)
    members, _ = members_of(X, encoder_of(X), labels)
    statistics = members[0].mixture.reading.statistics(X)
    log = log_shares(held_out_joint(members, statistics, np.ones(X.shape, dtype=bool)))
    assert -log[np.arange(300), labels].mean() > np.log(2) - 0.005


def test_values_that_no_training_row_has_are_possible() -> None:
    """A level of a held-out fold alone, a category never seen, a value between levels."""
    labels = np.arange(60) % 2
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], [30, 29, 1]), np.arange(60) % 5])
    members, _ = members_of(X, encoder_of(X), labels)
    mixture = pooled(members)
    statistics = mixture.reading.statistics(X)
    assert np.isfinite(held_out_joint(members, statistics, np.ones(X.shape, dtype=bool))).all()
    between = mixture.reading.statistics(np.array([[1.2, 3.0]]))
    np.testing.assert_array_equal(between, mixture.reading.statistics(np.array([[1.0, 3.0]])))


def test_a_class_of_one_row_is_known_to_every_member() -> None:
    """Nobody can be without that row: it is judged by all, and the others are held out."""
    X, labels, _ = numbers(60, seed=1)
    labels = np.where(np.arange(60) == 7, 2, labels)
    members, loss = members_of(X, encoder_of(X), labels, n_classes=3)
    assert all(member.mixture.class_share.sum(axis=0).min() > 0 for member in members)
    held_out = np.sort(np.concatenate([member.held_out for member in members]))
    np.testing.assert_array_equal(held_out, np.delete(np.arange(60), 7))
    assert np.isfinite(list(loss.values())).all()
    every = np.ones(X.shape, dtype=bool)
    log = held_out_joint(members, members[0].mixture.reading.statistics(X), every)
    assert np.isfinite(log).all()


def test_parts_that_do_not_fit_each_other_are_refused() -> None:
    X, labels, _ = numbers(60, seed=0)
    mixture = fitted(X, encoder_of(X), labels)
    mixture.check()
    with pytest.raises(ValueError, match="do not fit each other"):
        replace(mixture, variance=-mixture.variance).check()
    with pytest.raises(ValueError, match="do not fit each other"):
        replace(mixture, share=mixture.share[1:]).check()
