"""More than two classes: moments of what is to come, and decisions, against two-class code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    LogisticGAM,
    TargetRecallClassifier,
)
from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import best_label, class_bayes_risk, pair_variance, roots
from adacos.kernels.saving import Savings
from adacos.metrics import total_cost
from adacos.models.class_lookahead import look_ahead_classes
from adacos.models.density import density_at
from adacos.models.lookahead import begin
from adacos.models.unavailable import learnable
from adacos.tables.columns import ColumnTable
from tests.rivals.problems import THREE_COSTS, three_table

QUICK: dict[str, Any] = {"cv": 3, "strengths": "common"}


@pytest.fixture(scope="module")
def policy() -> AdaCOSClassifier:
    return AdaCOSClassifier(THREE_COSTS, **QUICK).fit(*three_table())


def encoded_rows(policy: AdaCOSClassifier) -> Any:
    return policy._encode(three_table()[0])


def test_covariances_are_the_variances_of_every_direction(policy: AdaCOSClassifier) -> None:
    """A direction of the classes is one function: its density is the two-class one."""
    model = policy.model_
    rng = np.random.default_rng(0)
    basis, sequence = model.basis, model.sequence
    for direction in rng.normal(size=(4, 2)):
        along = np.einsum("l,qlm->qm", direction, model.coefs)
        for i, density in enumerate(model.densities):
            own = density_at(
                model.moments, basis.source, basis.group, along, sequence.order, sequence.sizes, i
            )
            inside = np.append(0, 1 + own.regressors)
            gram = model.moments[np.ix_(inside, inside)]
            factor = 1 + np.sum(own.inverse * gram) / model.moments[0, 0]
            variance = np.einsum("l,jlk,k->j", direction, density.variance, direction)
            np.testing.assert_allclose(variance, own.variance * factor, rtol=1e-8, atol=1e-12)
            r = rng.normal(size=(5, len(own.regressors)))
            mean = density.means(r) @ direction
            np.testing.assert_allclose(mean, own.moments(r)[0], atol=1e-9)


def test_what_is_missing_has_the_variance_of_every_direction(policy: AdaCOSClassifier) -> None:
    """Polarisation gives covariances; along a direction they are the two-class variances."""
    model, encoded = policy.model_, encoded_rows(policy)[:40]
    last = len(model.sequence) - 1
    found = model.unavailable(encoded, last)
    assert found.variance.any()
    direction = np.array([0.7, -1.3])
    along = replace(
        model,
        intercepts=model.intercepts @ direction,
        coefs=np.einsum("l,qlm->qm", direction, model.coefs),
    )
    own = along.unavailable(encoded, last)
    variance = np.einsum("l,rlk,k->r", direction, found.variance, direction)
    np.testing.assert_allclose(found.mean @ direction, own.mean[:, 0], atol=1e-9)
    np.testing.assert_allclose(variance, own.variance[:, 0, 0], atol=1e-8)
    available = ~np.isnan(encoded[:, policy.encoder_.first])
    vectors, numbers = (learnable(one, encoded, available, 0) for one in (model, along))
    later = len(model.sequence) - 1
    # Functions of a set: the first log-odds, the second, and their sum.
    first, second, both = np.moveaxis(vectors.learned.reshape(len(encoded), later, 3), 2, 0)
    between = (both - first - second) / 2
    learned = direction[0] ** 2 * first + direction[1] ** 2 * second
    learned += 2 * direction[0] * direction[1] * between
    np.testing.assert_allclose(learned, numbers.learned, rtol=1e-6, atol=1e-8)


def test_the_variance_between_two_classes() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(400_000, 3)) @ rng.normal(size=(3, 3))
    every = np.column_stack([np.zeros(len(draws)), draws])
    pairs = [np.var(every[:, a] - every[:, b]) for a in range(4) for b in range(a)]
    assert pair_variance(np.cov(draws.T)) == pytest.approx(np.mean(pairs), rel=1e-2)


def test_information_is_never_expected_to_do_harm(policy: AdaCOSClassifier) -> None:
    """At every set, complete rows and rows with missing values."""
    encoded = encoded_rows(policy)
    available = ~np.isnan(encoded[:, policy.encoder_.first])
    complete = available.all(axis=1)
    for rows in (complete, ~complete):
        for i in range(len(policy.model_.sequence)):
            have = policy.model_.sequence.masks()[i]
            nothing = np.zeros(len(have), dtype=np.bool_)
            state = begin(policy.model_, encoded[rows], available[rows], have, nothing)
            ahead = look_ahead_classes(state, policy.cost_table_).weighed(policy.rule_.matrix)
            risk = class_bayes_risk(ahead.log_odds, policy.rule_.matrix)
            assert ahead.future is not None
            assert np.all(ahead.future - ahead.cost <= risk[:, None] + 1e-9)


def test_the_order_of_the_classes_does_not_matter() -> None:
    """Other names, another order, the costs in that order: the same is acquired and answered."""
    X, y = three_table()
    names = {"healthy": "z", "sick": "x", "very sick": "y"}
    order = np.array([1, 2, 0])  # x, y, z as places among healthy, sick, very sick
    matrix = THREE_COSTS.matrix[np.ix_(order, order)]
    fixed = {"cv": list(KFold(3, shuffle=True, random_state=0).split(X)), "strengths": "common"}
    one = AdaCOSClassifier(THREE_COSTS, **fixed).fit(X, y)
    other = AdaCOSClassifier(THREE_COSTS.with_misclassification(matrix), **fixed)
    other.fit(X, np.array([names[label] for label in y]))
    first, second = one.acquire(X), other.acquire(X)
    assert one.sets_ == other.sets_
    assert np.mean((first.acquired == second.acquired).all(axis=1)) > 0.97
    same = np.array([names[label] for label in first.label]) == second.label
    assert np.mean(same) > 0.97


def test_it_pays_to_adapt() -> None:
    """The first covariate tells one class from two, the dear second one these two apart.

    AdaCOS buys the second where the first does not settle the class; one set for all buys it for
    every row or for none.
    """
    rng = np.random.default_rng(0)
    y = rng.choice(3, p=[0.6, 0.2, 0.2], size=1200)
    X = np.column_stack([2.5 * (y > 0), 2.5 * (y == 2)]) + rng.normal(size=(1200, 2))
    costs = Costs([1.0, 5.0], misclassification=40 * (1 - np.eye(3)))
    full = FullModelClassifier(costs, **QUICK).fit(X[:600], y[:600])
    means = {}
    for kind in (FullModelClassifier, COSClassifier, AdaCOSClassifier):
        policy = full if kind is FullModelClassifier else kind(costs, **QUICK).from_model(full)
        means[kind] = total_cost(policy.acquire(X[600:]), y[600:], costs)
    assert means[AdaCOSClassifier] < 0.95 * min(means[COSClassifier], means[FullModelClassifier])


def test_the_last_set_is_the_multinomial_model(policy: AdaCOSClassifier) -> None:
    X, y = three_table()
    complete = X.dropna().index.to_numpy()
    X, y = X.iloc[complete].reset_index(drop=True), y[complete]
    full = FullModelClassifier(THREE_COSTS, **QUICK).fit(X, y)
    gam = LogisticGAM(**QUICK).fit(X, y)
    np.testing.assert_allclose(full.predict_proba(X), gam.predict_proba(X), atol=0.05)


def test_what_needs_two_classes_is_refused_by_name() -> None:
    X, y = three_table(60)
    free = Costs()
    with pytest.raises(InvalidInputError) as refused:
        TargetRecallClassifier(AdaCOSClassifier(free, **QUICK), target_recall=0.9).fit(X, y)
    assert refused.value.parameter == "target_recall"
    fitted = AdaCOSClassifier(free, **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="must name the class"):
        fitted.calibrate(X, y, target_recall=0.9, confidence=0.9)
    assert roots(np.eye(2)).shape == (3, 2)


def _ruled_out() -> tuple[Any, Any]:
    """Two categorical covariates that rule dear classes out, and say little otherwise."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 4, (600, 2))
    rare = (rng.random(600) < 0.1) & (x[:, 0] < 2)
    y = np.where(rare, 1 + (rng.random(600) < 0.5), 0)
    return ColumnTable(
        {"a": np.array(list("stuv"))[x[:, 0]], "b": np.array(list("wxyz"))[x[:, 1]]}
    ), y


def test_what_a_set_is_expected_to_save_is_what_it_saves_out_of_fold_rows() -> None:
    """Before anything is known all rows are alike: then it is so of each single row."""
    X, y = _ruled_out()
    matrix = np.array([[0, 1, 1], [18, 0, 18], [18, 18, 0]])
    costs = Costs([0.1, 0.1], misclassification=matrix)
    policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
    model, matrix, none = policy.model_, policy.rule_.matrix, np.zeros(2, dtype=np.bool_)
    state = begin(model, policy._encode(X[np.arange(1)]), ~none[None], none, none)
    ahead = look_ahead_classes(state, policy.cost_table_).weighed(matrix)
    assert ahead.future is not None
    saving = class_bayes_risk(ahead.log_odds, matrix) - (ahead.future - ahead.cost)[0]
    label = best_label(model.out_of_fold_log_odds, matrix)
    by_set = matrix[y[:, None], label].mean(axis=0)
    np.testing.assert_allclose(saving, np.maximum(by_set[0] - by_set[1:], 0), atol=1e-2)
    # A normal vector would promise more than the price; nothing is paid.
    continues, _ = ahead.weighed_against(Savings(matrix))
    assert not continues.any()
    assert policy.acquire(X).cost.max() == 0.0


def test_rows_that_saw_the_same_are_decided_alike(policy: AdaCOSClassifier) -> None:
    """Together, where each distinct row is decided once, as apart."""
    X, _ = three_table()
    complete = np.flatnonzero(~np.isnan(encoded_rows(policy)).any(axis=1))[:6]
    together = policy.acquire(X.iloc[np.repeat(complete, 5)])
    apart = policy.acquire(X.iloc[complete])
    assert np.array_equal(together.acquired, np.repeat(apart.acquired, 5, axis=0))
    assert np.array_equal(together.label, np.repeat(apart.label, 5))
