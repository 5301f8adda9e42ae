"""What to acquire next for every row of a file: orders, to be answered by new values in it.

A cell without a value has not been acquired yet, the word `UNAVAILABLE` says that it cannot be, and
a covariate without a column has been acquired for nobody. So the same file, with results filled in,
is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.batch.files import (
    check_key,
    check_names,
    check_output_table,
    in_words,
    kept_columns,
    probabilities,
    read_pieces,
    refuse_no_rows,
    row_keys,
    table_writer,
    values_there,
)
from adacos.consultation.next_steps import NextSteps
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.policies.partitions import acquired_texts
from adacos.tables.description import Description, description_of
from adacos.tables.pieces import Malformed, Piece
from adacos.tables.reading import CHUNK_ROWS, TableFile
from adacos.tables.unusual import unusual
from adacos.tables.writing import whole_or_absent
from adacos.typing import Floats

RESULTS = (
    "next", "next_cost", "label", "class", "probability", "paid", "expected_cost", "unusual",
)  # fmt: skip


@dataclass(frozen=True)
class OrderSummary:
    """What is to be ordered.

    Attributes
    ----------
    rows_read : number of rows in the source.
    rows : number of rows written: those read without the malformed ones.
    malformed : rows that could not be read.
    labels : how often each label was given to a row that stops.
    orders : how often each covariate is to be acquired next.
    cost : what these orders cost.
    absent : covariates that the source has no column of: acquired for nobody so far.
    unusual_rows : number of rows with a value unlike those of the training rows.
    """

    rows_read: int
    rows: int
    malformed: list[Malformed]
    labels: dict[str, int]
    orders: dict[str, int]
    cost: float
    absent: tuple[str, ...]
    unusual_rows: int


def next_file(
    policy: BasePolicy,
    source: str | Path,
    destination: str | Path,
    *,
    known: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    paid: str | None = None,
    key: str | None = None,
    skip_malformed: bool = False,
    flag_unusual: bool = False,
    escape_formulas: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    encoding: str = "utf-8-sig",
    decimal: str = ".",
    progress: Callable[[int, float], None] = lambda rows, share: None,
) -> OrderSummary:
    """Write what to acquire next for every row of a CSV or Parquet file into another one.

    The output has the columns of `keep`, then next (covariates separated by semicolons, none where
    a row stops), next_cost, label and class (text, where a row stops), probability as `score_file`
    has it, paid, and expected_cost, the expected total cost of stopping now.

    Parameters
    ----------
    policy : a fitted policy.
    source, destination : two files; the ending says of which kind.
    known : covariates that cost nothing in every row that has a value.
    keep : columns to copy; by default all that are no covariates.
    paid : column with what a row has paid so far; where it is empty, and without it, this follows
        from the covariate costs.
    key : column with what each row is known by, see `score_file`.
    skip_malformed, flag_unusual, escape_formulas, chunk_rows, encoding, decimal, progress : as for
        `score_file`.
    """
    names = policy.encoder_.names
    check_names("known", known, names, "must name covariates of the model")
    file = TableFile(source, encoding=encoding, decimal=decimal)
    absent = file.absent(names)
    if paid is not None:
        check_names("paid", [paid], file.columns, "must name a column of the input")
        if paid in names:
            rule, remedy = "must not be a covariate", "Name the column of what a row has paid."
            raise InvalidInputError("paid", rule, paid, remedy)
    check_key(key, file.columns, names)
    if keep is None:
        keep = [name for name in file.columns if name not in (*names, paid)]
    check_names("keep", keep, file.columns, "must name columns of the input")
    check_output_table(destination, source, keep, RESULTS, escape_formulas)
    tally, said = _OrderTally(), description_of(policy)
    numbers, texts = ([] if paid is None else [paid]), ([] if key is None else [key])
    with (
        whole_or_absent(destination) as temporary,
        table_writer(destination, temporary, escape_formulas) as write,
    ):
        for piece in read_pieces(
            file, policy, [*keep, *texts], skip_malformed, chunk_rows, tally.malformed, numbers
        ):
            keys = row_keys(piece, key, tally.rows)
            steps = _steps(policy, piece, known, paid, keys)
            flags = unusual(policy.encoder_, piece.table.select(list(names)), said)
            columns = {
                **kept_columns(piece, keep),
                **_columns(steps, said, policy.classes_.tolist()),
                **({"unusual": in_words(flags, names)} if flag_unusual else {}),
            }
            write(columns)
            tally.add(steps, flags)
            progress(tally.rows, file.share_read)
        refuse_no_rows(file, tally.rows)
    return tally.summary(absent)


@dataclass
class _OrderTally:
    """What has been asked for so far."""

    rows: int = 0
    unusual_rows: int = 0
    cost: float = 0.0
    malformed: list[Malformed] = field(default_factory=list)
    labels: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)

    def add(self, steps: NextSteps, flags: NDArray[np.int8]) -> None:
        self.rows += len(steps)
        self.unusual_rows += int((flags > 0).any(axis=1).sum())
        self.cost += float(steps.cost.sum())
        self.labels.update(str(label) for label in steps.label[steps.stops].tolist())
        counts = np.bincount(steps.order[steps.order >= 0], minlength=len(steps.names))
        self.orders.update(dict(zip(steps.names, counts.tolist(), strict=True)))

    def summary(self, absent: tuple[str, ...]) -> OrderSummary:
        return OrderSummary(
            rows_read=self.rows + len(self.malformed),
            rows=self.rows,
            malformed=self.malformed,
            labels=dict(self.labels),
            orders={name: count for name, count in self.orders.items() if count},
            cost=self.cost,
            absent=absent,
            unusual_rows=self.unusual_rows,
        )


def _steps(
    policy: BasePolicy,
    piece: Piece,
    known: Sequence[str],
    paid: str | None,
    keys: Sequence[Hashable],
) -> NextSteps:
    """What comes next for the rows of a piece."""
    names = policy.encoder_.names
    free = values_there(policy, piece, known)
    unavailable = np.zeros_like(free)
    for name, mask in piece.unavailable.items():
        unavailable[:, names.index(name)] = mask
    ask = partial(
        policy.next,
        piece.table.select(list(names)),
        known=free,
        unavailable=unavailable,
        keys=keys,
    )
    if paid is None:
        return ask()
    amounts = piece.table.column(paid)
    _check_paid(paid, piece, amounts)
    if np.isnan(amounts).any():
        amounts = np.where(np.isnan(amounts), ask().paid, amounts)
    return ask(paid=amounts)


def _check_paid(paid: str, piece: Piece, amounts: Floats) -> None:
    negative = np.flatnonzero(amounts < 0)
    if len(negative):
        raise InvalidInputError(
            f"column {paid!r}",
            "must hold what each row has paid, 0 or more",
            f"{amounts[negative[0]]:g} on line {piece.lines[negative[0]]}",
            "Correct it, or leave the cell empty for what the covariate costs say.",
        )


def _columns(steps: NextSteps, said: Description, classes: Sequence[Any]) -> dict[str, list[Any]]:
    # Text, so that a piece in which nobody stops has columns of the same kind.
    label, named = (
        np.where(steps.stops, texts, "").tolist()
        for texts in (
            steps.label.astype(np.str_),
            [said.class_name(one) for one in steps.label.tolist()],
        )
    )
    return {
        "next": acquired_texts(steps),
        "next_cost": steps.cost.tolist(),
        "label": label,
        **({"class": named} if said.classes else {}),
        **probabilities(steps.probability, classes),
        "paid": steps.paid.tolist(),
        "expected_cost": steps.expected_cost.tolist(),
    }
