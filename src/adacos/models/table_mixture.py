"""One joint model of a table: p(x, y) as a mixture of products.

Given the component covariates are independent: categories and numbers with few values have
probabilities, other numbers a normal density of their rank-normal scores, and an atom for a
value that many rows share. P(y | x_S) is in closed form for every set S, and a missing value is
dropped from the product (`adacos.kernels.product_mixture`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from adacos.kernels.product_mixture import (
    Layout,
    Parameters,
    fit_mixture,
    log_components,
    log_joint,
    log_sum,
    natural,
)
from adacos.tables.codes import Codes
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Bools, Floats, Ints

# A number with at most this many values has a probability for each.
FEW_VALUES = 8
# A value of other numbers that at least this share of rows has is an atom.
ATOM = 0.1
# Knots between which a number becomes a score.
_KNOTS = 65
# Components of each class that are tried.
COMPONENTS = (1, 2, 3, 4, 6, 8, 12, 16)
# Repeats of the folds behind the members of the model that is kept.
REPEATS = 2
# Sets for each held-out row by which numbers of components are compared, and rows at most.
_SETS, _ROWS_COMPARED = 6, 4000
# How many larger numbers of components are tried after the best one.
_PATIENCE = 3


@dataclass(frozen=True, eq=False)
class Reading:
    """How encoded rows become statistics.

    Attributes
    ----------
    source : covariate of each encoded column.
    categorical : mask of the covariates that are categories.
    levels : of each covariate the values that are levels of their own, in order; of a category
        their numbers.
    knots, scores : of each covariate with other numbers, values and their scores; else empty.
    layout : what the columns of the statistics are.
    """

    source: Ints
    categorical: Bools
    levels: tuple[Floats, ...]
    knots: tuple[Floats, ...]
    scores: tuple[Floats, ...]
    layout: Layout

    @staticmethod
    def fit(encoded: Floats, encoder: TableEncoder) -> Reading:
        """Learn levels and scores from encoded rows."""
        levels, knots, scores = [], [], []
        categorical = np.array([kind == CATEGORICAL for kind in encoder.kinds])
        for k in range(len(encoder.kinds)):
            own = encoded[:, encoder.source == k]
            known = own[~np.isnan(own[:, 0]), 0]
            nothing = np.empty(0)
            if categorical[k]:
                levels.append(np.arange(float(own.shape[1])))
            else:
                values, counts = np.unique(known, return_counts=True)
                if len(values) <= FEW_VALUES:
                    levels.append(values if len(values) else np.zeros(1))
                else:
                    levels.append(values[counts >= ATOM * len(known)])
            rest = known if categorical[k] else known[~np.isin(known, levels[-1])]
            if categorical[k] or not len(rest):
                knots.append(nothing)
                scores.append(nothing)
                continue
            value, score = _knots(rest)
            knots.append(value)
            scores.append(score)
        return Reading(
            encoder.source,
            categorical,
            tuple(levels),
            tuple(knots),
            tuple(scores),
            _layout(levels, knots),
        )

    def statistics(self, encoded: Floats) -> Floats:
        """Statistics of rows, 0 where a value is missing or a category was never seen."""
        table = np.zeros((len(encoded), len(self.layout.group)))
        first = np.searchsorted(self.layout.group, np.arange(len(self.levels)))
        for k, levels in enumerate(self.levels):
            own = encoded[:, self.source == k]
            at = int(first[k])
            if self.categorical[k]:
                seen = np.nan_to_num(own)
                table[:, at : at + len(levels)] = seen * (seen.max(axis=1) >= 1)[:, None]
                continue
            rows = np.flatnonzero(~np.isnan(own[:, 0]))
            value, number = own[rows, 0], len(self.knots[k]) > 0
            if number:
                place = np.minimum(np.searchsorted(levels, value), max(len(levels) - 1, 0))
                atom = levels[place] == value if len(levels) else np.zeros(len(rows), dtype=bool)
                place = np.where(atom, place, len(levels))
                score = np.where(atom, 0.0, self.score(k, value))
                table[rows, at + len(levels) + 1] = score
                table[rows, at + len(levels) + 2] = score**2
            else:
                place = np.searchsorted((levels[1:] + levels[:-1]) / 2, value, side="right")
            table[rows, at + place] = 1.0
        return table

    def score(self, covariate: int, values: Floats) -> Floats:
        """Rank-normal scores of numbers."""
        return np.interp(values, self.knots[covariate], self.scores[covariate])


def _knots(values: Floats) -> tuple[Floats, Floats]:
    """Values at scores that are equally far from each other, the ends included."""
    reach = -ndtri(0.5 / max(len(values), 2))
    scores = np.linspace(-reach, reach, min(_KNOTS, len(values)))
    at = np.quantile(values, ndtr(scores), method="hazen")
    distinct, first = np.unique(at, return_index=True)
    # Where values repeat, the mean of their scores.
    counts = np.diff(np.append(first, len(at)))
    return distinct, np.add.reduceat(scores, first) / counts


def _layout(levels: list[Floats], knots: list[Floats]) -> Layout:
    group: list[int] = []
    level: list[bool] = []
    number: list[list[int]] = []
    for k, (own, between) in enumerate(zip(levels, knots, strict=True)):
        if len(between):
            at = len(group) + len(own)
            number.append([at, at + 1, at + 2])
        n_levels = len(own) + (len(between) > 0)
        n_columns = n_levels + 2 * (len(between) > 0)
        group += [k] * n_columns
        level += [True] * n_levels + [False] * (n_columns - n_levels)
    return Layout(
        np.array(group, dtype=np.intp),
        np.array(level),
        np.array(number, dtype=np.intp).reshape(-1, 3),
    )


@dataclass(frozen=True, eq=False)
class TableMixture:
    """p(x, y) = Σ_k w_k π_k(y) Π_j f_kj(x_j).

    Attributes
    ----------
    reading : how rows become statistics.
    log_weight, class_share, share, mean, variance : see `product_mixture.Parameters`.
    """

    reading: Reading
    log_weight: Floats
    class_share: Floats
    share: Floats
    mean: Floats
    variance: Floats

    def log_components(self, statistics: Floats, acquired: Bools) -> Floats:
        """log w_k p(x_S | k) of rows whose covariates S are in masks (rows, covariates)."""
        layout = self.reading.layout
        coef = natural(self._parameters, layout)
        seen = np.where(acquired[..., layout.group], statistics, 0.0)
        return log_components(seen, self.log_weight, coef)

    def log_joint(self, statistics: Floats, acquired: Bools) -> Floats:
        """log p(y, x_S) of rows, (rows, classes)."""
        return log_joint(self.log_components(statistics, acquired), self.class_share)

    def code_shares(self, codes: Codes, covariate: int) -> Floats:
        """Probability of each code of a covariate given the component, (components, codes)."""
        reading, layout = self.reading, self.reading.layout
        columns = np.flatnonzero((layout.group == covariate) & layout.level)
        share, levels = self.share[:, columns], reading.levels[covariate]
        if reading.categorical[covariate]:
            return share
        cuts = codes.cuts[covariate]
        table = np.zeros((len(share), len(cuts) + 1))
        for place, code in enumerate(np.searchsorted(cuts, levels, side="right")):
            table[:, code] += share[:, place]
        if len(reading.knots[covariate]):
            number = int(np.flatnonzero(layout.number[:, 0] == columns[-1])[0])
            deviation = np.sqrt(self.variance[:, number, None])
            ends = (reading.score(covariate, cuts) - self.mean[:, number, None]) / deviation
            below = np.pad(ndtr(ends), ((0, 0), (1, 1)))
            below[:, -1] = 1.0
            table += share[:, -1:] * np.diff(below, axis=1)
        return table

    def joint_of_codes(self, codes: Codes, covariates: Ints) -> Floats:
        """P(y, codes) of some covariates, with one axis for each after that of the class."""
        weight = np.exp(self.log_weight)[:, None] * self.class_share
        shares = [self.code_shares(codes, k) for k in covariates.tolist()]
        sizes = tuple(share.shape[1] for share in shares)
        # A sum over components of products of two halves of the covariates is a matrix product.
        cut = min(range(len(sizes) + 1), key=lambda n: np.prod(sizes[:n]) + np.prod(sizes[n:]))
        first, rest = _cells(shares[:cut], len(weight)), _cells(shares[cut:], len(weight))
        total = np.stack([(first * own[:, None]).T @ rest for own in weight.T])
        return np.asarray(total.reshape(-1, *sizes) / total.sum())

    def check(self) -> None:
        """Refuse a mixture whose parts do not fit each other, as a foreign file may hold it."""
        layout, n = self.reading.layout, len(self.log_weight)
        numbers = (n, len(layout.number))
        if not (
            self.share.shape == (n, len(layout.group))
            and self.mean.shape == self.variance.shape == numbers
            and len(self.class_share) == n
            and np.all(self.variance > 0)
        ):
            raise ValueError("the parts of the mixture do not fit each other")

    @property
    def _parameters(self) -> Parameters:
        return Parameters(self.log_weight, self.class_share, self.share, self.mean, self.variance)


def _cells(shares: list[Floats], n_components: int) -> Floats:
    """Probability of each combination of codes given the component, (components, cells)."""
    cells = np.ones((n_components, 1))
    for share in shares:
        cells = (cells[:, :, None] * share[:, None, :]).reshape(n_components, -1)
    return cells


@dataclass(frozen=True, eq=False)
class Member:
    """A mixture, and the rows that it was fitted without."""

    mixture: TableMixture
    held_out: Ints


def pooled(members: list[Member]) -> TableMixture:
    """The mean of the members' distributions, which is a mixture of all their components."""
    parts = [member.mixture for member in members]
    return TableMixture(
        parts[0].reading,
        np.concatenate([part.log_weight for part in parts]) - np.log(len(parts)),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("class_share", "share", "mean", "variance")
        ),
    )


def held_out_joint(members: list[Member], statistics: Floats, acquired: Bools) -> Floats:
    """log p(y, x_S) of rows by the members that were fitted without them, (rows, classes).

    A row that no member was fitted without is judged by all of them.
    """
    n_classes = members[0].mixture.class_share.shape[1]
    total = np.full((len(statistics), n_classes), -np.inf)
    count = np.zeros(len(statistics))
    held_out = np.zeros(len(statistics), dtype=np.bool_)
    for member in members:
        held_out[member.held_out] = True
    for member in members:
        rows = np.append(member.held_out, np.flatnonzero(~held_out))
        joint = member.mixture.log_joint(statistics[rows], acquired[rows])
        total[rows] = np.logaddexp(total[rows], joint)
        count[rows] += 1
    return np.asarray(total - np.log(count)[:, None])


def log_shares(log_joint: Floats) -> Floats:
    """log P(y | x_S) from log p(y, x_S)."""
    return np.asarray(log_joint - log_sum(log_joint)[:, None])


def fit_members(
    reading: Reading,
    statistics: Floats,
    labels: Ints,
    weight: Floats,
    folds: list[Ints],
    n_classes: int,
    seed: int,
) -> tuple[list[Member], dict[int, float]]:
    """Members with the best number of components, and the log-loss by which it was chosen.

    For each number one member is fitted without each fold of the first repeat, and compared by the
    log-loss of held-out rows' classes given x_S, over random sets S of all sizes. Those of the
    other repeats are fitted with the best number. A label of -1 is not known.
    """
    loss: dict[int, float] = {}
    best: list[Member] = []
    rng = np.random.default_rng(seed)
    judged = np.flatnonzero(labels >= 0)
    if len(judged) > _ROWS_COMPARED:
        judged = np.sort(rng.choice(judged, _ROWS_COMPARED, replace=False))
    sets = _random_sets(len(judged), len(reading.levels), rng)
    largest = int(np.bincount(labels[labels >= 0]).max())
    since = 0
    for each in COMPONENTS:
        if each > 1 and (5 * each > largest or since == _PATIENCE):
            break
        args = (statistics, labels, weight, folds[0], n_classes, each, seed)
        members = _members(reading, *args)
        loss[each] = _log_loss(members, statistics, labels, judged, sets)
        since += 1
        if loss[each] == min(loss.values()):
            best, since = members, 0
    each = min(loss, key=lambda number: loss[number])
    for number, fold in enumerate(folds[1:], start=1):
        args = (statistics, labels, weight, fold, n_classes, each, seed + number)
        best += _members(reading, *args)
    return best, loss


def _members(
    reading: Reading,
    statistics: Floats,
    labels: Ints,
    weight: Floats,
    fold: Ints,
    n_classes: int,
    each: int,
    seed: int,
) -> list[Member]:
    members = []
    for part in range(int(fold.max()) + 1):
        rng = np.random.default_rng([seed, each, part])
        # No member is without a class.
        there = np.isin(labels, labels[fold != part])
        kept, without = np.flatnonzero((fold != part) | ~there), (fold == part) & there
        parameters, _ = fit_mixture(
            statistics[kept], labels[kept], weight[kept], n_classes, each, reading.layout, rng
        )
        members.append(Member(TableMixture(reading, *parameters), np.flatnonzero(without)))
    return members


def _random_sets(n_rows: int, n_covariates: int, rng: np.random.Generator) -> list[Bools]:
    """Masks (rows, covariates): random sets of random sizes, and all covariates."""
    masks = [np.ones((n_rows, n_covariates), dtype=np.bool_)]
    for _ in range(_SETS - 1):
        size = rng.integers(1, n_covariates + 1, size=(n_rows, 1))
        rank = rng.random((n_rows, n_covariates)).argsort(axis=1).argsort(axis=1)
        masks.append(rank < size)
    return masks


def _log_loss(
    members: list[Member], statistics: Floats, labels: Ints, judged: Ints, sets: list[Bools]
) -> float:
    """Mean of -log P(y | x_S) over held-out rows and sets."""
    place = np.full(len(labels), -1)
    place[judged] = np.arange(len(judged))
    among = [
        Member(member.mixture, place[member.held_out][place[member.held_out] >= 0])
        for member in members
    ]
    total = 0.0
    for acquired in sets:
        log = log_shares(held_out_joint(among, statistics[judged], acquired))
        total -= float(log[np.arange(len(judged)), labels[judged]].mean())
    return total / len(sets)
