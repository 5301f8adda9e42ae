"""Uncertain costs: the policy at other costs is that of another fit, and what knowing them is worth
is that of counting every case."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    PlanningClassifier,
    TargetRecallClassifier,
    covariate_worth,
    sensitivity,
    trade_off,
)
from adacos.datasets import make_discrete_problem
from adacos.engine import run
from adacos.exceptions import InvalidInputError, TrainingRowsWarning
from adacos.metrics.evaluation import held_out_rows
from adacos.policies.information import Information, of_all, of_one
from adacos.policies.recosting import OWN, alternatives
from adacos.policies.sensitivity import CostRange
from adacos.policies.uncertain_costs import at_amounts, uncertain_costs
from adacos.rivals import OptimalPolicyClassifier
from tests.policies.budget_table import COSTS, QUICK, draw_rows

POLICIES: dict[str, Any] = {
    "AdaCOS": AdaCOSClassifier,
    "COS": COSClassifier,
    "full": FullModelClassifier,
}


@dataclass(frozen=True)
class TwoPoints:
    """Either of two amounts."""

    low: float
    high: float
    share: float

    def mean(self) -> float:
        return (1 - self.share) * self.low + self.share * self.high

    def ppf(self, shares: Any) -> Any:
        return np.where(np.asarray(shares) <= 1 - self.share, self.low, self.high)

    def support(self) -> tuple[float, float]:
        return self.low, self.high


@pytest.fixture(scope="module")
def policy() -> Any:
    return AdaCOSClassifier(COSTS, **QUICK).fit(*draw_rows(600, 0))


def at(policy: Any, **amounts: float) -> Any:
    """The decider at other costs."""
    costs = uncertain_costs(
        {name: (0.5 * a, 2 * a) for name, a in amounts.items()},
        policy.cost_table_,
        [(["0", "1"], ["0", "1"])],
    )
    return policy.decider_.with_costs(
        at_amounts(policy.cost_table_, costs, np.array(list(amounts.values())))
    )


@pytest.mark.parametrize("kind", POLICIES)
def test_other_error_costs_decide_as_another_fit(kind: str) -> None:
    X, y = draw_rows(600, 0)
    new = draw_rows(400, 1)[0]
    policy = POLICIES[kind](COSTS, **QUICK).fit(X, y)
    other = Costs([1.0, 2.0, 3.0, 4.0], false_positive=70, false_negative=60)
    again = POLICIES[kind](other, **QUICK).fit(X, y).acquire(new)
    found = run(at(policy, false_positive=70, false_negative=60), policy._encode(new))
    for name in ("order", "label", "cost", "expected_cost"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    fitted = POLICIES[kind](
        Costs([1.0, 2.5, 3.0, 4.0], false_positive=50, false_negative=80), **QUICK
    ).fit(X, y)
    assert fitted.sets_ == policy.sets_, "the order must be the same for the comparison"
    found = run(at(policy, x1=2.5), policy._encode(new))
    np.testing.assert_array_equal(found.order, fitted.acquire(new).order)


def ends(cost: CostRange, which: str) -> list[tuple[float, int]]:
    """The ends of a range that were found, with the direction out of it."""
    low, high = getattr(cost, which)
    return [(end, side) for end, side in ((low, -1), (high, 1)) if end is not None]


def test_ends_are_those_of_refits() -> None:
    """Just inside a range a fit at that cost asks as before, just outside it does not."""
    (X, y), (new, true) = draw_rows(500, 0), draw_rows(60, 1)
    policy = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    stated, tried = policy.acquire(new).order, 0
    for cost in sensitivity(policy, new, true, draws=0, grid=0).costs:
        for end, side in ends(cost, "questions"):
            for sign in (-1, 1):
                amount = end + sign * side * 1.01e-6 * cost.stated
                prices, errors = [1.0, 2.0, 3.0, 4.0], {"false_positive": 50, "false_negative": 80}
                if cost.name in errors:
                    errors[cost.name] = amount
                else:
                    prices[int(cost.name[1:])] = amount
                again = AdaCOSClassifier(Costs(prices, **errors), **QUICK).fit(X, y)
                assert again.sets_ == policy.sets_
                assert np.array_equal(again.acquire(new).order, stated) == (sign < 0)
                tried += 1
    assert tried >= 8


@pytest.mark.parametrize(
    ("kind", "missing"),
    [(AdaCOSClassifier, False), (AdaCOSClassifier, True), (COSClassifier, False)],
)
def test_within_its_range_a_cost_changes_no_question(kind: Any, missing: bool) -> None:
    (X, y), (new, true) = draw_rows(500, 0), draw_rows(60, 1)
    if missing:
        new[::7, 2] = np.nan
    policy = kind(COSTS, **QUICK).fit(X, y)
    names = policy.encoder_.names
    found = sensitivity(policy, new, true, draws=0, grid=0)
    encoded, broken = policy._encode(new), 0
    stated = run(policy.decider_, encoded)
    for cost in found.costs:
        given = {cost.name: (0.1, 1000)}
        (own,) = uncertain_costs(given, policy.cost_table_, [(["0", "1"], ["0", "1"])])

        def asked(amount: float, own: Any = own) -> Any:
            table = at_amounts(policy.cost_table_, (own,), np.array([amount]))
            return run(policy.decider_.with_costs(table), encoded)

        low, high = (
            cost.low if cost.questions[0] is None else cost.questions[0],
            cost.high if cost.questions[1] is None else cost.questions[1],
        )
        # The set of COS can change and change back between two error costs.
        jumps = kind is COSClassifier and not isinstance(own.place, int)
        for amount in () if jumps else np.linspace(low, high, 7):
            np.testing.assert_array_equal(asked(amount).order, stated.order)
        for end, side in ends(cost, "questions"):
            broken += 1
            beyond = asked(end + side * 1.01e-6 * cost.stated)
            assert not np.array_equal(beyond.order, stated.order), cost
        for end, side in ends(cost, "answers"):
            inside, beyond = (asked(end + s * 2e-6 * cost.stated) for s in (-side, side))
            np.testing.assert_array_equal(inside.label, stated.label)
            changed = (beyond.label != stated.label) | (beyond.order != stated.order).any(axis=1)
            assert changed.any(), cost
    assert broken >= 3
    assert set(names) >= {cost.name for cost in found.costs} - {"false_positive", "false_negative"}


def test_break_points_of_answers_are_those_of_the_probabilities() -> None:
    (X, y), (new, true) = draw_rows(500, 0), draw_rows(100, 1)
    policy = FullModelClassifier(COSTS, **QUICK).fit(X, y)
    found = sensitivity(policy, new, true, draws=0, grid=0)
    (missed,) = [cost for cost in found.costs if cost.name == "false_negative"]
    assert missed.questions == (None, None)
    p = policy.predict_proba(new)[:, 1]
    # Positive where p c10 >= (1 - p) c01.
    turns = 50 * (1 - p) / p
    low, high = missed.answers
    assert low == pytest.approx(turns[turns <= 80].max(), rel=1e-9)
    assert high == pytest.approx(turns[turns > 80].min(), rel=1e-9)


@pytest.fixture(scope="module")
def discrete() -> tuple[Any, Any, Any, Any]:
    """A problem with a known optimum, rows of it, and the costs."""
    problem = make_discrete_problem(3, seed=3)
    X, y = problem.sample(3000, seed=1)
    prices = [2.0, 3.0, 4.0]
    costs = Costs(prices, false_positive=40, false_negative=60)
    return problem, X, y, costs


UNCERTAIN = {
    "false_negative": TwoPoints(20, 140, 0.4),
    "x1": TwoPoints(1.0, 12.0, 0.5),
}


def enumerated(discrete: Any, known: tuple[str, ...]) -> tuple[float, float]:
    """What knowing some costs is worth, by every case and a fit for each: on rows, and exactly."""
    problem, X, y, _ = discrete
    cases = []
    for choices in product((False, True), repeat=2):
        weight = np.prod(
            [d.share if high else 1 - d.share
             for d, high in zip(UNCERTAIN.values(), choices, strict=True)]
        )  # fmt: skip
        amounts = {
            name: d.high if high else d.low
            for (name, d), high in zip(UNCERTAIN.items(), choices, strict=True)
        }
        cases.append((weight, amounts))
    means = {name: d.mean() for name, d in UNCERTAIN.items()}

    def acts(amounts: dict[str, float]) -> tuple[list[Any], float]:
        costs = Costs(
            [2.0, amounts["x1"], 4.0], false_positive=40, false_negative=amounts["false_negative"]
        )
        policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
        result = policy.acquire(X)
        no = np.zeros_like(result.acquired)
        return [(result.acquired, result.label), (no, np.ones(len(y), int)),
                (no, np.zeros(len(y), int))], policy.expected_cost_  # fmt: skip

    def cost(act: Any, amounts: dict[str, float]) -> float:
        acquired, label = act
        paid = acquired @ np.array([2.0, amounts["x1"], 4.0])
        missed = amounts["false_negative"] * ((y == 1) & (label == 0))
        return float((paid + missed + 40 * ((y == 0) & (label == 1))).mean())

    present, optimum = acts(means)
    now = min(sum(w * cost(act, a) for w, a in cases) for act in present)
    then, exact = 0.0, 0.0
    for weight, amounts in cases:
        informed = {name: amounts[name] if name in known else means[name] for name in means}
        found, value = acts(informed)
        then += weight * min(cost(act, informed) for act in found)
        exact += weight * value
    return now - then, optimum - exact


def test_the_value_of_knowing_costs_is_that_of_every_case(discrete: Any) -> None:
    problem, X, y, costs = discrete
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    table = policy.cost_table_
    given = uncertain_costs(UNCERTAIN, table, [(["0", "1"], ["0", "1"])])
    rows = held_out_rows(policy, X, y, None, "the costs are")
    every = alternatives(policy, rows, given, ["0", "1"])
    assert list(every.deciders) == [OWN, "everyone positive", "everyone negative"]
    brute, exact = enumerated(discrete, ("false_negative", "x1"))
    # Cases as often as they come: 6 of 20, 6, 4 and 4.
    often = [(20, 1.0)] * 6 + [(20, 12.0)] * 6 + [(140, 1.0)] * 4 + [(140, 12.0)] * 4
    all_of_it = of_all(every, np.array(often, dtype=float))
    assert brute > 0.5
    assert all_of_it.value == pytest.approx(brute, abs=1e-9)
    assert abs(all_of_it.value - exact) < 4 * all_of_it.error
    for k, name in enumerate(UNCERTAIN):
        own, true = enumerated(discrete, (name,))
        one = of_one(every, k)
        assert one.value == pytest.approx(own, abs=1e-9)
        assert abs(one.value - true) < 4 * one.error
        assert one.value <= all_of_it.value + 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sensitivity(policy, X, y, UNCERTAIN, draws=300, grid=0)
    reported = found.information
    assert reported is not None
    assert abs(reported.value - brute) < 4 * reported.simulation_error
    assert found.best == OWN


def test_how_likely_each_policy_is_the_cheapest(discrete: Any) -> None:
    problem, X, y, costs = discrete
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(X, y)
    uncertain = {"false_positive": stats.uniform(1, 200), "false_negative": stats.uniform(1, 200)}
    found = sensitivity(policy, X, y, uncertain, draws=0, grid=0)
    at_mean = OptimalPolicyClassifier(
        Costs([2.0, 3.0, 4.0], false_positive=101, false_negative=101), joint=problem
    ).fit(X, y).acquire(X)  # fmt: skip
    rng = np.random.default_rng(5)
    fp, fn = rng.uniform(1, 201, size=(2, 4000))
    paid = float(at_mean.cost.mean())
    own = paid + fp * np.mean((y == 0) & (at_mean.label == 1))
    own += fn * np.mean((y == 1) & (at_mean.label == 0))
    every = np.column_stack([own, fp * np.mean(y == 0), fn * np.mean(y == 1)])
    share = np.bincount(every.argmin(axis=1), minlength=3) / len(fp)
    for item, expected in zip(found.policies, share, strict=True):
        error = np.hypot(item.simulation_error, np.sqrt(expected * (1 - expected) / len(fp)))
        assert abs(item.cheapest - expected) < 4 * error + 1e-9
    np.testing.assert_allclose([i.cost for i in found.policies], every.mean(axis=0), rtol=0.05)


def test_the_interval_of_being_cheapest_covers_other_rows() -> None:
    problem = make_discrete_problem(3, seed=3)
    costs = Costs([2.0, 3.0, 4.0], false_positive=40, false_negative=60)
    uncertain = {"false_positive": (1, 200), "false_negative": (1, 200)}
    policy = OptimalPolicyClassifier(costs, joint=problem).fit(*problem.sample(100, seed=0))

    def shares(X: Any, y: Any, groups: Any = None) -> Any:
        found = sensitivity(policy, X, y, uncertain, draws=0, grid=0, tolerance=0.1, groups=groups)
        return np.array([(i.cheapest, i.cheapest_low, i.cheapest_high) for i in found.policies])

    samples = [problem.sample(200, seed=seed) for seed in range(1, 31)]
    every = np.array([shares(*sample) for sample in samples])
    truth = shares(*problem.sample(10_000, seed=99))[:, 0]
    assert every[:, :, 0].std(axis=0).max() > 0.02, "samples must differ"
    covered = (every[:, :, 1] - 0.005 <= truth) & (truth <= every[:, :, 2] + 0.005)
    # Of 30 intervals of 95% at least 24 hold the truth, unless with probability 0.3%.
    assert covered.sum(axis=0).min() >= 24
    X, y = samples[0]
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    np.testing.assert_allclose(shares(*twice, np.tile(np.arange(200), 2)), every[0], atol=1e-9)
    assert np.ptp(shares(*twice)[:, 1:], axis=1).max() < np.ptp(every[0][:, 1:], axis=1).max()


def test_knowing_is_never_said_to_do_harm(policy: Any) -> None:
    found = sensitivity(policy, *draw_rows(200, 1), {"x0": (0.9, 1.1)}, draws=2, grid=0)
    for value, error, reported in (
        (0.5, 0.2, "is worth 0.5 per row (EVPI), standard error 0.22 over 200 rows and 2 draws."),
        (-0.3, 0.2, "is worth 0 per row within its error (EVPI): the estimate is -0.3, standard"),
        (-0.9, 0.2, "below 0 by more than chance"),
    ):
        said = replace(found, information=Information(value, error, 0.1)).notes()
        assert any(reported in line for line in said), said
    known = replace(found, costs=(replace(found.costs[0], known=-0.39, known_error=0.8),))
    assert known.tables()[0].rows[0][-1] == "0.00 ± 0.80"
    with pytest.raises(InvalidInputError, match="one draw has no error"):
        sensitivity(policy, *draw_rows(50, 1), draws=1)


def test_a_winner_is_named_with_those_it_is_not_shown_to_beat(policy: Any) -> None:
    X, y = draw_rows(60, 1)
    cos = COSClassifier(COSTS, **QUICK).from_model(policy)
    found = sensitivity(policy, X, y, draws=0, grid=0, compared={"today": cos})
    by_name = {item.name: item for item in found.policies}
    assert by_name["today"].cost == by_name["COS"].cost
    best = "COS" if found.best != "COS" else "today"
    if found.best in ("COS", "today"):
        assert best in found.as_good
    for item in found.policies:
        if found.best == OWN and item.name != OWN:
            assert (item.name in found.as_good) == (item.more <= 1.96 * item.error)
    assert f"Not shown to cost more than {found.best}: {', '.join(found.as_good)}." in str(found)
    assert "every policy, this policy too, decides by the expected costs" in str(found)
    assert "more rows make it narrower" in str(found)


def test_everything_in_tables_words_and_figures(policy: Any) -> None:
    X, y = draw_rows(300, 1)
    found = sensitivity(
        policy, X, y, {"false_negative": (60, 200), "x0": {"mean": 1, "sd": 0.3}}, draws=3, grid=2
    )
    reported = json.loads(json.dumps(found.to_dict()))
    assert [cost["name"] for cost in reported["costs"]] == ["false_negative", "x0"]
    assert reported["map"]["first"] == "false_negative"
    assert len(reported["map"]["cheapest"]) == 2
    assert "Held fixed: the order of the covariates" in str(found)
    assert "EVPI" in found._repr_html_()
    pytest.importorskip("matplotlib")
    assert found.tornado()[1].get_xlabel() == "covariates acquired per row"
    assert found.regions().get_xlabel() == "false_negative"
    missed = found.costs[0]
    assert missed.cut_off_at_low == pytest.approx(50 / 110)
    assert missed.cost_at_high == pytest.approx(found.total + missed.more_at_high)
    with pytest.raises(InvalidInputError, match="map of two costs"):
        sensitivity(policy, X, y, {"x0": (0.5, 2)}, draws=0).regions()


def test_other_policies_are_compared_and_groups_counted(policy: Any) -> None:
    X, y = draw_rows(300, 1)
    cos = COSClassifier(COSTS, **QUICK).from_model(policy)
    one = sensitivity(policy, X, y, draws=0, grid=0, compared={"today": cos})
    names = [item.name for item in one.policies]
    assert names == [OWN, "COS", "full model", "everyone positive", "everyone negative", "today"]
    assert one.policies[-1][1:] == one.policies[1][1:]
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    grouped = sensitivity(policy, *twice, draws=0, grid=0, groups=np.tile(np.arange(300), 2))
    assert grouped.error == pytest.approx(one.error)
    two = Costs([1.0, 2.0], false_positive=50, false_negative=80)
    other = COSClassifier(two, **QUICK).fit(X[:, :2], y)
    with pytest.raises(InvalidInputError, match="same covariates"):
        sensitivity(policy, X, y, draws=0, grid=0, compared={"today": other})


def test_three_classes_and_target_recalls() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.digitize(X[:, 0] + 0.7 * X[:, 1] + 0.4 * rng.normal(size=400), [-0.5, 0.7])
    words = np.array(["low", "mid", "high"])[y]
    matrix = 20 * (1 - np.eye(3))
    three = PlanningClassifier(Costs([1, 2, 3], misclassification=matrix), n_codes=3, cv=2)
    three.fit(X[:250], words[:250])
    given = {"low -> high": (10, 40), ("mid", "low"): (5, 60)}
    found = sensitivity(three, X[250:], words[250:], given, draws=2, grid=0)
    assert {cost.name for cost in found.costs} == {"low -> high", "mid -> low"}
    assert "everyone mid" in [item.name for item in found.policies]
    binary = (y == 2).astype(int)
    recall = TargetRecallClassifier(
        AdaCOSClassifier(Costs([1, 2, 3], false_positive=20), **QUICK), target_recall=0.9
    ).fit(X[:250], binary[:250])
    reported = sensitivity(recall, X[250:], binary[250:], draws=0, grid=0)
    assert "false_negative" not in [cost.name for cost in reported.costs]
    (alarm,) = [cost for cost in reported.costs if cost.name == "false_positive"]
    assert alarm.cut_off_at_low == pytest.approx(recall.threshold_)
    assert "the cut-off of the target recall" in reported.held_fixed
    with pytest.raises(InvalidInputError, match="a target recall took its place"):
        sensitivity(recall, X[250:], binary[250:], {"false_negative": (1, 2)})


def test_a_decision_between_is_a_cost_like_others() -> None:
    (X, y), (new, true) = draw_rows(400, 0), draw_rows(100, 1)
    matrix = np.array([[0.0, 15, 50], [80, 18, 0]])

    def decided(matrix: Any) -> Any:
        costs = Costs([1.0, 2.0, 3.0, 4.0], misclassification=matrix,
                      decisions=("discharge", "refer", "treat"))  # fmt: skip
        return AdaCOSClassifier(costs, **QUICK).fit(X, y)

    policy = decided(matrix)
    given = {"1 -> refer": (12, 24), ("0", "refer"): (10, 20)}
    found = sensitivity(policy, new, true, given, draws=2, grid=0)
    assert {cost.name for cost in found.costs} == {"1 -> refer", "0 -> refer"}
    assert "everyone refer" in [item.name for item in found.policies]
    (refer,) = [cost for cost in found.costs if cost.name == "1 -> refer"]
    low, high = refer.answers
    assert low is not None or high is not None
    stated = policy.acquire(new)
    for end, side in ends(refer, "answers"):
        for offset, same in ((-side, True), (side, False)):
            matrix[1, 1] = end + offset * 1e-5 * 18
            again = decided(matrix).acquire(new)
            equal = np.array_equal(again.label, stated.label)
            assert (equal and np.array_equal(again.order, stated.order)) == same
    with pytest.raises(InvalidInputError, match="answers discharge, refer, treat"):
        sensitivity(policy, new, true, {"1 -> home": (1, 2)})


WRONG: dict[str, tuple[Any, str]] = {
    "a name": ({"fals_negative": (1, 2)}, "Did you mean false_negative"),
    "no mapping": ([("x0", (1, 2))], "mapping"),
    "order": ({"x0": (2, 1)}, "rise"),
    "likely last": ({"x0": (1, 4, 2)}, "the likely and the high amount"),
    "one amount": ({"x0": 3}, "low, high"),
    "text": ({"x0": "1:2"}, "low, high"),
    "negative": ({"x0": (-1, 2)}, "cannot be negative"),
    "not finite": ({"x0": (1, np.inf)}, "finite"),
    "free error": ({"false_negative": (0, 2)}, "right answer, which costs 0"),
    "normal": ({"x0": stats.norm(3, 2)}, "Truncate"),
    "no mean": ({"x0": stats.cauchy(3, 2)}, "finite mean"),
    "gamma": ({"x0": {"mean": 3}}, "mean and an sd"),
    "right answer": ({("1", "1"): (1, 2)}, "not of the right answer"),
    "no class": ({"2 -> 1": (1, 2)}, "classes are 0, 1"),
    "twice": ({("1", "0"): (1, 2), "false_negative": (1, 3)}, "once"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_costs_are_refused(policy: Any, wrong: str) -> None:
    given, words = WRONG[wrong]
    with pytest.raises(InvalidInputError, match=words):
        sensitivity(policy, *draw_rows(50, 1), given)


def test_wrong_parameters_are_refused_and_training_rows_reported(policy: Any) -> None:
    X, y = draw_rows(50, 1)
    for name, value in (("draws", -1), ("grid", 1.5), ("tolerance", 0), ("map_of", ("x0", "x9"))):
        with pytest.raises(InvalidInputError, match=name):
            sensitivity(policy, X, y, **{name: value})
    X, y = draw_rows(600, 0)
    with pytest.warns(TrainingRowsWarning, match="the costs are too optimistic"):
        sensitivity(policy, X[:200], y[:200], {"x0": (0.5, 2)}, draws=0, grid=0)


def test_what_is_no_fitted_policy_is_refused_by_name(policy: Any) -> None:
    X, y = draw_rows(40, 5)
    for analyse in (sensitivity, covariate_worth, trade_off):
        for given in ("model.adacos", LogisticRegression(), None):
            with pytest.raises(InvalidInputError, match="policy: must be a fitted policy"):
                analyse(given, X, y)
        with pytest.raises(NotFittedError):
            analyse(AdaCOSClassifier(COSTS), X, y)
    with pytest.raises(InvalidInputError, match="compared: must be policies by name"):
        sensitivity(policy, X, y, compared=[policy], draws=0, grid=0)
    with pytest.raises(NotFittedError):
        sensitivity(policy, X, y, compared={"new": AdaCOSClassifier(COSTS)}, draws=0, grid=0)
    with pytest.raises(InvalidInputError, match=r"Did you mean recalibrate\(prevalence=0.02\)"):
        policy.recalibrate(0.02)


def test_a_panel_bounds_the_costs_of_its_members() -> None:
    X, y = draw_rows(400, 0)
    costs = Costs([1.0, 2.0, 3.0, 4.0], false_positive=50, false_negative=80,
                  panels={"blood": (1.8, [1, 2])})  # fmt: skip
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    new = draw_rows(100, 1)
    found = sensitivity(policy, *new, draws=0, grid=0)
    (member,) = [cost for cost in found.costs if cost.name.endswith("1")]
    assert member.low == 1.8
    with pytest.raises(InvalidInputError, match=r"at least 1.8, which the panel"):
        sensitivity(policy, *new, {member.name: (1, 3)})
