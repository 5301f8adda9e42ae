"""Coherent lookahead: beliefs are a martingale, and information is never expected to do harm."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from adacos import AdaCOSClassifier, Costs, load_heart, load_pima, load_wisconsin
from adacos.exceptions import InvalidInputError
from adacos.kernels.bayes_risk import bayes_risk, expected_bayes_risk
from adacos.models.forecasts import FORECASTS, Forecast
from adacos.models.lookahead import WalkState, advance, begin, look_ahead

LOADERS = {"pima": load_pima, "wisconsin": load_wisconsin, "heart": load_heart}
QUICK = {"strengths": "common", "cv": 3}
COHERENT = {"lookahead": "coherent", **QUICK}


@pytest.fixture(scope="module")
def policies() -> dict[str, tuple[Any, AdaCOSClassifier]]:
    found = {}
    for name, load in LOADERS.items():
        data = load()
        costs = Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
        found[name] = data, AdaCOSClassifier(costs, **COHERENT).fit(data.X, data.y)
    return found


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    right = rng.normal(scale=50, size=2)
    wrong = right + 10 ** rng.uniform(-1, 4, size=2)
    return np.array([[right[0], wrong[0]], [wrong[1], right[1]]])


def states(policy: AdaCOSClassifier, encoded: np.ndarray, known: np.ndarray) -> list[WalkState]:
    """The rows at every set, those of a model that knows `known` from the start."""
    available = ~np.isnan(encoded[:, policy.encoder_.first])
    have = known.copy()
    have[policy.model_.sequence.set(0)] = True
    state = begin(policy.model_, encoded, available, have, known)
    found = [state]
    while state.stage + 1 < len(state.model.sequence):
        state = advance(state, np.ones(len(state.part), dtype=bool))
        found.append(state)
    return found


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("kind", ["complete", "missing", "known"])
def test_no_acquisition_has_negative_value_before_its_cost(policies, name: str, kind: str) -> None:
    data, policy = policies[name]
    rng = np.random.default_rng(0)
    encoded = policy._encode(data.X)[rng.permutation(len(data.X))[:60]]
    encoded = encoded[~np.isnan(encoded).any(axis=1)]
    known = np.zeros(len(policy.encoder_.names), dtype=bool)
    if kind == "missing":
        missing = rng.random((len(encoded), len(known))) < 0.3
        encoded = np.where(missing[:, policy.encoder_.source], np.nan, encoded)
    if kind == "known":
        known[rng.permutation(len(known))[:3]] = True
    seen = 0
    for state in states(policy, encoded, known):
        lookahead = look_ahead(state, policy.cost_table_)
        rows, sets = np.arange(len(encoded)), slice(0, lookahead.mean.shape[1])
        now = lookahead.log_odds[:, None]
        mean, sd = lookahead.forecast.moments(now, lookahead.mean, lookahead.sd)
        for _ in range(6):
            matrix = random_matrix(rng)
            risk = bayes_risk(now, matrix)
            assert np.all(lookahead.expected_risk(rows, sets, matrix) <= risk)
            # Not by the bound alone: the integral says so to its own accuracy.
            assert np.all(expected_bayes_risk(mean, sd, matrix) <= risk + 1e-5 * np.ptp(matrix))
        seen += mean.size
        # The mean probability is kept.
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        kept = expit(mean[:, :, None] + sd[:, :, None] * nodes) @ weights / weights.sum()
        np.testing.assert_allclose(kept, expit(now) + 0 * mean, atol=2e-3)
    assert seen > 100


@pytest.mark.parametrize(("name", "least"), [("wisconsin", 0.3), ("pima", 0.2)])
def test_the_papers_lookahead_expects_harm(policies, name: str, least: float) -> None:
    """Why it is not the default: information would raise the risk in many cases."""
    data, policy = policies[name]
    encoded = policy._encode(data.X)
    nothing = np.zeros(len(policy.encoder_.names), dtype=bool)
    harm, cases = 0, 0
    for state in states(policy, encoded, nothing)[:-1]:
        lookahead = look_ahead(state, policy.cost_table_, FORECASTS["paper"])
        rows, sets = np.arange(len(encoded)), slice(0, lookahead.mean.shape[1])
        after = lookahead.expected_risk(rows, sets, policy.rule_.matrix)
        risk = bayes_risk(lookahead.log_odds, policy.rule_.matrix)[:, None]
        harm += int(np.sum(after > risk * (1 + 1e-9)))
        cases += after.size
    assert harm > least * cases


def test_the_lookahead_is_a_parameter(policies) -> None:
    data, policy = policies["wisconsin"]
    published = AdaCOSClassifier(policy.costs, lookahead="paper", **QUICK).from_model(policy)
    one, other = policy.acquire(data.X), published.acquire(data.X)
    assert not np.array_equal(one.acquired, other.acquired)
    assert one.expected_cost.mean() < other.expected_cost.mean()
    with pytest.raises(InvalidInputError, match="lookahead"):
        AdaCOSClassifier(policy.costs, lookahead="sunny").fit(data.X, data.y)
    with pytest.raises(InvalidInputError, match="lookahead"):
        AdaCOSClassifier(policy.costs, lookahead="sunny").from_model(policy)


def test_a_forecast_is_one_class_and_one_line(policies, monkeypatch) -> None:
    """A forecast that nothing will be learned stops every row at once."""

    class Blind(Forecast):
        def moments(self, now: Any, mean: Any, sd: Any) -> tuple[Any, Any]:
            return now + 0 * mean, 0 * sd

        def expected_risk(self, now: Any, mean: Any, sd: Any, matrix: Any) -> Any:
            return expected_bayes_risk(*self.moments(now, mean, sd), matrix)

    data, policy = policies["pima"]
    monkeypatch.setitem(FORECASTS, "blind", Blind())
    blind = copy.copy(policy)
    blind.lookahead = "blind"
    assert not blind.finish_fit().acquire(data.X).acquired.any()
