"""The recall certificate of a policy that branches, by simulation with known truth."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from adacos import BranchingClassifier, Costs
from adacos.exceptions import NotCertifiableError
from tests.policies.branching_table import PRICES, table

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

RECALL, CONFIDENCE = 0.9, 0.9
REPEATS = 200


def rows(seeds: range) -> tuple[pd.DataFrame, np.ndarray]:
    parts = [table(seed) for seed in seeds]
    X = pd.concat([X for X, _ in parts], ignore_index=True)
    return X, np.concatenate([y for _, y in parts])


@pytest.mark.study
def test_false_certificates_are_as_rare_as_promised() -> None:
    """One policy, many calibration tables; its true recall is counted on 30,000 fresh rows."""
    X, y = rows(range(100, 102))
    costs = Costs(PRICES, false_positive=60)
    fitted = BranchingClassifier(costs, target_recall=RECALL, cv=3, strengths="common").fit(X, y)
    assert not fitted.in_one_order
    fresh, truth = rows(range(1000, 1050))
    positives = fresh[truth == 1]
    true_recall: dict[float, float] = {}
    false = issued = 0
    for repeat in range(REPEATS):
        policy = copy.copy(fitted)
        try:
            policy.calibrate(*table(5000 + repeat), confidence=CONFIDENCE)
        except NotCertifiableError:
            continue
        issued += 1
        if policy.threshold_ not in true_recall:
            true_recall[policy.threshold_] = float(np.mean(policy.predict(positives) == 1))
        false += true_recall[policy.threshold_] < RECALL
    print(f"{false} false of {issued} certificates in {REPEATS} attempts")
    assert issued > REPEATS / 2
    # Beyond the nominal share only by what chance explains in one study of a hundred.
    assert false <= binom.ppf(0.99, REPEATS, 1 - CONFIDENCE)
