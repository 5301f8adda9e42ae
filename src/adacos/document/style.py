"""One look for every figure, and how figures are saved.

Colours are Okabe and Ito's, which the colour-blind can distinguish. A policy keeps its colour under
both set sequences and changes its line.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from adacos.exceptions import MissingExtraError
from adacos.registry import DATASETS, METHODS
from adacos.tables.writing import write_whole

P = ParamSpec("P")
T = TypeVar("T")

GREY = "#767676"
_COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "grey": GREY,
}
_SPARE = (("purple", "d", ":"), ("sky", "8", ":"), ("green", "*", ":"), ("grey", "H", "--"))

_RC = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "legend.fontsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.titlesize": 11.5,
    "figure.titleweight": "bold",
    "svg.hashsalt": "adacos",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Picture:
    """A saved figure: name of its files without ending, caption, and SVG to embed.

    `narrow` is the same drawn for a narrow window, if there is one.
    """

    name: str
    caption: str
    svg: bytes
    narrow: bytes | None = None

    @property
    def data_uri(self) -> str:
        """The figure as an address that needs no other file."""
        return _data_uri(self.svg)

    @property
    def narrow_uri(self) -> str | None:
        """The same for the narrow drawing."""
        return None if self.narrow is None else _data_uri(self.narrow)


def _data_uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def check_matplotlib() -> None:
    """Raise MissingExtraError if figures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plot")


def look(method: str, position: int = 0) -> dict[str, Any]:
    """Line properties of a method; `position` serves methods without a look of their own."""
    own = METHODS[method].look if method in METHODS else None
    colour, marker, line = own or _SPARE[position % len(_SPARE)]
    return {"color": _COLOURS.get(colour, colour), "marker": marker, "linestyle": line}


def dataset_title(name: str) -> str:
    """A data set's name in a heading."""
    return DATASETS[name].title if name in DATASETS else name


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a drawing function draw in the common style."""

    @wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        check_matplotlib()
        import matplotlib as mpl

        with mpl.rc_context(_RC):
            return draw(*args, **kwargs)

    return in_style


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """A figure and the array of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, folder: Path, name: str, caption: str) -> Picture:
    """Write PNG and PDF, and keep an SVG."""
    # The layout is the same in every format: find it once.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    content = {}
    for ending, metadata in (
        ("png", {"Software": None}),
        ("pdf", {"CreationDate": None, "Producer": None}),
        ("svg", {"Date": None}),
    ):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=ending, dpi=160, metadata=metadata)
        content[ending] = buffer.getvalue()
    for ending in ("png", "pdf"):
        write_whole(folder / f"{name}.{ending}", content[ending])
    return Picture(name, caption, content["svg"])


def legend_below(figure: Any, handles: Sequence[Any]) -> None:
    """One legend for all panels, below them, as wide as the figure allows."""
    columns = max(1, min(len(handles), int(figure.get_figwidth() / 2.0)))
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)


def key(label: str, **line: Any) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **line)


def cost_axis(axis: Any, *, y: bool = False) -> None:
    """A logarithmic axis of costs with plain numbers at its ticks."""
    (axis.set_yscale if y else axis.set_xscale)("log")
    (axis.yaxis if y else axis.xaxis).set_major_formatter("{x:g}")
