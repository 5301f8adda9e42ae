"""What going on did for rows left out corrects what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import adacos.models.realised as realised
import adacos.models.sequence_model as sequence_model
from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.consultation.steps import Acquire
from adacos.datasets import make_discrete_problem
from adacos.metrics import total_costs
from adacos.models.dynamic import ValueTables
from adacos.models.followed import FollowedRows
from adacos.models.realised import LIMIT, WIDTHS, realised_correction
from adacos.models.sequences import SetSequence
from adacos.policies.partitions import for_answering

MATRIX = np.array([[0.0, 10.0], [60.0, 0.0]])
GRID = np.linspace(-6, 4, 81)


def walk_model(
    log_odds: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, first: int = 0
) -> Any:
    """What a correction reads of a model; each set has one covariate more, the first has none."""
    n_sets = log_odds.shape[1]
    weight = np.ones(len(y)) if weight is None else weight
    return SimpleNamespace(
        followed=FollowedRows(log_odds, y.astype(float), weight, first),
        sequence=SetSequence(np.arange(n_sets - 1), 0),
    )


def prices(n_sets: int, price: float = 0.5) -> Any:
    return Costs([price] * (n_sets - 1)).bind([f"x{k}" for k in range(n_sets - 1)], 2)


def risk(log_odds: np.ndarray) -> np.ndarray:
    p = expit(log_odds)
    return np.minimum(p * MATRIX[1, 0], (1 - p) * MATRIX[0, 1])


def by_definition(
    log_odds: np.ndarray, y: np.ndarray, gain: np.ndarray, price: float
) -> np.ndarray:
    """The correction at the grid, row by row and point by point."""
    n, n_sets = log_odds.shape
    threshold = np.log(MATRIX[0, 1] / MATRIX[1, 0])

    def error(r: int, i: int) -> float:
        return float(MATRIX[int(y[r]), int(log_odds[r, i] >= threshold)])

    after = [error(r, n_sets - 1) for r in range(n)]
    found = np.zeros((n_sets, len(GRID)))
    for i in range(n_sets - 2, -1, -1):
        own = log_odds[:, i]
        rank = np.array([(np.sum(own < u) + np.sum(own <= u)) / (2 * n) for u in own])
        order = np.argsort(own)
        at = np.interp(GRID, own[order], rank[order])

        def expected(u: float, i: int = i, more: np.ndarray | float = 0.0) -> float:
            return float(np.interp(expit(u), expit(GRID), gain[i] + more))

        left = np.array([error(r, i) - price - after[r] - expected(own[r]) for r in range(n)])
        for width in WIDTHS:
            means = []
            for point in [*rank, *at]:
                near = np.exp(-0.5 * ((point - rank) / width) ** 2)
                mean = float(np.sum(near * left) / near.sum())
                variance = float(np.sum(near * (left - mean) ** 2) / near.sum())
                rows = near.sum() ** 2 / np.sum(near**2)
                noise = LIMIT**2 * variance / (rows - 1) + (60.0 / rows) ** 2
                kept = 0.0 if mean == 0 else max(0.0, 1 - noise / mean**2)
                means.append(mean * kept)
            left = left - means[:n]
            found[i] += means[n:]
        p = expit(GRID)
        most = np.minimum((1 - p) * MATRIX[0, 1], p * MATRIX[1, 0]) - price - gain[i]
        found[i] = np.where(found[i] > 0, np.minimum(found[i], np.maximum(most, 0)), found[i])
        after = [
            price + after[r] if expected(own[r], more=found[i]) > 0 else error(r, i)
            for r in range(n)
        ]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_correction_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log_odds = np.cumsum(rng.normal(size=(90, 4)), axis=1) - 1
    y = rng.random(90) < expit(log_odds[:, -1] + 0.5)
    gain = rng.normal(-4, 1, size=(4, 1)) + np.zeros((4, len(GRID)))
    gain[-1] = -np.inf
    found = realised_correction(walk_model(log_odds, y), prices(4), MATRIX, GRID, gain)
    wanted = by_definition(log_odds, y, gain, 0.5)
    assert np.abs(wanted).max() > 0.5
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def forecast_problem(n: int, sd: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds at three sets, each by the class drawn first: what they say is true at every set."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    # Evidence of strength d: log-odds move by N(±d²/2, d²).
    first = np.log(0.3 / 0.7) + rng.normal(np.where(y, 0.5, -0.5), 1.0)
    second = first + rng.normal(np.where(y, sd**2 / 2, -(sd**2) / 2), sd)
    return np.column_stack([first, second]), y


def true_gain(sd: float, price: float) -> np.ndarray:
    """Saving of one more piece of evidence, by quadrature over its two normals."""
    points, masses = np.polynomial.hermite_e.hermegauss(80)
    masses = masses / masses.sum()
    p = expit(GRID)[:, None]
    up, down = GRID[:, None] + sd**2 / 2 + sd * points, GRID[:, None] - sd**2 / 2 + sd * points
    after = (p * risk(up) + (1 - p) * risk(down)) @ masses
    return risk(GRID) - price - after


def test_a_wrong_forecast_is_corrected_by_many_rows() -> None:
    sd, price = 1.5, 0.5
    log_odds, y = forecast_problem(20_000, sd, seed=1)
    truth = true_gain(sd, price)
    # A forecaster who overlooks most of the evidence.
    wrong = np.vstack([true_gain(0.5, price), np.full(len(GRID), -np.inf)])
    found = realised_correction(walk_model(log_odds, y), prices(2, price), MATRIX, GRID, wrong)
    at = log_odds[:, 0]
    before = np.abs(np.interp(at, GRID, wrong[0] - truth)).mean()
    after = np.abs(np.interp(at, GRID, wrong[0] + found[0] - truth)).mean()
    assert before > 0.5
    assert after < 0.3 * before


def test_a_right_forecast_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sd, price = 1.0, 0.5
    gain = np.vstack([true_gain(sd, price), np.full(len(GRID), -np.inf)])
    moved, would_move = [], []
    for seed in range(60):
        log_odds, y = forecast_problem(300, sd, seed)
        found = realised_correction(walk_model(log_odds, y), prices(2, price), MATRIX, GRID, gain)
        at = log_odds[:, 0]
        moved.append(np.abs(np.interp(at, GRID, found[0])).mean())
        with monkeypatch.context() as believing:
            believing.setattr(realised, "LIMIT", 0.0)
            found = realised_correction(
                walk_model(log_odds, y), prices(2, price), MATRIX, GRID, gain
            )
        would_move.append(np.abs(np.interp(at, GRID, found[0])).mean())
    # Of what chance would move, hardly anything is believed.
    assert np.mean(moved) < 0.15 * np.mean(would_move)


def test_sets_without_log_odds_of_their_own_are_not_corrected() -> None:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=(200, 4))
    y = rng.random(200) < 0.5
    gain = np.full((4, len(GRID)), 5.0)
    gain[-1] = -np.inf
    every, some = (
        realised_correction(walk_model(log_odds, y, first=first), prices(4), MATRIX, GRID, gain)
        for first in (0, 2)
    )
    assert every[:2].any(axis=1).all()
    assert not some[:2].any()
    np.testing.assert_array_equal(some[2], every[2])


def test_what_right_answers_cost_changes_nothing() -> None:
    log_odds, y = forecast_problem(400, 1.5, seed=3)
    gain = np.vstack([true_gain(0.3, 0.5), np.full(len(GRID), -np.inf)])
    model, costs = walk_model(log_odds, y), prices(2)
    plain = realised_correction(model, costs, MATRIX, GRID, gain)
    moved = realised_correction(model, costs, MATRIX - [[1000.0], [200.0]], GRID, gain)
    assert plain.any()
    np.testing.assert_allclose(moved, plain, atol=1e-9)


@pytest.fixture(scope="module")
def pima() -> tuple[AdaCOSClassifier, Any, np.ndarray]:
    X, y, own, *_ = load_pima()
    costs = Costs(own, false_positive=50, false_negative=500)
    return AdaCOSClassifier(costs).fit(X, y), X, np.asarray(y)


def test_it_decides_by_default(pima: tuple[AdaCOSClassifier, Any, np.ndarray]) -> None:
    policy, X, _ = pima
    given = policy.cost_table_, policy.rule_.matrix
    values = ValueTables(*given, realised=policy.cost_table_).of_sets(policy.model_)
    plain = ValueTables(*given).of_sets(policy.model_)
    assert values.correction.any()
    assert not plain.correction.any()
    np.testing.assert_array_equal(values.gain, plain.gain + values.correction)
    dynamic = AdaCOSClassifier(policy.costs, lookahead="dynamic").from_model(policy)
    assert (policy.acquire(X).acquired != dynamic.acquire(X).acquired).any()


def test_plans_shown_agree_with_the_decision(
    pima: tuple[AdaCOSClassifier, Any, np.ndarray],
) -> None:
    policy, X, _ = pima
    result = policy.acquire(X[:40])
    for row in range(40):
        consultation = policy.consultation()
        step = consultation.next()
        while isinstance(step, Acquire):
            assert step.explanation.expected_saving > 0
            consultation.observe(**{name: X.iloc[row][name] for name in step.covariates})
            step = consultation.next()
        assert step.explanation.expected_saving == 0
        assert step.label == result.label[row]


def test_the_explanation_says_where_out_of_fold_rows_turn_the_decision(
    pima: tuple[AdaCOSClassifier, Any, np.ndarray],
) -> None:
    policy, X, _ = pima
    dynamic = AdaCOSClassifier(policy.costs, lookahead="dynamic").from_model(policy)
    turned = set()
    for row in range(60):
        known = X.iloc[row][["Age"]].to_dict()
        step, other = (one.consultation(known=known).next() for one in (policy, dynamic))
        because = step.explanation.because
        assert ("The model alone" in because) == (type(step) is not type(other))
        assert not other.explanation.because
        turned.add(because)
    assert len(turned) > 1


def test_rows_that_cannot_continue_like_others_are_not_corrected(
    pima: tuple[AdaCOSClassifier, Any, np.ndarray],
) -> None:
    """Where something ahead is not to be had; and nobody goes on where nothing is."""
    policy, X, _ = pima
    dynamic = AdaCOSClassifier(policy.costs, lookahead="dynamic").from_model(policy)
    missing = X.astype(float).copy()
    missing.loc[::2, policy.sets_[-1][-1]] = np.nan
    one, other, whole = policy.acquire(missing), dynamic.acquire(missing), policy.acquire(X)
    np.testing.assert_array_equal(one.acquired[::2], other.acquired[::2])
    np.testing.assert_array_equal(one.acquired[1::2], whole.acquired[1::2])
    first = policy.sets_[1][0]
    nothing_left = X.astype(float).copy()
    nothing_left.loc[:, X.columns != first] = np.nan
    assert set(policy.acquire(nothing_left).acquired.sum(axis=1).tolist()) <= {0, 1}


def test_what_is_known_from_the_start_is_decided_like_what_was_acquired(
    pima: tuple[AdaCOSClassifier, Any, np.ndarray],
) -> None:
    policy, X, _ = pima
    first = policy.sets_[1][0]
    asked, known = policy.acquire(X), policy.acquire(X, known=np.array(X.columns == first))
    went_on = asked.stage > 0
    assert went_on.any()
    np.testing.assert_array_equal(asked.label[went_on], known.label[went_on])
    np.testing.assert_array_equal(
        asked.acquired[went_on].sum(axis=1), known.acquired[went_on].sum(axis=1) + 1
    )


def test_it_is_found_on_rows_that_stay_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn by class once, in fit: neither fewer rows in a file nor workers change decisions."""
    X, y, own, *_ = load_pima()
    monkeypatch.setattr(sequence_model, "FOLLOWED_ROWS", 400)
    rows = np.concatenate([np.flatnonzero(y == 0)[:268], np.flatnonzero(y == 1)])
    # Case, control, case, control.
    rows = rows.reshape(2, -1).T.ravel()
    costs = Costs(own, false_positive=20, false_negative=200)
    policy = AdaCOSClassifier(costs).fit(X.iloc[rows], np.asarray(y)[rows])
    followed = policy.model_.followed
    assert len(followed.y) == 400
    assert followed.y.mean() == 0.5
    assert followed.weight.sum() == pytest.approx(536)
    expected = policy.acquire(X).acquired
    np.testing.assert_array_equal(for_answering(policy).acquire(X).acquired, expected)
    policy.model_ = policy.model_.with_some_rows(300, 0)
    np.testing.assert_array_equal(policy.acquire(X).acquired, expected)


def test_rows_are_followed_as_far_as_they_have_values() -> None:
    """They do not pay for what they lack, and learn nothing from it."""
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.4
    X = rng.normal(size=(600, 3)) + y[:, None]
    whole = AdaCOSClassifier(cv=3, strengths="common").fit(X, y)
    X[::3, 1] = np.nan
    missing = AdaCOSClassifier(cv=3, strengths="common").fit(X, y, X_unlabeled=X[:5])
    assert len(whole.model_.followed.y) == 600
    assert whole.model_.followed.there is None
    sequence, last = missing.model_.sequence, len(missing.model_.sequence) - 1
    weights = missing.model_.followed.weights_along(sequence, last)
    has_set = ~sequence.masks()[:, 1] | (np.arange(600) % 3 > 0)[:, None]
    np.testing.assert_array_equal(weights > 0, has_set)


def test_the_more_covariates_count_the_less_is_paid(
    pima: tuple[AdaCOSClassifier, Any, np.ndarray],
) -> None:
    policy, X, _ = pima
    again = AdaCOSClassifier(policy.costs).from_model(policy)
    paid = []
    for multiplier in np.linspace(0, 2, 41):
        again.decider_ = again.decider_.with_multiplier(float(multiplier))
        paid.append(again.acquire(X).acquired.sum(axis=1))
    assert (np.diff(paid, axis=0) <= 0).all()
    assert paid[0].sum() > paid[-1].sum()


def test_in_known_problems_it_does_not_cost_more() -> None:
    costs_of: dict[str, list[float]] = {"dynamic": [], "realised": []}
    for seed in range(900, 908):
        problem = make_discrete_problem(4, dependence=1.0, strength=0.6, seed=seed)
        X, y = problem.sample(600, seed=seed)
        costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
        fitted = AdaCOSClassifier(costs, cv=5, strengths="common").fit(X, y)
        cells = np.indices(problem.levels).reshape(4, -1).T.astype(float)
        weight = problem.joint.reshape(2, -1)
        for lookahead, found in costs_of.items():
            result = AdaCOSClassifier(costs, lookahead=lookahead).from_model(fitted).acquire(cells)
            each = (weight[k] @ total_costs(result, np.full(len(cells), k), costs) for k in (0, 1))
            found.append(float(sum(each)))
    assert np.mean(costs_of["realised"]) <= 1.002 * np.mean(costs_of["dynamic"])


@pytest.mark.parametrize(
    "spoilt",
    [
        {"y": np.full(3, 7.0)},
        {"first": -2},
        {"log_odds": np.zeros((3, 99))},
        {"weight": np.ones(2)},
    ],
    ids=lambda spoilt: next(iter(spoilt)),
)
def test_rows_that_do_not_fit_the_model_are_refused(
    spoilt: dict[str, Any], pima: tuple[AdaCOSClassifier, Any, np.ndarray]
) -> None:
    """As a foreign file may hold them."""
    model = pima[0].model_
    n_sets = len(model.sequence)
    rows = {"log_odds": np.zeros((3, n_sets)), "y": np.zeros(3), "weight": np.ones(3), "first": 0}
    replace(model, followed=FollowedRows(**rows)).check()
    with pytest.raises(ValueError, match="do not fit"):
        replace(model, followed=FollowedRows(**{**rows, **spoilt})).check()
