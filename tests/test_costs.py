"""Covariate costs, panels and misclassification costs."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adacos import Costs
from adacos.exceptions import InvalidInputError

NAMES = ["a", "b", "c", "d", "e", "f"]


SHARES = st.just(0.0) | st.floats(1e-20, 1)


@st.composite
def priced(draw: Any) -> Costs:
    """Costs of six covariates with up to two panels that do not overlap."""
    amount = st.just(0.0) | st.floats(1e-20, 100)
    covariates = {name: draw(amount) for name in NAMES}
    members = draw(st.permutations(NAMES))
    sizes = draw(st.sampled_from([(), (2,), (3,), (6,), (2, 2), (3, 2), (3, 3)]))
    panels, first = {}, 0
    for number, size in enumerate(sizes):
        group = members[first : first + size]
        first += size
        least = min(covariates[name] for name in group)
        panels[f"panel {number}"] = (draw(SHARES) * least, group)
    return Costs(covariates, panels=panels)


@st.composite
def priced_by_member(draw: Any) -> Costs:
    """The same, but every member of a panel has a discounted cost of its own."""
    costs = draw(priced())
    panels = {
        title: {name: draw(SHARES) * costs.covariates[name] for name in members}
        for title, (_, members) in costs.panels.items()
    }
    return Costs(costs.covariates, panels=panels)


def pay(costs: Costs, name: str, acquired: list[str]) -> float:
    """One purchase: a panel's first member pays in full, a later one its discounted cost."""
    price = costs.covariates[name]
    for panel in costs.panels.values():
        members = panel if isinstance(panel, dict) else panel[1]
        if name in members and any(other in acquired for other in members):
            return panel[name] if isinstance(panel, dict) else price - panel[0]
    return price


def pay_all(costs: Costs, order: list[str], before: list[str]) -> float:
    """Purchases one after the other, beyond what there is `before`."""
    acquired, paid = list(before), 0.0
    for name in order:
        if name not in acquired:
            paid += pay(costs, name, acquired)
            acquired.append(name)
    return paid


@given(
    st.one_of(priced(), priced_by_member()),
    st.permutations(NAMES),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_a_set_costs_what_acquiring_it_one_by_one_costs(
    costs: Costs, order: list[str], first: int, second: int
) -> None:
    first, second = sorted((first, second))
    acquired: list[str] = []
    paid = []
    for name in order[:second]:
        paid.append(pay(costs, name, acquired))
        acquired.append(name)
    given_set, all_set = order[:first], order[:second]
    assert costs.of(order[first:second], given=given_set) == pytest.approx(
        sum(paid[first:]), abs=1e-8
    )
    assert costs.of(all_set) == pytest.approx(sum(paid), abs=1e-8)
    # Asking again for what is acquired already is free.
    assert costs.of(all_set, given=all_set) == 0.0
    assert costs.of(all_set, given=given_set) == costs.of(order[first:second], given=given_set)


@given(priced(), st.lists(st.integers(0, 63), min_size=1, max_size=8), st.integers(0, 63))
def test_the_bound_table_prices_many_sets_at_once(
    costs: Costs, codes: list[int], given_code: int
) -> None:
    masks = np.array([[bool(code >> k & 1) for k in range(6)] for code in codes])
    before = np.array([bool(given_code >> k & 1) for k in range(6)])
    table = costs.bind(NAMES)
    one_by_one = [
        costs.of(
            [NAMES[k] for k in range(6) if mask[k]], given=[NAMES[k] for k in range(6) if before[k]]
        )
        for mask in masks
    ]
    np.testing.assert_allclose(table.of(masks, given=before), one_by_one, atol=1e-8)
    np.testing.assert_allclose(table.of(masks[:, None, :]), table.of(masks)[:, None], atol=1e-12)
    assert np.all(table.of(masks | before) >= table.of(before) - 1e-9)


@given(priced(), st.permutations(NAMES))
def test_binding_follows_the_columns(costs: Costs, order: list[str]) -> None:
    table = costs.bind(order)
    assert table.names == tuple(order)
    assert table.covariates.tolist() == [costs.covariates[name] for name in order]
    everything = np.ones(6, dtype=bool)
    assert table.of(everything) == pytest.approx(costs.of(NAMES), abs=1e-8)


@given(priced_by_member(), st.permutations(NAMES), st.integers(0, 6), st.integers(0, 5))
def test_a_set_without_an_order_is_acquired_in_its_cheapest_one(
    costs: Costs, order: list[str], size: int, n_given: int
) -> None:
    wanted, before = order[:size], order[6 - n_given :]
    least = min(pay_all(costs, list(own), before) for own in permutations(wanted))
    assert costs.of(set(wanted), given=before) == pytest.approx(least, abs=1e-8)


@given(priced_by_member(), st.lists(st.permutations(NAMES), min_size=1, max_size=5), st.data())
def test_orders_of_many_rows_are_charged_at_once(
    costs: Costs, orders: list[list[str]], data: Any
) -> None:
    table = costs.bind(NAMES)
    sizes = [data.draw(st.integers(0, 6)) for _ in orders]
    before = data.draw(st.lists(st.sampled_from(NAMES), unique=True))
    given_mask = np.isin(NAMES, before)
    listed = np.full((len(orders), 6), -1)
    expected, step_by_step = [], []
    for row, (order, size) in enumerate(zip(orders, sizes, strict=True)):
        listed[row, :size] = [NAMES.index(name) for name in order[:size]]
        expected.append(pay_all(costs, order[:size], before))
        have, paid = given_mask.copy(), 0.0
        for k in listed[row, :size]:
            paid += 0.0 if have[k] else float(table.of_next(have)[k])
            have[k] = True
        step_by_step.append(paid)
    np.testing.assert_allclose(table.of_order(listed, given=given_mask), expected, atol=1e-8)
    np.testing.assert_allclose(step_by_step, expected, atol=1e-8)
    stacked = table.of_order(np.stack([listed, listed]), given=given_mask)
    np.testing.assert_allclose(stacked, [expected, expected], atol=1e-8)


@given(priced_by_member(), st.integers(1, 63), st.permutations(NAMES))
def test_some_of_the_columns_keep_their_costs(costs: Costs, code: int, order: list[str]) -> None:
    kept = np.array([bool(code >> k & 1) for k in range(6)])
    table = costs.bind(NAMES).only(kept)
    own = [name for name in order if name in table.names]
    listed = np.array([table.names.index(name) for name in own])
    assert float(table.of_order(listed)) == pytest.approx(pay_all(costs, own, []), abs=1e-8)


def test_one_discount_for_all_members_is_a_shared_cost() -> None:
    """Lomax's diabetes: 17.61 - 15.51 and 22.78 - 20.68 differ by rounding only."""
    prices = {"glucosetol": 17.61, "insulin": 22.78, "age": 1.0}
    own = Costs(prices, panels={"a": {"glucosetol": 15.51, "insulin": 20.68}})
    assert own.bind(list(prices)).excess is None
    assert own.bind(list(prices)).shared == pytest.approx([2.10])
    assert own.of(["glucosetol", "insulin"]) == own.of(["insulin", "glucosetol"]) == 38.29


@pytest.mark.parametrize(
    ("panel", "said"),
    [
        ({"a": 1.0}, "at least two"),
        ({"a": 2.5, "b": 1.0}, "once another has been paid"),
        ({"a": -1.0, "b": 1.0}, "0"),
        ({"a": 1.0, "z": 1.0}, "columns"),
    ],
)
def test_bad_discounted_costs_are_refused(panel: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        Costs({"a": 2.0, "b": 2.0}, panels={"p": panel}).bind(["a", "b"])


def test_the_example_of_the_documentation() -> None:
    costs = Costs(
        {"glucose": 17.61, "insulin": 22.78, "age": 1.0},
        panels={"blood": (2.10, ["glucose", "insulin"])},
    )
    assert costs.of(["glucose", "insulin"]) == 38.29
    assert costs.of(["insulin"], given=["glucose"]) == 20.68
    assert costs.of([]) == 0.0
    assert costs.of(["age"], given=["age"]) == 0.0


def test_costs_by_position() -> None:
    for values in ([1, 2.5, 0], np.array([1, 2.5, 0]), (1, 2.5, 0)):
        costs = Costs(values, panels={"pair": (1.0, [0, 1])})
        assert costs.of([0, 1, 2]) == 2.5
        assert costs.of([1], given=[0]) == 1.5
        assert costs.bind(["x", "y", "z"]).covariates.tolist() == [1, 2.5, 0]


def test_a_series_gives_costs_by_its_names() -> None:
    named = Costs(pd.Series({"b": 2.0, "a": 1.0}))
    assert named == Costs({"b": 2.0, "a": 1.0})
    np.testing.assert_array_equal(named.bind(["a", "b"]).covariates, [1.0, 2.0])
    assert Costs(pd.Series([2.0, 1.0])) == Costs([2.0, 1.0])
    frame = pd.DataFrame([[0, 1], [2, 0]], ["elm", "oak"], ["elm", "oak"])
    assert Costs(misclassification=frame) == Costs(misclassification=[[0, 1], [2, 0]])


def test_no_costs_make_everything_free() -> None:
    table = Costs().bind(["x", "y"])
    assert table.of(np.array([True, True])) == 0
    assert Costs().of(["anything"]) == 0
    assert Costs().matrix.tolist() == [[0, 1], [1, 0]]


def test_misclassification_as_two_numbers_or_a_matrix() -> None:
    assert Costs(false_positive=100, false_negative=1000).matrix.tolist() == [[0, 100], [1000, 0]]
    assert Costs(false_positive=3).matrix.tolist() == [[0, 3], [1, 0]]
    table_1 = [[-50, 400], [400, -50]]
    assert Costs(misclassification=table_1).matrix.tolist() == table_1
    assert Costs({"a": 1.0}).with_misclassification(table_1) == Costs(
        {"a": 1.0}, misclassification=table_1
    )
    assert not Costs(false_positive=3).false_negative_given
    assert Costs(false_negative=3).false_negative_given
    assert Costs(misclassification=table_1).false_negative_given


def test_equality_and_text() -> None:
    one = Costs({"a": 1.0, "b": 2.0}, false_positive=2, panels={"p": (1, ["a", "b"])})
    assert one == Costs({"a": 1.0, "b": 2.0}, false_positive=2.0, panels={"p": (1.0, ["a", "b"])})
    assert one != Costs({"a": 1.0, "b": 2.0}, false_positive=2)
    assert one != Costs({"a": 1.0, "b": 3.0}, false_positive=2, panels={"p": (1, ["a", "b"])})
    assert one != Costs({"a": 1.0, "b": 2.0}, false_positive=3, panels={"p": (1, ["a", "b"])})
    assert one != "costs"
    own = Costs({"a": 1.0, "b": 2.0}, panels={"p": {"a": 0.5, "b": 0.0}})
    for costs in (one, own, Costs([1.0, 2.0], misclassification=[[-1, 4], [5, -2]]), Costs()):
        assert eval(repr(costs), {"Costs": Costs}).matrix.tolist() == costs.matrix.tolist()
        assert eval(repr(costs), {"Costs": Costs}).panels == costs.panels
        assert eval(repr(costs), {"Costs": Costs}).unstated == costs.unstated
        assert eval(repr(costs), {"Costs": Costs}).covariates == costs.covariates


def test_what_is_passed_in_is_copied() -> None:
    prices, matrix, members = {"a": 1.0, "b": 2.0}, np.array([[0.0, 5.0], [7.0, 0.0]]), ["a", "b"]
    costs = Costs(prices, misclassification=matrix, panels={"p": (1.0, members)})
    prices["a"], matrix[0, 1] = 99.0, 99.0
    members.append("c")
    assert costs.of(["a"]) == 1.0
    assert costs.matrix[0, 1] == 5.0
    assert costs.of(["a", "b"]) == 2.0


NUMBERS = [
    ({"covariates": {"a": -1.0}}, "cost of 'a'", -1.0),
    ({"covariates": {"a": float("nan")}}, "cost of 'a'", "nan"),
    ({"covariates": {"a": float("inf")}}, "cost of 'a'", "inf"),
    ({"covariates": {"a": "dear"}}, "cost of 'a'", "'dear'"),
    ({"covariates": {"a": None}}, "cost of 'a'", None),
    ({"covariates": {"a": True}}, "cost of 'a'", True),
    ({"covariates": [1.0, -0.5]}, "cost of covariate 1", -0.5),
    ({"covariates": np.array([np.nan])}, "cost of covariate 0", "nan"),
    ({"false_positive": 0}, "false_positive", 0),
    ({"false_positive": -3.0}, "false_positive", -3.0),
    ({"false_negative": float("nan")}, "false_negative", "nan"),
    ({"false_negative": "high"}, "false_negative", "'high'"),
    ({"panels": {"p": (-1.0, ["a", "b"])}}, "panels['p'] shared cost", -1.0),
    ({"panels": {"p": (float("nan"), ["a", "b"])}}, "panels['p'] shared cost", "nan"),
]


@pytest.mark.parametrize(("arguments", "parameter", "value"), NUMBERS)
def test_a_wrong_number_is_named(arguments: dict[str, Any], parameter: str, value: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Costs(**arguments)
    message = str(caught.value)
    assert caught.value.parameter == parameter
    assert "must be a finite number >" in message
    assert f"received {value}" in message
    assert caught.value.remedy in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariates": "a"}, "covariates: must be a mapping .* received a"),
        ({"covariates": [[1.0]]}, "covariates: must be a mapping"),
        ({"covariates": 3.0}, "covariates: must be a mapping"),
        ({"misclassification": [[0, 1]]}, "misclassification: must be a square matrix"),
        ({"misclassification": [[0, np.nan], [1, 0]]}, "must be a square matrix"),
        ({"misclassification": [["a", 1], [1, 0]]}, "must be a square matrix"),
        ({"misclassification": [[1, 0], [0, 1]]}, "wrong label must cost more .* check the order"),
        ({"misclassification": [[0, 100], [-1, 0]]}, "wrong label must cost more"),
        ({"misclassification": [[0, 0], [1, 0]]}, "wrong label must cost more"),
        (
            {"misclassification": [[0, 1], [1, 0]], "false_positive": 3},
            "cannot be given together .* either the matrix or the two costs",
        ),
        ({"misclassification": 5.0}, "misclassification: must be a square matrix"),
        (
            {"misclassification": pd.DataFrame([[0, 1], [2, 0]], ["oak", "elm"], ["oak", "elm"])},
            "index of a data frame must be in the order of the classes.*received .'oak', 'elm'.",
        ),
        (
            {"misclassification": pd.DataFrame([[0, 1], [2, 0]], columns=[1, 0])},
            "columns of a data frame must be in the order",
        ),
        ({"immediate": "age"}, "immediate: must be a list of covariates.*received age"),
        ({"immediate": 3}, "immediate: must be a list of covariates"),
        ({"immediate": None}, "immediate: must be a list of covariates"),
        ({"panels": {"p": 3.0}}, r"panels\['p'\]: must be \(shared cost, members\)"),
        ({"panels": {"p": (1.0,)}}, "must be .shared cost, members"),
        ({"panels": {"p": (1.0, 7)}}, "must be .shared cost, members"),
        ({"panels": {"p": (1.0, ["a"])}}, "at least two different members; received"),
        ({"panels": {"p": (1.0, ["a", "a"])}}, "at least two different members"),
        ({"panels": {"p": (1.0, "ab")}}, "at least two different members"),
        ({"panels": [("p", 1.0, ["a", "b"])]}, "panels: must be a mapping"),
    ],
)
def test_wrong_structures_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Costs(**arguments)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (Costs({"a": 1.0, "b": 1.0, "z": 2.0}), r"must belong to a column; received \['z'\]"),
        (Costs({"a": 1.0}), r"every column needs a covariate cost; received none for \['b'\]"),
        (Costs([1.0, 2.0, 3.0]), r"one covariate cost per column \(2\); received 3 costs"),
        (
            Costs([1.0, 2.0], panels={"p": (1.0, ["a", "z"])}),
            r"panels\['p'\]: must name columns of the table; received z. The columns are",
        ),
        (Costs([1.0, 2.0], panels={"p": (1.0, [0, 2])}), "must name columns .* received 2"),
        (Costs([1.0, 2.0], panels={"p": (1.0, [0, True])}), "must name columns"),
        (
            Costs([1.0, 2.0], panels={"p": (1.5, ["a", "b"])}),
            "cannot exceed it; received shared 1.5, a costs 1",
        ),
        (
            Costs([1.0, 2.0], panels={"p": (1.0, ["a", "b"]), "q": (0.5, ["b", "a"])}),
            r"panels\['q'\]: a covariate may belong to one panel only",
        ),
        (
            Costs([1.0, 2.0], panels={"p": (1.0, ["a", 0])}),
            "a covariate may belong to one panel only",
        ),
        (Costs([1.0, 2.0], immediate=["c"]), "immediate: must name columns.*received c"),
    ],
)
def test_costs_must_fit_the_columns(costs: Costs, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        costs.bind(["a", "b"])


def test_sets_must_name_covariates() -> None:
    costs = Costs({"a": 1.0, "b": 2.0})
    with pytest.raises(InvalidInputError, match=r"covariates: must name columns .* received z"):
        costs.of(["z"])
    with pytest.raises(InvalidInputError, match=r"given: must name columns .* received 5"):
        costs.of(["a"], given=[5])


def test_a_misspelt_name_is_answered_with_the_nearest_one() -> None:
    names = ["glucose", "insulin", "age"]
    with pytest.raises(InvalidInputError, match=r"Did you mean glucose\? The columns are"):
        Costs({"Glucos": 1.0, "insulin": 2.0, "age": 1.0}).bind(names)
    panelled = Costs([3.0, 3.0, 3.0], panels={"blood": (1.0, ["glucose", "insuline"])})
    with pytest.raises(InvalidInputError, match=r"Did you mean insulin\?"):
        panelled.bind(names)
    with pytest.raises(InvalidInputError) as error:
        Costs({"weight": 1.0}).bind(names)
    assert "Did you mean" not in str(error.value)
