"""What every policy must do, whatever it is; used for ours and for the rivals.

`check_policy(estimator, X, y)` fits the estimator and raises an AssertionError at the first promise
that is broken. `check_result` is the part about one result, for use in property tests.
`tests/test_every_policy.py` holds every registered policy against all of them.
"""

from __future__ import annotations

import copy
import json
import pickle
import struct
import tempfile
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from adacos import Costs, load, save
from adacos.card import model_card
from adacos.consultation.steps import Acquire
from adacos.exceptions import InvalidInputError
from adacos.typing import Bools

# Rows that have other values missing or known each.
_OWN_PATTERNS = 100
FIELDS = ("label", "probability", "acquired", "order", "cost", "stage", "expected_cost")


def check_policy(estimator: Any, X: Any, y: Any, *, seed: int = 0, saved: bool = True) -> None:
    """Fit `estimator` on (X, y) and check everything a policy promises.

    X may be an array or a data frame and hold missing values. `saved` says whether the policy can
    be written to a file. Where nearly every row has a pattern of its own, which is one more group
    of rows, the first ones are enough.
    """
    policy, few = clone(estimator).fit(X, y), X[:_OWN_PATTERNS]
    result = policy.acquire(X)
    check_result(policy, X, result)
    check_no_peeking(policy, X, seed=seed)
    check_unavailable(policy, few, seed=seed)
    check_known(policy, few, seed=seed)
    check_face(policy, X, y, result)
    check_fitted(policy)
    # A second fit is the same fit.
    same(clone(estimator).fit(X, y).acquire(X), result)
    if saved:
        check_file(policy, X, result)


def check_result(policy: Any, X: Any, result: Any) -> None:
    """Shapes, order against mask, what was paid, and that nothing unavailable was acquired."""
    n, p = shape(X)
    names = result.names
    assert len(result) == n
    assert len(names) == p
    assert result.acquired.shape == result.order.shape == (n, p)
    assert result.acquired.dtype == np.bool_
    assert np.all((result.probability >= 0) & (result.probability <= 1))
    assert set(np.unique(result.label)) <= set(policy.classes_)
    assert np.all(result.stage >= 0)
    assert not np.any(result.acquired & missing(X)), "acquired what is not available"
    for row in range(n):
        order = result.order[row]
        listed = order[order >= 0]
        assert np.all(order[len(listed) :] == -1), "-1 must come after the last acquisition"
        assert len(set(listed)) == len(listed), "acquired twice"
        assert set(listed) == set(np.flatnonzero(result.acquired[row])), "order against mask"
        assert result.covariates(row) == tuple(names[k] for k in listed)
        paid = price(policy.costs, names, listed)
        np.testing.assert_allclose(result.cost[row], paid, rtol=1e-9, atol=1e-9)
    matrix = policy.cost_table_.matrix
    every = probabilities(result) @ matrix
    # The label has the least expected cost, unless the policy answers as somebody wrote.
    own = every[np.arange(n), np.searchsorted(policy.classes_, result.label)]
    risk = every.min(axis=1) if policy.decider_.answers_by_rule else own
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(
        result.expected_cost, result.cost + risk, rtol=1e-9, atol=1e-9 * scale
    )


def probabilities(result: Any) -> Any:
    """Probability of every class, of two or more."""
    p = result.probability
    return p if p.ndim == 2 else np.column_stack([1 - p, p])


def price(
    costs: Costs | None, names: tuple[str, ...], order: Any, known: tuple[str, ...] = ()
) -> float:
    """What acquiring in this order costs: the first of a panel pays in full, later ones less.

    What is known from the start has opened its panel.
    """
    if costs is None or costs.covariates is None:
        return 0.0
    by_name = costs.covariates
    if not isinstance(by_name, dict):
        by_name = dict(zip(names, by_name, strict=True))
    paid, have = 0.0, list(known)
    for k in order:
        amount = by_name[names[k]]
        for panel in costs.panels.values():
            listed = panel if isinstance(panel, dict) else panel[1]
            members = [m if isinstance(m, str) else names[m] for m in listed]
            if names[k] in members and any(name in members for name in have):
                amount = panel[names[k]] if isinstance(panel, dict) else amount - panel[0]
        paid += amount
        have.append(names[k])
    return paid


def check_no_peeking(policy: Any, X: Any, *, seed: int = 0, rounds: int = 3) -> None:
    """Values that were not acquired are exchanged for others: nothing may change, to the bit."""
    rng = np.random.default_rng(seed)
    result = policy.acquire(X)
    hidden = ~result.acquired & ~missing(X)
    for _ in range(rounds):
        same(policy.acquire(scrambled(X, hidden, rng)), result)


def check_unavailable(policy: Any, X: Any, *, seed: int = 0) -> None:
    """With values removed from X the promises still hold, and nothing there is acquired."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(shape(X)) < 0.3
    gaps[:3] = np.array([[True], [False], [True]])
    punched = with_missing(X, gaps)
    check_result(policy, punched, policy.acquire(punched))
    check_no_peeking(policy, punched, seed=seed, rounds=1)


def check_known(policy: Any, X: Any, *, seed: int = 0) -> None:
    """Known values cost nothing, are not acquired and open their panels; the rest is not read."""
    rng = np.random.default_rng(seed)
    there = ~missing(X)
    nothing = np.zeros(shape(X), dtype=np.bool_)
    same(policy.acquire(X, known=nothing), policy.acquire(X))
    everything = policy.acquire(X, known=there)
    assert not everything.acquired.any()
    assert not everything.cost.any()
    some = there & (rng.random(shape(X)) < 0.4)
    result = policy.acquire(X, known=some)
    names = result.names
    assert not np.any(result.acquired & some), "acquired what is known"
    assert not np.any(result.acquired & ~there), "acquired what is not available"
    for row, known in enumerate(some):
        listed = result.order[row][result.order[row] >= 0]
        assert set(listed) == set(np.flatnonzero(result.acquired[row]))
        paid = price(policy.costs, names, listed, tuple(names[k] for k in np.flatnonzero(known)))
        np.testing.assert_allclose(result.cost[row], paid, rtol=1e-9, atol=1e-9)
    hidden = ~result.acquired & ~some & there
    same(policy.acquire(scrambled(X, hidden, rng), known=some), result)
    # One mask for all rows is that mask for each of them.
    column = there.all(axis=0)
    together = policy.acquire(X, known=column)
    same(together, policy.acquire(X, known=np.tile(column, (len(together), 1))))


def check_consultation(policy: Any, X: Any, *, seed: int = 0) -> None:
    """Asked step by step, with missing and known values, it does what `acquire` does.

    What is not available is said at the start, as a table says it.
    """
    rng = np.random.default_rng(seed)
    punched = with_missing(X, rng.random(shape(X)) < 0.25)
    there = ~missing(punched)
    names = np.array(policy.encoder_.names)
    for known in (np.zeros(shape(X), dtype=np.bool_), there & (rng.random(shape(X)) < 0.3)):
        result = policy.acquire(punched, known=known)
        walks: list[list[Any]] = []
        for row, values in enumerate(records(punched)):
            start = {str(name): values[name] for name in names[known[row]]}
            consultation, asked = policy.consultation(start), []
            if not there[row].all():
                consultation.unavailable(*names[~there[row]].tolist())
            taken = []
            while isinstance(step := consultation.next(), Acquire):
                consultation.observe({name: values[name] for name in step.covariates})
                asked += step.covariates
                taken.append(step)
                # What is not expected to save anything is asked for a reason that is stated.
                assert step.explanation.expected_saving > 0 or step.explanation.because
            walks.append([*taken, step])
            assert tuple(asked) == result.covariates(row)
            assert step.label == result.label[row]
            p = result.probability[row]
            if p.ndim:
                each = step.explanation.probabilities
                np.testing.assert_allclose(list(each.values()), p, rtol=1e-6, atol=1e-9)
                p = p[policy.classes_.tolist().index(step.label)]
            np.testing.assert_allclose(step.probability, p, rtol=1e-9)
            np.testing.assert_allclose(step.cost, result.cost[row], atol=1e-9)
            np.testing.assert_allclose(
                step.expected_cost, result.expected_cost[row], rtol=1e-9, atol=1e-9
            )
            assert consultation.paid == step.cost
        check_next(policy, punched, known, walks, result)


def check_next(policy: Any, X: Any, known: Bools, walks: list[list[Any]], result: Any) -> None:
    """Asked for all rows at once, again and again, it takes every step of their consultations."""
    there, rows = ~missing(X), range(len(known))
    have, spent = known.copy(), np.zeros(len(known))
    every = policy.classes_.tolist()
    for number in range(max(map(len, walks)) + 1):
        walk = [steps[min(number, len(steps) - 1)] for steps in walks]
        paid = np.array([step.explanation.paid for step in walk])
        found = policy.next(
            with_missing(X, ~have), known=known, unavailable=~there, paid=paid, keys=[0] * len(walk)
        )
        labels = [step.explanation.label for step in walk]
        assert found.label.tolist() == labels
        asked = [getattr(step, "covariates", ()) for step in walk]
        assert [found.covariates(row) for row in rows] == asked
        assert found.stops.tolist() == [not covariates for covariates in asked]
        costs = [step.cost if isinstance(step, Acquire) else 0.0 for step in walk]
        np.testing.assert_allclose(found.cost, costs, atol=1e-9)
        p = found.probability
        p = p if p.ndim == 1 else p[rows, [every.index(label) for label in labels]]
        np.testing.assert_allclose(p, [s.explanation.probability for s in walk], rtol=1e-6)
        scale = np.abs(policy.cost_table_.matrix).max()
        stop = [step.explanation.stop_now for step in walk]
        np.testing.assert_allclose(found.expected_cost, stop, rtol=1e-6, atol=1e-9 * scale)
        for row in rows:
            new = found.order[row][found.order[row] >= 0]
            have[row, new] = True
        spent += found.cost
    assert found.stops.all()
    np.testing.assert_array_equal(have & ~known, result.acquired)
    np.testing.assert_array_equal(found.label, result.label)
    np.testing.assert_allclose(spent, result.cost, atol=1e-9)
    if policy.cost_table_.excess is None and policy.cost_table_.immediate is None:
        # By the price list alone it is the same.
        plain = policy.next(
            with_missing(X, ~have), known=known, unavailable=~there, keys=[0] * len(X)
        )
        np.testing.assert_allclose(plain.paid, result.cost, atol=1e-9)
        assert plain.stops.all()


def check_pickle(policy: Any, X: Any, result: Any) -> None:
    """A pickle decides the same, to the bit, and does not hold the training table."""
    data = pickle.dumps(policy)
    same(pickle.loads(data).acquire(X), result)
    same(copy.deepcopy(policy).acquire(X), result)
    frame = nw.from_native(X, eager_only=True)
    numbers = np.column_stack([c.to_numpy() for c in frame.iter_columns() if c.dtype.is_float()])
    # However the table is laid out, neighbours in it stand side by side in no pickled array.
    by_column = [pair for column in numbers.T for pair in pairwise(column)]
    in_order = [pair for column in numbers.T for pair in pairwise(np.sort(column)[5:-5])]
    by_row = [pair for row in numbers for pair in pairwise(row)]
    for pairs in (by_column, in_order, by_row):
        found = [struct.pack("<2d", *pair) in data for pair in pairs if np.isfinite(pair).all()]
        assert len(found) > 100, "too few numbers to show anything"
        assert sum(found) < 0.1 * len(found), "the pickle holds training values"


def check_parameters(make: Any, X: Any, y: Any) -> None:
    """Every declared constraint refuses a wrong value by its name, and nothing is fitted."""
    parameters, constraints = set(make().get_params()), make().constraints
    assert set(constraints) <= parameters
    assert parameters - set(constraints) <= {"costs", "joint"}
    wrong = [object(), float("nan"), float("inf"), -1, "no such word", True, [], np.full(2, -1.0)]
    for name, value in product(constraints, wrong):
        if name == "n_jobs" and isinstance(value, int):
            value = 0  # joblib takes -1 for every core
        policy = make(**{name: value})
        before = set(vars(policy))
        with pytest.raises(InvalidInputError) as refused:
            policy.fit(X, y)
        assert refused.value.parameter.partition("[")[0] == name
        assert set(vars(policy)) == before, "a refused fit leaves something behind"


def check_face(policy: Any, X: Any, y: Any, result: Any) -> None:
    """predict and predict_proba tell of the same simulation, row by row as for all at once."""
    np.testing.assert_array_equal(policy.predict(X), result.label)
    proba = policy.predict_proba(X)
    given = proba if result.probability.ndim == 2 else proba[:, 1]
    np.testing.assert_array_equal(given, result.probability)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert policy.score(X, y) == np.mean(np.asarray(y) == result.label)
    some = np.arange(0, shape(X)[0], 7)
    part = policy.acquire(rows(X, some))
    np.testing.assert_array_equal(part.acquired, result.acquired[some])
    np.testing.assert_array_equal(part.label, result.label[some])
    np.testing.assert_allclose(part.probability, result.probability[some], rtol=1e-9, atol=1e-12)


def check_fitted(policy: Any) -> None:
    """Whatever tells of a fitted policy asks every one of them alike: nothing is probed for."""
    assert policy.unwrapped.chosen is not None
    assert policy.expected_cost_ is None or isinstance(policy.expected_cost_, float)
    model = policy.chosen.sequence_model
    assert (model is not None) >= policy.chosen.in_one_order
    if model is not None:
        assert policy.chosen.expected_cost_by_set_.shape == (len(model.sequence),)
    if policy.chosen.in_one_order:
        # A question that a tree asks is weighed where the tree is grown, and has no such figure.
        assert policy.chosen.expected_cost_ is not None
    asked = "certificate_ threshold_ false_negative_cost_ surcharges_ recall_estimate_ mean_spent_"
    for name in (
        *asked.split(),
        "cost_estimates_",
        "misfit_",
        "description_",
        "resolved_lookahead",
    ):
        assert hasattr(policy, name), name


def check_parameters_of_the_fit(policy: Any, X: Any) -> None:
    """What `set_params` makes of a fitted policy changes neither decisions nor card; no file."""
    card, before = model_card(policy), policy.acquire(X)
    kept = policy.get_params(deep=False)
    for name in set(kept) - {"verbose"}:
        policy.set_params(**{name: "nonsense"})
        assert json.dumps(model_card(policy)) == json.dumps(card), name
        same(policy.acquire(X), before)
        with tempfile.TemporaryDirectory() as folder:
            with pytest.raises(InvalidInputError, match="must have the parameters"):
                save(policy, Path(folder) / "model.adacos")
            assert not list(Path(folder).iterdir())
        policy.set_params(**{name: kept[name]})
    with tempfile.TemporaryDirectory() as folder:
        save(policy, Path(folder) / "model.adacos")
        assert json.dumps(model_card(load(Path(folder) / "model.adacos"))) == json.dumps(card)


def check_file(policy: Any, X: Any, result: Any) -> None:
    """Saved and loaded it decides the same, to the bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.adacos"
        save(policy, path)
        same(load(path).acquire(X), result)


def same(one: Any, other: Any, rounding: float = 0.0) -> None:
    """Two results are equal in every field, to the bit or, in numbers, to a relative rounding."""
    for field in FIELDS:
        found, expected = getattr(one, field), getattr(other, field)
        if rounding and found.dtype == np.float64:
            np.testing.assert_allclose(found, expected, rtol=rounding, err_msg=field)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=field)


# Tables of any kind


def shape(X: Any) -> tuple[int, int]:
    return X.shape


def missing(X: Any) -> Bools:
    """Where X has no value."""
    if isinstance(X, np.ndarray):
        return np.isnan(X)
    frame = nw.from_native(X, eager_only=True)
    return np.column_stack(
        [
            [value is None or value is pd.NA or value != value for value in frame[name].to_list()]
            for name in frame.columns
        ]
    )


def records(X: Any) -> list[dict[str, Any]]:
    """Each row as values by name."""
    if isinstance(X, np.ndarray):
        return [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    return list(nw.from_native(X, eager_only=True).iter_rows(named=True))


def rows(X: Any, which: NDArray[np.intp]) -> Any:
    if isinstance(X, np.ndarray):
        return X[which]
    return nw.from_native(X, eager_only=True)[which].to_native()


def scrambled(X: Any, where: Bools, rng: np.random.Generator) -> Any:
    """X with the values in the mask exchanged for available ones of other rows."""
    known = ~missing(X)
    source = np.tile(np.arange(len(where))[:, None], where.shape[1])
    for k in range(where.shape[1]):
        if known[:, k].any():
            drawn = rng.choice(np.flatnonzero(known[:, k]), len(where))
            source[:, k] = np.where(where[:, k], drawn, source[:, k])
    if isinstance(X, np.ndarray):
        return np.take_along_axis(X, source, axis=0)
    frame = nw.from_native(X, eager_only=True)
    columns = []
    for k, name in enumerate(frame.columns):
        column = frame[name][source[:, k].tolist()]
        if frame.implementation.is_pandas():
            column = nw.from_native(column.to_native().reset_index(drop=True), series_only=True)
        columns.append(column)
    changed = nw.from_dict({column.name: column for column in columns})
    return changed.to_native()


def with_missing(X: Any, gaps: Bools) -> Any:
    """X with the values in the mask removed."""
    if isinstance(X, np.ndarray):
        return np.where(gaps, np.nan, X)
    frame = nw.from_native(X, eager_only=True)
    if frame.implementation.is_pandas():
        return X.mask(gaps)
    kept = [
        nw.new_series(f"kept {k}", (~gaps[:, k]).tolist(), backend=frame.implementation)
        for k in range(gaps.shape[1])
    ]
    columns = [
        nw.when(nw.col(f"kept {k}")).then(nw.col(name)).alias(name)
        for k, name in enumerate(frame.columns)
    ]
    return frame.with_columns(*kept).select(*columns).to_native()
