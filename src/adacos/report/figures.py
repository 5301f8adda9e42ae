"""The figures of a report, each drawn for a wide and for a narrow window."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adacos.document.style import Picture, new_figure, styled
from adacos.policies.recosting import OWN
from adacos.policies.trade_off import TradeOff
from adacos.report.held import MethodCost
from adacos.report.numbers import Curve, Level
from adacos.typing import Floats

_BLUE, _VERMILLION, _GREEN, _GREY, _BLACK = "#0072B2", "#D55E00", "#009E73", "#767676", "#000000"
_PURPLE, _PALE = "#CC79A7", "#DADADA"
_LOOK = {
    OWN: (_VERMILLION, "-"),
    "AdaCOS": (_PURPLE, "-"),
    "COS": (_BLUE, "-"),
    "full model": (_GREEN, "-"),
    "everyone positive": (_BLACK, "--"),
    "everyone negative": (_GREY, ":"),
}
# Colours of the classes, in their order; with many classes they repeat.
_CLASSES = (_BLUE, _VERMILLION, _GREEN, _PURPLE, "#8C6D1F", "#56B4E9", "#4B3A8F", _GREY)
# Inches; a narrow window shows about 3.7 of them at the size of its text.
NARROW = 3.9
# Of a curve in a wide one.
CURVE_SIZE = (7.6, 4.0)


def class_color(number: int) -> str:
    """The colour of a class."""
    return _CLASSES[number % len(_CLASSES)]


@styled
def policy_flow(levels: list[Level], names: dict[str, str], answers: Sequence[str]) -> Picture:
    """Who is asked what, and who stops where with which answer."""

    def draw(narrow: bool) -> Any:
        figure, axes = new_figure(1, 1, *flow_size(levels, narrow))
        draw_flow(axes[0, 0], levels, names, answers, narrow)
        figure.legend(loc="outside upper center", ncols=1 if narrow else 3)
        return figure

    return picture(
        draw,
        "policy",
        "The policy in one picture. Each bar shows the rows still being asked: those that stop "
        f"there with {'either' if len(answers) == 2 else 'each'} answer, and those that continue.",
    )


def flow_size(levels: list[Level], narrow: bool = False) -> tuple[float, float]:
    """Width and height of the funnel in inches."""
    return (NARROW if narrow else 8.4, 0.9 + (0.62 if narrow else 0.4) * len(levels))


def draw_flow(
    axis: Any,
    levels: list[Level],
    names: dict[str, str],
    answers: Sequence[str],
    narrow: bool = False,
) -> None:
    """Draw the funnel into axes, without its legend."""
    texts = [_asked(level, number, names) for number, level in enumerate(levels)]
    parts = [
        (f"stops: {answer}", [v.answered[k] for v in levels], class_color(k), "white")
        for k, answer in enumerate(answers)
    ]
    parts.append(("continues", [v.further for v in levels], _PALE, _BLACK))
    at = np.arange(len(levels))
    left = np.zeros(len(levels))
    for label, shares, color, ink in parts:
        share = np.array(shares)
        axis.barh(at, 100 * share, 0.62, left=100 * left, color=color, label=label)
        for row in np.flatnonzero(share >= (0.12 if narrow else 0.05)):
            middle = 100 * (left[row] + share[row] / 2)
            text = f"{share[row]:.0%}"
            axis.text(middle, row, text, ha="center", va="center", color=ink, fontsize=8.5)
        left += share
    if narrow:
        # Above the bar, where long names find room.
        for level, text in enumerate(texts):
            axis.text(0, level - 0.36, text, ha="left", va="bottom", fontsize=8.5)
        axis.set_yticks([])
        axis.set_ylim(len(levels) - 0.5, -0.9)
    else:
        axis.set_yticks(at, texts)
        axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.grid(visible=False)
    axis.set_xlabel("share of all rows, %")


@styled
def cost_curve(
    names: list[str], predicted: Floats, observed: Floats, error: Floats, policy: float, unit: str
) -> Picture:
    """Mean total cost if every row stopped at a set, and that of the policy."""

    def draw(narrow: bool) -> Any:
        figure, axes = new_figure(
            1, 1, *((NARROW, 1.6 + 0.3 * len(observed)) if narrow else CURVE_SIZE)
        )
        draw_cost_curve(axes[0, 0], names, predicted, observed, error, policy, unit, narrow)
        figure.legend(loc="outside upper center", ncols=1 if narrow else 3)
        return figure

    return picture(
        draw,
        "cost_curve",
        "Mean cost if every row stopped after the covariate named, and of the policy, which stops "
        "row by row.",
    )


def draw_cost_curve(
    axis: Any,
    names: list[str],
    predicted: Floats,
    observed: Floats,
    error: Floats,
    policy: float,
    unit: str,
    narrow: bool = False,
) -> None:
    """Draw the cost along the sequence into axes, without its legend."""
    at = np.arange(len(observed))
    on_rows = "on these rows ± standard error"
    first = {"color": _BLUE, "marker": "o", "label": "expected from training rows"}
    second = {"color": _GREEN, "marker": "s", "capsize": 2.5, "label": on_rows}
    own = {"color": _VERMILLION, "linestyle": "--", "label": f"{OWN} on these rows"}
    if narrow:
        axis.plot(predicted, at, **first)
        axis.errorbar(observed, at, xerr=error, **second)
        axis.axvline(policy, **own)
        axis.set_yticks(at, names)
        axis.invert_yaxis()
        axis.set_xlabel(unit)
        axis.set_xlim(left=min(0.0, float(observed.min())))
    else:
        axis.plot(at, predicted, **first)
        axis.errorbar(at, observed, yerr=error, **second)
        axis.axhline(policy, **own)
        axis.set_xticks(at, names, rotation=40, ha="right")
        axis.set_ylabel(unit)
        axis.set_ylim(bottom=min(0.0, float(observed.min())))


@styled
def decision_curves(threshold: Floats, curves: list[Curve], own: float) -> Picture:
    """Net benefit against the threshold."""

    def draw(narrow: bool) -> Any:
        figure, axes = new_figure(1, 1, *((NARROW, 4.4) if narrow else (7.6, 4.1)))
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
            va="bottom",
        )
        axis.set_ylim(-0.25 * top - 1e-3, 1.12 * top + 1e-3)
        axis.set_xlim(0, float(threshold[-1]))
        axis.set_xlabel("threshold on the probability")
        axis.set_ylabel("net benefit per row, less what was paid")
        figure.legend(loc="outside upper center", ncols=2 if narrow else 3)
        return figure

    return picture(
        draw,
        "decision_curves",
        "Net benefit: positives found, less false alarms weighed by the odds of the threshold, "
        "less what the covariates cost row by row. What is acquired is kept as it is at the "
        "threshold in use while the threshold varies.",
    )


@styled
def sensitivity(
    settings: list[tuple[float, list[MethodCost]]], currency: str, what: str = "false-negative cost"
) -> Picture:
    """Total and covariate cost against what an error costs."""
    factors = [factor for factor, _ in settings]

    def draw(narrow: bool) -> Any:
        figure, axes = new_figure(*((2, 1, NARROW, 5.8) if narrow else (1, 2, 8.4, 3.7)))
        first, second = axes.ravel()
        for position, method in enumerate(settings[0][1]):
            color, line = _LOOK[method.name]
            own = [methods[position] for _, methods in settings]
            first.errorbar(
                factors,
                [m.total.value for m in own],
                yerr=[m.total.error for m in own],
                color=color,
                linestyle=line,
                marker="o",
                capsize=2.5,
                label=method.name,
            )
            second.plot(
                factors, [m.covariate.value for m in own], color=color, linestyle=line, marker="o"
            )
        for axis, text in ((first, "mean total cost"), (second, "mean covariate cost")):
            axis.set_xscale("log", base=2)
            axis.set_xticks(factors, [f"{factor:g}×" for factor in factors])
            axis.set_xlabel(what)
            axis.set_ylabel(text + currency)
            axis.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", ncols=3)
        return figure

    described = "a missed positive costs" if what == "false-negative cost" else "every error costs"
    return picture(draw, "sensitivity", f"The same model when {described} less or more.")


@styled
def trade_off_curve(curve: TradeOff, own: float | None, currency: str) -> Picture:
    """Misclassification cost against covariate cost; `own` is what the policy at hand pays."""
    return picture(
        lambda narrow: _trade_off(curve, own, currency, narrow),
        "trade_off",
        "What more spending saves: at each point covariate costs count more or less in the same "
        "model, and rows pay this on average. Bars are standard errors of the cost of errors.",
    )


@styled
def trade_off_file(curve: TradeOff, currency: str, ending: str) -> bytes:
    """The same curve as the content of a file of the given kind."""
    buffer = io.BytesIO()
    _trade_off(curve, None, currency, narrow=False).savefig(buffer, format=ending, dpi=160)
    return buffer.getvalue()


def _trade_off(curve: TradeOff, own: float | None, currency: str, narrow: bool) -> Any:
    figure, axes = new_figure(1, 1, *((NARROW, 4.0) if narrow else CURVE_SIZE))
    draw_trade_off(axes[0, 0], curve, own, currency)
    return figure


def draw_trade_off(axis: Any, curve: TradeOff, own: float | None, currency: str) -> None:
    """Draw misclassification cost against covariate cost into axes."""
    columns = curve.to_dict()
    paid, wrong = columns["covariate_cost"], columns["misclassification_cost"]
    error = columns["misclassification_error"]
    axis.errorbar(paid, wrong, yerr=error, color=_VERMILLION, marker="o", capsize=2.5)
    if own is not None:
        axis.axvline(own, color=_GREY, linewidth=0.9)
        # On the side of the line where there is room.
        left, right = axis.get_xlim()
        at_right = own < (left + right) / 2
        axis.annotate(
            "this policy", (own, max(wrong)), xytext=(4 if at_right else -4, 0),
            textcoords="offset points", ha="left" if at_right else "right",
            fontsize=8.5, color=_GREY,
        )  # fmt: skip
    axis.set_xlabel("mean covariate cost" + currency)
    axis.set_ylabel("mean cost of errors" + currency)


def _asked(level: Level, number: int, names: dict[str, str]) -> str:
    """The question of a level in words: one covariate, or the most frequent ones."""
    if number == 0:
        return "start"
    everyone = sum(level.answered) + level.further
    parts = [(names[name], share / everyone) for name, share in level.asked if share > 0]
    if len(parts) == 1 or parts[0][1] >= 0.995:
        return f"{number}. {parts[0][0]}"
    described = ", ".join(f"{name} {share:.0%}" for name, share in parts[:2])
    return f"{number}. {described}{', …' if len(parts) > 2 else ''}"


def picture(draw: Callable[[bool], Any], name: str, caption: str) -> Picture:
    """A figure drawn for a wide and for a narrow window."""
    wide, narrow = (_svg(draw(small)) for small in (False, True))
    return Picture(name, caption, wide, narrow)


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
