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

    Parameters
    ----------
    X : data frame or ndarray of shape (n_samples, n_features)
        One row per case, one float column per covariate, NaN where a value is unknown.
    y : ndarray of shape (n_samples,)
        The class of each row, 1 for the condition that is looked for.
    prices : dict of str to float
        Covariate cost of each column, as the paper charges it.
    panels : dict of str to (float, list of str)
        Shared cost and members of each panel, each member's price containing the shared cost. The
        paper charges every covariate in full; passing the panels to `Costs` is the user's choice.
    provenance : str
        Source, changes, licence and citation.
    names : tuple of str
        The columns of X, in order.
    groups : array-like of shape (n_samples,) or None, default=None
        The patient, site or other group of each row, where rows belong together. A benchmark then
        keeps them on one side of every random split, and counts them once in standard errors.

    Examples
    --------
    >>> from adacos.datasets import Dataset
    >>> data = Dataset([[1.0], [2.0]], [0, 1], {"age": 1.0}, {}, "made up", ("age",))
    >>> data.prices
    {'age': 1.0}
    """

    X: Any
    y: NDArray[np.int64]
    prices: dict[str, float]
    panels: Panels
    provenance: str
    names: tuple[str, ...]
    groups: Any = None


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
