"""Any policy with target recalls of classes, where there are more than two: reached by answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from adacos import (
    BranchingClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    PlanningClassifier,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.card import model_card
from adacos.cli.info import show
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.engine import compact_left
from adacos.exceptions import NotCertifiableError
from adacos.kernels.class_risk import class_label, label_at, probabilities
from adacos.policies.base import BasePolicy
from adacos.policies.recall import Targets
from adacos.policies.surcharges import StoppedRows, surcharged
from tests.policy_checks import check_consultation, price, same

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
UNEVEN = np.array([[0.0, 20.0, 30.0], [25.0, 0.0, 45.0], [40.0, 15.0, 0.0]])
COSTS = Costs([1.0, 2.0, 4.0], misclassification=3 * UNEVEN)
SHIFT = 2.5


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One number for each class, which it moves."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + SHIFT * np.eye(3)[y], y


class AllOfThem(BasePolicy):
    """Acquires everything, and believes what is true of the world, `sure` times as much."""

    takes_many_classes = True

    def __init__(self, costs: Costs | None = None, sure: float = 1.0) -> None:
        self.costs = costs
        self.sure = sure

    def fit(self, X: Any, y: Any) -> AllOfThem:
        self.seen_ = self.begin_fit(X, y).encoded
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> AllDecider:
        return AllDecider(terms, self.sure, self.seen_)


@dataclass(frozen=True, eq=False)
class AllDecider(ObservedDecider):
    sure: float
    seen: Any

    def decide(self, state: ObservedState) -> Decision:
        left = np.where(state.acquired, STOP, np.arange(state.acquired.shape[1]))
        log_odds = self.sure * SHIFT * (state.values[:, 1:] - state.values[:, :1])
        return Decision(compact_left(left), log_odds)


class NeverItsOwn(AllOfThem):
    """Refuses to answer rows that it was fitted on."""

    def make_decider(self, terms: Terms) -> AllDecider:
        return RefusingDecider(terms, self.sure, self.seen_)


class RefusingDecider(AllDecider):
    def decide(self, state: ObservedState) -> Decision:
        equal = (state.values[:, None, :] == self.seen).all(axis=2)
        assert not equal.any(), "answers a row it has seen"
        return super().decide(state)


def test_recalls_of_stopped_rows_are_those_of_the_rule() -> None:
    rng = np.random.default_rng(0)
    log_odds, number = 2 * rng.normal(size=(500, 2)), rng.integers(0, 3, 500)
    targets, s = Targets(np.array([2, 0]), np.array([0.7, 0.6])), np.array([30.0, 12.0])
    rows = StoppedRows(probabilities(log_odds), number)
    label = class_label(log_odds, surcharged(UNEVEN, targets, s))
    np.testing.assert_array_equal(label_at(rows.probability, surcharged(UNEVEN, targets, s)), label)
    recalls = rows.recalls(UNEVEN, targets)
    for place, k in enumerate(targets.classes):
        own = number == k
        assert recalls(s, place) == pytest.approx((label[own] == k).mean())
        assert rows.misses(UNEVEN, targets, s)[place] == (label[own] != k).sum()


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (PlanningClassifier(COSTS), {2: 0.85, 1: 0.7}),
        (BranchingClassifier(COSTS, **QUICK), {2: 0.94, 1: 0.75}),
        (FullModelClassifier(COSTS, **QUICK), {2: 0.94, 1: 0.75}),
        (AllOfThem(COSTS, sure=3.0), {2: 0.94, 1: 0.75}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_named_classes_reach_their_recalls_on_new_rows(base: Any, wanted: Any) -> None:
    X, y = draw_rows(1500, 3)
    policy = TargetRecallClassifier(base, target_recall=wanted).fit(X, y)
    assert all(policy.recall_estimate_[k] >= r for k, r in wanted.items())
    assert max(policy.surcharges_.values()) > 0
    assert policy.certificate_ is None
    X_new, y_new = draw_rows(20_000, 1)
    plain = (clone(base).fit(X, y) if base.stops_by_rule else policy.policy_).acquire(X_new)
    result = policy.acquire(X_new)
    for k, r in wanted.items():
        own = y_new == k
        # Found on about 250 rows of the class.
        error = np.sqrt(r * (1 - r) * (1 / 250 + 1 / own.sum()))
        assert (result.label[own] == k).mean() > r - 3 * error
    if not base.stops_by_rule:
        # It acquires as ever; only answers change.
        for field in ("acquired", "order", "cost", "probability", "stage"):
            np.testing.assert_array_equal(getattr(result, field), getattr(plain, field))
    assert np.any(result.label != plain.label)


def test_a_recall_that_the_costs_reach_anyway_changes_nothing() -> None:
    policy = TargetRecallClassifier(AllOfThem(COSTS), target_recall={1: 0.01}).fit(
        *draw_rows(200, 0)
    )
    assert policy.surcharges_ == {1: 0.0}
    X, _ = draw_rows(500, 1)
    same(policy.acquire(X), policy.policy_.acquire(X))


def test_costs_consultation_file_and_card(tmp_path: Any, capsys: Any) -> None:
    X, y = draw_rows(300, 0)
    names = np.array(["ash", "elm", "oak"])[y]
    base = PlanningClassifier(COSTS)
    policy = TargetRecallClassifier(base, target_recall={"oak": 0.98}).fit(X, names)
    result = policy.acquire(X)
    paid = [price(COSTS, result.names, order[order >= 0]) for order in result.order]
    np.testing.assert_allclose(result.cost, paid)
    risk = (result.probability @ policy.rule_.matrix).min(axis=1)
    np.testing.assert_allclose(result.expected_cost, result.cost + risk)
    check_consultation(policy, X[:5])
    assert "those about oak" in policy.consultation().next().explanation.because
    save(policy, tmp_path / "m")
    again = load(tmp_path / "m")
    same(again.acquire(X), result)
    again.calibrate(*_named(500, 3), target_recall={"oak": 0.8}, confidence=0.9)
    card = json.loads(json.dumps(model_card(policy)))
    assert card["target_recall"] == {"oak": 0.98}
    assert card["surcharges"] == policy.surcharges_
    assert card["misclassification_costs"] == (3 * UNEVEN).tolist()
    clone(policy)
    from rich.console import Console

    show(policy, Console())
    assert "Recall of oak: target 98.0%" in capsys.readouterr().out


def _named(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = draw_rows(n, seed)
    return X, np.array(["ash", "elm", "oak"])[y]


def test_a_certificate_is_proved_on_rows_apart(tmp_path: Any) -> None:
    policy = TargetRecallClassifier(
        PlanningClassifier(COSTS), target_recall={2: 0.7, 1: 0.6}, recall_confidence=0.9
    ).fit(*draw_rows(500, 0))
    certificate = policy.certificate_
    each = (certificate.recalls, certificate.bounds, certificate.n_rows, certificate.misses)
    for r, bound, n, misses in zip(*each, strict=True):
        assert bound >= r
        assert binom.cdf(misses, n, 1 - r) <= 0.1
    save(policy, tmp_path / "m")
    assert load(tmp_path / "m").certificate_ == certificate
    X, y = draw_rows(600, 2)
    policy.calibrate(X, y, target_recall={0: 0.7})
    assert policy.certificate_.classes == (0,)
    label = policy.predict(X)
    assert policy.certificate_.misses == ((label[y == 0] != 0).sum(),)
    with pytest.raises(InvalidInputError, match="trained on"):
        policy.calibrate(*draw_rows(500, 0))


@pytest.mark.parametrize("confidence", [None, 0.8])
def test_no_row_is_answered_by_a_fit_that_saw_it(confidence: float | None) -> None:
    X, y = draw_rows(400, 0)
    policy = TargetRecallClassifier(
        NeverItsOwn(COSTS), target_recall={2: 0.9, 1: 0.7}, recall_confidence=confidence
    ).fit(X, y)
    # Rows set aside, or with a confidence the training rows, and none of those that prove.
    assert len(policy.stopped_.number) == (199 if confidence is None else 201)
    with pytest.raises(AssertionError, match="has seen"):
        policy.predict(X)


@pytest.mark.parametrize("sure", [1.0, 3.0])
def test_certificates_are_wrong_as_seldom_as_they_say(sure: float) -> None:
    """Fits anew again and again, of true and of too sure beliefs, in a world of known recalls."""
    repetitions, wanted = 150, {2: 0.93, 0: 0.8}
    X, y = draw_rows(30_000, 1)
    log_odds = sure * SHIFT * (X[:, 1:] - X[:, :1])

    def kept(policy: Any, bounds: Any) -> bool:
        label = class_label(log_odds, policy.rule_.matrix)
        return all((label[y == k] == k).mean() >= r for k, r in bounds.items())

    broken = granted = broken_estimates = 0
    for seed in range(repetitions):
        policy = TargetRecallClassifier(
            AllOfThem(COSTS, sure), target_recall=wanted, random_state=seed
        )
        rows = draw_rows(1000, 100 + seed)
        broken_estimates += not kept(policy.fit(*rows), wanted)
        try:
            policy.set_params(recall_confidence=0.9).fit(*rows)
        except NotCertifiableError:
            continue
        granted += 1
        certified = dict(zip(policy.certificate_.classes, policy.certificate_.bounds, strict=True))
        broken += not kept(policy, certified)
    assert granted > 0.4 * repetitions
    assert broken / repetitions <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / repetitions)
    # What is not certified is no promise.
    assert broken_estimates / repetitions > 0.2


def test_of_two_classes_the_named_class_is_the_second() -> None:
    X, y = draw_rows(400, 0)
    y = (y == 2).astype(int)
    costs = Costs([1.0, 2.0, 4.0], false_positive=50, false_negative=60)
    for options in ({}, {"recall_confidence": 0.9}):
        number, named = (
            TargetRecallClassifier(PlanningClassifier(costs), target_recall=recall, **options)
            for recall in (0.8, {1: 0.8})
        )
        same(named.fit(X, y).acquire(X), number.fit(X, y).acquire(X))
        assert named.threshold_ == number.threshold_
        assert model_card(named)["target_recall"] == 0.8
        assert model_card(named)["threshold_reason"] == model_card(number)["threshold_reason"]
    new = draw_rows(600, 5)[0], (draw_rows(600, 5)[1] == 2).astype(int)
    named.calibrate(*new, target_recall={1: 0.7})
    number.calibrate(*new, target_recall=0.7)
    assert named.certificate_ == number.certificate_
    for wrong in ({0: 0.8}, {0: 0.8, 1: 0.8}, {"1": 0.8}):
        with pytest.raises(InvalidInputError, match="the recall of class 1"):
            TargetRecallClassifier(PlanningClassifier(costs), target_recall=wrong).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"target_recall": 0.9}, "must name the class it protects, of 3"),
        ({"target_recall": {3: 0.9}}, "must name classes of y; received .3.. The classes are"),
        ({"target_recall": {"2": 0.9}}, "Write 2, which is of type int in y, not str"),
        ({"target_recall": {2: 1.2}}, "< 1; received 1.2"),
        ({"target_recall": {}}, "must name a class"),
        ({"target_recall": {0: 0.999, 1: 0.999}}, "must be within reach.*acquires by the costs"),
        (
            {
                "target_recall": {2: 0.9},
                "recall_confidence": 0.9,
                "on_uncertifiable": "always_positive",
            },
            "three or more classes",
        ),
    ],
)
def test_mistakes_are_refused(parameters: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        TargetRecallClassifier(AllOfThem(COSTS), **parameters).fit(*draw_rows(90, 0))


def test_rows_that_do_not_suffice_are_refused() -> None:
    X, y = draw_rows(120, 0)
    policy = TargetRecallClassifier(
        AllOfThem(COSTS), target_recall={2: 0.95}, recall_confidence=0.95
    )
    with pytest.raises(NotCertifiableError, match="class 2 calibration rows"):
        policy.fit(X, y)
    policy.set_params(on_uncertifiable="largest").fit(X, y)
    assert policy.certificate_.bounds[0] < 0.95
    one = np.flatnonzero(y == 2)[:1]
    keep = np.concatenate([np.flatnonzero(y != 2), one])
    with pytest.raises(InvalidInputError, match="no row of class 2 among"):
        policy.set_params(recall_confidence=None).fit(X[keep], y[keep])
    policy.set_params(target_recall={1: 0.5}, recall_confidence=0.5)
    with pytest.raises(InvalidInputError, match="two training rows of every class"):
        policy.fit(X[keep], y[keep])
    with pytest.raises(InvalidInputError, match="Only binary"):
        TargetRecallClassifier(_OfTwo(COSTS), target_recall={2: 0.9}).fit(X, y)


class _OfTwo(AllOfThem):
    takes_many_classes = False
