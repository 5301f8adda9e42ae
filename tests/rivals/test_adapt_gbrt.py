"""AdaptGbrt: what every policy promises, the alternation, and the part of the full model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logit

from adacos import Costs, LogisticGAM, load_pima
from adacos.exceptions import InvalidInputError
from adacos.rivals import AdaptGbrtClassifier
from adacos.rivals.adapt_gbrt import GridPoint, adapt, full_share
from adacos.rivals.trees import NEVER, cut
from tests.policy_checks import check_policy
from tests.rivals.problems import MIXED_COSTS, mixed_table

SMALL = {
    "n_trees": 5,
    "n_lambdas": 2,
    "learning_rates": (0.3,),
    "full_fractions": (0.3, 0.7),
    "cv": 2,
}


def half_and_half() -> tuple[Any, Any, Any]:
    """Pima at prices at which some rows go to the full model and some do not."""
    X, y, *_ = load_pima(as_frame=False)
    costs = Costs([0.1] * 8, misclassification=[[-50, 400], [400, -50]])
    grid = {"n_trees": 10, "n_lambdas": 2, "full_fractions": (0.5,), "cv": 2}
    return AdaptGbrtClassifier(costs, **grid).fit(X, y), X, y


def test_the_gate_decides_who_answers() -> None:
    policy, X, _ = half_and_half()
    result = policy.acquire(X)
    gate, gate_use = policy.gate_.walk(X)
    to_full = policy.gate_constant_ + gate.sum(axis=1) > 0
    assert 0.1 < to_full.mean() < 0.9
    assert result.acquired[to_full].all()
    np.testing.assert_allclose(
        result.probability[to_full], policy.full_.predict_proba(X[to_full])[:, 1]
    )
    # The others pay for their paths through gate and cheap classifier, the gate's first.
    cheap, cheap_use = policy.cheap_.walk(X)
    kept = ~to_full
    np.testing.assert_array_equal(
        result.acquired[kept], np.minimum(gate_use, cheap_use)[kept] < NEVER
    )
    np.testing.assert_array_equal(
        result.label[kept], policy.cheap_constant_ + cheap.sum(axis=1)[kept] >= 0
    )
    position = np.argsort(result.order[to_full], axis=1)
    by_gate = gate_use[to_full] < NEVER
    assert np.where(by_gate, position, -1).max() < by_gate.sum(axis=1).max()
    np.testing.assert_array_equal((position < by_gate.sum(axis=1)[:, None]), by_gate)


def test_check_policy_where_both_answer() -> None:
    policy, X, y = half_and_half()
    check_policy(policy, X[::3], y[::3])


@pytest.mark.parametrize("fraction", [0.001, 0.2, 0.9, 0.999])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_shares_have_the_asked_mean(fraction: float, scale: float) -> None:
    ratio = scale * np.random.default_rng(0).normal(size=500)
    share = full_share(ratio, fraction)
    assert share.mean() == pytest.approx(fraction, abs=2e-3 if scale == 100 else 1e-6)
    assert np.all(np.diff(share[np.argsort(ratio)]) >= 0)


def test_a_full_model_that_knows_the_hard_rows_gets_them() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 2))
    hard = X[:, 0] > 0
    y = np.where(hard, rng.random(600) < 0.5, X[:, 1] > 0).astype(float)
    # It is right where the covariates say nothing, and no better than chance elsewhere.
    full = np.where(hard, 4.0 * (2 * y - 1), 0.0)
    costs = Costs([1.0, 1.0]).bind(["x0", "x1"])
    pair = adapt(
        cut(X), y, full, np.arange(2), costs, GridPoint(0.0, 0.3, 0.5), n_trees=20, depth=2
    )
    to_full = pair.gate_constant + pair.gate.walk(X)[0].sum(axis=1) > 0
    assert (to_full == hard).mean() > 0.95
    label = pair.cheap_constant + pair.cheap.walk(X)[0].sum(axis=1) >= 0
    assert (label == y)[~hard].mean() > 0.95


def test_gate_and_cheap_classifier_share_what_they_pay_for() -> None:
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values())).bind(list(prices))
    full = logit(LogisticGAM().fit(X, y).out_of_fold_proba_)
    grown = [
        adapt(cut(X), y.astype(float), full, np.arange(8), costs, GridPoint(lam, 0.3, 0.5), 10, 3)
        for lam in (0.0, 3e-3, 1.0)
    ]
    used = [
        set(pair.gate.column[pair.gate.column >= 0])
        | set(pair.cheap.column[pair.cheap.column >= 0])
        for pair in grown
    ]
    assert used[0] == set(range(8))
    assert 0 < len(used[1]) < 8
    assert used[2] == set()


def test_weights_move_the_labels() -> None:
    X, y, *_ = load_pima(as_frame=False)
    positives = []
    for false_negative in (20.0, 100.0, 500.0):
        costs = Costs([1.0] * 8, false_positive=100, false_negative=false_negative)
        policy = AdaptGbrtClassifier(costs, **SMALL).fit(X, y)
        positives.append(policy.predict(X).mean())
        cut_at = 100 / (100 + false_negative)
        np.testing.assert_array_equal(
            policy.predict(X), (policy.predict_proba(X)[:, 1] >= cut_at).astype(int)
        )
    assert positives[0] < positives[1] < positives[2]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("depth", 0),
        ("n_trees", 0),
        ("n_lambdas", 0),
        ("learning_rates", (0.1, -1.0)),
        ("full_fractions", (0.0,)),
        ("full_fractions", (1.0,)),
        ("learning_rates", ()),
        ("max_bins", 1),
        ("cv", 1),
        ("random_state", -1),
    ],
)
def test_bad_parameters_are_refused(parameter: str, value: Any) -> None:
    X, y = mixed_table(40)
    with pytest.raises(InvalidInputError, match=parameter):
        AdaptGbrtClassifier(MIXED_COSTS, **{parameter: value}).fit(X, y)
