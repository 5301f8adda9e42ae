"""How many covariates a plan has, and how many codes of each: its states fit into memory.

Many covariates leave few codes for each. Covariates are ordered by what they are worth in a plan,
and plans of the first ones, of which there are more or fewer, are compared by whoever plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adacos.costs import CostTable
from adacos.models.basis import affordable_splines
from adacos.models.plans import tabulate
from adacos.models.set_fits import refuse_large
from adacos.models.table_mixture import TableMixture
from adacos.tables.codes import Codes
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Bools, Floats, Ints

# States that are planned at most, and covariates: there are 2^p sets of them to work off.
MOST_STATES, MOST_COVARIATES = 1_000_000, 14
# Covariates that are modelled at most, and products of their columns over all rows.
MOST_MODELLED, MOST_PRODUCTS = 30, 20_000_000
# Training rows that the model is fitted to, drawn where there are more.
MOST_ROWS = 20_000
# Values of a number with which it is not cut in any plan.
FEW_VALUES = 4
# States in plans that are only compared with each other.
ROUGH_STATES = 100_000
# States in plans by which covariates are ordered, and codes of a number there.
_ORDERING_STATES, _ORDERING_CODES = 20_000, 3
# Share of the cost below which a difference is that of rounding.
_SAME = 1e-9
# What a free covariate costs where something is divided by costs.
_NOTHING = 1e-12
# Codes of a number at least.
LEAST_CODES = 2
# A number is cut between its values, or between this number of quantiles where it has more.
_MOST_VALUES = 256


def affordable(order: Ints, sizes: Ints, most_states: int) -> Ints:
    """The covariates of an order whose states are not too many together, in that order.

    One that would make too many is passed over; what comes after it may still be affordable.
    """
    planned: list[int] = []
    n_states = 1
    for k in order.tolist():
        more = n_states * (int(sizes[k]) + 1)
        if sizes[k] > 1 and more <= most_states and len(planned) < MOST_COVARIATES:
            planned.append(k)
            n_states = more
    return np.array(planned, dtype=np.intp)


def even_codes(encoded: Floats, encoder: TableEncoder, most: int) -> Codes:
    """A code for each category or distinct value, and at most `most` for a number.

    Rows are divided among the codes of a number as evenly as their values allow. A value that most
    rows have takes one code, and the others are divided among the rest.
    """
    sizes, cuts = [], []
    for k, kind in enumerate(encoder.kinds):
        own = encoded[:, encoder.source == k]
        cut = np.empty(0)
        if kind != CATEGORICAL:
            cut = _even_cuts(own[~np.isnan(own[:, 0]), 0], most)
        cuts.append(cut)
        sizes.append(own.shape[1] if kind == CATEGORICAL else len(cut) + 1)
    return Codes(encoder.source, np.array(sizes, dtype=np.intp), tuple(cuts))


def _even_cuts(known: Floats, most: int) -> Floats:
    distinct, counts = np.unique(known, return_counts=True)
    if len(distinct) > _MOST_VALUES:
        share = np.arange(1, _MOST_VALUES + 1) / _MOST_VALUES
        kept = np.unique(np.quantile(known, share, method="higher"))
        counts = np.bincount(np.searchsorted(kept, known), minlength=len(kept))
        distinct = kept
    middles = (distinct[1:] + distinct[:-1]) / 2
    if len(distinct) <= most:
        return np.asarray(middles)
    cuts, own, rest, left = [], 0, int(counts.sum()), most
    for middle, count, after in zip(middles, counts, counts[1:], strict=False):
        own += int(count)
        if left > 1 and own + after / 2 >= rest / left:
            cuts.append(float(middle))
            rest, left, own = rest - own, left - 1, 0
    return np.array(cuts)


def codes_within(
    encoded: Floats, encoder: TableEncoder, planned: Ints, n_codes: int, most_states: int
) -> Codes:
    """As many codes of each number as the states of the planned covariates allow."""
    full = even_codes(encoded, encoder, n_codes).sizes[planned]
    number = np.array([encoder.kinds[k] != CATEGORICAL for k in planned.tolist()], dtype=np.bool_)
    most = min(LEAST_CODES, n_codes)
    while most < n_codes:
        sizes = np.where(number, np.minimum(full, most + 1), full)
        if np.prod(sizes + 1.0) > most_states:
            break
        most += 1
    return even_codes(encoded, encoder, most)


def sizes_to_compare(
    order: Ints, encoded: Floats, encoder: TableEncoder, n_codes: int
) -> list[Ints]:
    """The first covariates of an order, more and more of them while that costs codes.

    A plan of the first that keep all their codes is the smallest.
    """
    least = even_codes(encoded, encoder, LEAST_CODES).sizes
    most = affordable(order, least, MOST_STATES)
    full = even_codes(encoded, encoder, n_codes).sizes[most]
    whole = max(int((np.cumprod(full + 1.0) <= MOST_STATES).sum()), min(1, len(most)))
    rough = int((np.cumprod(least[most] + 1.0) <= ROUGH_STATES).sum())
    return [most[:n] for n in range(whole, max(rough, whole) + 1)]


def refuse_many_classes(
    encoded: Floats, encoder: TableEncoder, n_codes: int, n_splines: int, n_classes: int
) -> None:
    """Refuse a table whose largest plan has too many classes for its pairs, before it is planned.

    As many covariates as any plan has, and the widest of them: which ones it has is found later.
    """
    least = np.sort(even_codes(encoded, encoder, LEAST_CODES).sizes)
    full = np.sort(even_codes(encoded, encoder, n_codes).sizes)
    rough = int((np.cumprod(least[least > 1] + 1.0) <= ROUGH_STATES).sum())
    whole = int((np.cumprod(full[full > 1] + 1.0) <= MOST_STATES).sum())
    kinds = np.array(encoder.kinds)
    n_planned = max(rough, whole, 1)
    numeric = (NUMERIC,) * min(encoder.kinds.count(NUMERIC), n_planned)
    width = np.bincount(encoder.source, minlength=len(kinds))
    width[kinds == NUMERIC] = affordable_splines(len(encoded), numeric, n_splines) - 1
    width[kinds == CONSTANT] = 0
    refuse_large(n_classes, int(np.sort(width)[::-1][:n_planned].sum()))


def order_by_value(
    mixture: TableMixture,
    encoded: Floats,
    encoder: TableEncoder,
    covariates: Ints,
    costs_of: Callable[[Ints], CostTable],
) -> Ints:
    """Covariates, each time the one with which a plan of those before it costs least.

    What a covariate was worth last says in which order they are looked at; nothing is looked at
    again that was worth less than another is now. Where plans become too large, the others follow
    by what they were worth. Those that are worth the same, as where none pays alone, are in the
    order of what they say about the class for their cost.
    """
    codes = even_codes(encoded, encoder, _ORDERING_CODES)
    inside = np.sort(covariates)
    says = {
        k: _information(mixture.joint_of_codes(codes, np.array([k]))) / max(price, _NOTHING)
        for k, price in zip(inside.tolist(), costs_of(inside).covariates.tolist(), strict=True)
    }
    worth = dict.fromkeys(sorted(says, key=lambda one: -says[one]), np.inf)
    chosen: list[int] = []
    share = np.exp(mixture.log_weight) @ mixture.class_share
    cost, n_states = float((share @ costs_of(covariates).matrix).min()), 1
    tolerance = _SAME * abs(cost)
    while worth:
        best, least = -1, np.inf
        for k in sorted(worth, key=lambda one: -worth[one]):
            if n_states * (codes.sizes[k] + 1) > _ORDERING_STATES:
                continue
            if best >= 0 and worth[k] <= worth[best]:
                break
            planned = np.array(sorted([*chosen, k]), dtype=np.intp)
            after = tabulate(mixture.joint_of_codes(codes, planned), costs_of(planned))
            if after.expected_cost < least - tolerance:
                best, least = k, after.expected_cost
            less = cost - after.expected_cost
            worth[k] = less if less > tolerance else 0.0
        if best < 0:
            break
        chosen.append(best)
        n_states *= int(codes.sizes[best]) + 1
        cost = least
        del worth[best]
    return np.array([*chosen, *sorted(worth, key=lambda one: -worth[one])], dtype=np.intp)


def _information(joint: Floats) -> float:
    """How much a code says about the class: their mutual information, from P(y, code)."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())


def loses_nothing(encoder: TableEncoder, encoded: Floats) -> bool:
    """Whether a plan by default has a code for every value of every covariate, and asks for all."""
    sizes = np.bincount(encoder.source, minlength=len(encoder.kinds))
    for k, kind in enumerate(encoder.kinds):
        if kind == NUMERIC:
            values = encoded[:, encoder.first[k]]
            sizes[k] = len(np.unique(values[~np.isnan(values)]))
            if sizes[k] > FEW_VALUES:
                return False
        elif kind == BINARY:
            sizes[k] = 2
    varying, n_rows = np.flatnonzero(sizes > 1), min(len(encoded), MOST_ROWS)
    if len(affordable(varying, sizes, MOST_STATES)) < len(varying):
        return False
    return bool(modellable(np.arange(len(sizes)), encoder.source, n_rows).all())


def modellable(order: Ints, source: Ints, n_rows: int) -> Bools:
    """Mask of the first covariates of an order whose model is small enough.

    Products of all pairs of encoded columns are looked at, for every row.
    """
    width = np.bincount(source)
    columns = np.cumsum(width[order])
    fits_in = n_rows * columns**2 <= 2 * MOST_PRODUCTS
    # At least the first, and at most `MOST_MODELLED`.
    n_modelled = min(max(int(fits_in.sum()), 1), MOST_MODELLED)
    return np.isin(np.arange(len(width)), order[:n_modelled])


def among_these(encoder: TableEncoder, encoded: Floats) -> tuple[TableEncoder, Floats]:
    """Encoder and encoded values of some of the rows.

    A number that does not vary among them, or a covariate of which they have no value, is constant.
    """
    unknown, first = np.isnan(encoded), encoder.first
    low = np.where(unknown, np.inf, encoded).min(axis=0)[first]
    high = np.where(unknown, -np.inf, encoded).max(axis=0)[first]
    number = np.array(encoder.kinds) != CATEGORICAL
    constant = (low > high) | (number & (low == high))
    kinds = tuple(np.where(constant, CONSTANT, encoder.kinds).tolist())
    return replace(encoder, kinds=kinds), np.where(constant[encoder.source], 0.0, encoded)
