"""Are certificates of recall right as often as they say? Repeated draws in worlds of known truth.

The guarantee is conditional on the fitted model, so most repetitions keep one model and draw new
calibration rows; some repeat everything. The true recall of a certified policy comes from a large
sample of its own. A certificate that is refused promises nothing and counts as kept.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from adacos import AdaCOSClassifier, FullModelClassifier
from adacos.engine import run
from adacos.exceptions import NotCertifiableError
from adacos.policies.certificate import certify
from adacos.policies.recall import threshold_rule, threshold_sequence
from tests.studies.recall_problems import PROBLEMS, Problem, kept

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")


def fitted(problem: Problem, seed: int, kind=AdaCOSClassifier, **parameters):
    X, y = problem.rows(np.random.default_rng(seed), problem.n_train)
    return kind(problem.costs, target_recall=problem.recall, **parameters).fit(X, y), X, y


def true_recall(policy, problem: Problem, rng, n: int) -> float:
    return float(policy.predict(problem.positives(rng, n)).mean())


@pytest.mark.parametrize("name", PROBLEMS)
def test_certificates_hold_for_one_model_and_many_calibration_draws(name):
    problem, repetitions = PROBLEMS[name], 200
    n = min(problem.n_positives, 150)
    policy, *_ = fitted(problem, 0)
    model, rng = policy.model_, np.random.default_rng(1)
    thresholds = threshold_sequence(model.out_of_fold_log_odds[model.y == 1])
    pool = problem.positives(rng, repetitions * n + 20_000)
    least = model.log_odds_by_set(pool).min(axis=1)
    missed = np.zeros((len(thresholds), len(pool)), dtype=bool)
    for k, threshold in enumerate(thresholds):
        danger = np.flatnonzero(least < threshold + 1e-6)
        if k > 0 and missed[k - 1].mean() > 4 * (1 - problem.recall):
            missed[k:] = True  # hopeless from here on
            break
        bolder = policy.decider_.with_rule(threshold_rule(policy.cost_table_.matrix, threshold))
        missed[k, danger] = run(bolder, pool[danger]).label != 1
    recall = 1 - missed[:, repetitions * n :].mean(axis=1)
    broken = 0
    for draw in np.split(missed[:, : repetitions * n], repetitions, axis=1):
        counts = dict(zip(thresholds, draw.sum(axis=1), strict=True))
        try:
            proof = certify(counts.__getitem__, thresholds, n, problem.recall, problem.confidence)
        except NotCertifiableError:
            continue
        broken += recall[thresholds == proof.rule].item() < proof.bounds.item()
    assert kept(broken, repetitions, problem.confidence), broken


# So few rows for so many covariates that the model fits its training rows too well.
OVERFITTED = Problem(
    PROBLEMS["few positives"].log_odds, 0.0, n_train=120, n_positives=60, n_noise=6
)


def broken_promises(problem: Problem, repetitions: int, *, on_training_rows: bool) -> int:
    broken = 0
    for seed in range(repetitions):
        policy, X, y = fitted(problem, seed, FullModelClassifier, strengths="common")
        rng = np.random.default_rng([seed, 1])
        if not on_training_rows:
            X, y = problem.calibration(problem.positives(rng, int(y.sum())), rng)
        try:
            policy.calibrate(X, y, confidence=problem.confidence, allow_training_rows=True)
        except NotCertifiableError:
            continue
        broken += true_recall(policy, problem, rng, 20_000) < policy.certificate_.bound
    return broken


def test_calibration_on_training_rows_is_caught():
    assert not kept(broken_promises(OVERFITTED, 20, on_training_rows=True), 20, 0.9)


@pytest.mark.study
def test_only_calibration_on_training_rows_is_caught():
    broken = broken_promises(OVERFITTED, 200, on_training_rows=True)
    honest = broken_promises(OVERFITTED, 200, on_training_rows=False)
    print(f"\nof 200 promises broken: {broken} on training rows, {honest} on fresh rows")
    assert not kept(broken, 200, 0.9)
    assert kept(honest, 200, 0.9)


@pytest.mark.study
@pytest.mark.parametrize("name", PROBLEMS)
def test_calibrate_keeps_its_promise(name):
    problem, repetitions = PROBLEMS[name], 600
    policy, *_ = fitted(problem, 0)
    rng = np.random.default_rng(2)
    truth = problem.positives(rng, 100_000)

    @cache
    def recall_at(threshold: float) -> float:
        return float(policy.predict(truth).mean())

    pool = problem.positives(rng, repetitions * problem.n_positives)
    bounds, recalls = [], []
    for positives in np.split(pool, repetitions):
        try:
            policy.calibrate(*problem.calibration(positives, rng), confidence=problem.confidence)
        except NotCertifiableError:
            continue
        bounds.append(policy.certificate_.bound)
        recalls.append(recall_at(policy.threshold_))
    broken = int(np.sum(np.array(recalls) < np.array(bounds)))
    print(
        f"\n{name}: {repetitions} repetitions, {repetitions - len(bounds)} refused, {broken} broken"
        f" ({broken / repetitions:.3f}), mean bound {np.mean(bounds):.4f},"
        f" mean true recall {np.mean(recalls):.4f}"
    )
    assert kept(broken, repetitions, problem.confidence)
    if problem.n_positives >= 500:
        assert len(bounds) >= 0.9 * repetitions
        assert abs(np.mean(recalls) - np.mean(bounds)) <= 0.03


@pytest.mark.study
@pytest.mark.parametrize("name", PROBLEMS)
def test_fit_with_a_confidence_keeps_its_promise(name):
    problem, repetitions, broken, refused = PROBLEMS[name], 60, 0, 0
    n_rows = int(2.2 * problem.n_positives / problem.positives_share())
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, 3])
        X, y = problem.rows(rng, n_rows)
        policy = AdaCOSClassifier(
            problem.costs,
            target_recall=problem.recall,
            recall_confidence=problem.confidence,
            random_state=seed,
        )
        try:
            policy.fit(X, y)
        except NotCertifiableError:
            refused += 1
            continue
        broken += true_recall(policy, problem, rng, 50_000) < policy.certificate_.bound
    print(f"\n{name}: {repetitions} fits of {n_rows} rows, {refused} refused, {broken} broken")
    assert kept(broken, repetitions, problem.confidence)
