"""`ParquetTable`: a table in Parquet files, read a piece at a time however large it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.columns import ColumnTable
from adacos.tables.parquet import files, n_rows
from adacos.tables.pieces import Kinds
from adacos.tables.reading import TableFile
from adacos.validation import choices

# Rows in memory at a time.
PIECE_ROWS = 131_072


class ParquetTable:
    """A Parquet file, or a folder of them with the same columns, as rows to learn from.

    AdaCOS, COS and Full Model take it in place of a data frame, with the name of the column that
    holds the class. If the rows would be held as codes anyway, they are read three times, a
    piece at a time; the fit is that of the same rows in memory, to rounding. Fewer are read into
    memory.

    Parameters
    ----------
    path : str or path
        A file that ends in .parquet or .pq, or a folder.
    categorical : collection of str, default=()
        Columns of numbers that are codes of categories.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow.parquet
    >>> from adacos import AdaCOSClassifier, Costs, ParquetTable, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pima.parquet"
    ...     X.assign(diabetes=y).to_parquet(path)
    ...     policy = AdaCOSClassifier(Costs(prices)).fit(ParquetTable(path), "diabetes")
    >>> len(policy.sets_)
    9
    """

    def __init__(self, path: str | Path, *, categorical: Collection[str] = ()) -> None:
        self._file = TableFile(path)
        if not self._file.is_parquet:
            raise InvalidInputError(
                "path", "must be Parquet", str(path), "CSV is read into a data frame first."
            )
        kinds = self._file.kinds()
        self._kinds = Kinds(kinds.text | frozenset(categorical))
        self.columns = list(self._file.columns)

    def only(self, columns: list[str]) -> Self:
        """Select columns.

        Parameters
        ----------
        columns : list of str
            Their names.

        Returns
        -------
        ParquetTable
            The same rows with these columns.

        Raises
        ------
        InvalidInputError
            If the table has no such column.
        """
        there = set(self.columns)
        absent = [name for name in columns if name not in there]
        if absent:
            raise InvalidInputError(
                "y" if len(absent) == 1 else "columns",
                "must name columns of the table",
                absent,
                choices(absent, self.columns, "It has"),
            )
        table = type(self).__new__(type(self))
        table._file, table._kinds, table.columns = self._file, self._kinds, columns
        return table

    def values(self, name: str) -> NDArray[Any]:
        """Read one column as a whole.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers with NaN, or text with "", for what is missing.
        """
        return np.concatenate([piece.column(name) for piece in self.only([name]).pieces()])

    def rows(self, wanted: NDArray[np.intp]) -> ColumnTable:
        """Read some rows.

        Parameters
        ----------
        wanted : ndarray of int
            Their numbers, counted from 0, in ascending order.

        Returns
        -------
        ColumnTable
            These rows.
        """
        done, found = 0, []
        for piece in self.pieces():
            found.append(piece[wanted[(wanted >= done) & (wanted < done + len(piece))] - done])
            done += len(piece)
        return joined(found)

    def missing(self) -> list[str]:
        """Find columns without a value somewhere.

        Returns
        -------
        list of str
            Their names.
        """
        found: set[str] = set()
        for piece in self.pieces():
            for name in piece.columns:
                own = piece.column(name)
                if np.any(own == "" if own.dtype.kind == "U" else np.isnan(own)):
                    found.add(name)
        return [name for name in self.columns if name in found]

    def spread(self) -> Any:
        """Hand the rows to Dask, in their order.

        Returns
        -------
        dask.dataframe.DataFrame
            One partition for each row group, read by the workers.
        """
        try:
            import dask.dataframe
        except ImportError as error:
            raise MissingExtraError("dask", "dask") from error
        paths = [str(file) for file in files(self._file.path)]
        frame = dask.dataframe.read_parquet(paths, columns=self.columns, split_row_groups=True)
        as_text = [name for name in self.columns if name in self._kinds.text]
        frame = frame.astype(dict.fromkeys(as_text, "str"))
        return frame.assign(**{name: frame[name].str.strip() for name in as_text})

    def __len__(self) -> int:
        return n_rows(self._file.path)

    def pieces(self) -> Iterator[ColumnTable]:
        """Read the rows in their order, some at a time.

        Yields
        ------
        ColumnTable
            The next rows.
        """
        for piece in self._file.pieces(self.columns, self._kinds, PIECE_ROWS):
            if piece.malformed:
                raise InvalidInputError(
                    self._file.path.name, "rows must be whole", str(piece.malformed[0]), "Fix it."
                )
            if len(piece.table):
                yield piece.table.select(self.columns)


def joined(pieces: Sequence[ColumnTable]) -> ColumnTable:
    """Pieces of a table, one below the other."""
    names = pieces[0].columns
    return ColumnTable({n: np.concatenate([own.column(n) for own in pieces]) for n in names})
