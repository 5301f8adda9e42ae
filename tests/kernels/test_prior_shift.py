"""Log-odds at another prevalence against Bayes' rule, and outcomes against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from adacos.kernels.prior_shift import (
    SHIFT_SD,
    SLOPE_SD,
    LogOddsChange,
    fit_change,
    log_odds_at,
    shares_at,
)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_shift_is_bayes_rule_at_other_shares(n_classes):
    rng = np.random.default_rng(0)
    likelihood = rng.dirichlet(np.ones(6), size=n_classes)
    before, after = rng.dirichlet(np.ones(n_classes), size=2)
    base = log_odds_at(before)
    change = LogOddsChange(log_odds_at(after) - base, 1.0, base)
    u, wanted = (
        np.log(s[1:, None] * likelihood[1:] / (s[0] * likelihood[0])).T for s in (before, after)
    )
    if n_classes == 2:
        u, wanted = u[:, 0], wanted[:, 0]
    assert change.of(u) == pytest.approx(wanted, abs=1e-12)
    assert shares_at(base) == pytest.approx(before)
    # Rows of a class occur as much more often as the class, whatever their values.
    labels = rng.integers(0, n_classes, 6)
    assert change.row_factors(u, labels) == pytest.approx((after / before)[labels])


def test_rows_are_weighed_so_that_their_classes_follow_the_new_log_odds():
    """The weighted distribution of (u, y) is that of u reweighted, with y drawn from u'."""
    u = np.linspace(-3, 3, 25)
    mass = np.exp(-0.3 * (u - 0.4) ** 2)
    p = expit(u)
    base = log_odds_at(np.array([np.sum(mass * (1 - p)), np.sum(mass * p)]))
    change = LogOddsChange(np.array([-1.2]), 0.7, base)
    each = [change.row_factors(u, np.full(len(u), k)) for k in (0, 1)]
    weight = np.array([mass * (1 - p) * each[0], mass * p * each[1]])
    share = weight[1] / weight.sum(axis=0)
    assert share == pytest.approx(expit(change.of(u)), abs=1e-12)
    # Where the log-odds are not known a row counts as its class does.
    lost = change.row_factors(np.array([np.nan]), np.array([1]))
    assert lost == pytest.approx(change.factors[[1]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_outcomes_ask_for_the_maximum_of_the_objective(n_classes):
    rng = np.random.default_rng(1)
    u = rng.normal(0, 2, size=(150, n_classes - 1))
    base = np.linspace(-0.5, 0.2, n_classes - 1)
    true = base - 1.0 + 0.7 * (u - base)
    scores = np.column_stack([np.zeros(150), true])
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)

    def loss(at):
        after = base + at[:-1] + at[-1] * (u - base)
        log_p = log_softmax(np.column_stack([np.zeros(150), after]), axis=1)
        prior = np.sum(at[:-1] ** 2) / SHIFT_SD**2 + (at[-1] - 1) ** 2 / SLOPE_SD**2
        return -log_p[np.arange(150), labels].sum() + 0.5 * prior

    start = np.append(np.zeros(n_classes - 1), 1.0)
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-9}).x
    found = fit_change(u[:, 0] if n_classes == 2 else u, labels, base)
    assert np.append(found.change.shift, found.change.slope) == pytest.approx(best, abs=1e-5)
    # Standard errors by numerical second derivatives.
    h, size = 1e-4, n_classes
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            a, b = h * np.eye(size)[i], h * np.eye(size)[j]
            more, less = loss(best + a + b) - loss(best + a - b), loss(best - a + b)
            hessian[i, j] = (more - less + loss(best - a - b)) / (4 * h * h)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert np.append(found.shift_error, found.slope_error) == pytest.approx(errors, rel=1e-3)


def test_without_a_slope_it_stays_one_and_few_rows_change_little():
    u, labels = np.zeros(3), np.array([1, 1, 1])
    found = fit_change(u, labels, np.array([0.0]), with_slope=False)
    assert found.change.slope == 1.0
    assert found.slope_error == 0.0
    assert 0 < found.change.shift[0] < SHIFT_SD
    assert found.shift_error[0] < SHIFT_SD
