"""A category never seen in training is acquired, paid for, and says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from adacos import AdaCOSClassifier, BranchingClassifier, Costs, FullModelClassifier
from tests.policy_cases import Case, cases
from tests.policy_checks import (
    check_consultation,
    check_no_peeking,
    check_result,
    same,
    with_missing,
)

N_ROWS = 240
COSTS = Costs({"town": 1.0, "dose": 1.0, "age": 2.0}, false_positive=60, false_negative=90)


def table(n_classes: int = 2, seed: int = 0, n_rows: int = N_ROWS) -> tuple[pd.DataFrame, Any]:
    """A word that says nearly everything, rarely, and two numbers."""
    rng = np.random.default_rng(seed)
    town = rng.choice(3, size=n_rows, p=[0.7, 0.2, 0.1])
    dose = rng.normal(size=n_rows)
    y = (rng.random(n_rows) < np.array([0.05, 0.5, 0.95])[town]).astype(int)
    if n_classes == 3:
        y += (y == 1) & (dose > 0)
    X = pd.DataFrame(
        {"town": np.array(["north", "south", "west"])[town], "dose": dose, "age": rng.normal(y)}
    )
    return X, y


def costs_of(n_classes: int) -> Costs:
    """The costs of a table."""
    if n_classes == 2:
        return COSTS
    return Costs(COSTS.covariates, misclassification=60.0 * (1 - np.eye(n_classes)))


def strange(X: pd.DataFrame, rows: slice = slice(None)) -> pd.DataFrame:
    """The table with a town that nobody has seen, in some rows."""
    X = X.copy()
    X.iloc[rows, 0] = "atlantis"
    return X


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("case", cases(variants=False))
def test_a_category_never_seen_leaves_the_probability_where_it_was(
    case: Case, n_classes: int
) -> None:
    if n_classes > 2 and not case.policy.load().takes_many_classes:
        pytest.skip("takes two classes")
    X, y = table(n_classes)
    policy = case.make(costs_of(n_classes)).fit(X, y)
    odd = strange(X)
    if case.policy.name == "costed":
        # An estimator says nothing of part of its covariates: all of them are known.
        probability = policy.predict_proba(odd.assign(dose=np.nan, age=np.nan))
        assert np.ptp(probability, axis=0).max() == 0
        return
    if case.policy.name == "protocol":
        # It says itself where a row goes of which a value is missing.
        missing = policy.acquire(odd.assign(town=None))
        np.testing.assert_array_equal(policy.acquire(odd).probability, missing.probability)
        return
    before = policy.predict_proba(odd, known=[])
    after = policy.predict_proba(odd, known=["town"])
    seen = policy.predict_proba(X, known=["town"])
    np.testing.assert_allclose(after, before, atol=0.03)
    # A town that was seen says much to whom it says anything at all.
    assert np.ptp(seen[:, 1]) == 0 or np.ptp(seen[:, 1]) > 0.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("case", cases())
def test_promises_where_some_rows_have_a_category_never_seen(case: Case, n_classes: int) -> None:
    """Costs add up, nothing is peeked at, and a consultation and `next` decide as `acquire`."""
    if n_classes > 2 and not case.policy.load().takes_many_classes:
        pytest.skip("takes two classes")
    X, y = table(n_classes)
    policy = case.make(costs_of(n_classes)).fit(X, y)
    odd = strange(X, slice(0, 8))
    gaps = np.zeros(X.shape, dtype=bool)
    gaps[4:12, 2] = True
    odd = with_missing(odd, gaps).head(40)
    result = policy.acquire(odd)
    check_result(policy, odd, result)
    check_no_peeking(policy, odd, rounds=1)
    check_consultation(policy, odd.head(12))
    # Rows next to a row with such a category are decided about as they were.
    plain = with_missing(X, gaps).head(40)
    same(policy.acquire(plain).rows(slice(8, None)), result.rows(slice(8, None)), 1e-12)


def test_what_is_not_known_is_integrated_by_the_shares_of_the_categories() -> None:
    """Where the word is independent of the number, the mean probability over the categories."""
    X, y = table(n_rows=3000, seed=5)
    X = X[["town", "dose"]]
    policy = FullModelClassifier(Costs([0.0, 0.0])).fit(X, y)
    odd = strange(X.head(50))
    found = policy.predict_proba(odd)[:, 1]
    shares = X["town"].value_counts(normalize=True)
    expected = sum(
        share * policy.predict_proba(odd.assign(town=town))[:, 1] for town, share in shares.items()
    )
    average = sum(
        share * logit(policy.predict_proba(odd.assign(town=town))[:, 1])
        for town, share in shares.items()
    )
    # The log-odds are taken as normal, and have three values: some of the way is left.
    error = np.abs(found - expected)
    assert error.max() < 0.05
    assert error.mean() < 0.4 * np.abs(expit(average) - expected).mean()


@pytest.mark.parametrize("make", [AdaCOSClassifier, BranchingClassifier])
def test_the_panel_of_a_category_never_seen_is_open(make: Any) -> None:
    """It was paid for: what comes in its panel afterwards costs less, in plans too."""
    X, y = table(seed=3, n_rows=400)
    costs = Costs(
        {"town": 3.0, "age": 3.5},
        false_positive=60,
        false_negative=90,
        panels={"visit": (2.5, ["town", "age"])},
    )
    policy = make(costs, cv=2, strengths="common").fit(X[["town", "age"]], y)
    step = policy.consultation().observe(town="atlantis").next()
    assert [warning.kind for warning in step.warnings] == ["unknown_category"]
    plan = step.explanation.best_plan
    assert plan is not None
    assert plan.covariates == ("age",)
    assert plan.cost == pytest.approx(1.0)
