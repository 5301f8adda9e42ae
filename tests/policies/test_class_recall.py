"""Target recalls of classes, where there are more than two, and certificates of them."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    load,
    save,
)
from adacos.card import model_card
from adacos.exceptions import NotCertifiableError
from adacos.kernels.class_risk import class_label, class_risks, probabilities
from adacos.policies.certificate import certify
from adacos.policies.recall import Targets, targets_of
from adacos.policies.surcharges import (
    least_surcharges,
    out_of_fold_recalls,
    surcharged,
    surcharges_to_try,
)
from adacos.report.held import hold, methods
from adacos.report.page import _summary
from tests.policy_checks import check_consultation, same

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
UNEVEN = np.array([[0.0, 20.0, 30.0], [25.0, 0.0, 45.0], [40.0, 15.0, 0.0]])
COSTS = Costs([1.0, 2.0, 4.0], misclassification=UNEVEN)
TARGETS = Targets(np.array([2, 1]), np.array([0.85, 0.75]))


def draw_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three numbers of which each tells a little of the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + np.eye(3)[y] * [1.0, 1.5, 2.0], y


BOTH = Targets(np.array([2, 0]), np.array([0.7, 0.65]))


def beliefs(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of rows and classes drawn by them."""
    rng = np.random.default_rng(seed)
    log_odds = 1.5 * rng.normal(size=(n, 2))
    return log_odds, np.array([rng.choice(3, p=p) for p in probabilities(log_odds)])


def found_by(log_odds: np.ndarray, y: np.ndarray, targets: Targets) -> Any:
    def recall_at(surcharges: np.ndarray, k: int) -> float:
        label = class_label(log_odds, surcharged(UNEVEN, targets, surcharges))
        own = targets.classes[k]
        return float((label[y == own] == own).mean())

    return recall_at


def test_no_surcharge_can_be_smaller_where_rows_stop_at_one_set() -> None:
    """By brute force over a grid: every solution has at least the surcharges found."""
    log_odds, y = beliefs()
    recall_at = found_by(log_odds, y, BOTH)
    least = least_surcharges(recall_at, BOTH.recalls, 45.0, np.zeros(2), accuracy=1e-4)
    assert least is not None
    assert (least > 0).all()
    reached = [recall_at(least, k) for k in range(2)]
    assert np.all(reached >= BOTH.recalls)
    grid = np.linspace(0, 2 * least.max(), 60)
    solutions = [
        (a, b)
        for a in grid
        for b in grid
        if all(recall_at(np.array([a, b]), k) >= BOTH.recalls[k] for k in range(2))
    ]
    assert solutions
    np.testing.assert_array_less(least * (1 - 2e-3), np.min(solutions, axis=0) + 1e-9)


def test_no_answers_with_these_recalls_cost_less() -> None:
    """Linear programming over all answers, by the same beliefs, finds none."""
    log_odds, _ = beliefs(80, 1)
    p = probabilities(log_odds)
    label = class_label(log_odds, surcharged(UNEVEN, TARGETS, np.array([30.0, 12.0])))
    risk = class_risks(log_odds, UNEVEN)
    cost = risk[np.arange(len(p)), label].sum()
    each_row = np.kron(np.eye(len(p)), np.ones(3))
    recalls = np.zeros((2, 3 * len(p)))
    for row, k in zip(recalls, TARGETS.classes, strict=True):
        row[k::3] = -p[:, k]
    has = [-p[label == k, k].sum() for k in TARGETS.classes]
    best = linprog(risk.ravel(), recalls, has, each_row, np.ones(len(p)), bounds=(0, 1))
    assert best.fun == pytest.approx(cost, rel=1e-9)
    assert risk.min(axis=1).sum() < cost - 1


def test_recalls_out_of_reach_are_not_found() -> None:
    log_odds, y = beliefs()
    both = Targets(np.array([0, 1]), np.array([0.99, 0.99]))
    assert least_surcharges(found_by(log_odds, y, both), both.recalls, 45.0, np.zeros(2)) is None


@pytest.mark.parametrize(
    "kind", [AdaCOSClassifier, COSClassifier, FullModelClassifier, BranchingClassifier]
)
def test_named_classes_reach_their_recalls(kind: Any, tmp_path: Any) -> None:
    X, y = draw_rows(300, 0)
    wanted = {2: 0.85, 1: 0.75}
    policy = kind(COSTS, target_recall=wanted, **QUICK).fit(X, y)
    plain = kind(COSTS, **QUICK).fit(X, y)
    assert all(policy.recall_estimate_[k] >= r for k, r in wanted.items())
    np.testing.assert_array_equal(policy.cost_table_.matrix, UNEVEN)
    expected = surcharged(UNEVEN, TARGETS, [policy.surcharges_[2], policy.surcharges_[1]])
    np.testing.assert_array_equal(policy.rule_.matrix, expected)
    X_new, y_new = draw_rows(4000, 1)
    result, label = policy.acquire(X_new), plain.predict(X_new)
    for k, r in wanted.items():
        own = y_new == k
        error = np.sqrt(r * (1 - r) * (1 / 100 + 1 / own.sum()))
        assert (result.label[own] == k).mean() > r - 3 * error
    assert np.mean([(label[y_new == k] == k).mean() < r for k, r in wanted.items()]) > 0
    save(policy, tmp_path / "m")
    same(load(tmp_path / "m").acquire(X_new), result)


def test_a_recall_that_the_costs_reach_anyway_changes_nothing() -> None:
    X, y = draw_rows(200, 0)
    plain = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    policy = AdaCOSClassifier(COSTS, target_recall={1: 0.01}, **QUICK).fit(X, y)
    assert policy.surcharges_ == {1: 0.0}
    same(policy.acquire(X), plain.acquire(X))


def test_what_is_said_of_recalls() -> None:
    X, y = draw_rows(300, 0)
    names = np.array(["ash", "elm", "oak"])[y]
    policy = AdaCOSClassifier(COSTS, target_recall={"oak": 0.9}, **QUICK).fit(X, names)
    check_consultation(policy, X[:4])
    assert "those about oak" in policy.consultation().next().explanation.because
    card = json.loads(json.dumps(model_card(policy)))
    assert card["target_recall"] == {"oak": 0.9}
    assert card["surcharges"] == policy.surcharges_
    assert card["misclassification_costs"] == UNEVEN.tolist()
    held = hold(policy, X, names)
    reported = str(_summary(held, methods(held)))
    assert "Recall of oak: target 90.0%" in reported


def test_a_certificate_of_several_classes(tmp_path: Any) -> None:
    X, y = draw_rows(700, 0)
    policy = COSClassifier(
        COSTS, target_recall={2: 0.8, 1: 0.6}, recall_confidence=0.9, **QUICK
    ).fit(X, y)
    certificate = policy.certificate_
    assert certificate.classes == (2, 1)
    for r, bound, n, misses in zip(
        certificate.recalls, certificate.bounds, certificate.n_rows, certificate.misses, strict=True
    ):
        assert bound >= r
        # The bound asked for is proved by the exact tail of the binomial distribution.
        assert binom.cdf(misses, n, 1 - r) <= 0.1
    assert "for all of them together" in str(certificate)
    assert model_card(policy)["certificate"]["bounds"] == certificate.bounds
    save(policy, tmp_path / "m")
    assert load(tmp_path / "m").certificate_ == certificate
    with pytest.raises(InvalidInputError, match="trained on"):
        policy.calibrate(X, y)


@pytest.mark.parametrize(
    ("tested_at", "largest", "honest"),
    [(0.9, False, True), (0.9, True, True), (0.4, False, False), (0.4, True, False)],
)
def test_certificates_are_wrong_as_seldom_as_they_say(
    tested_at: float, largest: bool, honest: bool
) -> None:
    """Held-out rows drawn again and again for one model, in a world where the recalls are known.

    Tests at another confidence than is claimed are caught.
    """
    targets = Targets(np.array([2, 1]), np.array([0.85, 0.7]))
    policy = FullModelClassifier(COSTS, **QUICK).fit(*draw_rows(300, 0))
    # The last of these have too small a recall.
    path = surcharges_to_try(
        policy,
        targets._replace(recalls=np.array([0.8, 0.65])),
        partial(out_of_fold_recalls, policy),
    )
    assert len(path) > 3
    X, y = draw_rows(60_000, 1)
    log_odds = policy.model_.log_odds_by_set(X)[:, -1]
    missed = np.stack([class_label(log_odds, surcharged(UNEVEN, targets, s)) != y for s in path])
    pools = [missed[:, y == k] for k in targets.classes]
    recalls = np.stack([1 - pool.mean(axis=1) for pool in pools], axis=1)
    rng, broken, granted, repetitions = np.random.default_rng(2), 0, 0, 400
    n_rows, number = np.array([300, 200]), {id(s): i for i, s in enumerate(path)}
    for _ in range(repetitions):
        drawn = [
            pool[:, rng.integers(0, pool.shape[1], n)].sum(axis=1)
            for pool, n in zip(pools, n_rows, strict=True)
        ]
        counts = np.stack(drawn, axis=1)
        try:
            proof = certify(
                lambda s, counts=counts: counts[number[id(s)]],
                path,
                n_rows,
                targets.recalls,
                tested_at,
                largest=largest,
            )
        except NotCertifiableError:
            continue
        granted += 1
        broken += bool(np.any(recalls[number[id(proof.rule)]] < proof.bounds))
    assert granted > 0.5 * repetitions
    assert (binom.sf(broken - 1, repetitions, 0.1) >= 0.01) == honest, broken


@given(
    misses=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 25), st.integers(0, 20)),
        min_size=1,
        max_size=8,
    ),
    n_classes=st.integers(1, 3),
    confidence=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_the_boldest_rule_is_that_of_exact_tests_of_every_class(
    misses: Any, n_classes: int, confidence: float
) -> None:
    """The tests are those of scipy; one class is tested as several are."""
    counts = np.array(misses)[:, :n_classes]
    n_rows, recalls = np.array([120, 80, 40])[:n_classes], np.array([0.9, 0.8, 0.7])[:n_classes]

    def passes(missed: Any, error: float) -> bool:
        each = zip(missed, n_rows, recalls, strict=True)
        return all(binom.cdf(m, n, 1 - r) <= error for m, n, r in each)

    def boldest(error: float) -> int:
        passed = [passes(missed, error) for missed in counts]
        return (passed.index(False) if False in passed else len(passed)) - 1

    def certified(largest: bool) -> Any:
        rules = range(len(counts))
        asked = rules, n_rows, recalls, confidence
        return certify(counts.__getitem__, *asked, largest=largest)

    expected, error = boldest(1 - confidence), (1 - confidence) / n_classes
    if expected >= 0:
        proof = certified(largest=False)
        assert proof.rule == expected
        assert np.all(proof.bounds >= recalls)
    else:
        with pytest.raises(NotCertifiableError):
            certified(largest=False)
    proof = certified(largest=True)
    assert proof.passed == (boldest(error) >= 0)
    assert proof.rule == max(boldest(error), 0)
    np.testing.assert_array_equal(proof.misses, counts[proof.rule])
    if not proof.passed:
        # Where recalls are at the bounds, so few misses have the probability of the error.
        for bound, missed, n, recall in zip(
            proof.bounds, proof.misses, n_rows, recalls, strict=True
        ):
            chance = binom.cdf(missed, n, 1 - bound)
            assert chance == pytest.approx(error) or (bound == recall and chance < error)


def test_rows_that_prove_too_little() -> None:
    X, y = draw_rows(120, 0)
    policy = FullModelClassifier(COSTS, target_recall={2: 0.9}, recall_confidence=0.95, **QUICK)
    with pytest.raises(NotCertifiableError, match="class 2 calibration rows") as refused:
        policy.fit(X, y)
    assert "always_positive" not in str(refused.value)
    policy.set_params(on_uncertifiable="largest").fit(X, y)
    (bound,) = policy.certificate_.bounds
    assert bound < 0.9
    assert bound == pytest.approx(refused.value.certifiable)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"target_recall": 0.9}, "must name the class it protects, of 3"),
        ({"target_recall": {"oak": 0.9}}, "must name classes of y"),
        ({"target_recall": {2: 1.0}}, "< 1"),
        ({"target_recall": {}}, "must name a class"),
        ({"target_recall": {0: 0.99, 1: 0.99}}, "must be within reach"),
        ({"target_recall": {2: 0.9}, "mean_budget": 3.0}, "recall by class"),
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
    X, y = draw_rows(90, 0)
    with pytest.raises(InvalidInputError, match=words):
        COSClassifier(COSTS, **QUICK, **parameters).fit(X, y)


OF_TWO = Costs([1.0, 2.0, 4.0], false_positive=20)
# The first keeps no budget.
KINDS = (FullModelClassifier, AdaCOSClassifier, BranchingClassifier, COSClassifier)


def sick(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = draw_rows(n, seed)
    return X, np.where(y > 1, "sick", "healthy")


def alike(named: Any, number: Any, X: np.ndarray) -> None:
    """Both policies are the same bit for bit."""
    same(named.acquire(X), number.acquire(X))
    assert named.threshold_ == number.threshold_
    assert named.false_negative_cost_ == number.false_negative_cost_
    assert named.recall_estimate_ == number.recall_estimate_
    assert named.surcharges_ is None


@pytest.mark.filterwarnings("ignore:The positive class")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in KINDS),
        *((kind, {"recall_confidence": 0.9}) for kind in KINDS),
        *((kind, {"mean_budget": 3.0}) for kind in KINDS[1:]),
        *((kind, {"budget": 4.0}) for kind in KINDS[1:]),
    ],
)
def test_of_two_classes_the_named_one_is_the_second(kind: Any, options: Any, tmp_path: Any) -> None:
    (X, y), recalls = sick(240, 0), (0.85, {"sick": 0.85})
    number, named = (
        kind(OF_TWO, target_recall=recall, **options, **QUICK).fit(X, y) for recall in recalls
    )
    alike(named, number, X)
    save(named, tmp_path / "m")
    again, card = load(tmp_path / "m"), model_card(named)
    alike(again, number, X)
    assert card["target_recall"] == 0.85
    assert card["threshold_reason"] == model_card(number)["threshold_reason"]
    if "mean_budget" in options:
        return
    for policy, recall in ((number, 0.7), (named, {"sick": 0.7})):
        policy.set_params(target_recall=recall).calibrate(*sick(300, 1), confidence=0.8)
    alike(named, number, X)
    assert named.certificate_ == number.certificate_
    named.calibrate(*sick(300, 1), target_recall={"sick": 0.6}, confidence=0.8)
    assert named.certificate_.recall == 0.6


@pytest.mark.filterwarnings("ignore:The positive class")
def test_of_two_classes_the_named_one_shares_a_fit_without_its_rows() -> None:
    X, y = sick(240, 0)
    plain = AdaCOSClassifier(OF_TWO, target_recall=0.85, **QUICK).fit(X, y)
    number, named = (
        AdaCOSClassifier(OF_TWO, target_recall=recall).from_model(plain)
        for recall in (0.85, {"sick": 0.85})
    )
    alike(named, number, X)


@pytest.mark.filterwarnings("ignore:The positive class")
def test_of_two_classes_no_other_may_be_named() -> None:
    X, y = sick(90, 0)
    for wrong in ({"healthy": 0.9}, {"healthy": 0.9, "sick": 0.9}, {"Sick": 0.9}):
        policy = COSClassifier(OF_TWO, target_recall=wrong, **QUICK)
        with pytest.raises(InvalidInputError, match=r"the recall of class 'sick'.*{'sick': 0.95}"):
            policy.fit(X, y)
        policy = COSClassifier(OF_TWO, target_recall=0.9, **QUICK).fit(X, y)
        with pytest.raises(InvalidInputError, match="the recall of class 'sick'"):
            policy.calibrate(*sick(90, 1), target_recall=wrong, confidence=0.5)
    stated = Costs([1.0, 2.0, 4.0], false_positive=20, false_negative=30)
    with pytest.raises(InvalidInputError, match="each follows from the other"):
        COSClassifier(stated, target_recall={"sick": 0.9}, **QUICK).fit(X, y)
    forward = COSClassifier(OF_TWO, target_recall={"sick": 0.9}, sequence="forward", **QUICK)
    with pytest.raises(InvalidInputError, match="must be 'group_lasso' with a target recall"):
        forward.fit(X, y)


def test_a_shared_fit_needs_its_rows_where_rows_are_walked() -> None:
    X, y = draw_rows(150, 0)
    plain = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    assert COSClassifier(COSTS, target_recall={2: 0.9}).from_model(plain).surcharges_[2] >= 0
    with pytest.raises(InvalidInputError, match="without its training rows"):
        AdaCOSClassifier(COSTS, target_recall={2: 0.9}).from_model(copy.copy(plain))
    fitted = AdaCOSClassifier(COSTS, target_recall={1: 0.7}, **QUICK).fit(X, y)
    again = AdaCOSClassifier(COSTS, target_recall={2: 0.9}).from_model(fitted)
    direct = AdaCOSClassifier(COSTS, target_recall={2: 0.9}, **QUICK).fit(X, y)
    assert again.surcharges_ == direct.surcharges_
    assert targets_of({2: 0.9}, again.classes_).recalls == [0.9]
