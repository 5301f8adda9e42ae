"""What every policy must do, whatever it is; used for ours and for the rivals.

`check_policy(estimator, X, y)` fits the estimator and raises an AssertionError at the first promise
that is broken. `check_result` is the part about one result, for use in property tests.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from adacos import Costs, load, save

Bools = NDArray[np.bool_]

FIELDS = ("label", "probability", "acquired", "order", "cost", "stage", "expected_cost")


def check_policy(estimator: Any, X: Any, y: Any, *, seed: int = 0, saved: bool = True) -> None:
    """Fit `estimator` on (X, y) and check everything a policy promises.

    X may be an array or a data frame and hold missing values. `saved` says whether the policy can
    be written to a file.
    """
    policy = clone(estimator).fit(X, y)
    result = policy.acquire(X)
    check_result(policy, X, result)
    check_no_peeking(policy, X, seed=seed)
    check_unavailable(policy, X, seed=seed)
    check_face(policy, X, y, result)
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
    p = result.probability
    risk = np.minimum(
        (1 - p) * matrix[0, 0] + p * matrix[1, 0], (1 - p) * matrix[0, 1] + p * matrix[1, 1]
    )
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(
        result.expected_cost, result.cost + risk, rtol=1e-9, atol=1e-9 * scale
    )


def price(costs: Costs | None, names: tuple[str, ...], order: Any) -> float:
    """What acquiring in this order costs: the first of a panel pays in full, later ones less."""
    if costs is None or costs.covariates is None:
        return 0.0
    by_name = costs.covariates
    if not isinstance(by_name, dict):
        by_name = dict(zip(names, by_name, strict=True))
    paid, have = 0.0, []
    for k in order:
        paid += by_name[names[k]]
        for shared, members in costs.panels.values():
            members = [m if isinstance(m, str) else names[m] for m in members]
            if names[k] in members and any(name in members for name in have):
                paid -= shared
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
    """With holes punched into X the promises still hold, and nothing there is acquired."""
    rng = np.random.default_rng(seed)
    holes = rng.random(shape(X)) < 0.3
    holes[:3] = np.array([[True], [False], [True]])
    punched = with_holes(X, holes)
    check_result(policy, punched, policy.acquire(punched))
    check_no_peeking(policy, punched, seed=seed, rounds=1)


def check_face(policy: Any, X: Any, y: Any, result: Any) -> None:
    """predict and predict_proba tell of the same simulation, row by row as for all at once."""
    np.testing.assert_array_equal(policy.predict(X), result.label)
    proba = policy.predict_proba(X)
    np.testing.assert_array_equal(proba[:, 1], result.probability)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert policy.score(X, y) == np.mean(np.asarray(y) == result.label)
    some = np.arange(0, shape(X)[0], 7)
    part = policy.acquire(rows(X, some))
    np.testing.assert_array_equal(part.acquired, result.acquired[some])
    np.testing.assert_array_equal(part.label, result.label[some])
    np.testing.assert_allclose(part.probability, result.probability[some], rtol=1e-9, atol=1e-12)


def check_file(policy: Any, X: Any, result: Any) -> None:
    """Saved and loaded it decides the same, to the bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.adacos"
        save(policy, path)
        same(load(path).acquire(X), result)


def same(one: Any, other: Any) -> None:
    """Two results are equal in every field, to the bit."""
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


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


def with_holes(X: Any, holes: Bools) -> Any:
    """X with the values in the mask removed."""
    if isinstance(X, np.ndarray):
        return np.where(holes, np.nan, X)
    frame = nw.from_native(X, eager_only=True)
    if frame.implementation.is_pandas():
        return X.mask(holes)
    kept = [
        nw.new_series(f"kept {k}", (~holes[:, k]).tolist(), backend=frame.implementation)
        for k in range(holes.shape[1])
    ]
    columns = [
        nw.when(nw.col(f"kept {k}")).then(nw.col(name)).alias(name)
        for k, name in enumerate(frame.columns)
    ]
    return frame.with_columns(*kept).select(*columns).to_native()
