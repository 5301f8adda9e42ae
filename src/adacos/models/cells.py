"""P(y, x) over cells of coded covariates, for planning.

A training row counts in its cell with its probability of each class given *all* its covariates, by
a model that did not see it and in which covariates act in pairs (`adacos.models.pairs`). Summed
over the rows of a state these give P(y | x_S) for any S, without a model of every S, and coherent
beliefs: what is expected after an acquisition is what is believed before it. The class as it
turned out counts a little besides (`TURNED_OUT`), which corrects what the model gets wrong in the
large. So that no cell is empty, some rows (`PSEUDO_ROWS`) are spread over all cells as if
covariates were independent, with the probabilities of the model there. Each class has the share in
all that it has among the rows: before anything is acquired the answer is that of the base rate.
"""

from __future__ import annotations

import numpy as np

from adacos.kernels.segments import least_variance_segments
from adacos.models.pairs import PairedFit, class_probabilities
from adacos.models.set_fits import SetFits
from adacos.tables.codes import Codes
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

# Share of the class as it turned out in what a row counts for.
TURNED_OUT = 0.1
# Rows that are spread over all cells: so many for each training row, and so many at most.
PSEUDO_ROWS, MOST_PSEUDO_ROWS = 0.1, 100.0
# Distinct values between which a number is cut; of more, so many quantiles.
_MOST_VALUES = 256
# What a code counts besides its rows, in its share of all.
_HALF_A_ROW = 0.5


def effect_codes(fits: SetFits, model: PairedFit, encoder: TableEncoder, most: int) -> Codes:
    """A code for each category or distinct value, and at most `most` for a number.

    A number is cut where that leaves the least variance of its contribution to the log-odds inside
    the codes: where a function is flat, no code is spent. Only values that were seen count: one
    that was filled in lies between them, and would get a code that no row has.
    """
    filled_in: dict[int, Ints] = {} if fits.holes is None else fits.holes.rows
    sizes, cuts = [], []
    for k, kind in enumerate(encoder.kinds):
        own = np.flatnonzero(encoder.source == k)
        if kind == CATEGORICAL:
            cuts.append(np.empty(0))
            sizes.append(len(own))
            continue
        values, counts = fits.complete[: len(fits.y), own[0]], fits.weight
        if k in filled_in:
            values, counts = np.delete(values, filled_in[k]), np.delete(counts, filled_in[k])
        ends = np.unique(values)
        if len(ends) > _MOST_VALUES:
            share = np.arange(1, _MOST_VALUES + 1) / _MOST_VALUES
            ends = np.unique(np.quantile(values, share, method="higher"))
        place = np.searchsorted(ends, values)
        weight = np.bincount(place, counts, minlength=len(ends)).astype(np.float64)
        effect = fits.basis.block(ends[:, None], k) @ model.coef[:, fits.basis.group == k].T
        first = least_variance_segments(effect, weight, most)[1:]
        cuts.append((ends[first] + ends[first - 1]) / 2)
        sizes.append(len(first) + 1)
    return Codes(encoder.source, np.array(sizes, dtype=np.intp), tuple(cuts))


def joint_of_cells(
    fits: SetFits, model: PairedFit, codes: Ints, sizes: Ints, planned: Ints
) -> Floats:
    """P(y, x) of classes and of the codes of the planned covariates, (classes, codes, …).

    `codes` (rows, covariates) are those of the prepared rows, missing values filled in.
    """
    turned_out = np.eye(fits.n_classes)[fits.y.astype(np.intp)]
    counted = (1 - TURNED_OUT) * model.leave_out + TURNED_OUT * turned_out
    counted *= fits.weight[:, None]
    shape = tuple(sizes[planned].tolist())
    cell = np.zeros(len(codes), dtype=np.intp)
    if shape:
        cell = np.ravel_multi_index(tuple(codes[:, planned].T), shape)
    n_cells = int(np.prod(shape))
    each = [np.bincount(cell, own, minlength=n_cells) for own in counted.T]
    rows = np.stack(each).reshape(fits.n_classes, *shape)
    total = float(fits.weight.sum())
    pseudo = min(PSEUDO_ROWS * total, MOST_PSEUDO_ROWS)
    joint = rows + pseudo * _spread(fits, model, codes, sizes, planned)
    # The classes keep the shares that they have among the rows.
    share = fits.weight @ turned_out / total
    each_class = joint.reshape(fits.n_classes, -1).sum(axis=1)
    return np.asarray(joint * (share / each_class).reshape(-1, *(1,) * len(shape)))


def _spread(fits: SetFits, model: PairedFit, codes: Ints, sizes: Ints, planned: Ints) -> Floats:
    """P(y, x) with independent codes and the model's probabilities at the mean of each cell."""
    basis, n = fits.basis, len(fits.y)
    axes = {int(k): axis for axis, k in enumerate(planned)}
    log_odds = model.intercept.reshape(-1, *(1,) * len(axes))
    share = np.ones((1,) * len(axes))
    means: dict[int, tuple[int, Floats]] = {}
    for k, axis in axes.items():
        member = np.where(codes[:, k] == np.arange(sizes[k])[:, None], fits.weight, 0.0)
        count = member.sum(axis=1)
        member /= np.maximum(count, np.finfo(float).tiny)[:, None]
        own = basis.group == k
        effect = model.coef[:, own] @ (member @ fits.columns[:n, own]).T
        log_odds = log_odds + _along(effect, (axis,), len(axes))
        count += _HALF_A_ROW
        share = share * _along((count / count.sum())[None], (axis,), len(axes))[0]
        for column in np.flatnonzero(basis.source == k).tolist():
            means[column] = axis, member @ fits.standardised[:n, column]
    products = model.products
    for i, (first, second) in enumerate(zip(products.first, products.second, strict=True)):
        if int(first) in means and int(second) in means:
            (one, values), (other, times) = sorted(
                (means[int(first)], means[int(second)]), key=lambda place: place[0]
            )
            product = (np.outer(values, times) - products.mean[i]) / products.scale[i]
            added = model.weights[:, i, None, None] * product
            log_odds = log_odds + _along(added, (one, other), len(axes))
    shape = (len(model.intercept), *share.shape)
    likely = class_probabilities(np.moveaxis(np.broadcast_to(log_odds, shape), 0, -1))
    return np.asarray(share * np.moveaxis(likely, -1, 0))


def _along(values: Floats, axes: tuple[int, ...], n_axes: int) -> Floats:
    """Values (classes, along some axes) with all axes, for broadcasting."""
    shape = [1] * n_axes
    for axis, size in zip(axes, values.shape[1:], strict=True):
        shape[axis] = size
    return values.reshape(len(values), *shape)
