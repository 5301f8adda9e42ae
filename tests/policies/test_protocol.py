"""A protocol as a policy: scikit-learn's answers, honest shares, costs, files and consultations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from adacos import (
    Acquire,
    Costs,
    DecisionProtocol,
    InvalidInputError,
    ProtocolClassifier,
    TargetRecallClassifier,
    load,
    load_pima,
    save,
)
from adacos.policies.protocol import SMOOTHING, best_smoothing, smoothed
from tests.policy_checks import check_consultation, check_file, check_policy

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TEXT = """
if Glucose >= 126 or BMI > 30 and Age > 40: 1
unavailable: 1
else: 0
"""


def pima():  # type: ignore[no-untyped-def]
    X, y, prices, *_ = load_pima(zeros="missing")
    panels = {"blood": (2.1, ["Glucose", "Insulin"])}
    return X, y, Costs(prices, false_positive=100, false_negative=1000, panels=panels)


@pytest.mark.parametrize("depth", [1, 4, None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tree_of_scikit_learn_gives_its_answers(depth: int | None, n_classes: int) -> None:
    """On 10,000 rows, also next to cuts, beyond the training range, and with missing values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    X[:, 2] = rng.integers(0, 3, 600)
    X[:, 3] = np.round(X[:, 3], 1)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600)), 0, n_classes - 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y.astype(int))
    costs = Costs([1.0, 2.0, 3.0, 4.0], misclassification=10 * (1 - np.eye(n_classes)))
    policy = ProtocolClassifier(costs, protocol=DecisionProtocol.from_tree(tree))
    policy.fit(X, y.astype(int))
    rows = rng.normal(scale=2.0, size=(10_000, 4))
    cuts = tree.tree_.threshold[tree.tree_.feature == 0]
    cuts = cuts[np.isfinite(cuts)]
    rows[:3000, 0] = rng.choice(cuts, 3000) + rng.choice([-1, 0, 1], 3000) * rng.choice(
        [0.0, 1e-16, 1e-9, 1e-8, 3e-8, 1e-7], 3000
    )
    rows[rng.random(rows.shape) < 0.05] = np.nan
    np.testing.assert_array_equal(policy.predict(rows), tree.predict(rows))


def test_names_come_from_the_frame_or_are_given() -> None:
    X, y, costs = pima()
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    protocol = DecisionProtocol.from_tree(tree)
    assert set(protocol.covariates) <= set(X.columns)
    policy = ProtocolClassifier(costs, protocol=protocol).fit(X, y)
    np.testing.assert_array_equal(policy.predict(X), tree.predict(X))
    renamed = DecisionProtocol.from_tree(tree, [f"the {name}" for name in X.columns])
    assert all(name.startswith("the ") for name in renamed.covariates)
    with pytest.raises(InvalidInputError, match="names"):
        DecisionProtocol.from_tree(tree, ["a"])
    with pytest.raises(InvalidInputError, match="fitted DecisionTreeClassifier"):
        DecisionProtocol.from_tree(DecisionTreeClassifier())


def test_what_a_row_pays_is_what_its_way_asks() -> None:
    """By hand: lazily, with the panel, with values that are known or unavailable."""
    X, y, costs = pima()
    policy = ProtocolClassifier(costs, protocol=TEXT).fit(X, y)
    rows = pd.DataFrame(np.full((5, 8), np.nan), columns=X.columns)
    rows["Glucose"] = [130.0, 100.0, 100.0, 100.0, np.nan]
    rows["BMI"] = [20.0, 20.0, 35.0, 35.0, 35.0]
    rows["Age"] = [50.0, 50.0, 30.0, np.nan, 50.0]
    result = policy.acquire(rows)
    asked = [result.covariates(row) for row in range(5)]
    assert asked == [
        ("Glucose",),
        ("Glucose", "BMI"),
        ("Glucose", "BMI", "Age"),
        ("Glucose", "BMI"),
        ("BMI", "Age"),
    ]
    assert result.label.tolist() == [1, 0, 0, 1, 1]
    prices = dict(zip(X.columns, policy.cost_table_.covariates, strict=True))
    np.testing.assert_allclose(result.cost, [sum(prices[name] for name in own) for own in asked])
    known = policy.acquire(rows, known=["Glucose"])
    assert [known.covariates(row) for row in range(3)] == [(), ("BMI",), ("BMI", "Age")]
    assert known.cost[0] == 0
    both = ProtocolClassifier(costs, protocol="ask Glucose, Insulin\n1").fit(X, y)
    paid = both.acquire(X[~X[["Glucose", "Insulin"]].isna().any(axis=1)]).cost
    np.testing.assert_allclose(paid, prices["Glucose"] + prices["Insulin"] - 2.1)


def test_the_answer_is_that_of_the_protocol_and_its_risk_is_honest() -> None:
    """A dear answer is given all the same; its stated cost is what it costs on new rows."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 20_000)
    y = (rng.random(20_000) < np.where(x == 1, 0.6, 0.3)).astype(int)
    costs = Costs([1.0], false_positive=10, false_negative=100)
    policy = ProtocolClassifier(costs, protocol="if x0 = 1: 1\n0")
    policy.fit(x[:4000, None].astype(float), y[:4000])
    result = policy.acquire(x[4000:, None].astype(float))
    np.testing.assert_array_equal(result.label, x[4000:])
    # By Bayes' rule everyone would be called positive.
    assert (policy.rule_.label(np.log(result.probability / (1 - result.probability))) == 1).all()
    realised = result.cost + policy.cost_table_.matrix[y[4000:], result.label]
    error = 4 * realised.std() / np.sqrt(4000)
    assert abs(result.expected_cost.mean() - realised.mean()) < error
    step = policy.consultation(known={"x0": 0.0}).next()
    assert (step.label, step.cost) == (0, 0.0)
    assert step.expected_cost == pytest.approx(100 * step.probability)
    assert step.explanation.cut_off is None
    assert "answers 0" in step.explanation.because


def test_smoothing_is_what_predicts_held_out_rows_best() -> None:
    rng = np.random.default_rng(2)
    place, labels = rng.integers(0, 30, 200), rng.integers(0, 2, 200)
    onehot = np.eye(2)[labels]
    counts = np.zeros((30, 2))
    np.add.at(counts, place, onehot)
    share = onehot.mean(axis=0)
    found = best_smoothing(counts[place] - onehot, labels, share)

    def by_refits(m: float) -> float:
        losses = []
        for row in range(200):
            others = np.arange(200) != row
            own = np.zeros((30, 2))
            np.add.at(own, place[others], onehot[others])
            losses.append(-np.log(smoothed(own, share, m)[place[row], labels[row]]))
        return float(np.mean(losses))

    assert found == min(SMOOTHING, key=by_refits)


def test_promises_of_a_policy() -> None:
    X, y, costs = pima()
    X, y = X[:300], y[:300]
    check_policy(ProtocolClassifier(costs, protocol=TEXT), X, y)
    policy = ProtocolClassifier(costs, protocol=TEXT).fit(X, y)
    check_consultation(policy, X.head(30))
    check_file(policy, X, policy.acquire(X))


def test_probabilities_of_what_is_known() -> None:
    """At a test they are the shares of the rows that come to it."""
    X, y, costs = pima()
    policy = ProtocolClassifier(costs, protocol="if Age > 40:\n    if BMI > 30: 1\n0").fit(X, y)
    share, old = np.mean(y), X["Age"] > 40
    before = policy.predict_proba(X[:1], known=[])[0, 1]
    assert before == pytest.approx(share)
    row = X[old & X["BMI"].notna()].head(1)
    m = policy.smoothing_
    probability = policy.predict_proba(row, known=["Age"])[0, 1]
    assert probability == pytest.approx((np.sum(y[old]) + m * share) / (old.sum() + m))


def test_words_as_classes_and_a_protocol_in_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    X, y, costs = pima()
    words = np.where(np.asarray(y) == 1, "refer", "discharge")
    policy = ProtocolClassifier(costs, protocol="if Glucose > 140: refer\ndischarge")
    policy.fit(X, words)
    assert set(policy.predict(X)) == {"refer", "discharge"}
    path = tmp_path / "model.adacos"
    save(policy, path)
    assert load(path).protocol_ == policy.protocol_
    with pytest.raises(InvalidInputError, match="Did you mean refer"):
        ProtocolClassifier(costs, protocol="if Glucose > 140: refers\ndischarge").fit(X, words)


def test_a_learned_tree_is_frugal_and_costs_no_more_than_any_answer_alone() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 3))
    y = (X[:, 0] > 0.5).astype(int)
    costs = Costs([2.0, 1.0, 1.0], false_positive=50, false_negative=50)
    policy = ProtocolClassifier(costs).fit(X, y)
    (only,) = set(policy.protocol_.covariates)
    assert only == "x0"
    new = rng.normal(size=(2000, 3))
    result = policy.acquire(new)
    assert np.mean(result.label == (new[:, 0] > 0.5)) > 0.97
    assert result.cost.max() == 2.0
    free = ProtocolClassifier(Costs([900.0] * 3, false_positive=50, false_negative=50)).fit(X, y)
    assert free.acquire(new).cost.max() == 0


def test_a_target_recall_decides_the_answers_of_a_protocol() -> None:
    X, y, costs = pima()
    inner = ProtocolClassifier(costs, protocol=TEXT)
    policy = TargetRecallClassifier(inner, target_recall=0.9).fit(X, y)
    result = policy.acquire(X)
    positive = np.asarray(y) == 1
    assert np.mean(result.label[positive] == 1) > 0.8


def test_a_consultation_names_the_line() -> None:
    X, y, costs = pima()
    consultation = ProtocolClassifier(costs, protocol=TEXT).fit(X, y).consultation()
    step = consultation.next()
    assert isinstance(step, Acquire)
    assert "Line 2 of the protocol: Glucose >= 126" in step.explanation.because
    assert consultation.unavailable("Glucose").next().covariates == ("BMI",)
