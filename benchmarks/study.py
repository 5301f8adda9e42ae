"""The library's quality claims on fresh splits, and beside the authors' code.

    python -m benchmarks.study --reference PATH --data PATH

Five questions: are our total costs those of the authors' code or lower; is AdaCOS below COS on
fresh splits; is `LogisticGAM` as good a probability model as its peers; does Table 1 come out; and
does AdaCOS win on PhysioNet. Nothing here is used to tune the library. It ends with status 1 if a
claim fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from scipy.stats import gmean

from adacos.bench.comparisons import RANDOM, OutcomeIndex, compare_overall
from adacos.bench.configuration import BenchConfig, available_methods
from adacos.bench.names import ADACOS, COS, FULL_MODEL
from adacos.bench.paper import BUNDLED
from adacos.bench.reference import Reference, check_reference, paper_table_1, read_authors_code
from adacos.bench.run import run
from adacos.bench.settings import PAPER_FALSE_POSITIVE, PAPER_SYMMETRIC, asymmetric, symmetric
from adacos.bench.tables import Cell, FoldTable
from adacos.document.style import dataset_title
from benchmarks.peers import GAM, PEERS, register_peers

POLICIES = (ADACOS, COS, FULL_MODEL)
_VIEWS = ("rows", "folds", "splits of these rows")
COSTS = tuple(cost for cost in PAPER_FALSE_POSITIVE if cost >= 10)


@dataclass(frozen=True)
class StudyOptions:
    """What the study runs on.

    Parameters
    ----------
    reference : the authors' code's numbers, see `read_authors_code`; without them the first
        question is skipped.
    data : path of PhysioNet under the name "physionet"; without it the last is skipped.
    splits, seed : fresh random five-fold splits and their seed.
    jobs : number of processes.
    out : folder of the results; a stopped study resumes there.
    """

    reference: Path | None = None
    data: Mapping[str, Path] = field(default_factory=dict)
    splits: int = 10
    seed: int = 0
    jobs: int = 1
    out: Path = Path("study")


@dataclass(frozen=True)
class Answer:
    """A question's tables and whether what is claimed holds.

    None: not decided, either because the question was skipped (`tables` is empty) or because the
    rows do not tell.
    """

    title: str
    holds: bool | None
    tables: tuple[Table, ...]
    note: str = ""

    @property
    def verdict(self) -> str:
        """For the terminal."""
        if self.holds is None:
            return "[yellow]undecided[/]" if self.tables else "[dim]skipped[/]"
        return "[green]holds[/]" if self.holds else "[red]does not hold[/]"


def run_study(options: StudyOptions, *, console: Console | None = None) -> bool:
    """Answer the five questions one after the other; whether no claim failed."""
    console = console or Console()
    check_reference(options.reference)
    held = True
    for question in (_against_authors, _fresh_splits, _log_loss, _symmetric, _physionet):
        answer = question(options)
        console.print(f"\n[bold]{answer.title}[/]: {answer.verdict}", highlight=False)
        for table in answer.tables:
            console.print(table)
        if answer.note:
            console.print(answer.note, highlight=False)
        held = held and answer.holds is not False
    return held


def main(
    reference: Annotated[
        Path | None, typer.Option(help="Table of the authors' code's numbers, or its folder.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="PhysioNet 2012, folder or table.")] = None,
    splits: Annotated[int, typer.Option(help="Fresh random five-fold splits.")] = 10,
    seed: Annotated[int, typer.Option(help="Their seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("study"),
) -> None:
    """Check the library's quality claims on fresh splits and against the authors' code."""
    paths = {} if data is None else {"physionet": data}
    if not run_study(StudyOptions(reference, paths, splits, seed, jobs, out)):
        raise typer.Exit(1)


def _against_authors(options: StudyOptions) -> Answer:
    title = "Total cost on the paper's folds at most 1.02 of the authors' code"
    if options.reference is None:
        return Answer(title, None, (), "Pass the table of the authors' code as reference.")
    authors = read_authors_code(options.reference)
    folds = FoldTable(run(_paper_config(options)).outcomes)
    table = Table("Data set", "FP cost", *(f"{m}, ours" for m in POLICIES), *("authors",) * 3)
    ratios: dict[str, list[float]] = {method: [] for method in POLICIES}
    for dataset in BUNDLED:
        for cost in COSTS:
            ours, theirs = [], []
            for method in POLICIES:
                cell = Cell(dataset, method, "asymmetric", cost)
                ours.append(folds.mean(cell, "total_cost"))
                theirs.append(authors[cell, "total_cost"][0])
                ratios[method].append(ours[-1] / theirs[-1])
            table.add_row(
                dataset_title(dataset), f"{cost:g}", *(f"{v:.2f}" for v in (*ours, *theirs))
            )
    means = {method: float(gmean(values)) for method, values in ratios.items()}
    summary = Table("Ours / authors, geometric mean", *POLICIES)
    summary.add_row("all", *(f"{mean:.4f}" for mean in means.values()))
    n_costs = len(COSTS)
    for k, dataset in enumerate(BUNDLED):
        parts = [gmean(v[k * n_costs : (k + 1) * n_costs]) for v in ratios.values()]
        summary.add_row(dataset_title(dataset), *(f"{part:.4f}" for part in parts))
    return Answer(title, max(means.values()) <= 1.02, (table, summary))


def _fresh_splits(options: StudyOptions) -> Answer:
    title = f"AdaCOS below COS on {options.splits} fresh five-fold splits"
    config = BenchConfig(
        BUNDLED,
        POLICIES,
        tuple(asymmetric(cost) for cost in COSTS),
        options.out,
        paper_folds=False,
        splits=options.splits,
        seed=options.seed,
        jobs=options.jobs,
    )
    index = OutcomeIndex(run(config).outcomes)
    table = Table("AdaCOS / …", "Data sets", "Cells", "Ratio", *(f"95% over {x}" for x in _VIEWS))
    holds: bool | None = None
    for other in (COS, FULL_MODEL):
        for datasets in (BUNDLED, *((name,) for name in BUNDLED)):
            every = datasets is BUNDLED
            (c,) = compare_overall(index, ADACOS, other, "asymmetric", datasets=datasets)
            table.add_row(
                other,
                "all" if every else dataset_title(datasets[0]),
                str(c.n_cells),
                f"{c.rows.estimate:.4f}",
                *(f"{i.low:.4f} – {i.high:.4f}" for i in (c.rows, c.folds, c.by_split) if i),
            )
            if other == COS and every:
                holds = c.rows.estimate < 1 if c.rows.excludes(1.0) else None
    note = (
        "Judged by the interval over rows: that AdaCOS is cheaper on new rows. The interval over "
        "splits is the noise of splitting these rows only; it would find a difference between "
        "methods that differ by chance. "
    )
    return Answer(title, holds, (table,), note + _cell_note(index))


def _cell_note(index: OutcomeIndex) -> str:
    """Cells in which AdaCOS is above COS on the fresh splits."""
    above = []
    for cell in index.cells(RANDOM):
        if cell.method == ADACOS:
            pair = [index.outcomes(RANDOM, c) for c in (cell, cell._replace(method=COS))]
            ours, theirs = (np.mean([o.total.mean() for o in outcomes]) for outcomes in pair)
            if ours > theirs * (1 + 1e-9):
                above.append(f"{cell.dataset} {cell.false_positive:g} ({ours / theirs:.3f})")
    return f"AdaCOS above COS in {len(above)} cells: {', '.join(above) or 'none'}."


def _log_loss(options: StudyOptions) -> Answer:
    title = f"LogisticGAM's held-out log-loss on {options.splits} fresh splits of these rows"
    register_peers()
    usable, absent = available_methods((GAM, *PEERS))
    config = BenchConfig(
        BUNDLED,
        tuple(usable),
        (asymmetric(100.0),),
        options.out,
        paper_folds=False,
        splits=options.splits,
        seed=options.seed,
        jobs=options.jobs,
    )
    folds = FoldTable(run(config).outcomes)
    losses = {
        method: [
            float(
                np.mean(
                    [
                        folds.mean(Cell(dataset, method, "asymmetric", 100.0), "log_loss", split)
                        for split in folds.splits()
                    ]
                )
            )
            for dataset in BUNDLED
        ]
        for method in usable
    }
    overall = {method: float(gmean(values)) for method, values in losses.items()}
    table = Table("Log-loss", *(dataset_title(d) for d in BUNDLED), "geometric mean")
    for method in usable:
        table.add_row(method, *(f"{v:.4f}" for v in losses[method]), f"{overall[method]:.4f}")
    peers = [method for method in usable if method != GAM]
    within = all(
        losses[GAM][k] <= 1.01 * min(losses[peer][k] for peer in peers) for k in range(len(BUNDLED))
    )
    best = overall[GAM] <= min(overall[peer] for peer in peers)
    note = "Within 1% of the best peer on each set" + (": yes" if within else ": no")
    note += ", best in geometric mean" + (": yes." if best else ": no.")
    if absent:
        note += f" Without {', '.join(absent)}; install with: pip install interpret pygam."
    return Answer(title, within and best, (table,), note)


def _symmetric(options: StudyOptions) -> Answer:
    title = "Pima with symmetric costs within one of the paper's standard deviations"
    folds = FoldTable(run(_paper_config(options)).outcomes)
    paper = paper_table_1()
    authors: Reference = read_authors_code(options.reference) if options.reference else {}
    table = Table("Method", "Error cost", "Ours", "Paper", "Authors' code", "")
    holds = True
    for method in POLICIES:
        for error in PAPER_SYMMETRIC:
            cell = Cell("pima", method, "symmetric", error)
            ours = folds.mean(cell, "total_cost"), folds.std(cell, "total_cost")
            theirs = paper[cell, "total_cost"]
            inside = abs(ours[0] - theirs[0]) <= theirs[1]
            holds = holds and inside
            code = authors.get((cell, "total_cost"))
            table.add_row(
                method,
                f"{error:g}",
                f"{ours[0]:.2f} ± {ours[1]:.2f}",
                f"{theirs[0]:.2f} ± {theirs[1]:.2f}",
                f"{code[0]:.2f} ± {code[1]:.2f}" if code else "–",
                "inside" if inside else "outside",
            )
    return Answer(title, holds, (table,))


def _physionet(options: StudyOptions) -> Answer:
    title = "PhysioNet's folds: AdaCOS below COS and Full Model from a false-positive cost of 10"
    if "physionet" not in options.data:
        return Answer(title, None, (), "Pass its path as data.")
    config = BenchConfig(
        ("physionet",),
        POLICIES,
        tuple(asymmetric(cost) for cost in PAPER_FALSE_POSITIVE),
        options.out,
        {"physionet": options.data["physionet"]},
        jobs=options.jobs,
    )
    folds = FoldTable(run(config).outcomes)
    table = Table("FP cost", *POLICIES, *(f"acquired, {m}" for m in POLICIES))
    holds = True
    for cost in PAPER_FALSE_POSITIVE:
        cells = [Cell("physionet", method, "asymmetric", cost) for method in POLICIES]
        totals = [folds.mean(cell, "total_cost") for cell in cells]
        holds = holds and (cost < 10 or totals[0] < min(totals[1:]))
        acquired = [folds.mean(cell, "n_acquired") for cell in cells]
        table.add_row(f"{cost:g}", *(f"{v:.3f}" for v in totals), *(f"{v:.2f}" for v in acquired))
    return Answer(title, holds, (table,))


def _paper_config(options: StudyOptions) -> BenchConfig:
    settings = (
        *(asymmetric(cost) for cost in COSTS),
        *(symmetric(error) for error in PAPER_SYMMETRIC),
    )
    return BenchConfig(BUNDLED, POLICIES, settings, options.out, jobs=options.jobs)


if __name__ == "__main__":
    typer.run(main)
