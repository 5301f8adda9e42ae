"""The page of a report: sections of text, tables and figures, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy.special import expit

from adacos import __version__
from adacos.consultation import fingerprint
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html
from adacos.kernels.bayes_risk import decision_threshold
from adacos.policies.base import BasePolicy
from adacos.policies.sequence_policy import SequencePolicy
from adacos.report import figures, numbers
from adacos.report.numbers import Held, Mean, Method


def write_report(
    policy: BasePolicy, table: Any, y: NDArray[Any], path: Path, title: str
) -> dict[str, Any]:
    """Write the page about a policy on evaluation rows; returns its headline numbers."""
    held = numbers.hold(policy, table, y)
    methods = numbers.methods(held)
    blocks = _summary(held, methods)
    if isinstance(policy, SequencePolicy):
        blocks += _sequence(held) + _cost_curve(held, methods[0]) + _shapes(policy)
    else:
        blocks += _acquisitions(held)
    blocks += _calibration(held) + _recall(held)
    if isinstance(policy, SequencePolicy):
        blocks += _sensitivity(held)
    blocks += _decision_curves(held)
    path.write_text(to_html(title, blocks), encoding="utf-8")
    return {
        "rows": len(held.true),
        "total_cost": methods[0].total.value,
        "covariate_cost": methods[0].covariate.value,
        "recall": None if held.true.sum() == 0 else methods[0].recall,
    }


def _summary(held: Held, methods: list[Method]) -> list[Block]:
    policy = held.policy
    (c00, c01), (c10, c11) = policy.rule_.matrix.tolist()
    negative, positive = policy.classes_.tolist()
    own = methods[0]
    best = min(methods[1:], key=lambda m: m.total.value)
    apart = _with_error(Mean(abs(best.more.value), best.more.error))
    apart += " more" if best.more.value >= 0 else " less"
    return [
        Text(
            "For research use. The policy acquires covariates one after the other and stops when "
            "what the next ones cost is more than the wrong answers they are expected to prevent."
        ),
        Items(
            (
                f"{len(held.true):,} evaluation rows, {held.true.mean():.1%} of class {positive}. "
                "They should have had no part in fitting.",
                f"Answering {positive} for {negative} costs {c01:g}, "
                f"{negative} for {positive} costs {c10:g}"
                + (f"; right answers cost {c00:g} and {c11:g}." if c00 or c11 else "."),
                f"The policy costs {_with_error(own.total)} per row, of which "
                f"{own.covariate.value:.2f} for covariates. The best alternative below, "
                f"{best.name}, costs {apart}, compared row by row.",
                f"Model {fingerprint(policy)} ({type(policy).__name__}, adacos {__version__})"
                + (
                    f", learned from {len(policy.model_.y):,} rows."
                    if hasattr(policy, "sets_")
                    else "."
                ),
            )
        ),
        Heading("What it costs"),
        Grid(
            # What is read most comes first: a narrow window shows the rest by scrolling.
            (
                "",
                "total cost",
                "recall",
                "specificity",
                "covariate cost",
                f"more than {numbers.OWN}",
            ),
            tuple(
                (
                    m.name,
                    _with_error(m.total),
                    _percent(m.recall),
                    _percent(m.specificity),
                    f"{m.covariate.value:.2f}",
                    "" if m is own else _with_error(m.more),
                )
                for m in methods
            ),
            caption="Means per row on the evaluation rows ± standard error.",
        ),
    ]


def _sequence(held: Held) -> list[Block]:
    free = held.policy.model_.sequence.n_free
    stops = numbers.stops(held)
    incomplete = any(stop.missing > 0 for stop in stops)
    rows = tuple(
        (
            f"{rank}. {stop.covariate}",
            f"{stop.cost:.2f}",
            f"{stop.acquired:.1%}",
            f"{stop.stopped:.1%}" if rank >= free else "",
            *([f"{stop.missing:.1%}"] if incomplete else []),
        )
        for rank, stop in enumerate(stops, start=1)
    )
    at_once = float((held.result.stage == 0).mean())
    first = "before anything is acquired" if free == 0 else "after the free covariates"
    header = ["covariate", "cost", "rows that acquire it", "rows that stop after it"]
    blocks: list[Block] = [
        Heading("What the policy does"),
        Text(
            f"Covariates are asked for in this order; {at_once:.1%} of the rows are answered "
            f"{first}."
        ),
        Grid((*header, "rows without it") if incomplete else tuple(header), rows),
    ]
    if incomplete:
        blocks.append(
            Text(
                "A row without a value cannot acquire it and goes on to the next covariate, which "
                "is why fewer rows may acquire a covariate than one after it."
            )
        )
    return blocks + _panels(held.policy)


def _acquisitions(held: Held) -> list[Block]:
    """What a policy without a set sequence does."""
    rows = tuple(
        (name, f"{cost:.2f}", f"{share:.1%}")
        for name, cost, share in zip(
            held.policy.encoder_.names,
            held.policy.cost_table_.covariates,
            held.result.acquired.mean(axis=0),
            strict=True,
        )
    )
    return [
        Heading("What the policy does"),
        Grid(("covariate", "cost", "rows that acquire it"), rows),
        *_panels(held.policy),
    ]


def _panels(policy: BasePolicy) -> list[Block]:
    found = numbers.panels(policy)
    if not found:
        return []
    return [
        Text(
            "Some covariates share a cost, which is part of the cost of each: the first of them "
            "that is acquired pays its full cost, every later one its cost less the shared cost."
        ),
        Grid(
            ("panel", "shared cost", "members"),
            tuple((p.name, f"{p.shared:.2f}", ", ".join(p.members)) for p in found),
        ),
    ]


def _cost_curve(held: Held, own: Method) -> list[Block]:
    sequence = held.policy.model_.sequence
    foretold, found, error = numbers.cost_by_set(held)
    names = [
        "nothing" if len(sequence.set(i)) == 0 else held.policy.sets_[i][-1]
        for i in range(len(sequence))
    ]
    picture = figures.cost_curve(names, foretold, found, error, own.total.value)
    return [Heading("Expected cost along the sequence"), picture]


def _shapes(policy: SequencePolicy) -> list[Block]:
    found = numbers.shapes(policy)
    return [Heading("Shape functions"), figures.shape_functions(found)] if found else []


def _calibration(held: Held) -> list[Block]:
    return [
        Heading("Calibration"),
        figures.calibration(numbers.calibration(held), held.result.probability),
    ]


def _recall(held: Held) -> list[Block]:
    found, positives, low, high = numbers.recall_of(held)
    lines = [
        f"{found} of {positives} positive evaluation rows were answered positive: recall "
        f"{_percent(found / positives)}, exact 95 % interval {_percent(low)} to {_percent(high)}."
        if positives
        else "There is no positive among these rows."
    ]
    certificate = getattr(held.policy, "certificate_", None)
    if certificate is not None:
        return [
            Heading("Recall"),
            Items(tuple(lines)),
            Text(
                "The certificate of the model was earned when it was made, on rows set aside then "
                "(“held-out” below), not on the evaluation rows:"
            ),
            Items(tuple(str(certificate).splitlines())),
        ]
    target = getattr(held.policy, "target_recall", None)
    if target is not None:
        lines.append(f"Target recall {_percent(target)}; no certificate was asked for.")
    else:
        lines.append("No recall was promised: the policy follows the costs of errors.")
    return [Heading("Recall"), Items(tuple(lines))]


def _sensitivity(held: Held) -> list[Block]:
    found = numbers.sensitivity(held)
    base = held.policy.rule_.matrix[1, 0]
    amounts = [factor * base for factor, _ in found]
    decimals = 0 if all(float(amount).is_integer() for amount in amounts) else 2
    rows = tuple(
        (f"{amount:.{decimals}f}", *(f"{m.total.value:.2f}" for m in methods))
        for amount, (_, methods) in zip(amounts, found, strict=True)
    )
    header = ("false-negative cost", *(m.name for m in found[0][1]))
    return [
        Heading("Cost sensitivity"),
        figures.sensitivity(found),
        Grid(header, rows, caption="Mean total cost per row."),
    ]


def _decision_curves(held: Held) -> list[Block]:
    threshold, curves = numbers.decision_curves(held)
    own = float(expit(decision_threshold(held.policy.rule_.matrix)))
    at = int(abs(threshold - own).argmin())
    rows = tuple((curve.name, f"{curve.benefit[at]:.4f}") for curve in curves)
    return [
        Heading("Decision curve"),
        figures.decision_curves(threshold, curves, own),
        Grid(("", "net benefit"), rows, caption=f"At the threshold in use, {own:.3f}."),
    ]


def _with_error(mean: Mean) -> str:
    # Spaces at which no line is broken.
    return f"{mean.value:.2f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{mean.error:.2f}"


def _percent(share: float) -> str:
    return "none" if share != share else f"{share:.1%}"
