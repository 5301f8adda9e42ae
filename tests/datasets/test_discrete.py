"""Problems with a known joint distribution: what they promise, and bad settings refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos.datasets import make_discrete_problem, make_value_dependent_problem
from adacos.exceptions import InvalidInputError


@pytest.mark.parametrize("levels", [2, [2, 3, 4]])
def test_joint_and_prices(levels: Any) -> None:
    problem = make_discrete_problem(3, levels=levels, positive=0.3, mean_price=2.0, seed=1)
    assert problem.levels == ((2, 2, 2) if levels == 2 else (2, 3, 4))
    assert np.all(problem.joint > 0)
    assert problem.joint.sum() == pytest.approx(1.0)
    assert problem.joint[1].sum() == pytest.approx(0.3)
    assert list(problem.prices) == ["x0", "x1", "x2"]
    assert all(1.0 <= price <= 3.0 for price in problem.prices.values())
    again = make_discrete_problem(3, levels=levels, positive=0.3, mean_price=2.0, seed=1)
    np.testing.assert_array_equal(again.joint, problem.joint)
    other = make_discrete_problem(3, levels=levels, positive=0.3, mean_price=2.0, seed=2)
    assert not np.allclose(other.joint, problem.joint)


def test_dependence_is_measured_from_naive_bayes() -> None:
    def excess(dependence: float) -> float:
        joint = make_discrete_problem(3, dependence=dependence, seed=0).joint
        given = joint / joint.reshape(2, -1).sum(axis=1)[:, None, None, None]
        product = np.einsum(
            "yi,yj,yk->yijk", given.sum(axis=(2, 3)), given.sum(axis=(1, 3)), given.sum(axis=(1, 2))
        )
        return float(np.abs(given - product).sum())

    assert excess(0.0) < 1e-12
    assert 0.01 < excess(1.0) < excess(3.0)


def test_rows_are_drawn_from_the_joint() -> None:
    problem = make_discrete_problem(3, levels=[2, 3, 2], seed=3)
    X, y = problem.sample(200_000, seed=0)
    assert X.dtype == np.float64
    cells = np.ravel_multi_index((y, *X.astype(int).T), problem.joint.shape)
    share = np.bincount(cells, minlength=problem.joint.size) / len(y)
    deviation = np.sqrt(problem.joint.ravel() / len(y))
    assert np.all(np.abs(share - problem.joint.ravel()) < 5 * deviation)
    same, _ = problem.sample(200_000, seed=0)
    np.testing.assert_array_equal(same, X)


def test_first_covariate_says_which_one_holds_the_class() -> None:
    joint = make_value_dependent_problem(noise=0.1, n_irrelevant=2).joint
    assert joint.shape == (2,) * 6
    assert joint.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(joint[:, 0, 1, 0].reshape(2, -1).sum(axis=1) * 8, [0.1, 0.9])
    np.testing.assert_allclose(joint[:, 1, 1, 0].reshape(2, -1).sum(axis=1) * 8, [0.9, 0.1])


@pytest.mark.parametrize(
    "settings",
    [
        {"n_covariates": 0},
        {"levels": [2]},
        {"levels": [2, 0]},
        {"levels": 2.5},
        {"dependence": -1.0},
        {"strength": np.nan},
        {"n_components": 0},
        {"positive": 1.0},
        {"mean_price": -1.0},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        make_discrete_problem(**{"n_covariates": 2, **settings})


@pytest.mark.parametrize(
    "settings", [{"noise": 0.5}, {"n_irrelevant": -1}, {"prices": (1.0,)}, {"prices": (-1.0, 1.0)}]
)
def test_bad_settings_of_the_value_dependent_problem_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        make_value_dependent_problem(**settings)
