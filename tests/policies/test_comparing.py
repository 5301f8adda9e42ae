"""Policies and protocols side by side: means, paired intervals and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adacos import (
    COSClassifier,
    Costs,
    DecisionProtocol,
    InvalidInputError,
    ProtocolClassifier,
    TargetRecallClassifier,
    compare,
    load_pima,
)
from adacos.datasets import make_value_dependent_problem
from adacos.exceptions import TrainingRowsWarning
from adacos.policies.comparing import MEASURES, Judged, compared

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

POSITIVE = np.array([False, True])
TODAY = DecisionProtocol("if Glucose >= 140: positive\nunavailable: positive\nelse: negative")


@pytest.fixture(scope="module")
def fitted():  # type: ignore[no-untyped-def]
    X, y, prices, *_ = load_pima(zeros="missing")
    costs = Costs(prices, false_positive=100, false_negative=300)
    policy = COSClassifier(costs, cv=2, strengths="common").fit(X[::2], y[::2])
    return policy, X[1::2], np.asarray(y[1::2])


def test_means_and_intervals_by_hand(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    found = compare({"COS": policy, "today": TODAY}, X, y, confidence=0.9)
    matrix, glucose = policy.cost_table_.matrix, X["Glucose"]
    ours, label = policy.acquire(X), ((glucose >= 140) | glucose.isna()).astype(int).to_numpy()
    price = policy.cost_table_.covariates[list(X.columns).index("Glucose")]
    paid = np.where(glucose.notna(), price, 0.0)
    total, own = ours.cost + matrix[y, ours.label], paid + matrix[y, label]
    other = found.policies[1]
    assert other.total.mean == pytest.approx(own.mean())
    assert other.total.error == pytest.approx(own.std(ddof=1) / np.sqrt(len(y)))
    expected = stats.norm.interval(0.9, (own - total).mean(), stats.sem(own - total))
    assert (other.total.more.low, other.total.more.high) == pytest.approx(expected)
    assert other.recall is not None
    assert other.recall.mean == pytest.approx(label[y == 1].mean())
    assert other.asked.mean == pytest.approx(glucose.notna().mean())
    assert other.covariates.mean == pytest.approx(paid.mean())
    assert other.right.mean == pytest.approx(np.mean(label == y))
    assert "today costs" in str(found) or "are not shown to differ" in str(found)


def test_a_protocol_costs_the_same_as_itself_fitted(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    own = ProtocolClassifier(policy.costs, protocol=TODAY).fit(X, y)
    found = compare({"COS": policy, "text": TODAY, "fitted": own}, X, y)
    for name in MEASURES:
        assert getattr(found.policies[1], name) == getattr(found.policies[2], name)


def test_groups_count_once(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    twice = np.repeat(np.arange(len(y)), 2)
    plain = compare({"COS": policy, "today": TODAY}, X, y).policies[1].total.more
    doubled = (
        compare({"COS": policy, "today": TODAY}, X.iloc[twice], y[twice], groups=twice)
        .policies[1]
        .total.more
    )
    assert doubled.estimate == pytest.approx(plain.estimate)
    width, other = doubled.high - doubled.low, plain.high - plain.low
    assert width == pytest.approx(other, rel=0.02)


def test_intervals_cover() -> None:
    """95% intervals of total cost hold the true difference in 95% of samples, less Monte Carlo."""
    problem = make_value_dependent_problem()
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    X, y = problem.sample(400, seed=0)
    first = ProtocolClassifier(costs, protocol="if x0 = 1 and x2 = 1: 1\n0").fit(X, y)
    other = ProtocolClassifier(costs, protocol="if x1 = 1: 1\n0").fit(X, y)

    def judged(seed: int, n: int):  # type: ignore[no-untyped-def]
        X, y = problem.sample(n, seed=seed)
        results = [("first", first.acquire(X)), ("other", other.acquire(X))]
        return [Judged(name, own, own.label) for name, own in results], np.asarray(y)

    matrix = costs.matrix
    whole, true = judged(1, 400_000)
    difference = compared(whole, true, matrix, POSITIVE).policies[1].total.more.estimate
    runs, hits = 600, 0
    for seed in range(runs):
        some, own = judged(1000 + seed, 200)
        more = compared(some, own, matrix, POSITIVE).policies[1].total.more
        hits += more.low <= difference <= more.high
    # Four standard errors of the share, and 1% for the normal quantile with skewed costs.
    assert abs(hits / runs - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs) + 0.01


def test_rows_that_were_trained_on_are_reported(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    again = COSClassifier(policy.costs, cv=2, strengths="common").fit(X, y)
    with pytest.warns(TrainingRowsWarning, match="COS was trained on"):
        compare({"COS": again, "today": TODAY}, X, y)
    learned = ProtocolClassifier(policy.costs).fit(X, y)
    with pytest.warns(TrainingRowsWarning, match="learned was trained on"):
        compare({"COS": policy, "learned": learned}, X, y)


def test_a_target_recall_is_charged_for_false_alarms(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    inner = COSClassifier(Costs(policy.costs.covariates, false_positive=100), cv=2)
    recall = TargetRecallClassifier(inner, target_recall=0.9).fit(X[::2], y[::2])
    found = compare({"recall": recall, "today": TODAY}, X[1::2], y[1::2])
    wrong = (recall.predict(X[1::2]) == 1) & (y[1::2] == 0)
    assert found.policies[0].errors.mean == pytest.approx(100 * wrong.mean())


def test_three_classes_have_no_recall() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    costs = Costs([1.0, 1.0], misclassification=10 * (1 - np.eye(3)))
    first = ProtocolClassifier(costs, protocol="if x0 > 0: 2\n0").fit(X, y)
    found = compare({"a": first, "b": "if x1 > 0: 1\n0"}, X, y)
    assert found.policies[1].recall is None
    assert "–" in str(found)


def test_mistakes_are_named(fitted) -> None:  # type: ignore[no-untyped-def]
    policy, X, y = fitted
    with pytest.raises(InvalidInputError, match="two or more by name"):
        compare({"COS": policy}, X, y)
    with pytest.raises(InvalidInputError, match="first must be a fitted policy"):
        compare({"today": TODAY, "COS": policy}, X, y)
    with pytest.raises(InvalidInputError, match="Did you mean Glucose"):
        compare({"COS": policy, "today": "if Glucos > 3: 1\n0"}, X, y)
    with pytest.raises(InvalidInputError, match="one of the classes"):
        compare({"COS": policy, "today": TODAY}, X, y + 5)
    with pytest.raises(InvalidInputError, match="as many classes as"):
        compared([Judged("a", policy.acquire(X), y)], y[:5], policy.rule_.matrix, POSITIVE)
    words = ProtocolClassifier(policy.costs, protocol="if Age > 3: ill\nwell")
    words.fit(X, np.where(y == 1, "ill", "well"))
    with pytest.raises(InvalidInputError, match="must have the classes of the first"):
        compare({"COS": policy, "words": words}, X, y)


def test_decisions_that_are_no_classes() -> None:
    """Answers of a protocol may be decisions; recall counts those that protect."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    costs = Costs(
        [1.0, 1.0],
        misclassification=[[0, 12, 40], [100, 25, 5]],
        decisions=("discharge", "refer", "treat"),
        protects={1: ["refer", "treat"]},
    )
    text = "if x0 > 1: treat\nelif x0 > -1: refer\nunavailable: refer\ndischarge"
    today = DecisionProtocol(text)
    policy = ProtocolClassifier(costs, protocol=today).fit(X, y)
    assert set(policy.predict(X)) == {"discharge", "refer", "treat"}
    learned = ProtocolClassifier(costs).fit(X, y)
    found = compare({"learned": learned, "today": today}, X, y)
    other, label = found.policies[1], policy.predict(X)
    assert other.right is None
    assert other.recall is not None
    assert other.recall.mean == pytest.approx(np.mean(label[y == 1] != "discharge"))
    number = {"discharge": 0, "refer": 1, "treat": 2}
    wrong = costs.matrix[y, [number[one] for one in label.tolist()]]
    assert other.errors.mean == pytest.approx(wrong.mean())
    step = policy.consultation(known={"x0": 0.0}).next()
    assert step.label == "refer"
    expected = 12 * (1 - step.probability) + 25 * step.probability
    assert step.expected_cost == pytest.approx(expected)
