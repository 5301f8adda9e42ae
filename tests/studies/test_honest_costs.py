"""What a policy is said to cost, against what it costs on new rows: simulated, truth known."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import AdaCOSClassifier, COSClassifier, Costs
from adacos.metrics import total_costs
from adacos.policies.nested import nested_cost
from tests.policies.tables import noisy_rows

COSTS = Costs([0.3] * 12, false_positive=10, false_negative=20)


@pytest.mark.study
@pytest.mark.parametrize("kind", [COSClassifier, AdaCOSClassifier])
@pytest.mark.parametrize("sequence", ["group_lasso", "forward"])
def test_the_plain_estimate_flatters_and_the_nested_one_does_not(kind, sequence):
    """200 rows, ten covariates of noise: the least leave-out cost over the sets is a winner's."""
    plain, nested, truth = [], [], []
    settings = {"sequence": sequence, "strengths": "common", "cv": 5}
    for seed in range(20):
        rng = np.random.default_rng([seed, 11])
        X, y = noisy_rows(rng, 200)
        policy = kind(COSTS, **settings).fit(X, y)
        plain.append(policy.expected_cost_by_set_.min())
        nested.append(nested_cost(kind(COSTS, **settings), X, y).mean)
        fresh, labels = noisy_rows(rng, 10_000)
        truth.append(total_costs(policy.acquire(fresh), labels, COSTS).mean())
    difference = np.array(nested) - np.array(truth)
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    print(
        f"\n{kind.__name__} {sequence}: plain {np.mean(plain):.3f}, nested {np.mean(nested):.3f}, "
        f"true {np.mean(truth):.3f}; nested - true {difference.mean():.3f} (se {error:.3f})"
    )
    # Models of four fifths of the rows are a little worse: pessimism of some per cent is allowed.
    assert -2 * error <= difference.mean() <= 2 * error + 0.04 * np.mean(truth)
    if kind is COSClassifier:
        assert np.mean(plain) < 0.97 * np.mean(truth)
