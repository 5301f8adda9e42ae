"""The cost of a policy from rows of which another process chose what to record."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from adacos import AdaCOSClassifier, Costs, ProtocolClassifier, TargetRecallClassifier, load_pima
from adacos.exceptions import InvalidInputError, TableWarning
from adacos.metrics import OffPolicyCost, off_policy_cost, total_costs
from adacos.typing import Floats, Ints

COSTS = Costs([1.0, 3.0, 2.0], false_positive=20, false_negative=60)
# Test b for all but the very lowest of a; the answer by both.
A_THEN_B = "if x0 > -2 and x1 > 1: 1\nelse: 0"


def patients(n: int, seed: int) -> tuple[Floats, Ints]:
    """Three tests of which the class shifts the mean; the third follows the second closely."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.35).astype(np.intp)
    a, b = rng.normal(1.2 * y), rng.normal(1.6 * y)
    return np.column_stack([a, b, b + rng.normal(size=n)]), y


def policy(text: str = A_THEN_B) -> ProtocolClassifier:
    return ProtocolClassifier(COSTS, protocol=text).fit(*patients(500, 1))


def of_answers(asked: tuple[float, float], positive: tuple[float, float]) -> float:
    """Exact cost: what is paid, and how often 1 is answered, each given class 0 and class 1."""
    sick = 0.35 * (asked[1] + 60 * (1 - positive[1]))
    return 0.65 * (asked[0] + 20 * positive[0]) + sick


FURTHER = norm.sf([-2, -2], loc=[0, 1.2])
B_HIGH = norm.sf([1, 1], loc=[0, 1.6])
C_HIGH = norm.sf([1, 1], loc=[0, 1.6], scale=np.sqrt(2))
COST_A_THEN_B = of_answers(tuple(1 + 3 * FURTHER), tuple(FURTHER * B_HIGH))
COST_C = of_answers((2.0, 2.0), tuple(C_HIGH))


def b_for_the_sick(X: Floats, seed: int, least: float = 0.15) -> tuple[Floats, Floats]:
    """Records of a protocol that orders b for the higher half of a, and seldom for others."""
    e = np.ones(X.shape)
    e[:, 1] = least + (0.97 - least) * expit(3 * (X[:, 0] - 0.6))
    drawn = np.random.default_rng(seed).random(len(X)) < e[:, 1]
    records = X.copy()
    records[~drawn, 1] = np.nan
    return records, e


@pytest.mark.parametrize("given", [False, True])
def test_the_cost_on_followed_rows_is_off_and_the_estimates_are_not(given: bool) -> None:
    own = policy()
    X, y = patients(20_000, 3)
    records, e = b_for_the_sick(X, 4)
    true = COST_A_THEN_B
    for method in ("doubly_robust", "weighted"):
        found = off_policy_cost(own, records, y, propensities=e if given else None, method=method)
        assert found.standard_error is not None
        assert abs(found.estimate - true) < 2 * found.standard_error
        # The sick are among the followed more often, and an error about them costs more.
        assert abs(found.followed_cost - true) > max(0.3, 4 * found.standard_error)
        assert found.effective_rows < found.followed_rows < found.rows
        assert found.unsupported_share == 0
        assert not found.unsupported
    direct = off_policy_cost(own, records, y, method="direct")
    assert direct.standard_error is None
    assert direct.interval is None
    assert abs(direct.estimate - true) < 0.25


def coverage(draws: int, given: bool) -> float:
    own, true, held = policy(), COST_A_THEN_B, 0
    for seed in range(draws):
        X, y = patients(1_500, 10_000 + seed)
        records, e = b_for_the_sick(X, 50_000 + seed)
        found = off_policy_cost(own, records, y, propensities=e if given else None)
        assert found.interval is not None
        held += found.interval[0] <= true <= found.interval[1]
    return held / draws


def test_intervals_hold_the_truth() -> None:
    """Of 100 draws 95 ± 7: beyond three standard deviations of the count."""
    assert coverage(100, given=True) >= 0.88


@pytest.mark.study
@pytest.mark.parametrize("given", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(given: bool) -> None:
    found = coverage(500, given)
    print(f"propensities {'given' if given else 'estimated'}: {found:.1%}")
    assert 0.93 <= found <= 0.97


def test_wrong_propensities_are_made_good_by_the_regressions() -> None:
    """The same share for all rows: weights alone are as far off as the followed rows."""
    own = policy()
    X, y = patients(20_000, 3)
    records, e = b_for_the_sick(X, 4)
    e[:, 1] = e[:, 1].mean()
    true = COST_A_THEN_B
    weighted = off_policy_cost(own, records, y, propensities=e, method="weighted").estimate
    both = off_policy_cost(own, records, y, propensities=e)
    assert both.standard_error is not None
    assert abs(weighted - true) > 3 * both.standard_error > abs(both.estimate - true)


def test_a_test_that_is_only_recorded_after_one_that_the_policy_drops() -> None:
    """The third is ordered by the value of the second: that the policy skips it must not matter."""
    own = policy("if x2 > 1: 1\nelse: 0")
    X, y = patients(30_000, 5)
    rng = np.random.default_rng(6)
    records = X.copy()
    second = rng.random(len(X)) < 0.3 + 0.6 * (X[:, 0] > 0.5)
    third = second & (rng.random(len(X)) < 0.2 + 0.7 * expit(2 * (X[:, 1] - 0.5)))
    records[~second, 1], records[~third, 2] = np.nan, np.nan
    found, true = off_policy_cost(own, records, y), COST_C
    assert found.order == ("x0", "x1", "x2")
    assert found.standard_error is not None
    assert abs(found.estimate - true) < 2 * found.standard_error
    assert abs(found.followed_cost - true) > 4 * found.standard_error
    other = off_policy_cost(own, records, y, order=["x2", "x1"])
    assert abs(other.estimate - true) > abs(found.estimate - true)


def test_the_class_may_have_played_a_part() -> None:
    own = policy()
    X, y = patients(20_000, 7)
    records = X.copy()
    seen = np.random.default_rng(8).random(len(X)) < np.where(y == 1, 0.9, 0.3)
    records[~seen, 1] = np.nan
    found, true = off_policy_cost(own, records, y), COST_A_THEN_B
    assert found.standard_error is not None
    assert abs(found.estimate - true) < 2 * found.standard_error
    assert abs(found.followed_cost - true) > 4 * found.standard_error


def mean_budget() -> AdaCOSClassifier:
    return AdaCOSClassifier(COSTS, cv=2, strengths="common", mean_budget=2.5)


def rounds() -> AdaCOSClassifier:
    costs = Costs(
        [1.0, 3.0, 2.0],
        false_positive=20,
        false_negative=60,
        round_cost=0.3,
        panels={"blood": (0.5, ["x1", "x2"])},
    )
    return AdaCOSClassifier(costs, cv=2, strengths="common")


@pytest.mark.parametrize("make", [mean_budget, rounds, lambda: policy()])
def test_complete_rows_cost_what_they_cost(make: Callable[[], Any]) -> None:
    """Every weight is one, and the corrections leave the cost of the row."""
    own = make()
    own = own if hasattr(own, "decider_") else own.fit(*patients(500, 1))
    X, y = patients(400, 9)
    cost = total_costs(own.acquire(X), y, own.costs)
    for method in ("doubly_robust", "weighted"):
        found = off_policy_cost(own, X, y, method=method)
        assert found.estimate == pytest.approx(cost.mean())
        assert found.standard_error == pytest.approx(cost.std(ddof=1) / 20)
        assert found.effective_rows == found.followed_rows == 400


def test_weights_by_hand() -> None:
    """Two kinds of rows, of which b is recorded in known shares."""
    own = policy("if x1 > 1: 1\nelse: 0")
    X = np.tile([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]], (100, 1))
    y = np.tile([1, 1], 100)
    e = np.ones(X.shape)
    e[:, 1] = np.tile([0.5, 0.2], 100)
    X[: 2 * 50 : 2, 1] = np.nan  # 50 of the first kind
    X[1 : 2 * 80 : 2, 1] = np.nan  # 80 of the second
    found = off_policy_cost(own, X, y, propensities=e, method="weighted")
    assert found.estimate == pytest.approx((3.0 + 63.0) / 2)
    assert found.followed_cost == pytest.approx((50 * 3.0 + 20 * 63.0) / 70)
    assert found.effective_rows == pytest.approx(200**2 / (50 * 4 + 20 * 25))


def test_groups_widen_the_interval() -> None:
    own = policy()
    X, y = patients(300, 10)
    records, e = b_for_the_sick(X, 11)
    thrice = (np.repeat(records, 3, axis=0), np.repeat(y, 3))
    e = np.repeat(e, 3, axis=0)
    alone = off_policy_cost(own, *thrice, propensities=e)
    grouped = off_policy_cost(own, *thrice, propensities=e, groups=np.repeat(np.arange(300), 3))
    assert alone.standard_error is not None
    assert grouped.standard_error is not None
    assert 1.5 < grouped.standard_error / alone.standard_error < 2.0


def test_no_support_is_said_and_full_support_is_silent() -> None:
    own = policy()
    X, y = patients(3_000, 12)
    never = X[:, 0] < 0.5
    records = X.copy()
    records[never, 1] = np.nan
    with pytest.warns(TableWarning, match=r"For \d\d\.\d% of the rows or more .*x1 \(") as caught:
        found = off_policy_cost(own, records, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    wanted = float((never & (X[:, 0] > -2)).mean())
    # Next to a sharp limit a smooth propensity sees some support.
    assert 0.75 * wanted < found.unsupported_share < wanted + 0.01
    with pytest.warns(TableWarning, match="describes the other rows only"):
        exact = off_policy_cost(own, records, y, propensities=~np.isnan(records), method="weighted")
    assert exact.unsupported_share == pytest.approx(wanted, abs=1e-12)
    assert exact.unsupported == (("x1", exact.unsupported_share),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        off_policy_cost(own, b_for_the_sick(X, 13)[0], y)
        at_random = X.copy()
        at_random[np.random.default_rng(14).random(X.shape) < 0.4] = np.nan
        off_policy_cost(own, at_random, y)


def test_rows_of_the_policy_itself() -> None:
    """Its own log supports it exactly; estimated propensities of a policy without chance warn."""
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=400)
    own = AdaCOSClassifier(costs, strengths="common").fit(X[::2], y[::2])
    held, true = X[1::2], y[1::2]
    result = own.acquire(held)
    log = held.where(result.acquired)
    found = off_policy_cost(own, log, true, propensities=log.notna())
    assert found.estimate == pytest.approx(total_costs(result, true, costs).mean())
    assert found.effective_rows == len(true)
    with pytest.warns(TableWarning, match=r"pass propensities=X\.notna\(\)"):
        off_policy_cost(own, log, true)


def test_what_cannot_be_known_is_refused() -> None:
    own = policy()
    X, y = patients(300, 15)
    records = X.copy()
    records[:, 1] = np.nan
    records[:, 0] = np.maximum(X[:, 0], 0)
    with pytest.raises(InvalidInputError, match="Most often missing: x1"):
        off_policy_cost(own, records, y)
    recalled = TargetRecallClassifier(
        AdaCOSClassifier(Costs([1.0, 3.0, 2.0], false_positive=20), cv=2, strengths="common"),
        target_recall=0.9,
    ).fit(*patients(500, 1))
    with pytest.raises(InvalidInputError, match="a cost for each error"):
        off_policy_cost(recalled, X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "double"}, "doubly_robust"),
        ({"order": ["x0", "x9"]}, "x9"),
        ({"order": ["x0"]}, "Add x1"),
        ({"propensities": np.ones((3, 3))}, "propensities"),
        ({"propensities": np.full((300, 3), 1.5)}, "no probabilities"),
        ({"propensities": np.zeros((300, 3))}, "which is recorded"),
        ({"confidence": 95}, "confidence"),
        ({"groups": [1, 2]}, "groups"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], message: str) -> None:
    X, y = patients(300, 16)
    records, _ = b_for_the_sick(X, 17)
    with pytest.raises(InvalidInputError, match=message):
        off_policy_cost(policy(), records, y, **options)


def test_rows_without_a_class_are_refused() -> None:
    X, y = patients(300, 16)
    unknown = np.where(np.arange(300) < 5, np.nan, y)
    with pytest.raises(InvalidInputError, match="must hold one of the classes"):
        off_policy_cost(policy(), X, unknown)


def test_what_is_printed() -> None:
    X, y = patients(300, 18)
    found = off_policy_cost(policy(), b_for_the_sick(X, 19)[0], y)
    assert isinstance(found, OffPolicyCost)
    assert "per row (doubly_robust)" in str(found)
    assert "Without support: 0.0% of the rows." in str(found)
