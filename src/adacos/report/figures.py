"""The figures of a report, drawn from its numbers."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.document.style import Picture, new_figure, styled
from adacos.report.numbers import OWN, Bin, Curve, Method

Floats = NDArray[np.float64]

_BLUE, _VERMILLION, _GREEN, _GREY, _BLACK = "#0072B2", "#D55E00", "#009E73", "#767676", "#000000"
_PURPLE = "#CC79A7"
_LOOK = {
    OWN: (_VERMILLION, "-"),
    "AdaCOS": (_PURPLE, "-"),
    "COS": (_BLUE, "-"),
    "full model": (_GREEN, "-"),
    "everyone positive": (_BLACK, "--"),
    "everyone negative": (_GREY, ":"),
}


@styled
def cost_curve(
    names: list[str], foretold: Floats, found: Floats, error: Floats, policy: float
) -> Picture:
    """Mean total cost if every row stopped at a set, and that of the policy."""
    figure, axes = new_figure(1, 1, 7.6, 3.8)
    axis = axes[0, 0]
    at = np.arange(len(found))
    axis.plot(at, foretold, color=_BLUE, marker="o", label="foretold from training rows")
    axis.errorbar(
        at,
        found,
        yerr=error,
        color=_GREEN,
        marker="s",
        capsize=2.5,
        label="on these rows ± standard error",
    )
    axis.axhline(policy, color=_VERMILLION, linestyle="--", label=f"{OWN} on these rows")
    axis.set_xticks(at, names, rotation=40, ha="right")
    axis.set_ylabel("mean total cost")
    axis.set_ylim(bottom=min(0.0, float(found.min())))
    axis.legend()
    return _picture(
        figure,
        "cost_curve",
        "Mean total cost if every row stopped after the covariate named, and of the policy, which "
        "stops row by row.",
    )


@styled
def shape_functions(shapes: list[tuple[str, NDArray[Any], Floats]]) -> Picture:
    """Contribution of each covariate to the log-odds."""
    columns = min(4, len(shapes))
    rows = -(-len(shapes) // columns)
    figure, axes = new_figure(rows, columns, 2.6 * columns, 2.1 * rows)
    lowest = min(float(effect.min()) for _, _, effect in shapes)
    highest = max(float(effect.max()) for _, _, effect in shapes)
    margin = 0.06 * max(highest - lowest, 1e-6)
    for axis, (name, values, effect) in zip(axes.ravel(), shapes, strict=False):
        if values.dtype.kind == "U":
            axis.bar(values, effect, color=_BLUE)
            axis.tick_params(axis="x", rotation=40)
        else:
            axis.plot(values, effect, color=_BLUE)
        axis.axhline(0.0, color=_GREY, linewidth=0.8)
        axis.set_title(name)
        axis.set_ylim(lowest - margin, highest + margin)
    for axis in axes.ravel()[len(shapes) :]:
        axis.set_visible(False)
    figure.supylabel("contribution to the log-odds", fontsize=9.5)
    return _picture(
        figure,
        "shape_functions",
        "What each value adds to the log-odds when every covariate is acquired.",
    )


@styled
def calibration(bins: list[Bin], probability: Floats) -> Picture:
    """Observed share against probability, and how often each probability occurs."""
    figure, axes = new_figure(1, 2, 8.4, 3.8)
    axis = axes[0, 0]
    axis.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1, label="ideal")
    x = [b.probability for b in bins]
    y = [b.share for b in bins]
    spread = [[b.share - b.low for b in bins], [b.high - b.share for b in bins]]
    axis.errorbar(
        x,
        y,
        yerr=np.maximum(spread, 0.0),
        fmt="o",
        color=_VERMILLION,
        capsize=2.5,
        label="share of positives, exact 95 % interval",
    )
    axis.set_xlabel("probability at the stop")
    axis.set_ylabel("share of positives")
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    # Above the axes, where no interval can reach.
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2)
    axes[0, 1].hist(probability, bins=np.linspace(0, 1, 26), color=_BLUE)
    axes[0, 1].set_xlim(0, 1)
    axes[0, 1].set_xlabel("probability at the stop")
    axes[0, 1].set_ylabel("rows")
    return _picture(
        figure,
        "calibration",
        "Left: rows grouped by the probability with which they were answered, and the share of "
        "positives among them. Right: how many rows were answered with each probability.",
    )


@styled
def decision_curves(threshold: Floats, curves: list[Curve], own: float) -> Picture:
    """Net benefit against the threshold."""
    figure, axes = new_figure(1, 1, 7.0, 3.8)
    axis = axes[0, 0]
    for curve in curves:
        color, line = _LOOK[curve.name]
        axis.plot(threshold, curve.benefit, color=color, linestyle=line, label=curve.name)
    axis.axvline(own, color=_GREY, linewidth=0.9)
    top = max(float(curve.benefit.max()) for curve in curves)
    axis.annotate(
        "threshold in use",
        (own, top),
        xytext=(4, 0),
        textcoords="offset points",
        fontsize=8.5,
        color=_GREY,
        va="top",
    )
    axis.set_ylim(-0.15 * top - 1e-3, 1.08 * top + 1e-3)
    axis.set_xlim(0, 1)
    axis.set_xlabel("threshold on the probability")
    axis.set_ylabel("net benefit per row")
    axis.legend(loc="upper right")
    return _picture(
        figure,
        "decision_curves",
        "Net benefit: positives found less false alarms weighed by the odds of the threshold.",
    )


@styled
def sensitivity(found: list[tuple[float, list[Method]]]) -> Picture:
    """Total and covariate cost against the false-negative cost."""
    figure, axes = new_figure(1, 2, 8.4, 3.4)
    factors = [factor for factor, _ in found]
    for position, method in enumerate(found[0][1]):
        color, line = _LOOK[method.name]
        own = [methods[position] for _, methods in found]
        axes[0, 0].errorbar(
            factors,
            [m.total.value for m in own],
            yerr=[m.total.error for m in own],
            color=color,
            linestyle=line,
            marker="o",
            capsize=2.5,
            label=method.name,
        )
        axes[0, 1].plot(
            factors, [m.covariate.value for m in own], color=color, linestyle=line, marker="o"
        )
    for axis, text in zip(axes[0], ("mean total cost", "mean covariate cost"), strict=True):
        axis.set_xscale("log", base=2)
        axis.set_xticks(factors, [f"{factor:g}×" for factor in factors])
        axis.set_xlabel("false-negative cost")
        axis.set_ylabel(text)
        axis.set_ylim(bottom=0)
    axes[0, 0].legend()
    return _picture(
        figure, "sensitivity", "The same model when a missed positive costs less or more."
    )


def _picture(figure: Any, name: str, caption: str) -> Picture:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return Picture(name, caption, buffer.getvalue())
