"""Column kinds, encoding, and `GaussianImputer` as a transformer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from adacos import COSClassifier, GaussianImputer
from adacos.consultation import check_value
from adacos.exceptions import InvalidInputError
from adacos.tables.categories import LEAST_ROWS, MAX_CATEGORIES, OTHER
from adacos.tables.columns import ColumnTable
from adacos.tables.description import CovariateDescription, Description
from adacos.tables.encoder import TableEncoder, validate_table
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC
from adacos.tables.labels import check_labels
from adacos.tables.scanning import encoder_of, scan
from adacos.tables.unusual import KINDS, unusual
from adacos.validation import fits

ROWS = {
    "age": [31.0, None, 47.5, 60.0, 22.0],
    "smokes": [True, False, None, True, False],
    "town": ["south", "north", "south", None, "west"],
    "planet": ["earth", "earth", None, "earth", "earth"],
    "zero": [0, 0, 0, 0, 0],
    "sex": [1, 2, 2, 1, 2],
}
NAN = float("nan")
ENCODED = np.array(
    [
        # age, smokes, north, south, west, earth, zero, sex
        [31.0, 1.0, 0, 1, 0, 1, 0, 1],
        [NAN, 0.0, 1, 0, 0, 1, 0, 2],
        [47.5, NAN, 0, 1, 0, NAN, 0, 2],
        [60.0, 1.0, NAN, NAN, NAN, 1, 0, 1],
        [22.0, 0.0, 0, 0, 1, 1, 0, 2],
    ]
)


def frames() -> list[Any]:
    plain = pd.DataFrame(ROWS)
    return [
        plain,
        plain.astype({"smokes": "boolean", "zero": "Int64", "town": "category"}),
        plain.astype({"town": "string", "planet": "string", "age": "Float64", "smokes": "boolean"}),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).with_columns(pl.col("town").cast(pl.Categorical)),
        pa.table(ROWS),
        pa.table(ROWS).set_column(2, "town", pa.array(ROWS["town"]).dictionary_encode()),
    ]


def encode(X: Any, names: tuple[str, ...] | None = None) -> tuple[TableEncoder, np.ndarray]:
    estimator = BaseEstimator()
    table = validate_table(estimator, X, reset=True)
    encoder = TableEncoder.fit(table, names or tuple(ROWS))
    return encoder, encoder.transform(table)


@pytest.mark.parametrize("frame", frames(), ids=lambda frame: type(frame).__module__)
def test_kinds_and_encoding_of_every_frame(frame: Any) -> None:
    encoder, encoded = encode(frame)
    assert encoder.kinds == (NUMERIC, BINARY, CATEGORICAL, CONSTANT, CONSTANT, BINARY)
    assert encoder.categories[2] == ("north", "south", "west")
    np.testing.assert_allclose(encoder.frequencies[2], [0.25, 0.5, 0.25])
    np.testing.assert_array_equal(encoder.source, [0, 1, 2, 2, 2, 3, 4, 5])
    np.testing.assert_array_equal(encoded, ENCODED)


@pytest.mark.parametrize("frame", frames(), ids=lambda frame: type(frame).__module__)
def test_one_frame_fitted_another_encoded(frame: Any) -> None:
    encoder, _ = encode(pl.DataFrame(ROWS))
    estimator = BaseEstimator()
    np.testing.assert_array_equal(
        encoder.transform(validate_table(estimator, frame, reset=True)), ENCODED
    )


def test_an_unseen_category_is_encoded_by_frequencies() -> None:
    encoder, _ = encode(pd.DataFrame(ROWS))
    other = pd.DataFrame(ROWS).head(1).assign(town="atlantis", planet="mars")
    encoded = encoder.transform(validate_table(BaseEstimator(), other, reset=True))
    np.testing.assert_allclose(encoded[0, 2:6], [0.25, 0.5, 0.25, 1.0])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_without_any_value_is_unknown_at_prediction(kind: Any) -> None:
    encoder, _ = encode(pd.DataFrame(ROWS))
    empty = {name: [None] for name in ROWS}
    encoded = encoder.transform(validate_table(BaseEstimator(), kind(empty), reset=True))
    assert np.isnan(encoded).all()


def test_truth_values_with_gaps_stay_truth_values() -> None:
    """pandas turns a boolean column with a gap into objects."""
    full = pd.DataFrame({"smokes": [True, False, True]})
    encoder, _ = encode(full, ("smokes",))
    gap = full.mask(np.array([[False], [True], [False]]))
    assert gap.smokes.dtype == object
    encoded = encoder.transform(validate_table(BaseEstimator(), gap, reset=True))
    np.testing.assert_array_equal(encoded[:, 0], [1.0, NAN, 1.0])
    assert encode(gap, ("smokes",))[0].kinds == (CONSTANT,)


def test_numbers_outside_the_training_range_count_as_its_nearer_end() -> None:
    table = np.array([[2.0, 0.0, 5.0], [4.0, 1.0, 5.0], [3.0, 0.0, 5.0]])
    encoder = TableEncoder.fit(table, ("a", "b", "c"))
    new = np.array([[-7.0, 3.0, 9.0], [5.5, np.nan, 5.0], [1e300, -1.0, 5.0]])
    expected = [[2.0, 1.0, 5.0], [4.0, np.nan, 5.0], [4.0, 0.0, 5.0]]
    np.testing.assert_array_equal(encoder.transform(new), expected)


@pytest.mark.parametrize("described", [False, True])
def test_unusual_values_are_those_of_which_a_consultation_warns(described: bool) -> None:
    rng = np.random.default_rng(0)
    rows = {
        "size": np.r_[-1.0, 2.0, rng.normal(size=38).clip(-1, 2)],
        "smokes": np.arange(40.0) % 2,
        "same": np.full(40, 3.0),
        "town": np.array(["rome", "oslo"] * 20),
    }
    encoder = TableEncoder.fit(ColumnTable(rows), tuple(rows))
    new = {
        "size": np.r_[np.nan, -4.0, -1.0001, 2.0, 4.99, 5.01, 1e300, rng.normal(0, 4, 50)],
        "smokes": np.resize([0.0, 1.0, 0.5, np.nan], 57),
        "same": np.resize([3.0, 3.1, np.nan], 57),
        "town": np.resize(["rome", "", "bonn"], 57),
    }
    declared = {"size": (-0.5, 3.0), "smokes": (0.0, 0.5), "same": (3.05, 4.0)}
    covariates = {name: CovariateDescription(range=own) for name, own in declared.items()}
    said = Description(covariates=covariates) if described else Description()
    found = unusual(encoder, ColumnTable(new), said)
    for k, values in enumerate(new.values()):
        for row, value in enumerate(values):
            warning = None
            if value != "" and value == value:
                warning = check_value(encoder, k, value, said)[1]
            assert KINDS[found[row, k]] == ("" if warning is None else warning.kind)


def test_what_was_never_negative_is_implausible_below_zero() -> None:
    encoder = TableEncoder.fit(np.array([[3.0], [70.0], [50.0]]), ("age",))
    ages = ColumnTable({"age": np.array([0.0, -0.1, 75.0, 200.0, np.nan])})
    found = unusual(encoder, ages, Description())
    kinds = [KINDS[number] for number in found[:, 0]]
    assert kinds == ["outside_range", "implausible", "outside_range", "implausible", ""]


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1.0, float, True),
        (1, float, True),
        (True, float, False),
        (True, int, False),
        (None, float | None, True),
        ("x", float | None, False),
        (np.zeros(3), NDArray[np.float64], True),
        (np.zeros(3, dtype=int), NDArray[np.float64], False),
        ([0.0], NDArray[np.float64], False),
        (np.array(["a"]), NDArray[Any], True),
        (("a", "b"), tuple[str, ...], True),
        (("a", 1), tuple[str, ...], False),
        (("a", 1), tuple[str, int], True),
        (["a"], tuple[str, ...], False),
        (["a"], Sequence[str], True),
        ({"a": 1}, dict[str, int], True),
        ({1: "a"}, dict[str, int], False),
        ("anything", Any, True),
    ],
)
def test_values_and_annotated_types(value: Any, hint: Any, expected: bool) -> None:
    assert fits(value, hint) is expected


def test_text_where_numbers_were_fitted() -> None:
    encoder, _ = encode(pd.DataFrame(ROWS))
    other = pd.DataFrame(ROWS).assign(age=["old", "young", "old", "old", "young"])
    with pytest.raises(InvalidInputError, match="column 'age': was numeric when fitted"):
        encoder.transform(validate_table(BaseEstimator(), other, reset=True))


def test_numbers_where_categories_were_fitted_are_unseen() -> None:
    encoder, _ = encode(pd.DataFrame(ROWS))
    other = pd.DataFrame(ROWS).head(2).assign(town=[3.0, np.nan])
    encoded = encoder.transform(validate_table(BaseEstimator(), other, reset=True))
    np.testing.assert_allclose(encoded[0, 2:5], [0.25, 0.5, 0.25])
    assert np.isnan(encoded[1, 2:5]).all()


def test_a_binary_column_late_in_the_table_is_recognised() -> None:
    late = np.r_[np.zeros(1500), 1.0][:, None]
    assert encode(late, ("x",))[0].kinds == (BINARY,)
    assert encode(np.r_[np.zeros(1500), 1.0, 2.0][:, None], ("x",))[0].kinds == (NUMERIC,)


def test_many_categories_of_few_rows_are_an_identifier() -> None:
    names = [f"patient {i}" for i in range(MAX_CATEGORIES + 1)]
    with pytest.raises(InvalidInputError, match=r"column 'id': .*101 categories.*identifier"):
        encode(pd.DataFrame({"id": names}), ("id",))


def towns() -> pd.DataFrame:
    """A town of 1,000 rows, 120 of 4 to 9 rows, one that is called other, and a gap."""
    sizes = {"Rome": 1000, **{f"t{i:03d}": 4 + i % 6 for i in range(120)}, OTHER: 3}
    return pd.DataFrame({"town": [*np.repeat(list(sizes), list(sizes.values())), None]})


def test_rare_categories_are_one_and_keep_their_names() -> None:
    table = towns()
    encoder, encoded = encode(table, ("town",))
    levels, rare = encoder.categories[0], encoder.grouped_of(0)
    counts = table["town"].value_counts()
    kept = [name for name in levels if name != OTHER]
    assert len(levels) == MAX_CATEGORIES
    assert levels == tuple(sorted(levels))
    assert set(kept) | set(rare) == set(counts.index)
    assert not set(kept) & set(rare)
    # No rare one has more rows than one that was kept; of equals the first in the alphabet is.
    assert counts[kept].min() >= max(counts[list(rare)].max(), LEAST_ROWS)
    ties = [name for name in counts.index if counts[name] == counts[kept].min()]
    assert sorted(ties)[: len(set(ties) & set(kept))] == sorted(set(ties) & set(kept))
    share = dict(zip(levels, encoder.frequencies[0], strict=True))
    assert share["Rome"] == pytest.approx(1000 / counts.sum())
    assert share[OTHER] == pytest.approx(counts[list(rare)].sum() / counts.sum())
    # A rare one and the word itself are one column; one never seen is an average row.
    where = levels.index(OTHER)
    given = pd.DataFrame({"town": [rare[0], OTHER, "Nowhere", "Rome"]})
    reported = encoder.transform(validate_table(BaseEstimator(), given, reset=True))
    assert reported[0, where] == reported[1, where] == 1
    np.testing.assert_allclose(reported[2], encoder.frequencies[0])
    assert reported[3, levels.index("Rome")] == 1
    assert np.isnan(encoded[-1]).all()
    seen = validate_table(BaseEstimator(), given, reset=True)
    kinds = unusual(encoder, seen, Description())[:, 0]
    assert [KINDS[kind] for kind in kinds] == ["", "", "unknown_category", ""]


def test_categories_are_grouped_whatever_the_classes_and_in_whatever_order() -> None:
    table = towns()
    one, _ = encode(table, ("town",))
    other, _ = encode(table.sample(frac=1, random_state=1), ("town",))
    assert one.categories == other.categories
    assert one.grouped == other.grouped
    pieces = [table.iloc[:700], table.iloc[700:]]
    read = [validate_table(BaseEstimator(), piece, reset=True) for piece in pieces]
    first, second = (scan(piece, ("town",), 50)[0] for piece in read)
    streamed = encoder_of([first.plus(second, 50)], ("town",))
    assert (streamed.categories, streamed.grouped) == (one.categories, one.grouped)


def test_an_encoder_with_groups_is_checked() -> None:
    encoder, _ = encode(towns(), ("town",))
    encoder.check()
    assert encoder.only(np.array([True])).grouped == encoder.grouped
    for wrong in ((("Rome",),), (("a",), ("b",))):
        with pytest.raises(ValueError, match="do not fit"):
            replace(encoder, grouped=wrong).check()


def test_more_dates_than_categories_are_refused() -> None:
    days = pd.date_range("2023-01-01", periods=150).strftime("%Y-%m-%d")
    with pytest.raises(InvalidInputError, match=r"column 'when': must not hold dates.*age"):
        encode(pd.DataFrame({"when": np.repeat(days, 6)}), ("when",))


def test_dates_are_refused() -> None:
    when = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with pytest.raises(InvalidInputError, match=r"column 'when': .*days"):
        encode(when, ("when",))


def test_empty_text_counts_as_unknown() -> None:
    _, encoded = encode(pd.DataFrame({"town": ["a", "", "b"]}), ("town",))
    assert np.isnan(encoded[1]).all()


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 1], [0, 1]),
        ([-1, 1, -1], [-1, 1]),
        ([True, False, True], [False, True]),
        (["no", "yes", "no"], ["no", "yes"]),
        (np.array(["no", "yes"], dtype=object), ["no", "yes"]),
        (pd.Series(["b", "a"], dtype="category"), ["a", "b"]),
        (pl.Series([2, 7]), [2, 7]),
        (pa.chunked_array([[2.0, 7.0]]), [2.0, 7.0]),
    ],
)
def test_labels_of_any_kind(y: Any, classes: list[Any]) -> None:
    found, coded = check_labels(y)
    assert found.tolist() == classes
    np.testing.assert_array_equal(found[coded.astype(int)], list(np.asarray(y)))
    assert coded.dtype == np.float64


@pytest.mark.parametrize(
    ("y", "received"),
    [
        (np.array(["oak", None, "elm"], dtype=object), "None in row 1"),
        (np.array(["oak", "elm", np.nan], dtype=object), "nan in row 2"),
        (pd.Series(["oak", None, "elm"], dtype="string"), "<NA> in row 1"),
        (np.array(["oak", 1, "elm"], dtype=object), "some of each"),
    ],
)
def test_labels_that_are_none(y: Any, received: str) -> None:
    with pytest.raises(InvalidInputError, match=received) as refused:
        check_labels(y, many=True)
    assert refused.value.parameter == "y"


# GaussianImputer


def draw(n: int, seed: int, rate: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = np.array([[1.0, 0, 0], [0.8, 0.6, 0], [-0.3, 0.5, 0.7]])
    X = rng.normal(size=(n, 3)) @ root.T * [1.0, 10.0, 0.1] + [0.0, 50.0, 3.0]
    return X, np.where(rng.random(X.shape) < rate, np.nan, X)


def test_fills_gaps_with_the_conditional_mean_and_keeps_the_rest() -> None:
    _, X = draw(300, 0)
    imputer = GaussianImputer().fit(X)
    filled = imputer.transform(X)
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[known], X[known])
    mean, cov = imputer.mean_, imputer.covariance_
    for row in np.flatnonzero(~known.all(axis=1))[:30]:
        seen, gone = known[row], ~known[row]
        weights = cov[np.ix_(gone, seen)] @ np.linalg.inv(cov[np.ix_(seen, seen)])
        expected = mean[gone] + weights @ (X[row, seen] - mean[seen])
        np.testing.assert_allclose(filled[row, gone], expected, rtol=1e-6)


def test_imputing_beats_the_column_mean() -> None:
    truth, X = draw(2000, 1)
    filled = GaussianImputer().fit_transform(X)
    gone = np.isnan(X)
    by_mean = np.where(gone, np.nanmean(X, axis=0), X)
    scale = truth.std(axis=0)
    error = np.mean(((filled - truth) / scale)[gone] ** 2)
    assert error < 0.7 * np.mean(((by_mean - truth) / scale)[gone] ** 2)


@given(st.integers(0, 10**6))
def test_the_input_is_left_alone_and_rows_do_not_depend_on_each_other(seed: int) -> None:
    _, X = draw(40, seed)
    before = X.copy()
    imputer = GaussianImputer().fit(X)
    filled = imputer.transform(X)
    np.testing.assert_array_equal(X, before)
    some = np.random.default_rng(seed).permutation(40)[:7]
    np.testing.assert_allclose(imputer.transform(X[some]), filled[some], rtol=1e-9)


def test_frames_and_set_output() -> None:
    _, X = draw(50, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    imputer = GaussianImputer().fit(frame)
    assert imputer.get_feature_names_out().tolist() == ["a", "b", "c"]
    expected = GaussianImputer().fit(X).transform(X)
    np.testing.assert_array_equal(imputer.transform(frame), expected)
    as_pandas = imputer.set_output(transform="pandas").transform(frame)
    assert isinstance(as_pandas, pd.DataFrame)
    assert as_pandas.columns.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(as_pandas.to_numpy(), expected)
    as_polars = imputer.set_output(transform="polars").transform(frame)
    assert isinstance(as_polars, pl.DataFrame)
    np.testing.assert_array_equal(as_polars.to_numpy(), expected)


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.table])
def test_imputes_other_frames(kind: Any) -> None:
    _, X = draw(50, 2)
    expected = GaussianImputer().fit(X).transform(X)
    columns = {
        name: [None if np.isnan(v) else float(v) for v in X[:, k]] for k, name in enumerate("abc")
    }
    imputer = GaussianImputer().fit(kind(columns))
    assert imputer.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(imputer.transform(kind(columns)), expected)


def test_nothing_missing_and_everything_missing() -> None:
    truth, X = draw(60, 3)
    imputer = GaussianImputer().fit(X)
    np.testing.assert_array_equal(imputer.transform(truth), truth)
    np.testing.assert_allclose(imputer.transform(np.full((2, 3), np.nan)), [imputer.mean_] * 2)


def test_a_constant_column_is_filled_with_its_value() -> None:
    _, X = draw(60, 4)
    X[:, 1] = 5.0
    X[3, 1] = np.nan
    filled = GaussianImputer().fit_transform(X)
    assert filled[3, 1] == 5.0
    assert np.all(np.isfinite(filled))


def test_a_column_without_values_is_refused() -> None:
    _, X = draw(20, 5)
    X[:, 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"column 'x2': needs at least one known value"):
        GaussianImputer().fit(X)
    with pytest.raises(InvalidInputError, match=r"column 'c': .*Drop the column"):
        GaussianImputer().fit(pd.DataFrame(X, columns=["a", "b", "c"]))


def test_text_in_an_array_is_refused_with_what_to_pass_instead():
    rows = np.array([["male", 3.0], ["female", 4.0]], dtype=object)
    for array in (rows, rows.tolist()):
        with pytest.raises(InvalidInputError, match="such as a DataFrame"):
            COSClassifier().fit(array, [0, 1])


def test_the_columns_that_are_wrong_are_named() -> None:
    """Of many columns those that matter, not the first few of all."""
    names = [f"a_rather_long_name_{k}" for k in range(12)]
    probe = BaseEstimator()
    validate_table(probe, pd.DataFrame(np.ones((3, 12)), columns=names), reset=True)
    for columns, reported in (
        ([*names, "extra"], "received also extra. Select"),
        (names[:-1], "received no a_rather_long_name_11. Add it as a column"),
        ([*names[:-1], "A_rather_long_name_11"], "Did you mean a_rather_long_name_11?"),
    ):
        table = pd.DataFrame(np.ones((3, len(columns))), columns=columns)
        with pytest.raises(InvalidInputError, match=re.escape(reported)):
            validate_table(probe, table, reset=False)
