"""Dynamic programming along a sequence, against brute-force integration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm

from adacos import AdaCOSClassifier, Costs, load_pima
from adacos.bench.regret import expected_cost
from adacos.datasets import make_discrete_problem
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.martingale import coherent_mean
from adacos.kernels.saving import Savings
from adacos.models.dynamic import ValueTables
from adacos.models.lookahead import begin, look_ahead


def fitted(lookahead: str = "dynamic", false_positive: float = 100.0) -> AdaCOSClassifier:
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=false_positive, false_negative=10 * false_positive)
    return AdaCOSClassifier(costs, lookahead=lookahead, cv=3, strengths="common").fit(X, y)


@pytest.mark.parametrize("false_positive", [10.0, 1000.0])
def test_values_against_dense_integration(false_positive: float) -> None:
    """V_i by trapezoids on a fine grid of log-odds, without closed forms or quadrature rules."""
    policy = fitted(false_positive=false_positive)
    model, costs = policy.model_, policy.cost_table_
    values = ValueTables(costs, costs.matrix).of_sets(model)
    fine = np.linspace(-16, 16, 1601)
    risk = bayes_risk(fine, costs.matrix)
    masks = model.sequence.masks()
    worth = [risk] * len(masks)
    gains = {}
    for i in range(len(masks) - 2, -1, -1):
        best = np.full(len(fine), np.inf)
        for j in range(i + 1, len(masks)):
            sd = float(values.sd[i][j - i - 1])
            mean = coherent_mean(fine, np.full(len(fine), sd))
            density = norm.pdf(fine[None, :], mean[:, None], sd)
            density /= density.sum(axis=1, keepdims=True)
            cost = float(costs.of(masks[j], given=masks[i]))
            best = np.minimum(best, cost + density @ worth[j])
        gains[i] = risk - best
        worth[i] = np.minimum(risk, best)
    inside = np.abs(fine - values.grid[len(values.grid) // 2]) < 6
    for i, gain in gains.items():
        found = values.gain_at(i, fine[inside])
        np.testing.assert_allclose(found, gain[inside], atol=1e-3 * 10 * false_positive)
        # Where the two disagree about going on, next to nothing is at stake.
        differ = (found > 0) != (gain[inside] > 0)
        assert np.all(np.abs(gain[inside][differ]) < 1e-3 * 10 * false_positive)


def test_whoever_adacos_asks_is_asked() -> None:
    """The freedom to stop at any set can only add to what going on is worth."""
    policy = fitted()
    X, *_ = load_pima()
    encoded = policy._encode(X)
    model, costs = policy.model_, policy.cost_table_
    values = ValueTables(costs, costs.matrix).of_sets(model)
    available = np.ones((len(encoded), len(costs.names)), dtype=np.bool_)
    for stage, have in enumerate(model.sequence.masks()[:-1]):
        state = begin(model, encoded, available, have, np.zeros_like(have))
        lookahead = look_ahead(state, costs)
        sd = np.broadcast_to(values.sd[stage], lookahead.sd.shape).copy()
        asked, _ = replace(lookahead, sd=sd).weighed_against(Savings(costs.matrix))
        gain = values.gain_at(stage, lookahead.log_odds)
        assert np.all(gain[asked] > -1e-3 * costs.matrix.max())
    assert np.all(values.freedom <= 0)


def test_nothing_is_paid_where_the_answer_is_certain() -> None:
    policy = fitted()
    values = ValueTables(policy.cost_table_, policy.cost_table_.matrix).of_sets(policy.model_)
    ends = values.grid[[0, -1]]
    for stage in range(len(values.gain) - 1):
        assert np.all(values.gain_at(stage, ends) < 0)


def test_it_comes_nearer_to_the_optimum_where_stopping_matters() -> None:
    """Naive Bayes worlds, in which the sequence and the models are right and only stopping errs."""
    ratios = []
    for seed in range(40, 46):
        problem = make_discrete_problem(6, dependence=0.0, strength=0.6, seed=seed)
        X, y = problem.sample(3000, seed=seed)
        costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
        plain = AdaCOSClassifier(costs, lookahead="coherent", cv=3, strengths="common").fit(X, y)
        dynamic = AdaCOSClassifier(costs, lookahead="dynamic").from_model(plain)
        cost = [expected_cost(policy, problem, costs) for policy in (dynamic, plain)]
        ratios.append(cost[0] / cost[1])
    assert np.exp(np.mean(np.log(ratios))) < 1.0
    assert max(ratios) < 1.01


def test_what_decides_is_shown_far_from_the_cut_off_too() -> None:
    """A cut-off of 1.7% at a share of 35%: what a table says and an exact plan differ there."""
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=400, false_negative=22_700)
    policy = AdaCOSClassifier(costs, lookahead="dynamic", cv=3, strengths="common").fit(X, y)
    values = ValueTables(policy.cost_table_, policy.rule_.matrix).of_sets(policy.model_)
    n_asked = 0
    for row in X.head(60).to_dict("records"):
        consultation = policy.consultation()
        while hasattr(step := consultation.next(), "covariates"):
            log_odds = logit(step.explanation.probability)
            stage = len(consultation.values)
            assert step.explanation.expected_saving == pytest.approx(
                values.gain_at(stage, log_odds), rel=1e-6
            )
            consultation.observe({name: row[name] for name in step.covariates})
            n_asked += 1
        assert step.explanation.expected_saving == 0
    assert n_asked > 60


def test_the_plans_of_a_consultation_are_consistent_with_its_step() -> None:
    X, *_ = load_pima()
    policy = fitted()
    for row in X.head(12).to_dict("records"):
        consultation = policy.consultation()
        step = consultation.next()
        while hasattr(step, "covariates"):
            why = step.explanation
            assert why.best_plan is not None
            assert why.best_plan.expected_total_cost < why.stop_now
            consultation.observe({name: row[name] for name in step.covariates})
            step = consultation.next()
