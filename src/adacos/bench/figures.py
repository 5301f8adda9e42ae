"""The paper's result figures, drawn from the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from adacos.bench.comparisons import CellComparison
from adacos.bench.configuration import slug
from adacos.bench.names import ADACOS, ADACOS_FORWARD, COS, COS_FORWARD, FULL_MODEL
from adacos.bench.reference import Reference
from adacos.bench.sigmoid import approximations
from adacos.bench.tables import Cell, FoldTable
from adacos.document.style import (
    GREY,
    Picture,
    cost_axis,
    dataset_title,
    key,
    legend_below,
    look,
    new_figure,
    save,
    styled,
)

_FP_LABEL = "False-positive cost (cost units)"
# Ratios beyond this are off the axis: they would flatten the differences that matter.
_RATIO_LIMIT = 3.0


@styled
def asymmetric_figure(
    folds: FoldTable, dataset: str, methods: Sequence[str], authors: Reference, folder: Path
) -> Picture:
    """Total cost, its ratio to AdaCOS, weighted accuracy, covariates acquired."""
    figure, axes = new_figure(2, 2, 9.2, 7.0)
    panels = (
        (axes[0, 0], "total_cost", "Total cost per row (cost units)"),
        (axes[1, 0], "weighted_accuracy", "Weighted accuracy"),
        (axes[1, 1], "n_acquired", "Covariates acquired per row"),
    )
    for axis, measure, label in panels:
        _curves(axis, folds, dataset, methods, "asymmetric", measure)
        axis.set(xlabel=_FP_LABEL, ylabel=label)
        cost_axis(axis)
    cost_axis(axes[0, 0], y=True)
    _ratio_curves(axes[0, 1], folds, dataset, methods, authors)
    _authors_points(axes[0, 0], authors, dataset, methods, "asymmetric", "total_cost")
    entries = _keys(methods)
    if any(cell.dataset == dataset for cell, _ in authors):
        entries.append(key("authors' code", **{**_open_marker(ADACOS, 0), "color": GREY}))
    legend_below(figure, entries)
    figure.suptitle(f"{dataset_title(dataset)}: a false negative costs 10 false positives")
    return save(
        figure,
        folder,
        f"asymmetric_{dataset}",
        f"{dataset_title(dataset)}. Mean over folds, bars one standard deviation over folds; "
        "open markers: the authors' code on the same folds. Ratios above "
        f"{_RATIO_LIMIT:g} are off the axis.",
    )


@styled
def sequence_figure(folds: FoldTable, datasets: Sequence[str], folder: Path) -> Picture:
    """Group lasso against forward selection."""
    figure, axes = new_figure(2, len(datasets), _width(datasets), 6.0)
    methods = (ADACOS, ADACOS_FORWARD, COS, COS_FORWARD)
    for column, dataset in enumerate(datasets):
        axis, below = axes[:, column]
        _curves(axis, folds, dataset, methods, "asymmetric", "total_cost")
        axis.set(title=dataset_title(dataset))
        cost_axis(axis)
        cost_axis(axis, y=True)
        _ratio_curves(below, folds, dataset, methods, {})
        if column:
            below.set_ylabel("")
        else:
            axis.set_ylabel("Total cost per row (cost units)")
    legend_below(figure, _keys(methods))
    return save(
        figure,
        folder,
        "group_lasso_against_forward",
        "Set sequence by group lasso against forward selection. Mean over folds, bars one "
        "standard deviation over folds.",
    )


@styled
def recall_figure(
    folds: FoldTable, dataset: str, methods: Sequence[str], target: float, folder: Path
) -> Picture:
    """Operation cost against false-positive cost, and FDR against covariate cost."""
    setting = f"recall_{target:g}"
    figure, axes = new_figure(1, 2, 9.2, 4.1)
    left, right = axes[0]
    _curves(left, folds, dataset, methods, setting, "operation_cost")
    left.set(xlabel=_FP_LABEL, ylabel="Operation cost per row (cost units)")
    cost_axis(left)
    cost_axis(left, y=True)
    for number, method in enumerate(methods):
        cells = _cells(folds, dataset, method, setting)
        x = [folds.mean(c, "covariate_cost") for c in cells]
        y = [folds.mean(c, "fdr") for c in cells]
        style = look(method, number)
        right.plot(x, y, color=style["color"], linewidth=0.6, alpha=0.6)
        right.errorbar(
            x,
            y,
            xerr=[folds.std(c, "covariate_cost") for c in cells],
            yerr=[folds.std(c, "fdr") for c in cells],
            linestyle="none",
            color=style["color"],
            marker=style["marker"],
            markersize=4.5,
            elinewidth=1.0,
        )
    right.set(xlabel="Covariate cost per row (cost units)", ylabel="False discovery rate")
    right.set_xscale("symlog", linthresh=1.0)
    right.set_xlim(left=-0.2)
    right.xaxis.set_major_formatter("{x:g}")
    legend_below(figure, _keys(methods))
    figure.suptitle(f"{dataset_title(dataset)}: target recall {target:g}")
    return save(
        figure,
        folder,
        f"recall_{target:g}_{dataset}",
        f"{dataset_title(dataset)}, target recall {target:g}. Left: mean over folds, bars one "
        "standard deviation. Right: one cross per false-positive cost, its arms one standard "
        "deviation over folds of covariate cost and FDR.",
    )


@styled
def observed_recall_figure(
    folds: FoldTable, datasets: Sequence[str], methods: Sequence[str], target: float, folder: Path
) -> Picture:
    """Recall on test rows compared with the target."""
    figure, axes = new_figure(1, len(datasets), _width(datasets), 3.6)
    lowest = 1.0
    for axis, dataset in zip(axes[0], datasets, strict=True):
        _curves(axis, folds, dataset, methods, f"recall_{target:g}", "recall")
        axis.axhline(target, color="black", linewidth=1.0, linestyle=(0, (4, 3)))
        axis.set(xlabel=_FP_LABEL, title=dataset_title(dataset))
        cost_axis(axis)
        lowest = min(lowest, axis.get_ylim()[0])
    for axis in axes[0]:
        axis.set_ylim(min(lowest, target - 0.02), 1.005)
    axes[0, 0].set_ylabel("Recall on test rows")
    legend_below(figure, _keys(methods))
    return save(
        figure,
        folder,
        f"observed_recall_{target:g}",
        f"Recall on test rows when the target is {target:g} (dashed). Mean over folds, bars one "
        "standard deviation over folds.",
    )


@styled
def sigmoid_figure(folder: Path) -> Picture:
    """The sigmoid, its approximations and their errors."""
    figure, axes = new_figure(1, 2, 9.2, 3.8)
    u = np.linspace(-8, 8, 4001)
    left, right = axes[0]
    left.plot(u, expit(u), color="black", linewidth=2.4, label="sigmoid")
    curves = approximations(u)
    for (name, values), like in zip(curves.items(), (ADACOS, COS, FULL_MODEL), strict=True):
        colour = look(like)["color"]
        left.plot(u, values, color=colour, linewidth=1.1, label=name)
        right.plot(u, np.abs(values - expit(u)), color=colour, linewidth=1.1)
    left.set(xlabel="Log-odds u", ylabel="Probability", xlim=(-8, 8))
    right.set(
        xlabel="Log-odds u",
        ylabel="Absolute error",
        yscale="log",
        xlim=(-8, 8),
        ylim=(1e-6, 0.2),
    )
    legend_below(figure, left.lines)
    return save(
        figure,
        folder,
        "sigmoid_approximation",
        "Approximations of the sigmoid on [-10, 10] and their absolute errors.",
    )


@styled
def comparison_figure(
    comparisons: Sequence[CellComparison], second: str, splits: str, folder: Path
) -> Picture:
    """Paired differences in per cent of the second method's cost, with both intervals."""
    first = comparisons[0].first.method
    datasets = list(dict.fromkeys(c.first.dataset for c in comparisons))
    figure, axes = new_figure(1, len(datasets), _width(datasets), 3.7)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        cells = [c for c in comparisons if c.first.dataset == dataset]
        for offset, colour, name, intervals in (
            (-0.13, look(COS)["color"], "95% over folds", [c.folds for c in cells]),
            (0.13, look(ADACOS)["color"], "95% over rows", [c.rows for c in cells]),
        ):
            scale = np.array([100 / abs(c.means[1]) for c in cells])
            centre = np.array([i.estimate for i in intervals]) * scale
            low = np.array([i.low for i in intervals]) * scale
            high = np.array([i.high for i in intervals]) * scale
            place = np.arange(len(cells)) + offset
            axis.errorbar(
                centre,
                place,
                xerr=[centre - low, high - centre],
                fmt="o",
                markersize=4,
                color=colour,
                elinewidth=1.4,
                label=name,
            )
        axis.axvline(0, color="black", linewidth=0.9)
        axis.set_yticks(range(len(cells)), [f"{c.first.false_positive:g}" for c in cells])
        axis.invert_yaxis()
        axis.set(title=dataset_title(dataset), xlabel="Difference in total cost (%)")
    axes[0, 0].set_ylabel(_FP_LABEL)
    legend_below(figure, axes[0, 0].containers)
    where = "the paper's folds" if splits == "paper" else "random splits"
    figure.suptitle(f"{first} minus {second}\n{where}")
    return save(
        figure,
        folder,
        f"paired_{splits}_{slug(second).replace('-', '_')}",
        f"Paired differences {first} minus {second} on {where}, in per cent of the "
        "latter's total cost; left of 0 the first is cheaper.",
    )


def _curves(
    axis: Any,
    folds: FoldTable,
    dataset: str,
    methods: Sequence[str],
    setting: str,
    measure: str,
) -> None:
    # On a steep curve a step aside would look like a difference in cost.
    aside = 0.0 if measure.endswith("_cost") else 1.0
    for number, method in enumerate(methods):
        cells = _cells(folds, dataset, method, setting)
        if not cells:
            continue
        axis.errorbar(
            _false_positive(cells, aside * (number - (len(methods) - 1) / 2)),
            [folds.mean(c, measure) for c in cells],
            yerr=[folds.std(c, measure) for c in cells],
            elinewidth=0.9,
            **look(method, number),
        )


def _ratio_curves(
    axis: Any, folds: FoldTable, dataset: str, methods: Sequence[str], authors: Reference
) -> None:
    """Total cost of each method over that of AdaCOS, or of the first where that was not run."""
    yardstick = ADACOS if _cells(folds, dataset, ADACOS, "asymmetric") else methods[0]
    base = {
        c.false_positive: folds.mean(c, "total_cost")
        for c in _cells(folds, dataset, yardstick, "asymmetric")
    }
    least, largest = 0.9, 1.1
    for number, method in enumerate(methods):
        cells = _cells(folds, dataset, method, "asymmetric")
        cells = [c for c in cells if c.false_positive in base]
        ratio = [folds.mean(c, "total_cost") / base[c.false_positive] for c in cells]
        axis.plot(_false_positive(cells), ratio, **look(method, number))
        known = [c for c in cells if (c, "total_cost") in authors]
        theirs = [authors[c, "total_cost"][0] / base[c.false_positive] for c in known]
        axis.plot(_false_positive(known), theirs, **_open_marker(method, number))
        least, largest = min([least, *ratio, *theirs]), max([largest, *ratio, *theirs])
    axis.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
    axis.set(xlabel=_FP_LABEL, ylabel=f"Total cost / {yardstick}")
    cost_axis(axis)
    axis.set_ylim(least - 0.05, min(_RATIO_LIMIT, largest + 0.05))


def _authors_points(
    axis: Any,
    authors: Reference,
    dataset: str,
    methods: Sequence[str],
    setting: str,
    measure: str,
) -> None:
    for number, method in enumerate(methods):
        known = {
            cell: value[0]
            for (cell, of), value in authors.items()
            if of == measure and cell[:3] == (dataset, method, setting)
        }
        cells = sorted(known, key=lambda c: c.false_positive)
        if cells:
            axis.plot(
                _false_positive(cells),
                [known[c] for c in cells],
                **_open_marker(method, number),
            )


def _width(datasets: Sequence[str]) -> float:
    """Width of a figure with one panel per data set, wide enough for its title."""
    return max(5.2, 3.1 * len(datasets) + 0.6)


def _keys(methods: Sequence[str]) -> list[Any]:
    return [key(method, **look(method, number)) for number, method in enumerate(methods)]


def _open_marker(method: str, number: int) -> dict[str, Any]:
    return {
        **look(method, number),
        "linestyle": "none",
        "markerfacecolor": "white",
        "markersize": 7.0,
        "zorder": 1.5,
    }


def _cells(folds: FoldTable, dataset: str, method: str, setting: str) -> list[Cell]:
    cells = [c for c in folds.cells(setting=setting) if c[:2] == (dataset, method)]
    return sorted(cells, key=lambda c: c.false_positive)


def _false_positive(cells: Sequence[Cell], aside: float = 0.0) -> list[float]:
    """False-positive costs, `aside` steps aside so that bars do not cover each other."""
    return [c.false_positive * 1.08**aside for c in cells]
