"""Bad input: each case a clear error that names parameter, rule, value and remedy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils import get_tags

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    GaussianImputer,
    LogisticGAM,
    load_pima,
)
from adacos.exceptions import InvalidInputError
from tests.policy_cases import Case, cases

POLICIES = [FullModelClassifier, COSClassifier, AdaCOSClassifier]
CLASSIFIERS = [LogisticGAM, *POLICIES]
QUICK = {"cv": 2, "strengths": "common"}


def table(n: int = 40) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "dose", "iron"])
    return frame, (frame.age + rng.normal(size=n) > 0).astype(int).to_numpy()


def prices(**changes: Any) -> dict[str, Any]:
    return {"age": 1.0, "dose": 2.0, "iron": 3.0, **changes}


def complaint(action: Callable[[], Any]) -> InvalidInputError:
    """The error of an action; checks that the message is made of the four parts."""
    with pytest.raises(InvalidInputError) as caught:
        action()
    error = caught.value
    message = str(error)
    assert isinstance(error, ValueError)
    assert message.startswith(f"{error.parameter}: {error.rule}; received ")
    assert message.endswith(error.remedy)
    assert len(error.remedy.split()) >= 2, "a remedy says what to do"
    assert len(message) < 600, "a message must be readable"
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == message, "errors travel between processes"
    return error


# Costs


@pytest.mark.parametrize(
    ("make", "parameter", "rule", "value"),
    [
        (lambda: Costs(prices(dose=-2.0)), "cost of 'dose'", "must be a finite number >= 0", -2.0),
        (lambda: Costs(prices(dose=np.nan)), "cost of 'dose'", "must be a finite number", "nan"),
        (lambda: Costs([1.0, np.inf]), "cost of covariate 1", "must be a finite number", "inf"),
        (
            lambda: Costs(misclassification=[[100, 0], [0, 1000]]),
            "misclassification",
            "a wrong label must cost more than the right one",
            "[[100.0, 0.0], [0.0, 1000.0]]",
        ),
        (lambda: Costs(false_positive=-1), "false_positive", "must be a finite number > 0", -1),
        # A text is shown as one.
        (lambda: Costs(false_positive="20"), "false_positive", "must be a finite number", "'20'"),
        (
            lambda: Costs(prices(), panels={"blood": (1.0, ["iron"])}),
            "panels['blood']",
            "at least two different members",
            "['iron']",
        ),
        (
            lambda: Costs(prices(), panels={"blood": (-1.0, ["iron", "dose"])}),
            "panels['blood'] shared cost",
            "must be a finite number >= 0",
            -1.0,
        ),
    ],
)
def test_wrong_costs(make: Any, parameter: str, rule: str, value: Any) -> None:
    error = complaint(make)
    assert error.parameter == parameter
    assert rule in error.rule
    assert f"received {value}" in str(error)


@pytest.mark.parametrize("cls", POLICIES)
@pytest.mark.parametrize(
    ("costs", "parameter", "value"),
    [
        (Costs(prices(height=3.0)), "costs", "height"),
        (Costs({"age": 1.0, "dose": 2.0}), "costs", "iron"),
        (Costs([1.0, 2.0]), "costs", "2 costs"),
        (Costs(prices(), panels={"blood": (1.0, ["iron", "zinc"])}), "panels['blood']", "zinc"),
        (Costs(prices(), panels={"blood": (2.5, ["iron", "dose"])}), "panels['blood']", "dose"),
        (
            Costs(prices(), panels={"a": (1.0, ["iron", "dose"]), "b": (1.0, ["age", "dose"])}),
            "panels['b']",
            "dose",
        ),
        ({"age": 1.0}, "costs", "dict"),
    ],
)
def test_costs_that_do_not_fit_the_table(cls: Any, costs: Any, parameter: str, value: str) -> None:
    X, y = table()
    policy = cls(costs, **QUICK)
    error = complaint(lambda: policy.fit(X, y))
    assert error.parameter == parameter
    assert value in str(error)
    assert not hasattr(policy, "model_"), "a failed fit leaves no model"


# Labels


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_one_class_only(cls: Any) -> None:
    X, y = table()
    error = complaint(lambda: cls(**QUICK).fit(X, np.ones_like(y)))
    assert error.parameter == "y"
    assert "two classes" in error.rule
    assert "[1]" in str(error)


@pytest.mark.parametrize("case", cases(variants=False))
def test_three_classes_are_refused_where_they_are_not_served(case: Case) -> None:
    estimator = case.make()
    if get_tags(estimator).classifier_tags.multi_class:
        pytest.skip("takes them")
    X, _ = table()
    error = complaint(lambda: estimator.fit(X, np.arange(40) % 3))
    assert error.parameter == "y"
    assert "LogisticGAM" in error.remedy


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.linspace(0, 1, 40), "Unknown label type|continuous"),
        (np.r_[np.nan, np.ones(19), np.zeros(20)], "y contains NaN"),
        (np.ones((40, 2)), r"y: must be one-dimensional; received shape \(40, 2\)"),
        (
            np.arange(39) % 2,
            r"y: must have one class for each row of X; received 39",
        ),
        (None, "y: fit requires y"),
        (np.array([], dtype=int), "sample|inconsistent"),
    ],
)
def test_wrong_labels(cls: Any, labels: Any, message: str) -> None:
    X, _ = table()
    with pytest.raises(ValueError, match=message):
        cls(**QUICK).fit(X, labels)


# Tables


@pytest.mark.parametrize("cls", [*CLASSIFIERS, GaussianImputer])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "arrow"])
def test_infinite_values(cls: Any, value: float, kind: str) -> None:
    X, y = table()
    bad = X.copy()
    bad.iloc[3, 1] = value
    convert = {
        "numpy": lambda frame: frame.to_numpy(),
        "pandas": lambda frame: frame,
        "polars": pl.from_pandas,
        "arrow": pa.Table.from_pandas,
    }[kind]
    estimator = cls() if cls is GaussianImputer else cls(**QUICK)
    with pytest.raises(ValueError, match=r"infinit"):
        estimator.fit(convert(bad), y)
    estimator.fit(convert(X), y)
    ask = estimator.transform if cls is GaussianImputer else estimator.predict
    with pytest.raises(ValueError, match=r"infinit"):
        ask(convert(bad))
    if kind != "numpy" and cls is not GaussianImputer:
        assert complaint(lambda: ask(convert(bad))).parameter == "column 'dose'"


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_no_rows(cls: Any) -> None:
    X, y = table()
    error = complaint(lambda: cls(**QUICK).fit(X.head(0), y[:0]))
    assert error.parameter == "X"
    assert "0 rows" in str(error)
    fitted = cls(**QUICK).fit(X, y)
    assert "0 rows" in str(complaint(lambda: fitted.predict(X.head(0))))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        cls(**QUICK).fit(X.to_numpy()[:0], y[:0])
    assert len(fitted.predict(X.head(1))) == 1


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_no_columns(cls: Any) -> None:
    _, y = table()
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        cls(**QUICK).fit(np.empty((40, 0)), y)
    error = complaint(lambda: cls(**QUICK).fit(pd.DataFrame(index=range(40)), y))
    assert error.parameter == "X"


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("text", [False, True])
def test_a_column_entirely_missing(cls: Any, text: bool) -> None:
    X, y = table()
    bad = X.assign(dose=pd.Series([None] * 40, dtype="str") if text else np.nan)
    error = complaint(lambda: cls(**QUICK).fit(bad, y))
    assert error.parameter == "column 'dose'"
    assert "at least one known value" in error.rule
    values = X.to_numpy().copy()
    values[:, 1] = np.nan
    assert complaint(lambda: cls(**QUICK).fit(values, y)).parameter == "column 'x1'"


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_text_where_numbers_were_fitted(cls: Any) -> None:
    X, y = table()
    fitted = cls(**QUICK).fit(X, y)
    error = complaint(lambda: fitted.predict(X.assign(age="old")))
    assert error.parameter == "column 'age'"
    assert "numeric when fitted" in error.rule
    fitted = cls(**QUICK).fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match="could not convert string to float"):
        fitted.predict([["old", 1.0, 2.0]])


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_that_were_not_fitted(cls: Any, frame: Any) -> None:
    X, y = table()
    fitted = cls(**QUICK).fit(frame(X.to_dict("list")), y)
    for columns in (["age", "dose"], ["age", "dose", "zinc"]):
        other = X.rename(columns={"iron": "zinc"}) if "zinc" in columns else X
        with pytest.raises(ValueError, match=r"(?i)columns must be|feature names|features"):
            fitted.predict(frame(other[columns].to_dict("list")))
    more = frame(X.assign(zinc=1.0).to_dict("list"))
    with pytest.raises(ValueError, match=r"(?i)columns must be|feature names|features"):
        fitted.predict(more)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_go_by_their_names(cls: Any, frame: Any) -> None:
    X, y = table()
    fitted = cls(**QUICK).fit(frame(X.to_dict("list")), y)
    expected = fitted.predict_proba(frame(X.to_dict("list")))
    other = frame(X[["iron", "age", "dose"]].to_dict("list"))
    np.testing.assert_array_equal(fitted.predict_proba(other), expected)


def test_a_mask_goes_with_the_columns() -> None:
    X, y = table()
    policy = AdaCOSClassifier(Costs(prices(), false_positive=40, false_negative=40), **QUICK)
    policy.fit(X, y)
    mask = np.random.default_rng(1).random(X.shape) < 0.5
    expected = policy.acquire(X, known=mask)
    columns = ["iron", "age", "dose"]
    found = policy.acquire(X[columns], known=mask[:, [2, 0, 1]])
    np.testing.assert_array_equal(found.probability, expected.probability)
    np.testing.assert_array_equal(found.cost, expected.cost)
    everywhere = policy.acquire(X[columns], known=np.array([False, True, False]))
    np.testing.assert_array_equal(
        everywhere.cost, policy.acquire(X, known=np.array([True, False, False])).cost
    )


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_one_row_that_is_no_table(cls: Any) -> None:
    X, y = table()
    fitted = cls(**QUICK).fit(X, y)
    for row in (X.loc[5], pl.Series([1.0, 2.0, 3.0]), X.loc[5].to_dict(), X["age"]):
        error = complaint(lambda row=row: fitted.predict(row))
        assert error.parameter == "X"
        assert "X.loc[[5]]" in error.remedy
    assert len(fitted.predict(X.loc[[5]])) == 1
    assert len(fitted.predict(pd.DataFrame([X.loc[5].to_dict()]))) == 1


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308])
def test_numbers_that_cannot_be_squared(cls: Any, value: float) -> None:
    X, y = table()
    error = complaint(lambda: cls(**QUICK).fit(X.assign(dose=X.dose.where(X.index != 3, value)), y))
    assert error.parameter == "column 'dose'"
    assert "within 1e+100 of zero" in error.rule
    assert f"{abs(value):g}" in str(error)
    # To answer, a number outside the training range counts as its nearer end.
    fitted = cls(**QUICK).fit(X, y)
    assert np.isfinite(fitted.predict_proba(X.assign(dose=value))).all()


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("scale", [1e-160, 1e-310, 1e-320])
def test_numbers_too_close_to_show_apart(cls: Any, scale: float) -> None:
    X, y = table()
    error = complaint(lambda: cls(**QUICK).fit(X.assign(dose=X.dose * scale), y))
    assert error.parameter == "column 'dose'"
    assert "differ by 1e-100" in error.rule
    one = X.assign(dose=X.dose.where(X.index != 3, scale))
    assert np.isfinite(cls(**QUICK).fit(one, y).predict_proba(one)).all()


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_whole_numbers_beyond_floats(cls: Any) -> None:
    X, y = table()
    bad = X.astype(object)
    bad.iloc[3, 1] = 10**400
    error = complaint(lambda: cls(**QUICK).fit(bad, y))
    assert error.parameter == "column 'dose'"
    assert "beyond the range of floats" in str(error)
    assert complaint(lambda: cls(**QUICK).fit(bad.to_numpy(), y)).parameter == "X"


@pytest.mark.parametrize(
    "value",
    [pd.Timestamp("2020-01-01").date(), pd.Timedelta(days=1), [1], {"a": 1}, b"x", 1j, (1, 2)],
    ids=repr,
)
def test_objects_that_are_no_values(value: Any) -> None:
    X, y = table()
    column = pd.Series([value] * len(X), dtype=object)
    error = complaint(lambda: AdaCOSClassifier(**QUICK).fit(X.assign(iron=column), y))
    assert error.parameter == "column 'iron'"
    assert "numeric, boolean, text or categorical" in error.rule


def test_dates_in_an_array() -> None:
    _, y = table()
    days = np.datetime64("2020-01-01") + np.arange(40)[:, None]
    error = complaint(lambda: AdaCOSClassifier(**QUICK).fit(days, y))
    assert "datetime64" in str(error)


def test_decimals_are_numbers() -> None:
    X, y = table()
    exact = X.assign(dose=[Decimal(repr(value)) for value in X.dose])
    fitted = AdaCOSClassifier(**QUICK).fit(exact, y)
    assert fitted.encoder_.kinds == ("numeric",) * 3
    np.testing.assert_array_equal(
        fitted.predict_proba(exact), AdaCOSClassifier(**QUICK).fit(X, y).predict_proba(X)
    )


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_fewer_columns_of_an_array(cls: Any) -> None:
    X, y = table()
    fitted = cls(**QUICK).fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        fitted.predict(X.to_numpy()[:, :2])


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_duplicate_names(cls: Any) -> None:
    X, y = table()
    double = X.set_axis(["age", "dose", "age"], axis=1)
    error = complaint(lambda: cls(**QUICK).fit(double, y))
    assert error.parameter == "X"
    assert "different" in error.rule
    assert "age" in str(error)
    arrow = pa.Table.from_arrays([pa.array(X[name]) for name in X], names=["age", "dose", "age"])
    assert "age" in str(complaint(lambda: cls(**QUICK).fit(arrow, y)))


@pytest.mark.parametrize("cls", POLICIES)
def test_unlabelled_rows_are_checked_too(cls: Any) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=r"(?i)columns must be|feature names|features"):
        cls(**QUICK).fit(X, y, X_unlabeled=X[["age", "dose"]])
    bad = X.copy()
    bad.iloc[0, 0] = np.inf
    assert complaint(lambda: cls(**QUICK).fit(X, y, X_unlabeled=bad)).parameter == "column 'age'"


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_dates_and_identifiers(cls: Any) -> None:
    X, y = table(200)
    error = complaint(lambda: cls(**QUICK).fit(X.assign(iron=pd.Timestamp("2020-01-01")), y))
    assert error.parameter == "column 'iron'"
    identifier = [f"patient {k}" for k in range(200)]
    error = complaint(lambda: cls(**QUICK).fit(X.assign(iron=identifier), y))
    assert "200 categories" in str(error)


# Parameters of the policies


@pytest.mark.parametrize("cls", POLICIES)
@pytest.mark.parametrize(
    ("parameters", "parameter"),
    [
        ({"n_splines": 2}, "n_splines"),
        ({"n_splines": 10_001}, "n_splines"),
        ({"n_splines": True}, "n_splines"),
        ({"cv": 1}, "cv"),
        ({"cv": 2.5}, "cv"),
        ({"strengths": "loose"}, "strengths"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": None}, "random_state"),
        ({"sequence": "backward"}, "sequence"),
    ],
)
def test_parameters(cls: Any, parameters: dict[str, Any], parameter: str) -> None:
    X, y = table()
    error = complaint(lambda: cls(**{**QUICK, **parameters}).fit(X, y))
    assert error.parameter == parameter
    assert str(parameters[parameter]) in str(error)


def test_long_values_are_cut_short() -> None:
    error = complaint(lambda: Costs({"a": "x" * 10_000}))
    assert len(str(error)) < 400


def test_a_failed_fit_leaves_the_arguments_alone() -> None:
    X, y = table()
    before = X.copy()
    costs = Costs(prices(height=1.0))
    with pytest.raises(InvalidInputError):
        AdaCOSClassifier(costs).fit(X, y)
    pd.testing.assert_frame_equal(X, before)
    assert costs == Costs(prices(height=1.0))


def test_values_by_covariate_are_refused_where_rows_hold_them() -> None:
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=1000)
    policy = COSClassifier(costs, strengths="common").fit(X[:200], y[:200])
    for call in (policy.acquire, policy.predict_proba):
        with pytest.raises(InvalidInputError, match="the values of rows are in X") as reported:
            call(X[200:210], known={"Age": 30})
        assert reported.value.remedy == "Put the values into X and pass known=['Age']."
    with pytest.raises(InvalidInputError, match="not a mapping") as reported:
        policy.next(X[200:210], unavailable={"Age": True})
    assert reported.value.remedy == "Pass unavailable=['Age']."
