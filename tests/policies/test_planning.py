"""Planning: the model of cells, the plan, and what it costs where the truth is known."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import narwhals
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.model_selection import KFold

import adacos
from adacos import Acquire, AdaCOSClassifier, AutoPolicyClassifier, Costs, PlanningClassifier
from adacos.bench.regret import expected_cost
from adacos.datasets import make_discrete_problem, make_value_dependent_problem
from adacos.exceptions import InvalidInputError
from adacos.metrics import total_costs
from adacos.models.plans import tabulate
from adacos.policies.plan_size import affordable, loses_nothing, modellable
from adacos.rivals import OptimalPolicyClassifier
from adacos.tables.encoder import TableEncoder


def test_no_order_is_lost() -> None:
    """Which of two covariates matters depends on a third: each row is asked the one that does."""
    problem = make_value_dependent_problem(n_irrelevant=2, prices=(2.0, 8.0))
    X, y = problem.sample(600, seed=1)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = PlanningClassifier(costs).fit(X, y)
    best = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    assert expected_cost(policy, problem, costs) == pytest.approx(best.expected_cost_, rel=1e-9)
    assert policy.caution_ == 1.0


@pytest.mark.parametrize("dependence", [0.0, 2.0])
def test_near_the_optimum_where_the_truth_is_known(dependence: float) -> None:
    """Eight binary covariates, 1,000 rows, two problems; expected costs are exact sums."""
    regret = []
    for seed in (40, 41):
        problem = make_discrete_problem(8, dependence=dependence, strength=0.6, seed=seed)
        costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
        X, y = problem.sample(1000, seed=seed)
        optimum = OptimalPolicyClassifier(costs, joint=problem).fit(X, y).expected_cost_
        own = expected_cost(PlanningClassifier(costs).fit(X, y), problem, costs)
        one_order = expected_cost(AdaCOSClassifier(costs).fit(X, y), problem, costs)
        regret.append((own / optimum - 1, one_order / optimum - 1))
    planned, sequence = np.mean(regret, axis=0)
    assert 0 <= planned < 0.08
    if dependence:
        assert planned < sequence / 2


MIXED = Costs([6, 6, 8, 5, 3, 5], misclassification=[[0, 200], [374, 0]])


def mixed_rows(
    rng: np.random.Generator, n: int, n_classes: int = 2, signal: float = 1.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers and categories that say a little of the class."""
    y = rng.choice(n_classes, n, p=[0.65, 0.35] if n_classes == 2 else [0.5, 0.3, 0.2])
    table = pd.DataFrame({"a": rng.normal(0.5 * signal * y), "b": rng.normal(0.4 * signal * y)})
    table["c"] = np.exp(rng.normal(0.2 * signal * y))
    codes = np.where(rng.random(n) < 0.3 * signal, y + rng.integers(0, 2, n), rng.integers(0, 5, n))
    table["d"] = np.array(list("pqrst"))[codes % 5]
    table["e"] = (rng.random(n) < 0.3 + 0.1 * signal * (y > 0)).astype(float)
    table["f"] = np.array(list("uvw"))[rng.integers(0, 3, n)]
    return table, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_stated_cost_is_that_of_rows_that_were_not_learned_from(n_classes: int) -> None:
    """300 mixed rows: the plan's own estimate is the least of many, and too low."""
    costs = MIXED
    if n_classes == 3:
        costs = Costs([6, 6, 8, 5, 3, 5], misclassification=200.0 * (1 - np.eye(3)))
    own, stated, true = [], [], []
    for seed in range(6):
        rng = np.random.default_rng([seed, n_classes])
        X, y = mixed_rows(rng, 300, n_classes)
        policy = PlanningClassifier(costs).fit(X, y)
        assert policy.expected_cost_ == pytest.approx(np.nanmean(policy._out_of_fold[0]))
        fresh, labels = mixed_rows(rng, 10_000, n_classes)
        true.append(total_costs(policy.acquire(fresh), labels, costs).mean())
        stated.append(policy.expected_cost_)
        own.append(policy.table_.expected_cost)
    error = np.std(np.subtract(stated, true), ddof=1) / np.sqrt(6)
    assert np.mean(own) < 0.97 * np.mean(true)
    assert abs(np.mean(stated) - np.mean(true)) < 2 * error + 0.02 * np.mean(true)


def test_a_plan_that_costs_more_than_asking_nothing_is_named_in_python() -> None:
    named, worse = [], []
    for seed in range(6):
        X, y = mixed_rows(np.random.default_rng([seed, 9]), 200, signal=0.5)
        policy = PlanningClassifier(MIXED)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            policy.fit(X, y)
        alike = float((MIXED.bind(tuple("abcdef"), 2).matrix[y]).mean(axis=0).min())
        reported = [str(item.message) for item in caught if "everyone" in str(item.message)]
        assert ("no_better" in {found.kind for found in policy.check(X, y)}) == bool(reported)
        named.append(bool(reported))
        worse.append(policy.expected_cost_ > alike)
        # Other rows, and a copy, have no such cost.
        assert "no_better" not in {found.kind for found in policy.check(X, 1 - y)}
        assert pickle.loads(pickle.dumps(policy))._out_of_fold is None
    assert named == worse
    assert any(named)


def test_probabilities_of_states_are_those_of_the_problem() -> None:
    """P(y | x_S) of every S from one model of all covariates, with a product; 40,000 rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(40_000, 3)).astype(float)
    X[:, 2] = np.where(rng.random(len(X)) < 0.3, X[:, 0], X[:, 2])
    likely = expit(-0.5 + X[:, 0] - 2.0 * (X[:, 0] != X[:, 1]) + 0.7 * X[:, 2])
    y = (rng.random(len(X)) < likely).astype(int)
    policy = PlanningClassifier(Costs(false_positive=1, false_negative=1)).fit(X, y)
    table = policy.table_
    for acquired in ([0], [1], [0, 1], [0, 2], [0, 1, 2]):
        mask = np.isin(np.arange(3), acquired)
        state = table.states(np.zeros((1, 3), dtype=np.intp), mask[None])[0]
        rows = (X[:, acquired] == 0).all(axis=1)
        error = 4 * np.sqrt(0.25 / rows.sum())
        # A hundred pseudo-rows of independent covariates among 20,000.
        assert expit(table.log_odds[state]) == pytest.approx(likely[rows].mean(), abs=error + 0.005)
        assert table.mass[state] == pytest.approx(rows.mean(), abs=0.012)


@pytest.mark.parametrize("column", [[1.0, 2.0], [1.0, 2.0, 3.0, np.nan], [1.0, np.nan], ["a", "b"]])
def test_covariates_that_few_rows_have(column: list[float | str]) -> None:
    """Without the rows of a fold such a covariate may be constant, or have no value at all."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": rng.integers(0, 2, size=100).astype(float)})
        y = (X["x"] + rng.normal(size=100) > 0.5).astype(int)
        rest = 0.0 if column == [1.0, 2.0] else None
        X["rare"] = pd.Series([*column, *[rest] * (100 - len(column))])
        policy = PlanningClassifier(Costs([0.1, 0.1]), random_state=seed).fit(X, y)
        assert np.isfinite(policy.predict_proba(X)).all()


def test_caution_where_nothing_is_to_be_learned() -> None:
    """Noise is not bought, though some of it seems to pay on the training rows."""
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, size=(120, 6)).astype(float)
    y = rng.integers(0, 2, size=120)
    costs = Costs([0.2] * 6, false_positive=100, false_negative=100)
    policy = PlanningClassifier(costs).fit(X, y)
    assert policy.caution_ > 1
    fresh = rng.integers(0, 3, size=(500, 6)).astype(float)
    assert policy.acquire(fresh).cost.mean() < 0.6


def test_more_covariates_than_can_be_planned() -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, size=(300, 20)).astype(float)
    y = (X[:, 13] + X[:, 17] + rng.normal(size=300) > 3).astype(int)
    policy = PlanningClassifier(Costs([1.0] * 20, false_positive=30, false_negative=30)).fit(X, y)
    assert len(policy.planned_) < 20
    assert {13, 17} <= set(policy.planned_.tolist())
    assert np.prod(policy.codes_.sizes[policy.planned_] + 1.0) <= 1e6
    asked = policy.acquire(X).acquired.any(axis=0)
    assert set(np.flatnonzero(asked)) <= set(policy.planned_.tolist())


def test_affordable_passes_over_what_is_too_large() -> None:
    sizes = np.array([2, 90, 3, 1])
    np.testing.assert_array_equal(affordable(np.array([1, 0, 2, 3]), sizes, 100), [1])
    np.testing.assert_array_equal(affordable(np.array([0, 1, 2, 3]), sizes, 100), [0, 2])


@pytest.mark.parametrize(("column", "lossless"), [([0, 1, 2, 3] * 5, True), (range(20), False)])
def test_whether_coding_loses_anything(column: list[float], lossless: bool) -> None:
    X = np.array(column, dtype=float)[:, None]
    encoder = TableEncoder.fit(X, ("x",))
    assert loses_nothing(encoder, encoder.transform(X)) == lossless


def test_coding_loses_covariates_that_cannot_be_modelled() -> None:
    """Two columns of 40 categories: states enough for both, but products of theirs too many."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 40, size=(8000, 2)).astype(str)
    table = pd.DataFrame({"a": words[:, 0], "b": words[:, 1]})
    encoder = TableEncoder.fit(narwhals.from_native(table), ("a", "b"))
    encoded = encoder.transform(narwhals.from_native(table))
    assert not modellable(np.arange(2), encoder.source, 8000).all()
    assert not loses_nothing(encoder, encoded)
    assert loses_nothing(encoder, encoded[:2000])


def test_a_consultation_gives_reasons() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame(
        {"ward": rng.choice(["east", "west"], size=600), "dose": rng.uniform(0, 10, size=600)}
    )
    high = (table["dose"] > 5) == (table["ward"] == "east")
    y = np.where(rng.random(600) < 0.05, ~high, high).astype(int)
    costs = Costs({"ward": 1, "dose": 1}, false_positive=50, false_negative=50)
    policy = PlanningClassifier(costs).fit(table, y)
    consultation = policy.consultation()
    step = consultation.next()
    plans = [step.explanation.best_plan.expected_total_cost, policy.table_.expected_cost]
    assert plans[0] == pytest.approx(plans[1])
    assert step.explanation.stop_now > plans[0]
    consultation.observe(ward="east")
    step = consultation.next()
    assert step.covariates == ("dose",)
    (flip,) = step.explanation.flips
    (low, high_end) = flip.ranges[-1]
    assert flip.label == 1 - step.explanation.label
    assert (low if flip.label == 1 else flip.ranges[0][1]) == pytest.approx(5, abs=0.8)
    assert high_end is None or flip.label == 0
    consultation.observe(dose=9.0)
    assert consultation.next().label == 1


@pytest.mark.parametrize("prices", [[0.3] * 4, [0.0, 0.0, 0.0, 0.1]])
@pytest.mark.parametrize("caution", [1.0, 2.5])
def test_reasons_are_those_of_the_step(caution: float, prices: list[float]) -> None:
    """The best plan is what is asked for; where caution alone stops, that is said."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 3, size=(300, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300) > 2.5).astype(int)
    costs = Costs(prices, false_positive=7, false_negative=9)
    policy = PlanningClassifier(costs).fit(X, y)
    policy.caution_ = caution
    policy.table_ = tabulate(policy.joint_, policy._costs_of(policy.planned_), caution)
    policy.finish_fit()
    reported = set()
    for row in X[:30]:
        consultation = policy.consultation()
        step = consultation.next()
        while isinstance(step, Acquire):
            best = step.explanation.best_plan
            assert best.covariates == step.covariates
            assert best.cost == pytest.approx(step.cost)
            before, (name,) = step.explanation, step.covariates
            value = row[int(name[1:])]
            step = consultation.observe({name: value}).next()
            turned = [
                flip.label
                for flip in before.flips
                if any(
                    (a is None or a <= value) and (b is None or value < b) for a, b in flip.ranges
                )
            ]
            changed = step.explanation.label != before.label
            assert turned == ([step.explanation.label] if changed else [])
        saves, reported_why = step.explanation.expected_saving > 0, bool(step.explanation.because)
        assert saves == reported_why
        reported.add(reported_why)
    assert reported == ({False} if caution == 1 or prices[0] == 0 else {False, True})


def test_a_category_never_seen_says_nothing() -> None:
    """It is paid for, and what was believed without it stands; others may still be asked for."""
    rng = np.random.default_rng(9)
    table = pd.DataFrame(
        {"ward": rng.choice(["e", "n", "w"], size=600), "mark": rng.integers(0, 2, size=600)}
    )
    likely = expit(8 * (table["ward"] == "e") - 6 + 6 * table["mark"])
    y = (rng.random(600) < likely).astype(int)
    costs = Costs({"ward": 1, "mark": 4}, false_positive=50, false_negative=50)
    policy = PlanningClassifier(costs).fit(table, y)
    rows = pd.DataFrame({"ward": ["x", None, "e"], "mark": [1, 1, 1]})
    result = policy.acquire(rows)
    assert result.covariates(0) == ("ward", "mark")
    assert result.covariates(1) == ("mark",)
    assert result.probability[0] == result.probability[1] != result.probability[2]
    assert result.cost[0] == 5
    # Nothing of the row is looked at before it was acquired, and a consultation agrees.
    consultation = policy.consultation()
    assert consultation.next().covariates == ("ward",)
    assert consultation.observe(ward="x").next().covariates == ("mark",)
    assert consultation.observe(mark=1).next().probability == result.probability[0]
    known = policy.acquire(rows, known=np.array([True, False]))
    assert known.probability[0] == result.probability[0]


def test_a_file_with_another_plan_is_refused(tmp_path) -> None:
    X, y = make_value_dependent_problem().sample(200, seed=0)
    policy = PlanningClassifier(Costs([1, 1, 1])).fit(X, y)
    with pytest.raises(ValueError, match="do not fit each other"):
        type(policy.table_)(
            policy.table_.sizes,
            policy.table_.action[1:],
            policy.table_.log_odds,
            policy.table_.value,
            policy.table_.mass,
        ).check()
    action = policy.table_.action.copy()
    action[0] = 0
    with pytest.raises(ValueError, match="what was acquired"):
        replace(policy.table_, action=action).check()
    adacos.save(policy, tmp_path / "plan.adacos")
    again = adacos.load(tmp_path / "plan.adacos")
    np.testing.assert_array_equal(again.acquire(X).order, policy.acquire(X).order)


def test_folds_are_a_number() -> None:
    """Splits of all rows do not say how to split a part of them: Auto does not pass them on."""
    X, y = make_value_dependent_problem().sample(60, seed=0)
    with pytest.raises(InvalidInputError, match="cv"):
        PlanningClassifier(cv=KFold(3)).fit(X, y)
    policy = AutoPolicyClassifier(cv=KFold(3)).fit(X, y)
    assert (policy.choice_, policy.policy_.cv) == ("Planning", 5)


def test_rows_alone_in_their_classes() -> None:
    """No row can be left out to judge caution by."""
    policy = PlanningClassifier(Costs([1.0])).fit([[0.0], [1.0]], [0, 1])
    assert policy.caution_ == 1.0
    assert np.isfinite(policy.predict_proba([[0.0], [np.nan]])).all()


def test_waiting_is_refused() -> None:
    X, y = make_value_dependent_problem().sample(60, seed=0)
    costs = Costs([1, 1, 1], round_cost=2.0)
    with pytest.raises(InvalidInputError, match="one covariate after the other"):
        PlanningClassifier(costs).fit(X, y)
