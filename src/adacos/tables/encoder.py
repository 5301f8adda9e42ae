"""From a table of any kind to encoded values.

`TableEncoder` learns the kind of each column and writes a float matrix: numeric and boolean
covariates take one column, a categorical covariate one indicator column per category. NaN marks
what is unknown. A category never seen in training is encoded by the training frequencies of the
categories: it was acquired, but says no more than an average row.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from adacos.exceptions import InvalidInputError
from adacos.tables.columns import ColumnTable
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MAX_CATEGORIES = 100
# A number farther outside the training range than this many of its widths is not plausible.
PLAUSIBLE_WIDTHS = 1.0


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, polars, pyarrow and what else narwhals knows)."""
    return isinstance(X, ColumnTable) or bool(nw.dependencies.is_into_dataframe(X))


def validate_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as a frame or a float array, checked against what `estimator` was fitted on.

    Sets or checks `n_features_in_` and `feature_names_in_` as scikit-learn does. NaN is allowed,
    infinity is not.
    """
    if not is_frame(X):
        return validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    different = "column names must be different from each other"
    try:
        frame = X if isinstance(X, ColumnTable) else nw.from_native(X, eager_only=True)
    except DuplicateError as error:
        raise InvalidInputError("X", different, str(error), "Rename them.") from None
    names = frame.columns
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInputError("X", different, repeated, "Rename them.")
    if len(names) == 0:
        raise InvalidInputError(
            "X", "needs at least one column", "0 columns", "Check the selection."
        )
    if not isinstance(frame, ColumnTable):
        validate_data(estimator, frame.to_native(), reset=reset, skip_check_array=True)
    elif reset:
        estimator.n_features_in_ = len(names)
    if reset and all(isinstance(name, str) for name in names):
        # scikit-learn does not recognise every frame; names must travel whatever the frame is.
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif not reset and list(getattr(estimator, "feature_names_in_", names)) != list(names):
        raise InvalidInputError(
            "X",
            f"columns must be {list(estimator.feature_names_in_)}",
            list(names),
            "Select the fitted columns in this order.",
        )
    if len(frame) == 0:
        raise InvalidInputError("X", "needs at least one row", "0 rows", "Check the selection.")
    return frame


def covariate_names(estimator: BaseEstimator) -> tuple[str, ...]:
    """Names of the fitted columns: those of the frame, or x0, x1, … for an array."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return tuple(str(name) for name in names)
    return tuple(f"x{i}" for i in range(estimator.n_features_in_))


@dataclass(frozen=True)
class TableEncoder:
    """What was learned about the columns of the training table.

    Attributes
    ----------
    names, kinds : per covariate.
    categories : per covariate, its categories in order, empty unless categorical.
    frequencies : per covariate, the share of each category among known values.
    low, high : per covariate, range of the known values; NaN if categorical.
    source : covariate of each encoded column.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    frequencies: tuple[Floats, ...]
    low: Floats
    high: Floats
    source: Ints

    @property
    def first(self) -> Ints:
        """First encoded column of each covariate."""
        return np.searchsorted(self.source, np.arange(len(self.names)))

    @staticmethod
    def fit(table: Any, names: tuple[str, ...]) -> TableEncoder:
        """Learn kinds and categories from a validated table."""
        kinds, categories, frequencies, ranges = [], [], [], []
        for position, name in enumerate(names):
            values = _column(table, position, name)
            if values.dtype.kind == "U":
                known = values[values != ""]
                refuse_empty(known, name)
                levels, counts = np.unique(known, return_counts=True)
                if len(levels) > MAX_CATEGORIES:
                    raise InvalidInputError(
                        f"column {name!r}",
                        f"a categorical column may have at most {MAX_CATEGORIES} categories",
                        f"{len(levels)} categories",
                        "Drop an identifier, group rare categories, or encode it as a number.",
                    )
                kinds.append(CATEGORICAL if len(levels) > 1 else CONSTANT)
                categories.append(tuple(str(level) for level in levels))
                frequencies.append(counts / counts.sum())
                ranges.append((np.nan, np.nan))
            else:
                known = values[~np.isnan(values)]
                refuse_empty(known, name)
                distinct = np.unique(known[:1000])
                if len(distinct) <= 2:
                    distinct = np.unique(known)
                kinds.append((CONSTANT, BINARY, NUMERIC)[min(len(distinct), 3) - 1])
                categories.append(())
                frequencies.append(np.empty(0))
                ranges.append((float(known.min()), float(known.max())))
        width = [max(len(levels), 1) for levels in categories]
        return TableEncoder(
            names=names,
            kinds=tuple(kinds),
            categories=tuple(categories),
            frequencies=tuple(frequencies),
            low=np.array([low for low, _ in ranges]),
            high=np.array([high for _, high in ranges]),
            source=np.repeat(np.arange(len(names)), width),
        )

    def transform(self, table: Any) -> Floats:
        """Encoded values of a validated table, NaN where unknown."""
        columns = [
            self.encode(position, _column(table, position, name))
            for position, name in enumerate(self.names)
        ]
        return np.hstack(columns)

    def encode(self, position: int, values: NDArray[Any]) -> Floats:
        """Encoded columns of one covariate; text values stand for categories, "" for unknown.

        A number farther outside the training range than is plausible counts as the farthest that
        is: models go on in a straight line there, and a slip of the unit would settle the row.
        """
        levels = self.categories[position]
        if not levels:
            if values.dtype.kind == "U":
                raise InvalidInputError(
                    f"column {self.names[position]!r}",
                    "was numeric when fitted",
                    "text",
                    "Convert the column to numbers.",
                )
            low, high = self.low[position], self.high[position]
            beyond = PLAUSIBLE_WIDTHS * (high - low)
            return np.clip(values.astype(np.float64), low - beyond, high + beyond)[:, None]
        if values.dtype.kind != "U":
            values = np.where(np.isnan(values), "", values.astype(np.str_))
        table = np.vstack(
            [np.eye(len(levels)), self.frequencies[position], np.full(len(levels), np.nan)]
        )
        ordered = np.array(levels)
        code = np.minimum(np.searchsorted(ordered, values), len(levels) - 1)
        code = np.where(ordered[code] == values, code, len(levels))
        return table[np.where(values == "", len(levels) + 1, code)]


def refuse_empty(known: NDArray[Any], name: str) -> None:
    """A column needs at least one known value."""
    if len(known) == 0:
        raise InvalidInputError(
            f"column {name!r}",
            "needs at least one known value",
            "only missing values",
            "Drop the column.",
        )


def _column(table: Any, position: int, name: str) -> NDArray[Any]:
    """One column as floats (NaN = unknown) or as text ("" = unknown)."""
    if isinstance(table, np.ndarray):
        return table[:, position]
    if isinstance(table, ColumnTable):
        return table.column(name)
    series = table[:, position]
    unknown = series.is_null().to_numpy().astype(np.bool_)
    if unknown.all():
        return np.full(len(unknown), np.nan)
    values: NDArray[Any] | None = None
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy().astype(np.float64)
    elif series.dtype == nw.Object:
        # pandas keeps numbers and truth values with gaps among them as objects.
        objects = np.where(unknown, np.nan, np.array(series.to_list(), dtype=object))
        if all(isinstance(value, (Real, np.bool_)) for value in objects):
            values = objects.astype(np.float64)
    if values is not None:
        values = np.where(unknown, np.nan, values)
        if np.isinf(values).any():
            raise InvalidInputError(
                f"column {name!r}",
                "must not hold infinite values",
                "infinity",
                "Replace it by a number, or by NaN if it is unknown.",
            )
        return values
    if series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        text = np.where(unknown, "", np.array(series.to_list(), dtype=object).astype(np.str_))
        return text.astype(np.str_)
    raise InvalidInputError(
        f"column {name!r}",
        "must be numeric, boolean, text or categorical",
        str(series.dtype),
        "Convert it, for example a date to a number of days.",
    )


def check_labels(y: Any) -> tuple[NDArray[Any], Floats]:
    """The two classes in order, and y as 0.0 / 1.0."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    if y is None:
        raise InvalidInputError(
            "y",
            "fit requires y to be passed, but the target y is None",
            None,
            "Pass the class of each row.",
        )
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise InvalidInputError(
            "y", "must be one-dimensional", f"shape {y.shape}", "Pass one class for each row."
        )
    check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}."
        )
    if len(classes) < 2:
        raise InvalidInputError(
            "y",
            "needs two classes",
            f"one class: {classes.tolist()}",
            "Collect rows of the other class; a classifier cannot be learned from one class.",
        )
    return classes, code.astype(np.float64)
