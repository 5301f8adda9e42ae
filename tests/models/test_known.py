"""Values known from the start: free, used, and never harmful beyond chance."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pytest
from scipy.special import expit

from adacos import AdaCOSClassifier, COSClassifier, Costs, FullModelClassifier
from adacos.datasets import load_heart, load_pima, load_wisconsin
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.metrics import total_costs
from adacos.models.density import regress
from adacos.models.known import given_known, original_stages

FIELDS = ("label", "probability", "acquired", "order", "cost", "stage", "expected_cost")


def same(one: AcquisitionResult, other: AcquisitionResult) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


@pytest.fixture(scope="module")
def pima():
    data = load_pima()
    costs = Costs(data.prices, false_positive=400, false_negative=400, panels=data.panels)
    return data, AdaCOSClassifier(costs).fit(data.X, data.y)


@pytest.fixture(scope="module")
def mixed():
    """A table with a categorical, a two-valued, a constant and numeric covariates, incomplete."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 500
    a, b = rng.normal(size=(2, n))
    group = rng.choice(["low", "mid", "high"], size=n)
    lift = np.select([group == "mid", group == "high"], [0.5, 1.5], 0.0)
    y = rng.random(n) < expit(a + b + lift - 0.7)
    table = pandas.DataFrame(
        {"a": a, "group": group, "b": b, "flag": (a + rng.normal(size=n) > 0), "same": 1.0}
    )
    table.loc[::9, "b"] = np.nan
    costs = Costs(
        {"a": 2.0, "group": 1.0, "b": 3.0, "flag": 0.0, "same": 1.0},
        false_positive=40,
        false_negative=60,
    )
    return table, y, AdaCOSClassifier(costs).fit(table, y)


@pytest.mark.parametrize("policy", [AdaCOSClassifier, COSClassifier, FullModelClassifier])
def test_nothing_known_changes_no_bit(pima, policy):
    data, fitted = pima
    other = policy(fitted.costs).from_model(fitted)
    nothing = np.zeros(data.X.shape, dtype=bool)
    assert same(other.acquire(data.X), other.acquire(data.X, known=nothing))


def test_a_model_that_already_has_the_known_values_is_the_same_object(pima, mixed):
    *_, fitted = mixed
    free = np.array(fitted.encoder_.names) == "flag"
    assert given_known(fitted.model_, free) is fitted.model_


def test_everything_known_is_the_full_model_at_no_cost(pima):
    data, fitted = pima
    result = fitted.acquire(data.X, known=np.ones(data.X.shape[1], dtype=bool))
    full = FullModelClassifier(fitted.costs).from_model(fitted).acquire(data.X)
    np.testing.assert_allclose(result.probability, full.probability, atol=1e-12)
    assert not result.acquired.any()
    assert np.all(result.cost == 0)
    assert np.all(result.order == -1)


def test_a_known_prefix_of_the_sequence_uses_the_models_of_the_sequence(pima):
    _, fitted = pima
    model = fitted.model_
    derived = given_known(model, model.sequence.masks()[3])
    np.testing.assert_array_equal(derived.coefs, model.coefs[3:])
    np.testing.assert_array_equal(derived.intercepts, model.intercepts[3:])
    for own, original in zip(derived.densities, model.densities[3:], strict=True):
        np.testing.assert_allclose(own.weights, original.weights)
        np.testing.assert_allclose(own.variance, original.variance)


def test_known_values_are_neither_acquired_nor_charged(pima):
    data, fitted = pima
    rng = np.random.default_rng(1)
    known = rng.random(data.X.shape) < 0.4
    result = fitted.acquire(data.X, known=known)
    assert not (result.acquired & known).any()
    assert np.array_equal(result.acquired.sum(axis=1), (result.order >= 0).sum(axis=1))
    table = fitted.cost_table_
    np.testing.assert_allclose(result.cost, table.of(result.acquired, given=known), atol=1e-12)
    for row in range(40):
        listed = [k for k in result.order[row] if k >= 0]
        assert sorted(listed) == np.flatnonzero(result.acquired[row]).tolist()


def test_a_known_panel_member_has_opened_the_panel(pima):
    data, fitted = pima
    full = FullModelClassifier(fitted.costs).from_model(fitted)
    names = list(data.prices)
    known = np.array([name == "Glucose" for name in names])
    paid = full.acquire(data.X, known=known).cost
    others = sum(price for name, price in data.prices.items() if name != "Glucose")
    np.testing.assert_allclose(paid, others - 2.10)


def test_rows_are_answered_alike_alone_and_together(mixed):
    table, _, fitted = mixed
    rng = np.random.default_rng(2)
    known = (rng.random(table.shape) < 0.4) & table.notna().to_numpy()
    together = fitted.acquire(table, known=known)
    for row in range(30):
        alone = fitted.acquire(table.iloc[[row]], known=known[[row]])
        assert np.array_equal(alone.order[0], together.order[row])
        np.testing.assert_allclose(alone.probability[0], together.probability[row], atol=1e-12)


def test_integrating_out_agrees_with_a_regression_on_the_rows(mixed):
    """Mean and variance of a column given others, from the moments and by least squares."""
    table, _, fitted = mixed
    model = fitted.model_
    complete = encoded_complete(fitted, table)
    basis = model.basis
    r = (complete - basis.mean) / basis.scale
    columns = basis.transform(complete)
    joint = np.column_stack([np.ones(len(r)), r, columns])
    regressors = np.flatnonzero(basis.source == 0)
    target = 1 + r.shape[1] + np.flatnonzero(basis.group == 2)[:3]
    found = regress(joint.T @ joint, regressors, target)
    design = np.column_stack([np.ones(len(r)), r[:, regressors]])
    expected, *_ = np.linalg.lstsq(design, joint[:, target], rcond=None)
    np.testing.assert_allclose(found.weights, expected, atol=0.01)
    left = np.cov((joint[:, target] - design @ expected).T)
    np.testing.assert_allclose(found.covariance, left, rtol=0.02, atol=1e-3)


def encoded_complete(fitted, table):
    return fitted.encoder_.transform(nw.from_native(table.assign(b=table["b"].fillna(0.0))))


def test_the_derived_log_odds_are_those_of_the_formula(mixed):
    """u_j + m_k(S_j ∪ K) - m_k(S_j), integrating numerically over the rows' own regressions."""
    table, _, fitted = mixed
    model = fitted.model_
    encoded = encoded_complete(fitted, table)
    order = model.sequence.order
    known = np.zeros(len(order), dtype=bool)
    known[order[3]] = True
    derived = given_known(model, known)
    stages = original_stages(model.sequence, derived.sequence)
    basis = model.basis
    r = (encoded - basis.mean) / basis.scale
    columns = basis.transform(encoded)
    k = 3 - model.sequence.n_free + 1

    def integrated(inside):
        outside = np.flatnonzero(~np.isin(basis.group, inside) & (model.coefs[k] != 0))
        regressors = np.flatnonzero(np.isin(basis.source, inside))
        fit = regress(model.moments, regressors, 1 + r.shape[1] + outside)
        beta = model.coefs[k, outside]
        design = np.column_stack([np.ones(len(r)), r[:, regressors]])
        own = np.isin(basis.group, inside)
        u = model.intercepts[k] + columns[:, own] @ model.coefs[k, own]
        u = u + design @ fit.weights @ beta
        return u / np.sqrt(1 + np.pi / 8 * (beta @ fit.covariance @ beta))

    for i, stage in enumerate(stages[stages < k]):
        expected = model.log_odds(encoded, stage)
        expected = expected + integrated(derived.sequence.set(i))
        expected = expected - integrated(model.sequence.set(stage))
        np.testing.assert_allclose(derived.log_odds(encoded, i), expected, atol=1e-9)


def test_wrong_masks_are_refused_by_name(mixed):
    table, _, fitted = mixed
    with pytest.raises(InvalidInputError, match="column 'b' is missing"):
        fitted.acquire(table, known=np.ones(table.shape, dtype=bool))
    with pytest.raises(InvalidInputError, match="a mask of shape"):
        fitted.acquire(table, known=np.ones((3, 2), dtype=bool))
    with pytest.raises(InvalidInputError, match="a mask of shape"):
        fitted.acquire(table, known=np.ones(table.shape))


@pytest.mark.parametrize("loader", [load_pima, load_heart, load_wisconsin])
@pytest.mark.parametrize("errors", [(100, 1000), (400, 400)])
def test_known_subsets_do_not_raise_the_total_cost(loader, errors):
    data = loader(as_frame=False)
    costs = Costs(list(data.prices.values()), false_positive=errors[0], false_negative=errors[1])
    changes: dict[float, list[np.ndarray]] = {0.15: [], 0.4: [], 1.0: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data.y))
        train, test = rows[: int(0.6 * len(rows))], rows[int(0.6 * len(rows)) :]
        test = test[~np.isnan(data.X[test]).any(axis=1)][:80]
        policy = AdaCOSClassifier(costs, random_state=seed).fit(data.X[train], data.y[train])
        plain = total_costs(policy.acquire(data.X[test]), data.y[test], costs)
        for share, found in changes.items():
            known = rng.random((len(test), data.X.shape[1])) < share
            result = policy.acquire(data.X[test], known=known)
            found.append(total_costs(result, data.y[test], costs) - plain)
    for share, found in changes.items():
        change = np.concatenate(found)
        error = change.std() / np.sqrt(len(change))
        assert change.mean() <= error, share
        if share == 1.0:
            assert change.mean() < 0
