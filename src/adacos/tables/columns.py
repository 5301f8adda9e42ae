"""`ColumnTable`: a table of named columns for readers that need no data-frame library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ColumnTable:
    """Named columns of one length: floats with NaN for unknown, or text with "" for unknown.

    It is accepted wherever a data frame is. `dates` says of columns of numbers how they were read
    from dates, see `adacos.tables.dates`: a model that is fitted on them reads others so.
    """

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], dates: Mapping[str, str] | None = None
    ) -> None:
        self.dates = {} if dates is None else dict(dates)
        self._columns = {
            name: values if values.dtype.kind == "U" else values.astype(np.float64, copy=False)
            for name, values in columns.items()
        }

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(next(iter(self._columns.values()), ())), len(self._columns)

    def __len__(self) -> int:
        return self.shape[0]

    def column(self, name: str) -> NDArray[Any]:
        """One column."""
        return self._columns[name]

    def select(self, names: list[str]) -> ColumnTable:
        """The table with these columns in this order."""
        return ColumnTable({name: self._columns[name] for name in names}, self.dates)

    def __getitem__(self, rows: Any) -> ColumnTable:
        return ColumnTable({name: v[rows] for name, v in self._columns.items()}, self.dates)

    def to_native(self) -> ColumnTable:
        """The table itself; data frames hidden behind narwhals answer the same call."""
        return self
