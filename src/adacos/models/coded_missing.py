"""Missing values of rows held as codes: what is known about each is a level of its own.

What a row says of a missing value is, for a number, the conditional mean and deviation of its
normal score, and for categories their probabilities (`adacos.models.missing`). A covariate has at
most `MOST_STATES` of these: those of the sample, parted where they differ most.
A missing value has the code of the state nearest to it, so that the expectation of basis columns
is a row of the covariate's table, and every pass over the rows is that of complete ones. Where
states are fewer nothing is lost; else the sum over the rows of a state is wrong to second order in
its width, as with levels (`adacos.models.levels`).

The covariances that an expectation leaves out are those of one value, which its state has, and
those between values missing together. For these each row keeps the correlation of their scores, two
bytes a pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from adacos.kernels.binned import CORRELATION_UNIT, Block, CodedMissing, Codes, Design, plain_gram
from adacos.kernels.gaussian import RowGaps, conditional_normal, joint_fraction, projected
from adacos.kernels.namespace import counted
from adacos.models.basis import AdditiveBasis
from adacos.models.expected_rows import values_and_columns
from adacos.models.levels import LevelSums
from adacos.models.missing import FilledRows, JointModel, at_scores, discriminate, moments_of
from adacos.models.row_blocks import RowBlocks
from adacos.tables.kinds import BINARY, CATEGORICAL, NUMERIC
from adacos.typing import Bools, Floats, Ints

# States of a missing value of one covariate.
MOST_STATES = 1024
# Pairs of values missing together that a row may have on average: two bytes each.
MOST_PAIRS = 512
# Rows whose conditional covariances are in memory at once.
_ROWS_AT_ONCE = 16_384
# Squared width of states, relative to that of all, that rounding leaves of equal ones.
_ROUNDING = 1e-20


def pairs_of_missing(encoded: Floats) -> float:
    """Pairs of encoded values that are missing together, for the mean row."""
    count = np.isnan(encoded).sum(axis=1)
    return float(np.mean(count * (count - 1.0) / 2))


class CodedRows(NamedTuple):
    """Rows held as codes, and what the codes stand for.

    Attributes
    ----------
    values : for each covariate, the encoded values of its levels.
    counts : the rows at each level.
    blocks : the rows.
    sample : some of them.
    unlabeled : rows without a class, as codes where values are missing.
    """

    values: list[Floats]
    counts: list[LevelSums]
    blocks: RowBlocks
    sample: Block
    unlabeled: RowBlocks | None = None

    @property
    def parts(self) -> list[RowBlocks]:
        """All rows."""
        return [self.blocks] if self.unlabeled is None else [self.blocks, self.unlabeled]


class Gram(NamedTuple):
    """A Gram matrix that is summed over blocks."""

    matrix: Floats

    def plus(self, other: Self) -> Self:
        """That of the rows of both."""
        return type(self)(self.matrix + other.matrix)


def with_states(rows: CodedRows, drawn: JointModel) -> tuple[CodedRows, FillPlan, JointModel]:
    """The rows with states for what is missing, how they were found, and the joint model of all."""
    joint = _joint(rows, drawn)
    plan = _plan(joint, rows.values, rows.sample)
    work = partial(refine, plan=plan)
    refined = rows._replace(
        blocks=rows.blocks.made(work),
        sample=refine(rows.sample, plan),
        unlabeled=None if rows.unlabeled is None else rows.unlabeled.made(work),
    )
    values, counts = [], []
    for k, weight in enumerate(_state_weights(plan, [refined.blocks])):
        own = state_values(plan, k).values[:, plan.joint.source == k]
        before = rows.counts[k]
        values.append(np.vstack([rows.values[k], own]))
        more = np.append(before.value, np.zeros(len(weight)))
        counts.append(LevelSums(np.append(before.weight, weight), more))
    return refined._replace(values=values, counts=counts), plan, joint


def _joint(rows: CodedRows, drawn: JointModel) -> JointModel:
    """The joint model of all rows: quantiles are those of the sample, moments of the scores theirs.

    Means and shares of what is observed follow from the rows at each level.
    """
    scores = _scores(drawn, rows.values)
    weights = _level_weights([len(own) for own in rows.values], rows.parts)
    mean = np.concatenate([w @ s / w.sum() for w, s in zip(weights, scores, strict=True)])
    centred, place = [], 0
    for weight, score in zip(weights, scores, strict=True):
        own = score - mean[place : place + score.shape[1]]
        place += score.shape[1]
        if np.count_nonzero(weight) == 1:
            own[:] = 0.0  # a constant; its mean is rounded
        centred.append(np.vstack([own, np.zeros(own.shape[1])]))
    design = Design(tuple(range(len(scores))), tuple(centred))
    gram = gram_of(rows.parts, design)
    n = float(gram[0, 0])
    fraction = np.concatenate(
        [np.full(s.shape[1], w.sum() / n) for w, s in zip(weights, scores, strict=True)]
    )
    joint = joint_fraction(np.minimum(fraction, 1.0))
    covariance = projected(gram[1:, 1:] / n / joint, joint, n)
    return replace(drawn, mean=mean, covariance=covariance)


def _scores(joint: JointModel, values: list[Floats]) -> list[Floats]:
    """Scores of the levels of each covariate, (levels, encoded columns)."""
    scores = []
    for k, own in enumerate(values):
        columns = np.flatnonzero(joint.source == k)
        wide = np.full((len(own), len(joint.source)), np.nan)
        wide[:, columns] = own
        scores.append(joint.to_scores(wide)[:, columns])
    return scores


def gram_of(parts: list[RowBlocks], design: Design) -> Floats:
    """Gram matrix of a design over all rows."""
    return _total(parts, partial(_plain, design=design)).matrix


def _total(parts: list[RowBlocks], work: partial[Gram]) -> Gram:
    first, *others = (part.total(work) for part in parts)
    for other in others:
        first = first.plus(other)
    return first


def _plain(block: Block, design: Design) -> Gram:
    return Gram(plain_gram(block, design))


@dataclass(frozen=True)
class FillPlan:
    """How missing values become codes.

    Attributes
    ----------
    joint : joint model of the encoded values.
    scores : for each covariate, the score at each level, NaN where the value is missing.
    states : for each covariate, (states, features) what can be known about a missing value.
    offset : for each encoded column, the place of its first state in tables of all.
    """

    joint: JointModel
    scores: tuple[Floats, ...]
    states: tuple[Floats, ...]
    offset: Ints

    @property
    def size(self) -> int:
        """Entries of a table of the states of all encoded columns."""
        width = np.bincount(self.joint.source).tolist()
        return sum(len(own) * w for own, w in zip(self.states, width, strict=True))

    def first(self, covariate: int) -> int:
        """The first encoded column of a covariate."""
        return int(np.searchsorted(self.joint.source, covariate))

    def levels(self, covariate: int) -> int:
        """Number of levels of a covariate, after which the states follow."""
        return len(self.scores[covariate]) - 1


def _plan(joint: JointModel, values: list[Floats], sample: Block) -> FillPlan:
    """States of the missing values, from the rows of the sample as codes."""
    scores = [np.vstack([s, np.full(s.shape[1], np.nan)]) for s in _scores(joint, values)]
    plan = FillPlan(joint, tuple(scores), (), np.empty(0, dtype=np.intp))
    seen: list[list[Floats]] = [[own] for own in _unconditional(joint)]
    for rows in _parts(len(sample.y)):
        for found in _found(plan, sample, rows):
            for k in np.unique(joint.source[found.missing]).tolist():
                seen[k].append(_features(plan, found, k, *_where(plan, found, k)))
    # Where the sample is complete, another row may not be.
    states = tuple(_parted(np.concatenate(own[1:] or own), MOST_STATES) for own in seen)
    counts = np.array([len(states[k]) for k in joint.source])
    return replace(plan, states=states, offset=np.cumsum(counts) - counts)


def _unconditional(joint: JointModel) -> list[Floats]:
    """What is known about a value of each covariate by nothing else."""
    result = []
    for k, kind in enumerate(joint.kinds):
        own = np.flatnonzero(joint.source == k)
        mean = joint.mean[own]
        if kind == NUMERIC:
            mean = np.append(mean, np.sqrt(joint.covariance[own[0], own[0]]))
        result.append(mean[None])
    return result


def _parts(n: int) -> list[slice]:
    return [slice(a, min(a + _ROWS_AT_ONCE, n)) for a in range(0, n, _ROWS_AT_ONCE)]


def _found(plan: FillPlan, block: Block, rows: slice) -> list[RowGaps]:
    """Conditional moments of what is missing of some rows of a block."""
    joint, pairs = plan.joint, zip(plan.scores, block.codes, strict=True)
    scores = np.hstack([table.take(code[rows], axis=0) for table, code in pairs])
    filled, found = conditional_normal(scores, ~np.isnan(scores), joint.mean, joint.covariance)
    return [RowGaps.of(filled, own) for own in found]


def _where(plan: FillPlan, found: RowGaps, covariate: int) -> tuple[Ints, Ints]:
    """Rows without a covariate, and the place of its first column among what is missing there."""
    row, position = np.nonzero(found.missing == plan.first(covariate))
    return row, position


def _features(plan: FillPlan, found: RowGaps, covariate: int, row: Ints, position: Ints) -> Floats:
    """What these rows say of a missing covariate."""
    joint = plan.joint
    width = int(np.sum(joint.source == covariate))
    places = position[:, None] + np.arange(width)
    center: Floats = found.center[row[:, None], places]
    left = found.covariance[row[:, None, None], places[:, :, None], places[:, None]]
    if joint.kinds[covariate] in (BINARY, CATEGORICAL):
        return discriminate(joint, covariate, center, left, np.arange(len(row)))[0]
    if joint.kinds[covariate] == NUMERIC:
        return np.column_stack([center, np.sqrt(np.maximum(left[:, 0], 0.0))])
    return center


def _parted(points: Floats, most: int) -> Floats:
    """Means of at most that many groups of points, each parted at the mean where it is widest."""
    whole = float(np.sum((points - points.mean(axis=0)) ** 2))

    def entry(own: Floats) -> tuple[float, int, Floats]:
        # The number tells groups of equal width apart.
        return -float(np.sum((own - own.mean(axis=0)) ** 2)), next(number), own

    number = iter(range(2 * most + 2))
    groups = [entry(points)]
    heapify(groups)
    while len(groups) < most and -groups[0][0] > _ROUNDING * whole:
        own = groups[0][2]
        along = own[:, int(np.argmax(np.ptp(own, axis=0)))]
        low = along <= along.mean()
        if low.all() or not low.any():
            # The mean of nearly equal numbers is rounded.
            low = along < along.max()
        if not low.any():
            break
        heappop(groups)
        for part in (own[low], own[~low]):
            heappush(groups, entry(part))
    return np.stack([own.mean(axis=0) for _, _, own in groups])


def refine(block: Block, plan: FillPlan) -> Block:
    """A block whose missing values have the codes of their states."""
    trees = [KDTree(states) for states in plan.states]
    codes: list[Codes] = [code.astype(np.uint16) for code in block.codes]
    groups: dict[int, list[CodedMissing]] = {}
    source = plan.joint.source
    for rows in _parts(len(block.y)):
        for found in _found(plan, block, rows):
            place = np.empty(found.missing.shape, dtype=np.int32)
            for k in np.unique(source[found.missing]).tolist():
                row, position = _where(plan, found, k)
                state = trees[k].query(_features(plan, found, k, row, position))[1]
                codes[k][rows.start + found.rows[row]] = plan.levels(k) + state
                for local, column in enumerate(np.flatnonzero(source == k)):
                    place[row, position + local] = plan.offset[column] + state
            coded = CodedMissing(
                (rows.start + found.rows).astype(np.int32), place, _correlations(found, source)
            )
            groups.setdefault(found.missing.shape[1], []).append(coded)
    joined = [
        CodedMissing(*(np.concatenate(parts) for parts in zip(*own, strict=True)))
        for own in groups.values()
    ]
    return block._replace(codes=tuple(codes), missing=tuple(joined))


def _correlations(found: RowGaps, source: Ints) -> NDArray[np.int16]:
    """Correlations of the pairs of missing values, zero within a covariate."""
    deviation = np.sqrt(np.maximum(np.diagonal(found.covariance, axis1=1, axis2=2), 0.0))
    inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    first, second = np.triu_indices(found.missing.shape[1], 1)
    pairs = found.covariance[:, first, second] * inverse[:, first] * inverse[:, second]
    covariate = source[found.missing]
    pairs *= covariate[:, first] != covariate[:, second]
    return np.asarray(np.round(CORRELATION_UNIT * np.clip(pairs, -1.0, 1.0)), dtype=np.int16)


class _Weights(NamedTuple):
    weights: list[Floats]

    def plus(self, other: Self) -> Self:
        pairs = zip(self.weights, other.weights, strict=True)
        return type(self)([one + more for one, more in pairs])


def _level_weights(levels: list[int], parts: list[RowBlocks]) -> list[Floats]:
    """Weight of the rows at each of that many levels of each covariate."""
    first, *others = (part.total(partial(_counted, levels=levels)) for part in parts)
    for other in others:
        first = first.plus(other)
    return first.weights


def _counted(block: Block, levels: list[int]) -> _Weights:
    pairs = zip(block.codes, levels, strict=True)
    return _Weights([counted(code, block.weight, n)[:n] for code, n in pairs])


def _state_weights(plan: FillPlan, parts: list[RowBlocks]) -> list[Floats]:
    """Weight of the rows in each state of each covariate."""
    first = [plan.levels(k) for k in range(len(plan.states))]
    pairs = zip(first, plan.states, strict=True)
    weights = _level_weights([n + len(own) for n, own in pairs], parts)
    return [own[n:] for own, n in zip(weights, first, strict=True)]


def state_values(plan: FillPlan, covariate: int) -> FilledRows:
    """The states of a missing covariate as rows without it."""
    joint, states = plan.joint, plan.states[covariate]
    columns = np.flatnonzero(joint.source == covariate)
    values, center, deviation = (np.full((len(states), len(joint.source)), np.nan) for _ in "vcd")
    kind = joint.kinds[covariate]
    if kind == NUMERIC:
        center[:, columns], deviation[:, columns] = states[:, :1], states[:, 1:]
        spots = at_scores(joint, int(columns[0]), states[:, 0], states[:, 1])
        values[:, columns] = spots.mean(axis=1, keepdims=True)
    else:
        low, width = joint.low[columns], (joint.high - joint.low)[columns]
        low, width = (low, width) if kind == BINARY else (np.zeros(1), np.ones(1))
        share = np.clip((states - low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        values[:, columns], center[:, columns] = states, states
        deviation[:, columns] = np.sqrt(share * (1 - share)) * width
    return FilledRows(values, deviation, center, deviation, [])


@dataclass(frozen=True)
class FillTables:
    """What a function of the covariates needs of the states to have a variance.

    Attributes
    ----------
    plan : the states.
    covariance : for each covariate that is missing somewhere, (states, columns, columns).
    loading : likewise (states, encoded columns, columns).
    """

    plan: FillPlan
    covariance: dict[int, Floats]
    loading: dict[int, Floats]

    def of(self, basis: AdditiveBasis, functions: Floats) -> tuple[Floats, Floats]:
        """Own variance and loading at each place, each (functions, places)."""
        own, moved = (np.zeros((len(functions), self.plan.size)) for _ in range(2))
        for k, covariance in self.covariance.items():
            beta = functions[:, basis.group == k]
            if not beta.any():
                continue
            first, n = self.plan.first(k), len(covariance)
            start = int(self.plan.offset[first])
            own[:, start : start + n] = np.einsum(
                "fi,sij,fj->fs", beta, covariance, beta, optimize=True
            )
            for local in range(self.loading[k].shape[1]):
                start = int(self.plan.offset[first + local])
                moved[:, start : start + n] = beta @ self.loading[k][:, local].T
        return own, moved


class ExpectedStates(NamedTuple):
    """Rows with missing values in expectation.

    Attributes
    ----------
    standardised, columns : for each covariate, values and basis columns in its states.
    covariance : conditional covariance of [1, standardised values, columns], summed over all rows.
    tables : for the variance of functions.
    """

    standardised: list[Floats]
    columns: list[Floats]
    covariance: Floats
    tables: FillTables


def expected_states(plan: FillPlan, basis: AdditiveBasis, rows: CodedRows) -> ExpectedStates:
    """Expectation of values and columns in the states, and what it leaves out."""
    n_encoded, size = len(basis.source), 1 + len(basis.source) + len(basis.group)
    total, standardised, columns = np.zeros((size, size)), [], []
    place, covariance, loading = {}, {}, {}
    for k, weight in enumerate(_state_weights(plan, rows.parts)):
        encoded, own = np.flatnonzero(basis.source == k), np.flatnonzero(basis.group == k)
        place[k], width = np.append(1 + encoded, 1 + n_encoded + own), len(encoded)
        functions = partial(values_and_columns, basis, k)
        every = np.arange(len(plan.states[k]))
        moments = moments_of(plan.joint, state_values(plan, k), every, k, functions)
        standardised.append(moments.mean[:, :width])
        columns.append(moments.mean[:, width:])
        flat = (moments.centred * np.sqrt(weight)[:, None, None]).reshape(-1, len(place[k]))
        total[np.ix_(place[k], place[k])] = flat.T @ flat
        of_columns = moments.centred[:, :, width:]
        covariance[k] = of_columns.transpose(0, 2, 1) @ of_columns
        loading[k] = moments.loading
    work = partial(_cross_moments, plan=plan, loading=loading, place=place, size=size)
    total += _total(rows.parts, work).matrix
    of_functions = {k: own[:, :, own.shape[1] :] for k, own in loading.items()}
    return ExpectedStates(standardised, columns, total, FillTables(plan, covariance, of_functions))


def _cross_moments(
    block: Block, plan: FillPlan, loading: dict[int, Floats], place: dict[int, Ints], size: int
) -> Gram:
    """Sum over rows of the covariances between the columns of values missing together.

    `loading` is that of `Moments`, `place` where these columns are in a matrix of that size.
    """
    total = np.zeros((size, size))
    parts = [_pairs(block, coded) for coded in block.missing if coded.place.shape[1] > 1]
    if not parts:
        return Gram(total)
    first, second, weight = (np.concatenate(own) for own in zip(*parts, strict=True))
    column = np.repeat(np.arange(len(plan.offset)), np.diff(np.append(plan.offset, plan.size)))
    one, other = column[first], column[second]
    key = one * len(plan.offset) + other
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order])) + 1
    source = plan.joint.source
    for rows in np.split(order, ends):
        i, j = int(one[rows[0]]), int(other[rows[0]])
        k, m = int(source[i]), int(source[j])
        if k == m:
            continue
        left = loading[k][first[rows] - plan.offset[i], i - plan.first(k)]
        right = loading[m][second[rows] - plan.offset[j], j - plan.first(m)]
        part = (left * weight[rows, None]).T @ right
        total[np.ix_(place[k], place[m])] += part
        total[np.ix_(place[m], place[k])] += part.T
    return Gram(total)


def _pairs(block: Block, coded: CodedMissing) -> tuple[Ints, Ints, Floats]:
    """Places of the pairs of values missing together, and weight times correlation of each."""
    first, second = np.triu_indices(coded.place.shape[1], 1)
    weight = block.weight[coded.rows, None] * coded.correlation / CORRELATION_UNIT
    kept = weight.ravel() != 0.0
    return (
        coded.place[:, first].ravel()[kept].astype(np.intp),
        coded.place[:, second].ravel()[kept].astype(np.intp),
        weight.ravel()[kept],
    )


def available(encoded: Floats, source: Ints, elsewhere: bool = False) -> Bools | None:
    """Which covariates each row has; None where every row has all, and those `elsewhere` too."""
    there = ~np.isnan(encoded[:, np.searchsorted(source, np.arange(int(source.max()) + 1))])
    return None if there.all() and not elsewhere else there
