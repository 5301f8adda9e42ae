"""Rows run through a policy whose covariates are fetched on the way.

Rows are followed until they stop or wait for values that are not there. Then each provider is
called with all rows that wait for it, and they continue with what they have. What a provider does
not deliver for good counts as not available for the row, and nothing is paid for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adacos.consultation.values import check_value, is_none
from adacos.decision import STOP, Decider, Rows, State
from adacos.engine import (
    AcquisitionResult,
    alike,
    among,
    budget_of,
    empty_trail,
    result_of,
    walk,
)
from adacos.exceptions import InvalidInputError, ProviderWarning, describe_error, shortened
from adacos.providers.calling import (
    Delivery,
    Order,
    Provider,
    ProviderCall,
    ProviderRequest,
    deliver,
    order_of,
)
from adacos.tables.encoder import TableEncoder, table_rows
from adacos.typing import Bools, Floats, Ints
from adacos.validation import as_written, choices

Cache = MutableMapping[tuple[str, Hashable], Any]


@dataclass(frozen=True, repr=False)
class ProvidedResult(AcquisitionResult):
    """What a policy did with each row, and which providers were called for it.

    Parameters
    ----------
    label, probability, acquired, order, cost, stage, expected_cost, names
        See `AcquisitionResult`.
    calls : tuple of ProviderCall
        Every call, in order; what came from the cache is a call without attempts.
    """

    calls: tuple[ProviderCall, ...] = ()

    @property
    def failures(self) -> tuple[ProviderCall, ...]:
        """The calls that failed for good."""
        return tuple(call for call in self.calls if call.error is not None)


class Desk:
    """Where values are ordered: the providers, what they delivered, and the record of it.

    Parameters
    ----------
    encoder : what was learned about the columns.
    providers : by covariate, functions or `Provider`.
    table : the rows as they were given.
    cache : values by covariate and key of the row.
    keys : the key of each row; rows with the same key have the same values.
    """

    def __init__(
        self,
        encoder: TableEncoder,
        providers: Mapping[str, Any],
        table: Any,
        cache: Cache | None,
        keys: Sequence[Hashable] | None,
    ) -> None:
        self.encoder, self.table = encoder, table
        self.providers = {
            encoder.names.index(name): own if isinstance(own, Provider) else Provider(own)
            for name, own in providers.items()
        }
        self.keys = None if keys is None else _checked_keys(keys, len(table))
        self.cache: Cache = {} if cache is None else cache
        self.calls: list[ProviderCall] = []
        self.fetched: dict[str, dict[int, Any]] = {name: {} for name in providers}

    def fetch(self, wanted: Mapping[int, Ints]) -> dict[int, dict[int, Any]]:
        """Values by covariate and row, of what is wanted; None where there is none."""
        orders: list[Order] = []
        for k, rows in wanted.items():
            orders += self._orders(k, rows)
        for delivery in deliver(orders):
            self._accept(delivery)
        return {
            k: {row: self._value(k, row) for row in rows.tolist()} for k, rows in wanted.items()
        }

    def _value(self, k: int, row: int) -> Any:
        """What was delivered for a row, or for another of the same key; None if nothing was."""
        name = self.encoder.names[k]
        if self.keys is None or row in self.fetched[name]:
            return self.fetched[name].get(row)
        with _naming_the_cache("hand a value over"):
            return self.cache.get((name, self.keys[row]))

    def _orders(self, k: int, rows: Ints) -> list[Order]:
        """Calls for the rows whose value is not in the cache, one row for each key."""
        name, provider = self.encoder.names[k], self.providers[k]
        values = self.fetched[name]
        if self.keys is not None:
            with _naming_the_cache("say what it holds"):
                there = [int(row) for row in rows if (name, self.keys[row]) in self.cache]
            values.update({row: self._cached(k, self.keys[row]) for row in there})
            if there:
                self.calls.append(ProviderCall(name, np.array(there, dtype=np.intp), 0, 0.0))
            first: dict[Hashable, int] = {}
            for row in rows:
                if int(row) not in values:
                    first.setdefault(self.keys[row], int(row))
            rows = np.array(list(first.values()), dtype=np.intp)
        size = provider.batch_size or max(len(rows), 1)
        parts = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
        return [order_of(provider, self._request(name, part)) for part in parts]

    def _cached(self, k: int, key: Hashable) -> Any:
        """A value in the cache; None if it means none."""
        name = self.encoder.names[k]
        with _naming_the_cache("hand a value over"):
            value = self.cache[name, key]
        if is_none(value):
            return None
        try:
            check_value(self.encoder, k, value)
        except InvalidInputError as error:
            rule = f"holds a value of {name!r}, key {key!r}, that {error.rule}"
            remedy = "Remove it from the cache, or give the model the cache it was filled with."
            raise InvalidInputError("cache", rule, value, remedy) from None
        return value

    def _request(self, name: str, rows: Ints) -> ProviderRequest:
        fetched = {
            other: [values.get(int(row)) for row in rows]
            for other, values in self.fetched.items()
            if other != name
        }
        return ProviderRequest(name, rows, table_rows(self.table, rows), fetched, key="")

    def _accept(self, delivery: Delivery) -> None:
        """Keep what was delivered, if it can be used, for these rows and all of the same key."""
        request = delivery.order.request
        k = self.encoder.names.index(request.covariate)
        if delivery.values is None:
            self.calls.append(delivery.call)
            return
        values = self.fetched[request.covariate]
        useless: dict[int, str] = {}
        for row, value in zip(request.index.tolist(), delivery.values, strict=True):
            value = None if is_none(value) else value
            if value is not None and (why := self._useless(k, value)):
                useless[row] = why
                continue
            values[row] = value
            if self.keys is not None:
                with _naming_the_cache("take a value"):
                    self.cache[request.covariate, self.keys[row]] = value
        reason = next(iter(useless.values()), None)
        if len(useless) < len(request):
            used = request.index[~np.isin(request.index, list(useless))]
            self.calls.append(replace(delivery.call, index=used))
            if useless:
                rows = np.array(list(useless), dtype=np.intp)
                self.calls.append(ProviderCall(request.covariate, rows, 0, 0.0, reason))
        else:
            self.calls.append(replace(delivery.call, error=reason))

    def _useless(self, k: int, value: Any) -> str:
        """Why a value that was delivered cannot be used; empty if it can."""
        try:
            check_value(self.encoder, k, value)
        except InvalidInputError as error:
            value = shortened(as_written(error.value))
            return f"returned {value}: {error.parameter} {error.rule}"
        return ""

    def encoded(self, k: int, value: Any) -> Floats:
        """One value as the models take it."""
        checked, _ = check_value(self.encoder, k, value)
        return np.asarray(self.encoder.encode(k, np.array([checked]))[0])

    def warn(self) -> None:
        """Warn of the providers that failed for good, each once."""
        for name in dict.fromkeys(call.covariate for call in self.calls):
            bad = [call for call in self.calls if call.covariate == name and call.error]
            if bad:
                rows = sum(len(call.index) for call in bad)
                warnings.warn(
                    f"The provider of {name!r} {bad[0].error} ({len(bad)} of its calls failed for "
                    f"good). For {rows} row{'s' if rows > 1 else ''} it counts as not available.",
                    ProviderWarning,
                    stacklevel=5,
                )


@contextmanager
def _naming_the_cache(what: str) -> Iterator[None]:
    """An error of the cache in words; what was delivered before is in it."""
    try:
        yield
    except Exception as error:
        raise InvalidInputError(
            "cache",
            f"must {what}, by the pair of covariate and key",
            describe_error(error),
            "Check the cache, and call acquire with it again: it continues from there.",
        ) from error


def provide(decider: Decider[State], encoded: Floats, known: Bools, desk: Desk) -> ProvidedResult:
    """Every row taken to its stop, what it needs fetched on the way; labels are 0 and 1."""
    n_rows, n_covariates = len(encoded), len(decider.encoder.names)
    encoder = decider.encoder
    encoded, known = encoded.copy(), np.tile(known, (n_rows if known.ndim == 1 else 1, 1))
    present = ~np.isnan(encoded[:, decider.encoder.first])
    available = present.copy()
    available[:, list(desk.providers)] = True
    opening = np.tile(decider.opening, (n_rows, 1))
    opening = np.where(np.take_along_axis(known, opening, axis=1), STOP, opening)
    trail, immediate = empty_trail(decider, encoded), decider.costs.immediate
    order, rounds = trail.order, trail.rounds
    have = known.copy()
    live, wanted = np.arange(n_rows), opening
    while len(live):
        # The rows get what they wait for, as far as it is available, and continue.
        _receive(desk, live, wanted, encoded, present, available)
        _take(live, wanted, available, have, order)
        if immediate is not None:
            rounds[live] += among(available[live] & ~immediate, wanted)
        waiting = np.full((n_rows, n_covariates), STOP)
        masks, unseen = [known[live], have[live], available[live]], encoder.unseen(encoded[live])
        for part in map(live.__getitem__, alike(*masks, *([] if unseen is None else [unseen]))):
            begin = Rows(encoded[part], available[part], have[part[0]], known[part[0]], part)
            walked = walk(
                decider.begin(begin),
                decider.decide,
                decider.advance,
                begin.available,
                order[part],
                budget_of(decider, known[part]),
                present[part],
                immediate,
            )
            rounds[part] += walked.rounds
            trail.log_odds[part], trail.stage[part] = walked.log_odds, walked.stage
            trail.label[part] = walked.label
            order[part] = walked.order
            assert walked.waiting is not None
            waiting[part] = walked.waiting
        _take(live, order[live], available, have)
        live = live[waiting[live, 0] != STOP]
        wanted = waiting[live]
    result = result_of(decider, trail, known)
    return ProvidedResult(**vars(result), calls=tuple(desk.calls))


def _receive(
    desk: Desk, live: Ints, wanted: Ints, encoded: Floats, present: Bools, available: Bools
) -> None:
    """Fetch what is wanted and not there; what is not delivered is not available."""
    absent: dict[int, Ints] = {}
    for k in desk.providers:
        rows = live[(wanted == k).any(axis=1)]
        rows = rows[available[rows, k] & ~present[rows, k]]
        if len(rows):
            absent[k] = rows
    for k, values in desk.fetch(absent).items():
        columns = desk.encoder.source == k
        for row, value in values.items():
            if value is None:
                available[row, k] = False
            else:
                encoded[row, columns] = desk.encoded(k, value)
                present[row, k] = True


def _take(
    live: Ints, listed: Ints, available: Bools, have: Bools, order: Ints | None = None
) -> None:
    """Rows acquire what is listed for them and available; it is added to their order, if given."""
    for column in listed.T:
        rows = np.flatnonzero((column != STOP) & available[live, column])
        rows, taken = live[rows], column[rows]
        if order is not None:
            order[rows, (order[rows] != STOP).sum(axis=1)] = taken
        have[rows, taken] = True


def _checked_keys(keys: Any, n_rows: int) -> list[Hashable]:
    """The keys of the rows as a list."""
    listed = list(keys) if isinstance(keys, Iterable) and not isinstance(keys, str) else None
    if listed is None or len(listed) != n_rows:
        received = type(keys).__name__ if listed is None else f"{len(listed)} keys"
        rule, remedy = f"must be one for each of {n_rows} rows", "For example keys=X.index."
        raise InvalidInputError("keys", rule, received, remedy)
    for row, key in enumerate(listed):
        if not isinstance(key, Hashable) or is_none(key):
            remedy = "Use numbers or words by which a row is known again."
            raise InvalidInputError(f"keys[{row}]", "must be hashable and no NaN", key, remedy)
    return listed


def check_providers(names: Sequence[str], providers: Any, cache: Any, keys: Any) -> None:
    """Refuse providers of what the policy does not know, and a cache without keys."""
    if not isinstance(providers, Mapping):
        raise InvalidInputError(
            "providers",
            "must be a mapping from covariate to function",
            type(providers).__name__,
            "For example providers={'mri': fetch_mri}.",
        )
    unknown = [str(name) for name in providers if name not in names]
    if unknown:
        remedy = choices(unknown, names, "The covariates are")
        raise InvalidInputError("providers", "must name covariates", unknown, remedy)
    if cache is not None and not isinstance(cache, MutableMapping):
        remedy = "For example cache={}."
        raise InvalidInputError("cache", "must be a mutable mapping", type(cache).__name__, remedy)
    if cache is not None and keys is None:
        raise InvalidInputError(
            "cache",
            "needs keys by which rows are known again",
            "no keys",
            "For example keys=X.index, or a column of identifiers.",
        )
