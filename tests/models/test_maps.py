"""Maps of covariates with heavy tails: which are mapped, and that models see the mapped values."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import log_loss

import adacos
from adacos import AdaCOSClassifier, Costs, LogisticGAM, load_wisconsin
from adacos.models import basis as basis_module
from adacos.models.basis import fit_basis
from adacos.models.expected_rows import expected_rows
from adacos.models.levels import MOST_LEVELS, cut, level_sums, level_values
from adacos.models.maps import POINTS, MonotoneMaps, fit_maps
from adacos.models.missing import contribution_moments, fill_missing, fit_joint, moments_of
from adacos.tables.kinds import NUMERIC

HEAVY = {
    "log-normal": stats.lognorm(2),
    "milder log-normal": stats.lognorm(1),
    "Pareto": stats.pareto(1.5),
    "t2": stats.t(2),
    "exponential": stats.expon(),
}
LIGHT = {"normal": stats.norm(), "uniform": stats.uniform(), "beta": stats.beta(2, 5)}


def maps_of(*columns, weight=None, low=None, high=None):
    encoded = np.column_stack(columns)
    n, p = encoded.shape
    return fit_maps(
        encoded,
        np.ones(n) if weight is None else weight,
        np.arange(p),
        (NUMERIC,) * p,
        np.nanmin(encoded, axis=0) if low is None else low,
        np.nanmax(encoded, axis=0) if high is None else high,
    )


def heavy_rows(n, seed):
    """Two log-normal numbers and a normal one; the effects are on the logarithms."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 3))
    z[:, 1] += z[:, 0]
    y = (rng.random(n) < 1 / (1 + np.exp(-(z @ [1.5, -1.0, 0.8] - 0.5)))).astype(int)
    return np.column_stack([np.exp(2 * z[:, 0]), np.exp(z[:, 1]), z[:, 2]]), y


@pytest.mark.parametrize("n", [300, 3000, 200_000])
@pytest.mark.parametrize("name", LIGHT)
def test_light_tails_stay_exactly_as_they_are_for_any_number_of_rows(name, n):
    for seed in range(3):
        assert len(maps_of(LIGHT[name].rvs(n, random_state=seed)).columns) == 0


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_get_knots_where_the_rows_are(name):
    x = HEAVY[name].rvs(3000, random_state=0)
    maps = maps_of(x)
    middle = np.quantile(x, [0.05, 0.95])
    share = np.diff(maps.column(middle, 0))[0] / np.ptp(x)
    assert share > 1.5 * np.diff(middle)[0] / np.ptp(x)
    # Normal scores would give them this share.
    assert share > 0.6 * 2 * stats.norm.ppf(0.95) / (2 * stats.norm.ppf(1 - 0.5 / 3000))


def test_few_values_stay_and_one_typing_error_takes_no_place():
    X = load_wisconsin(as_frame=False).X
    assert len(maps_of(*X.T).columns) == 0
    ages = np.append(np.random.default_rng(0).uniform(20, 80, 2000), 1e9)
    maps = maps_of(ages)
    assert np.diff(maps.column(np.array([20.0, 80.0]), 0))[0] > 0.7 * np.ptp(ages)
    # Where other rows have it, too: a sample does not hold every row.
    sample = maps_of(ages[:-1], low=np.array([20.0]), high=np.array([1e9]))
    assert np.diff(sample.column(np.array([20.0, 80.0]), 0))[0] > 0.7 * np.ptp(ages)


def test_a_map_is_monotone_takes_the_range_onto_itself_and_back():
    x = HEAVY["t2"].rvs(1000, random_state=1)
    maps = maps_of(x)
    grid = np.linspace(x.min(), x.max(), 5001)
    mapped = maps.column(grid, 0)
    assert (np.diff(mapped) > 0).all()
    np.testing.assert_array_equal(mapped[[0, -1]], grid[[0, -1]])
    np.testing.assert_allclose(maps.back(mapped, 0), grid, atol=1e-9 * np.ptp(x))
    # Beyond the range nothing was learned.
    np.testing.assert_array_equal(maps.column(grid[[0, -1]] + [-9, 9], 0), grid[[0, -1]])


def test_units_do_not_matter_and_a_weight_counts_rows():
    x = HEAVY["log-normal"].rvs(500, random_state=2)
    maps, other = maps_of(x), maps_of(32 + 1.8 * x)
    np.testing.assert_allclose(other.mapped, 32 + 1.8 * maps.mapped, rtol=1e-9)
    counts = np.random.default_rng(0).integers(0, 3, len(x))
    ends = {"low": np.array([x.min()]), "high": np.array([x.max()])}
    weighed, repeated = maps_of(x, weight=counts, **ends), maps_of(np.repeat(x, counts), **ends)
    np.testing.assert_allclose(weighed.mapped, repeated.mapped, rtol=1e-12)


def test_missing_values_are_not_counted():
    x = HEAVY["log-normal"].rvs(500, random_state=2)
    with_missing = np.append(x, np.full(100, np.nan))
    np.testing.assert_array_equal(maps_of(with_missing).mapped, maps_of(x).mapped)


def test_a_policy_decides_as_one_on_mapped_values_does(monkeypatch):
    """Order of entry, models, densities and lookahead see the mapped values and nothing else."""
    X, y = heavy_rows(600, 0)
    fresh, _ = heavy_rows(400, 1)
    fresh = np.clip(fresh, X.min(axis=0), X.max(axis=0))
    costs = Costs([1.0, 1.0, 2.0], false_positive=10, false_negative=40)
    policy = AdaCOSClassifier(costs).fit(X, y)
    maps = policy.model_.basis.maps
    np.testing.assert_array_equal(maps.columns, [0, 1])
    monkeypatch.setattr(basis_module, "fit_maps", lambda *_: MonotoneMaps.none())
    every = np.arange(3)
    other = AdaCOSClassifier(costs).fit(maps.rows(X, every), y)
    assert policy.sets_ == other.sets_
    ours, theirs = policy.acquire(fresh), other.acquire(maps.rows(fresh, every))
    np.testing.assert_array_equal(ours.acquired, theirs.acquired)
    np.testing.assert_allclose(ours.probability, theirs.probability, atol=1e-8)
    np.testing.assert_allclose(ours.expected_cost, theirs.expected_cost, rtol=1e-6)
    # One row alone goes another way.
    for row in range(10):
        one = policy.acquire(fresh[row : row + 1])
        np.testing.assert_allclose(one.probability, theirs.probability[row], atol=1e-8)


def test_shape_functions_stay_in_the_units_of_the_covariate():
    X, y = heavy_rows(600, 0)
    gam = LogisticGAM().fit(X, y)
    values, effect = gam.shape_function(0)
    np.testing.assert_array_equal(values[[0, -1]], [X[:, 0].min(), X[:, 0].max()])
    beta = gam.coef_[gam.basis_.group == 0]
    np.testing.assert_allclose(effect, gam.basis_.block(values[:, None], 0) @ beta)


def test_the_moments_of_a_missing_value_are_those_of_the_mapped_one():
    X, _ = heavy_rows(400, 3)
    holed = X.copy()
    holed[::3, 0] = np.nan
    source, kinds = np.arange(3), (NUMERIC,) * 3
    joint = fit_joint(holed, source, kinds)
    gaps = fill_missing(joint, holed, np.ones(3, dtype=bool))
    basis, _ = fit_basis(gaps.values, np.ones(400), source, kinds, 8, None, holed)
    rows = np.flatnonzero(np.isnan(holed[:, 0]))
    coefs = np.random.default_rng(0).standard_normal((2, len(basis.group)))
    found = contribution_moments(joint, basis, coefs, gaps, rows, 0)
    points = moments_of(
        joint, gaps, rows, 0, lambda x: basis.block(x, 0) @ coefs[:, basis.group == 0].T
    )
    np.testing.assert_allclose(found.mean, points.mean, atol=1e-9)
    np.testing.assert_allclose(found.variance, (points.centred**2).sum(axis=1), rtol=1e-8)
    # The standardised value of such a row is the mean of the mapped points, not of their mean.
    expected = expected_rows(joint, basis, gaps).standardised[rows, 0]
    mean = moments_of(joint, gaps, rows, 0, lambda x: basis.standardise(x, np.array([0]))).mean
    np.testing.assert_allclose(expected, mean[:, 0], rtol=1e-9)
    at_mean = basis.standardise(gaps.values[rows])[:, 0]
    assert np.abs(expected - at_mean).max() > 0.05


def test_levels_lose_nothing_of_the_mapped_mean():
    rng = np.random.default_rng(0)
    x = stats.lognorm(2).rvs((20_000, 1), random_state=0)
    weight = rng.random(len(x))
    basis, _ = fit_basis(x, weight, np.array([0]), (NUMERIC,), 10)
    cuts = cut(NUMERIC, np.empty(0), x[:2000, 0], basis, np.array([0]))
    codes = cuts.codes(x)
    assert cuts.n_levels <= MOST_LEVELS
    ends = float(basis.low[0]), float(basis.high[0])
    values = level_values(cuts, level_sums(cuts, codes, x, weight), *ends)
    mapped = basis.maps.column(x[:, 0], 0), basis.maps.column(values[codes, 0], 0)
    np.testing.assert_allclose(weight @ mapped[1], weight @ mapped[0], rtol=1e-12)
    h = 1 / (MOST_LEVELS // 2 - (POINTS - 2))
    assert np.abs(mapped[1] - mapped[0]).max() <= h * np.ptp(x)


def test_rows_on_a_device_are_mapped_alike():
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    X, _ = heavy_rows(300, 0)
    maps, every = maps_of(*X.T), np.arange(3)
    there = torch.asarray(X)
    np.testing.assert_allclose(maps.rows(there, every).numpy(), maps.rows(X, every), rtol=1e-12)
    np.testing.assert_array_equal(there.numpy(), X)


def test_one_spoiled_row_costs_next_to_nothing():
    X, y = heavy_rows(1000, 0)
    fresh, truth = heavy_rows(4000, 1)
    X[:, :2], fresh[:, :2] = np.log(X[:, :2]), np.log(fresh[:, :2])
    spoiled = X.copy()
    spoiled[0] = 1e9
    losses = []
    for rows in (X, spoiled):
        gam = LogisticGAM(smoothness=1.0, ridge=0.1, cv=None).fit(rows, y)
        losses.append(log_loss(truth, gam.predict_proba(np.clip(fresh, X.min(0), X.max(0)))))
    assert losses[1] < 1.03 * losses[0]


def test_files_hold_the_maps_and_refuse_broken_ones(tmp_path):
    X, y = heavy_rows(300, 0)
    gam = LogisticGAM().fit(X, y)
    adacos.save(gam, tmp_path / "gam.adacos")
    again = adacos.load(tmp_path / "gam.adacos")
    np.testing.assert_array_equal(again.decision_function(X), gam.decision_function(X))
    maps = gam.basis_.maps
    wrong = [
        MonotoneMaps(maps.columns[::-1], maps.values, maps.mapped),
        MonotoneMaps(maps.columns, maps.values[:, ::-1], maps.mapped),
        MonotoneMaps(maps.columns, maps.values, maps.mapped[:1]),
        MonotoneMaps(maps.columns, maps.values, np.where(maps.mapped > 1, np.nan, maps.mapped)),
    ]
    for each in wrong:
        with pytest.raises(ValueError, match="maps"):
            each.check()
