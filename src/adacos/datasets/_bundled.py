"""The three tables that ship with the library; data/README.md says how they were made."""

from __future__ import annotations

from importlib import resources

import numpy as np

from adacos.datasets._csv import binary_class, read_columns
from adacos.datasets._dataset import Dataset, Panels, make_dataset
from adacos.validation import choice

# Columns of the Pima table in which 0 stands for a value that was not recorded.
_NOT_RECORDED = ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI")


def load_pima(*, zeros: str = "kept", as_frame: bool | None = None) -> Dataset:
    """Diabetes (1) or not (0) among 768 Pima women, 8 covariates.

    Zeros of Glucose, BloodPressure, SkinThickness, Insulin and BMI stand for values that were not
    recorded. The paper uses no panels; passing those of the data set to `Costs` is the user's
    choice.

    Parameters
    ----------
    zeros : {"kept", "missing"}, default="kept"
        What becomes of these zeros: "kept" leaves them as they are, as in the paper, so that no
        value is missing; "missing" makes them NaN.
    as_frame : bool or None, default=None
        None, X is a data frame of the first of pandas, polars and pyarrow that is installed, and an
        array if none is; True, a data frame or an error; False, an array.

    Returns
    -------
    Dataset
        Table, classes, covariate costs, panels, provenance and names.

    Examples
    --------
    >>> from adacos import load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> X.shape, int(y.sum()), prices["Glucose"]
    ((768, 8), 268, 17.61)
    >>> float(X["BMI"].min()), float(load_pima(zeros="missing").X["BMI"].min())
    (0.0, 18.2)
    """
    choice("zeros", zeros, ("kept", "missing"))
    costs = (1, 17.61, 1, 1, 22.78, 1, 1, 1)
    panels: Panels = {"blood": (2.10, ["Glucose", "Insulin"])}
    unrecorded = _NOT_RECORDED if zeros == "missing" else ()
    return _load("pima", costs, panels, as_frame, unrecorded=unrecorded)


def load_wisconsin(*, sample_code: bool = False, as_frame: bool | None = None) -> Dataset:
    """Malignant (1) or benign (0) among 683 breast tumours, 9 covariates, no missing value.

    Parameters
    ----------
    sample_code : bool, default=False
        Also give the sample identifier, as column 0 at a cost of 1. It says nothing about a new
        patient; the paper's experiments contain it.
    as_frame : bool or None, default=None
        The container of X, see `load_pima`.

    Returns
    -------
    Dataset
        Table, classes, covariate costs, panels, provenance and names.

    Examples
    --------
    >>> from adacos import load_wisconsin
    >>> load_wisconsin().X.shape, load_wisconsin(sample_code=True).X.shape
    ((683, 9), (683, 10))
    """
    dropped = () if sample_code else ("sample_code",)
    return _load("wisconsin", (1,) * 10, {}, as_frame, dropped)


def load_heart(*, as_frame: bool | None = None) -> Dataset:
    """Heart disease (1) or not (0) among 303 patients, 13 covariates, 6 missing values.

    All columns are numbers. Codes: sex 1 = male; cp (chest pain) 1 = typical angina, 2 = atypical
    angina, 3 = other pain, 4 = none; restecg 0 = normal, 1 = ST-T abnormality, 2 = left ventricular
    hypertrophy; slope 1 = up, 2 = flat, 3 = down; thal 3 = normal, 6 = fixed defect, 7 = reversible
    defect. The paper uses no panels; passing those of the data set to `Costs` is the user's choice.

    Parameters
    ----------
    as_frame : bool or None, default=None
        The container of X, see `load_pima`.

    Returns
    -------
    Dataset
        Table, classes, covariate costs, panels, provenance and names.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import load_heart
    >>> data = load_heart()
    >>> data.X.shape, int(np.isnan(np.asarray(data.X)).sum()), list(data.panels)
    ((303, 13), 6, ['blood', 'exercise_ecg', 'thallium'])
    """
    costs = (1, 1, 1, 1, 7.27, 5.20, 15.50, 102.90, 87.30, 87.30, 87.30, 100.90, 102.90)
    panels: Panels = {
        "blood": (2.10, ["chol", "fbs"]),
        "exercise_ecg": (86.30, ["exang", "oldpeak", "slope"]),
        "thallium": (101.90, ["thalach", "thal"]),
    }
    return _load("heart", costs, panels, as_frame)


def _load(
    name: str,
    costs: tuple[float, ...],
    panels: Panels,
    as_frame: bool | None,
    dropped: tuple[str, ...] = (),
    unrecorded: tuple[str, ...] = (),
) -> Dataset:
    """A bundled table; zeros of the columns `unrecorded` become missing."""
    folder = resources.files("adacos.datasets") / "data"
    table = (folder / f"{name}.csv").read_text(encoding="utf-8")
    provenance = (folder / f"{name}.txt").read_text(encoding="utf-8")
    columns = read_columns(table.splitlines(), name)
    y = binary_class(columns.pop("y"), name, "y")
    prices = {column: float(cost) for column, cost in zip(columns, costs, strict=True)}
    for column in dropped:
        del columns[column], prices[column]
    for column in unrecorded:
        columns[column] = np.where(columns[column] == 0, np.nan, columns[column])
    return make_dataset(columns, y, prices, panels, provenance, as_frame)
