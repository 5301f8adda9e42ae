"""Policies that decide among more than the classes: refer, repeat, defer to somebody."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    Classify,
    COSClassifier,
    CostedClassifier,
    Costs,
    FullModelClassifier,
    PlanningClassifier,
    ProtocolClassifier,
    TargetRecallClassifier,
)
from adacos.card import recalls_in_words, rule_in_words
from adacos.exceptions import DecisionWarning, InvalidInputError
from adacos.metrics import recall, recall_interval, total_cost, total_cost_scorer
from adacos.models.plans import tabulate
from adacos.policies.nested import nested_cost
from adacos.rivals import AACOClassifier, OptimalPolicyClassifier
from tests.decision_cases import (
    DECISIONS,
    PRICES,
    QUICK,
    REFER,
    SQUARE,
    by_enumeration,
    rows,
)

POLICIES = [
    AdaCOSClassifier(**QUICK),
    AdaCOSClassifier(**QUICK, lookahead="dynamic"),
    AdaCOSClassifier(**QUICK, lookahead="coherent"),
    AdaCOSClassifier(**QUICK, lookahead="paper"),
    COSClassifier(**QUICK),
    FullModelClassifier(**QUICK),
    BranchingClassifier(**QUICK, max_depth=1),
    PlanningClassifier(cv=3),
    CostedClassifier(covariates="best", cv=3),
]
IDS = [f"{type(one).__name__}-{getattr(one, 'lookahead', '')}" for one in POLICIES]


def with_costs(policy, costs):
    return type(policy)(**{**policy.get_params(deep=False), "costs": costs})


@pytest.fixture(scope="module")
def fitted() -> AdaCOSClassifier:
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    return AdaCOSClassifier(costs, **QUICK).fit(*rows(400))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plans_with_a_refer_column_cost_what_enumeration_says(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(8):
        joint = rng.dirichlet(np.full(n_classes * 12, 0.3)).reshape(n_classes, 3, 2, 2)
        prices = rng.uniform(0, 4, size=3)
        matrix = 60 * (1 - np.eye(n_classes)) + rng.uniform(0, 20, size=(n_classes, n_classes))
        matrix = np.column_stack([matrix, rng.uniform(8, 25, size=(n_classes, 2))])
        names = [f"d{d}" for d in range(n_classes + 2)]
        bound = Costs(list(prices), misclassification=matrix, decisions=names).bind(
            ["a", "b", "c"], n_classes
        )
        exact = by_enumeration(joint, prices, matrix)
        assert tabulate(joint, bound).expected_cost == pytest.approx(exact, rel=1e-10)


def test_the_optimal_policy_with_a_refer_decision_costs_what_it_promises():
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.full(24, 0.4)).reshape(2, 3, 2, 2)
    cells = np.array(list(itertools.product(range(2), range(3), range(2), range(2))))
    costs = Costs([1.0, 2.0, 3.0], misclassification=REFER, decisions=DECISIONS)
    policy = OptimalPolicyClassifier(costs, joint=joint).fit(
        cells[:, 1:].astype(float), cells[:, 0]
    )
    result = policy.acquire(cells[:, 1:].astype(float))
    label = np.array([DECISIONS.index(one) for one in result.label])
    total = joint.ravel() @ (result.cost + np.array(REFER)[cells[:, 0], label])
    assert total == pytest.approx(by_enumeration(joint, [1.0, 2.0, 3.0], np.array(REFER)), rel=1e-9)
    assert policy.expected_cost_ == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_refer_at_no_cost_is_always_taken_and_nothing_is_acquired(policy, n_classes):
    square = 100 * (1 - np.eye(n_classes))
    matrix = np.column_stack([square + 5, np.zeros(n_classes)])
    with pytest.warns(DecisionWarning, match="Never the cheapest decision"):
        costs = Costs(
            list(PRICES.values()),
            misclassification=matrix,
            decisions=[*(f"answer {k}" for k in range(n_classes)), "refer"],
        )
    X, y = rows(150, n_classes)
    result = with_costs(policy, costs).fit(X, y).acquire(X)
    assert set(result.label) == {"refer"}
    if not isinstance(policy, FullModelClassifier):
        assert result.cost.max() == 0
    assert (result.expected_cost == result.cost).all()


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_refer_decision_above_the_most_expensive_error_changes_no_bit(policy, n_classes):
    square = np.array(SQUARE) if n_classes == 2 else 300 * (1 - np.eye(3))
    never = np.full((n_classes, 1), square.max() + 1)
    names = [*(f"answer {k}" for k in range(n_classes)), "refer"]
    prices = list(PRICES.values())
    with pytest.warns(DecisionWarning, match="refer"):
        wider = Costs(prices, misclassification=np.hstack([square, never]), decisions=names)
    (X, y), (new, _) = rows(200, n_classes), rows(120, n_classes, seed=1)
    own = with_costs(policy, wider).fit(X, y)
    plain = with_costs(policy, Costs(prices, misclassification=square)).fit(X, y)
    found, expected = own.acquire(new), plain.acquire(new)
    assert own.decisions_.tolist() == names[:-1]
    assert found.label.tolist() == [f"answer {k}" for k in expected.label]
    for field in ("probability", "acquired", "order", "cost", "stage", "expected_cost"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_third_way_out_that_pays_is_taken_and_lowers_cost(n_classes):
    square = np.array(SQUARE) if n_classes == 2 else 300 * (1 - np.eye(3))
    refer = 75.0 if n_classes == 2 else 90.0
    matrix = np.hstack([square, np.full((n_classes, 1), refer)])
    names = [*(f"answer {k}" for k in range(n_classes)), "refer"]
    prices = list(PRICES.values())
    (X, y), (new, true) = rows(400, n_classes), rows(1500, n_classes, seed=1)
    more = Costs(prices, misclassification=matrix, decisions=names)
    less = Costs(prices, misclassification=square)
    for policy in (AdaCOSClassifier(**QUICK), PlanningClassifier(cv=3)):
        result = with_costs(policy, more).fit(X, y).acquire(new)
        without = with_costs(policy, less).fit(X, y).acquire(new)
        assert 0.02 < np.mean(result.label == "refer") < 0.98
        own = total_cost(result, true, more)
        assert own < total_cost(without, true, less)
        assert abs(own - result.expected_cost.mean()) < 0.25 * own


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_a_consultation_decides_as_many_rows_do(policy):
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    policy = with_costs(policy, costs).fit(*rows(200))
    X, _ = rows(12, seed=7)
    result = policy.acquire(X)
    for i, row in enumerate(X):
        consultation, order = policy.consultation(), []
        step = consultation.next()
        while not isinstance(step, Classify):
            k = int(step.covariates[0].removeprefix("x"))
            order.append(k)
            step = consultation.observe({step.covariates[0]: row[k]}).next()
        assert step.label == result.label[i]
        assert order == [k for k in result.order[i].tolist() if k >= 0]
        assert step.expected_cost == pytest.approx(result.expected_cost[i])


def test_the_explanation_says_between_which_probabilities_each_decision_is_best(fitted):
    reported = fitted.consultation().next().explanation
    assert "discharge below 2.2%, refer between 2.2% and 53.3%, treat at or above 53.3%" in str(
        reported
    )
    assert reported.cut_off is None
    names = [one.decision for one in reported.decisions]
    assert names == list(DECISIONS)
    risk = (1 - reported.probability) * np.array(REFER[0]) + reported.probability * np.array(
        REFER[1]
    )
    assert [one.expected_cost for one in reported.decisions] == pytest.approx(risk.tolist())
    # Where two ranges meet both decisions cost the same.
    for d, (one, other) in enumerate(itertools.pairwise(reported.decisions)):
        p = one.below
        assert p == other.above
        cost = (1 - p) * np.array(REFER[0]) + p * np.array(REFER[1])
        assert cost[d] == pytest.approx(cost[d + 1])
    step = fitted.consultation().stop().next()
    assert str(step).startswith("Decide: ")
    assert set(step.to_dict()["explanation"]["decisions"][0]) == {
        "decision",
        "expected_cost",
        "above",
        "below",
    }


def test_values_that_would_change_the_decision_do_change_it(fitted):
    consultation = fitted.consultation()
    step = consultation.next()
    assert step.explanation.flips
    for flip in step.explanation.flips:
        for low, high in flip.ranges:
            inside = (high - 1e-3) if low is None else (low + 1e-3)
            with_value = fitted.consultation({flip.covariate: inside})
            assert with_value.next().explanation.label == flip.label


def test_metrics_and_scorers_count_decisions(fitted):
    X, y = rows(300, seed=3)
    result, costs = fitted.acquire(X), fitted.costs
    label = np.array([DECISIONS.index(one) for one in result.label])
    expected = float((result.cost + np.array(REFER)[y, label]).mean())
    assert total_cost(result, y, costs) == pytest.approx(expected)
    assert total_cost_scorer(costs)(fitted, X, y) == pytest.approx(-expected)
    protecting = ["refer", "treat"]
    assert recall(result, y, protecting) == np.mean(label[y == 1] > 0)
    assert recall_interval(result, y, protects=protecting)[0] < recall(result, y, protecting)
    with pytest.raises(InvalidInputError, match="protects="):
        recall(result, y)
    with pytest.raises(InvalidInputError, match="the decisions of the result"):
        total_cost(
            result, y, Costs([1.0, 1, 1], misclassification=REFER, decisions=("a", "b", "c"))
        )
    with pytest.raises(InvalidInputError, match="a decision is no class"):
        fitted.score(X, y)


def test_cross_validated_cost_and_the_choice_between_policies_count_decisions():
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    X, y = rows(200)
    nested = nested_cost(COSClassifier(costs, **QUICK), X, y, folds=3)
    label = np.array([DECISIONS.index(one) for one in nested.result.label])
    np.testing.assert_allclose(nested.realised, nested.result.cost + np.array(REFER)[y, label])
    auto = AutoPolicyClassifier(costs, cv=3).fit(X, y)
    assert auto.decisions_.tolist() == list(DECISIONS)
    assert set(auto.predict(X)) <= set(DECISIONS)


def test_budgets_hold_with_decisions():
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    X, y = rows(300)
    tight = AdaCOSClassifier(costs, budget=5.0, **QUICK).fit(X, y)
    assert tight.acquire(X).cost.max() <= 5.0
    mean = AdaCOSClassifier(costs, mean_budget=2.0, **QUICK).fit(X, y)
    assert mean.acquire(X).cost.mean() < 2.5


def test_costs_are_bound_in_the_order_of_the_probability():
    shuffled = Costs(
        None, misclassification=np.array(REFER)[:, [2, 0, 1]], decisions=("treat", "none", "ask")
    )
    table = shuffled.bind(["a"])
    assert table.decisions == ("none", "ask", "treat")
    np.testing.assert_array_equal(table.matrix, REFER)
    assert shuffled == Costs(misclassification=shuffled.matrix, decisions=("treat", "none", "ask"))
    assert "decisions=('treat', 'none', 'ask')" in repr(shuffled)
    other = shuffled.with_misclassification(2 * shuffled.matrix)
    assert other.decisions == shuffled.decisions


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"decisions": ("a", "b", "a"), "misclassification": REFER}, "a more than once"),
        ({"decisions": ("a", "b"), "misclassification": REFER}, "pass C.T"),
        ({"decisions": ("a", "b", "c", "d"), "misclassification": REFER}, "4 names for 3 columns"),
        ({"decisions": "abc", "misclassification": REFER}, "list of names"),
        ({"decisions": (1, 2, 3), "misclassification": REFER}, "list of names"),
        ({"decisions": ("a", "b", "c")}, "what each costs"),
        (
            {"decisions": ("a", "b", "c"), "misclassification": [[1, 2, np.nan], [1, 2, 3]]},
            "finite",
        ),
        ({"decisions": ("a", "b", "c"), "misclassification": [[1, 2, 3]]}, "row for each class"),
        ({"misclassification": REFER}, "name them"),
        ({"misclassification": [[1, 0], [0, 1]]}, "need names"),
        ({"protects": {1: ("a",)}}, "goes with decisions"),
        (
            {"decisions": DECISIONS, "misclassification": REFER, "protects": {1: ("treet",)}},
            "Did you mean treat",
        ),
        ({"decisions": DECISIONS, "misclassification": REFER, "protects": "treat"}, "mapping"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(given, match):
    with pytest.raises(InvalidInputError, match=match):
        Costs(PRICES, **given)


def test_a_decision_with_the_name_of_another_class_is_refused():
    X, y = rows(60)
    words = np.array(["healthy", "sick"])[y]
    costs = Costs(
        list(PRICES.values()), misclassification=REFER, decisions=("sick", "refer", "healthy")
    )
    with pytest.raises(InvalidInputError, match="must be the answer to it"):
        COSClassifier(costs, **QUICK).fit(X, words)
    right = Costs(
        list(PRICES.values()), misclassification=REFER, decisions=("healthy", "refer", "sick")
    )
    assert COSClassifier(right, **QUICK).fit(X, words).decisions_[1] == "refer"


def test_what_knows_labels_only_refuses_decisions_by_name():
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    X, y = rows(60)
    with pytest.raises(InvalidInputError, match="AACOClassifier knows no other decisions"):
        AACOClassifier(costs).fit(X, y)


def protected() -> Costs:
    costs = {"misclassification": [[0, 20, 100], [80, 40, 10]], "decisions": DECISIONS}
    return Costs(list(PRICES.values()), **costs, protects={1: ("refer", "treat")})


@pytest.mark.parametrize(
    "inner",
    [AdaCOSClassifier(**QUICK), PlanningClassifier(cv=3)],
    ids=["stops by it", "answers by it"],
)
def test_a_target_recall_counts_the_decisions_that_protect_a_class(inner):
    (X, y), (new, true) = rows(500), rows(3000, seed=5)
    plain = with_costs(inner, protected()).fit(X, y)
    before = recall(plain.acquire(new), true, ["refer", "treat"])
    policy = TargetRecallClassifier(with_costs(inner, protected()), target_recall=0.97).fit(X, y)
    result = policy.acquire(new)
    found = np.isin(result.label[true == 1], ["refer", "treat"]).mean()
    assert before < 0.94
    # The target is met on 250 positives: three standard errors of their share.
    assert abs(found - 0.97) < 3 * np.sqrt(0.97 * 0.03 / 250) + 0.005
    assert policy.surcharges_[1] > 0
    assert policy.decisions_.tolist() == list(DECISIONS)
    assert policy.consultation().stop().next().label in DECISIONS


def test_a_certificate_counts_the_decisions_that_protect_a_class():
    (X, y), (new, true) = rows(900), rows(3000, seed=6)
    policy = TargetRecallClassifier(
        AdaCOSClassifier(protected(), **QUICK), target_recall={1: 0.9}, recall_confidence=0.9
    ).fit(X, y)
    reported = str(policy.certificate_)
    assert "found is who gets refer or treat for 1" in reported
    assert recall(policy.acquire(new), true, ["refer", "treat"]) > policy.certificate_.bounds[0]
    assert any("(refer or treat)" in line for line in recalls_in_words(policy))


@pytest.mark.parametrize(
    ("protects", "match"),
    [(None, "which decisions protect a class"), ({"sick": ("treat",)}, "must name classes")],
)
def test_a_target_recall_without_protecting_decisions_is_refused(protects, match):
    X, y = rows(120)
    costs = Costs(
        list(PRICES.values()), misclassification=REFER, decisions=DECISIONS, protects=protects
    )
    with pytest.raises(InvalidInputError, match=match):
        TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall=0.9).fit(X, y)


def test_a_protocol_decides_whatever_the_probability():
    costs = Costs(list(PRICES.values()), misclassification=REFER, decisions=DECISIONS)
    X, y = rows(200)
    text = "if x1 > 1: treat\nelif x0 > 0.5: refer\nelse: discharge"
    policy = ProtocolClassifier(costs, protocol=text).fit(X, y)
    expected = np.where(X[:, 1] > 1, "treat", np.where(X[:, 0] > 0.5, "refer", "discharge"))
    np.testing.assert_array_equal(policy.predict(X), expected)
    reported = policy.consultation({"x1": 2.0}).next().explanation
    assert reported.label == "treat"
    assert all(one.above is None for one in reported.decisions)
    assert "between" not in str(reported)
    assert "protocol" in rule_in_words(policy)


def test_three_classes_with_a_target_recall_count_the_decision_that_protects():
    matrix = np.hstack([100 * (1 - np.eye(3)), np.full((3, 1), 45.0)])
    costs = Costs(
        list(PRICES.values()),
        misclassification=matrix,
        decisions=("a", "b", "c", "refer"),
        protects={2: ("c", "refer")},
    )
    (X, y), (new, true) = rows(600, 3), rows(3000, 3, seed=9)
    policy = TargetRecallClassifier(AdaCOSClassifier(costs, **QUICK), target_recall={2: 0.97})
    result = policy.fit(X, y).acquire(new)
    found = np.isin(result.label[true == 2], ["c", "refer"]).mean()
    assert abs(found - 0.97) < 3 * np.sqrt(0.97 * 0.03 / 200) + 0.005
