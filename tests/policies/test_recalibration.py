"""A policy at another prevalence: simulated shifts, what is exact, dropped, and refused."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    CostedClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    PlanningClassifier,
    TargetRecallClassifier,
    load,
    prevalence_weights,
    save,
)
from adacos.card import model_card
from adacos.datasets import make_value_dependent_problem
from adacos.kernels.prior_shift import LogOddsChange, log_odds_at
from adacos.metrics import total_cost
from adacos.models.cells import WithinCodes
from adacos.models.plans import tabulate
from adacos.models.shifted import shifted_within
from adacos.models.table_mixture import pooled
from adacos.policies.auto import Candidate

PRICES = [1.0, 2.0, 2.0, 3.0]
COSTS = Costs(PRICES, false_positive=100, false_negative=1000)
BEFORE, AFTER = 0.35, 0.04
FAST = {"cv": 3, "strengths": "common"}


def drawn(n, prevalence, seed, n_classes=2):
    """Rows whose covariates are normal given the class."""
    rng = np.random.default_rng(seed)
    shares = [1 - prevalence, prevalence] if n_classes == 2 else prevalence
    y = rng.choice(n_classes, n, p=shares)
    X = rng.normal(size=(n, 4)) + y[:, None] * np.array([1.0, 0.8, 0.6, 0.5])
    X[:, 1] += 0.4 * X[:, 0]
    return X, y


POLICIES = {
    "adacos": AdaCOSClassifier(COSTS, **FAST),
    "paper": AdaCOSClassifier(COSTS, lookahead="paper", **FAST),
    "cos": COSClassifier(COSTS, **FAST),
    "full": FullModelClassifier(COSTS, **FAST),
    "branching": BranchingClassifier(COSTS, max_depth=1, **FAST),
    "planning": PlanningClassifier(COSTS, n_codes=5, cv=3),
}


@pytest.fixture(scope="module")
def fitted():
    X, y = drawn(600, BEFORE, 0)
    return {name: policy.fit(X, y) for name, policy in POLICIES.items()}


def calibration(policy, X, y):
    """Slope and mean of outcomes at the stop, each less what it should be, in errors."""
    p = np.clip(policy.acquire(X).probability, 1e-9, 1 - 1e-9)
    slope = LogisticRegression(C=np.inf).fit(logit(p)[:, None], y)
    fit = slope.predict_proba(logit(p)[:, None])[:, 1]
    design = np.column_stack([np.ones(len(y)), logit(p)])
    covariance = np.linalg.inv(design.T @ (design * (fit * (1 - fit))[:, None]))
    mean = (y.mean() - p.mean()) / np.sqrt(np.mean(p * (1 - p)) / len(y))
    return (float(slope.coef_[0, 0]) - 1) / np.sqrt(covariance[1, 1]), mean


@pytest.mark.parametrize("name", POLICIES)
def test_a_known_shift_is_calibrated_and_costs_less(fitted, name):
    policy, (X, y) = fitted[name], drawn(2000, AFTER, 1)
    moved = policy.recalibrate(prevalence=AFTER)
    slope, mean = calibration(moved, X, y)
    assert abs(slope) < 2
    assert abs(mean) < 2
    assert abs(calibration(policy, X, y)[1]) > 10
    before, after = (total_cost(one.acquire(X), y, COSTS) for one in (policy, moved))
    assert after < 0.7 * before
    # What it states is what rows cost: on 2,000 rows an error of about 3.
    assert moved.expected_cost_ == pytest.approx(after, abs=7)


@pytest.mark.parametrize("name", POLICIES)
def test_local_outcomes_do_as_well(fitted, name):
    policy, (X, y), (X_new, y_new) = fitted[name], drawn(300, AFTER, 2), drawn(2000, AFTER, 1)
    moved = policy.recalibrate(X, y)
    found = moved.recalibration_
    assert found.rows == 300
    true = log_odds_at(np.array([1 - AFTER, AFTER])) - log_odds_at(found.before)
    assert abs(found.shift[0] - true[0]) < 2 * found.shift_error[0]
    assert abs(found.slope - 1) <= 2 * found.slope_error
    assert (found.slope == 1.0) == (name == "planning")
    assert "300 local rows" in str(found)
    assert total_cost(moved.acquire(X_new), y_new, COSTS) < 0.7 * total_cost(
        policy.acquire(X_new), y_new, COSTS
    )


def test_it_costs_no_more_than_a_fit_with_weights(fitted):
    X, y = drawn(600, BEFORE, 0)
    weighted = AdaCOSClassifier(COSTS, **FAST)
    weighted.fit(X, y, sample_weight=prevalence_weights(y, AFTER))
    X, y = drawn(20_000, AFTER, 3)
    moved = fitted["adacos"].recalibrate(prevalence=AFTER)
    ours, theirs = (total_cost(one.acquire(X), y, COSTS) for one in (moved, weighted))
    assert ours < 1.03 * theirs


def test_models_and_stated_costs_of_all_sets_are_those_of_bayes_rule(fitted):
    policy, (X, _) = fitted["adacos"], drawn(50, 0.5, 4)
    moved = policy.recalibrate(prevalence=AFTER)
    model, after = policy.model_, moved.model_
    shift = moved.recalibration_.shift[0]
    assert after.log_odds_by_set(X) == pytest.approx(model.log_odds_by_set(X) + shift, abs=1e-9)
    # Cost of stopping at each set, by hand: every row counts as often as its class.
    share = model.y.mean()
    factor = np.where(model.y == 1, AFTER / share, (1 - AFTER) / (1 - share))
    u = model.out_of_fold_log_odds + shift
    answer = u >= np.log(100 / 1000)
    wrong = np.where(model.y[:, None] == 1, 1000.0 * ~answer, 100.0 * answer)
    costs = (factor[:, None] * wrong).mean(axis=0) + model.sequence.costs(policy.cost_table_)
    assert moved.expected_cost_by_set_ == pytest.approx(costs)


def test_a_plan_is_that_of_the_reweighted_joint_distribution(fitted):
    policy = fitted["planning"]
    moved = policy.recalibrate(prevalence=AFTER)
    share = policy.joint_.reshape(2, -1).sum(axis=1)
    factor = np.array([1 - AFTER, AFTER]) / share
    joint = policy.joint_ * factor.reshape(2, *[1] * (policy.joint_.ndim - 1))
    table = tabulate(joint / joint.sum(), policy._costs_of(policy.planned_), policy.caution_)
    assert moved.table_.value == pytest.approx(table.value)
    assert np.array_equal(moved.table_.action, table.action)
    shift = np.log(factor[1] / factor[0])
    there = np.isfinite(policy.table_.log_odds)
    assert moved.table_.log_odds[there] == pytest.approx(policy.table_.log_odds[there] + shift)


def test_the_mixture_behind_a_plan_says_the_same_at_other_shares(fitted):
    X, y = drawn(300, BEFORE, 5)
    policy = fitted["planning"]
    mixture = pooled(policy._members(policy._rows(policy._encode(X), y, None)))
    base = log_odds_at(np.array([1 - BEFORE, BEFORE]))
    change = LogOddsChange(log_odds_at(np.array([1 - AFTER, AFTER])) - base, 1.0, base)
    within = WithinCodes(mixture, 0.5)
    other = shifted_within(within, change)
    statistics = within.statistics(policy._encode(X))
    # Whatever is known of a row.
    known = np.random.default_rng(0).random(X.shape) < 0.5
    old, new = (one.mixture.log_joint(statistics, known) for one in (within, other))
    reported = old[:, 1] - old[:, 0] + change.shift[0]
    assert new[:, 1] - new[:, 0] == pytest.approx(reported)
    assert np.exp(other.mixture.log_weight).sum() == pytest.approx(1)
    assert other.weight == within.weight


def test_the_branches_stay_and_every_leaf_is_shifted():
    problem = make_value_dependent_problem()
    X, y = problem.sample(500, seed=0)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    policy = BranchingClassifier(costs, **FAST).fit(X, y)
    moved = policy.recalibrate(prevalence=0.1)
    assert policy.has_tree
    assert moved.has_tree
    shift = moved.recalibration_.shift[0]
    for node, after in zip(policy.nodes_, moved.nodes_, strict=True):
        assert (node.model is None) == (after.model is None)
        if node.model is not None:
            assert after.model.intercepts == pytest.approx(node.model.intercepts + shift)
    # What becomes of training rows is not known: no shares are drawn, nor costs.
    assert "%" not in str(moved.tree_)
    assert "every row is asked x0" in str(moved.tree_).lower()
    assert moved.consultation().next().covariates == ("x0",)


def test_nothing_is_changed_and_changes_add_up(fitted, tmp_path):
    policy, (X, _) = fitted["adacos"], drawn(200, AFTER, 6)
    before = policy.acquire(X)
    moved = policy.recalibrate(prevalence=AFTER)
    after = policy.acquire(X)
    assert policy.recalibration_ is None
    assert np.array_equal(before.probability, after.probability)
    by_steps = policy.recalibrate(prevalence=0.2).recalibrate(prevalence=AFTER)
    assert by_steps.acquire(X).probability == pytest.approx(moved.acquire(X).probability)
    assert by_steps.recalibration_.shift == pytest.approx(moved.recalibration_.shift)
    assert by_steps.expected_cost_ == pytest.approx(moved.expected_cost_)
    # The shift back leads back.
    back = moved.recalibrate(prevalence=float(moved.recalibration_.before[1]))
    assert back.acquire(X).probability == pytest.approx(before.probability)
    # Other policies that share the model say so too.
    cos = COSClassifier(COSTS).from_model(moved)
    assert str(cos.recalibration_) == str(moved.recalibration_)
    save(moved, tmp_path / "moved.adacos")
    loaded = load(tmp_path / "moved.adacos")
    share = f"{moved.recalibration_.before[1]:.1%}"
    assert str(loaded.recalibration_) == f"Recalibrated from a prevalence of {share} to 4.0%."
    assert np.array_equal(loaded.acquire(X).probability, moved.acquire(X).probability)
    assert loaded.fit(*drawn(100, 0.5, 7)).recalibration_ is None


def test_three_classes_by_prior_shift():
    shares, other = [0.4, 0.3, 0.3], {0: 0.85, 1: 0.1, 2: 0.05}
    X, y = drawn(500, shares, 0, n_classes=3)
    costs = Costs(PRICES, misclassification=100 * (1 - np.eye(3)))
    new, labels = drawn(2000, list(other.values()), 1, n_classes=3)
    for policy in (COSClassifier(costs, **FAST), PlanningClassifier(costs, n_codes=4, cv=2)):
        policy.fit(X, y)
        moved = policy.recalibrate(prevalence=other)
        assert moved.recalibration_.after == pytest.approx(list(other.values()))
        p = moved.predict_proba(new)
        error = np.sqrt(np.mean(p * (1 - p), axis=0) / len(p))
        assert np.all(np.abs(p.mean(axis=0) - np.bincount(labels) / len(p)) < 3 * error)
        before, after = (total_cost(one.acquire(new), labels, costs) for one in (policy, moved))
        assert after < before
        local = policy.recalibrate(new[:300], labels[:300]).recalibration_
        true = moved.recalibration_.shift
        assert np.all(np.abs(local.shift - true) < 3 * local.shift_error)
        assert "0 87.8% (was 35.6%), 1 7.2%" in str(local) or type(policy) is PlanningClassifier


@pytest.fixture(scope="module")
def certified():
    X, y = drawn(1200, BEFORE, 0)
    adacos = AdaCOSClassifier(Costs(PRICES, false_positive=100), **FAST)
    return TargetRecallClassifier(adacos, target_recall=0.9, recall_confidence=0.9).fit(X, y)


def test_a_certificate_is_not_shown_after_a_shift(certified, tmp_path):
    moved = certified.recalibrate(prevalence=AFTER)
    assert certified.certificate_ is not None
    assert moved.certificate_ is None
    card = model_card(moved)
    assert card["certificate"] is None
    assert "No recall is certified since then." in card["recalibration"]["text"]
    assert "about 90.0% of cases" in card["threshold_reason"]
    save(moved, tmp_path / "moved.adacos")
    assert load(tmp_path / "moved.adacos").certificate_ is None
    # The target is kept all the same, at every set, and new rows prove it.
    assert moved.recall_estimate_ >= 0.9
    X, y = drawn(40_000, AFTER, 8)
    found = moved.predict(X)[y == 1].mean()
    assert found > 0.9
    moved.calibrate(*drawn(4000, AFTER, 9), target_recall=0.85)
    assert moved.certificate_.bound >= 0.85


def test_under_label_shift_the_recall_of_the_policy_as_it_was_is_the_same(certified):
    """Which is why the policy as it was keeps its certificate: only its own rows count."""
    recalls = []
    for prevalence, seed in ((BEFORE, 10), (AFTER, 11)):
        X, y = drawn(40_000, prevalence, seed)
        found = certified.predict(X)[y == 1]
        recalls.append((found.mean(), found.std() / np.sqrt(len(found))))
    (one, own), (other, error) = recalls
    assert abs(one - other) < 3 * np.hypot(own, error)


def test_what_was_chosen_is_recalibrated(monkeypatch):
    choices = (Candidate("AdaCOS", AdaCOSClassifier, {}), Candidate("COS", COSClassifier, {}))
    monkeypatch.setattr("adacos.policies.auto.CANDIDATES", choices)
    X, y = drawn(300, BEFORE, 0)
    policy = AutoPolicyClassifier(COSTS, cv=3).fit(X, y)
    moved = policy.recalibrate(prevalence=AFTER)
    assert moved.policy_.recalibration_ is not None
    assert moved.expected_cost_ < policy.expected_cost_
    assert "as they occurred in training" in moved.reason()
    assert model_card(moved)["recalibration"]["after"][1] == pytest.approx(AFTER)


def test_what_cannot_be_recalibrated_is_refused_by_name(fitted):
    X, y = drawn(120, BEFORE, 0)
    costed = CostedClassifier(LogisticRegression(), COSTS).fit(X, y)
    with pytest.raises(InvalidInputError, match="CostedClassifier cannot be recalibrated"):
        costed.recalibrate(prevalence=0.1)
    mean = AdaCOSClassifier(COSTS, mean_budget=2.0, **FAST).fit(X, y)
    with pytest.raises(InvalidInputError, match="mean_budget: is kept by the training rows"):
        mean.recalibrate(prevalence=0.1)
    forward = AdaCOSClassifier(COSTS, sequence="forward", **FAST)
    answers = TargetRecallClassifier(forward, target_recall=0.9).fit(X, y)
    with pytest.raises(InvalidInputError, match="must stop by the recall"):
        answers.recalibrate(prevalence=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "must be given, or local rows X"),
        ({"prevalence": 0.1, "X": np.zeros((2, 4)), "y": [0, 1]}, "and not both"),
        ({"X": np.zeros((2, 4))}, "local rows X with their classes"),
        ({"prevalence": 2}, "prevalence"),
        ({"prevalence": 0.0}, "prevalence"),
        ({"prevalence": {0: 0.5, 1: 0.6}}, "add up to 1"),
        ({"prevalence": {"well": 0.5, "ill": 0.5}}, "name every class"),
        ({"X": np.zeros((2, 4)), "y": [0]}, "one class for each"),
        ({"X": np.zeros((2, 4)), "y": [0, 7]}, r"classes must be \[0, 1\]"),
    ],
)
def test_mistakes_are_reported(fitted, given, message):
    with pytest.raises(InvalidInputError, match=message):
        fitted["adacos"].recalibrate(**given)


def test_training_rows_and_unrelated_outcomes_are_no_local_rows(fitted):
    X, y = drawn(600, BEFORE, 0)
    with pytest.raises(InvalidInputError, match="must not be rows that the policy was trained on"):
        fitted["adacos"].recalibrate(X[:100], y[:100])
    X, y = drawn(4000, 0.5, 12)
    with pytest.raises(InvalidInputError, match="a slope of"):
        fitted["adacos"].recalibrate(X, 1 - y)


def test_a_slope_is_an_exact_change_of_every_model(fitted):
    policy, (X, _) = fitted["adacos"], drawn(50, 0.5, 4)
    base = log_odds_at(policy._training_shares())
    change = LogOddsChange(np.array([-1.0]), 0.8, base)
    moved = policy._changed(change)
    u = policy.model_.log_odds_by_set(X)
    assert moved.model_.log_odds_by_set(X) == pytest.approx(base - 1 + 0.8 * (u - base))
    # Rows as weighted agree with the new log-odds in the mean.
    model = moved.model_
    p = 1 / (1 + np.exp(-model.out_of_fold_log_odds[:, -1]))
    assert np.average(p, weights=model.weight) == pytest.approx(
        np.average(model.y, weights=model.weight), abs=0.02
    )
    density, other = policy.model_.densities[0], model.densities[0]
    r = np.zeros((3, len(density.regressors)))
    (mean, sd), (mean_after, sd_after) = density.moments(r), other.moments(r)
    assert mean_after == pytest.approx(0.8 * mean)
    assert sd_after == pytest.approx(0.8 * sd)
