"""Functions that only rise or fall: exact on splines, in every model and fold, or refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    InvalidInputError,
    LogisticGAM,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.kernels import strengths
from adacos.kernels.irls import PENALTY_FLOOR
from adacos.kernels.splines import bspline_basis
from adacos.models.basis import fit_basis
from adacos.models.large_fits import LARGE_ROWS
from adacos.models.monotone import monotone_cone, monotone_directions

COSTS = Costs({"up": 1, "down": 1, "flag": 1, "free": 2}, false_positive=50, false_negative=80)
DIRECTIONS = {"up": 1, "down": -1, "flag": 1}
FAST = {"cv": 3, "strengths": "common"}


def table(n=300, seed=0):
    """A rise with a dent, a fall, a flag that acts the wrong way, and a covariate free to bend."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "up": rng.normal(size=n),
            "down": np.exp(rng.normal(size=n)),
            "flag": rng.random(n) < 0.4,
            "free": rng.uniform(-2, 2, n),
        }
    )
    log_odds = 1.5 * np.sin(1.7 * frame["up"]) - np.log(frame["down"]) - frame["flag"]
    log_odds += frame["free"] ** 2 - 1.3
    return frame, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


@pytest.fixture(scope="module")
def rows():
    return table()


def falls(basis, coef, k, direction):
    """The largest step against a direction, over the range and as far again on both sides."""
    j = int(np.searchsorted(basis.source, k))
    low, high = basis.low[j], basis.high[j]
    if basis.kinds[k] == "numeric":
        values = basis.maps.back(np.linspace(2 * low - high, 2 * high - low, 3001), j)
    else:
        values = np.array([low, high])
    f = basis.block(values[:, None], k) @ coef[basis.group == k]
    return float(np.max(-direction * np.diff(f)))


def test_shapes_go_one_way_beyond_the_range_too(rows):
    X, y = rows
    free, gam = LogisticGAM(cv=5).fit(X, y), LogisticGAM(cv=5, monotonic_cst=DIRECTIONS).fit(X, y)
    for name, direction in DIRECTIONS.items():
        k = X.columns.get_loc(name)
        assert falls(gam.basis_, gam.coef_, k, direction) < 1e-9
    assert falls(free.basis_, free.coef_, 0, 1) > 1e-4
    # What acts the wrong way does nothing, and what is free bends.
    assert gam.contributions(X)[:, 2] == pytest.approx(0, abs=1e-9)
    assert falls(gam.basis_, gam.coef_, 3, 1) > 1e-4
    by_position = LogisticGAM(cv=5, monotonic_cst=[1, -1, 1, 0]).fit(X, y)
    assert np.array_equal(by_position.coef_, gam.coef_)


def test_without_a_direction_not_a_bit_changes(rows):
    X, y = rows
    for none in ({}, [0, 0, 0, 0], {"up": 0}):
        plain, other = (LogisticGAM(cv=3, monotonic_cst=given).fit(X, y) for given in (None, none))
        assert np.array_equal(plain.coef_, other.coef_)
        assert np.array_equal(plain.out_of_fold_proba_, other.out_of_fold_proba_)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_constrained_optimum(rows, weighted):
    """Against SLSQP with the B-spline weights in order, on the same objective."""
    X, y = rows
    X, y = X[["up", "free"]].iloc[:150], y[:150]
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    how = {"smoothness": 1.0, "ridge": 0.5, "n_splines": 6, "cv": None}
    gam = LogisticGAM(**how, monotonic_cst={"up": 1}).fit(X, y, sample_weight=weight)
    weight = np.ones(len(y)) if weight is None else weight
    basis, columns = fit_basis(X.to_numpy(), weight, gam.encoder_.source, gam.encoder_.kinds, 6)
    penalty = np.where(basis.linear, 0.5, 1.0)[basis.term]
    penalty = np.maximum(np.append(0.0, penalty), PENALTY_FLOOR * weight.sum())

    def loss(b):
        u = b[0] + columns @ b[1:]
        return weight @ (np.logaddexp(0, u) - y * u) + 0.5 * penalty @ b**2

    cone = monotone_cone(basis, np.ones(len(basis.group), dtype=bool), np.array([1, 0]))
    # Differences of B-spline weights, as the next test shows.
    ordered = cone.inverse[cone.bounded]
    b = np.append(gam.intercept_, gam.coef_)
    best = minimize(
        loss,
        np.zeros_like(b),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda b: ordered @ b},
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    assert loss(b) <= best.fun + 1e-7
    assert b == pytest.approx(best.x, abs=2e-3)


def test_bounds_are_differences_of_spline_weights():
    """The bounded coefficients of one B-spline are the differences of its weights, 1 and -1."""
    x = np.linspace(0, 1, 200)
    basis, columns = fit_basis(x[:, None], np.ones(200), np.array([0]), ("numeric",), 7)
    assert basis.maps.column(x, 0) == pytest.approx(x)
    cone = monotone_cone(basis, np.ones(6, dtype=bool), np.array([1]))
    splines = bspline_basis(x, 0.0, 1.0, 7)
    design = np.column_stack([np.ones(200), columns])
    for number in range(7):
        coef = np.linalg.lstsq(design, splines[:, number], rcond=None)[0]
        assert design @ coef == pytest.approx(splines[:, number], abs=1e-9)
        wanted = np.diff(np.eye(7)[number])
        assert (cone.inverse @ coef)[1:] == pytest.approx(wanted, abs=1e-8)


def policies():
    return [
        AdaCOSClassifier(COSTS, monotonic_cst=DIRECTIONS, **FAST),
        COSClassifier(COSTS, monotonic_cst=DIRECTIONS, **FAST),
        FullModelClassifier(COSTS, monotonic_cst=DIRECTIONS, cv=3),
        AdaCOSClassifier(COSTS, monotonic_cst=DIRECTIONS, sequence="forward", **FAST),
        BranchingClassifier(COSTS, monotonic_cst=DIRECTIONS, max_depth=1, **FAST),
    ]


@pytest.mark.parametrize("policy", policies(), ids=lambda p: f"{type(p).__name__}-{p.sequence}")
def test_the_models_of_all_sets_go_one_way(rows, policy, tmp_path):
    X, y = rows
    X = X.astype({"flag": float})
    X.loc[::7, "up"] = np.nan  # missing values are integrated out with the functions as they are
    policy.fit(X, y)
    models = [policy.model_, *(n.model for n in getattr(policy, "nodes_", ()) if n.model)]
    for model in models:
        for coef in model.coefs:
            for name, direction in DIRECTIONS.items():
                assert falls(model.basis, coef, list(X.columns).index(name), direction) < 1e-9
    save(policy, tmp_path / "one_way.adacos")
    loaded = load(tmp_path / "one_way.adacos")
    assert loaded.get_params()["monotonic_cst"] == DIRECTIONS
    assert np.array_equal(loaded.predict(X), policy.predict(X))


def test_a_higher_value_never_lowers_the_probability(rows):
    X, y = rows
    policy = FullModelClassifier(COSTS, monotonic_cst=DIRECTIONS, **FAST).fit(X, y)
    higher = X.assign(up=X["up"] + 0.5, down=X["down"] / 2)
    assert np.all(policy.predict_proba(higher)[:, 1] >= policy.predict_proba(X)[:, 1] - 1e-12)


def test_out_of_fold_fits_go_one_way(rows, monkeypatch):
    """Of every candidate and fold, as the blend sees them."""
    seen = []
    held_out = strengths.held_out_log_odds

    def spied(design, fold, coefs):
        seen.append(coefs)
        return held_out(design, fold, coefs)

    monkeypatch.setattr(strengths, "held_out_log_odds", spied)
    X, y = rows
    gam = LogisticGAM(cv=3, monotonic_cst={"up": 1}).fit(X, y)
    (coefs,) = seen
    assert coefs.shape[2] == 4
    for candidate in range(coefs.shape[1]):
        for fit in range(4):
            assert falls(gam.basis_, coefs[1:, candidate, fit], 0, 1) < 1e-9


def test_it_shares_fits_and_recalls(rows):
    X, y = rows
    adacos = AdaCOSClassifier(COSTS, monotonic_cst=DIRECTIONS, **FAST).fit(X, y)
    COSClassifier(COSTS).from_model(adacos)
    with pytest.raises(InvalidInputError, match="monotonic_cst"):
        COSClassifier(COSTS, monotonic_cst={"up": 1}).from_model(adacos)
    free = Costs({"up": 1, "down": 1, "flag": 1, "free": 2}, false_positive=50)
    recall = TargetRecallClassifier(
        AdaCOSClassifier(free, monotonic_cst=DIRECTIONS, **FAST), target_recall=0.9
    ).fit(X, y)
    assert falls(recall.policy_.model_.basis, recall.policy_.model_.coefs[-1], 0, 1) < 1e-9
    moved = adacos.recalibrate(prevalence=0.1)
    assert falls(moved.model_.basis, moved.model_.coefs[-1], 0, 1) < 1e-9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Up": 1}, "Did you mean up"),
        ([1, 0], "one direction for each of 4 columns"),
        ({"up": 2}, r"\['up'\]: must be -1, 0 or 1;"),
        ({"up": True}, r"\['up'\]: must be -1, 0 or 1;"),
        ({"up": "rising"}, r"\['up'\]: must be -1, 0 or 1;"),
        ({"word": 1}, "categories have no order"),
    ],
)
def test_mistakes_are_reported(rows, given, message):
    X, y = rows
    if "word" in given:
        X = X.assign(word=np.where(X["up"] > 0, "a", np.where(X["free"] > 0, "b", "c")))
    with pytest.raises(InvalidInputError, match=message):
        LogisticGAM(monotonic_cst=given).fit(X, y)


def test_what_has_no_direction_is_refused_by_name(rows):
    X, y = rows
    with pytest.raises(InvalidInputError, match="must be None with three or more classes"):
        LogisticGAM(monotonic_cst={"up": 1}).fit(X, np.arange(len(y)) % 3)
    with pytest.raises(InvalidInputError, match="products have no direction"):
        LogisticGAM(monotonic_cst={"up": 1}, interactions="auto").fit(X, y)
    many = np.random.default_rng(0).normal(size=(LARGE_ROWS, 1))
    with pytest.raises(InvalidInputError, match="must be None from 100,000 rows on"):
        AdaCOSClassifier(monotonic_cst=[1]).fit(many, many[:, 0] > 0)
    with pytest.raises(InvalidInputError, match="must be None from 100,000 rows on"):
        LogisticGAM(monotonic_cst=[1]).fit(many, many[:, 0] > 0)


def test_directions_by_name_and_position(rows):
    X, y = rows
    encoder = LogisticGAM(cv=3).fit(X, y).encoder_
    assert monotone_directions({"down": -1}, encoder).tolist() == [0, -1, 0, 0]
    assert monotone_directions(np.array([0, 0, 1, 0]), encoder).tolist() == [0, 0, 1, 0]
    assert monotone_directions(None, encoder) is None
