"""`adacos audit`: who is asked more, and who is missed."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    HeldOutGroups,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    pairs,
    print_json,
    progress,
    say,
)
from adacos.exceptions import InvalidInputError
from adacos.tables.cells import number
from adacos.tables.description import description_of
from adacos.validation import choices, listed

Compared = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column whose values are compared, such as sex; repeatable. It need not be a "
        "covariate.",
    ),
]
Bands = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=CUT,CUT",
        help="Bands of a --group of numbers: Age=40,60 is below 40, 40 to below 60, and 60 or "
        "more.",
    ),
]
Cross = Annotated[bool, typer.Option("--cross", help="Compare the columns of --group crossed.")]
Shown = Annotated[
    float | None,
    typer.Option(
        help="Recall to be shown in each group; without it what the model was certified for, "
        "or its target."
    ),
]
Together = Annotated[
    float, typer.Option(help="Confidence of all intervals together, between 0 and 1.")
]


def audit(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    group: Compared = None,
    bands: Bands = None,
    cross: Cross = False,
    recall: Shown = None,
    confidence: Together = 0.95,
    plot: Annotated[Path | None, typer.Option(help="PNG, PDF or SVG file to draw into.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    groups: HeldOutGroups = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Show who is asked more, and who is missed.

    Costs, recall and burden of each group of rows, with intervals that
    hold together. The rows should not have been used for fitting.

    Example:

        adacos audit model.adacos --data held_out.csv --target y --group sex \\
            --group Age --bands Age=40,60
    """
    from adacos.cli.held_out import held_out_rows
    from adacos.cli.tradeoff import check_plot
    from adacos.document.style import check_matplotlib
    from adacos.policies.audit_figures import audit_file
    from adacos.policies.auditing import audit as audit_of
    from adacos.tables.reading import TableFile
    from adacos.tables.writing import write_whole

    if plot is not None:
        check_plot(plot, [model, data])
        check_matplotlib()
    policy = load_policy(model, expect_sha256)
    file = TableFile(data, encoding=encoding, decimal=decimal)
    names = check_columns(group, target, file.columns)
    cuts = read_bands(bands or [], names)
    held = held_out_rows(
        policy, file, target, positive, skip_malformed, as_json, groups, besides=names
    )
    by = {name: _banded(name, held.columns[name], cuts.get(name), decimal) for name in names}
    with progress("walking the rows", as_json):
        found = audit_of(
            policy, held.table, held.y, by,
            cross=cross, recall=recall, groups=held.groups, confidence=confidence,
        )  # fmt: skip
    if plot is not None:
        currency = description_of(policy).currency or ""
        write_whole(plot, audit_file(found, currency, plot.suffix[1:].lower()))
    if as_json:
        print_json(found.to_dict())
        return
    say(str(found))
    if plot is not None:
        say(f"{plot} written")


def check_columns(group: list[str] | None, target: str, columns: Collection[str]) -> list[str]:
    """The columns of --group, of which there must be one."""
    from adacos.cli.table_columns import split_names

    names = list(dict.fromkeys(split_names(group or [], columns)))
    if not names:
        raise InvalidInputError(
            "--group",
            "must name a column whose values are compared",
            "",
            "For example --group sex. --groups is for rows that belong together, such as visits.",
        )
    unknown = [name for name in names if name not in columns]
    if unknown:
        remedy = choices(unknown, columns, "The columns are")
        raise InvalidInputError("--group", "must name columns", listed(unknown), remedy)
    if target in names:
        rule = "must be another column than the target"
        raise InvalidInputError("--group", rule, target, "Leave it out.")
    return names


def read_bands(items: list[str], names: list[str]) -> dict[str, list[float]]:
    """COLUMN=CUT,CUT as given with --bands, by column."""
    cuts = {}
    for name, text in pairs(items, names, "--bands", f"--bands {names[0]}=40,60").items():
        if name not in names:
            rule, remedy = "must name a column of --group", choices([name], names, "They are")
            raise InvalidInputError("--bands", rule, name, remedy)
        try:
            own = [float(cut) for cut in text.split(",")]
        except ValueError:
            own = []
        if not own or not np.all(np.isfinite(own)) or np.any(np.diff(own) <= 0):
            rule = f"{name}: must be numbers that rise, with commas between"
            raise InvalidInputError("--bands", rule, text, f"For example {name}=40,60.")
        cuts[name] = own
    return cuts


def _banded(
    name: str, values: NDArray[Any], cuts: list[float] | None, decimal: str
) -> NDArray[Any]:
    """The bands of a column of numbers; the column itself without cuts."""
    from adacos.policies.audit_groups import bands_of

    if cuts is None:
        return values
    if values.dtype.kind == "U":
        numbers = [math.nan if text == "" else number(text, decimal) for text in values.tolist()]
        if None in numbers:
            wrong = str(values[numbers.index(None)])
            rule = f"{name}: must be a column of numbers"
            raise InvalidInputError("--bands", rule, wrong, "Leave --bands out.")
        values = np.array(numbers, dtype=np.float64)
    return bands_of(values, cuts)
