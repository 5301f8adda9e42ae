"""What it is worth to know costs exactly: EVPI and EVPPI of uncertain costs.

A behaviour costs an amount that is linear in the costs (`adacos.policies.recosting`), so that as
long as costs are uncertain nothing beats deciding by their expected amounts. Whoever learns them
decides by what they are. With C_a(b; t) the mean cost at amounts t of what alternative a does when
it decides by amounts b, and m the expected amounts,

    EVPI   = min over a of C_a(m; m) - E[ min over a of C_a(t; t) ],

over draws t, and EVPPI of cost k the same with t_k alone unlike m. The latter is an integral in one
dimension: decisions are made at five amounts, each serves those nearest to it, and what it costs
there is summed over many quantiles. What an alternative does is found by the models and
not by the rows at hand, on which it is judged: with few rows a value may be below zero by chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.kernels.groups import standard_error
from adacos.policies.recosting import Alternatives, Behaviour
from adacos.typing import Floats, Ints

# Quantiles over which what it is worth to know one cost is summed.
_SUMMED = (np.arange(1000) + 0.5) / 1000
# Draws by which behaviours as they are are compared: they need no decisions.
_COMPARED = 10_000
# Part of a cost by which two sums may differ.
_ROUNDING = 1e-12
# Samples of the rows, and the quantiles of them that are an interval of 95%.
_SAMPLES, _INTERVAL = 400, (0.025, 0.975)
# Standard errors within which a difference is not shown.
_SHOWN = 1.96


class Information(NamedTuple):
    """What it is worth to know one cost, or all, exactly; per row.

    Attributes
    ----------
    value : the estimate; knowing is worth at least 0, an estimate may be below it by chance.
    error : its standard error, as the rows are a sample.
    simulation_error : its Monte Carlo error; 0 where nothing was drawn.
    """

    value: float
    error: float
    simulation_error: float

    @property
    def whole_error(self) -> float:
        """Its standard error over rows and draws."""
        return float(np.hypot(self.error, self.simulation_error))


class ComparedPolicy(NamedTuple):
    """One alternative while costs are uncertain, deciding by their expected amounts.

    Attributes
    ----------
    name : the alternative.
    cost : its expected total cost per row.
    more, error : how much more that is than the first one, row by row, and its standard error.
    cheapest, simulation_error : probability that it costs least of all, and its Monte Carlo error.
    cheapest_low, cheapest_high : 95% interval of that probability, as the rows are a sample.
    """

    name: str
    cost: float
    more: float
    error: float
    cheapest: float
    simulation_error: float
    cheapest_low: float
    cheapest_high: float


def worth_in_words(value: float, error: float) -> str:
    """What knowing is worth, with its error; 0 where the estimate is below it."""
    return with_error(max(value, 0.0), error)


def with_error(value: float, error: float) -> str:
    """An estimate with its standard error: two digits of the error, and the estimate as far."""
    if not np.isfinite(error) or error <= 0:
        return f"{value:.4g} ± {error:.2g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def drawn_amounts(every: Alternatives, draws: int, seed: int) -> Floats:
    """Amounts of the uncertain costs drawn from their distributions, (draws, costs)."""
    uniform = np.random.default_rng(seed).uniform(size=(draws, len(every.costs)))
    columns = [cost.quantiles(u) for cost, u in zip(every.costs, uniform.T, strict=True)]
    return np.column_stack(columns)


def compare_in_expectation(every: Alternatives, seed: int) -> tuple[ComparedPolicy, ...]:
    """Every alternative while costs are uncertain, the policy first."""
    expected = every.expected
    acts = [every.kept(name, expected) for name in every.deciders]
    away = drawn_amounts(every, _COMPARED, seed) - expected
    slope = np.array([act.exposure.mean(axis=0) for act in acts])
    shares = _cheapest_shares(np.array([act.total.mean() for act in acts]), slope, away)
    low, high = _interval_over_rows(acts, away, every.rows.groups, seed)
    found = []
    for number, (name, act) in enumerate(zip(every.deciders, acts, strict=True)):
        more, share = act.total - acts[0].total, float(shares[number])
        found.append(
            ComparedPolicy(
                name,
                float(act.total.mean()),
                float(more.mean()),
                standard_error(more, every.rows.groups),
                share,
                float(np.sqrt(share * (1 - share) / _COMPARED)),
                float(low[number]),
                float(high[number]),
            )
        )
    return tuple(found)


def _cheapest_shares(at_expected: Floats, slope: Floats, away: Floats) -> Floats:
    """Share of the draws at which each behaviour costs least; those that cost the same share it."""
    cost = at_expected[:, None] + slope @ away.T
    # Behaviours that differ by rounding only cost the same.
    least = cost <= cost.min(axis=0) + _ROUNDING * np.abs(cost).max()
    return np.asarray((least / least.sum(axis=0)).mean(axis=1))


def _interval_over_rows(
    acts: list[Behaviour], away: Floats, groups: Ints | None, seed: int
) -> Floats:
    """Bootstrap intervals of those shares: the same rows, or groups, are drawn for everyone."""
    rows = len(acts[0].total)
    own = np.arange(rows) if groups is None else np.unique(groups, return_inverse=True)[1]
    size = np.bincount(own)
    # What each group costs by each behaviour, and what it adds to the slopes.
    values = np.column_stack([np.column_stack([act.total, act.exposure]) for act in acts])
    sums = np.zeros((len(size), values.shape[1]))
    np.add.at(sums, own, values)
    rng, shares = np.random.default_rng(seed), []
    for _ in range(_SAMPLES):
        times = np.bincount(rng.integers(len(size), size=len(size)), minlength=len(size))
        mean = (times @ sums / (times @ size)).reshape(len(acts), -1)
        shares.append(_cheapest_shares(mean[:, 0], mean[:, 1:], away))
    return np.asarray(np.quantile(shares, _INTERVAL, axis=0))


def best_in_expectation(every: Alternatives) -> tuple[str, Behaviour]:
    """The alternative of least expected cost, deciding by the expected amounts."""
    acts = {name: every.kept(name, every.expected) for name in every.deciders}
    name = min(acts, key=lambda own: float(acts[own].total.mean()))
    return name, acts[name]


def as_good_as_best(every: Alternatives) -> tuple[str, ...]:
    """The alternatives that the rows do not show to cost more than the best one."""
    name, best = best_in_expectation(every)
    found = []
    for other in every.deciders:
        more = every.kept(other, every.expected).total - best.total
        error = standard_error(more, every.rows.groups)
        if other != name and more.mean() <= _SHOWN * error:
            found.append(other)
    return tuple(found)


def of_all(every: Alternatives, amounts: Floats) -> Information:
    """What knowing all costs is worth, over draws (draws, costs) of their amounts."""
    _, present = best_in_expectation(every)
    gain, by_draw = np.zeros(len(every.rows.true)), np.empty(len(amounts))
    for number, drawn in enumerate(amounts):
        acts = [every.behaviour(name, drawn) for name in every.deciders]
        least = min(acts, key=lambda act: float(act.total.mean()))
        saved = present.total_at(drawn) - least.total
        gain += saved
        by_draw[number] = saved.mean()
    return Information(
        float(by_draw.mean()),
        standard_error(gain / len(amounts), every.rows.groups),
        standard_error(by_draw, None),
    )


def of_one(every: Alternatives, k: int) -> Information:
    """What knowing one cost is worth, the others being as uncertain as they were."""
    _, present = best_in_expectation(every)
    expected, cost = every.expected, every.costs[k]
    at = cost.quantiles(_SUMMED) - expected[k]
    nodes = node_amounts(every, k)
    # The node that decides at each quantile.
    nearest = np.abs(at[:, None] - (nodes - expected)[:, k]).argmin(axis=1)
    gain = np.zeros(len(every.rows.true))
    for number, amounts in enumerate(nodes):
        here = at[nearest == number]
        acts = [every.kept(name, amounts) for name in every.deciders]
        shift = expected[k] - amounts[k]
        base = [act.total + act.exposure[:, k] * shift for act in acts]
        slope = [act.exposure[:, k].astype(np.float64) for act in acts]
        lines = np.array([b.mean() for b in base]) + np.outer(here, [s.mean() for s in slope])
        taken = lines.argmin(axis=1)
        for own in np.unique(taken).tolist():
            times, summed = float(np.sum(taken == own)), float(here[taken == own].sum())
            gain += times * (present.total - base[own])
            gain += summed * (present.exposure[:, k].astype(np.float64) - slope[own])
    gain /= len(at)
    return Information(float(gain.mean()), standard_error(gain, every.rows.groups), 0.0)


def node_amounts(every: Alternatives, k: int) -> Floats:
    """The amounts at which decisions are made for one cost, the others at their means."""
    cost = every.costs[k]
    mean, ends = cost.mean, np.array([cost.low, cost.high])
    nodes = np.tile(every.expected, (5, 1))
    nodes[:, k] = np.sort([mean, *ends, *(mean + ends) / 2])
    return nodes
