"""Problems with numeric covariates: densities by scipy, cells by counting, one draw undone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from adacos.datasets import make_continuous_problem
from adacos.datasets._continuous import ALIENS, MIXTURES
from adacos.exceptions import InvalidInputError


@pytest.mark.parametrize("kind", [*MIXTURES, *ALIENS])
def test_the_same_seed_draws_the_same_problem(kind: str) -> None:
    one, again = (make_continuous_problem(kind, mean_price=4.0, seed=3) for _ in range(2))
    X, y = one.sample(50, seed=1)
    np.testing.assert_array_equal(X, again.sample(50, seed=1)[0])
    assert X.shape == (50, 5)
    assert set(y.tolist()) <= {0, 1}
    assert all(2.0 <= price <= 6.0 for price in one.prices.values())
    assert not np.allclose(X, make_continuous_problem(kind, seed=4).sample(50, seed=1)[0])


def test_class_probabilities_of_a_mixture_are_bayes_rule() -> None:
    problem = make_continuous_problem("mixture-8", seed=2)
    X, _ = problem.sample(20, seed=0)
    density = norm.pdf(X[:, None], problem.mean, problem.deviation).prod(axis=2) * problem.weight
    share = density[:, problem.class_share == 1].sum(axis=1) / density.sum(axis=1)
    np.testing.assert_allclose(problem.positive(problem.latent(X)), share, rtol=1e-10)


@pytest.mark.parametrize("kind", ["mixture-4", "pairs"])
def test_cells_are_what_counting_gives(kind: str) -> None:
    problem = make_continuous_problem(kind, n_covariates=3, seed=1)
    joint = problem.cells(4)
    n = 400_000
    X, y = problem.sample(n, seed=0)
    z = problem.latent(X)
    codes = [np.searchsorted(cuts, z[:, j]) for j, cuts in enumerate(problem.edges(4))]
    counted = np.zeros(joint.shape)
    np.add.at(counted, (y, *codes), 1 / n)
    error = np.sqrt(joint * (1 - joint) / n)
    assert np.all(np.abs(counted - joint) < 5 * error + 1e-5)
    assert joint.sum() == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(joint.sum(axis=(0, 2, 3)), 0.25, atol=1e-4)


def test_latent_values_are_found_again() -> None:
    """Covariates of the problems that are no mixtures have different marginal distributions."""
    problem = make_continuous_problem("switches", seed=0)
    X, _ = problem.sample(1000, seed=0)
    z = problem.latent(X)
    assert np.all(X[:, 1] > 0)
    assert X[:, 2].min() >= 0
    assert X[:, 2].max() <= 1
    np.testing.assert_allclose(np.exp(z[:, 1]), X[:, 1])
    # Each covariate is standard normal.
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.1)
    np.testing.assert_allclose(norm.cdf(z[:, 2]), X[:, 2], atol=1e-4)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="kind: must be one of 'mixture-2'"):
        make_continuous_problem("mixture-3")
    with pytest.raises(InvalidInputError, match="n_covariates"):
        make_continuous_problem("trees", n_covariates=2)
    with pytest.raises(InvalidInputError, match="mean_price"):
        make_continuous_problem("trees", mean_price=-1)
