"""A mean budget between two steps is spent by two policies, of which each row has one."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    Costs,
    TargetRecallClassifier,
    load,
    save,
    trade_off,
)
from adacos.batch import next_file, score_file
from adacos.card import model_card
from adacos.consultation import Consultation
from adacos.decision import Mixture
from adacos.exceptions import InvalidInputError
from tests.policy_checks import same

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common", "n_splines": 5}
COSTS = Costs([2.0, 3.0, 4.0, 6.0], false_positive=40.0, false_negative=60.0)


def drawn(seed: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    return rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.8, 0.6, 0.5], y


def fitted(budget: float = 1.0, **options: Any) -> AdaCOSClassifier:
    return AdaCOSClassifier(COSTS, mean_budget=budget, **QUICK, **options).fit(*drawn(0, 500))


@pytest.mark.parametrize("budget", [0.25, 0.5, 1.0, 1.6, 2.0])
def test_fresh_rows_spend_the_budget(budget: float) -> None:
    """The first covariate costs 2: without a mixture nothing is spent below it."""
    new = drawn(1000, 20_000)[0]
    for kind in (AdaCOSClassifier, BranchingClassifier):
        policy = kind(COSTS, mean_budget=budget, **QUICK).fit(*drawn(0, 1000))
        assert policy.acquire(new).cost.mean() == pytest.approx(budget, rel=0.02)
        assert policy.mean_spent_ == pytest.approx(budget, rel=0.02)


def test_rows_of_few_values_spend_the_budget() -> None:
    """Every step is one of cells: all rows of a cell go on, or none."""
    rng = np.random.default_rng(0)

    def cells(n: int) -> tuple[Any, Any]:
        X = rng.integers(0, 2, size=(n, 3)).astype(float)
        chance = np.where(X[:, 0] == 1, 0.8, 0.15 + 0.6 * X[:, 1])
        return X, (rng.random(n) < chance).astype(int)

    costs = Costs([2.0, 3.0, 1.0], false_positive=60, false_negative=60)
    X, y = cells(2000)
    new = cells(20_000)[0]
    for budget in (0.5, 1.0, 2.3, 3.0):
        policy = AdaCOSClassifier(costs, mean_budget=budget, **QUICK).fit(X, y)
        spent = policy.acquire(new).cost.mean()
        # Which share of the rows a cell has is known from 2,000 of them.
        assert spent == pytest.approx(policy.mean_spent_, rel=0.03)
        assert spent == pytest.approx(budget, rel=0.03)


def test_a_share_is_spread_evenly_over_whole_numbers_and_drawn_of_other_keys() -> None:
    for share in (0.1, 0.5, 0.77):
        mixture = Mixture(0.0, share, 3)
        for n in (10, 100, 5000):
            assert abs(mixture.rows(range(n)).sum() - share * n) < 4
        hashed = mixture.rows([f"patient {k}" for k in range(5000)])
        assert hashed.mean() == pytest.approx(share, abs=4 * np.sqrt(0.25 / 5000))
        for first in (10**17, 2**63 - 5000, 10**400):  # beyond what a float tells apart
            rows = mixture.rows(range(first, first + 5000))
            assert abs(rows.sum() - share * 5000) < 4
    some = Mixture(0.0, 0.5, 0).rows(range(64))
    assert np.any(some != Mixture(0.0, 0.5, 3).rows(range(64)))
    assert not np.any(Mixture(0.0, 0.0, 0).rows(range(64)))
    assert np.all(Mixture(0.0, 1.0, 0).rows(range(64)))


def walked(consultation: Consultation, policy: Any, row: Any) -> tuple[Any, float]:
    values = dict(zip(policy.encoder_.names, row.tolist(), strict=True))
    while hasattr(step := consultation.next(), "covariates"):
        consultation.observe({name: values[name] for name in step.covariates})
    return step.label, step.cost


@pytest.mark.parametrize("keys", [None, [f"P{k}" for k in range(40)], list(range(7, 47))])
def test_a_consultation_draws_as_acquire_does(keys: Any) -> None:
    policy = fitted()
    X = drawn(5, 40)[0]
    result = policy.acquire(X, keys=keys)
    assert len(np.unique(result.cost)) > 1
    for row in range(40):
        key = row if keys is None else keys[row]
        label, paid = walked(policy.consultation(key=key), policy, X[row])
        assert (label, paid) == (result.label[row], pytest.approx(result.cost[row]))
    same(policy.acquire(X[:1]), policy.acquire(X[:1], keys=[0]))
    assert walked(policy.consultation(), policy, X[0])[1] == policy.acquire(X[:1]).cost[0]


def test_a_consultation_keeps_its_key() -> None:
    policy = fitted()
    keys = [f"P{k}" for k in range(20)]
    for key in keys:
        one = policy.consultation(key=key)
        again = Consultation.from_state(policy, one.state())
        assert again.key == key
        assert again.next() == one.next()
    assert len({type(policy.consultation(key=key).next()) for key in keys}) == 2
    assert "key" not in policy.consultation().state()


def test_missing_and_known_values_and_providers_walk_in_the_mixture() -> None:
    policy = fitted()
    X = drawn(6, 60)[0]
    names = [f"x{k}" for k in range(4)]
    fetch = {name: (lambda request, k=k: X[request.index, k]) for k, name in enumerate(names)}
    nothing = np.full(X.shape, np.nan)
    same(policy.acquire(nothing, providers=fetch), policy.acquire(X))
    X[::3, 0] = np.nan
    result = policy.acquire(X)
    arms = [_with(policy, arm).acquire(X) for arm in policy.decider_.arms]
    second = policy.mixture_.rows(range(60))
    np.testing.assert_array_equal(result.cost, np.where(second, arms[1].cost, arms[0].cost))
    np.testing.assert_array_equal(result.label, np.where(second, arms[1].label, arms[0].label))
    known = np.zeros(X.shape, dtype=bool)
    known[1::3, 1] = True
    result = policy.acquire(X, known=known)
    arms = [_with(policy, arm).acquire(X, known=known) for arm in policy.decider_.arms]
    np.testing.assert_array_equal(
        result.order, np.where(second[:, None], arms[1].order, arms[0].order)
    )


def test_what_wraps_a_policy_mixes_as_it_does() -> None:
    X, y = drawn(0, 600)
    new = drawn(1, 4000)[0]
    inner = AdaCOSClassifier(COSTS, mean_budget=1.0, **QUICK)
    wrapped = TargetRecallClassifier(inner, target_recall=0.8).fit(X, y)
    assert wrapped.acquire(new).cost.mean() == pytest.approx(1.0, rel=0.02)
    keys = [f"P{k}" for k in range(20)]
    paid = [
        walked(wrapped.consultation(key=k), wrapped, x)[1] for k, x in zip(keys, new, strict=False)
    ]
    np.testing.assert_allclose(paid, wrapped.acquire(new[:20], keys=keys).cost)
    auto = AutoPolicyClassifier(COSTS, mean_budget=1.0, **QUICK).fit(X, y)
    if auto.choice_ != "COS":
        assert auto.acquire(new).cost.mean() == pytest.approx(1.0, rel=0.02)


def test_a_file_and_the_card_keep_the_mixture(tmp_path: Any) -> None:
    policy = fitted(0.5)
    save(policy, tmp_path / "m.adacos")
    again = load(tmp_path / "m.adacos")
    assert again.mixture_ == policy.mixture_
    X = drawn(2, 100)[0]
    same(again.acquire(X), policy.acquire(X))
    expected_by = model_card(policy)["budget_text"]
    assert f"For {policy.mixture_.share:.1%} of the rows, drawn by their keys" in expected_by


def test_the_trade_off_is_that_of_single_policies() -> None:
    curve = trade_off(fitted(), *drawn(3, 500), points=8)
    assert not any(0 < point.covariate_cost < 1.9 for point in curve.points)


def _with(policy: Any, decider: Any) -> Any:
    """The policy, with another decider."""
    other = copy(policy)
    other.decider_ = decider
    return other


def test_a_file_in_pieces_has_the_rows_that_a_table_has(tmp_path: Any) -> None:
    policy, X = fitted(), drawn(1, 300)[0]
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    source, answers = tmp_path / "rows.csv", tmp_path / "answers.csv"
    source.write_text("\n".join(["x0,x1,x2,x3", *lines]) + "\n")
    score_file(policy, source, answers, chunk_rows=37)
    paid = np.loadtxt(answers, delimiter=",", skiprows=1, usecols=2)
    np.testing.assert_array_equal(paid, policy.acquire(X).cost)


def test_rows_of_a_file_keep_their_policy_in_another_order(tmp_path: Any) -> None:
    """Keys of a column, as numbers and as words, are those of `acquire` and of a consultation."""
    policy, X = fitted(), drawn(1, 60)[0]
    order = np.random.default_rng(0).permutation(60)
    for keys in (list(range(100, 160)), [f"P{k}" for k in range(60)]):
        source, orders = tmp_path / "rows.csv", tmp_path / "orders.csv"
        paid, first = [], []
        for rows in (np.arange(60), order):
            lines = [f"{keys[row]}," + ",".join(map(repr, X[row].tolist())) for row in rows]
            source.write_text("\n".join(["id,x0,x1,x2,x3", *lines]) + "\n")
            score_file(policy, source, tmp_path / "a.csv", key="id", chunk_rows=17)
            paid.append(np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1, usecols=2))
            source.write_text("\n".join(["id", *(str(keys[row]) for row in rows)]) + "\n")
            next_file(policy, source, orders, key="id", chunk_rows=17)
            first.append([line.split(",")[1] for line in orders.read_text().splitlines()[1:]])
        np.testing.assert_array_equal(paid[0][order], paid[1])
        np.testing.assert_array_equal(paid[0], policy.acquire(X, keys=keys).cost)
        assert [first[0][row] for row in order] == first[1]
        asks = [hasattr(policy.consultation(key=str(key)).next(), "covariates") for key in keys]
        assert [bool(name) for name in first[0]] == asks
        assert 0 < sum(asks) < 60


def test_a_column_of_keys_is_checked(tmp_path: Any) -> None:
    policy, source = fitted(), tmp_path / "rows.csv"
    source.write_text("id,x0,x1,x2,x3\n7,1,2,3,4\n,1,2,3,4\n")
    for function in (score_file, next_file):
        for key, expected_by in (
            ("x0", "must not be a covariate"),
            ("Id", "Did you mean"),
            ("id", "line 3"),
        ):
            with pytest.raises(InvalidInputError, match=expected_by):
                function(policy, source, tmp_path / "out.csv", key=key)
