"""Plans against sums over everything that may be seen, one by one."""

from __future__ import annotations

import numpy as np

from adacos.kernels.belief_plans import cost_by_class, expected_cost, least_cost


def test_the_best_plan_is_taken_for_each_thing_seen() -> None:
    rng = np.random.default_rng(0)
    for n_rows, n_samples, n_plans in ((1, 5, 1), (7, 40, 6), (900, 300, 9)):
        belief, seen = rng.dirichlet(np.ones(4), n_rows), rng.random((n_samples, 4))
        shares, plans = rng.dirichlet(np.ones(n_samples), 4).T, rng.normal(size=(n_plans, 4))
        found = cost_by_class(belief, seen, shares, plans)
        for r in rng.integers(0, n_rows, 5):
            best = [np.argmin([p @ (belief[r] * own) for p in plans]) for own in seen]
            wanted = sum(share * plans[a] for share, a in zip(shares, best, strict=True))
            np.testing.assert_allclose(found[r], wanted)
        total = (belief * found).sum(axis=1)
        np.testing.assert_allclose(expected_cost(belief, seen, shares, plans), total)


def test_true_evidence_gives_the_expected_bayes_risk_and_keeps_the_probabilities() -> None:
    """Where samples are all that can be seen, each as likely as it says, nothing is left to err."""
    rng = np.random.default_rng(1)
    shares, matrix = rng.dirichlet(np.ones(12), 3).T, 50 * (1 - np.eye(3))
    belief = rng.dirichlet(np.ones(3), 30)
    found = expected_cost(belief, shares, shares, matrix.T)
    together = belief[:, None, :] * shares
    np.testing.assert_allclose(found, (together @ matrix).min(axis=2).sum(axis=1))
    assert np.all(found <= least_cost(belief, matrix.T) + 1e-12)
    np.testing.assert_allclose(together.sum(axis=1), belief)


def test_evidence_may_rule_a_class_out_without_raising_the_others_as_much() -> None:
    """A level of a covariate that one of three classes never has: exact, by hand."""
    shares = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]])
    belief, matrix = np.full((1, 3), 1 / 3), 60 * (1 - np.eye(3))
    assert least_cost(belief, matrix.T)[0] == 40.0
    # With probability 1/3 the first level, where one half is right; else the third class is.
    wanted = 1 / 3 * 30 + 2 / 3 * 30
    np.testing.assert_allclose(expected_cost(belief, shares, shares, matrix.T), wanted)


def test_without_plans_nothing_is_available() -> None:
    assert np.isinf(least_cost(np.full((2, 3), 1 / 3), np.empty((0, 3)))).all()
