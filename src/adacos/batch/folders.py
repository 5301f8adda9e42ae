"""Folders of Parquet files answered by the workers of a Dask scheduler.

Workers read the files themselves and write the answers themselves, one file for each group of rows,
so that both folders must be where all of them can reach them. The output appears when the last
file is written; anything that stops the run before leaves no output behind.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adacos.batch.files import (
    RESULTS,
    ScoreSummary,
    absent_covariates,
    check_names,
    parquet_writer,
    with_absent,
)
from adacos.exceptions import InvalidInputError
from adacos.models.dask_wait import gathered
from adacos.policies.base import BasePolicy
from adacos.policies.partitions import UNUSUAL, score_partitions
from adacos.tables.description import Description, description_of
from adacos.tables.parquet import files, is_parquet, n_rows, row_groups
from adacos.tables.parquet_table import joined
from adacos.tables.pieces import Kinds
from adacos.tables.reading import CHUNK_ROWS, TableFile
from adacos.tables.writing import (
    check_new_folder,
    refuse_same_file,
    whole_folder_or_absent,
    whole_or_absent,
)


class _GroupAnswers(NamedTuple):
    """What was answered of one group of rows."""

    rows: int
    labels: Counter[str]
    cost: float
    expected_cost: float
    unusual: Counter[str]
    unusual_rows: int


class _Form(NamedTuple):
    """How answers are written: columns to keep, classes, and what they are called."""

    keep: tuple[str, ...]
    classes: list[Any]
    said: Description


def check_folders(source: str | Path, destination: str | Path) -> None:
    """Refuse an input that workers cannot read in parts, and an output that is there already."""
    refuse_same_file(destination, [source])
    if Path(destination).suffix.lower() in (".csv", ".gz"):
        raise InvalidInputError(
            "output",
            "workers write a folder of Parquet files",
            str(destination),
            "Name a folder, such as answers, that does not exist yet.",
        )
    check_new_folder(destination)
    if Path(os.path.realpath(source)) in Path(os.path.realpath(destination)).parents:
        raise InvalidInputError(
            "output",
            "must not lie in the folder that is read",
            str(destination),
            "Put it outside of that folder: answers would be read as rows the next time.",
        )
    if Path(source).is_file() and not is_parquet(Path(source)):
        raise InvalidInputError(
            "input",
            "workers read Parquet: a file, or a folder of such files",
            str(source),
            "Leave --dask out for a CSV file, or write it as Parquet first.",
        )
    TableFile(source)  # which refuses what cannot be read
    if n_rows(Path(source)) == 0:
        raise InvalidInputError(str(source), "needs at least one row", "no rows", "Check it.")


def score_folder(
    policy: BasePolicy,
    source: str | Path,
    destination: str | Path,
    client: Any,
    *,
    known: Sequence[str] = (),
    keep: Sequence[str] = (),
    progress: Callable[[int, float], None] = lambda rows, share: None,
) -> ScoreSummary:
    """Answer every row of a folder of Parquet files into another folder.

    The columns are those of `score_file`; the names of the files have the order of the rows.

    Parameters
    ----------
    policy : a fitted policy.
    source : a Parquet file, or a folder of Parquet files with the same columns.
    destination : the folder to write.
    client : a `dask.distributed.Client`.
    known : covariates known from the start in every row that has a value.
    keep : columns to copy, such as an identifier.
    progress : called with the number of rows written so far and their share.
    """
    # Workers run elsewhere: what a relative path means here it does not mean there.
    source, destination = Path(os.path.abspath(source)), Path(os.path.abspath(destination))
    check_folders(source, destination)
    names = policy.encoder_.names
    check_names("known", known, names, "must name covariates of the model")
    table = TableFile(source)
    absent = absent_covariates(table, names)
    check_names("keep", keep, table.columns, "must name columns of the input")
    _refuse_results(keep)
    rows = _spread(source, policy, keep)
    answers = score_partitions(policy, rows, known=known, keep=keep, acquired=True, unusual=True)
    form = _Form(tuple(keep), policy.classes_.tolist(), description_of(policy))
    whole = n_rows(source)
    with whole_folder_or_absent(destination) as temporary:
        parts = _written(client, answers, form, temporary, lambda n: progress(n, n / whole))
        summary = _summary(parts, whole)
        _check_written(temporary, whole)
    return replace(summary, absent=absent)


def _refuse_results(keep: Sequence[str]) -> None:
    clash = [name for name in keep if name in RESULTS]
    if clash:
        raise InvalidInputError(
            "keep", "must not name a column of the results", clash, "Rename it in the input."
        )


def _spread(source: Path, policy: BasePolicy, keep: Sequence[str]) -> Any:
    """The rows as a Dask data frame with a partition for each group of rows."""
    import dask.dataframe

    names = policy.encoder_.names
    kinds = Kinds.of(policy.encoder_)
    kinds = kinds._replace(text=kinds.text | (set(keep) - set(names)))
    wanted = list(dict.fromkeys([*names, *keep]))
    empty = _frame({name: np.empty(0, "U1" if name in kinds.text else float) for name in wanted})
    groups = [(str(file), number) for file, number in row_groups(source)]
    read = partial(_read, wanted=wanted, kinds=kinds)
    return dask.dataframe.from_map(read, groups, meta=empty)


def _frame(columns: dict[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame(columns)


def _read(group: tuple[str, int], wanted: list[str], kinds: Kinds) -> Any:
    """One group of rows, read by a worker as `score_file` reads a piece."""
    file, number = Path(group[0]), group[1]
    if not file.exists():
        raise InvalidInputError(
            "input",
            "must be where every worker can read it, under the same path",
            str(file),
            "Put it on a disk that the workers share.",
        )
    table = TableFile(file)
    there = [name for name in wanted if name in table.columns]
    pieces = list(table.pieces(there, kinds, CHUNK_ROWS, number))
    malformed = [bad for piece in pieces for bad in piece.malformed]
    if malformed:
        raise InvalidInputError(
            file.name,
            "rows must be whole",
            f"{len(malformed)} that cannot be read, the first on {malformed[0]}",
            "Correct them, or leave them out with --skip-malformed and without --dask.",
        )
    rows = with_absent(joined([piece.table for piece in pieces]), wanted, kinds)
    return _frame({name: rows.column(name) for name in wanted})


def _written(
    client: Any, answers: Any, form: _Form, folder: Path, progress: Callable[[int], None]
) -> list[_GroupAnswers]:
    """Have every partition of the answers written into the folder."""
    import dask

    lazy = answers.to_delayed()
    width = max(5, len(str(len(lazy))))
    paths = [str(folder / f"part-{number:0{width}d}.parquet") for number in range(len(lazy))]
    work = [dask.delayed(_write)(part, form, path) for part, path in zip(lazy, paths, strict=True)]
    futures, parts = client.compute(work), []
    try:
        for future in futures:
            parts.append(gathered(client, future))
            progress(sum(own.rows for own in parts))
    finally:
        client.cancel(futures)
    # A worker that died while it wrote has left a file of another name.
    for left in set(folder.iterdir()) - set(map(Path, paths)):
        left.unlink()
    return parts


def _write(answers: Any, form: _Form, path: str) -> _GroupAnswers:
    """Write one partition of the answers, as a worker."""
    if not Path(path).parent.is_dir():
        raise InvalidInputError(
            "output",
            "must be where every worker can write, under the same path",
            str(Path(path).parents[1]),
            "Put it on a disk that the workers share.",
        )
    with whole_or_absent(path) as temporary, parquet_writer(temporary) as write:
        for first in range(0, len(answers), CHUNK_ROWS):
            write(_columns(answers.iloc[first : first + CHUNK_ROWS], form))
    counts = answers["label"].value_counts().items()
    labels = Counter({str(label): int(count) for label, count in counts if count})
    cost, expected_cost = (float(answers[name].sum()) for name in ("cost", "expected_cost"))
    unusual = Counter({kind: int(answers[name].sum()) for kind, name in UNUSUAL.items()})
    unusual_rows = int((answers[list(UNUSUAL.values())] > 0).any(axis=1).sum())
    return _GroupAnswers(len(answers), labels, cost, expected_cost, unusual, unusual_rows)


def _columns(answers: Any, form: _Form) -> dict[str, list[Any]]:
    """Some rows of the answers in the columns of `score_file`."""
    label = answers["label"].tolist()
    probability = {"probability": "probability"}
    if len(form.classes) > 2:
        probability = {
            f"probability of {c}": f"probability_{k}" for k, c in enumerate(form.classes)
        }
    return {
        **{name: answers[name].tolist() for name in form.keep},
        "label": label,
        **({"class": [form.said.class_name(one) for one in label]} if form.said.classes else {}),
        **{name: answers[own].tolist() for name, own in probability.items()},
        "cost": answers["cost"].tolist(),
        "expected_cost": answers["expected_cost"].tolist(),
        "acquired": answers["acquired"].tolist(),
    }


def _summary(parts: Iterable[_GroupAnswers], rows_read: int) -> ScoreSummary:
    parts = list(parts)
    rows = sum(part.rows for part in parts)
    unusual = sum((part.unusual for part in parts), Counter[str]())
    return ScoreSummary(
        rows_read=rows_read,
        rows=rows,
        malformed=[],
        labels=dict(sum((part.labels for part in parts), Counter())),
        # Exact sums do not depend on which worker was first.
        mean_cost=math.fsum(part.cost for part in parts) / rows,
        mean_expected_cost=math.fsum(part.expected_cost for part in parts) / rows,
        unusual={kind: unusual[kind] for kind in UNUSUAL if unusual[kind]},
        unusual_rows=sum(part.unusual_rows for part in parts),
    )


def _check_written(folder: Path, rows_read: int) -> None:
    """The rows in the files, as seen from here, must be those that were read."""
    written = n_rows(folder) if files(folder) else 0
    if written != rows_read:
        raise InvalidInputError(
            "output",
            "must be on a disk that the workers and this machine share, as must the input",
            f"{written:,} rows written of {rows_read:,}",
            "Check that the paths lead to the same folders everywhere.",
        )
