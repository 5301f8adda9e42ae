"""The paper's experiments as a report: claims, Table 1, figures, comparisons, what is omitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adacos.bench.claims import Claim
from adacos.bench.comparisons import PAPER, RANDOM, CellComparison, OverallComparison
from adacos.bench.configuration import BenchConfig
from adacos.bench.figures import (
    asymmetric_figure,
    comparison_figure,
    observed_recall_figure,
    recall_figure,
    sequence_figure,
    sigmoid_figure,
)
from adacos.bench.methods import parameters
from adacos.bench.names import ADACOS, ADACOS_FORWARD
from adacos.bench.reference import Reference, paper_table_1
from adacos.bench.run import RunResult
from adacos.bench.settings import PAPER_RECALL
from adacos.bench.tables import Cell, FoldTable
from adacos.bench.tasks import gathered
from adacos.document.blocks import Block, Grid, Heading, Items, Text
from adacos.document.style import dataset_title
from adacos.registry import METHODS


@dataclass(frozen=True)
class Findings:
    """Everything the report is written from."""

    config: BenchConfig
    result: RunResult
    folds: FoldTable
    authors: Reference
    claims: list[Claim]
    comparisons: list[CellComparison]
    overall: list[OverallComparison]
    wall_seconds: float
    quick: bool
    not_run: tuple[str, ...]
    figures: Path | None
    no_figures: str = ""
    asymmetric_methods: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asymmetric_methods", self.methods("asymmetric"))

    def methods(self, setting: str) -> tuple[str, ...]:
        """Methods run in a setting, in the order of the configuration."""
        methods = {cell.method for cell in self.folds.cells(setting=setting)}
        return tuple(method for method in self.config.methods if method in methods)

    def datasets(self, setting: str) -> tuple[str, ...]:
        """Data sets run in a setting."""
        datasets = {cell.dataset for cell in self.folds.cells(setting=setting)}
        return tuple(dataset for dataset in self.config.datasets if dataset in datasets)


def report_blocks(findings: Findings) -> list[Block]:
    """The whole report."""
    return [
        *_opening(findings),
        *_claims(findings),
        *_table_1(findings),
        *_asymmetric(findings),
        *_sequences(findings),
        *_recall(findings),
        *_comparison(findings),
        *_sigmoid(findings),
        *_times(findings),
        *_settings(findings),
        *_not_run(findings),
    ]


def table_1_records(folds: FoldTable, authors: Reference) -> list[dict[str, Any]]:
    """Our Table 1 compared with the paper's and that of the authors' code."""
    paper = paper_table_1()
    records = []
    for cell in folds.cells(setting="symmetric"):
        ours = folds.mean(cell, "total_cost"), folds.std(cell, "total_cost")
        theirs = paper.get((cell, "total_cost"), (None, None))
        code = authors.get((cell, "total_cost"), (None, None))
        inside = None
        if theirs[0] is not None and theirs[1] is not None and not np.isnan(theirs[1]):
            inside = abs(ours[0] - theirs[0]) <= theirs[1]
        records.append(
            {
                "method": cell.method,
                "error_cost": cell.false_positive,
                "mean": ours[0],
                "std": ours[1],
                "paper_mean": theirs[0],
                "paper_std": theirs[1],
                "within_one_paper_std": inside,
                "authors_code_mean": code[0],
                "authors_code_std": code[1],
            }
        )
    return records


def _opening(f: Findings) -> Iterator[Block]:
    tested = "the paper's five folds"
    if len(f.config.folds) < 5:
        tested = f"fold {', '.join(str(k) for k in f.config.folds)} of the paper's five"
    yield Text(
        "Adaptive cost-sensitive covariate acquisition: our numbers compared with those of the "
        "paper (Andrade and Okajima) and, where available, of the authors' code. Costs are in cost "
        "units per row; "
        f"means and standard deviations are over {tested}, the latter with divisor n as in the "
        "paper."
    )
    if f.quick:
        yield Text("Quick mode: fewer folds, so read the numbers as a trial, not as results.")
    yield Items(
        (
            f"Data sets: {', '.join(dataset_title(d) for d in f.config.datasets)}.",
            f"Methods: {', '.join(f.config.methods)}.",
            f"Random five-fold splits in addition to the paper's: {f.config.splits}"
            + (f" (seed {f.config.seed})." if f.config.splits else "."),
            f"Run time {_duration(f.wall_seconds)} with {f.config.jobs} process(es)"
            + (
                f"; {f.result.n_reused} units reused from an earlier run."
                if f.result.n_reused
                else "."
            ),
            "Every number is in `tables/`, every figure as PNG and PDF in `figures/`.",
        )
    )
    if f.no_figures:
        yield Text(f"There are no figures: {f.no_figures}")


def _claims(f: Findings) -> Iterator[Block]:
    if not f.claims:
        return
    yield Heading("The paper's claims")
    rows = tuple((claim.text, claim.verdict, claim.numbers) for claim in f.claims)
    marks = tuple(
        (i, 1, "soft" if claim.holds is None else "good" if claim.holds else "bad")
        for i, claim in enumerate(f.claims)
    )
    yield Grid(("Claim", "Here", "Numbers"), rows, marks=marks)
    yield Text(
        "A claim is taken literally: one cell against it makes it false. Brackets are paired 95% "
        "intervals. An interval that contains zero shows no difference, and no equality either: it "
        "says how large the difference may be."
    )


def _table_1(f: Findings) -> Iterator[Block]:
    records = table_1_records(f.folds, f.authors)
    if not records:
        return
    yield Heading("Table 1: Pima, symmetric costs")
    errors = sorted({record["error_cost"] for record in records})
    by = {(record["method"], record["error_cost"]): record for record in records}
    header = ["Method"]
    for error in errors:
        header += [f"{error:g}: ours", "paper", "", "authors' code"]
    rows, marks = [], []
    for i, method in enumerate(f.methods("symmetric")):
        row = [method]
        for error in errors:
            r = by[method, error]
            inside = r["within_one_paper_std"]
            marks.append((i, len(row) + 2, "soft" if inside is None else _mark(inside)))
            row += [
                _pm(r["mean"], r["std"]),
                _pm(r["paper_mean"], r["paper_std"]),
                "" if inside is None else "inside" if inside else "outside",
                _pm(r["authors_code_mean"], r["authors_code_std"]),
            ]
        rows.append(tuple(row))
    yield Grid(
        tuple(header),
        tuple(rows),
        "Total cost when an error costs 400 or 800 and a right answer earns 50, mean ± standard "
        "deviation over folds. Inside: our mean is within one of the paper's standard deviations "
        "of the paper's mean.",
        tuple(marks),
    )


def _asymmetric(f: Findings) -> Iterator[Block]:
    datasets = f.datasets("asymmetric")
    if datasets:
        yield Heading("Asymmetric costs")
    for dataset in datasets:
        yield Heading(dataset_title(dataset), 3)
        if f.figures:
            yield asymmetric_figure(f.folds, dataset, f.asymmetric_methods, f.authors, f.figures)
        yield _cost_grid(f, dataset, "asymmetric", "total_cost", "Total cost")


def _sequences(f: Findings) -> Iterator[Block]:
    both = {ADACOS, ADACOS_FORWARD} <= set(f.asymmetric_methods)
    if not both:
        return
    yield Heading("Group lasso against forward selection")
    if f.figures:
        yield sequence_figure(f.folds, f.datasets("asymmetric"), f.figures)
    yield _overall_grid([c for c in f.overall if ADACOS_FORWARD in (c.first, c.second)])


def _recall(f: Findings) -> Iterator[Block]:
    for target in PAPER_RECALL:
        setting = f"recall_{target:g}"
        datasets, methods = f.datasets(setting), f.methods(setting)
        if not datasets:
            continue
        yield Heading(f"Target recall {target:g}")
        rivals = [m for m in methods if METHODS[m].rival]
        if rivals:
            yield Text(
                f"{', '.join(rivals)} have no target recall. As in the paper they are shown at the "
                "recall that AdaCOS reached; their threshold is set on the test rows themselves, "
                "which favours them."
            )
        if f.figures:
            own = [m for m in methods if m not in rivals]
            yield observed_recall_figure(f.folds, datasets, own, target, f.figures)
        for dataset in datasets:
            yield Heading(dataset_title(dataset), 3)
            if f.figures:
                yield recall_figure(f.folds, dataset, methods, target, f.figures)
            yield _cost_grid(f, dataset, setting, "operation_cost", "Operation cost")
            yield _cost_grid(f, dataset, setting, "recall", "Recall on test rows", digits=3)


def _comparison(f: Findings) -> Iterator[Block]:
    if not f.comparisons:
        return
    yield Heading("Paired comparison")
    yield Text(
        "Differences are paired: same fold, same row. Folds are few and share training rows, so "
        "their t interval is widened by Nadeau and Bengio's correction; the row interval holds for "
        "new rows given models trained as these were. A difference is called only if both "
        "intervals exclude zero, which for equal methods is rare (about one cell in 200); "
        "`tables/comparisons.csv` has every cell."
    )
    rest = [c for c in f.overall if ADACOS_FORWARD not in (c.first, c.second)]
    yield _overall_grid(rest)
    for kind in (PAPER, RANDOM):
        for second in dict.fromkeys(c.second.method for c in f.comparisons):
            cells = [
                c
                for c in f.comparisons
                if (c.splits, c.second.method, c.first.setting) == (kind, second, "asymmetric")
            ]
            if cells and f.figures:
                yield comparison_figure(cells, second, kind, f.figures)


def _sigmoid(f: Findings) -> Iterator[Block]:
    if f.figures:
        yield Heading("Approximations of the sigmoid")
        yield sigmoid_figure(f.figures)


def _times(f: Findings) -> Iterator[Block]:
    yield Heading("Run time")
    sums: dict[tuple[str, str], list[float]] = {}
    for (dataset, _, _, method), spent in f.result.seconds.items():
        total = sums.setdefault((method, dataset), [0.0, 0.0, 0.0])
        for i, value in enumerate((spent.fit, spent.acquire, 1.0)):
            total[i] += value
    rows = []
    for method in f.config.methods:
        row = [method]
        for dataset in f.config.datasets:
            fit, acquire, n = sums.get((method, dataset), (np.nan, np.nan, 1.0))
            row.append("" if np.isnan(fit) else f"{fit / n:.2f} + {acquire / n:.2f}")
        rows.append(tuple(row))
    yield Grid(
        ("Method", *(dataset_title(d) for d in f.config.datasets)),
        tuple(rows),
        "Seconds a fold takes, all settings together: fitting + acquiring. The first method of a "
        "family that shares a fit bears it: AdaCOS, COS and Full Model share theirs.",
    )


def _settings(f: Findings) -> Iterator[Block]:
    yield Heading("Settings")
    yield Text(
        "The parameters each method was run with. `None` means what the method chooses on its "
        "training rows; the seed is drawn from data set, split and fold."
    )
    rows = []
    for method in f.config.chosen_methods:
        described = (f"{name}={value!r}" for name, value in parameters(method).items())
        rows.append((method.name, ", ".join(described) or "none"))
    yield Grid(("Method", "Parameters"), tuple(rows))


def _not_run(f: Findings) -> Iterator[Block]:
    lines = [*f.not_run, *gathered(f.result.failures)]
    if lines:
        yield Heading("Not included")
        yield Items(tuple(lines))


def _cost_grid(
    f: Findings, dataset: str, setting: str, measure: str, title: str, digits: int | None = None
) -> Grid:
    cells = [c for c in f.folds.cells(setting=setting) if c.dataset == dataset]
    prices = sorted({c.false_positive for c in cells})
    rows: list[tuple[str, ...]] = []
    marks = []
    for method in f.methods(setting):
        own = [Cell(dataset, method, setting, price) for price in prices]
        own_means = [f.folds.mean(c, measure) if f.folds.has(c) else None for c in own]
        rows.append((method, *(_number(mean, digits) for mean in own_means)))
        theirs = [f.authors.get((c, measure), (None, None))[0] for c in own]
        if any(value is not None for value in theirs):
            marks += [(len(rows), j, "soft") for j in range(len(prices) + 1)]
            rows.append((f"{method}, authors' code", *(_number(v, digits) for v in theirs)))
    return Grid(
        ("False-positive cost", *(f"{price:g}" for price in prices)),
        tuple(rows),
        f"{title}, mean over folds.",
        tuple(marks),
    )


def _overall_grid(comparisons: Sequence[OverallComparison]) -> Grid:
    rows, marks = [], []
    for i, c in enumerate(comparisons):
        decided = c.folds.excludes(1.0) and c.rows.excludes(1.0)
        verdict = "undecided"
        if decided:
            verdict = "lower" if c.folds.estimate < 1 else "higher"
        marks.append((i, 6, {"lower": "good", "higher": "bad"}.get(verdict, "soft")))
        rows.append(
            (
                f"{c.first} / {c.second}",
                c.setting,
                "paper's folds" if c.splits == PAPER else "random splits",
                str(c.n_cells),
                f"{c.folds.estimate:.3f} [{c.folds.low:.3f}, {c.folds.high:.3f}]",
                f"{c.rows.estimate:.3f} [{c.rows.low:.3f}, {c.rows.high:.3f}]",
                verdict,
            )
        )
    return Grid(
        ("Methods", "Setting", "Splits", "Cells", "Ratio, 95% over folds", "over rows", ""),
        tuple(rows),
        "Ratio of costs, geometric mean over data sets and false-positive costs from 10 on.",
        tuple(marks),
    )


def _pm(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" + (f" ± {std:.2f}" if std is not None and not np.isnan(std) else "")


def _number(value: float | None, digits: int | None) -> str:
    if value is None or np.isnan(value):
        return "–"
    return f"{value:.{digits}f}" if digits is not None else f"{value:.4g}"


def _mark(inside: bool) -> str:
    return "good" if inside else "bad"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
