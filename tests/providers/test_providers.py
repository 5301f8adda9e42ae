"""Providers: called for the rows that need them, again where they fail, and paid once."""

from __future__ import annotations

import asyncio
import time
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from adacos import AdaCOSClassifier, BranchingClassifier, COSClassifier, Costs, Provider
from adacos.exceptions import InvalidInputError, ProviderWarning
from adacos.rivals import AdaptGbrtClassifier, DWSMClassifier
from adacos.tables.columns import ColumnTable
from tests import policy_checks
from tests.providers.sources import NAMES, Source, emptied, sources
from tests.rivals.problems import MIXED_COSTS, mixed_table

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}
pytestmark = pytest.mark.filterwarnings("ignore:The positive class")


def same(one: Any, other: Any) -> None:
    """Rows that are answered in batches of another size may be rounded otherwise."""
    policy_checks.same(one, other, rounding=1e-12)


def delivered_once(source: Source, acquired: np.ndarray) -> bool:
    """Whether each row that acquired the covariate, and no other, was sent it, once."""
    return dict(source.delivered) == dict.fromkeys(np.flatnonzero(acquired).tolist(), 1)


@pytest.fixture(scope="module")
def X() -> Any:
    """Complete rows."""
    return mixed_table()[0].dropna().reset_index(drop=True)


@pytest.fixture(scope="module")
def policy() -> Any:
    return AdaCOSClassifier(MIXED_COSTS, **QUICK).fit(*mixed_table())


@pytest.fixture(scope="module")
def free_blood() -> Any:
    """A policy that asks everyone for one covariate at least."""
    costs = Costs({**MIXED_COSTS.covariates, "blood": 0.0}, misclassification=[[0, 60], [60, 0]])
    return AdaCOSClassifier(costs, **QUICK).fit(*mixed_table())


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdaCOSClassifier(MIXED_COSTS, **QUICK),
        lambda: AdaCOSClassifier(MIXED_COSTS, budget=4.0, lookahead="dynamic", **QUICK),
        lambda: COSClassifier(MIXED_COSTS, **QUICK),
        lambda: BranchingClassifier(MIXED_COSTS, max_depth=2, **QUICK),
        lambda: DWSMClassifier(MIXED_COSTS, n_rounds=2, n_states=400),
        lambda: AdaptGbrtClassifier(MIXED_COSTS, n_trees=6, full_fractions=(0.3,)),
    ],
    ids=["adacos", "dynamic", "cos", "branching", "dwsm", "adapt"],
)
def test_fetched_values_lead_where_given_ones_do(make: Any, X: Any) -> None:
    """And nothing is fetched that is not acquired, nor anything twice."""
    fitted = make().fit(*mixed_table())
    expected, fetch = fitted.acquire(X), sources(X)
    same(fitted.acquire(emptied(X), providers=fetch), expected)
    for k, name in enumerate(NAMES):
        assert delivered_once(fetch[name], expected.acquired[:, k])
    # Each provider is called for all rows that wait for it together, not row by row.
    assert sum(source.calls for source in fetch.values()) <= len(NAMES) * (len(NAMES) + 1)


def test_what_the_source_does_not_have_is_not_available(policy: Any) -> None:
    """As in a consultation in which the value asked for is said to be unavailable."""
    incomplete = mixed_table()[0].head(60)
    fetch = sources(incomplete.astype(object).where(incomplete.notna(), None))
    result = policy.acquire(emptied(incomplete), providers=fetch)
    assert not np.any(result.acquired & incomplete.isna().to_numpy())
    assert result.failures == ()
    for row in range(len(incomplete)):
        consultation = policy.consultation()
        while hasattr(step := consultation.next(), "covariates"):
            for name in step.covariates:
                value = incomplete[name][row]
                if pd.isna(value):
                    consultation.unavailable(name)
                else:
                    consultation.observe({name: value})
        assert step.label == result.label[row]
        np.testing.assert_allclose(step.probability, result.probability[row])
        np.testing.assert_allclose(step.cost, result.cost[row])


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("blood", pd.NA), ("blood", pd.NaT), ("blood", np.float32("nan")), ("kind", pd.NA)],
)
def test_every_kind_of_no_value(name: str, nothing: Any, X: Any) -> None:
    """A value that is none is not taken for a category that nobody has seen, and costs nothing."""
    costs = Costs({**MIXED_COSTS.covariates, name: 0.0}, misclassification=[[0, 60], [60, 0]])
    policy = AdaCOSClassifier(costs, **QUICK).fit(*mixed_table())
    values = X[name].astype(object).where(np.arange(len(X)) % 2 == 0, None)
    expected = policy.acquire(X.drop(columns=name), providers={name: Source(values)})
    source = Source([nothing if value is None else value for value in values])
    result = policy.acquire(X.drop(columns=name), providers={name: source})
    assert result.failures == ()
    same(result, expected)
    with pytest.raises(InvalidInputError, match="unavailable"):
        policy.consultation().observe({name: nothing})


@pytest.mark.parametrize("kind", ["pandas", "polars", "columns", "numpy"])
def test_tables_without_the_columns(kind: str, X: Any) -> None:
    X = X.drop(columns="kind")
    y = (X["blood"] + X["sugar"] + X["age"] > 0).astype(int)
    costs = Costs([1.0, 3.0, 4.0, 2.0], false_positive=60, false_negative=60)
    whole = X.to_numpy() if kind == "numpy" else X
    fitted = AdaCOSClassifier(costs, **QUICK).fit(whole, y)
    rest = X.drop(columns=["blood", "sugar"])
    given: Any = {
        "pandas": lambda: rest,
        "polars": lambda: pl.from_pandas(rest),
        "columns": lambda: ColumnTable({name: rest[name].to_numpy() for name in rest}),
        "numpy": lambda: X.assign(blood=np.nan, sugar=np.nan).to_numpy(),
    }[kind]()
    first, second = ("x1", "x2") if kind == "numpy" else ("blood", "sugar")
    kinds = set()

    def blood(request: Any) -> Any:
        kinds.add(type(request.rows))
        return X["blood"].to_numpy()[request.index]

    def sugar(request: Any) -> Any:
        assert list(request.fetched) == [first]
        return X["sugar"][request.index]

    result = fitted.acquire(given, providers={first: blood, second: sugar})
    same(result, fitted.acquire(whole))
    assert result.acquired[:, 1:3].any()
    assert kinds <= {type(given)}


# Providers that fail


def test_a_call_that_fails_is_repeated_and_paid_once(X: Any, policy: Any) -> None:
    """Every third call fails, whatever it is for."""
    expected = policy.acquire(X)
    fetch = sources(X, fails=lambda call: call % 3 == 0)
    batches = {name: Provider(source, batch_size=7) for name, source in fetch.items()}
    result = policy.acquire(emptied(X), providers=batches)
    same(result, expected)
    assert result.failures == ()
    assert any(call.attempts > 1 for call in result.calls)
    for k, name in enumerate(NAMES):
        assert delivered_once(fetch[name], expected.acquired[:, k])
        calls = [call for call in result.calls if call.covariate == name]
        assert sum(call.attempts for call in calls) == fetch[name].calls
        # A repeated call keeps its key, by which a provider knows it again.
        assert len(set(fetch[name].keys)) == len(calls)


def test_a_provider_that_fails_for_good(X: Any, policy: Any) -> None:
    """Its rows go on without the covariate and do not pay for it, the others as ever."""
    expected = policy.acquire(X)
    share = expected.acquired.mean(axis=0)
    some = next(k for k in range(5) if 0 < share[k] < 1)
    fetch = sources(X)
    fetch[NAMES[some]] = Source(X[NAMES[some]], fails=lambda call: True)
    with pytest.warns(ProviderWarning, match=f"{NAMES[some]!r} raised ConnectionError: the line"):
        result = policy.acquire(emptied(X), providers=fetch)
    (failure, *more) = result.failures
    assert {call.covariate for call in result.failures} == {NAMES[some]}
    assert failure.attempts == 3
    assert fetch[NAMES[some]].calls == 3 * (1 + len(more))
    assert not result.acquired[:, some].any()
    lost = np.unique(np.concatenate([call.index for call in result.failures]))
    np.testing.assert_array_equal(lost, np.flatnonzero(expected.acquired[:, some]))
    others = np.setdiff1d(np.arange(len(X)), lost)
    same(result.rows(others), expected.rows(others))
    np.testing.assert_array_equal(result.cost, policy.cost_table_.of_order(result.order))


def test_one_bad_batch_leaves_the_others_alone(X: Any, free_blood: Any) -> None:
    def fetch(request: Any) -> Any:
        if 3 in request.index:
            raise OSError("row 3 is cursed")
        return X["blood"].to_numpy()[request.index]

    provider = Provider(fetch, batch_size=5, retries=0)
    with pytest.warns(ProviderWarning, match=r"1 of its calls failed for good\)\. For 5 rows"):
        result = free_blood.acquire(X.drop(columns="blood"), providers={"blood": provider})
    others = np.setdiff1d(np.arange(len(X)), np.arange(5))
    same(result.rows(others), free_blood.acquire(X).rows(others))


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (lambda request: 3.5, "returned float in place of a list or an array of"),
        (lambda request: "abc", "returned str in place of"),
        (lambda request: {0: 1.0}, "returned dict in place of"),
        (lambda request: None, "returned NoneType in place of"),
        (lambda request: [1.0], "returned 1 values for"),
        (lambda request: ["high"] * len(request), "returned 'high': blood needs a finite number"),
        (lambda request: [float("inf")] * len(request), "returned inf"),
        (lambda request: [[1.0, 2.0]] * len(request), "blood needs a finite number"),
    ],
)
def test_wrong_answers_are_reported_and_not_asked_again(
    answer: Any, reported: str, X: Any, free_blood: Any
) -> None:
    """What was delivered, however wrong, may have been charged."""
    calls = []

    def fetch(request: Any) -> Any:
        calls.append(request.attempt)
        return answer(request)

    with pytest.warns(ProviderWarning, match="The provider of 'blood' ") as warned:
        result = free_blood.acquire(X.drop(columns="blood"), providers={"blood": fetch})
    assert reported in str(warned[0].message)
    assert calls == [1]
    same(result, free_blood.acquire(X.assign(blood=np.nan)))


def test_a_slow_provider_is_given_up_and_not_called_again(X: Any, policy: Any) -> None:
    calls = []

    def slow(request: Any) -> Any:
        calls.append(len(request))
        time.sleep(1.0)
        return X["age"].to_numpy()[request.index]

    async def slow_too(request: Any) -> Any:
        calls.append(len(request))
        await asyncio.sleep(60.0)

    for function in (slow, slow_too):
        calls.clear()
        begun = time.perf_counter()
        with pytest.warns(ProviderWarning, match=r"'age' did not return within 0\.05 s"):
            result = policy.acquire(
                X.drop(columns="age"), providers={"age": Provider(function, timeout=0.05)}
            )
        assert time.perf_counter() - begun < 30
        assert len(calls) == 1
        same(result, policy.acquire(X.assign(age=np.nan)))


# Async providers and the cache


def test_async_providers_work_side_by_side(X: Any) -> None:
    free = AdaCOSClassifier(Costs(dict.fromkeys(NAMES, 0.0)), **QUICK).fit(*mixed_table())
    running, most = 0, 0

    def provider(name: str) -> Any:
        async def fetch(request: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.02)
            running -= 1
            if request.attempt == 1 and name == "age":
                raise ConnectionError
            return [X[name][row] for row in request.index]

        return Provider(fetch, batch_size=50)

    fetch = {name: provider(name) for name in NAMES}
    result = free.acquire(emptied(X), providers=fetch)
    same(result, free.acquire(X))
    assert most >= len(NAMES)

    async def inside() -> Any:
        """A notebook has a loop running already."""
        return free.acquire(emptied(X), providers=fetch)

    same(asyncio.run(inside()), result)


def test_what_is_in_the_cache_is_not_fetched_again(X: Any, policy: Any) -> None:
    cache: dict[Any, Any] = {}
    keys = [f"patient {row}" for row in range(len(X))]
    first = policy.acquire(emptied(X), providers=sources(X), cache=cache, keys=keys)
    assert len(cache) == first.acquired.sum()
    again = sources(X)
    second = policy.acquire(emptied(X), providers=again, cache=cache, keys=keys)
    same(second, first)
    assert sum(source.calls for source in again.values()) == 0
    assert {call.attempts for call in second.calls} == {0}
    # A run that broke off goes on where it was: what is lost is fetched, and nothing else.
    lost = list(cache)[::2]
    for key in lost:
        del cache[key]
    same(policy.acquire(emptied(X), providers=again, cache=cache, keys=keys), first)
    assert sum(source.delivered.total() for source in again.values()) == len(lost)


def test_rows_of_one_key_are_fetched_once(X: Any, policy: Any) -> None:
    twice = pd.concat([X, X], ignore_index=True)
    fetch = sources(twice)
    keys = list(range(len(X))) * 2
    same(policy.acquire(emptied(twice), providers=fetch, keys=keys), policy.acquire(twice))
    assert all(row < len(X) for source in fetch.values() for row in source.delivered)


def test_three_classes() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    y = (rows + 0.5 * rng.normal(size=(200, 3))).argmax(axis=1)
    costs = Costs([1.0, 2.0, 1.0], misclassification=50.0 * (1 - np.eye(3)))
    fitted = AdaCOSClassifier(costs, **QUICK).fit(rows, y)
    fetch = {f"x{k}": Source(rows[:, k]) for k in range(3)}
    same(fitted.acquire(np.full_like(rows, np.nan), providers=fetch), fitted.acquire(rows))


def test_values_in_the_table_are_not_fetched(X: Any, policy: Any) -> None:
    half = X.copy()
    half.loc[::2, "blood"] = np.nan
    fetch = sources(X, ["blood"])
    same(policy.acquire(half, providers=fetch), policy.acquire(X))
    assert all(row % 2 == 0 for row in fetch["blood"].delivered)
    known = np.tile(np.array(X.columns) == "age", (len(X), 1))
    same(policy.acquire(half, known=known, providers=fetch), policy.acquire(X, known=known))


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("providers", {"providers": [len]}),
        ("providers", {"providers": {"mri": len}}),
        ("providers", {"providers": {"age": 3}}),
        ("cache", {"providers": {}, "cache": {}}),
        ("cache", {"providers": {}, "cache": [], "keys": range(100)}),
        ("keys", {"providers": {}, "keys": [1, 2]}),
        ("keys", {"providers": {}, "keys": 3}),
        ("keys[0]", {"providers": {}, "keys": [[1]] * 100}),
        ("keys[0]", {"providers": {}, "keys": [None] * 100}),
    ],
)
def test_wrong_usage_is_refused_by_name(
    parameter: str, options: dict[str, Any], X: Any, policy: Any
) -> None:
    X = X.head(100)
    with pytest.raises(InvalidInputError) as refused:
        policy.acquire(X, **options)
    assert refused.value.parameter == parameter


def test_values_in_a_cache_from_elsewhere(X: Any, free_blood: Any) -> None:
    """NaN in a cache is no value; what cannot be one is told with its key, before any call."""
    rows, source = X.drop(columns="blood"), Source(X["blood"])
    options = {"providers": {"blood": source}, "keys": (f"p{row}" for row in range(len(X)))}
    nothing, nan = ({("blood", f"p{row}"): none for row in range(9)} for none in (None, np.nan))
    result = free_blood.acquire(rows, **options, cache=nan)
    options["keys"] = [f"p{row}" for row in range(len(X))]
    same(result, free_blood.acquire(rows, **options, cache=nothing))
    calls = source.calls
    with pytest.raises(InvalidInputError, match=r"cache: .* 'blood', key 'p7'.*received high"):
        free_blood.acquire(rows, **options, cache={("blood", "p7"): "high"})
    assert source.calls == calls


def test_wrong_options_of_a_provider() -> None:
    for parameter, value in {"batch_size": 0, "retries": -1, "wait": -1.0, "timeout": 0.0}.items():
        with pytest.raises(InvalidInputError, match=parameter):
            Provider(len, **{parameter: value})
    assert repr(Provider(len)) == "Provider(len, batch_size=None, retries=2)"


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_was_delivered_before_the_run_broke_off_is_in_the_cache(
    kind: str, X: Any, free_blood: Any
) -> None:
    source, cache = Source(X["blood"]), {}

    def interrupted(request: Any) -> list[Any]:
        if source.calls == 3:
            raise KeyboardInterrupt
        return source(request)

    async def interrupted_later(request: Any) -> list[Any]:
        if source.calls == 3:
            await asyncio.sleep(0.01)
            raise KeyboardInterrupt
        return source(request)

    function = interrupted if kind == "plain" else interrupted_later
    rows, keys = X.drop(columns="blood"), range(len(X))
    providers = {"blood": Provider(function, batch_size=10)}
    with pytest.raises(KeyboardInterrupt):
        free_blood.acquire(rows, providers=providers, cache=cache, keys=keys)
    assert len(cache) == 30
    result = free_blood.acquire(rows, providers={"blood": source}, cache=cache, keys=keys)
    same(result, free_blood.acquire(X))
    assert set(source.delivered.values()) == {1}


def test_a_service_that_times_out_itself_is_asked_again(X: Any, policy: Any) -> None:
    source = Source(X["blood"], lambda call: call == 1)

    async def service(request: Any) -> list[Any]:
        try:
            return source(request)
        except ConnectionError:
            raise TimeoutError("the service gave up") from None

    result = policy.acquire(
        X.drop(columns="blood"), providers={"blood": Provider(service, timeout=30)}
    )
    same(result, policy.acquire(X))
    assert not result.failures


@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_provider_that_is_cancelled_is_asked_again(
    kind: str, timeout: float | None, X: Any, free_blood: Any
) -> None:
    """Its own work was cancelled, and not the run."""
    source = Source(X["blood"], lambda call: call == 1)

    def cancelled(request: Any) -> list[Any]:
        try:
            return source(request)
        except ConnectionError:
            raise asyncio.CancelledError from None

    async def cancelled_later(request: Any) -> list[Any]:
        await asyncio.sleep(0)
        return cancelled(request)

    provider = Provider(cancelled if kind == "plain" else cancelled_later, timeout=timeout)
    result = free_blood.acquire(X.drop(columns="blood"), providers={"blood": provider})
    same(result, free_blood.acquire(X))
    assert result.calls[0].attempts == 2


def test_a_run_that_is_cancelled_ends(X: Any, free_blood: Any) -> None:
    async def slow(request: Any) -> list[Any]:
        asyncio.current_task().cancel()
        await asyncio.sleep(30)
        raise AssertionError

    with pytest.raises(asyncio.CancelledError):
        free_blood.acquire(X.drop(columns="blood"), providers={"blood": slow})


@pytest.mark.parametrize(
    "change", [lambda index: index.sort(), lambda index: np.add(index, 1, out=index)]
)
def test_rows_of_a_request_cannot_be_changed(change: Any, X: Any, free_blood: Any) -> None:
    """A provider that tries fails; the values of one that copies them go to their rows."""
    rows = X.drop(columns="blood")

    def in_place(request: Any) -> Any:
        change(request.index)
        return X["blood"].to_numpy()[request.index]

    def in_copy(request: Any) -> Any:
        change(request.index.copy())
        return X["blood"].to_numpy()[request.index]

    with pytest.warns(ProviderWarning, match="read-only"):
        free_blood.acquire(rows, providers={"blood": in_place})
    same(free_blood.acquire(rows, providers={"blood": in_copy}), free_blood.acquire(X))


@pytest.mark.parametrize("is_async", [False, True])
def test_what_an_attempt_changes_is_its_own(is_async: bool, X: Any, free_blood: Any) -> None:
    """Places that were made writable, rows and values fetched before: the run and the next attempt
    keep theirs."""
    rows, seen = X.drop(columns="blood"), []

    def fetch(request: Any) -> Any:
        seen.append((request.index.copy(), request.rows.copy(), dict(request.fetched)))
        values = X["blood"].to_numpy()[request.index]
        request.index.setflags(write=True)
        request.index[:] = request.index[::-1].copy()
        request.rows.loc[:, "age"] = -1.0
        request.rows.index = request.rows.index[::-1]
        request.fetched.clear()
        if request.attempt == 1:
            raise ConnectionError
        return pd.Series(values, index=seen[-1][1].index)

    async def fetch_async(request: Any) -> Any:
        return fetch(request)

    result = free_blood.acquire(rows, providers={"blood": fetch_async if is_async else fetch})
    same(result, free_blood.acquire(X))
    (first, *_), (second, *_) = seen
    np.testing.assert_array_equal(first, second)
    pd.testing.assert_frame_equal(seen[0][1], seen[1][1])


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_a_series_goes_by_its_index(kind: str, X: Any) -> None:
    costs = Costs([0.0, 1.0, 1.0], misclassification=[[0, 60], [60, 0]])
    numbers = X[["blood", "age", "sugar"]].set_index(X.index + 1000)
    policy = COSClassifier(costs, **QUICK).fit(numbers.to_numpy(), np.arange(len(X)) % 2)
    if kind == "frame":
        policy = COSClassifier(costs, **QUICK).fit(numbers, np.arange(len(X)) % 2)
    rows = numbers.assign(blood=np.nan)
    rows = rows if kind == "frame" else rows.to_numpy()
    labels = numbers["blood"] if kind == "frame" else X["blood"]
    expected = policy.acquire(numbers if kind == "frame" else numbers.to_numpy())
    name = "blood" if kind == "frame" else "x0"

    def own(request: Any) -> Any:
        return labels.loc[request.rows.index if kind == "frame" else request.index]

    answers = {
        "in order": own,
        "backwards": lambda request: own(request).iloc[::-1],
        "shuffled": lambda request: own(request).sample(frac=1, random_state=0),
        "without an index": lambda request: pd.Series(own(request).to_list()),
    }
    for answer in answers.values():
        same(policy.acquire(rows, providers={name: answer}), expected)


@pytest.mark.parametrize(
    "index", [lambda rows: rows + 1, lambda rows: [rows[0]] * len(rows), lambda rows: rows[::-1]]
)
def test_a_series_of_other_rows_is_refused(index: Any, X: Any, free_blood: Any) -> None:
    """As is one that only counts, where rows are called by these numbers in another order."""
    rows = X.drop(columns="blood").iloc[::-1]
    of_labels = index(np.arange(len(X))[::-1])
    series = pd.Series(X["blood"].to_list(), index=of_labels)
    if list(of_labels) == list(range(len(X))):
        series = series.reset_index(drop=True)
    with pytest.warns(ProviderWarning, match="a series whose index is not that of the"):
        free_blood.acquire(rows, providers={"blood": lambda request: series})


@pytest.mark.parametrize(
    "bad",
    [
        "high",
        float("inf"),
        pytest.param(10**400, id="large"),
        pytest.param(10**5000, id="long"),
        [1.0],
    ],
)
def test_one_bad_value_leaves_the_others_alone(bad: Any, X: Any, free_blood: Any) -> None:
    def fetch(request: Any) -> list[Any]:
        return [bad if row == 3 else X["blood"][row] for row in request.index]

    rows, cache = X.drop(columns="blood"), {}
    options = {"cache": cache, "keys": range(len(X))}
    with pytest.warns(ProviderWarning, match=r"returned .* \(1 of its calls .* For 1 row it"):
        result = free_blood.acquire(rows, providers={"blood": fetch}, **options)
    incomplete = X.assign(blood=X["blood"].where(X.index != 3))
    same(result, free_blood.acquire(incomplete))
    assert [len(call.index) for call in result.calls] == [len(X) - 1, 1]
    assert sum(call.attempts for call in result.calls) == 1
    assert ("blood", 3) not in cache
    assert len(cache) == len(X) - 1


def test_a_cache_that_fails_is_reported(X: Any, free_blood: Any) -> None:
    class Failing(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            raise OSError("no space left")

    class Unreadable(dict[Any, Any]):
        def __contains__(self, key: Any) -> bool:
            raise TypeError("keys must be text")

    rows, providers = X.drop(columns="blood"), sources(X, ["blood"])
    for cache, reported in (
        (Failing(), "OSError: no space"),
        (Unreadable(), "TypeError: keys must"),
    ):
        with pytest.raises(InvalidInputError, match=rf"cache: must .*received {reported}"):
            free_blood.acquire(rows, providers=providers, cache=cache, keys=range(len(X)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_coroutine_that_nobody_awaits_is_reported(X: Any, policy: Any) -> None:
    async def service(request: Any) -> list[Any]:
        return [1.0] * len(request)

    with pytest.warns(ProviderWarning, match="pass the coroutine function itself"):
        policy.acquire(
            X.drop(columns="blood"), providers={"blood": lambda request: service(request)}
        )


class Odd:
    """A value that can be neither compared nor written."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __repr__(self) -> str:
        raise RuntimeError("not written")

    __str__ = __repr__


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unlisted:
    def tolist(self) -> list[Any]:
        raise Wordless


@pytest.mark.parametrize(
    ("bad", "reported"),
    [
        (Decimal("sNaN"), ""),
        (Decimal("NaN"), ""),
        (Decimal("Infinity"), "returned inf: blood needs"),
        (Odd(), "returned Odd that cannot be written: blood needs"),
    ],
)
def test_a_value_that_cannot_be_compared_or_written(
    bad: Any, reported: str, X: Any, free_blood: Any
) -> None:
    """The row has no value; the others have theirs, and the run ends as it does with None."""
    values = X["blood"].tolist()

    def source(request: Any, first: Any) -> list[Any]:
        return [first if row == 0 else values[row] for row in request.index.tolist()]

    rows = X.drop(columns="blood")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProviderWarning)
        expected = free_blood.acquire(rows, providers={"blood": lambda r: source(r, None)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = free_blood.acquire(rows, providers={"blood": lambda r: source(r, bad)})
    same(result, expected)
    assert [str(w.message) for w in caught if reported in str(w.message)] or not reported


def test_an_error_without_words_is_reported(X: Any, free_blood: Any) -> None:
    def fails(request: Any) -> Any:
        raise Wordless

    def gives_no_list(request: Any) -> Any:
        return Unlisted()

    rows = X.drop(columns="blood")
    for source, reported in (
        (fails, "raised Wordless, whose message cannot be written"),
        (gives_no_list, "returned Unlisted without a list of its values: Wordless"),
    ):
        with pytest.warns(ProviderWarning, match=reported):
            free_blood.acquire(rows, providers={"blood": source})


def test_decimals_are_numbers(X: Any, free_blood: Any) -> None:
    """As of a column NUMERIC of PostgreSQL."""
    exact = [Decimal(str(value)) for value in X["blood"].tolist()]
    source = {"blood": lambda request: [exact[row] for row in request.index.tolist()]}
    same(free_blood.acquire(X.drop(columns="blood"), providers=source), free_blood.acquire(X))
    steps = []
    for value in (exact[0], X["blood"].tolist()[0]):
        consultation = free_blood.consultation().observe(blood=value)
        assert consultation.values["blood"] == X["blood"][0]
        steps.append(repr(consultation.next()))
    assert steps[0] == steps[1]
    for bad in (Decimal("sNaN"), Decimal("-Infinity"), Odd()):
        with pytest.raises(InvalidInputError, match="blood: needs a finite number"):
            free_blood.consultation().observe(blood=bad)
