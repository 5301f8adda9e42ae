"""From a table of any kind to encoded values.

`TableEncoder` learns the kind of each column and writes a float matrix: numeric and boolean
covariates take one column, a categorical covariate one indicator column per category. NaN marks
what is unknown. A category never seen in training is encoded by the training frequencies of the
categories, by which it is known again (`TableEncoder.unseen`): it was acquired, and says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from adacos.exceptions import InvalidInputError
from adacos.kernels.namespace import host
from adacos.tables.categories import MAX_CATEGORIES, OTHER, kept_categories, unseen_categories
from adacos.tables.column_values import column_values
from adacos.tables.columns import ColumnTable
from adacos.tables.dates import is_form
from adacos.tables.kinds import BINARY, CATEGORICAL, CONSTANT, NUMERIC
from adacos.typing import Bools, Floats, Ints
from adacos.validation import did_you_mean, listed

_TABLE = "must be a table of rows and columns"

# A number farther outside the training range than this many of its widths is not plausible.
PLAUSIBLE_WIDTHS = 1.0
# Numbers to learn from: their squares and products must not leave the range of floats.
LARGEST = 1e100
SMALLEST_RANGE = 1e-100


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, polars, pyarrow and what else narwhals knows)."""
    return isinstance(X, ColumnTable) or bool(nw.dependencies.is_into_dataframe(X))


def validate_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as a frame or a float array, checked against what `estimator` was fitted on.

    Sets or checks `n_features_in_` and `feature_names_in_` as scikit-learn does, except that the
    columns of a frame go by their names: in another order they are put in that of the fit. NaN is
    allowed, infinity is not.
    """
    _refuse_one_row(X)
    if not is_frame(X):
        return _validate_array(estimator, host(X), reset)
    frame = _as_frame(X)
    names = frame.columns
    if not reset:
        fitted = list(getattr(estimator, "feature_names_in_", names))
        if set(fitted) != set(names) or len(fitted) != len(names):
            raise _other_columns(fitted, names)
        if list(names) != fitted:
            frame = frame.select(fitted)
    if not isinstance(frame, ColumnTable):
        validate_data(estimator, frame.to_native(), reset=reset, skip_check_array=True)
    elif reset:
        estimator.n_features_in_ = len(names)
    if reset and all(isinstance(name, str) for name in names):
        # scikit-learn does not recognise every frame; names must travel whatever the frame is.
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if len(frame) == 0:
        raise InvalidInputError("X", "needs at least one row", "0 rows", "Check the selection.")
    return frame


def _other_columns(fitted: list[Any], names: list[Any]) -> InvalidInputError:
    """Which columns a table is without and has besides, by name."""
    missing = [str(name) for name in fitted if name not in names]
    more = [str(name) for name in names if name not in fitted]
    differences = [f"no {listed(missing)}"] * bool(missing) + [f"also {listed(more)}"] * bool(more)
    remedy = "Select X[policy.feature_names_in_]."
    if missing:
        add = "Add it as a column" if len(missing) == 1 else "Add them as columns"
        remedy = did_you_mean(more, missing) or f"{add}, empty where there is no value."
    return InvalidInputError(
        "X", "columns must be those of the fit", "; ".join(differences), remedy
    )


def with_empty_columns(X: Any, names: Iterable[str]) -> Any:
    """A data frame with those of the columns that it has not, without values; an array as it is."""
    if not is_frame(X):
        return X
    frame = _as_frame(X)
    there = set(frame.columns)
    missing = [name for name in names if name not in there]
    if not missing:
        return X
    if isinstance(frame, ColumnTable):
        empty = {name: np.full(len(frame), np.nan) for name in missing}
        return ColumnTable({name: frame.column(name) for name in frame.columns} | empty)
    return frame.with_columns(*(nw.lit(float("nan")).alias(name) for name in missing)).to_native()


def in_fitted_order(estimator: BaseEstimator, X: Any, mask: Any) -> Any:
    """A mask with the columns of X as `validate_table` puts them; None stays None."""
    fitted = list(getattr(estimator, "feature_names_in_", []))
    if mask is None or not fitted or not is_frame(X):
        return mask
    place = {name: number for number, name in enumerate(_as_frame(X).columns)}
    return np.asarray(mask)[..., [place[name] for name in fitted]]


def _refuse_one_row(X: Any) -> None:
    """A single row that lost its table on the way, or no row at all."""
    if nw.dependencies.is_into_series(X):
        kind = "a series"
    elif isinstance(X, Mapping) and not hasattr(X, "shape"):  # as some sparse matrices are
        kind = "a mapping"
    elif X is None or isinstance(X, str | Number):
        remedy = "Pass a DataFrame, or an array with one line for each row."
        raise InvalidInputError("X", _TABLE, repr(X), remedy)
    else:
        return
    raise InvalidInputError(
        "X",
        _TABLE,
        kind,
        "Pass one row as X.loc[[5]] or DataFrame([row]), one column as X[['age']].",
    )


def _validate_array(estimator: BaseEstimator, X: Any, reset: bool) -> Floats:
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise InvalidInputError(
            "X", "must hold numbers", str(X.dtype), "Convert dates to numbers of days."
        )
    try:
        values: Floats = validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
    except OverflowError:
        raise InvalidInputError(
            "X",
            "must hold finite numbers",
            "a whole number beyond the range of floats",
            "Correct the value, or put NaN if it is unknown.",
        ) from None
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        remedy = "Pass a table whose columns have a type each, such as a DataFrame."
        raise InvalidInputError("X", "an array must hold numbers", str(error), remedy) from None
    return values


def _as_frame(X: Any) -> Any:
    different = "column names must be different from each other"
    try:
        frame = X if isinstance(X, ColumnTable) else nw.from_native(X, eager_only=True)
    except DuplicateError as error:
        raise InvalidInputError("X", different, str(error), "Rename them.") from None
    names = frame.columns
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InvalidInputError("X", different, repeated, "Rename them.")
    if len(names) == 0:
        raise InvalidInputError(
            "X", "needs at least one column", "0 columns", "Check the selection."
        )
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
    grouped : per covariate, the rare categories that count as `OTHER`; empty where no covariate has
        such.
    dates : per covariate, how its number is taken from a date, "" for one that is no date; empty
        where no covariate is.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    frequencies: tuple[Floats, ...]
    low: Floats
    high: Floats
    source: Ints
    grouped: tuple[tuple[str, ...], ...] = ()
    dates: tuple[str, ...] = ()

    @staticmethod
    def fit(table: Any, names: tuple[str, ...]) -> TableEncoder:
        """Learn kinds and categories from a validated table."""
        kinds, categories, frequencies, ranges, grouped = [], [], [], [], []
        forms = table.dates if isinstance(table, ColumnTable) else {}
        for position, name in enumerate(names):
            values = column_values(table, position, name)
            if values.dtype.kind == "U":
                known = values[values != ""]
                refuse_empty(known, name)
                found, counts = np.unique(known, return_counts=True)
                levels, shares, rare = kept_categories(found, counts, name)
                kinds.append(CATEGORICAL if len(levels) > 1 else CONSTANT)
                categories.append(levels)
                frequencies.append(shares)
                grouped.append(rare)
                ranges.append((np.nan, np.nan))
            else:
                known = values[~np.isnan(values)]
                refuse_empty(known, name)
                check_extremes(float(known.min()), float(known.max()), name)
                distinct = np.unique(known[:1000])
                if len(distinct) <= 2:
                    distinct = np.unique(known)
                kinds.append((CONSTANT, BINARY, NUMERIC)[min(len(distinct), 3) - 1])
                categories.append(())
                frequencies.append(np.empty(0))
                grouped.append(())
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
            grouped=tuple(grouped) if any(grouped) else (),
            dates=tuple(forms.get(name, "") for name in names) if forms else (),
        )

    @property
    def date_forms(self) -> dict[str, str]:
        """How numbers are taken from dates, by covariate."""
        pairs = zip(self.names, self.dates, strict=False)
        return {name: form for name, form in pairs if form}

    @property
    def example(self) -> tuple[str, str | float]:
        """A covariate, and a value of it that was in training."""
        if self.categories[0]:
            return self.names[0], self.categories[0][0]
        return self.names[0], float(f"{self.low[0]:g}")

    def grouped_of(self, position: int) -> tuple[str, ...]:
        """The rare categories of a covariate that count as `OTHER`."""
        return self.grouped[position] if self.grouped else ()

    @property
    def first(self) -> Ints:
        """First encoded column of each covariate."""
        return np.searchsorted(self.source, np.arange(len(self.names)))

    def only(self, kept: Bools) -> TableEncoder:
        """The encoder of some of the covariates."""
        chosen = np.flatnonzero(kept)
        width = np.bincount(self.source, minlength=len(self.names))[chosen]
        return TableEncoder(
            names=tuple(self.names[k] for k in chosen),
            kinds=tuple(self.kinds[k] for k in chosen),
            categories=tuple(self.categories[k] for k in chosen),
            frequencies=tuple(self.frequencies[k] for k in chosen),
            low=self.low[chosen],
            high=self.high[chosen],
            source=np.repeat(np.arange(len(chosen)), width),
            grouped=tuple(self.grouped[k] for k in chosen) if self.grouped else (),
            dates=tuple(self.dates[k] for k in chosen) if self.dates else (),
        )

    def check(self) -> None:
        """Refuse an encoder whose parts do not fit each other, as a foreign file may hold it."""
        p = len(self.names)
        width = [max(len(levels), 1) for levels in self.categories]
        if not (
            p == len(self.kinds) == len(self.categories) == len(self.frequencies)
            and self.low.shape == self.high.shape == (p,)
            and set(self.kinds) <= {NUMERIC, BINARY, CONSTANT, CATEGORICAL}
            and max(width) <= MAX_CATEGORIES
            and np.array_equal(self.source, np.repeat(np.arange(p), width))
            and all(
                len(levels) == len(shares)
                for levels, shares in zip(self.categories, self.frequencies, strict=True)
            )
            and len(set(self.names)) == p
            and len(self.grouped) in (0, p)
            and len(self.dates) in (0, p)
            and all(is_form(form) for form in self.date_forms.values())
            and not any(
                levels and form for levels, form in zip(self.categories, self.dates, strict=False)
            )
            and all(
                not rare or (OTHER in levels and not set(rare) & (set(levels) - {OTHER}))
                for levels, rare in zip(self.categories, self.grouped, strict=False)
            )
            and all(list(levels) == sorted({*levels} - {""}) for levels in self.categories)
            and all((shares > 0).all() for shares in self.frequencies)
            and all(
                np.isnan([low, high]).all() if levels else -np.inf < low <= high < np.inf
                for levels, low, high in zip(self.categories, self.low, self.high, strict=True)
            )
        ):
            raise ValueError("the parts of the encoder do not fit each other")

    def transform(self, table: Any) -> Floats:
        """Encoded values of a validated table, NaN where unknown."""
        columns = [
            self.encode(position, self.values(table, position))
            for position in range(len(self.names))
        ]
        return np.hstack(columns)

    def unseen(self, encoded: Floats) -> Bools | None:
        """Mask (rows, covariates) of categories never seen in training; None if there is none."""
        found = np.flatnonzero([kind == CATEGORICAL for kind in self.kinds])
        strange = unseen_categories(encoded, self.source, found)
        if not strange.any():
            return None
        mask = np.zeros((len(encoded), len(self.names)), dtype=np.bool_)
        mask[:, found] = strange
        return mask

    def values(self, table: Any, position: int) -> NDArray[Any]:
        """One column of a validated table, dates as the numbers that are taken from them."""
        name = self.names[position]
        form = self.dates[position] if self.dates else ""
        return column_values(table, position, name, form)

    def encode(self, position: int, values: NDArray[Any]) -> Floats:
        """Encoded columns of one covariate; text values stand for categories, "" for unknown.

        A number outside the training range counts as its nearer end: beyond it nothing was learned,
        and a model that went on in a straight line would settle the row by it.
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
            held = np.clip(values.astype(np.float64), self.low[position], self.high[position])
            return held[:, None]
        if values.dtype.kind != "U":
            values = np.where(np.isnan(values), "", values.astype(np.str_))
        table = np.vstack(
            [np.eye(len(levels)), self.frequencies[position], np.full(len(levels), np.nan)]
        )
        if rare := self.grouped_of(position):
            values = np.where(np.isin(values, rare), OTHER, values)
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


def check_extremes(low: float, high: float, name: str) -> None:
    """Numbers whose squares, or the squares of whose differences, leave the range of floats."""
    size = max(abs(low), abs(high))
    if size > LARGEST or 0 < high - low < SMALLEST_RANGE:
        raise InvalidInputError(
            f"column {name!r}",
            f"numbers must lie within {LARGEST:g} of zero, and differ by {SMALLEST_RANGE:g} at "
            "least where they differ",
            f"{size:g}" if size > LARGEST else f"{low:g} to {high:g}",
            "Correct the value, or use another unit.",
        )


def table_rows(table: Any, rows: Ints) -> Any:
    """Some rows of a validated table, as a table of the kind that was given."""
    return table[rows] if isinstance(table, np.ndarray) else table[rows].to_native()
