"""`LogisticGAM` against pygam, true refits, fresh data, and every kind of table."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from adacos import LogisticGAM, load_heart, load_pima, load_wisconsin
from adacos.exceptions import InvalidInputError
from adacos.typing import Floats


def log_loss(log_odds: Floats, y: NDArray[Any]) -> float:
    return float(np.mean(np.logaddexp(0, log_odds) - y * log_odds))


def curved(
    n: int, seed: int, *, separable: bool = False
) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Rows with a line, a wave and a faint line in them, labels, true log-odds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    odds = 1.2 * X[:, 0] - np.sin(1.5 * X[:, 1]) + 0.3 * X[:, 2]
    y = odds > 0 if separable else rng.random(n) < expit(odds)
    return X, y.astype(np.intp), odds


def complete(data: Any) -> tuple[Floats, NDArray[np.int64]]:
    rows = ~np.isnan(data.X).any(axis=1)
    return data.X[rows], data.y[rows]


# Against pygam


def pygam_fit(X: Floats, y: NDArray[Any], n_splines: int, lam: list[float]) -> Any:
    """pygam with the same basis (cubic, equally spaced knots) and penalty lam |D b|^2 / 2.

    It adds a ridge of 1.5e-8 to every coefficient and stops when the coefficients settle; their
    level is free, so they may wander while the log-odds stand still long since.
    """
    from pygam import LogisticGAM as Peer
    from pygam import s

    terms = s(0, n_splines=n_splines, lam=lam[0])
    for j in range(1, X.shape[1]):
        terms += s(j, n_splines=n_splines, lam=lam[j])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Peer(terms, tol=1e-5, max_iter=40).fit(X, y)


PEER_CASES = [
    ("pima", 10, [0.6]),
    ("pima", 10, [0.3, 300.0, 1.0, 30.0, 3.0, 0.6, 100.0, 10.0]),
    ("pima", 20, [10.0]),
    ("simulated", 6, [0.1]),
    ("simulated", 12, [1.0, 0.1, 100.0]),
    ("simulated", 25, [5.0]),
]


@pytest.mark.parametrize(("name", "n_splines", "lam"), PEER_CASES)
def test_equals_pygam_at_equal_basis_and_penalty(
    name: str, n_splines: int, lam: list[float]
) -> None:
    X, y = complete(load_pima(as_frame=False)) if name == "pima" else curved(400, 0)[:2]
    lam = lam * X.shape[1] if len(lam) == 1 else lam
    gam = LogisticGAM(n_splines=n_splines, smoothness=lam, ridge=1e-8).fit(X, y)
    # The peer knows no maps: it gets what ours puts heavy-tailed covariates into.
    given = partial(gam.basis_.maps.rows, columns=np.arange(X.shape[1]))
    peer = pygam_fit(given(X), y, n_splines, lam)
    theirs, ours = peer._linear_predictor(given(X)), gam.decision_function(X)
    assert np.abs(theirs - ours).max() < 1e-3
    assert round(log_loss(theirs, y), 5) == pytest.approx(round(log_loss(ours, y), 5), abs=1.1e-5)
    assert log_loss(theirs, y) == pytest.approx(log_loss(ours, y), abs=1e-6)
    # Outside the training range ours stays at its end, where the two still agree.
    beyond = X[:50] + 0.5 * np.ptp(X, axis=0) * np.where(np.arange(50) % 2, 1.0, -1.0)[:, None]
    at_end = np.clip(beyond, X.min(axis=0), X.max(axis=0))
    np.testing.assert_array_equal(gam.decision_function(beyond), gam.decision_function(at_end))
    np.testing.assert_allclose(
        gam.decision_function(beyond), peer._linear_predictor(given(at_end)), atol=5e-3
    )


def test_the_peer_comparison_can_show_strengths_apart() -> None:
    X, y, _ = curved(400, 0)
    peer = pygam_fit(X, y, 10, [1.0] * 3)
    other = LogisticGAM(smoothness=1.3, ridge=1e-8).fit(X, y)
    assert np.abs(peer._linear_predictor(X) - other.decision_function(X)).max() > 0.01


def test_a_huge_smoothness_is_ridge_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    X, y, _ = curved(300, 1)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = LogisticRegression(C=1 / 3.0, tol=1e-10, max_iter=1000).fit(standard, y)
    gam = LogisticGAM(smoothness=1e10, ridge=3.0).fit(X, y)
    np.testing.assert_allclose(
        gam.decision_function(X), peer.decision_function(standard), atol=1e-4
    )


# Leave-out probabilities


@pytest.mark.parametrize("name", ["heart", "wisconsin", "simulated", "separable"])
def test_out_of_fold_probabilities_at_given_strengths_are_true_refits(name: str) -> None:
    if name in ("heart", "wisconsin"):
        X, y = complete({"heart": load_heart, "wisconsin": load_wisconsin}[name](as_frame=False))
    else:
        X, y, _ = curved(160, 2, separable=name == "separable")
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    strengths = {"smoothness": 10.0, "ridge": 0.5}
    gam = LogisticGAM(cv=splits, **strengths).fit(X, y)
    expected = np.empty(len(y))
    for train, test in splits:
        # Weight 0 leaves rows out of everything; a weight of almost 0 keeps the range of the
        # columns, and so the basis, as it is with all rows.
        weight = np.full(len(y), 1e-12)
        weight[train] = 1.0
        refit = LogisticGAM(cv=splits, **strengths).fit(X, y, sample_weight=weight)
        expected[test] = refit.predict_proba(X[test])[:, 1]
    # The basis is centred on the weighted rows, which only the tiny ridge on the intercept feels;
    # standardisation on 80% of the rows changes what a ridge of 0.5 means by about 3%.
    assert np.abs(gam.out_of_fold_proba_ - expected).max() < 0.03
    loss = -np.mean(np.where(y == 1, np.log(expected), np.log1p(-expected)))
    assert gam.out_of_fold_log_loss_ == pytest.approx(loss, rel=0.01)
    ours = gam.out_of_fold_proba_
    own = -np.mean(np.where(y == 1, np.log(ours), np.log1p(-ours)))
    assert gam.out_of_fold_log_loss_ == pytest.approx(own, rel=1e-9)


@pytest.mark.parametrize("name", ["heart", "simulated", "separable"])
def test_out_of_fold_probabilities_agree_with_repeating_everything_without_the_fold(
    name: str,
) -> None:
    """Slow reference: the whole search for strengths anew on the other folds."""
    if name == "heart":
        X, y = complete(load_heart(as_frame=False))
    else:
        X, y, _ = curved(200, 3, separable=name == "separable")
    fold = np.random.default_rng(0).permutation(len(y)) % 8
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(8)]
    gam = LogisticGAM(cv=splits).fit(X, y)
    nested = np.empty(len(y))
    for f in range(8):
        rest = fold != f
        inner = [
            (np.flatnonzero(fold[rest] != g), np.flatnonzero(fold[rest] == g))
            for g in range(8)
            if g != f
        ]
        nested[~rest] = LogisticGAM(cv=inner).fit(X[rest], y[rest]).decision_function(X[~rest])
    ours = gam.out_of_fold_proba_
    assert np.mean(np.abs(ours - expit(nested))) < 0.02
    row_loss = np.logaddexp(0, nested) - y * nested
    own_loss = -np.where(y == 1, np.log(ours), np.log1p(-ours))
    difference = own_loss - row_loss
    noise = difference.std(ddof=1) / np.sqrt(len(y))
    assert abs(difference.mean()) < max(2 * noise, 0.04 * row_loss.mean())
    # What is seen in training is flattering, and this is not it.
    assert own_loss.mean() > log_loss(gam.decision_function(X), y)


class Losses(NamedTuple):
    """Mean log-loss of each draw."""

    out_of_fold: Floats
    fresh: Floats
    training: Floats


def simulate(
    *, separable: bool, cv: int, draws: int = 200, share: float = 1.0, n: int = 120
) -> Losses:
    """Leave-out loss on n rows; fresh and training loss of a fit on this share of them."""
    losses = Losses(np.empty(draws), np.empty(draws), np.empty(draws))
    for draw in range(draws):
        X, y, _ = curved(n + 3000, 10_000 + draw, separable=separable)
        gam = LogisticGAM(cv=cv).fit(X[:n], y[:n])
        losses.out_of_fold[draw] = gam.out_of_fold_log_loss_
        if share < 1:
            used = round(share * n)
            gam = LogisticGAM(cv=cv).fit(X[:used], y[:used])
        losses.fresh[draw] = log_loss(gam.decision_function(X[n:]), y[n:])
        losses.training[draw] = log_loss(gam.decision_function(X[:n]), y[:n])
    return losses


def z_score(difference: Floats) -> float:
    return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference))))


def test_out_of_fold_log_loss_is_unbiased_on_a_moderate_problem() -> None:
    losses = simulate(separable=False, cv=10)
    assert abs(z_score(losses.out_of_fold - losses.fresh)) < 2
    # A leak would be noticed: the loss seen in training is far off.
    assert z_score(losses.training - losses.fresh) < -10


def test_out_of_fold_log_loss_is_unbiased_on_separable_data() -> None:
    """Ten folds estimate the loss of a fit on nine tenths of the rows, and that without bias.

    On separable data the loss falls about as fast as rows are added, so this is visibly more than
    the loss of the fit on all rows; with more folds the difference goes away (next test).
    """
    losses = simulate(separable=True, cv=10, share=0.9)
    assert abs(z_score(losses.out_of_fold - losses.fresh)) < 2


def test_out_of_fold_log_loss_on_separable_data_with_many_folds() -> None:
    losses = simulate(separable=True, cv=30)
    assert abs(z_score(losses.out_of_fold - losses.fresh)) < 2
    assert z_score(losses.training - losses.fresh) < -10


# Weights


def test_weights_are_repetitions() -> None:
    X, y, _ = curved(120, 4)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    fold = np.arange(len(y)) % 5  # copies of a row in one fold: the same problem for both

    def splits(of: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(np.flatnonzero(of != f), np.flatnonzero(of == f)) for f in range(5)]

    weighted = LogisticGAM(cv=splits(fold)).fit(X, y, sample_weight=times)
    repeated = LogisticGAM(cv=splits(fold.repeat(times))).fit(
        X.repeat(times, axis=0), y.repeat(times)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-5
    )
    np.testing.assert_allclose(weighted.smoothness_, repeated.smoothness_, rtol=1e-3)
    kept = times > 0
    assert np.all(np.isnan(weighted.out_of_fold_proba_[~kept]))
    np.testing.assert_allclose(
        weighted.out_of_fold_proba_[kept].repeat(times[kept]),
        repeated.out_of_fold_proba_,
        atol=1e-5,
    )
    assert weighted.out_of_fold_log_loss_ == pytest.approx(repeated.out_of_fold_log_loss_, rel=1e-5)


def test_rows_of_weight_zero_take_no_part_at_all() -> None:
    X, y, _ = curved(100, 5)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind="plain", step=0.0)
    outlier = frame.iloc[:1].assign(a=1e6, kind="rare", step=[7.0])
    both = pd.concat([frame, outlier], ignore_index=True)
    weight = np.r_[np.ones(100), 0.0]
    with_outlier = LogisticGAM().fit(both, np.r_[y, 1], sample_weight=weight)
    without = LogisticGAM().fit(frame, y)
    np.testing.assert_array_equal(
        with_outlier.decision_function(frame), without.decision_function(frame)
    )


def test_weights_must_be_sensible() -> None:
    X, y, _ = curved(40, 5)
    with pytest.raises(InvalidInputError, match="sample_weight: must not be negative"):
        LogisticGAM().fit(X, y, sample_weight=np.r_[-1.0, np.ones(39)])
    with pytest.raises(InvalidInputError, match="sample_weight: must leave rows of both classes"):
        LogisticGAM().fit(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match=r"at least one non-zero|rows of both classes"):
        LogisticGAM().fit(X, y, sample_weight=np.zeros(40))


# Always an answer


@pytest.mark.parametrize("strengths", ["auto", "common", "per_covariate"])
@pytest.mark.parametrize(
    "name",
    ["separated", "fewer rows than columns", "constant", "duplicated column", "four rows", "rare"],
)
def test_always_fits(name: str, strengths: str) -> None:
    rng = np.random.default_rng(0)
    X, y, _ = curved(60, 6, separable=name == "separated")
    if name == "fewer rows than columns":
        X, y = rng.normal(size=(12, 30)), np.arange(12) % 2
    elif name == "constant":
        X[:, 1] = 5.0
    elif name == "duplicated column":
        X[:, 1] = X[:, 0]
    elif name == "four rows":
        X, y = X[:4], np.array([0, 1, 0, 1])
    elif name == "rare":
        y = np.r_[1, np.zeros(59, dtype=int)]
    gam = LogisticGAM(strengths=strengths).fit(X, y)
    p = gam.predict_proba(X)
    assert np.all(np.isfinite(p))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.all((gam.out_of_fold_proba_ > 0) & (gam.out_of_fold_proba_ < 1))


@pytest.mark.parametrize("value", [0.0, 1e-300])
def test_tiny_strengths_on_separated_data(value: float) -> None:
    X, y, _ = curved(60, 6, separable=True)
    gam = LogisticGAM(smoothness=value, ridge=value).fit(X, y)
    assert np.all((gam.decision_function(X) > 0) == (y == 1))
    assert np.all(np.isfinite(gam.out_of_fold_proba_))


# Contributions and pictures


def mixed(n: int = 160, seed: int = 7) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Every kind of column, and labels that are words."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "smokes": rng.random(n) < 0.4,
            "town": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
            "planet": "earth",
            "zero": 0.0,
            "count": rng.integers(0, 6, n),
        }
    )
    odds = 0.08 * (frame.age - 50) + 1.5 * frame.smokes + np.where(frame.town == "west", 2.0, -0.5)
    y = np.where(rng.random(n) < expit(odds), "ill", "healthy")
    return frame, y


def test_contributions_and_intercept_sum_to_the_log_odds() -> None:
    X, y = mixed()
    gam = LogisticGAM().fit(X, y)
    parts = gam.contributions(X)
    assert parts.shape == X.shape
    np.testing.assert_allclose(parts.sum(axis=1) + gam.intercept_, gam.decision_function(X))
    # Centred: the intercept is the log-odds of an average row.
    np.testing.assert_allclose(parts.mean(axis=0), 0.0, atol=1e-9)
    # A contribution belongs to its own column.
    changed = X.assign(age=X.age + 5)
    moved = gam.contributions(changed) - parts
    assert np.abs(moved[:, 0]).max() > 0.1
    np.testing.assert_array_equal(moved[:, 1:], 0.0)


def test_all_kinds_of_columns() -> None:
    X, y = mixed()
    gam = LogisticGAM().fit(X, y)
    assert gam.classes_.tolist() == ["healthy", "ill"]
    assert gam.feature_names_in_.tolist() == list(X.columns)
    parts = gam.contributions(X)
    assert np.all(parts[:, 3:5] == 0), "a constant column contributes nothing"
    assert len(np.unique(parts[:, 1])) == 2
    assert len(np.unique(parts[:, 2])) == 3
    west, north = parts[X.town == "west", 2][0], parts[X.town == "north", 2][0]
    assert west > north + 0.5
    assert np.isnan(gam.smoothness_[[1, 2, 3, 4]]).all(), "only numeric columns are smoothed"
    assert np.isnan(gam.ridge_[[3, 4]]).all()
    assert gam.score(X, y) > 0.65


def test_an_unseen_category_counts_as_an_average_row() -> None:
    X, y = mixed()
    gam = LogisticGAM().fit(X, y)
    odd = gam.contributions(X.head(5).assign(town="atlantis"))
    np.testing.assert_allclose(odd[:, 2], 0.0, atol=1e-12)
    new_constant = gam.contributions(X.head(5).assign(planet="mars", zero=3.0))
    np.testing.assert_array_equal(new_constant[:, 3:5], 0.0)


def test_shape_functions_are_the_contributions() -> None:
    X, y = mixed()
    gam = LogisticGAM().fit(X, y)
    values, effect = gam.shape_function("age", points=50)
    assert len(values) == 50
    assert values[0] == X.age.min()
    assert values[-1] == X.age.max()
    probe = pd.concat([X.head(1)] * 50, ignore_index=True).assign(age=values)
    np.testing.assert_allclose(gam.contributions(probe)[:, 0], effect, atol=1e-12)
    towns, effect = gam.shape_function(2)
    assert towns.tolist() == ["north", "south", "west"]
    probe = pd.concat([X.head(1)] * 3, ignore_index=True).assign(town=towns)
    np.testing.assert_allclose(gam.contributions(probe)[:, 2], effect, atol=1e-12)
    assert np.all(gam.shape_function("zero")[1] == 0)
    assert gam.shape_function("planet")[0].tolist() == ["earth"]
    for unknown in ("shoe size", 6, -1):
        with pytest.raises(InvalidInputError, match="covariate: must be a fitted column"):
            gam.shape_function(unknown)


@pytest.mark.parametrize("columns", [1, 4, 7])
def test_shape_functions_are_drawn(columns: int) -> None:
    from matplotlib.figure import Figure

    X, y = mixed()
    figure = LogisticGAM().fit(X, y).plot_shape_functions(columns=columns)
    assert isinstance(figure, Figure)
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in shown] == list(X.columns)
    assert len(shown[0].lines[0].get_xdata()) == 200
    assert len(shown[2].patches) == 3


def test_drawing_without_matplotlib_says_how_to_install_it(monkeypatch: Any) -> None:
    import sys

    from adacos.exceptions import MissingExtraError

    X, y, _ = curved(50, 0)
    gam = LogisticGAM().fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]' in a clone"):
        gam.plot_shape_functions()


# Tables


def test_every_container_gives_the_same_model() -> None:
    X, y = mixed()
    expected = LogisticGAM().fit(X, y).predict_proba(X)
    for other in (
        pl.from_pandas(X),
        pa.Table.from_pandas(X, preserve_index=False),
        X.astype({"town": "category", "count": "Int64"}),
        pl.from_pandas(X).with_columns(pl.col("town").cast(pl.Categorical)),
    ):
        gam = LogisticGAM().fit(other, y)
        assert gam.feature_names_in_.tolist() == list(X.columns)
        np.testing.assert_array_equal(gam.predict_proba(other), expected)
        # Fitted on one kind, asked with another.
        np.testing.assert_array_equal(gam.predict_proba(X), expected)


def test_numbers_give_the_same_model_with_and_without_names() -> None:
    X, y, _ = curved(120, 8)
    expected = LogisticGAM().fit(X, y).predict_proba(X)
    for names in (["a", "b", "c"], [0, 1, 2]):
        frame = pd.DataFrame(X, columns=names)
        np.testing.assert_array_equal(LogisticGAM().fit(frame, y).predict_proba(frame), expected)
    np.testing.assert_array_equal(LogisticGAM().fit(X.tolist(), y).predict_proba(X), expected)
    for labels in (y.tolist(), pd.Series(y), pl.Series(y), y.astype(bool), y.astype(float)):
        np.testing.assert_array_equal(LogisticGAM().fit(X, labels).predict_proba(X), expected)


def test_the_order_of_rows_does_not_matter() -> None:
    X, y, _ = curved(150, 9)
    shuffled = np.random.default_rng(0).permutation(150)
    one, other = LogisticGAM().fit(X, y), LogisticGAM().fit(X[shuffled], y[shuffled])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(
        one.out_of_fold_proba_[shuffled], other.out_of_fold_proba_, atol=1e-6
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_must_be_the_fitted_ones(frame: Any) -> None:
    X, y, _ = curved(60, 0)
    gam = LogisticGAM().fit(frame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), y)
    # Columns go by name, in whatever order they come.
    turned = frame({"b": X[:, 1], "c": X[:, 2], "a": X[:, 0]})
    named = frame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    np.testing.assert_array_equal(gam.decision_function(turned), gam.decision_function(named))
    for columns in ({"a": 0, "b": 1}, {"a": 0, "b": 1, "z": 2}):
        other = frame({name: X[:, j] for name, j in columns.items()})
        with pytest.raises(ValueError, match=r"(?i)columns must be|feature names|features"):
            gam.predict(other)
    with pytest.warns(UserWarning, match="names"), pytest.raises(ValueError, match="2 features"):
        gam.predict(X[:, :2])


def test_missing_values_are_refused_with_the_remedy() -> None:
    X, y, _ = curved(60, 0)
    gam = LogisticGAM().fit(X, y)
    X[3, 1] = np.nan
    for action in (lambda: gam.predict(X), lambda: LogisticGAM().fit(X, y)):
        with pytest.raises(InvalidInputError, match="GaussianImputer"):
            action()


# Parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_splines": 3}, "n_splines: must be an integer >= 4"),
        ({"n_splines": 10.0}, "n_splines: must be an integer"),
        ({"cv": 1}, "cv: must be an integer >= 2"),
        ({"random_state": -1}, "random_state: must be an integer >= 0"),
        ({"strengths": "best"}, "strengths: must be one of 'auto', 'common', 'per_covariate'"),
        ({"smoothness": 1.0}, "smoothness, ridge: must be given both or neither"),
        ({"smoothness": 1.0, "ridge": -1.0}, "ridge: must be a finite number >= 0"),
        ({"smoothness": np.nan, "ridge": 1.0}, "smoothness: must be a finite number"),
        ({"smoothness": [1.0, 2.0], "ridge": 1.0}, "smoothness: must be .* one per covariate"),
        ({"smoothness": "much", "ridge": 1.0}, "smoothness: must be"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    X, y, _ = curved(40, 0)
    with pytest.raises(InvalidInputError, match=message):
        LogisticGAM(**parameters).fit(X, y)


def test_given_strengths_per_covariate_are_reported() -> None:
    X, y, _ = curved(60, 0)
    gam = LogisticGAM(smoothness=[1.0, 2.0, 3.0], ridge=[0.1, 0.2, 0.3]).fit(X, y)
    np.testing.assert_array_equal(gam.smoothness_, [1, 2, 3])
    np.testing.assert_array_equal(gam.ridge_, [0.1, 0.2, 0.3])
