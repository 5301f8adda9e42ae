"""What `adacos bench` prints of its results; the reports hold the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from adacos.bench.afa_report import AFAReport
    from adacos.bench.budgets import BudgetReport
    from adacos.bench.comparisons import OverallComparison
    from adacos.bench.lomax import LomaxReport
    from adacos.bench.own_table import TableReport
    from adacos.bench.paper import PaperReport
    from adacos.bench.regret import RegretReport
    from adacos.bench.tasks import Failure


def print_paper(report: PaperReport) -> None:
    """The paper's claims, and methods against each other."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if report.claims:
        table = Table("Claim of the paper", "Here", "Numbers", show_lines=True)
        for claim in report.claims:
            colour = {True: "green", False: "red", None: "dim"}[claim.holds]
            table.add_row(claim.text, f"[{colour}]{claim.verdict}[/]", claim.numbers)
        console.print(table)
    if report.overall:
        console.print(_ratios(report.overall))
    print_failures(report.failures, console)
    console.print(f"{report.index} written in {report.seconds:.0f} s")


def _ratios(overall: Sequence[OverallComparison]) -> Table:
    """Methods against each other, over all cells of a setting."""
    from rich.table import Table

    table = Table("Methods", "Setting", "Splits", "Ratio", "Over folds", "Over rows")
    for c in overall:
        ends = [f"{i.low:.3f} to {i.high:.3f}" for i in (c.folds, c.rows)]
        methods = f"{c.first} / {c.second}"
        table.add_row(methods, c.setting, c.splits, f"{c.folds.estimate:.3f}", *ends)
    table.title = "Ratio of costs, geometric mean over data sets and false-positive costs"
    return table


def print_regret(report: RegretReport) -> None:
    """Regret by method."""
    from rich.console import Console
    from rich.table import Table

    table = Table("Method", "Worst", "Mean", "Best", title="Total cost above the optimum (%)")
    for name, regrets in report.regrets().items():
        numbers = (regrets.max(), regrets.mean(), regrets.min())
        table.add_row(name, *(f"{value:.1f}" for value in numbers))
    console = Console()
    console.print(table)
    print_failures(report.failures, console)
    for trial in report.below_optimum:
        console.print(f"[red]below the optimum[/] {trial.title}", highlight=False)
    console.print(f"{report.index} written")


def print_afa(report: AFAReport) -> None:
    """Accuracy under budgets and total cost by method."""
    from rich.console import Console
    from rich.table import Table

    table = Table("Problem", "Method", "Accuracy, mean of budgets", "Total cost")
    for one in report.summary()["results"]:
        numbers = (f"{one['mean_accuracy']:.3f}", f"{one['total_cost']:.2f}")
        table.add_row(one["problem"], one["method"], *numbers)
    console = Console()
    console.print(table)
    print_failures(report.failures, console)
    console.print(f"{report.index} written")


def print_lomax(report: LomaxReport) -> None:
    """Ratios of total costs by method."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("Method", "Ratio", "Over splits", "Over rows", "Cells below, above")
    for r in report.overall:
        verdicts = [cell.verdict for cell in report.cells if cell.method == r.method]
        ends = [f"{i.low:.3f} to {i.high:.3f}" if i else "" for i in (r.by_splits, r.by_rows)]
        counts = f"{verdicts.count('below')}, {verdicts.count('above')} of {len(verdicts)}"
        table.add_row(r.method, f"{r.ratio:.3f}", *ends, counts)
    table.title = f"Total cost as a ratio to {report.against}, geometric mean over sets and levels"
    console = Console()
    console.print(table)
    for line in report.not_run:
        console.print(f"skipped: {escape(line)}", highlight=False)
    print_failures(report.failures, console)
    console.print(f"{report.index} written in {report.seconds:.0f} s")


def print_budgets(report: BudgetReport) -> None:
    """What is paid with each budget."""
    from rich.console import Console
    from rich.table import Table

    table = Table("Method", "Budget", "Covariates", "Errors", "Total", "Kept")
    for spending in report.spendings:
        described = [f"{mean:.2f} ± {error:.2f}" for mean, error in spending.means]
        kept = {True: "yes", False: "no", None: ""}[spending.kept(report.kind)]
        named = "none" if spending.budget is None else f"{spending.budget:.2f}"
        table.add_row(spending.method, named, *described, kept)
    table.title = "Means per held-out row ± standard error"
    console = Console()
    console.print(table)
    print_failures(report.failures, console)
    console.print(f"{report.index} written in {report.seconds:.0f} s")


def print_table(report: TableReport) -> None:
    """What each method costs on a table of one's own, and the first less each other."""
    from rich.console import Console
    from rich.table import Table

    from adacos.bench.own_table import in_words

    table = Table("Method", "Covariates", "Errors", "Total")
    for one in report.costs:
        table.add_row(one.method, *(f"{mean:.4g} ± {error:.2g}" for mean, error in one.means))
    table.title = "Means per row ± standard error"
    console = Console()
    console.print(table)
    if report.compared:
        paired = Table("Total cost", "Difference", "Over folds", "Over rows", "")
        for c in report.compared:
            ends = [f"{i.low:.4g} to {i.high:.4g}" for i in (c.folds, c.rows)]
            names = f"{c.first.method} less {c.second.method}"
            paired.add_row(names, f"{c.folds.estimate:.4g}", *ends, in_words(c))
        paired.title = "Same fold, same row; 95% intervals"
        console.print(paired)
    for line in report.not_run:
        console.print(f"skipped: {line}", highlight=False, markup=False)
    print_failures(report.failures, console)
    console.print(f"{report.index} written in {report.seconds:.0f} s")


def print_failures(failures: Sequence[Failure], console: Console) -> None:
    """What failed, each error once."""
    from rich.markup import escape

    from adacos.bench.tasks import gathered

    for line in gathered(failures):
        console.print(f"[red]failed[/] {escape(line)}", highlight=False)


def paper_as_json(report: PaperReport) -> dict[str, object]:
    """What `adacos bench paper --json` prints."""
    from adacos.bench.comparisons import overall_records

    return {
        "report": str(report.index),
        "seconds": round(report.seconds, 1),
        "claims": [
            {"claim": c.text, "holds": c.holds, "numbers": c.numbers} for c in report.claims
        ],
        "comparisons": overall_records(report.overall),
        "failures": [{"unit": f.unit, "error": f.error} for f in report.failures],
    }
