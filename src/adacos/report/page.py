"""The page of a report: sections of text, tables and figures, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from adacos import __version__
from adacos.card import (
    budgets_in_words,
    headline,
    rule_in_words,
)
from adacos.consultation import fingerprint
from adacos.consultation.cut_off import cut_off_of, percent
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html
from adacos.policies.base import BasePolicy
from adacos.policies.many_classes import asked_recall
from adacos.policies.misfit import advice
from adacos.policies.sequence_policy import asked_in_order
from adacos.report import figures, numbers, sections, words
from adacos.report.choice import choice
from adacos.report.class_page import class_numbers, class_sections
from adacos.report.held import (
    BOOSTED,
    OWN,
    Boosted,
    Held,
    Mean,
    Method,
    hold,
    methods,
    sensitivity,
)
from adacos.report.sections import in_currency
from adacos.report.shapes import shapes, usual_stage
from adacos.report.spending import spending


def write_report(
    policy: BasePolicy,
    table: Any,
    y: NDArray[Any],
    path: Path,
    title: str,
    training: tuple[Any, NDArray[Any]] | None = None,
) -> dict[str, Any]:
    """Write the page about a policy on held-out rows; returns its headline numbers.

    Sections that need one order of covariates are not drawn for a policy without one. With training
    rows and their classes boosting on the best fixed set is compared as well.
    """
    held = hold(policy, table, y, training)
    compared = methods(held)
    many = len(held.policy.classes_) > 2
    blocks = class_sections(held, compared) if many else _sections(held, compared)
    path.write_text(to_html(title, blocks), encoding="utf-8")
    told: dict[str, Any] = {
        "rows": len(held.true),
        "training_rows": held.trained_on,
        "total_cost" if held.missed_is_priced else "operation_cost": compared[0].total.value,
        "covariate_cost": compared[0].covariate.value,
    }
    if held.boosted is not None:
        told["boosting"] = _of_boosting(held.boosted, compared)
    if many:
        return {**told, **class_numbers(held)}
    return {**told, "recall": None if held.true.sum() == 0 else compared[0].recall}


def _of_boosting(boosted: Boosted, compared: list[Method]) -> dict[str, Any]:
    """What boosting acquires and costs, and how much more than the policy, row by row."""
    own = next(m for m in compared if m.name == BOOSTED)
    return {
        "covariates": list(boosted.policy.covariates_),
        "cost": own.total.value,
        "more": own.more.value,
        "more_error": own.more.error,
    }


def _sections(held: Held, compared: list[Method]) -> list[Block]:
    """The page of a policy of two classes."""
    return [
        *_summary(held, compared),
        *sections.policy(held),
        *choice(held),
        *sections.importances(held),
        *sections.cost_curve(held, compared[0]),
        *spending(held),
        *_shapes(held),
        *_calibration(held),
        *_misfit(held),
        *_recall(held),
        *_sensitivity(held),
        *_decision_curves(held),
        Heading("Glossary"),
        Items(words.explained([m.name for m in compared])),
    ]


def _summary(held: Held, compared: list[Method]) -> list[Block]:
    policy, said = held.policy, held.said
    own, first = compared[0], headline(policy)
    lines = [
        f"{len(held.true):,} held-out rows, {held.true.mean():.1%} "
        f"{words.class_in_words(held, 1)}. {words.part_in_fitting(held)}",
        words.errors(held),
        rule_in_words(policy),
        *filter(None, [budgets_in_words(policy)]),
        _compared(held, compared),
        *words.boosting(held, compared),
        words.model(held, fingerprint(held.given), __version__),
        *words.described(held),
    ]
    return [
        *([] if first is None else [Text(first)]),
        Text(words.PURPOSE),
        Items(tuple(lines)),
        Heading("What it costs"),
        Grid(
            # What is read most comes first: a narrow window shows the rest by scrolling.
            ("", held.counted, "recall", "specificity", "covariate cost", f"more than {OWN}"),
            tuple(
                (
                    m.name,
                    words.with_error(held, m.total),
                    _percent(m.recall),
                    _percent(m.specificity),
                    said.money(m.covariate.value),
                    "" if m is own else words.with_error(held, m.more),
                )
                for m in compared
            ),
            caption="Means per row on the held-out rows ± standard error.",
        ),
    ]


def _compared(held: Held, compared: list[Method]) -> str:
    """The policy compared with the best alternative; with everyone positive if it does that."""
    own = compared[0]
    silent = headline(held.policy) is not None
    best = min(compared[1:], key=lambda m: m.total.value)
    if silent:
        best = next(m for m in compared if m.name == "everyone positive")
    apart = words.with_error(held, Mean(abs(best.more.value), best.more.error))
    apart += " more" if best.more.value >= 0 else " less"
    lead = "The alternative to compare it with" if silent else "The best alternative below"
    policy = "The policy costs"
    if not held.missed_is_priced:
        policy = "Without missed positives, which nobody gave a cost, the policy costs"
    return (
        f"{policy} {words.with_error(held, own.total)} per row, of which "
        f"{held.said.money(own.covariate.value)} for covariates. {lead}, {best.name}, costs "
        f"{apart}, compared row by row."
    )


def _shapes(held: Held) -> list[Block]:
    policy, said = held.policy, held.said
    if not asked_in_order(policy):
        return []
    stage = usual_stage(held)
    curves = shapes(held, stage)
    if not curves:
        return []
    share = float((held.result.stage == stage).mean())
    names = {name: said.label(name) for name in policy.encoder_.names}
    units = {name: said.of(name).unit or "" for name in policy.encoder_.names}
    return [
        Heading("Shape functions"),
        Text(
            f"The model of {', '.join(said.label(name) for name in policy.sets_[stage])}, at which "
            f"{share:.1%} of the rows stop."
        ),
        figures.shape_functions(curves, names, units),
    ]


def _calibration(held: Held) -> list[Block]:
    window, own = numbers.threshold_window(held), cut_off_of(held.policy.rule_)
    near = [] if window is None else numbers.calibration(held, *window)
    scores = numbers.scores(held)
    return [
        Heading("Calibration"),
        figures.calibration(numbers.calibration(held), near, window, own, held.result.probability),
        Grid(
            ("Brier score", "area under the curve", "slope", "intercept"),
            (tuple(f"{value:.3f}" if value == value else "–" for value in scores),),
            caption="For the probabilities at the stop. Slope 1 and intercept 0 are ideal. A slope "
            "below 1 means that probabilities are too extreme, above 1 that they are too close to "
            "the average; an intercept above 0 means that they are too low.",
        ),
    ]


def _misfit(held: Held) -> list[Block]:
    misfits, said = numbers.misfits(held), held.said
    if not misfits:
        return []
    rows = tuple(
        (
            f"{m.stop}, {said.class_name(held.policy.classes_[m.answer])}",
            f"{m.rows:,}",
            f"{m.expected:.1%}",
            f"{m.found / m.rows:.1%}",
            f"{m.low:.1%} to {m.high:.1%}",
            said.money(m.expected * m.price) if m.price else "–",
            said.money(m.found / m.rows * m.price) if m.price else "–",
        )
        for m in misfits
    )
    marks = tuple((number, 4, "bad") for number, m in enumerate(misfits) if not m.agrees)
    header = ("stop and answer", "rows", "wrong, expected", "found", "95% interval")
    return [
        Heading("Does it fit?"),
        Text(
            "How often the model expected to be wrong where it stopped, and how often it was. An "
            "interval without the expected share is marked. By chance that is one in twenty; here "
            f"it is {len(marks)} of {len(misfits)}." + _coherence(held)
        ),
        Grid((*header, "its cost, expected", "found"), rows, marks=marks),
        *_additivity(held),
    ]


def _additivity(held: Held) -> list[Block]:
    """Cells of two covariates in which the model is wrong, and what to try."""
    cells = numbers.additivity(held)
    told = advice(held.policy, cells)
    if told is None:
        return []
    return [Text(told), Items(tuple(cell.told(held.said) for cell in cells[:3]))]


def _coherence(held: Held) -> str:
    share = numbers.incoherent_share(held)
    if share is None:
        return ""
    if share == 0:
        return " The lookahead never expects further values to raise the risk."
    return (
        f" In {share:.0%} of cases (row, set, later set) the lookahead expects further values to "
        "raise the risk, which information cannot do: it then stops too early."
    )


def _recall(held: Held) -> list[Block]:
    caught, positives, low, high = numbers.recall_of(held)
    lines = [
        f"{caught} of {positives} held-out positives were called positive: recall "
        f"{_percent(caught / positives)}, exact 95% interval {_percent(low)} to {_percent(high)}."
        if positives
        else "There is no positive among these rows."
    ]
    certificate = held.policy.certificate_
    if certificate is not None:
        return [
            Heading("Recall"),
            Items(tuple(lines)),
            Text(
                "The certificate was obtained on calibration rows when the model was fitted, "
                "not on the held-out rows:"
            ),
            Items(tuple(str(certificate).splitlines())),
        ]
    target = asked_recall(held.policy)
    if target is not None:
        lines.append(f"Target recall {_percent(target)}; no certificate was asked for.")
    else:
        lines.append("No recall was certified: the policy follows the costs of errors.")
    return [Heading("Recall"), Items(tuple(lines))]


def _sensitivity(held: Held) -> list[Block]:
    if not held.missed_is_priced or held.policy.sequence_model is None:
        return []
    methods = sensitivity(held)
    base = held.policy.cost_table_.matrix[1, 0]
    rows = tuple(
        (held.said.money(factor * base), *(held.said.money(m.total.value) for m in compared))
        for factor, compared in methods
    )
    header = ("false-negative cost", *(m.name for m in methods[0][1]))
    return [
        Heading("Cost sensitivity"),
        figures.sensitivity(methods, in_currency(held)),
        Grid(header, rows, caption="Mean total cost per row."),
    ]


def _decision_curves(held: Held) -> list[Block]:
    threshold, curves = numbers.decision_curves(held)
    own = cut_off_of(held.policy.rule_)
    rows = tuple((curve.name, f"{curve.in_use:.4f}") for curve in curves)
    return [
        Heading("Decision curve"),
        figures.decision_curves(threshold, curves, own),
        Grid(
            ("", "net benefit"),
            rows,
            caption=f"At the threshold in use, {percent(own)}, in positives found per row.",
        ),
    ]


def _percent(share: float) -> str:
    return "none" if share != share else f"{share:.1%}"
