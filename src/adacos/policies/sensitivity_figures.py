"""Figures of uncertain costs: the tornado diagram, and the map of two costs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from adacos.document.style import GREY, new_figure, styled

if TYPE_CHECKING:
    from adacos.policies.sensitivity import RegionMap, Sensitivity
    from adacos.policies.worth import Worth

# For the low and the high end; policies of the map in their order.
_LOW, _HIGH, _BLACK = "#0072B2", "#D55E00", "#000000"
_REGIONS = ("#F3C9A8", "#A9D3EE", "#BFE3C9", "#E2C4DA", "#E4E4E4", "#F5EDA0", "#C9C6E8", "#D9D9C2")


@styled
def tornado(found: Sensitivity, axes: Any = None, currency: str = "", narrow: bool = False) -> Any:
    """Total cost and number of covariates acquired at the ends of every cost, two axes."""
    if axes is None:
        height = 1.3 + 0.34 * len(found.costs)
        size = (3.9, 2 * height) if narrow else (8.4, height)
        figure, grid = new_figure(*((2, 1) if narrow else (1, 2)), *size)
        axes = grid.ravel()
        figure.legend(handles=_legend(), loc="outside upper center", ncols=2)
    unit = f" ({currency})" if currency else ""
    # The widest bar is on top.
    costs = found.costs[::-1]
    at = np.arange(len(costs))
    sides = (("low", _LOW), ("high", _HIGH))
    for axis, centre, what, text in (
        (axes[0], found.total, "cost", f"mean total cost{unit}"),
        (axes[1], found.acquired, "acquired", "covariates acquired per row"),
    ):
        for end, color in sides:
            reached = np.array([getattr(cost, f"{what}_at_{end}") for cost in costs])
            bars = axis.barh(at, reached - centre, 0.62, left=centre, color=color)
            for bar, length in zip(bars, np.abs(reached - centre), strict=True):
                # Where both bars are on one side, the shorter one is drawn over the longer.
                bar.set_zorder(3 - length / (1 + length))
        axis.axvline(centre, color=GREY, linewidth=0.9)
        axis.set_xlabel(text)
        axis.grid(visible=False, axis="y")
    labels = [f"{cost.name}  {cost.low:.4g} to {cost.high:.4g}" for cost in costs]
    axes[0].set_yticks(at, labels)
    axes[1].set_yticks(at, labels if narrow else [""] * len(at))
    return axes


@styled
def tornado_file(found: Sensitivity, currency: str, ending: str) -> bytes:
    """The tornado diagram as the content of a file of the given kind."""
    buffer = io.BytesIO()
    tornado(found, currency=currency)[0].figure.savefig(buffer, format=ending, dpi=160)
    return buffer.getvalue()


@styled
def worth(found: Worth, axis: Any = None, currency: str = "", narrow: bool = False) -> Any:
    """What each covariate is paid, what it is worth, and up to which price some rows acquire it."""
    covariates = found.covariates[::-1]
    if axis is None:
        size = (3.9 if narrow else 7.6, 1.4 + 0.34 * len(covariates))
        axis = new_figure(1, 1, *size)[1][0, 0]
    at, unit = np.arange(len(covariates)), f" ({currency})" if currency else ""
    error = [item.dropping_error for item in covariates]
    look = {"color": _LOW, "label": "dropping it costs"}
    axis.barh(at, [item.dropping for item in covariates], 0.62, xerr=error, **look)
    axis.plot([item.price for item in covariates], at, "o", color=_BLACK, label="price")
    # A price that holds at none or at any has no place.
    limits = [np.nan if item.price_for_some is None else item.price_for_some for item in covariates]
    limits = [limit if np.isfinite(limit) else np.nan for limit in limits]
    axis.plot(limits, at, "D", color=_HIGH, label="some acquire it up to")
    axis.set_yticks(at, [item.covariate for item in covariates])
    axis.set_xlabel(f"per row, or price{unit}")
    axis.grid(visible=False, axis="y")
    axis.figure.legend(loc="outside upper center", ncols=1 if narrow else 3)
    return axis


def _legend() -> list[Any]:
    from matplotlib.patches import Patch

    return [Patch(color=_LOW, label="at the low end"), Patch(color=_HIGH, label="at the high end")]


@styled
def regions(found: RegionMap, axis: Any = None, narrow: bool = False) -> Any:
    """Which alternative is the cheapest, and the share of rows asked otherwise, at two costs."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    if axis is None:
        size = (3.9, 4.6) if narrow else (7.0, 4.6)
        axis = new_figure(1, 1, *size)[1][0, 0]
    names = list(dict.fromkeys(name for line in found.cheapest for name in line))
    number = np.array([[names.index(name) for name in line] for line in found.cheapest])
    colors = [_REGIONS[k % len(_REGIONS)] for k in range(len(names))]
    # The first cost runs to the right.
    axis.imshow(
        number.T, origin="lower", aspect="auto", cmap=ListedColormap(colors),
        vmin=-0.5, vmax=len(names) - 0.5,
    )  # fmt: skip
    for (i, j), share in np.ndenumerate(np.array(found.changed)):
        axis.text(i, j, f"{share:.0%}", ha="center", va="center", fontsize=8.5)
    for amounts, name, side in (
        (found.first_amounts, found.first, "x"),
        (found.second_amounts, found.second, "y"),
    ):
        getattr(axis, f"set_{side}ticks")(range(len(amounts)), [f"{a:.4g}" for a in amounts])
        getattr(axis, f"set_{side}label")(name)
    axis.grid(visible=False)
    patches = [Patch(color=c, label=f"{n} is cheapest") for n, c in zip(names, colors, strict=True)]
    axis.figure.legend(handles=patches, loc="outside upper center", ncols=1 if narrow else 3)
    return axis
