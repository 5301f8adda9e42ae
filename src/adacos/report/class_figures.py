"""The figures of a report on a policy with three or more classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adacos.document.style import Picture, new_figure, styled
from adacos.report.class_counts import ClassShape
from adacos.report.figures import NARROW, class_color, picture
from adacos.report.numbers import Bin

_GREY, _BLACK = "#767676", "#000000"


@styled
def shapes_by_class(
    shapes: list[ClassShape], classes: Sequence[str], names: dict[str, str], units: dict[str, str]
) -> Picture:
    """Contribution of each covariate to the log-odds of each class."""

    def draw(narrow: bool) -> Any:
        columns = 2 if narrow else 3
        rows = -(-len(shapes) // columns)
        figure, axes = new_figure(rows, columns, NARROW if narrow else 8.4, 2.1 * rows + 0.6)
        for axis, shape in zip(axes.ravel(), shapes, strict=False):
            for k, name in enumerate(classes):
                if shape.values.dtype.kind == "U":
                    width = 0.8 / len(classes)
                    at = np.arange(len(shape.values)) - 0.4 + (k + 0.5) * width
                    axis.bar(at, shape.effects[:, k], width, color=class_color(k), label=name)
                else:
                    color = class_color(k)
                    axis.plot(shape.values, shape.effects[:, k], color=color, label=name)
            if shape.values.dtype.kind == "U":
                places = np.arange(len(shape.values))
                axis.set_xticks(places, shape.values, rotation=40, ha="right")
            else:
                floor, across = np.zeros(len(shape.rug)), axis.get_xaxis_transform()
                axis.plot(shape.rug, floor, "|", color=_BLACK, alpha=0.5, transform=across)
                axis.set_xlabel(units.get(shape.covariate, ""))
            axis.axhline(0.0, color=_GREY, linewidth=0.8)
            axis.set_title(names[shape.covariate], fontsize=9.5)
        for axis in axes.ravel()[len(shapes) :]:
            axis.set_visible(False)
        figure.supylabel("contribution to the log-odds", fontsize=9.5)
        handles, labels = axes.ravel()[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2 if narrow else 5)
        return figure

    return picture(
        draw,
        "shape_functions",
        "What each value adds to the log-odds of each class against all of them together; every "
        "covariate has its own scale. Ticks at the foot are values of the held-out rows.",
    )


@styled
def calibration_by_class(bins: list[list[Bin]], classes: Sequence[str]) -> Picture:
    """Observed share of each class against its probability."""

    def draw(narrow: bool) -> Any:
        columns = 1 if narrow else 3
        rows = -(-len(classes) // columns)
        figure, axes = new_figure(rows, columns, NARROW if narrow else 8.4, 2.7 * rows + 0.3)
        for k, (axis, name) in enumerate(zip(axes.ravel(), classes, strict=False)):
            axis.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1)
            share = np.array([b.share for b in bins[k]])
            spread = [[b.share - b.low for b in bins[k]], [b.high - b.share for b in bins[k]]]
            axis.errorbar(
                [b.probability for b in bins[k]],
                share,
                yerr=np.maximum(spread, 0.0),
                fmt="o",
                color=class_color(k),
                capsize=2.5,
            )
            axis.set_title(name)
            axis.set_xlim(0, 1)
            axis.set_ylim(0, 1)
            axis.set_xlabel("its probability at the stop")
            axis.set_ylabel("its share")
        for axis in axes.ravel()[len(classes) :]:
            axis.set_visible(False)
        return figure

    return picture(
        draw,
        "calibration",
        "For each class, rows grouped by the probability that it had where they stopped, and its "
        "share among them with the exact 95% interval; on the dashed line both are the same.",
    )
