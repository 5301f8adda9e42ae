"""Trees of policies written as protocols, edited and followed again."""

from __future__ import annotations

import numpy as np
import pytest

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    Costs,
    DecisionProtocol,
    InvalidInputError,
    PlanningClassifier,
    ProtocolClassifier,
    protocol_of,
)
from adacos.datasets import make_value_dependent_problem

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def problem_of(n: int = 500):  # type: ignore[no-untyped-def]
    problem = make_value_dependent_problem()
    X, y = problem.sample(n, seed=0)
    return X, y, Costs(list(problem.prices.values()), false_positive=50, false_negative=75)


def test_a_plan_that_is_drawn_whole_is_followed_to_the_row() -> None:
    X, y, costs = problem_of()
    plan = PlanningClassifier(costs, cv=2).fit(X, y)
    protocol = protocol_of(plan)
    again = ProtocolClassifier(costs, protocol=protocol).fit(X, y)
    new, _ = make_value_dependent_problem().sample(1000, seed=1)
    expected, found = plan.acquire(new), again.acquire(new)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_allclose(found.cost, expected.cost)
    # Edited by hand, one answer changes, and with it the rows that come there.
    text = protocol.text.replace("if x1 = 0: 0", "if x1 = 0: 1")
    assert text != protocol.text
    changed = ProtocolClassifier(costs, protocol=text).fit(X, y).predict(new)
    there = (new[:, 0] == 0) & (new[:, 1] == 0)
    np.testing.assert_array_equal(changed, np.where(there, 1, expected.label))


def test_branches_are_asked_as_written_and_may_be_edited() -> None:
    X, y, costs = problem_of()
    tree = BranchingClassifier(costs, cv=2, strengths="common").fit(X, y)
    text = protocol_of(tree).text
    assert text.startswith("# The questions of a fitted BranchingClassifier")
    again = ProtocolClassifier(costs, protocol=text).fit(X, y)
    assert (again.acquire(X).order[:, 0] == 0).all()
    edited = text.replace("unavailable: ", "unavailable:  ") + "\n# checked by hand\n"
    assert ProtocolClassifier(costs, protocol=edited).fit(X, y).predict(X).tolist() == (
        again.predict(X).tolist()
    )
    assert protocol_of(again) == DecisionProtocol(text)


def test_codes_of_numbers_and_words_are_ranges_and_sets() -> None:
    """On rows that are complete, each way of the picture leads where the protocol does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = ((X[:, 0] > -0.5) & (X[:, 0] < 0.8) ^ (X[:, 1] > 1)).astype(int)
    costs = Costs([1.0, 2.0], false_positive=60, false_negative=60)
    plan = PlanningClassifier(costs, cv=2).fit(X, y)
    again = ProtocolClassifier(costs, protocol=protocol_of(plan)).fit(X, y)
    same = plan.predict(X) == again.predict(X)
    # Where a value says more than its code, the plan itself may decide otherwise.
    assert same.mean() > 0.9
    assert (again.acquire(X).order[:, 0] == plan.acquire(X).order[:, 0]).all()


def test_a_policy_without_a_tree_is_refused() -> None:
    X, y, costs = problem_of(200)
    with pytest.raises(InvalidInputError, match="must ask by a tree"):
        protocol_of(AdaCOSClassifier(costs, cv=2, strengths="common").fit(X, y))
