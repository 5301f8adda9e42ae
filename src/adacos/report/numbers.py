"""What a report shows of a policy on held-out rows: who is asked what, and how right it is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from adacos.card import deciding_matrix, panels_of
from adacos.consultation.cut_off import cut_off_of
from adacos.engine import AcquisitionResult
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.class_risk import best_label
from adacos.kernels.groups import standard_error
from adacos.models.branches import route
from adacos.models.forecasts import FORECASTS
from adacos.models.lookahead import begin, look_ahead
from adacos.policies.base import BasePolicy
from adacos.policies.branching import branches
from adacos.policies.misfit import MisfitCell, learned_from, misfit_by_cell
from adacos.policies.picture import has_tree
from adacos.policies.recosting import OWN
from adacos.policies.sequence_policy import SequencePolicy, asked_in_order, has_sets
from adacos.policies.tree import Tree, described_tree, in_words
from adacos.report.answers import Share
from adacos.report.held import Held, relatives
from adacos.tables.description import description_of
from adacos.typing import Bools, Floats, Ints

_BINS = 10
# Fewer rows than this in a bin say nothing about its share.
_ROWS_IN_A_BIN = 20
# Fewer rows than this with one answer at one stop are not worth a line.
_FEW = 5
# Held-out rows on which the lookahead is held against itself.
_ROWS_LOOKED_AT = 2000


class Bin(NamedTuple):
    """Rows of like probability: mean probability, observed share, exact interval, rows."""

    probability: float
    share: float
    low: float
    high: float
    rows: int


class Scores(NamedTuple):
    """How good the probabilities are; NaN where the rows do not say."""

    brier: float
    auc: float
    slope: float
    intercept: float


class Stop(NamedTuple):
    """A covariate in order: its cost, and shares of rows that acquire it, stop, have no value."""

    covariate: str
    cost: float
    acquired: float
    stopped: float
    missing: float


class Panel(NamedTuple):
    """Covariates that share a cost, None if it differs, and what each costs after another."""

    name: str
    shared: float | None
    later: tuple[tuple[str, float], ...]


class Level(NamedTuple):
    """Rows after each number of acquisitions, as shares of all rows.

    `asked` are the covariates acquired last, the most frequent first; then those who stop with
    each answer, and those who continue.
    """

    asked: tuple[tuple[str, float], ...]
    answered: tuple[float, ...]
    further: float


class Curve(NamedTuple):
    """Net benefit of one way of answering at each threshold, and at the one in use."""

    name: str
    benefit: Floats
    in_use: float


class Misfit(NamedTuple):
    """Rows with one answer at one stop: share of wrong answers and their cost, expected and found.

    Costs are means per row.
    """

    stop: str
    answer: int
    expected: float
    found: Share
    expected_cost: float
    cost: float

    @property
    def agrees(self) -> bool:
        """Whether the expected share lies inside the interval of the one found."""
        return self.found.low <= self.expected <= self.found.high


def stops(held: Held) -> list[Stop]:
    """What the policy does with each covariate, in their order, or the most acquired first."""
    policy = held.policy
    share = held.result.acquired.mean(axis=0)
    first = np.searchsorted(policy.encoder_.source, np.arange(len(share)))
    missing = np.isnan(held.encoded[:, first]).mean(axis=0)
    count = held.result.acquired.sum(axis=1)
    if asked_in_order(policy):
        sequence = policy.model_.sequence
        order, last = sequence.order, held.result.stage + sequence.n_free - 1
        stopped = [float(np.mean(last == rank)) for rank in range(len(order))]
    else:
        order = np.argsort(-share, kind="stable")
        final = np.where(count > 0, held.result.order[np.arange(len(count)), count - 1], -1)
        stopped = [float(np.mean(final == k)) for k in order]
    costs, names = policy.cost_table_.covariates, policy.encoder_.names
    return [
        Stop(names[k], float(costs[k]), float(share[k]), stopped[rank], float(missing[k]))
        for rank, k in enumerate(order)
    ]


def panels(policy: BasePolicy) -> list[Panel]:
    """The panels of the policy's costs."""
    return [
        Panel(panel["name"], panel["shared"], tuple(panel["discounted"].items()))
        for panel in panels_of(policy)
    ]


def flow(result: AcquisitionResult, policy: BasePolicy) -> list[Level]:
    """Who is asked what, and who stops where with which answer."""
    order, label, classes = result.order, policy.numbers_of(result.label), policy.decisions_
    count = result.acquired.sum(axis=1)
    states = []
    for step in range(int(count.max()) + 1):
        asked: tuple[tuple[str, float], ...] = ()
        if step > 0:
            numbers, rows = np.unique(order[count >= step, step - 1], return_counts=True)
            ranked = np.argsort(-rows, kind="stable")
            asked = tuple((result.names[numbers[i]], float(rows[i] / len(count))) for i in ranked)
        here = count == step
        states.append(
            Level(
                asked,
                tuple(float(np.mean(here & (label == k))) for k in range(len(classes))),
                float(np.mean(count > step)),
            )
        )
    return states


def cost_by_set(held: Held, policy: SequencePolicy) -> tuple[Floats, Floats, Floats]:
    """Mean total cost if every row stopped at a set: expected, on these rows, its error."""
    deciding, table, sequence = deciding_matrix(policy), policy.cost_table_, policy.model_.sequence
    label = best_label(policy.model_.log_odds_by_set(held.encoded), deciding)
    # A row pays for what it has of a set.
    first = np.unique(policy.encoder_.source, return_index=True)[1]
    there = ~np.isnan(held.encoded[:, first])
    paid = [table.of_batch(own & there, rank=sequence.rank) for own in sequence.masks()]
    totals = held.charged[held.true[:, None], label] + np.transpose(paid)
    expected = policy.model_.expected_costs(replace(table, matrix=held.charged), deciding)
    error = [standard_error(total, held.groups) for total in totals.T]
    return expected, totals.mean(axis=0), np.array(error)


def cost_curve(
    held: Held, policy: SequencePolicy
) -> tuple[list[str], tuple[Floats, Floats, Floats]]:
    """The covariate that each set adds, and what stopping everyone there costs."""
    names = [held.said.label(names[-1]) if names else "nothing" for names in policy.sets_]
    return names, cost_by_set(held, policy)


def calibration(held: Held, low: float = 0.0, high: float = 1.0) -> list[Bin]:
    """Observed shares of the positive class by probability at the stop, between two of them."""
    inside = (held.result.probability >= low) & (held.result.probability <= high)
    groups = None if held.groups is None else held.groups[inside]
    return shares_by_probability(held.result.probability[inside], held.true[inside] == 1, groups)


def shares_by_probability(p: Floats, true: Bools, groups: Ints | None = None) -> list[Bin]:
    """Observed shares of what is true among rows of like probability."""
    if len(p) == 0:
        return []
    bins = int(np.clip(len(p) // _ROWS_IN_A_BIN, 1, _BINS))
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)))
    number = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
    lines = []
    for i in np.unique(number):
        rows = number == i
        found = Share.of(true[rows], None if groups is None else groups[rows])
        lines.append(Bin(float(p[rows].mean()), found.value, found.low, found.high, found.among))
    return lines


def scores(held: Held) -> Scores:
    """Brier score, area under the curve, and slope and intercept of the calibration.

    The slope is that of a logistic regression of the class on the log-odds at the stop; the
    intercept is what must be added to all log-odds for their mean probability to be right.
    """
    p, true = held.result.probability, held.true
    brier = float(np.mean((p - true) ** 2))
    if len(np.unique(true)) < 2:
        return Scores(brier, np.nan, np.nan, np.nan)
    from sklearn.metrics import roc_auc_score

    log_odds = logit(np.clip(p, 1e-12, 1 - 1e-12))
    design = np.column_stack([np.ones(len(p)), log_odds])
    intercept = _logistic(design[:, :1], true, log_odds)[0]
    slope = np.nan if np.ptp(log_odds) == 0 else _logistic(design, true, np.zeros(len(p)))[1]
    return Scores(brier, float(roc_auc_score(true, p)), float(slope), float(intercept))


def threshold_window(held: Held) -> tuple[float, float] | None:
    """Probabilities around the threshold in use, where being right matters."""
    in_use = cut_off_of(held.policy.rule_)
    if not 0 < in_use < 1:
        return None
    half = max(0.05, 0.6 * min(in_use, 1 - in_use))
    return max(0.0, in_use - half), min(1.0, in_use + half)


def decision_curves(held: Held) -> tuple[Floats, list[Curve]]:
    """Net benefit TP/n - FP/n · t/(1 - t) - paid/n / B at thresholds t, less what was paid.

    One unit is a positive found, worth B = (c01 - c00) · (1 - t0)/t0 at the threshold t0 in use:
    what a row paid for covariates is taken off in that unit. At t0 the net benefit is what the
    total cost is below that of answering everyone negative, over B. Acquisition is held while the
    threshold sweeps.
    """
    in_use = cut_off_of(held.policy.rule_)
    grid = np.linspace(0.0, min(0.99, max(4 * in_use, 0.1)), 200)
    threshold = np.append(grid, in_use)
    (c00, c01), _ = held.policy.cost_table_.matrix.tolist()
    # Where everyone is answered positive a positive found is worth more than any test.
    worth = (c01 - c00) * (1 - in_use) / in_use if in_use > 0 else np.inf
    methods = [(OWN, held.result.probability, held.result.cost)]
    for name, result in relatives(held, deciding_matrix(held.policy)).items():
        if name != OWN:
            methods.append((name, result.probability, result.cost))
    everyone = np.ones(len(held.true))
    methods.append(("everyone positive", everyone, np.zeros(len(everyone))))
    methods.append(("everyone negative", -everyone, np.zeros(len(everyone))))
    curves = []
    for name, score, paid in methods:
        benefit = _net_benefit(score, held.true, threshold) - paid.mean() / worth
        curves.append(Curve(name, benefit[:-1], float(benefit[-1])))
    return grid, curves


def class_calibration(held: Held) -> list[list[Bin]]:
    """Observed share of each class among rows of like probability of it."""
    return [
        shares_by_probability(p, held.true == k, held.groups)
        for k, p in enumerate(held.probabilities.T)
    ]


def class_scores(held: Held) -> tuple[float, float]:
    """Log-loss and Brier score (sum over the classes) of the probabilities at the stop."""
    p, each = held.probabilities, np.arange(len(held.true))
    own = np.maximum(p[each, held.true], np.finfo(np.float64).tiny)
    truth = np.eye(p.shape[1])[held.true]
    return float(-np.log(own).mean()), float(((p - truth) ** 2).sum(axis=1).mean())


def misfits(held: Held) -> list[Misfit]:
    """Wrong answers expected and found at each stop with each answer."""
    p, label, true = held.probabilities, held.label, held.true
    expected_cost = (p * held.charged.T[label]).sum(axis=1)
    cost = held.charged[true, label]
    lines = []
    stop, names = stops_of(held)
    for number in np.unique(stop):
        for answer in range(p.shape[1]):
            rows = (stop == number) & (label == answer)
            if rows.sum() < _FEW:
                continue
            lines.append(
                Misfit(
                    names[int(number)],
                    answer,
                    float(1 - p[rows, answer].mean()),
                    Share.of(
                        true[rows] != answer, None if held.groups is None else held.groups[rows]
                    ),
                    float(expected_cost[rows].mean()),
                    float(cost[rows].mean()),
                )
            )
    return lines


def additivity(held: Held) -> list[MisfitCell]:
    """Cells of two covariates in which the model with all of them is wrong about these rows."""
    policy = held.policy
    if not (has_sets(policy) and held.two_classes):
        return []
    p = expit(policy._log_odds_with_all(held.encoded))
    true = held.true.astype(np.float64)
    return misfit_by_cell(
        policy.encoder_,
        held.encoded,
        true,
        p,
        groups=held.groups,
        learned_from=learned_from(policy),
    )


def incoherent_share(held: Held) -> float | None:
    """Share of rows × sets × later sets in which the lookahead expects the Bayes risk to rise.

    Information cannot do that to coherent beliefs. None for a policy that does not look ahead,
    and with three or more classes.
    """
    policy = held.policy
    if policy.resolved_lookahead is None or not (has_sets(policy) and held.two_classes):
        return None
    encoded, matrix = held.encoded[:_ROWS_LOOKED_AT], deciding_matrix(policy)
    # Dynamic programming looks ahead with the same densities.
    forecast = FORECASTS[policy.resolved_lookahead]
    models = [(policy.model_, np.arange(len(encoded)))]
    if branches(policy):
        place = route(policy.nodes_, encoded, policy.encoder_)
        leaves = [(node.model, np.flatnonzero(place == i)) for i, node in enumerate(policy.nodes_)]
        models = [(model or policy.model_, rows) for model, rows in leaves if len(rows)]
    rises = []
    for model, rows in models:
        part = encoded[rows]
        available = ~np.isnan(part[:, policy.encoder_.first])
        nothing = np.zeros(available.shape[1], dtype=np.bool_)
        for have in model.sequence.masks()[:-1]:
            state = begin(model, part, available, have, nothing)
            lookahead = look_ahead(state, policy.cost_table_, forecast)
            each, every = np.arange(len(part)), slice(0, lookahead.mean.shape[1])
            risk = bayes_risk(lookahead.log_odds, matrix)[:, None]
            # The kernels are accurate to 3e-6 of the costs.
            more = lookahead.expected_risk(each, every, matrix) > risk + 1e-5 * np.ptp(matrix)
            rises.append(more.ravel())
    return float(np.concatenate(rises).mean()) if rises else None


def tree(policy: BasePolicy, encoded: Floats, result: AcquisitionResult) -> Tree:
    """What becomes of rows in a policy that is drawn as a tree."""
    assert has_tree(policy)
    label = policy.numbers_of(result.label)
    counted = policy._tree_of_rows(encoded, replace(result, label=label))
    return in_words(counted, policy.nodes_, policy.encoder_, description_of(policy))


def stops_of(held: Held) -> tuple[Ints, dict[int, str]]:
    """Where each row stopped, by number, and the stops in words."""
    policy, label = held.policy, held.said.label
    if branches(policy):
        place = route(policy.nodes_, held.encoded, policy.encoder_)
        described = described_tree(policy)
        names = {}
        for number, node in enumerate(policy.nodes_):
            absent = (
                "" if node.split is None else f", {described.places[number].question} not available"
            )
            names[number] = f"where {described.way(number)}{absent}".replace("where ,", "where")
        return place, names
    stage = held.result.stage
    if asked_in_order(policy):
        sets = enumerate(policy.sets_)
        return stage, {i: f"after {label(s[-1])}" if s else "before anything" for i, s in sets}
    counts = {int(n): f"after {n} acquisitions" for n in np.unique(stage)}
    return stage, {**counts, 0: "before anything"}


def _net_benefit(score: Floats, true: Ints, threshold: Floats) -> Floats:
    positive = score[:, None] >= threshold
    gained = np.mean(positive & (true == 1)[:, None], axis=0)
    lost = np.mean(positive & (true == 0)[:, None], axis=0)
    return np.asarray(gained - lost * threshold / (1 - threshold))


def _logistic(design: Floats, y: Ints, offset: Floats) -> Floats:
    """Coefficients of a logistic regression of few columns; NaN where the classes are separated."""
    coef = np.zeros(design.shape[1])
    for _ in range(100):
        p = expit(design @ coef + offset)
        curvature = design.T @ (design * (p * (1 - p))[:, None])
        if np.linalg.cond(curvature) > 1e12:
            return np.full_like(coef, np.nan)
        step = np.linalg.solve(curvature, design.T @ (y - p))
        # Halved where it is long: far from the optimum the curvature says little.
        coef = coef + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    return coef
