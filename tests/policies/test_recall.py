"""Target recall: thresholds, certificates, refusals, and what is reported about them."""

from __future__ import annotations

import builtins
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.base import clone

import adacos
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
)
from adacos.decision import STOP, Decision, ObservedDecider
from adacos.engine import compact_left
from adacos.exceptions import InvalidInputError, MissingExtraError, NotCertifiableError
from adacos.kernels.binomial import lower_bound
from adacos.metrics import (
    false_discovery_rate,
    false_discovery_rate_interval,
    neg_total_cost_scorer,
    operation_cost,
    recall,
    recall_interval,
    total_cost,
    total_cost_scorer,
)
from adacos.policies.base import BasePolicy
from adacos.policies.certificate import (
    RecallCertificate,
    allowed_misses,
    certify,
    from_first_discriminating,
)
from adacos.policies.recall import (
    boldest_threshold,
    false_negative_cost,
    recall_threshold,
    threshold_sequence,
)
from adacos.policies.recall_choices import plot_recall_choices, recall_choices
from adacos.tables.row_digests import RowDigests
from tests.studies.recall_problems import PROBLEMS

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

POLICIES = (AdaCOSClassifier, COSClassifier, FullModelClassifier)
PROBLEM = PROBLEMS["well specified"]
COSTS = Costs(PROBLEM.costs.covariates, false_positive=200)


@pytest.fixture(scope="module")
def rows():
    return PROBLEM.rows(np.random.default_rng(0), 600)


@pytest.fixture(scope="module")
def fresh():
    return PROBLEM.rows(np.random.default_rng(1), 700)


@pytest.fixture(scope="module")
def base(rows):
    return FullModelClassifier(COSTS, target_recall=0.95).fit(*rows)


# The threshold and the cost it stands for


@given(
    scores=st.lists(st.floats(-5, 5), min_size=1, max_size=60),
    target=st.floats(0.01, 0.99),
)
def test_threshold_is_the_largest_that_enough_rows_reach(scores, target):
    scores = np.array(scores)
    threshold = recall_threshold(scores, target)
    assert np.mean(scores >= threshold) >= target - 1e-9
    higher = scores[scores > threshold]
    if len(higher):
        assert np.mean(scores >= higher.min()) < target


def test_exact_shares_are_not_rounded_up():
    assert recall_threshold(np.arange(20.0), 0.95) == 1
    assert recall_threshold(np.arange(100.0), 0.99) == 1


@pytest.mark.parametrize("threshold", [0.001, 0.3, 0.9])
def test_false_negative_cost_makes_the_threshold_optimal(threshold):
    cost = false_negative_cost(logit(threshold), 7.0)
    assert threshold * cost == pytest.approx((1 - threshold) * 7.0)


@pytest.mark.parametrize("target", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_every_set_of_the_sequence_counts(base, kind, target):
    policy = kind(COSTS, target_recall=target, recall_at="every_set").from_model(base)
    model = policy.model_
    out_of_fold = expit(model.out_of_fold_log_odds[model.y == 1])
    reached = np.all(out_of_fold >= policy.threshold_ - 1e-12, axis=1)
    assert policy.recall_estimate_ == reached.mean() >= target
    bolder = np.min(out_of_fold, axis=1)[reached]
    assert np.mean(np.all(out_of_fold > bolder.min() + 1e-12, axis=1)) < target


def test_full_model_stops_at_the_last_set_only(base):
    policy = FullModelClassifier(COSTS, target_recall=0.95).from_model(base)
    last = policy.model_.out_of_fold_log_odds[policy.model_.y == 1][:, -1]
    assert logit(policy.threshold_) == pytest.approx(recall_threshold(last, 0.95))
    at_every_set = AdaCOSClassifier(COSTS, target_recall=0.95, recall_at="every_set")
    assert policy.threshold_ >= at_every_set.from_model(base).threshold_


def test_the_empty_set_keeps_the_threshold_at_the_prior():
    # One perfect covariate: every set but the empty one would allow a threshold far above.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [380, 20])
    X = np.column_stack([y * 10 + rng.normal(size=400), rng.normal(size=400)])
    for false_positive in (0.001, 1.0, 1000.0):
        costs = Costs([1.0, 1.0], false_positive=false_positive)
        policy = AdaCOSClassifier(costs, target_recall=0.95, recall_at="every_set").fit(X, y)
        assert policy.threshold_ < expit(policy.model_.intercepts[0])
        assert policy.threshold_ == pytest.approx(0.05, rel=1e-4)
        assert recall(policy.acquire(X), y) >= 0.95
        walked = AdaCOSClassifier(costs, target_recall=0.95).from_model(policy)
        assert walked.threshold_ >= policy.threshold_
        assert recall(walked.acquire(X), y) >= 0.95


@pytest.mark.parametrize("kind", [AdaCOSClassifier, COSClassifier])
def test_new_rows_have_the_recall_that_was_asked_for(kind):
    # Counted at every set they had 0.91, and paid for it.
    new_X, new_y = PROBLEM.rows(np.random.default_rng(99), 20_000)
    found, spent = [], []
    for seed in range(5):
        rows = PROBLEM.rows(np.random.default_rng(seed), 400)
        if seed % 2:
            rows[0][np.random.default_rng(seed).random(rows[0].shape) < 0.1] = np.nan
        policy = kind(COSTS, target_recall=0.8, random_state=seed).fit(*rows)
        assert policy.recall_estimate_ == pytest.approx(0.8, abs=0.02)
        assert policy.recall_estimate_ >= 0.8
        bound = kind(COSTS, target_recall=0.8, recall_at="every_set").from_model(policy)
        results = policy.acquire(new_X), bound.acquire(new_X)
        found.append([recall(result, new_y) for result in results])
        spent.append([operation_cost(result, new_y, COSTS) for result in results])
    # Three standard errors of a mean over five samples of about 150 positives.
    (at_stop, at_every_set), (cost, more) = np.mean(found, axis=0), np.mean(spent, axis=0)
    assert at_stop == pytest.approx(0.8, abs=0.045)
    assert at_every_set > at_stop
    assert cost < more


def test_the_boldest_threshold_is_the_largest_that_enough_rows_reach():
    scores = np.random.default_rng(0).normal(size=200)
    low, high = float(scores.min()), float(scores.max())
    found, reached = boldest_threshold(lambda t: float(np.mean(scores >= t)), 0.8, low, high)
    assert found == pytest.approx(recall_threshold(scores, 0.8), abs=2e-4)
    assert reached == 0.8
    # Where even the largest is reached, or only the smallest.
    assert boldest_threshold(lambda t: 1.0, 0.8, low, high) == (high, 1.0)
    assert boldest_threshold(lambda t: float(t <= low), 0.8, low, high)[1] == 1.0


def test_a_model_without_its_training_rows_says_what_helps(base, tmp_path):
    adacos.save(base, tmp_path / "model.adacos")
    loaded = adacos.load(tmp_path / "model.adacos")
    with pytest.raises(InvalidInputError, match="recall_at='every_set'"):
        AdaCOSClassifier(COSTS, target_recall=0.9).from_model(loaded)
    bound = AdaCOSClassifier(COSTS, target_recall=0.9, recall_at="every_set")
    assert bound.from_model(loaded).recall_estimate_ >= 0.9


@pytest.mark.parametrize("kind", POLICIES)
def test_policy_is_that_of_the_implied_cost(rows, fresh, base, kind):
    policy = kind(COSTS, target_recall=0.9).fit(*rows)
    cost = policy.false_negative_cost_
    assert cost == pytest.approx((1 - policy.threshold_) / policy.threshold_ * 200)
    stated = Costs(COSTS.covariates, false_positive=200, false_negative=cost)
    same = kind(stated).fit(*rows).acquire(fresh[0])
    result = policy.acquire(fresh[0])
    for part in ("label", "stage", "cost", "expected_cost"):
        np.testing.assert_array_equal(getattr(result, part), getattr(same, part))
    shared = kind(COSTS, target_recall=0.9).from_model(base)
    assert shared.threshold_ == policy.threshold_


# Certificates


def test_positives_needed_without_a_miss():
    assert allowed_misses(44, 0.95, 0.9) == -1
    assert allowed_misses(45, 0.95, 0.9) == 0
    assert allowed_misses(229, 0.99, 0.9) == -1
    assert allowed_misses(230, 0.99, 0.9) == 0


@given(
    n=st.integers(1, 300), target=st.floats(0.3, 0.99), confidence=st.sampled_from([0.5, 0.9, 0.99])
)
def test_allowed_misses_are_those_of_the_exact_test(n, target, confidence):
    allowed = allowed_misses(n, target, confidence)

    def p_value(misses):
        return binomtest(misses, n, 1 - target, alternative="less").pvalue

    if allowed >= 0:
        assert p_value(allowed) <= 1 - confidence + 1e-9
    if allowed < n:
        assert p_value(allowed + 1) > 1 - confidence - 1e-9


@given(misses=st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_the_sequence_stops_at_the_first_failure(misses):
    allowed = allowed_misses(200, 0.95, 0.9)
    passing = next((k for k, m in enumerate(misses) if m > allowed), len(misses))
    tried = []

    def misses_at(threshold):
        tried.append(threshold)
        return misses[int(threshold)]

    thresholds = np.arange(len(misses), dtype=float)
    if passing == 0:
        with pytest.raises(NotCertifiableError):
            certify(misses_at, thresholds, 200, 0.95, 0.9)
    else:
        proof = certify(misses_at, thresholds, 200, 0.95, 0.9)
        assert proof.rule == passing - 1
        assert proof.misses == misses[passing - 1]
        assert proof.bounds >= 0.95
    assert tried == [*range(min(passing + 1, len(misses)))]


def test_a_bound_on_the_misses_saves_counting_them():
    misses, tried = [0, 1, 2, 3, 20, 1], []

    def misses_at(threshold):
        tried.append(threshold)
        return misses[int(threshold)]

    proof = certify(misses_at, range(6), 200, 0.95, 0.9, at_most=lambda t: 2 * misses[int(t)])
    assert proof.rule == 3
    assert proof.misses == 3
    assert tried == [3, 4]


def test_the_bound_does_not_depend_on_the_misses_seen():
    proofs = [certify(lambda _, k=k: k, [0.0], 200, 0.95, 0.9) for k in range(5)]
    assert len({proof.bounds.item() for proof in proofs}) == 1


def test_the_sequence_begins_below_and_ends_above_what_was_seen():
    log_odds = np.random.default_rng(0).normal(size=(300, 3))
    sequence = threshold_sequence(log_odds)
    assert np.all(np.diff(sequence) > 0)
    assert sequence[0] < log_odds.min()
    assert np.mean(log_odds.max(axis=1) >= sequence[-1]) < 0.95


@pytest.mark.parametrize("kind", POLICIES)
def test_calibrate_certifies_the_policy_as_it_runs(base, fresh, kind):
    policy = kind(COSTS, target_recall=0.95).from_model(base)
    policy.calibrate(*fresh, confidence=0.9)
    certificate, y = policy.certificate_, fresh[1]
    assert certificate.n_positives == y.sum()
    assert np.sum(policy.predict(fresh[0])[y == 1] == 0) == certificate.misses
    assert policy.threshold_ == certificate.threshold
    assert policy.recall_estimate_ == 1 - certificate.misses / certificate.n_positives
    assert certificate.misses <= allowed_misses(certificate.n_positives, 0.95, 0.9)
    # All sets saying 1 is a harder condition, so its certificate is never the bolder one.
    model = policy.model_
    sets = policy._may_stop_at()
    least = model.log_odds_by_set(fresh[0][y == 1])[:, sets].min(axis=1)
    out_of_fold = model.out_of_fold_log_odds[model.y == 1][:, sets]
    adversarial = certify(
        lambda t: int(np.sum(least < t)),
        threshold_sequence(out_of_fold),
        len(least),
        0.95,
        0.9,
    ).rule
    assert logit(policy.threshold_) >= adversarial - 1e-9


def test_calibrate_takes_rows_with_unavailable_values(base, fresh):
    X = fresh[0].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    policy = AdaCOSClassifier(COSTS, target_recall=0.9).from_model(base)
    policy.calibrate(X, fresh[1], confidence=0.9)
    missed = np.sum(policy.predict(X)[fresh[1] == 1] == 0)
    assert missed == policy.certificate_.misses


def test_log_odds_by_set_are_those_of_each_set(base, fresh):
    X = fresh[0].copy()
    X[::3, 1] = np.nan
    encoded = base.encoder_.transform(X)
    expected = [base.model_.log_odds(encoded, i) for i in range(len(base.model_.sequence))]
    np.testing.assert_allclose(base.model_.log_odds_by_set(encoded).T, expected, atol=1e-10)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_fit_sets_calibration_rows_aside(library, fresh):
    X, y = fresh
    names = ["a", "b", "c", "d"]
    if library != "numpy":
        module = pytest.importorskip(library)
        table = dict(zip(names, X.T, strict=True))
        X = module.table(table) if library == "pyarrow" else module.DataFrame(table)
    policy = AdaCOSClassifier(
        COSTS
        if library == "numpy"
        else Costs(dict(zip(names, COSTS.covariates, strict=True)), false_positive=200),
        target_recall=0.9,
        recall_confidence=0.9,
        calibration_fraction=0.25,
    )
    classes = np.array(["healthy", "ill"])[y]
    policy.fit(X, classes)
    assert policy.certificate_.n_positives == y.sum() // 4
    assert len(policy.model_.y) == len(y) - y.sum() // 4 - (y == 0).sum() // 4
    again = AdaCOSClassifier(**policy.get_params()).fit(X, classes)
    assert again.certificate_ == policy.certificate_
    assert set(policy.predict(X)) == {"healthy", "ill"}


# Refusals


def few(n, rng=0):
    X, y = PROBLEM.rows(np.random.default_rng(rng), 2000)
    rows = np.concatenate([np.flatnonzero(y == 1)[:n], np.flatnonzero(y == 0)[:100]])
    return X[rows], y[rows]


def test_too_few_positives_are_named(base):
    policy = AdaCOSClassifier(COSTS, target_recall=0.95).from_model(base)
    before = dict(vars(policy))
    with pytest.raises(NotCertifiableError, match="at least 45 positives, 15 more") as caught:
        policy.calibrate(*few(30), confidence=0.9)
    assert caught.value.needed == 45
    assert 0.92 < caught.value.certifiable < 0.93
    assert "A recall of 0.9261 is certified in this same attempt" in str(caught.value)
    assert "counts attempts, refused ones included" in str(caught.value)
    assert vars(policy).keys() == before.keys()
    assert all(vars(policy)[name] is value for name, value in before.items())
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert copied.needed == 45


@pytest.mark.parametrize("kind", [AdaCOSClassifier, FullModelClassifier])
def test_the_largest_recall_is_certified_in_the_same_attempt(base, fresh, kind):
    """The bound at the first threshold of the sequence that answers some negative row negative."""
    X, y = few(30)
    policy = kind(COSTS, target_recall=0.95, on_uncertifiable="largest").from_model(base)
    policy.calibrate(X, y, confidence=0.9)
    certificate = policy.certificate_
    predicted = policy.predict(X)
    assert certificate.recall == 0.95
    assert certificate.misses == np.sum(predicted[y == 1] == 0)
    assert certificate.bound == pytest.approx(
        float(lower_bound(30 - certificate.misses, 30, 0.9)), rel=1e-12
    )
    assert np.any(predicted[y == 0] == 0)
    assert not policy.always_positive_
    assert policy.threshold_ == pytest.approx(certificate.threshold)
    # Where the recall asked for can be certified, it is.
    policy.calibrate(*fresh, confidence=0.9)
    assert policy.certificate_.bound >= 0.95


def test_thresholds_begin_where_rows_are_reported_apart():
    thresholds = np.linspace(-3, 3, 61)
    np.testing.assert_array_equal(
        from_first_discriminating(thresholds, lambda t: t > -1.05), thresholds[thresholds > -1.05]
    )
    np.testing.assert_array_equal(
        from_first_discriminating(thresholds, lambda t: False), thresholds
    )
    np.testing.assert_array_equal(from_first_discriminating(thresholds, lambda t: True), thresholds)


def test_one_step_keeps_the_confidence_that_asking_again_loses():
    """A world of ties: the recall falls in steps that lie just below the recalls asked for."""
    rng = np.random.default_rng(7)
    asked_for, confidence, n, draws = (0.95, 0.9, 0.85, 0.8), 0.9, 132, 4000
    truth = dict(enumerate(r - 0.002 for r in asked_for))
    again = one_step = 0
    for _ in range(draws):
        # Policies at different thresholds acquire different covariates and miss different rows.
        misses = {t: int(rng.binomial(n, 1 - r)) for t, r in truth.items()}
        for target in asked_for:
            try:
                proof = certify(misses.__getitem__, list(truth), n, target, confidence)
            except NotCertifiableError as refusal:
                if target == 0.95:
                    one_step += truth[0] < refusal.certifiable
                continue
            wrong = truth[proof.rule] < proof.bounds.item()
            one_step += wrong and target == 0.95
            again += wrong
            break
    allowed = 1 - confidence + 3 * np.sqrt(0.09 / draws)
    assert one_step / draws <= allowed
    assert again / draws > allowed


def test_a_policy_that_separates_no_rows_is_no_success():
    # The model believes in a covariate that means nothing in the calibration rows.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = (y * 6 + rng.normal(size=400))[:, None]
    policy = AdaCOSClassifier(Costs([1.0], false_positive=100), target_recall=0.95).fit(X, y)
    X_new = rng.normal(loc=rng.choice([0, 6], size=(400, 1)))
    with pytest.raises(NotCertifiableError):
        policy.calibrate(X_new, y, confidence=0.9)


def test_answering_positive_for_all_is_a_certificate_where_the_costs_ask_for_it(base, fresh):
    costs = Costs(COSTS.covariates, false_positive=0.1)
    policy = AdaCOSClassifier(costs, target_recall=0.95).from_model(base)
    assert np.all(policy.predict(fresh[0]) == 1)
    policy.calibrate(*fresh, confidence=0.9)
    assert policy.certificate_.misses == 0
    assert not policy.certificate_.always_positive
    assert "every calibration row is answered positive" in str(policy.certificate_)


@pytest.mark.parametrize("kind", POLICIES)
def test_always_positive_on_request(base, fresh, kind, tmp_path):
    policy = kind(COSTS, target_recall=0.95, on_uncertifiable="always_positive").from_model(base)
    policy.calibrate(*few(30), confidence=0.9)
    assert policy.always_positive_
    assert policy.certificate_.always_positive
    result = policy.acquire(fresh[0])
    assert np.all(result.label == 1)
    assert np.all(result.cost == 0)
    assert not result.acquired.any()
    np.testing.assert_allclose(result.expected_cost, 200 * (1 - result.probability))
    assert "could not be certified" in str(policy.certificate_)
    adacos.save(policy, tmp_path / "model")
    assert np.all(adacos.load(tmp_path / "model").predict(fresh[0]) == 1)
    # More rows mend it.
    policy.calibrate(*fresh, confidence=0.9)
    assert not policy.always_positive_
    assert (policy.predict(fresh[0]) == 0).any()


def test_certificate_is_saved_with_the_model(base, fresh, tmp_path):
    policy = AdaCOSClassifier(COSTS, target_recall=0.95).from_model(base)
    policy.calibrate(*fresh, confidence=0.9)
    adacos.save(policy, tmp_path / "model")
    loaded = adacos.load(tmp_path / "model")
    assert loaded.certificate_ == policy.certificate_
    np.testing.assert_array_equal(loaded.predict(fresh[0]), policy.predict(fresh[0]))


def test_certificate_prints_no_more_than_it_promises():
    certificate = RecallCertificate(0.95, 0.95499, 0.9, 85, 1, 0.138173, "exact binomial tests")
    assert str(certificate) == (
        "Sensitivity (recall) at least 95.4% for cases like these, at 90% confidence "
        "(requested: 95%).\n"
        "Tested on 85 calibration positives; 1 missed. Cut-off 0.1382.\n"
        "Method: exact binomial tests.\n"
        "The 90% covers every certification attempt, including refused ones."
    )


def test_a_certificate_says_that_its_bound_is_that_of_the_misses_the_test_allows():
    """The bound of ten misses of 50 is 70.8%; without any miss 95.5% would be proved."""
    certificate = RecallCertificate(0.7, lower_bound(40, 50, 0.9), 0.9, 50, 0, 0.168, "exact tests")
    assert "at least 70.8%" in str(certificate)
    assert "allows 10 misses, and the bound is that of 10: fewer do not raise it" in str(
        certificate
    )
    largest = RecallCertificate(0.99, lower_bound(50, 50, 0.9), 0.9, 50, 0, 0.168, "exact bound")
    assert "allows" not in str(largest)


STATED = Costs(COSTS.covariates, false_positive=200, false_negative=1000)
MATRIX = Costs(COSTS.covariates, misclassification=[[0, 200], [1000, 0]])


@pytest.mark.parametrize(
    ("costs", "parameters", "message"),
    [
        (COSTS, {"target_recall": 0.0}, "target_recall"),
        (COSTS, {"target_recall": 1}, "target_recall"),
        (COSTS, {"target_recall": -0.2}, "target_recall"),
        (COSTS, {"target_recall": float("nan")}, "target_recall"),
        (COSTS, {"target_recall": "95%"}, "target_recall"),
        (STATED, {"target_recall": 0.95}, "false-negative cost"),
        (MATRIX, {"target_recall": 0.95}, "false-negative cost"),
        (COSTS, {"target_recall": 0.95, "recall_confidence": 1.0}, "recall_confidence"),
        (COSTS, {"target_recall": 0.95, "recall_confidence": 0}, "recall_confidence"),
        (COSTS, {"recall_confidence": 0.9}, "needs a target_recall"),
        (
            COSTS,
            {"target_recall": 0.95, "recall_confidence": 0.9, "calibration_fraction": 1.0},
            "calibration_fraction",
        ),
        (COSTS, {"target_recall": 0.95, "on_uncertifiable": "hope"}, "on_uncertifiable"),
    ],
)
def test_bad_parameters(rows, costs, parameters, message):
    policy = AdaCOSClassifier(costs, **parameters)
    with pytest.raises(InvalidInputError, match=message):
        policy.fit(*rows)
    assert not hasattr(policy, "model_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 1}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({}, "confidence"),
        ({"confidence": 0.9, "target_recall": 1.5}, "target_recall"),
    ],
)
def test_bad_arguments_of_calibrate(base, fresh, arguments, message):
    policy = AdaCOSClassifier(COSTS, target_recall=0.95).from_model(base)
    with pytest.raises(InvalidInputError, match=message):
        policy.calibrate(*fresh, **arguments)


def test_bad_rows_for_calibrate(base, fresh):
    X, y = fresh
    policy = AdaCOSClassifier(COSTS, target_recall=0.95).from_model(base)
    with pytest.raises(InvalidInputError, match="no row of class"):
        policy.calibrate(X[y == 0], y[y == 0], confidence=0.9)
    with pytest.raises(InvalidInputError, match="classes must be"):
        policy.calibrate(X, y + 1, confidence=0.9)
    with pytest.raises(InvalidInputError, match="one class for each"):
        policy.calibrate(X, y[:-1], confidence=0.9)
    with pytest.raises(InvalidInputError, match="target_recall"):
        AdaCOSClassifier(STATED).from_model(base).calibrate(X, y, confidence=0.9)
    with pytest.raises(InvalidInputError, match="false-negative cost"):
        AdaCOSClassifier(STATED).from_model(base).calibrate(X, y, target_recall=0.9, confidence=0.9)
    with pytest.raises(InvalidInputError, match="no calibration rows"):
        AdaCOSClassifier(COSTS, target_recall=0.9, recall_confidence=0.9).from_model(base)


# What is reported


def test_metrics_of_a_small_table(base, fresh):
    X, y = fresh[0][:6], np.array([1, 1, 1, 0, 0, 0])
    result = FullModelClassifier(STATED).from_model(base).acquire(X)
    result = type(result)(**{**vars(result), "label": np.array([1, 1, 0, 1, 0, 0])})
    assert operation_cost(result, y, COSTS) == pytest.approx(15 + 200 / 6)
    assert false_discovery_rate(result, y) == pytest.approx(1 / 3)
    expected = binomtest(2, 3).proportion_ci(0.9, method="exact")
    assert recall_interval(result, y, 0.9) == pytest.approx((expected.low, expected.high))
    expected = binomtest(1, 3).proportion_ci(0.95, method="exact")
    assert false_discovery_rate_interval(result, y) == pytest.approx((expected.low, expected.high))
    nobody = type(result)(**{**vars(result), "label": np.zeros(6, dtype=int)})
    assert np.isnan(false_discovery_rate(nobody, y))
    assert false_discovery_rate_interval(nobody, y) == (0, 1)


def test_cost_against_certified_recall(base, fresh, tmp_path):
    policy = AdaCOSClassifier(COSTS, target_recall=0.9).from_model(base)
    before = policy.threshold_
    choices = recall_choices(policy, *fresh, recalls=[0.7, 0.9, 0.999])
    assert policy.threshold_ == before
    assert [choice.certificate.recall for choice in choices] == [0.7, 0.9, 0.999]
    assert choices[0].cost < choices[1].cost < choices[2].cost
    assert choices[2].certificate.always_positive
    assert choices[2].cost == pytest.approx(200 * np.mean(fresh[1] == 0))
    pytest.importorskip("matplotlib")
    plot_recall_choices(choices).savefig(tmp_path / "choices.png")
    assert (tmp_path / "choices.png").stat().st_size > 5000


def test_the_plot_names_the_extra_it_needs(monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *arguments, **keywords):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingExtraError, match=r"\.\[plot\]"):
        plot_recall_choices([])


# Any policy


class SumDecider(ObservedDecider):
    def decide(self, state):
        left = np.where(state.acquired, STOP, np.arange(state.acquired.shape[1]))
        return Decision(compact_left(left), 3 * state.values.sum(axis=1) + 5)


class SumOfAll(BasePolicy):
    """Acquires everything and has an uncalibrated opinion."""

    def __init__(self, costs=None):
        self.costs = costs

    def fit(self, X, y):
        self.begin_fit(X, y)
        return self.finish_fit()

    def make_decider(self, terms):
        return SumDecider(terms)


def test_any_policy_meets_a_target_recall(rows, fresh):
    policy = TargetRecallClassifier(SumOfAll(STATED), target_recall=0.9).fit(*rows)
    assert policy.recall_estimate_ >= 0.9
    assert recall(policy.acquire(fresh[0]), fresh[1]) == pytest.approx(0.9, abs=0.06)
    assert policy.certificate_ is None
    policy.calibrate(*fresh, confidence=0.9)
    result = policy.acquire(fresh[0])
    assert np.sum(result.label[fresh[1] == 1] == 0) == policy.certificate_.misses
    assert policy.certificate_.bound >= 0.9
    np.testing.assert_array_equal(result.label, result.probability >= policy.threshold_)
    clone(policy)


def test_any_policy_can_be_refused(rows, fresh):
    strict = TargetRecallClassifier(SumOfAll(STATED), target_recall=0.999, recall_confidence=0.9)
    with pytest.raises(NotCertifiableError):
        strict.fit(*rows)
    strict.set_params(on_uncertifiable="always_positive").fit(*rows)
    result = strict.acquire(fresh[0])
    assert np.all(result.label == 1)
    assert np.all(result.cost == 0)
    with pytest.raises(InvalidInputError, match="must be a policy"):
        TargetRecallClassifier("greedy").fit(*rows)


def test_wrapped_policy_is_saved_with_its_certificate(rows, fresh, tmp_path):
    policy = TargetRecallClassifier(
        FullModelClassifier(STATED), target_recall=0.9, recall_confidence=0.9
    ).fit(*rows)
    adacos.save(policy, tmp_path / "model")
    loaded = adacos.load(tmp_path / "model")
    assert loaded.certificate_ == policy.certificate_
    np.testing.assert_array_equal(loaded.predict(fresh[0]), policy.predict(fresh[0]))


def test_rows_that_were_trained_on_are_refused() -> None:
    costs = Costs([1.0, 2.0], false_positive=200)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=300) > 0).astype(int)
    own = AdaCOSClassifier(costs, target_recall=0.5, cv=3, strengths="common")
    base = own.fit(X[:200], y[:200])
    stated = AdaCOSClassifier(costs.with_misclassification([[0, 200], [200, 0]]))
    wrapped = TargetRecallClassifier(stated, target_recall=0.5, on_uncertifiable="largest").fit(
        X[:200], y[:200]
    )
    for policy in (base, AdaCOSClassifier(costs, target_recall=0.5).from_model(base), wrapped):
        call = partial(policy.calibrate, target_recall=0.5, confidence=0.5)
        call(X[200:], y[200:])
        with pytest.raises(InvalidInputError, match="trained on"):
            call(X[:200], y[:200])
        with pytest.raises(InvalidInputError, match="trained on"):
            call(X, y)
        call(X[:200], y[:200], allow_training_rows=True)
    with pytest.raises(InvalidInputError, match="200 of 200 rows"):
        base.calibrate(X[:200], y[:200], target_recall=0.5, confidence=0.5)


def test_a_loaded_policy_knows_its_training_rows(tmp_path: Path) -> None:
    costs = Costs([1.0, 2.0], false_positive=200)
    X = np.random.default_rng(5).normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    kind = partial(AdaCOSClassifier, target_recall=0.5, cv=3, strengths="common")
    adacos.save(kind(costs).fit(X, y), tmp_path / "model.adacos")
    with pytest.raises(InvalidInputError, match="trained on"):
        adacos.load(tmp_path / "model.adacos").calibrate(X, y, target_recall=0.5, confidence=0.5)


def test_equal_rows_of_new_samples_are_seldom_refused() -> None:
    """Level 0.001, from few distinct rows to nearly all distinct."""
    rng = np.random.default_rng(6)
    for n_values in (2, 8, 40, 300, 5000):
        refused = 0
        for seed in range(200):
            # Squares make some rows much more frequent than others.
            rows = np.floor(n_values * rng.random((240, 1)) ** 2)
            refused += RowDigests.of(rows[:160], seed).found(rows[160:])[1]
        assert refused <= 2, n_values


def test_digests_are_reproducible_and_show_no_value() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(50, 3))
    rows[0, 0], rows[1, 1] = 0.0, np.nan
    kept = RowDigests.of(rows, seed=0)
    again = RowDigests.of(rows[rng.permutation(50)], seed=0)
    assert kept.salt == again.salt
    np.testing.assert_array_equal(kept.digests, again.digests)
    assert kept.found(rows) == (50, True)
    assert kept.found(np.where(rows == 0, -0.0, rows)) == (50, True)
    for other in (RowDigests.of(rows, seed=1), RowDigests.of(rows[:-1], seed=0)):
        assert not np.isin(kept.digests, other.digests).any()
    assert kept.found(rng.normal(size=(50, 3))) == (0, False)


def test_a_target_recall_leaves_the_costs_as_they_were_given(rows, base):
    """The implied false-negative cost, 1e132 and more, is no cost that anybody stated."""
    X, y = rows
    policy = AdaCOSClassifier(COSTS, target_recall=0.95).from_model(base)
    np.testing.assert_array_equal(policy.cost_table_.matrix, COSTS.matrix)
    assert policy.rule_.matrix[1, 0] == policy.false_negative_cost_
    result = policy.acquire(X)
    paid = result.cost + STATED.matrix[np.asarray(y), result.label]
    assert total_cost_scorer(STATED)(policy, X, y) == pytest.approx(-paid.mean())
    with pytest.raises(InvalidInputError, match="must have a cost for each error"):
        neg_total_cost_scorer(policy, X, y)
    with pytest.raises(InvalidInputError, match="no false_negative"):
        total_cost(result, y, COSTS)
