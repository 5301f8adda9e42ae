"""The report of `adacos bench afa`: tables and curves of accuracy under budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adacos.bench.afa_cases import FRESH_ROWS, SHARE, STARTS, WEIGHED, Curves, budgets_from
from adacos.bench.tables import write_csv
from adacos.bench.tasks import Failure, gathered
from adacos.document.blocks import Block, Grid, Heading, Items, Text
from adacos.document.style import (
    Picture,
    check_matplotlib,
    key,
    legend_below,
    look,
    new_figure,
    save,
    styled,
)
from adacos.exceptions import MissingExtraError
from adacos.typing import Floats


@dataclass(frozen=True)
class AFAReport:
    """Where the report is, and all curves."""

    index: Path
    curves: tuple[Curves, ...]

    @property
    def failures(self) -> list[Failure]:
        """What raised an error."""
        titles = [f"{c.method}, {c.title}, instance {c.seed}" for c in self.curves]
        return [Failure(t, c.error) for t, c in zip(titles, self.curves, strict=True) if c.error]

    def of(self, title: str, method: str) -> list[Curves]:
        """The instances of one setting and method."""
        return [c for c in self.curves if (c.title, c.method) == (title, method) and not c.error]

    def summary(self) -> dict[str, Any]:
        """The essentials as plain JSON."""
        keys = dict.fromkeys((c.title, c.method) for c in self.curves if not c.error)
        return {
            "report": str(self.index),
            "results": [
                {
                    "problem": title,
                    "method": method,
                    "mean_accuracy": round(float(np.mean(area(self.of(title, method)))), 4),
                    "total_cost": round(
                        float(np.mean([c.total_cost for c in self.of(title, method)])), 4
                    ),
                }
                for title, method in keys
            ],
            "failures": [{"case": f.unit, "error": f.error} for f in self.failures],
        }


def area(curves: Sequence[Curves], start: str = STARTS[0], which: str = "accuracy") -> Floats:
    """Mean over the budgets, for each instance."""
    return np.array([np.mean(getattr(c, which)[start]) for c in curves])


def write_curves(path: Path, report: AFAReport) -> None:
    """Every number of the curves as CSV."""
    write_csv(
        path,
        [
            {
                "problem": c.title,
                "instance": c.seed,
                "method": c.method,
                "start": start,
                "budget": budget,
                "accuracy": c.accuracy[start][k],
                "f1": c.f1[start][k],
                "random_order": c.random[k] if start == STARTS[0] else np.nan,
                "total_cost": c.total_cost,
                "seconds": c.seconds,
            }
            for c in report.curves
            if not c.error
            for start in c.accuracy
            for k, budget in enumerate(budgets_from(start, c.budgets))
        ],
    )


def blocks_of(
    report: AFAReport, methods: Sequence[str], absent: dict[str, str], rows: int, folder: Path
) -> Iterator[Block]:
    """The report: for each problem its tables, then all curves, then what was not run."""
    yield Text(
        f"Each method learns from {rows} rows at most and answers {FRESH_ROWS} fresh ones, or 30% "
        "of a table. Mean and standard error over the instances. A budget of k pays "
        "for k covariates of mean cost. Random order: the same classifier, with covariates in "
        f"random order. Total cost: an error costs as much as {WEIGHED:g} covariates."
    )
    titles = list(dict.fromkeys(c.title for c in report.curves))
    for title in titles:
        yield Heading(title)
        yield _grid(report, title, methods)
        yield _starts(report, title, methods)
    try:
        check_matplotlib()
        (folder / "figures").mkdir(exist_ok=True)
        if any(not c.error for c in report.curves):
            yield _figure(report, titles, methods, folder / "figures")
    except MissingExtraError as error:
        yield Text(f"There is no figure: {error}")
    lines = [f"{name}: {why}" for name, why in absent.items()] + gathered(report.failures)
    if lines:
        yield Heading("Not included")
        yield Items(tuple(lines))


def _with_error(values: Floats, digits: int = 3) -> str:
    if not len(values):
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f}" + (f" ± {error:.{digits}f}" if len(values) > 1 else "")


def _grid(report: AFAReport, title: str, methods: Sequence[str]) -> Grid:
    """Mean over budgets, some budgets, random order and total cost."""
    rows = []
    some = next((c.budgets for c in report.curves if c.title == title and not c.error), [])
    shown = [b for b in (1, 2, 3, 5, 8, 12) if b in some]
    for method in methods:
        curves = report.of(title, method)
        if not curves:
            rows.append((method, *[""] * (4 + len(shown))))
            continue
        at = np.array([c.accuracy[STARTS[0]] for c in curves])
        rows.append(
            (
                method,
                _with_error(area(curves)),
                *(_with_error(at[:, some.index(b)]) for b in shown),
                _with_error(area(curves, which="f1")),
                _with_error(np.array([np.mean(c.random) for c in curves])),
                _with_error(np.array([c.total_cost for c in curves]), 2),
            )
        )
    header = ("Method", "Accuracy, mean of budgets", *(f"at {b}" for b in shown))
    return Grid((*header, "Macro F1", "Random order", "Total cost"), tuple(rows), "Hard budgets")


def _starts(report: AFAReport, title: str, methods: Sequence[str]) -> Grid:
    """Mean accuracy over budgets from each start."""
    rows = tuple(
        (method, *(_with_error(area(report.of(title, method), start)) for start in STARTS[1:]))
        for method in methods
    )
    caption = (
        f"Accuracy, mean of budgets, where {SHARE:.0%} of the values are known at no cost or "
        f"unavailable, or {SHARE:.0%} of the covariates never acquirable"
    )
    return Grid(("Method", *STARTS[1:]), rows, caption)


@styled
def _figure(
    report: AFAReport, titles: Sequence[str], methods: Sequence[str], folder: Path
) -> Picture:
    """Accuracy by hard budget, and by what soft budgets let rows pay."""
    figure, axes = new_figure(2, len(titles), 3.6 * len(titles), 6.4)
    for column, title in enumerate(titles):
        for i, method in enumerate(methods):
            curves = report.of(title, method)
            if not curves:
                continue
            hard = np.mean([c.accuracy[STARTS[0]] for c in curves], axis=0)
            soft = np.mean([c.soft for c in curves], axis=0)
            axes[0, column].plot(curves[0].budgets, hard, **look(method, i))
            axes[1, column].plot(soft[:, 0], soft[:, 1], **look(method, i))
        axes[0, column].set(title=title, xlabel="Hard budget, in covariates of mean cost")
        axes[1, column].set(xlabel="Paid on average, in covariates of mean cost")
    for row in (0, 1):
        axes[row, 0].set_ylabel("Accuracy")
    legend_below(figure, [key(m, **look(m, i)) for i, m in enumerate(methods)])
    return save(
        figure,
        folder,
        "afa",
        "Accuracy on fresh rows, mean over instances: above where a budget ends each row, below "
        "where covariates count up to seventeen times.",
    )
