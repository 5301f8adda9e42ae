"""Forward selection and parallel fits against brute force over all sets of covariates."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from adacos import AdaCOSClassifier, COSClassifier, Costs, FullModelClassifier
from adacos.kernels.folds import stratified_folds
from adacos.typing import Floats
from tests.policy_checks import price, same

QUICK: dict[str, Any] = {"strengths": "common", "cv": 3, "n_splines": 5}
NAMES = tuple(f"x{k}" for k in range(4))
# At what sets are compared: strength of the wiggly and of the linear parts.
WIGGLY, LINEAR = 30.0, 3.0

COSTS = {
    "misses are dear": Costs([0.3, 0.1, 1.0, 0.2], false_positive=10, false_negative=60),
    "one covariate is free": Costs([0.3, 0.1, 0.0, 0.2], false_positive=10, false_negative=20),
    "a panel": Costs(
        [0.8, 0.7, 0.9, 0.2], false_positive=10, false_negative=20, panels={"p": (0.6, [0, 2])}
    ),
    # Nothing pays: every set answers all rows alike, and the likelihood tells sets apart.
    "all tie": Costs([1.0, 1.0, 1.0, 1.0], false_positive=1, false_negative=1e6),
}


def rows(n: int = 160, seed: int = 0) -> tuple[Floats, NDArray[np.intp]]:
    """One strong covariate, one that bends, one weak copy of the first, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 2] = X[:, 0] + 0.8 * X[:, 2]
    odds = 1.6 * X[:, 0] + X[:, 1] ** 2 - 1.2
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def out_of_fold_by_scikit_learn(policy: Any, X: Floats, y: Any, members: Any) -> Floats:
    """Log-odds of each row by a model of these covariates, fitted by scikit-learn without its fold.

    Columns divided by the root of their strength turn a diagonal penalty into a plain ridge.
    """
    basis = policy.model_.basis
    inside = np.isin(basis.group, members)
    strength = np.where(basis.linear[basis.term], LINEAR, WIGGLY)
    columns = (basis.transform(X) / np.sqrt(strength))[:, inside]
    fold = stratified_folds(X, y.astype(float), policy.cv, policy.random_state)
    log_odds = np.empty(len(y))
    for number in range(policy.cv):
        out = fold == number
        if not len(members):
            share = y[~out].mean()
            log_odds[out] = np.log(share / (1 - share))
            continue
        model = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000)
        log_odds[out] = model.fit(columns[~out], y[~out]).decision_function(columns[out])
    return log_odds


def judged(policy: Any, X: Floats, y: Any) -> dict[frozenset[int], tuple[float, float]]:
    """Leave-out total cost and log-loss of every set of covariates."""
    (c00, c01), (c10, c11) = policy.costs.matrix
    found = {}
    for size in range(5):
        for members in combinations(range(4), size):
            log_odds = out_of_fold_by_scikit_learn(policy, X, y, members)
            p = 1 / (1 + np.exp(-log_odds))
            positive = (1 - p) * c01 + p * c11 < (1 - p) * c00 + p * c10
            wrong = np.where(
                y == 1, np.where(positive, c11, c10), np.where(positive, c01, c00)
            ).mean()
            loss = -np.log(np.where(y == 1, p, 1 - p)).sum()
            total = float(wrong) + price(policy.costs, NAMES, members)
            found[frozenset(members)] = (round(total, 9), float(loss))
    return found


@pytest.mark.parametrize("name", COSTS)
def test_the_forward_order_is_the_greedy_one_over_all_sets(name: str) -> None:
    X, y = rows()
    costs = COSTS[name]
    policy = AdaCOSClassifier(costs, sequence="forward", **QUICK).fit(X, y)
    value = judged(policy, X, y)
    order = [k for k in range(4) if costs.covariates[k] == 0]
    n_free = len(order)
    while len(order) < 4:
        left = [k for k in range(4) if k not in order]
        order.append(min(left, key=lambda k: value[frozenset([*order, k])]))
    assert policy.model_.sequence.order.tolist() == order
    assert policy.model_.sequence.n_free == n_free
    assert policy.sequence_ == "forward"


def test_sets_are_compared_by_true_out_of_fold_log_odds() -> None:
    X, y = rows()
    policy = AdaCOSClassifier(COSTS["misses are dear"], sequence="forward", **QUICK).fit(X, y)
    sets = [np.array(members) for size in range(1, 5) for members in combinations(range(4), size)]
    for members, log_odds in zip(sets, policy._set_fits.screen(sets), strict=True):
        theirs = out_of_fold_by_scikit_learn(policy, X, y, members)
        np.testing.assert_allclose(log_odds, theirs, atol=2e-3)


def test_the_orders_above_differ_and_one_is_decided_by_likelihood() -> None:
    X, y = rows()
    orders = set()
    for costs in COSTS.values():
        policy = COSClassifier(costs, sequence="forward", **QUICK).fit(X, y)
        orders.add(tuple(policy.model_.sequence.order))
    assert len(orders) == len(COSTS)
    totals = [total for total, _ in judged(policy, X, y).values()]
    assert len(set(totals)) == 5, "by the number of covariates alone"


@pytest.mark.parametrize("sequence", ["auto", "group_lasso", "forward"])
@pytest.mark.parametrize("cls", [AdaCOSClassifier, COSClassifier, FullModelClassifier])
def test_two_jobs_change_no_bit(cls: Any, sequence: str) -> None:
    X, y = rows(100)
    X[::9, 1] = np.nan
    settings = {**QUICK, "cv": 2, "sequence": sequence}
    one, two = (
        cls(COSTS["misses are dear"], n_jobs=jobs, **settings).fit(X, y) for jobs in (None, 2)
    )
    assert one.sequence_ == two.sequence_
    assert one.sets_ == two.sets_
    for name in ("intercepts", "coefs", "moments", "out_of_fold_log_odds"):
        np.testing.assert_array_equal(getattr(one.model_, name), getattr(two.model_, name))
    same(one.acquire(X), two.acquire(X))
