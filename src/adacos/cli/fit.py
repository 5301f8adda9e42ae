"""`adacos fit`: learn a policy from a table."""

from __future__ import annotations

import math
import time
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from adacos.cli.common import (
    Encoding,
    Json,
    SkipMalformed,
    plain_console,
    print_json,
    progress,
    tell_malformed,
)
from adacos.cli.prices import PriceList, read_prices
from adacos.costs import Costs
from adacos.exceptions import InvalidInputError, NotCertifiableError
from adacos.policies.base import BasePolicy
from adacos.policies.recall import set_aside
from adacos.registry import POLICIES
from adacos.tables.columns import ColumnTable
from adacos.tables.description import check_description, describe, read_description
from adacos.tables.reading import Kinds, Piece, TableFile, choices, listed


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
        float | None,
        typer.Option(
            help="Certify the recall with this confidence; half of the rows are held back for it."
        ),
    ] = None,
    always_positive: Annotated[
        bool,
        typer.Option(
            "--always-positive",
            help="Where the recall cannot be certified, answer positive for every row.",
        ),
    ] = False,
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
    policy: Annotated[
        str, typer.Option(help="adacos, cos or full; or a rival such as dwsm.")
    ] = "adacos",
    description: Annotated[
        Path | None,
        typer.Option("--describe", help="TOML file with titles, units and names of codes."),
    ] = None,
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

    Both errors need a cost, by an option or in the table `errors` of a TOML
    price list; --target-recall takes the place of the false-negative cost.

    In a CSV file an empty cell is a missing value, and so are NA, N/A, NaN,
    null and ? in upper or lower case. The word none is a category. A column
    of true and false is read as 1 and 0.

    Example:

        adacos fit patients.csv --target diabetes --prices prices.toml
            --false-positive 100 --false-negative 1000 --out model.adacos
    """
    from adacos.card import estimate_leave_out_cost, model_card
    from adacos.cli.info import show
    from adacos.persistence import save

    started = time.perf_counter()
    if policy not in POLICIES:
        raise InvalidInputError("--policy", f"must be one of {', '.join(POLICIES)}", policy, "")
    if not out.parent.is_dir():
        raise InvalidInputError("--out", "its folder must exist", str(out), "Create it first.")
    _check_recall(target_recall, recall_confidence, always_positive)
    said = None if description is None else read_description(description)
    file = TableFile(data, encoding=encoding)
    covariates = _covariates(file, target, drop or [], categorical or [])
    costs = _costs(
        read_prices(prices or [], panel or [], covariates),
        covariates,
        default_price,
        {"false_positive": false_positive, "false_negative": false_negative},
        target_recall,
    )
    with progress(f"reading {data.name}", as_json):
        piece, y = _read(file, [*covariates, target], target, categorical or [], skip_malformed)
    labels = classes(y) if positive is None else against(y, positive)
    found = np.unique(labels)
    if len(found) != 2:
        raise InvalidInputError(
            f"column {target!r}",
            "must hold two classes",
            f"{len(found)}: {listed(found[:5])}",
            "Name one with --positive to set it against the others.",
        )
    if said is not None:
        check_description(said, covariates, found.tolist())
    table = piece.table.select(covariates)
    n_read, missing = len(table), missing_shares(table)
    if 0 < max_rows < n_read:
        drawn = np.sort(np.random.default_rng(seed).choice(n_read, max_rows, replace=False))
        table, labels = table[drawn], labels[drawn]
        typer.echo(
            f"learning from {max_rows:,} of {n_read:,} rows, drawn at random (--max-rows)", err=True
        )
    estimator = _estimator(
        policy,
        costs,
        random_state=seed,
        target_recall=target_recall,
        recall_confidence=recall_confidence,
        on_uncertifiable="always_positive" if always_positive else "error",
    )
    with progress(f"fitting {len(table):,} rows, {table.shape[1]} covariates", as_json):
        try:
            estimator.fit(table, labels)
        except NotCertifiableError as error:
            raise _not_certifiable(error) from error
        fraction = estimator.calibration_fraction
        learned = table
        if recall_confidence is not None:
            learned, *_ = set_aside(estimator, table, labels, fraction, seed)
        estimate_leave_out_cost(estimator, learned)
    if said is not None:
        describe(estimator, said)
    save(estimator, out)
    seconds = time.perf_counter() - started
    tell_malformed(piece.malformed)
    held_back = len(table) - len(estimator.model_.y) if hasattr(estimator, "sets_") else 0
    if as_json:
        counts = {
            "rows": len(table),
            "rows_read": n_read,
            "malformed_rows": len(piece.malformed),
            "calibration_rows": held_back,
            "missing": missing,
        }
        print_json(
            {
                "model": str(out),
                **counts,
                "seconds": round(seconds, 2),
                "card": model_card(estimator),
            }
        )
        return
    console = plain_console()
    show(estimator, console, held_back)
    if missing:
        shares = ", ".join(f"{listed([name])} {share:.1%}" for name, share in missing.items())
        console.print(f"Missing values: {shares}")
    console.print(f"{out} written: {len(table):,} rows in {seconds:.1f} s")
    console.print(f"Try it: adacos ask {quote(str(out))}")


def _covariates(file: TableFile, target: str, drop: list[str], categorical: list[str]) -> list[str]:
    """All columns but the target and those left out."""
    named = (("--target", [target]), ("--drop", drop), ("--categorical", categorical))
    for parameter, given in named:
        unknown = [name for name in given if name not in file.columns]
        if unknown:
            raise InvalidInputError(
                parameter,
                "must name columns",
                listed(unknown),
                choices(unknown, file.columns, "They are"),
            )
    if target in drop:
        raise InvalidInputError("--drop", "must leave the target", target, "Remove it.")
    found = [name for name in file.columns if name not in (*drop, target)]
    if not found:
        raise InvalidInputError("data", "needs a covariate beside the target", target, "Add one.")
    return found


def _check_recall(
    target_recall: float | None, recall_confidence: float | None, always_positive: bool
) -> None:
    if recall_confidence is not None and target_recall is None:
        raise InvalidInputError(
            "--recall-confidence",
            "needs the recall that is to be certified",
            recall_confidence,
            "For example --target-recall 0.95.",
        )
    if always_positive and recall_confidence is None:
        raise InvalidInputError(
            "--always-positive",
            "is for a recall that cannot be certified",
            "no confidence",
            "Add --recall-confidence, for example 0.9.",
        )


def _costs(
    listed_prices: PriceList,
    covariates: list[str],
    default_price: float | None,
    given: dict[str, float | None],
    target_recall: float | None,
) -> Costs:
    """Costs of covariates and of errors, none of which is guessed; an option beats the file."""
    prices, panels, errors = listed_prices
    unpriced = [name for name in covariates if name not in prices]
    if default_price is not None:
        prices |= dict.fromkeys(unpriced, default_price)
    elif unpriced:
        raise InvalidInputError(
            "--prices",
            "every column needs a covariate cost",
            f"none for {listed(unpriced)}",
            "Add the costs, set one for all with --default-price (0 if they are free), or leave "
            "columns out with --drop.",
        )
    errors |= {name: cost for name, cost in given.items() if cost is not None}
    if target_recall is not None and "false_negative" in errors:
        typer.echo(
            f"The false-negative cost of {errors.pop('false_negative'):g} is not used: "
            "--target-recall replaces it by the one that the recall implies.",
            err=True,
        )
    wanted = ["false_positive"] + ["false_negative"] * (target_recall is None)
    absent = [name for name in wanted if name not in errors]
    if absent:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in absent)
        remedy = f"Give {options}, or {' and '.join(absent)} under [errors] in a TOML price list."
        if "false_negative" in absent:
            remedy += (
                " Where nobody can say what a missed positive costs, --target-recall takes the "
                "place of the false-negative cost."
            )
        rule = "what a wrong answer costs must be said, in the unit of the prices"
        raise InvalidInputError(options, rule, "nothing", remedy)
    return Costs(prices, **errors, panels=panels or None)


def _read(
    file: TableFile, names: list[str], target: str, categorical: list[str], skip_malformed: bool
) -> tuple[Piece, NDArray[Any]]:
    """The rows with a class, and their classes as text."""
    kinds = file.kinds()
    as_text = {target, *categorical}
    kinds = Kinds(kinds.text | as_text, kinds.truth - as_text)
    piece = file.read(names, kinds, skip_malformed=skip_malformed)
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


def missing_shares(table: ColumnTable) -> dict[str, float]:
    """Share of missing values of the columns that have any."""
    found = {}
    for name in table.columns:
        values = table.column(name)
        share = float(np.mean(values == "" if values.dtype.kind == "U" else np.isnan(values)))
        if share > 0:
            found[name] = share
    return found


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
    found = np.unique(y).tolist()
    if positive not in found:
        raise InvalidInputError(
            "--positive",
            "must be a value of the target",
            positive,
            choices([positive], found[:20], "It has"),
        )
    return np.asarray(y == positive, dtype=np.int64)


def _estimator(policy: str, costs: Costs, **parameters: Any) -> BasePolicy:
    """The unfitted policy with those of the parameters that it has."""
    cls = POLICIES[policy].load()
    known = cls(costs=costs).get_params(deep=False)
    if parameters["target_recall"] is not None and "target_recall" not in known:
        raise InvalidInputError(
            "--target-recall",
            f"{policy} must be able to take it",
            parameters["target_recall"],
            "Give --false-negative instead, or choose another --policy.",
        )
    chosen: BasePolicy = cls(
        costs=costs, **{name: value for name, value in parameters.items() if name in known}
    )
    return chosen


def _not_certifiable(error: NotCertifiableError) -> InvalidInputError:
    """The same error with what the command line offers against it."""
    # Rounded down, so that what is offered can be certified.
    certifiable = math.floor(error.certifiable * 1e4) / 1e4
    return InvalidInputError(
        "--target-recall",
        error.rule,
        error.value,
        f"A recall of {certifiable:g} could be; for the one asked for at least {error.needed} "
        "positive rows must be held back, and half of the rows are. Add rows, or answer positive "
        "for every row with --always-positive. Asking the same rows again for a lower recall is "
        "another attempt, and the confidence counts attempts, refused ones included.",
    )
