"""`adacos fit`: learn a policy from a table."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import numpy as np
import typer

from adacos.cli.common import (
    Decimal,
    Encoding,
    Json,
    SkipMalformed,
    plain_console,
    print_json,
    progress,
    report_malformed,
    say,
)
from adacos.cli.doubts import check_described, report_doubts, with_classes
from adacos.cli.policy_options import (
    Monotonic,
    effort,
    make_policy,
    read_directions,
    read_protocol,
    read_sequence,
)
from adacos.cli.prices import costs_given, read_prices
from adacos.cli.recall_options import (
    check_recall,
    on_uncertifiable_recall,
    read_recall,
    recall_of_classes,
    refusal_on_command_line,
    without_false_negative,
)
from adacos.cli.table_columns import (
    Categorical,
    Columns,
    Dates,
    Dropped,
    Groups,
    Numeric,
    Weights,
    read_dates,
)
from adacos.cli.training import (
    TrainingRows,
    check_errors,
    check_takes_groups,
    check_takes_weights,
    expected_seconds,
    in_pieces,
    on_workers,
    read_in_pieces,
    read_training_rows,
)
from adacos.cli.workers import DaskTimeout, refuse_timeout_alone
from adacos.exceptions import (
    InvalidInputError,
    NotCertifiableError,
    PositiveClassWarning,
    TableWarning,
)
from adacos.models.progress import listening
from adacos.models.streamed_fits import KEPT_ROWS
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import fit_in_groups
from adacos.policies.recall import Part, hold_out
from adacos.registry import POLICIES
from adacos.tables.description import Description, describe, read_description
from adacos.tables.reading import TableFile
from adacos.tables.writing import check_output, refuse_same_file
from adacos.validation import did_you_mean, listed


def fit(
    data: Annotated[Path, typer.Argument(help="CSV (plain or .gz), .xlsx, Parquet, or a folder.")],
    target: Annotated[str, typer.Option(help="Column with the class, two values or more.")],
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
        float | None, typer.Option(help="Cost of covariates without one in --prices.")
    ] = None,
    false_positive: Annotated[
        float | None, typer.Option(help="Cost of a false alarm: positive is answered, wrongly.")
    ] = None,
    false_negative: Annotated[
        float | None, typer.Option(help="Cost of a missed case: negative is answered, wrongly.")
    ] = None,
    target_recall: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CLASS=]RECALL",
            help="Lowest recall to reach; with --policy adacos, branching, cos and full in place "
            "of a false-negative cost; with three or more classes CLASS=RECALL, repeatable.",
        ),
    ] = None,
    recall_confidence: Annotated[
        float | None,
        typer.Option(
            help="Certify the recall with this confidence; half of the rows are calibration rows."
        ),
    ] = None,
    always_positive: Annotated[
        bool,
        typer.Option(
            "--always-positive",
            help="Where the recall cannot be certified, answer positive for every row.",
        ),
    ] = False,
    largest: Annotated[
        bool,
        typer.Option(
            "--largest",
            help="Where the recall cannot be certified, certify the largest that the rows prove.",
        ),
    ] = False,
    budget: Annotated[
        float | None, typer.Option(help="What a row may pay for covariates at most.")
    ] = None,
    mean_budget: Annotated[
        float | None, typer.Option(help="What rows may pay for covariates on average.")
    ] = None,
    round_cost: Annotated[
        float, typer.Option(min=0, help="Cost of waiting for what is ordered together.")
    ] = 0.0,
    immediate: Annotated[
        list[str] | None,
        typer.Option(help="Covariate whose result is there at once; may be given repeatedly."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            help="Positive class; by default the second in order. It becomes class 1 "
            "with its own name."
        ),
    ] = None,
    drop: Dropped = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    date: Dates = None,
    groups: Groups = None,
    weights: Weights = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            help="Share of the positive class among new rows, such as 0.03, where the table was "
            "drawn by class. Rows are weighted so that it has this share."
        ),
    ] = None,
    monotonic: Monotonic = None,
    policy: Annotated[
        str,
        typer.Option(
            help="adacos, branching, planning, auto, cos or full; protocol; or a baseline such as "
            "dwsm."
        ),
    ] = "adacos",
    protocol: Annotated[
        Path | None,
        typer.Option(
            help="Text or TOML file with the protocol that --policy protocol follows; without it a "
            "fast-and-frugal tree is learned."
        ),
    ] = None,
    sequence: Annotated[
        str | None,
        typer.Option(
            help="How adacos, branching, cos and full order covariates: group-lasso (the default), "
            "forward, or auto for the group lasso unless forward selection costs less in "
            "cross-validation."
        ),
    ] = None,
    nested: Annotated[
        bool,
        typer.Option("--nested", help="Estimate the cost by choosing all again without each fold."),
    ] = False,
    description: Annotated[
        Path | None,
        typer.Option("--describe", help="TOML file with titles, units and names of codes."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Learn from at most this many rows, drawn at random; 0 for all. The default is "
            "all rows for adacos, cos and full, else 200,000.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Dask scheduler whose workers hold the rows, such as tcp://host:8786."),
    ] = None,
    dask_timeout: DaskTimeout = None,
    seed: Annotated[int, typer.Option(help="Seed of the folds and of that draw.")] = 0,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    as_json: Json = False,
) -> None:
    """Learn a policy from a table.

    A policy says which covariate to acquire next, and when to stop.

    Both errors need a cost, by an option or in the table `errors` of a TOML
    price list. With --policy adacos, branching, cos and full --target-recall
    takes the place of the false-negative cost. Other policies acquire by both
    costs; the recall decides their answers, on half of the rows, which are
    kept for calibration.

    An empty cell is a missing value, and so are NA, N/A, NaN, null and ? in
    upper or lower case, in CSV and in Parquet. The word none is a category. A column
    of true and false is read as 1 and 0. Digits with zeros in front, such as
    00501, are codes: categories, unless --numeric names the column.

    Example:

        adacos fit patients.csv --target diabetes --prices prices.toml
            --false-positive 100 --false-negative 1000 --out model.adacos
    """
    from adacos.persistence import save

    started = time.perf_counter()
    inputs = [data, *map(Path, prices or []), *([protocol] if protocol else [])]
    _check_options(policy, out, inputs)
    written = read_protocol(policy, protocol)
    refuse_timeout_alone(dask, dask_timeout)
    sequence = read_sequence(policy, sequence)
    recall = read_recall(target_recall or [])
    without = without_false_negative(policy, recall, recall_confidence, mean_budget)
    check_recall(recall, recall_confidence, false_negative, nested, replaces=without is None)
    on_uncertifiable = on_uncertifiable_recall(always_positive, largest, recall_confidence)
    said = None if description is None else read_description(description)
    file = TableFile(data, encoding=encoding, decimal=decimal)
    columns = Columns(
        target,
        positive,
        drop or [],
        categorical or [],
        numeric or [],
        groups,
        weights,
        read_dates(date or [], file.columns),
    ).of(file)
    covariates = list(columns.covariates)
    costs = costs_given(
        read_prices(prices or [], panel or [], covariates, decimal, columns.others(file), target),
        covariates,
        default_price,
        {"false_positive": false_positive, "false_negative": false_negative},
        without,
        (round_cost, immediate or []),
    )
    with progress(f"reading {data.name}", as_json) as report:
        given = (recall_confidence, mean_budget, max_rows, prevalence)
        asks_more = nested or skip_malformed or bool(numeric or columns.of_rows or date)
        asks_more = asks_more or any(value is not None for value in given)
        if not asks_more and in_pieces(file, policy):
            rows = read_in_pieces(data, columns, seed)
        else:
            many = POLICIES[policy].load().takes_many_classes
            rows = read_training_rows(file, columns, skip_malformed, report, many)
        rows = rows if dask is None else on_workers(rows, dask, dask_timeout)
    check_errors(costs, rows, target)
    report_malformed(rows.malformed)
    if said is not None:
        said = with_classes(said, rows)
        check_described(said, covariates, rows, positive)
    if rows.class_names and not (said and said.classes):
        said = replace(said or Description(), classes=rows.class_names)
    rows = rows.drawn(rows.most(policy) if max_rows is None else max_rows, seed)
    rows = rows.counted(prevalence)
    seconds = expected_seconds(rows.table, rows.n_codes(policy), len(np.unique(rows.y)))
    seconds *= effort(policy, sequence)
    estimator = make_policy(
        policy,
        costs,
        random_state=seed,
        sequence=sequence,
        budget=budget,
        mean_budget=mean_budget,
        monotonic_cst=read_directions(monotonic, covariates),
        target_recall=recall_of_classes(recall, rows.y, rows.class_names),
        recall_confidence=recall_confidence,
        on_uncertifiable=on_uncertifiable,
        protocol=None if written is None else written.with_classes(rows.class_names),
    )
    check_takes_groups(estimator, policy, groups)
    check_takes_weights(estimator, policy, columns, prevalence)
    warnings = report_doubts(estimator, rows, seconds)
    for doubt in _learn(estimator, rows, seconds, nested, as_json):
        say(f"warning: {doubt}", err=True)
        warnings.append(doubt)
    estimator.wrapped.keep_rows(KEPT_ROWS)
    if said is not None:
        describe(estimator, said)
    save(estimator, out)
    _report(estimator, rows, out, warnings, time.perf_counter() - started, as_json)


def _check_options(policy: str, out: Path, inputs: list[Path]) -> None:
    if policy not in POLICIES:
        rule = f"must be one of {', '.join(POLICIES)}"
        raise InvalidInputError("--policy", rule, policy, did_you_mean([policy], POLICIES).strip())
    check_output(out, "--out")
    refuse_same_file(out, inputs)


def _learn(
    estimator: BasePolicy, rows: TrainingRows, seconds: float, nested: bool, as_json: bool
) -> list[str]:
    """Fit, and estimate what the policy costs on rows it was not fitted on; doubts about it."""
    from adacos.policies.alone import order_doubt
    from adacos.policies.auto import COMPARISON
    from adacos.policies.estimates import estimate_costs

    chooses = estimator.chooses
    about = f" (about {seconds:.0f} s)" if seconds > 2 else ""
    n, p = rows.n_rows, rows.table.shape[1]
    what = f"{'comparing policies on' if chooses else 'fitting'} {n:,} rows, {p} covariates{about}"
    counted = "policies done" if chooses else "sets"
    with warnings.catch_warnings(), progress(what, as_json, counted) as report:
        # Told with the results, together with the option that chooses.
        warnings.simplefilter("ignore", PositiveClassWarning)
        # Told before the fit.
        warnings.simplefilter("ignore", TableWarning)

        def heard(what: str, done: int, whole: int) -> None:
            if what == COMPARISON:
                report(done, done / whole)
            elif not chooses:
                # Later sets are larger: measured at 12 and 22 covariates, time grows with this
                # power.
                report(done, (done / whole) ** 1.5)

        try:
            with listening(heard):
                X, y = rows.whole or (rows.table, rows.y)
                fit_in_groups(estimator, X, y, rows.groups, rows.weights)
        except NotCertifiableError as error:
            raise refusal_on_command_line(error) from error
        learned = Part(rows.table, rows.y, rows.groups)
        aim = estimator.recall_aim
        if aim.recall_confidence is not None:
            share, seed = aim.calibration_fraction, estimator.random_state
            learned, _ = hold_out(estimator, *learned, share, seed)
        doubt = estimate_costs(
            estimator,
            learned.X,
            learned.y,
            nested=nested,
            groups=learned.groups,
            sample_weight=rows.weights,
        )
        alone = order_doubt(estimator, learned.X, learned.y, learned.groups)
        return [one for one in (doubt, alone) if one is not None]


def _report(
    estimator: BasePolicy,
    rows: TrainingRows,
    out: Path,
    warnings: list[str],
    seconds: float,
    as_json: bool,
) -> None:
    from adacos.card import model_card
    from adacos.cli.info import show
    from adacos.persistence import file_sha256

    n_calibration = 0
    if estimator.training_rows_ is not None and rows.whole is None:
        n_calibration = len(rows.y) - len(estimator.training_rows_.digests)
    digest = file_sha256(out)
    if as_json:
        counts = {
            "rows": rows.n_rows,
            "rows_read": rows.n_read,
            "malformed_rows": len(rows.malformed),
            "calibration_rows": n_calibration,
            "missing": rows.missing,
            "warnings": warnings,
            "sha256": digest,
            "seconds": round(seconds, 2),
        }
        print_json({"model": str(out), **counts, "card": model_card(estimator)})
        return
    console = plain_console()
    show(estimator, console, n_calibration)
    if estimator.unwrapped is not estimator:
        console.print(
            f"{type(estimator.unwrapped).__name__} learned from {rows.n_rows - n_calibration:,} "
            "rows and acquires by these costs; for the recall its answers are decided on "
            f"{n_calibration:,} calibration rows."
        )
    if rows.y.dtype.kind == "U" and len(np.unique(rows.y)) == 2:
        other, positive = np.unique(rows.y).tolist()
        instead = f"(for the other --positive {quote(other)})"
        console.print(f"Positive class: {positive}, the second in order {instead}")
    if rows.missing:
        shares = ", ".join(f"{listed([name])} {share:.1%}" for name, share in rows.missing.items())
        console.print(f"Missing values: {shares}")
    read = f"{rows.n_rows:,} of {rows.n_read:,} rows read"
    console.print(f"{out} written: {read}, in {seconds:.1f} s")
    console.print(f"SHA-256 {digest}", soft_wrap=True)
    console.print(f"Try it: adacos ask {quote(str(out))}")
