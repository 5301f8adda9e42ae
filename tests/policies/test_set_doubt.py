"""A policy that costs more than one of its own sets for every row is doubted, and only that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from adacos import AdaCOSClassifier, Costs, FullModelClassifier
from adacos.models.followed import FollowedRows
from adacos.policies.estimates import LEVEL, out_of_fold_cost, set_doubt
from tests.policies.budget_table import COSTS, QUICK, draw_rows


def collapsed(X: np.ndarray, y: np.ndarray) -> AdaCOSClassifier:
    """A policy that is corrected by complete rows, as if they were the table."""
    policy = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    model, complete = policy.model_, ~np.isnan(X).any(axis=1)
    rows = model.out_of_fold_log_odds[complete], model.y[complete], model.weight[complete]
    policy.model_ = replace(model, followed=FollowedRows(*rows))
    policy.finish_fit(policy.rule_)
    return policy


def by_class(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = draw_rows(n, seed)
    rng = np.random.default_rng(seed)
    X[rng.random(n) < np.where(y, 0.05, 0.8), 0] = np.nan
    return X, y


def test_where_nothing_is_asked_and_a_set_pays_it_is_reported_with_its_cost() -> None:
    X, y = by_class(1500, 0)
    policy = collapsed(X, y)
    assert not policy.acquire(draw_rows(500, 1)[0]).acquired.any()
    found = [alarm for alarm in policy.check(X, y) if alarm.kind == "no_better"]
    assert len(found) == 1
    for words in ('lookahead="dynamic"', "--policy planning", "COSClassifier"):
        assert words in found[0].message
    # With the rows as they are followed by default there is nothing to say.
    policy = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    assert "no_better" not in {alarm.kind for alarm in policy.check(X, y)}


def test_the_limit_allows_for_the_choice_of_the_set() -> None:
    """With costs made for it: those of the best set, with noise and a difference."""
    X, y = draw_rows(400, 0)
    policy = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    model = policy.model_
    matrix = policy.cost_table_.matrix
    by_set = matrix[y[:, None], policy.rule_.label(model.out_of_fold_log_odds)]
    by_set = by_set + model.sequence.costs(policy.cost_table_)
    best = by_set[:, by_set.mean(axis=0).argmin()]
    noise = np.random.default_rng(0).normal(size=400)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    limit = ndtri(1 - LEVEL / by_set.shape[1]) / 20
    for more, doubted in ((0.99 * limit, False), (1.01 * limit, True)):
        said = set_doubt(policy, X, best + more + noise, y)
        assert (said is not None) == doubted
    assert f"{best.mean():.2f}. The difference of {1.01 * limit:.2f} ± 0.05 is more" in str(said)
    own = np.where(np.arange(400) < 2, np.nan, best + 1.0 + noise)
    assert "The difference of 1.0" in str(set_doubt(policy, X, own, y))
    # Other rows have no such cost, and rows of groups say less.
    assert set_doubt(policy, X, best + 1.0, 1 - y) is None
    assert set_doubt(policy, X, best + 1.01 * limit + noise, y, np.arange(400) // 200) is None


def test_sets_that_a_budget_does_not_pay_are_not_compared() -> None:
    X, y = draw_rows(1000, 0)
    costs = Costs([1.0, 1.0, 1.0, 1.0], false_positive=200, false_negative=320)
    policy = AdaCOSClassifier(costs, budget=1.0, **QUICK).fit(X, y)
    own = out_of_fold_cost(policy, X, y)
    assert own is not None
    assert set_doubt(policy, X, own, y) is None
    policy.budget = None
    assert set_doubt(policy, X, own, y) is not None


def test_a_policy_that_has_one_set_is_compared_with_no_other() -> None:
    X, y = draw_rows(400, 0)
    policy = FullModelClassifier(COSTS, **QUICK).fit(X, y)
    assert set_doubt(policy, X, np.full(400, 90.0), y) is None


def test_complete_tables_are_hardly_ever_doubted() -> None:
    """At most 1% in truth: of 40 draws two are less likely than 7%."""
    costs = Costs([1.0, 2.0, 3.0, 4.0], false_positive=20, false_negative=30)
    doubts = 0
    for seed in range(40):
        X, y = draw_rows(150, seed)
        policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
        own = out_of_fold_cost(policy, X, y)
        assert own is not None
        doubts += set_doubt(policy, X, own, y) is not None
    assert doubts <= 1
