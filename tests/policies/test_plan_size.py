"""Which covariates are planned, and in how many codes."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import Costs, PlanningClassifier
from adacos.datasets import make_continuous_problem
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import stratified_folds
from adacos.models.plans import tabulate
from adacos.models.table_mixture import Reading, fit_members, pooled
from adacos.policies.plan_size import (
    codes_within,
    even_codes,
    order_by_value,
    refuse_many_classes,
    sizes_to_compare,
)
from adacos.tables.encoder import TableEncoder


def table(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, TableEncoder]:
    """The first covariate says most of the class, the second less, the others nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (2 * X[:, p - 1] + X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, y, TableEncoder.fit(X, tuple(f"x{i}" for i in range(p)))


def test_rows_are_divided_evenly_among_codes() -> None:
    rng = np.random.default_rng(5)
    skewed = np.where(rng.random(1000) < 0.7, 1.0, rng.integers(2, 30, size=1000))
    X = np.column_stack([skewed, rng.normal(size=1000), rng.integers(0, 3, size=1000)])
    X[:100, 1] = np.nan
    encoder = TableEncoder.fit(X, ("a", "b", "c"))
    codes = even_codes(X, encoder, 5)
    np.testing.assert_array_equal(codes.sizes, [5, 5, 3])
    found = codes.transform(X)
    assert np.bincount(found[:, 0])[0] == (skewed == 1).sum()
    assert np.ptp(np.bincount(found[:, 0])[1:]) < 40
    assert np.ptp(np.bincount(found[100:, 1])) < 12
    # The value that most rows have is told from the others even by two codes.
    np.testing.assert_array_equal(even_codes(X, encoder, 2).sizes, 2)


def test_codes_fit_into_the_states() -> None:
    X, _, encoder = table(200, 5, 0)
    planned = np.array([0, 2, 4])
    codes = codes_within(X, encoder, planned, 14, 1000)
    np.testing.assert_array_equal(codes.sizes[planned], 9)
    assert codes_within(X, encoder, planned, 14, 10**6).sizes.max() == 14
    assert codes_within(X, encoder, planned, 14, 1).sizes.max() == 2


def test_more_covariates_while_they_cost_codes() -> None:
    X, _, encoder = table(200, 12, 1)
    order = np.arange(12)[::-1]
    every = sizes_to_compare(order, X, encoder, 14)
    # 15 ** 5 states are fewer than a million, and 3 ** 10 fewer than a hundred thousand.
    assert [len(planned) for planned in every] == [5, 6, 7, 8, 9, 10]
    np.testing.assert_array_equal(every[0], order[:5])
    few = np.random.default_rng(0).integers(0, 2, size=(200, 8)).astype(float)
    encoder = TableEncoder.fit(few, tuple(f"x{i}" for i in range(8)))
    assert [len(planned) for planned in sizes_to_compare(np.arange(8), few, encoder, 14)] == [8]


def test_covariates_of_which_none_pays_alone_are_ordered_by_what_they_say() -> None:
    """Not by rounding: their plans cost the same, and differ in the last digit."""
    X, y, encoder = table(800, 5, 2)
    reading = Reading.fit(X, encoder)
    folds = [stratified_folds(X, y.astype(float), 3, 0)]
    rows = reading.statistics(X), y, np.ones(len(y)), folds
    mixture = pooled(fit_members(reading, *rows, 2, 0)[0])
    prices = np.array([1.0, 0.5, 2.0, 0.5, 1.0])
    bound = Costs(prices.tolist(), false_positive=0.1, false_negative=0.1).bind(encoder.names, 2)
    kept = np.array([4, 0, 1, 3])
    order = order_by_value(
        mixture, X, encoder, kept, lambda some: bound.only(np.isin(np.arange(5), some))
    )
    codes, says = even_codes(X, encoder, 3), []
    for k in kept:
        joint = mixture.joint_of_codes(codes, np.array([k]))
        parts = [joint.sum(axis=0), joint.sum(axis=1), joint.ravel()]
        of_codes, of_class, both = (-(p * np.log(p)).sum() for p in parts)
        says.append((of_codes + of_class - both) / prices[k])
    np.testing.assert_array_equal(order, kept[np.argsort(says)[::-1]])


def test_covariates_are_ordered_by_what_they_are_worth_in_a_plan() -> None:
    """Each is the one with which the plan of those before it costs least, all looked at."""
    X, y, encoder = table(800, 5, 2)
    reading = Reading.fit(X, encoder)
    folds = [stratified_folds(X, y.astype(float), 3, 0)]
    rows = reading.statistics(X), y, np.ones(len(y)), folds
    mixture = pooled(fit_members(reading, *rows, 2, 0)[0])
    costs = Costs([1.0, 0.5, 0.5, 0.5, 1.0], false_positive=30, false_negative=30)
    bound = costs.bind(encoder.names, 2)

    def costs_of(covariates: np.ndarray):  # type: ignore[no-untyped-def]
        return bound.only(np.isin(np.arange(5), covariates))

    order = order_by_value(mixture, X, encoder, np.arange(5), costs_of)
    np.testing.assert_array_equal(order[:2], [4, 0])
    np.testing.assert_array_equal(np.sort(order), np.arange(5))
    codes, chosen = even_codes(X, encoder, 3), []
    for k in order[:2].tolist():
        values = {}
        for other in set(range(5)) - set(chosen):
            planned = np.sort(np.array([*chosen, other]))
            joint = mixture.joint_of_codes(codes, planned)
            values[other] = tabulate(joint, costs_of(planned)).expected_cost
        assert k == min(values, key=lambda one: values[one])
        chosen.append(k)


def test_of_many_covariates_those_that_pay_are_planned() -> None:
    """Thirty covariates, two of which say something."""
    X, y, _ = table(500, 30, 3)
    costs = Costs([1.0] * 30, false_positive=30, false_negative=30)
    policy = PlanningClassifier(costs).fit(X, y)
    assert {0, 29} <= set(policy.planned_.tolist())
    assert np.prod(policy.codes_.sizes[policy.planned_] + 1.0) <= 1e6
    fresh, truth, _ = table(4000, 30, 4)
    result = policy.acquire(fresh)
    assert not result.acquired[:, np.setdiff1d(np.arange(30), policy.planned_)].any()
    realised = result.cost + 30 * (result.label != truth)
    # With both known the error is about 0.14 and the cost 6.
    assert realised.mean() < 9


def test_near_the_optimum_where_covariates_are_numbers() -> None:
    """A fifth of the regret of one order: a mixture with dependence, by its true P(y | x)."""
    from adacos import AdaCOSClassifier
    from adacos.bench.continuous import charged, optimal_cost

    problem = make_continuous_problem("mixture-8", seed=40)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    bound = costs.bind(tuple(problem.prices), 2)
    fresh, _ = problem.sample(5000, seed=[40, 1])
    optimum = optimal_cost(problem, bound, fresh, 12)
    X, y = problem.sample(1000, seed=40)
    regret = []
    for policy in (PlanningClassifier(costs), AdaCOSClassifier(costs)):
        result = policy.fit(X, y).acquire(fresh)
        cost = charged(problem, fresh, result.cost, result.label, bound.matrix)
        regret.append(cost / optimum - 1)
    assert regret[0] < 0.5 * regret[1]
    assert regret[0] < 0.1


def test_too_many_classes_are_refused_before_anything_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After 28 to 43 seconds of plans otherwise, with 100 classes and 8 covariates."""
    X = np.random.default_rng(1).normal(size=(300, 8))
    y = np.arange(300) % 100
    costs = Costs(np.ones(8), misclassification=20 * (1 - np.eye(100)))
    monkeypatch.setattr(PlanningClassifier, "_members", lambda *_: pytest.fail("a fit was begun"))
    with pytest.raises(InvalidInputError, match=r"classes less one.*100 classes and 72 columns"):
        PlanningClassifier(costs).fit(X, y)


def test_classes_are_refused_by_the_widest_plan_there_may_be() -> None:
    """Ten numbers can be planned together, and no more; three classes are never too many."""
    rng = np.random.default_rng(2)
    X, names = rng.normal(size=(300, 30)), tuple(f"x{k}" for k in range(30))
    encoder = TableEncoder.fit(X, names)
    for n_classes in (3, 23):
        refuse_many_classes(X, encoder, 14, 10, n_classes)
    with pytest.raises(InvalidInputError, match="24 classes and 90 columns, 2,070 in all"):
        refuse_many_classes(X, encoder, 14, 10, 24)
