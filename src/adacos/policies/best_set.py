"""The fixed set of covariates with which an estimator costs least, by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.costs import ROUNDING, CostTable
from adacos.deciders.fixed_set import columns_of
from adacos.kernels.class_risk import best_label, log_odds_of
from adacos.kernels.folds import drawn_rows, stratified_folds
from adacos.models.estimator_answers import Answering, EstimatorAnswers, learned
from adacos.models.sequences import SetSequence, forward_sequence, group_lasso_sequence
from adacos.models.set_fits import prepare
from adacos.tables.encoder import TableEncoder
from adacos.typing import Floats, Ints

# Rows on which the order is found, and on which the sets are compared; drawn where there are more.
_ORDER_ROWS, _COMPARED_ROWS = 2_000, 10_000
# Forward selection fits about half the square of the number of covariates; beyond this many the
# order is that of a group lasso.
_MOST_FORWARD = 30


def out_of_fold(
    estimator: Answering,
    values: Floats,
    labels: Ints,
    fold: Ints,
    classes: NDArray[Any],
    names: tuple[str, ...],
) -> tuple[Ints | None, Floats]:
    """Answers and probabilities of rows by fits without their fold.

    The answers are None where the estimator gives probabilities itself; else these are shares of
    the classes among the rows with the same answer, see `answered_shares`.
    """
    n_classes = len(classes)
    asks = hasattr(estimator, "predict_proba")
    probability, answer = np.empty((len(labels), n_classes)), np.empty(len(labels), dtype=np.intp)
    for part in range(int(fold.max()) + 1):
        inside, outside = fold == part, fold != part
        shares = class_shares(labels[outside], n_classes)
        if values.shape[1] == 0 or np.count_nonzero(shares) < 2:
            probability[inside], answer[inside] = shares, int(shares.argmax())
            continue
        fitted = learned(estimator, values[outside], labels[outside], classes, names)
        says = EstimatorAnswers(fitted, classes, names)
        if asks:
            probability[inside] = says.probabilities(values[inside])
        else:
            answer[inside] = says.answers(values[inside])
    if asks:
        return None, probability
    return answer, answered_shares(answer, labels, n_classes)[answer]


def class_shares(labels: Ints, n_classes: int) -> Floats:
    """Share of each class."""
    return np.bincount(labels, minlength=n_classes) / len(labels)


def answered_shares(answer: Ints, labels: Ints, n_classes: int) -> Floats:
    """Share of each class among the rows with each answer, and one more for which it is right."""
    count = np.eye(n_classes)
    np.add.at(count, (answer, labels), 1.0)
    return np.asarray(count / count.sum(axis=1, keepdims=True))


def best_set(
    estimator: Answering,
    encoded: Floats,
    labels: Ints,
    encoder: TableEncoder,
    costs: CostTable,
    classes: NDArray[Any],
    *,
    folds: int,
    seed: int,
    groups: Ints | None,
    budget: float | None,
) -> tuple[Ints, Floats]:
    """The set of least total cost along an order of the covariates, and the cost of each set.

    Sets that a budget does not pay for, and those that cost more by themselves than another does
    with its errors, are not compared and cost infinity.
    """
    rows = drawn_rows(labels.astype(np.float64), _COMPARED_ROWS, seed)
    own = None if groups is None else groups[rows]
    encoded, labels = encoded[rows], labels[rows]
    sequence = _sequence(encoded, labels, encoder, costs, len(classes), folds, seed, own)
    fold = stratified_folds(encoded, labels.astype(np.float64), folds, seed, own)
    paid = sequence.costs(costs)
    if budget is not None:
        paid = np.where(paid <= budget * (1 + ROUNDING), paid, np.inf)
    cost = np.full(len(sequence), np.inf)
    for number, price in enumerate(paid):
        # No answer costs less than the best one of each class.
        if price + costs.matrix.min(axis=1)[labels].mean() >= cost.min():
            continue
        members = sequence.set(number)
        names = tuple(encoder.names[k] for k in members)
        values = encoded[:, columns_of(members, encoder.source)]
        _, probability = out_of_fold(estimator, values, labels, fold, classes, names)
        log_odds = log_odds_of(probability)
        label = best_label(log_odds if len(classes) > 2 else log_odds[:, 0], costs.matrix)
        cost[number] = price + costs.matrix[labels, label].mean()
    return sequence.set(int(cost.argmin())), cost


def _sequence(
    encoded: Floats,
    labels: Ints,
    encoder: TableEncoder,
    costs: CostTable,
    n_classes: int,
    folds: int,
    seed: int,
    groups: Ints | None,
) -> SetSequence:
    """The order in which covariates are added, by additive models of some of the rows."""
    y = labels.astype(np.float64)
    rows = drawn_rows(y, _ORDER_ROWS, seed)
    own = None if groups is None else groups[rows]
    fits = prepare(
        encoded[rows],
        y[rows],
        encoder,
        n_splines=10,
        families=("common",),
        fold=stratified_folds(encoded[rows], y[rows], folds, seed, own),
        n_classes=n_classes,
    )
    if len(costs.covariates) <= _MOST_FORWARD:
        return forward_sequence(costs, fits.y, fits.weight, fits.screen)
    labelled = fits.complete[: len(fits.y)]
    return group_lasso_sequence(
        fits.basis, labelled, fits.y, fits.weight, costs.covariates, n_classes
    )
