"""How providers are called: in batches, again if they fail, side by side if they are async.

A call that raises is repeated a bounded number of times, under the same key, by which a provider
knows that it is the same order. A call that returns something else than it was asked for, or that
does not return in time, is not repeated: it may have been charged.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import narwhals as nw

from adacos.exceptions import InvalidInputError, describe_error
from adacos.typing import Ints
from adacos.validation import integer, names_along, real


@dataclass(frozen=True)
class ProviderRequest:
    """What a provider is called with.

    Parameters
    ----------
    covariate : str
        The covariate that is asked for.
    index : ndarray of int
        Places of the rows in the table, read-only.
    rows : table
        A copy of these rows of the table, of the kind that was given.
    fetched : dict of str to list
        What providers returned for these rows before, by covariate; None where nothing was.
    key : str
        The same for every attempt of one call, and for no other call.
    attempt : int
        1 for the first.
    """

    covariate: str
    index: Ints
    rows: Any
    fetched: dict[str, list[Any]]
    key: str
    attempt: int = 1

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class ProviderCall:
    """The record of one call, with all its attempts, or of rows answered from the cache.

    Rows of a call whose values cannot be used have a record of their own, without attempts.

    Parameters
    ----------
    covariate : str
        The covariate that was asked for.
    index : ndarray of int
        Places of the rows in the table.
    attempts : int
        How often the provider was called; 0 for the cache and for values that cannot be used.
    seconds : float
        How long that took.
    error : str or None, default=None
        Why it failed for good; None if it did not.
    """

    covariate: str
    index: Ints
    attempts: int
    seconds: float
    error: str | None = None


class Provider:
    """A function that fetches or computes a covariate, and how it is called.

    Parameters
    ----------
    function : callable
        Called with a `ProviderRequest`; returns one value for each of its rows, in their order,
        None or NaN where there is none. A pandas series goes by its index, in any order. It may be
        a coroutine function.
    batch_size : int, default=None
        Most rows in one call; None for any number.
    retries : int, default=2
        How often a call that raises is repeated.
    wait : float, default=0.0
        Seconds between attempts.
    timeout : float, default=None
        Seconds after which a call is given up; None to wait for it.

    Examples
    --------
    >>> from adacos import Provider
    >>> Provider(lambda request: [21.5] * len(request), batch_size=100)
    Provider(<lambda>, batch_size=100, retries=2)
    """

    def __init__(
        self,
        function: Callable[[ProviderRequest], Any],
        *,
        batch_size: int | None = None,
        retries: int = 2,
        wait: float = 0.0,
        timeout: float | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidInputError(
                "providers",
                "each must be a function of a request, or a Provider",
                type(function).__name__,
                "For example providers={'mri': fetch_mri}.",
            )
        self.function = function
        self.batch_size = (
            None if batch_size is None else integer("batch_size", batch_size, at_least=1)
        )
        self.retries = integer("retries", retries, at_least=0)
        self.wait = real("wait", wait, at_least=0)
        self.timeout = None if timeout is None else real("timeout", timeout, above=0)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        call = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"Provider({name}, batch_size={self.batch_size}, retries={self.retries})"


@dataclass(frozen=True)
class Order:
    """One call to be made."""

    provider: Provider
    request: ProviderRequest


@dataclass(frozen=True)
class Delivery:
    """What came of a call: the values, one for each row, or None; and its record."""

    order: Order
    values: list[Any] | None
    call: ProviderCall


def order_of(provider: Provider, request: ProviderRequest) -> Order:
    """A new order, with a key of its own."""
    return Order(provider, replace(request, key=uuid4().hex))


def _attempted(order: Order, attempt: int) -> ProviderRequest:
    """What the provider is called with: copies, so that it changes what is its own and no more."""
    request = order.request
    index, rows = request.index.copy(), request.rows
    index.setflags(write=False)
    rows = rows.copy() if hasattr(rows, "copy") else rows  # others cannot be changed
    fetched = {name: list(values) for name, values in request.fetched.items()}
    return replace(request, index=index, rows=rows, fetched=fetched, attempt=attempt)


def deliver(orders: Iterable[Order]) -> Iterator[Delivery]:
    """Make all calls: the async ones side by side, the others one after the other.

    What was delivered is handed on before anything that breaks the run off, such as Ctrl-C.
    """
    orders = list(orders)
    for order in orders:
        if not order.provider.is_async:
            yield _call(order)
    waiting = [order for order in orders if order.provider.is_async]
    deliveries: dict[int, Delivery] = {}

    async def one(place: int) -> None:
        deliveries[place] = await _call_async(waiting[place])

    async def together() -> None:
        await asyncio.gather(*(one(place) for place in range(len(waiting))))

    if waiting:
        try:
            _in_new_loop(together)
        finally:
            yield from (deliveries[place] for place in sorted(deliveries))


def _call(order: Order) -> Delivery:
    """All attempts of one call of a plain function."""
    provider, started = order.provider, time.perf_counter()
    for attempt in range(1, provider.retries + 2):
        try:
            values = _within_time(provider, _attempted(order, attempt))
        except _TooSlow:
            return _failed(order, attempt, started, _too_slow(provider))
        except (Exception, asyncio.CancelledError) as error:
            failure = error
            if attempt <= provider.retries:
                time.sleep(provider.wait)
            continue
        return _checked(order, values, attempt, started)
    return _failed(order, attempt, started, _in_words(failure))


async def _call_async(order: Order) -> Delivery:
    """The same for a coroutine function."""
    provider, started = order.provider, time.perf_counter()
    for attempt in range(1, provider.retries + 2):
        limit = asyncio.timeout(provider.timeout)
        try:
            async with limit:
                values = await provider.function(_attempted(order, attempt))
        except (Exception, asyncio.CancelledError) as error:
            # A service that raises TimeoutError or CancelledError itself is another thing.
            if limit.expired():
                return _failed(order, attempt, started, _too_slow(provider))
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            failure = error
            if attempt <= provider.retries:
                await asyncio.sleep(provider.wait)
            continue
        return _checked(order, values, attempt, started)
    return _failed(order, attempt, started, _in_words(failure))


class _TooSlow(Exception):
    """A call was not waited for any longer."""


class _OtherRows(Exception):
    """A series is not of the rows that were asked for."""


def _within_time(provider: Provider, request: ProviderRequest) -> Any:
    """What the function returns; with a timeout it is waited for in a thread of its own."""
    if provider.timeout is None:
        return provider.function(request)
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["values"] = provider.function(request)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(provider.timeout)
    if "error" in outcome:
        raise outcome["error"]
    if "values" not in outcome:
        raise _TooSlow
    return outcome["values"]


def _in_new_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine function, in a thread of its own where a loop is running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work())
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


def _checked(order: Order, values: Any, attempts: int, started: float) -> Delivery:
    """The values as a list of the right length, or why they are none."""
    n = len(order.request)
    if inspect.iscoroutine(values):
        values.close()
        why = "returned a coroutine that nobody awaits; pass the coroutine function itself"
        return _failed(order, attempts, started, why)
    try:
        values = _listed(values, order.request)
    except _OtherRows as error:
        return _failed(order, attempts, started, str(error))
    except Exception as error:  # of what was returned, which is someone else's
        rule = f"returned {type(values).__name__} without a list of its values"
        return _failed(order, attempts, started, f"{rule}: {describe_error(error)}")
    if not isinstance(values, (list, tuple)):
        kind = type(values).__name__
        rule = f"returned {kind} in place of a list or an array of {n} values"
        return _failed(order, attempts, started, rule)
    if len(values) != n:
        return _failed(order, attempts, started, f"returned {len(values)} values for {n} rows")
    return Delivery(order, list(values), _record(order, attempts, started, None))


def _listed(values: Any, request: ProviderRequest) -> Any:
    """What was returned as a list, if it has one; else as it is."""
    if nw.dependencies.is_pandas_series(values):
        return _by_index(values, request)
    for name in ("to_list", "tolist"):
        if hasattr(values, name):
            return getattr(values, name)()
    return values


def _by_index(series: Any, request: ProviderRequest) -> list[Any]:
    """The values of a pandas series in the order of the rows, which are known by its index.

    An index that only counts from 0 means none, unless rows are called so too.
    """
    values, given = series.to_list(), series.index.to_list()
    rows = names_along(request.rows, "index") or request.index.tolist()
    if given == rows or len(given) != len(rows):
        return list(values)
    alike = set(given) == set(rows) and len(set(given)) == len(given)
    counts = given == list(range(len(rows)))
    if counts and not alike:
        return list(values)
    as_made = counts and isinstance(series.index, nw.dependencies.get_pandas().RangeIndex)
    if as_made or not alike:
        raise _OtherRows(
            f"returned a series whose index is not that of the {len(rows)} rows; "
            "give it the index of request.rows, or return a list"
        )
    by_label = dict(zip(given, values, strict=True))
    return [by_label[label] for label in rows]


def _failed(order: Order, attempts: int, started: float, why: str) -> Delivery:
    return Delivery(order, None, _record(order, attempts, started, why))


def _record(order: Order, attempts: int, started: float, error: str | None) -> ProviderCall:
    request, seconds = order.request, time.perf_counter() - started
    return ProviderCall(request.covariate, request.index, attempts, seconds, error)


def _too_slow(provider: Provider) -> str:
    return f"did not return within {provider.timeout:g} s"


def _in_words(error: BaseException) -> str:
    return f"raised {describe_error(error)}"
