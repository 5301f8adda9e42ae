"""The figure of an audit: each measure of each group with its interval, next to all rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from adacos.document.style import GREY, new_figure, styled
from adacos.policies.audited import Audit, is_share, title_of

_PLAIN, _DIFFERS = "#0072B2", "#D55E00"
# Measures that are drawn, in this order, as far as there are; recalls of classes besides.
_DRAWN = ("total", "acquired", "recall", "specificity", "positive")


def drawn_measures(found: Audit) -> list[str]:
    """The measures of the panels."""
    names = [name for name in _DRAWN if name in found.overall]
    return names + [name for name in found.overall if name.startswith("recall ")]


def size_of(found: Audit) -> tuple[int, float, float]:
    """Panels in a row, width and height of a panel."""
    lines = sum(len(grouping.groups) + 1 for grouping in found.groupings)
    return min(3, len(drawn_measures(found))), 3.5, 0.75 + 0.24 * lines


@styled
def draw_audit(found: Audit, currency: str = "", axes: Any = None) -> Any:
    """Points with intervals, one panel for each measure; a line for all rows."""
    measures = drawn_measures(found)
    if axes is None:
        columns, width, height = size_of(found)
        rows = -(-len(measures) // columns)
        axes = new_figure(rows, columns, width * columns, height * rows)[1]
    axes = np.atleast_1d(axes).ravel()
    for axis in axes[len(measures) :]:
        axis.set_visible(False)
    for number, (axis, name) in enumerate(zip(axes, measures, strict=False)):
        _panel(axis, found, name, currency)
        if number % (size_of(found)[0]):
            axis.set_yticklabels([])
    axes[0].figure.legend(handles=_legend(), loc="outside upper center", ncols=3)
    return axes


@styled
def audit_file(found: Audit, currency: str, ending: str) -> bytes:
    """The figure as the content of a file of the given kind."""
    buffer = io.BytesIO()
    draw_audit(found, currency)[0].figure.savefig(buffer, format=ending, dpi=160)
    return buffer.getvalue()


def _panel(axis: Any, found: Audit, name: str, currency: str) -> None:
    factor = 100 if is_share(name) else 1
    whole = found.overall[name]
    if np.isfinite(whole):
        axis.axvline(factor * whole, color=GREY, linewidth=0.9)
    places, labels, at = [], [], 0
    for grouping in found.groupings:
        at += 1
        for group in grouping.groups:
            own = group.measures[name]
            places.append(at)
            labels.append(f"{grouping.name} {group.name}" if len(group.name) < 4 else group.name)
            color = _DIFFERS if own.differs else _PLAIN
            if own.rows:
                ends = factor * own.level.low, factor * own.level.high
                axis.plot(ends, (at, at), color=color)
                axis.plot(factor * own.level.estimate, at, marker="o", color=color)
            at += 1
    axis.set_yticks(places, labels)
    axis.set_ylim(at, 0)
    unit = ", %" if is_share(name) else f" ({currency})" if currency and name == "total" else ""
    axis.set_xlabel(title_of(name) + unit)
    axis.grid(visible=False, axis="y")


def _legend() -> list[Any]:
    from adacos.document.style import key

    return [
        key("group", color=_PLAIN, marker="o"),
        key("shown to differ from all rows", color=_DIFFERS, marker="o"),
        key("all rows", color=GREY),
    ]
