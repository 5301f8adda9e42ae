"""What every loader returns, and in which container it hands the covariates over."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adacos.exceptions import InvalidInputError

Panels = dict[str, tuple[float, list[str]]]

_FRAME_PACKAGES: tuple[Literal["pandas", "polars", "pyarrow"], ...] = (
    "pandas",
    "polars",
    "pyarrow",
)


class Dataset(NamedTuple):
    """A table with its covariate costs and where it comes from.

    Attributes
    ----------
    X : one row per case, one float column per covariate, NaN where a value is unknown. A data frame
        or an array, as asked for by `as_frame`.
    y : the class of each row, 1 for the condition that is looked for.
    prices : covariate cost of each column, as the paper charges it.
    panels : shared costs, panel name -> (shared cost, members), each member's price containing the
        shared cost. The paper charges every covariate in full; passing the panels to `Costs` is the
        user's choice.
    provenance : source, changes, licence and citation.
    names : the columns of X, in order.
    """

    X: Any
    y: NDArray[np.int64]
    prices: dict[str, float]
    panels: Panels
    provenance: str
    names: tuple[str, ...]


def make_dataset(
    columns: Mapping[str, NDArray[np.float64]],
    y: NDArray[np.int64],
    prices: dict[str, float],
    panels: Panels,
    provenance: str,
    as_frame: bool | None,
) -> Dataset:
    """Put the columns in the container that `as_frame` asks for."""
    package = next((name for name in _FRAME_PACKAGES if find_spec(name)), None)
    if as_frame and package is None:
        raise InvalidInputError(
            "as_frame",
            "True needs pandas, polars or pyarrow, and none of them is installed",
            as_frame,
            "Install one (pip install pandas), or pass as_frame=False for an array.",
        )
    X: Any
    if package is None or as_frame is False:
        X = np.column_stack(list(columns.values()))
    else:
        # Here, so that reading an array does not wait for the import.
        import narwhals

        X = narwhals.from_dict(dict(columns), backend=package).to_native()
    return Dataset(X, y, prices, panels, provenance, tuple(columns))
