"""Held-out rows from a file, as a fitted policy takes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from adacos.cli.common import progress, report_malformed
from adacos.cli.training import as_in_fit, row_groups
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.tables.columns import ColumnTable
from adacos.tables.pieces import Kinds
from adacos.tables.reading import TableFile
from adacos.validation import choices


class HeldOutRows(NamedTuple):
    """Held-out rows that have a class, as a fitted policy takes them.

    `columns` are those that were asked for besides, by name: as text, unless they are covariates.
    """

    table: ColumnTable
    y: NDArray[Any]
    groups: NDArray[Any] | None
    columns: dict[str, NDArray[Any]]


def read_held_out(
    policy: BasePolicy,
    data: Path,
    target: str,
    positive: str | None,
    skip_malformed: bool,
    encoding: str,
    decimal: str,
    as_json: bool,
    groups: str | None = None,
) -> tuple[ColumnTable, NDArray[Any], NDArray[Any] | None]:
    """Rows of a file that have a class, as a fitted policy takes them, their classes and groups."""
    file = TableFile(data, encoding=encoding, decimal=decimal)
    return held_out_rows(policy, file, target, positive, skip_malformed, as_json, groups)[:3]


def held_out_rows(
    policy: BasePolicy,
    file: TableFile,
    target: str,
    positive: str | None,
    skip_malformed: bool,
    as_json: bool,
    groups: str | None = None,
    besides: Collection[str] = (),
) -> HeldOutRows:
    """The same of a file that is open already, with other columns of it."""
    encoder = policy.encoder_
    kinds = Kinds.of(encoder)
    grouping = [] if groups is None else [groups]
    more = {name for name in besides if name not in encoder.names}
    kinds = kinds._replace(text=(kinds.text | {target, *grouping, *more}))
    _check_groups(groups, [*encoder.names, target], file.columns)
    with progress(f"reading {file.path.name}", as_json) as report_progress:
        columns = {*encoder.names, target, *grouping, *more}
        piece = file.read(columns, kinds, skip_malformed=skip_malformed, progress=report_progress)
    report_malformed(piece.malformed)
    given = piece.table.column(target)
    labelled = given != ""
    y = as_in_fit(policy, given[labelled], positive)
    number = None if groups is None else row_groups(piece.table.column(groups)[labelled], groups)
    own = {name: piece.table.column(name)[labelled] for name in besides}
    return HeldOutRows(piece.table.select(list(encoder.names))[labelled], y, number, own)


def _check_groups(groups: str | None, used: list[str], columns: Collection[str]) -> None:
    """Refuse groups that are no column, or one that is used for something else."""
    if groups in used:
        rule = "must be another column than the target and the covariates"
        raise InvalidInputError("--groups", rule, groups, "Name the patients or sites.")
    if groups is not None and groups not in columns:
        remedy = choices([groups], columns, "The columns are")
        raise InvalidInputError("--groups", "must name a column", groups, remedy)
