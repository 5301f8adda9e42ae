"""Figures of the model itself: what values add to the log-odds, and how right probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adacos.document.style import Picture, new_figure, styled
from adacos.report.figures import NARROW, class_color, picture
from adacos.report.numbers import Bin
from adacos.report.shapes import Shape
from adacos.typing import Floats

_BLUE, _VERMILLION, _GREY, _BLACK = "#0072B2", "#D55E00", "#767676", "#000000"


@styled
def shape_functions(
    shapes: list[Shape], classes: Sequence[str], names: dict[str, str], units: dict[str, str]
) -> Picture:
    """Contribution of each covariate to the log-odds, on its own scale.

    With three or more classes to those of each class.
    """
    many = len(classes) > 2

    def draw(narrow: bool) -> Any:
        columns = 2 if narrow else 3
        rows = -(-len(shapes) // columns)
        height = 2.1 * rows + (0.6 if many else 0.2)
        figure, axes = new_figure(rows, columns, NARROW if narrow else 8.4, height)
        for axis, shape in zip(axes.ravel(), shapes, strict=False):
            for k in range(shape.effects.shape[1]):
                _draw_shape(axis, shape, k, classes[k])
            if shape.values.dtype.kind == "U":
                at = np.arange(len(shape.values))
                axis.set_xticks(at, shape.values, rotation=40, ha="right")
            else:
                floor, across = np.zeros(len(shape.rug)), axis.get_xaxis_transform()
                axis.plot(shape.rug, floor, "|", color=_BLACK, alpha=0.5, transform=across)
                axis.set_xlabel(units.get(shape.covariate, ""))
            axis.axhline(0.0, color=_GREY, linewidth=0.8)
            axis.set_title(names[shape.covariate], fontsize=9.5)
        for axis in axes.ravel()[len(shapes) :]:
            axis.set_visible(False)
        figure.supylabel("contribution to the log-odds", fontsize=9.5)
        if many:
            handles, labels = axes.ravel()[0].get_legend_handles_labels()
            columns = 2 if narrow else 5
            figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        return figure

    what = "of each class against all of them together" if many else "with a pointwise 95% band"
    return picture(
        draw,
        "shape_functions",
        f"What each value adds to the log-odds {what}; every covariate has its own scale. Ticks "
        "at the foot are values of the held-out rows.",
    )


def _draw_shape(axis: Any, shape: Shape, k: int, name: str) -> None:
    """One column of the effects: bars of a category, a line of a number."""
    effect, half, color = shape.effects[:, k], shape.half, class_color(k)
    if shape.values.dtype.kind == "U":
        width = 0.8 / shape.effects.shape[1]
        at = np.arange(len(shape.values)) - 0.4 + (k + 0.5) * width
        axis.bar(at, effect, width, yerr=half, color=color, capsize=2.5, label=name)
        return
    if half is not None:
        band = effect - half, effect + half
        axis.fill_between(shape.values, *band, color=color, alpha=0.2, linewidth=0)
    axis.plot(shape.values, effect, color=color, label=name)


@styled
def calibration(
    bins: list[Bin],
    near: list[Bin],
    window: tuple[float, float] | None,
    threshold: float,
    probability: Floats,
) -> Picture:
    """Observed share against probability, everywhere and near the threshold."""

    def draw(narrow: bool) -> Any:
        shape = (2, 1, NARROW, 6.8) if narrow else (1, 2, 8.4, 4.1)
        figure, axes = new_figure(*shape)
        first, second = axes.ravel()
        _draw_calibration(first, bins, (0.0, 1.0), "all probabilities")
        if window is None:
            second.hist(probability, bins=np.linspace(0, 1, 26), color=_BLUE)
            second.set_xlabel("probability at the stop")
            second.set_ylabel("rows")
        else:
            _draw_calibration(second, near, window, "near the threshold in use")
            second.axvline(threshold, color=_GREY, linewidth=0.9)
            inside = probability[(probability >= window[0]) & (probability <= window[1])]
            across = second.get_xaxis_transform()
            second.plot(
                inside, np.zeros(len(inside)), "|", color=_BLACK, alpha=0.3, transform=across
            )
        # Outside the axes, where no interval can reach.
        handles, labels = first.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=1 if narrow else 2)
        return figure

    return picture(
        draw,
        "calibration",
        "Rows grouped by the probability with which they were answered, and the share of positives "
        "among them: over all probabilities, and near the threshold (grey line), where being right "
        "decides the answer. Ticks at the foot are rows.",
    )


@styled
def calibration_by_class(bins: list[list[Bin]], classes: Sequence[str]) -> Picture:
    """Observed share of each class against its probability."""

    def draw(narrow: bool) -> Any:
        columns = 1 if narrow else 3
        rows = -(-len(classes) // columns)
        figure, axes = new_figure(rows, columns, NARROW if narrow else 8.4, 2.7 * rows + 0.3)
        for k, (axis, name) in enumerate(zip(axes.ravel(), classes, strict=False)):
            _draw_calibration(axis, bins[k], (0.0, 1.0), name, class_color(k))
            axis.set_xlabel("its probability at the stop")
            axis.set_ylabel("its share")
        for axis in axes.ravel()[len(classes) :]:
            axis.set_visible(False)
        return figure

    return picture(
        draw,
        "calibration",
        "For each class, rows grouped by the probability that it had where they stopped, and its "
        "share among them with the 95% interval; on the dashed line both are the same.",
    )


def _draw_calibration(
    axis: Any,
    bins: list[Bin],
    window: tuple[float, float],
    title: str,
    color: str = _VERMILLION,
) -> None:
    axis.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1, label="ideal")
    share = np.array([b.share for b in bins])
    spread = [[b.share - b.low for b in bins], [b.high - b.share for b in bins]]
    axis.errorbar(
        [b.probability for b in bins],
        share,
        yerr=np.maximum(spread, 0.0),
        fmt="o",
        color=color,
        capsize=2.5,
        label="share of positives, 95% interval",
    )
    axis.set_title(title)
    axis.set_xlabel("probability at the stop")
    axis.set_ylabel("share of positives")
    axis.set_xlim(*window)
    top = max([window[1], *(b.high for b in bins)]) if window != (0.0, 1.0) else 1.0
    axis.set_ylim(0, min(1.0, 1.03 * top))
