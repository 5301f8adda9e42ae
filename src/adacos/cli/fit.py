"""`adacos fit`: learn a policy from a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from adacos.cli.common import Encoding, Json, SkipMalformed, print_json, progress, tell_malformed
from adacos.exceptions import InvalidInputError
from adacos.files import Piece, TableFile
from adacos.policies.sequence_policy import SequencePolicy

POLICIES = ("adacos", "cos", "full")


def fit(
    data: Annotated[Path, typer.Argument(help="CSV (plain or .gz) or Parquet file.")],
    target: Annotated[str, typer.Option(help="Column with the class, two values.")],
    out: Annotated[Path, typer.Option(help="Model file to write.")] = Path("model.adacos"),
    prices: Annotated[
        list[str] | None,
        typer.Option(help="TOML or CSV price list, or NAME=COST; may be given repeatedly."),
    ] = None,
    panel: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SHARED:MEMBER,MEMBER: covariates that share a cost."),
    ] = None,
    default_price: Annotated[
        float | None, typer.Option(help="Cost of covariates that the prices leave out.")
    ] = None,
    false_positive: Annotated[
        float | None, typer.Option(help="Cost of answering positive when it is not.")
    ] = None,
    false_negative: Annotated[
        float | None, typer.Option(help="Cost of answering negative when it is positive.")
    ] = None,
    target_recall: Annotated[
        float | None, typer.Option(help="Least recall, in place of a false-negative cost.")
    ] = None,
    recall_confidence: Annotated[
        float | None, typer.Option(help="Certify the recall with this confidence.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(help="Positive class; by default the second in order. Becomes class 1."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as an identifier.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Column of codes to treat as categories.")
    ] = None,
    policy: Annotated[str, typer.Option(help="adacos, cos or full.")] = "adacos",
    max_rows: Annotated[
        int,
        typer.Option(
            min=0,
            help="Learn from at most so many rows, drawn at random; 0 for all. Memory grows "
            "by 7 KB a row at 20 covariates.",
        ),
    ] = 200_000,
    seed: Annotated[int, typer.Option(help="Seed of the folds and of that draw.")] = 0,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Learn which covariates to acquire, and when to stop, from a table.

    Example:

        adacos fit patients.csv --target diabetes --prices prices.toml
            --false-positive 100 --false-negative 1000 --out model.adacos
    """
    from adacos.cli.info import card
    from adacos.persistence import save

    started = time.perf_counter()
    if policy not in POLICIES:
        raise InvalidInputError("policy", f"must be one of {', '.join(POLICIES)}", policy, "")
    if not out.parent.is_dir():
        raise InvalidInputError("out", "its folder must exist", str(out), "Create it first.")
    piece, y = _read(data, target, drop or [], categorical or [], skip_malformed, encoding, as_json)
    labels = classes(y) if positive is None else against(y, positive)
    found = np.unique(labels)
    if len(found) != 2:
        raise InvalidInputError(
            f"column {target!r}",
            "must hold two classes",
            f"{len(found)}: {', '.join(map(str, found[:5]))}",
            "Name one with --positive to set it against the others.",
        )
    table = piece.table.select([name for name in piece.table.columns if name != target])
    n_read = len(table)
    if 0 < max_rows < n_read:
        drawn = np.sort(np.random.default_rng(seed).choice(n_read, max_rows, replace=False))
        table, labels = table[drawn], labels[drawn]
        typer.echo(
            f"learning from {max_rows:,} of {n_read:,} rows, drawn at random (--max-rows)", err=True
        )
    estimator = _estimator(
        policy,
        table.columns,
        prices or [],
        panel or [],
        default_price,
        false_positive,
        false_negative,
        target_recall,
        recall_confidence,
        seed,
    )
    with progress(f"fitting {len(table):,} rows, {table.shape[1]} covariates", as_json):
        estimator.fit(table, labels)
    save(estimator, out)
    seconds = time.perf_counter() - started
    tell_malformed(piece.malformed)
    if as_json:
        counts = {"rows": len(table), "rows_read": n_read, "malformed_rows": len(piece.malformed)}
        print_json(
            {"model": str(out), **counts, "seconds": round(seconds, 2), "card": card(estimator)}
        )
    else:
        _show(estimator, out, len(table), seconds)


def _read(
    data: Path,
    target: str,
    drop: list[str],
    categorical: list[str],
    skip_malformed: bool,
    encoding: str,
    quiet: bool,
) -> tuple[Piece, NDArray[Any]]:
    file = TableFile(data, encoding=encoding)
    for parameter, given in (("target", [target]), ("drop", drop), ("categorical", categorical)):
        unknown = [name for name in given if name not in file.columns]
        if unknown:
            raise InvalidInputError(
                parameter, "must name columns", unknown, f"They are {', '.join(file.columns)}."
            )
    names = [name for name in file.columns if name not in drop]
    if len(names) < 2:
        raise InvalidInputError("data", "needs a covariate beside the target", names, "Add one.")
    with progress(f"reading {data.name}", quiet):
        text = file.text_columns() | {target, *categorical}
        piece = file.read(names, text, skip_malformed=skip_malformed)
    y = piece.table.column(target)
    unlabelled = np.flatnonzero(y == "")
    if len(unlabelled) and not skip_malformed:
        raise InvalidInputError(
            f"column {target!r}",
            "must hold a class in every row",
            f"nothing on line {piece.lines[unlabelled[0]]} (and {len(unlabelled) - 1} more)",
            "Fill it in, or leave such rows out with --skip-malformed.",
        )
    return piece._replace(table=piece.table[y != ""]), y[y != ""]


def classes(y: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers where all classes are, else as they stand."""
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        return y
    whole = np.all(numbers == np.round(numbers))
    return numbers.astype(np.int64) if whole else numbers


def against(y: NDArray[Any], positive: str) -> NDArray[Any]:
    """1 for the positive class, 0 for any other."""
    if positive not in y:
        raise InvalidInputError(
            "positive", "must be a value of the target", positive, f"It has {np.unique(y)[:5]}."
        )
    return np.asarray(y == positive, dtype=np.int64)


def _estimator(
    policy: str,
    columns: list[str],
    prices: list[str],
    panels: list[str],
    default_price: float | None,
    false_positive: float | None,
    false_negative: float | None,
    target_recall: float | None,
    recall_confidence: float | None,
    seed: int,
) -> SequencePolicy:
    from adacos.cli.prices import read_prices
    from adacos.costs import Costs
    from adacos.policies import AdaCOSClassifier, COSClassifier, FullModelClassifier

    listed = read_prices(prices, panels)
    if default_price is not None:
        for name in columns:
            listed.prices.setdefault(name, default_price)
    if target_recall is not None:
        listed.errors.pop("false_negative", None)
    costs = Costs(
        listed.prices or None,
        false_positive=listed.errors.get("false_positive", 1.0)
        if false_positive is None
        else false_positive,
        false_negative=listed.errors.get("false_negative")
        if false_negative is None
        else false_negative,
        panels=listed.panels or None,
    )
    kinds = dict(zip(POLICIES, (AdaCOSClassifier, COSClassifier, FullModelClassifier), strict=True))
    return kinds[policy](
        costs,
        random_state=seed,
        target_recall=target_recall,
        recall_confidence=recall_confidence,
    )


def _show(policy: SequencePolicy, out: Path, rows: int, seconds: float) -> None:
    from rich.console import Console

    from adacos.cli.info import show

    console = Console()
    show(policy, console)
    console.print(f"{out} written: {rows:,} rows in {seconds:.1f} s", highlight=False)
    console.print(f"Try it: adacos ask {out}", highlight=False)
