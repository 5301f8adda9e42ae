"""Are certificates of the recalls of several classes right as often as they say?

Worlds of three classes and of four, of known truth. A certificate that is refused promises nothing
and counts as kept; one is broken if the true recall of any class lies below its bound.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, FullModelClassifier
from adacos.decision import DecisionRule
from adacos.exceptions import NotCertifiableError
from adacos.policies.certificate import certify
from adacos.policies.recall import Targets
from adacos.policies.surcharges import out_of_fold_recalls, surcharged, surcharges_to_try
from tests.studies.recall_problems import kept

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}


def rows(n: int, n_classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One number for each class, which it moves; the classes are not equally frequent."""
    share = np.arange(2, n_classes + 2) / np.arange(2, n_classes + 2).sum()
    y = rng.choice(n_classes, n, p=share)
    return rng.normal(size=(n, n_classes)) + 2.0 * np.eye(n_classes)[y], y


def costs(n_classes: int) -> Costs:
    return Costs(np.arange(1.0, n_classes + 1), misclassification=30 * (1 - np.eye(n_classes)))


@pytest.mark.study
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(
    ("n_classes", "targets"), [(3, {2: 0.85, 0: 0.6}), (4, {0: 0.6, 1: 0.65, 3: 0.7})]
)
@pytest.mark.parametrize("kind", [AdaCOSClassifier, FullModelClassifier])
def test_one_model_and_many_draws(kind: Any, n_classes: int, targets: Any, largest: bool) -> None:
    rng, repetitions = np.random.default_rng(0), 1000
    given = costs(n_classes)
    policy = kind(given, target_recall=targets, **QUICK).fit(*rows(600, n_classes, rng))
    asked = Targets(np.array([*targets]), np.array([*targets.values()]))
    path = surcharges_to_try(policy, asked, partial(out_of_fold_recalls, policy))
    # Calibration rows are drawn from these, so that they are the truth.
    X, y = rows(6_000, n_classes, rng)
    missed = []
    for tried in path:
        policy.finish_fit(DecisionRule(surcharged(given.matrix, asked, tried)))
        missed.append(policy.predict(X) != y)
    pools = [np.array(missed)[:, y == k] for k in asked.classes]
    recalls = np.stack([1 - pool.mean(axis=1) for pool in pools], axis=1)
    # The hardest case: from the middle of the path on, recalls are just too small.
    asked = asked._replace(recalls=recalls[len(path) // 2] + 1e-9)
    n_rows, broken, granted = np.full(len(pools), 200), 0, 0
    number = {id(tried): i for i, tried in enumerate(path)}
    for _ in range(repetitions):
        draws = [pool[:, rng.integers(0, pool.shape[1], 200)].sum(axis=1) for pool in pools]
        counts = np.stack(draws, axis=1)
        try:
            proof = certify(
                lambda tried, counts=counts: counts[number[id(tried)]],
                path,
                n_rows,
                asked.recalls,
                0.9,
                largest=largest,
            )
        except NotCertifiableError:
            continue
        granted += 1
        broken += bool(np.any(recalls[number[id(proof.rule)]] < proof.bounds))
    print(
        f"\n{kind.__name__}, {n_classes} classes, largest={largest}: of {repetitions} attempts "
        f"{granted} granted, {broken} broken; recalls along the path {recalls.round(3).tolist()}"
    )
    assert kept(broken, repetitions, 0.9)


@pytest.mark.study
def test_fit_with_a_confidence_keeps_its_promise() -> None:
    repetitions, broken, refused = 60, 0, 0
    wanted = {2: 0.8, 0: 0.6}
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, 1])
        policy = AdaCOSClassifier(
            costs(3), target_recall=wanted, recall_confidence=0.9, random_state=seed, **QUICK
        )
        try:
            policy.fit(*rows(1200, 3, rng))
        except NotCertifiableError:
            refused += 1
            continue
        X, y = rows(20_000, 3, rng)
        label = policy.predict(X)
        pairs = zip(policy.certificate_.classes, policy.certificate_.bounds, strict=True)
        broken += any((label[y == k] == k).mean() < bound for k, bound in pairs)
    print(f"\n{repetitions} fits, {refused} refused, {broken} broken")
    assert kept(broken, repetitions, 0.9)
