"""Decisions in place of labels together with what else a policy can do: nothing gets in the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    PlanningClassifier,
)
from adacos.models.plans import tabulate
from adacos.rivals import OptimalPolicyClassifier
from tests.decision_cases import (
    DECISIONS,
    NAMES,
    PRICES,
    QUICK,
    REFER,
    SQUARE,
    by_enumeration,
    rows,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CELLS = np.array(list(np.ndindex(2, 3, 2, 2)))
POLICIES = {
    "AdaCOS": AdaCOSClassifier(**QUICK),
    "COS": COSClassifier(**QUICK),
    "Branching": BranchingClassifier(**QUICK, max_depth=1),
    "Planning": PlanningClassifier(cv=3),
}
NO_ROUNDS = ("Branching", "Planning")
# What comes on top: parameters of the policy, of its costs, and what is done to the rows and after.
ON_TOP: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "budget": ({"budget": 5.0}, {}),
    "mean budget": ({"mean_budget": 4.0}, {}),
    "monotone": ({"monotonic_cst": [1, 1, 1]}, {}),
    "rounds": ({}, {"round_cost": 3.0}),
    "panel": ({}, {"panels": {"blood": (3.0, ["glucose", "scan"])}}),
    "missing": ({}, {}),
    "recalibrated": ({}, {}),
    "restricted": ({}, {}),
}


def make(kind: str, extra: str, costs: dict[str, Any], n_classes: int) -> Any:
    """A fitted policy with something on top; None where it takes no such thing."""
    policy, (own, priced) = POLICIES[kind], ON_TOP[extra]
    parameters = policy.get_params(deep=False)
    if not own.keys() <= parameters.keys():
        return None
    X, y = table(200, n_classes, extra)
    if (extra == "monotone" and n_classes > 2) or (extra == "rounds" and kind in NO_ROUNDS):
        return None
    policy = type(policy)(**{**parameters, **own, "costs": Costs(PRICES, **costs, **priced)})
    policy.fit(X, y)
    if extra == "recalibrated":
        shares = [0.9, 0.1] if n_classes == 2 else [0.7, 0.2, 0.1]
        return policy.recalibrate(prevalence=dict(enumerate(shares)))
    return policy.restrict(never=["glucose"], must=["age"]) if extra == "restricted" else policy


def table(n: int, n_classes: int, extra: str, seed: int = 0) -> tuple[Any, Any]:
    pandas = pytest.importorskip("pandas")
    X, y = rows(n, n_classes, seed)
    if extra == "missing":
        X[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
    return pandas.DataFrame(X, columns=NAMES), y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("extra", ON_TOP)
@pytest.mark.parametrize("kind", POLICIES)
def test_a_decision_that_never_pays_changes_no_bit(kind: str, extra: str, n_classes: int) -> None:
    square = np.array(SQUARE) if n_classes == 2 else 300 * (1 - np.eye(3))
    names = [*(f"answer {k}" for k in range(n_classes)), "refer"]
    never = np.full((n_classes, 1), square.max() + 1)
    wider = {"misclassification": np.hstack([square, never]), "decisions": names}
    own = make(kind, extra, wider, n_classes)
    if own is None:
        pytest.skip("does not take it")
    plain = make(kind, extra, {"misclassification": square}, n_classes)
    new, _ = table(120, n_classes, extra, seed=1)
    found, expected = own.acquire(new), plain.acquire(new)
    assert found.label.tolist() == [f"answer {k}" for k in expected.label]
    for field in ("probability", "acquired", "order", "cost", "stage", "expected_cost"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("extra", [name for name in ON_TOP if name != "restricted"])
@pytest.mark.parametrize("kind", POLICIES)
def test_a_decision_at_no_cost_is_always_taken(kind: str, extra: str, n_classes: int) -> None:
    square = 100 * (1 - np.eye(n_classes)) + 5
    costs = {
        "misclassification": np.column_stack([square, np.zeros(n_classes)]),
        "decisions": [*(f"answer {k}" for k in range(n_classes)), "refer"],
    }
    policy = make(kind, extra, costs, n_classes)
    if policy is None:
        pytest.skip("does not take it")
    result = policy.acquire(table(80, n_classes, extra, seed=1)[0])
    assert set(result.label) == {"refer"}
    assert result.cost.max() == 0
    assert (result.expected_cost == 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_recalibrated_plan_is_the_exact_one_of_the_other_shares(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=900)
    X = np.column_stack([(rng.random(900) < 0.2 + 0.3 * (y == k)) * 1.0 for k in range(n_classes)])
    matrix = 60 * (1 - np.eye(n_classes))
    matrix = np.column_stack([matrix, np.full(n_classes, 14.0)])
    names = [f"d{k}" for k in range(n_classes + 1)]
    prices = [1.5, 1.0, 2.0][:n_classes]
    policy = PlanningClassifier(Costs(prices, misclassification=matrix, decisions=names), cv=3).fit(
        X, y
    )
    after = np.array([0.75, 0.25] if n_classes == 2 else [0.7, 0.2, 0.1])
    moved = policy.recalibrate(prevalence=dict(enumerate(after.tolist())))
    shares = policy.joint_.reshape(n_classes, -1).sum(axis=1)
    factor = (after / shares).reshape(-1, *[1] * (policy.joint_.ndim - 1))
    joint = policy.joint_ * factor
    table = tabulate(joint, policy._costs_of(policy.planned_), policy.caution_)
    np.testing.assert_array_equal(moved.table_.action, table.action)
    exact = by_enumeration(joint, np.array(prices)[policy.planned_], matrix)
    np.testing.assert_allclose(tabulate(joint, policy._costs_of(policy.planned_)).value[-1], exact)


def test_local_outcomes_move_probabilities_and_decisions_follow() -> None:
    """By hand: with everything known the cheapest decision at the shifted probability."""
    costs = Costs(PRICES, misclassification=REFER, decisions=DECISIONS)
    X, y = table(400, 2, "monotone")
    policy = AdaCOSClassifier(costs, monotonic_cst=[1, 1, 1], **QUICK).fit(X, y)
    new, true = table(300, 2, "monotone", seed=5)
    kept = (true == 0) | (np.arange(300) % 6 == 0)
    for moved in (
        policy.recalibrate(prevalence=0.1),
        policy.recalibrate(new[kept], true[kept]),
    ):
        change = moved.recalibration_
        before = policy.predict_proba(new, known=NAMES)[:, 1]
        base = logit(change.before[1])
        u = base + change.shift[0] + change.slope * (logit(before) - base)
        result = moved.acquire(new, known=np.ones(new.shape, dtype=bool))
        np.testing.assert_allclose(result.probability, expit(u), atol=1e-9)
        risk = np.column_stack([1 - expit(u), expit(u)]) @ np.array(REFER)
        assert [DECISIONS[k] for k in risk.argmin(axis=1)] == result.label.tolist()
        np.testing.assert_allclose(result.expected_cost, risk.min(axis=1), rtol=1e-9)
        # Shapes still only rise, and with them the decision from discharge to treat.
        grid = new.iloc[[0] * 60].assign(scan=np.linspace(-3, 5, 60))
        labels = moved.acquire(grid, known=np.ones(grid.shape, dtype=bool)).label
        steps = [DECISIONS.index(one) for one in labels]
        assert steps == sorted(steps)


@pytest.mark.parametrize("seed", range(3))
def test_what_nobody_is_asked_is_planned_without(seed: int) -> None:
    """The exact policy without a covariate costs what enumeration of the others says."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(24, 0.4)).reshape(2, 3, 2, 2)
    costs = Costs([1.0, 2.0, 3.0], misclassification=REFER, decisions=DECISIONS)
    X = CELLS[:, 1:].astype(float)
    policy = OptimalPolicyClassifier(costs, joint=joint).fit(X, CELLS[:, 0])

    def realised(own: Any) -> float:
        result = own.acquire(X)
        label = np.array([DECISIONS.index(one) for one in result.label])
        total = joint.ravel() @ (result.cost + np.array(REFER)[CELLS[:, 0], label])
        return float(total)

    for k, name in enumerate(policy.encoder_.names):
        others = np.delete([1.0, 2.0, 3.0], k)
        exact = by_enumeration(joint.sum(axis=k + 1), others, np.array(REFER))
        assert realised(policy.restrict(never=[name])) == pytest.approx(exact, rel=1e-9)
