"""Reader of the PhysioNet 2012 challenge (mortality in intensive care), which cannot be bundled."""

from __future__ import annotations

import gzip
import re
import zlib
from math import isnan, nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adacos.datasets._csv import binary_class, number, read_columns
from adacos.datasets._dataset import Dataset, make_dataset
from adacos.exceptions import InvalidInputError
from adacos.tables.cells import csv_rows

# fmt: off
_COVARIATES = (
    "MAP", "DiasABP", "Mg", "pH", "BUN", "Temp", "Glucose", "HCT", "MechVent", "K", "PaO2",
    "NIDiasABP", "HCO3", "Na", "Lactate", "Urine", "PaCO2", "Weight", "Platelets", "Creatinine",
    "NISysABP", "SysABP", "WBC", "NIMAP", "ICUType", "GCS", "Gender", "HR", "Age", "FiO2",
)
# fmt: on
_DESCRIPTORS = frozenset({"Age", "Gender", "ICUType", "Weight"})
_RECORD_HEADER = ["Time", "Parameter", "Value"]
_OUTCOME = "In-hospital_death"
_TIME = re.compile(r"\d\d:\d\d")
_DOWNLOAD = "The challenge is at https://physionet.org/content/challenge-2012/1.0.0/."
_PROVENANCE = """\
PhysioNet/Computing in Cardiology Challenge 2012: stays in intensive care of 48 hours or more, the
last recorded value of each of the 30 attributes that are not mostly missing.

Source: https://physionet.org/content/challenge-2012/1.0.0/, read from the user's copy {name!r}.
Licence: open access, on the terms stated there.
Citation: I. Silva, G. Moody, D. J. Scott, L. A. Celi and R. G. Mark (2012). Predicting in-hospital
mortality of ICU patients: the PhysioNet/Computing in Cardiology Challenge 2012. Computing in
Cardiology 39, 245-248. Also A. L. Goldberger et al. (2000). PhysioBank, PhysioToolkit, and
PhysioNet. Circulation 101 (23), e215-e220.
Costs: 1 for each covariate, as in the paper.
"""

Columns = dict[str, NDArray[np.float64]]


def load_physionet2012(path: str | Path, *, as_frame: bool | None = None) -> Dataset:
    """Death in hospital (1) or survival (0) after two days in intensive care, 30 covariates.

    Parameters
    ----------
    path : str or path-like
        Either a ready table, or the folder of the challenge.

        A ready table is a CSV file, plain or compressed (.gz), with a column for each of the 30
        covariates and `y`; an empty cell is a missing value. Other columns (such as `test_fold`)
        must hold numbers too, and are ignored.

        The folder of the challenge holds one or more of `set-a`, `set-b` and `set-c`, each with
        files `<RecordID>.txt` of lines `Time,Parameter,Value`, and next to each set its
        `Outcomes-a.txt` (`-b`, `-c`). Rows come set by set in the order of the outcomes. The value
        of a covariate is the one with the latest time; of two at the same time, the one further
        down. -1 means unknown for Age, Gender, ICUType and Weight and is passed over; every other
        value is taken as recorded, however implausible. Other parameters are ignored.
    as_frame : bool or None, default=None
        The container of X, see `load_pima`.

    Returns
    -------
    Dataset
        Table, classes, covariate costs, panels, provenance and names.

    Raises
    ------
    InvalidInputError
        If the path, or what is in it, is not as described; it names file and line.

    Examples
    --------
    >>> from adacos import load_physionet2012
    >>> data = load_physionet2012("physionet.org/files/challenge-2012/1.0.0")  # doctest: +SKIP
    """
    path = Path(path)
    if path.is_dir():
        columns, y = _read_challenge(path)
    elif path.is_file():
        columns, y = _read_table(path)
    else:
        raise InvalidInputError(
            "path", "must be a CSV file or the folder of the challenge", str(path), _DOWNLOAD
        )
    prices = dict.fromkeys(_COVARIATES, 1.0)
    return make_dataset(columns, y, prices, {}, _PROVENANCE.format(name=path.name), as_frame)


def _read_table(path: Path) -> tuple[Columns, NDArray[np.int64]]:
    columns = read_columns(_lines(path), path.name)
    missing = [name for name in (*_COVARIATES, "y") if name not in columns]
    if missing:
        raise InvalidInputError(
            "path",
            f"the table {path.name} must have a column for each covariate and y",
            f"no {', '.join(missing)}",
            "Add the columns, or pass the folder of the challenge.",
        )
    y = binary_class(columns["y"], path.name, "y")
    return {name: columns[name] for name in _COVARIATES}, y


def _read_challenge(folder: Path) -> tuple[Columns, NDArray[np.int64]]:
    sets = [folder / f"set-{letter}" for letter in "abc" if (folder / f"set-{letter}").is_dir()]
    if not sets:
        raise InvalidInputError(
            "path",
            "the folder of the challenge must hold set-a, set-b or set-c",
            str(folder),
            f"Unpack the sets there. {_DOWNLOAD}",
        )
    rows, deaths = [], []
    for records in sets:
        outcomes = folder / f"Outcomes-{records.name[-1]}.txt"
        for record, death in _read_outcomes(outcomes, records):
            rows.append(_read_record(record))
            deaths.append(death)
    values = np.array(rows).reshape(-1, len(_COVARIATES))
    return dict(zip(_COVARIATES, values.T, strict=True)), np.array(deaths, dtype=np.int64)


def _read_outcomes(outcomes: Path, records: Path) -> list[tuple[Path, int]]:
    """The file and the outcome of each record of one set."""
    if not outcomes.is_file():
        raise InvalidInputError(
            "path",
            f"{outcomes.name} must lie next to {records.name}",
            str(outcomes),
            f"Add the file, or leave {records.name} out.",
        )
    columns = read_columns(_lines(outcomes), outcomes.name)
    missing = [name for name in ("RecordID", _OUTCOME) if name not in columns]
    if missing:
        raise InvalidInputError(
            outcomes.name,
            f"must have the columns RecordID and {_OUTCOME}",
            f"no {', '.join(missing)}",
            _DOWNLOAD,
        )
    deaths = binary_class(columns[_OUTCOME], outcomes.name, _OUTCOME)
    expected = [records / f"{record:.0f}.txt" for record in columns["RecordID"]]
    odd = set(expected).symmetric_difference(records.glob("*.txt"))
    if odd:
        example = min(odd)
        raise InvalidInputError(
            "path",
            f"{records.name} must hold one file for each RecordID of {outcomes.name}",
            f"{len(odd)} without a partner, such as {example.name}",
            "Unpack the set again.",
        )
    return list(zip(expected, deaths.tolist(), strict=True))


def _read_record(path: Path) -> list[float]:
    """The last recorded value of each covariate, NaN where there is none."""
    latest = dict.fromkeys(_COVARIATES, ("", nan))
    source = f"{path.parent.name}/{path.name}"
    for cells, line, _ in csv_rows(_lines(path), source):
        if line == 1:
            well_formed = cells == _RECORD_HEADER
        else:
            well_formed = len(cells) == 3 and _TIME.fullmatch(cells[0]) is not None
        if not well_formed:
            raise InvalidInputError(
                source,
                f"line {line} must be Time,Parameter,Value, the time as hh:mm",
                cells,
                "Restore the file of the challenge.",
            )
        time, parameter, cell = cells
        if parameter not in latest:
            continue
        value = number(cell, source, line)
        unknown = isnan(value) or (parameter in _DESCRIPTORS and value == -1)
        if not unknown and time >= latest[parameter][0]:
            latest[parameter] = (time, value)
    return [value for _, value in latest.values()]


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    try:
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig").splitlines()
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidInputError(
            "path", f"{path.name} must be text, compressed if it ends in .gz", str(error), _DOWNLOAD
        ) from error
