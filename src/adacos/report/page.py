"""The page of a report: sections of text, tables and figures, in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos import __version__
from adacos.card import (
    budgets_in_words,
    headline,
    recalibration_in_words,
    recalls_in_words,
    rule_in_words,
)
from adacos.consultation import fingerprint
from adacos.consultation.cut_off import cut_off_of, percent
from adacos.document.blocks import Block, Grid, Heading, Items, Text, to_html
from adacos.policies.base import BasePolicy
from adacos.policies.misfit import advice
from adacos.policies.recosting import OWN
from adacos.policies.restriction import restriction_in_words
from adacos.policies.sequence_policy import asked_in_order
from adacos.report import figures, model_figures, numbers, sections, words
from adacos.report.answers import answers, class_lines, decision_shares
from adacos.report.choice import choice
from adacos.report.held import (
    BOOSTED,
    Boosted,
    Held,
    Mean,
    MethodCost,
    hold,
    methods,
    sensitivity,
)
from adacos.report.sections import in_currency
from adacos.report.shapes import shapes, usual_stage
from adacos.report.spending import spending
from adacos.report.uncertain import uncertain_costs


def write_report(
    policy: BasePolicy,
    table: Any,
    y: NDArray[Any],
    path: Path,
    title: str,
    training: tuple[Any, NDArray[Any]] | None = None,
    groups: Any = None,
    uncertain: Mapping[Any, Any] | None = None,
) -> dict[str, Any]:
    """Write the page about a policy on held-out rows; returns its headline numbers.

    Sections that need one order of covariates are not drawn for a policy without one. With training
    rows and their classes boosting on the best fixed set is compared as well. With the groups of
    the held-out rows standard errors and intervals are those of independent groups. With uncertain
    costs, see `sensitivity`, the page shows what depends on them.
    """
    held = hold(policy.as_fitted, table, y, training, groups)
    compared = methods(held)
    path.write_text(to_html(title, _sections(held, compared, uncertain)), encoding="utf-8")
    content: dict[str, Any] = {
        "rows": len(held.true),
        "training_rows": held.trained_on,
        "total_cost" if held.missed_is_priced else "operation_cost": compared[0].total.value,
        "covariate_cost": compared[0].covariate.value,
    }
    if held.boosted is not None:
        content["boosting"] = _of_boosting(held.boosted, compared)
    if held.decides:
        return {**content, "decisions": decision_shares(held)}
    shares = [line.recall for line in class_lines(held)]
    recalls = [share.value if share.among else None for share in shares]
    classes = map(str, held.policy.classes_.tolist())
    recall = recalls[1] if held.has_cut_off else dict(zip(classes, recalls, strict=True))
    return {**content, "recall": recall}


def _of_boosting(boosted: Boosted, compared: list[MethodCost]) -> dict[str, Any]:
    """What boosting acquires and costs, and how much more than the policy, row by row."""
    own = next(m for m in compared if m.name == BOOSTED)
    return {
        "covariates": list(boosted.policy.covariates_),
        "cost": own.total.value,
        "more": own.more.value,
        "more_error": own.more.error,
    }


def _sections(
    held: Held, compared: list[MethodCost], uncertain: Mapping[Any, Any] | None
) -> list[Block]:
    """All sections of the page."""
    return [
        *_summary(held, compared),
        *answers(held),
        *sections.policy(held),
        *choice(held),
        *sections.importances(held),
        *sections.cost_curve(held, compared[0]),
        *spending(held),
        *_shapes(held),
        *_calibration(held),
        *_misfit(held),
        *_sensitivity(held),
        *([] if uncertain is None else uncertain_costs(held, uncertain)),
        *_decision_curves(held),
        Heading("Glossary"),
        Items(words.explained([m.name for m in compared], held.has_cut_off)),
    ]


def _summary(held: Held, compared: list[MethodCost]) -> list[Block]:
    first = headline(held.policy)
    lines = [
        f"{words.shares(held)} {words.part_in_fitting(held)}",
        *words.errors(held),
        rule_in_words(held.policy),
        *filter(
            None,
            [
                recalibration_in_words(held.given),
                restriction_in_words(held.given),
                budgets_in_words(held.policy),
            ],
        ),
        *recalls_in_words(held.policy),
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
        _costs(held, compared),
        *_charged(held),
    ]


def _costs(held: Held, compared: list[MethodCost]) -> Grid:
    """What each way of answering costs, and how right it is."""
    right: tuple[str, ...] = ("sensitivity", "specificity")
    if not held.has_cut_off:
        right = () if held.decides else ("right answers",)
    rows = []
    for m in compared:
        shares = (m.recall, m.specificity) if held.has_cut_off else (m.right,)[: len(right)]
        rows.append(
            (
                m.name,
                words.with_error(held, m.total),
                *map(_percent, shares),
                held.said.money(m.covariate.value),
                "" if m is compared[0] else words.with_error(held, m.more),
            )
        )
    # What is read most comes first: a narrow window shows the rest by scrolling.
    header = ("", held.counted, *right, "covariate cost", f"more than {OWN}")
    return Grid(header, tuple(rows), caption="Means per row on the held-out rows ± standard error.")


def _charged(held: Held) -> list[Block]:
    """What an answer costs, where that takes a table."""
    if held.has_cut_off:
        return []
    pairs = zip(held.class_names, held.charged.tolist(), strict=True)
    return [
        Grid(
            ("", *(held.answered(name) for name in held.label_names)),
            tuple((name, *map(held.said.money, line)) for name, line in pairs),
            caption="What each answer or decision costs, by the true class.",
        )
    ]


def _compared(held: Held, compared: list[MethodCost]) -> str:
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
            f"{share:.1%} of the rows stop." + ("" if held.two_classes else words.DIFFERENCES)
        ),
        model_figures.shape_functions(curves, held.class_names, names, units),
    ]


def _calibration(held: Held) -> list[Block]:
    if not held.has_cut_off:
        loss, brier = numbers.class_scores(held)
        return [
            Heading("Calibration"),
            model_figures.calibration_by_class(numbers.class_calibration(held), held.class_names),
            Grid(
                ("log-loss", "Brier score"),
                ((f"{loss:.3f}", f"{brier:.3f}"),),
                caption="For the probabilities at the stop; the Brier score sums over the classes.",
            ),
        ]
    window, own = numbers.threshold_window(held), cut_off_of(held.policy.rule_)
    near = [] if window is None else numbers.calibration(held, *window)
    scores = numbers.scores(held)
    return [
        Heading("Calibration"),
        model_figures.calibration(
            numbers.calibration(held), near, window, own, held.result.probability
        ),
        Grid(
            ("Brier score", "area under the curve", "slope", "intercept"),
            (tuple(f"{value:.3f}" if value == value else "–" for value in scores),),
            caption="For the probabilities at the stop. Slope 1 and intercept 0 are ideal. A slope "
            "below 1 means that probabilities are too extreme, above 1 that they are too close to "
            "the average; an intercept above 0 means that they are too low.",
        ),
    ]


def _misfit(held: Held) -> list[Block]:
    misfits, money = [] if held.decides else numbers.misfits(held), held.said.money
    if not misfits:
        return []
    # What nobody gave a cost has none.
    priced = np.any(held.charged * (1 - np.eye(len(held.charged))), axis=0).tolist()
    rows = tuple(
        (
            f"{m.stop}, {held.class_names[m.answer]}",
            f"{m.found.among:,}",
            f"{m.expected:.1%}",
            f"{m.found.value:.1%}",
            f"{m.found.low:.1%} to {m.found.high:.1%}",
            *(map(money, (m.expected_cost, m.cost)) if priced[m.answer] else "––"),
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
        Grid((*header, "their cost, expected", "found"), rows, marks=marks),
        *_additivity(held),
    ]


def _additivity(held: Held) -> list[Block]:
    """Cells of two covariates in which the model is wrong, and what to try."""
    cells = numbers.additivity(held)
    content = advice(held.policy, cells)
    if content is None:
        return []
    return [Text(content), Items(tuple(cell.describe(held.said) for cell in cells[:3]))]


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


def _sensitivity(held: Held) -> list[Block]:
    if not held.missed_is_priced or held.policy.sequence_model is None:
        return []
    methods, money = sensitivity(held), held.said.money
    what = "false-negative cost" if held.has_cut_off else "cost of errors"
    caption = "Mean total cost per row"
    if not held.has_cut_off:
        caption += " if every error costs this many times as much beyond a right answer"
    base = held.policy.cost_table_.matrix[1, 0]
    rows = tuple(
        (
            money(factor * base) if held.has_cut_off else f"{factor:g} times",
            *(money(m.total.value) for m in compared),
        )
        for factor, compared in methods
    )
    return [
        Heading("Cost sensitivity"),
        figures.sensitivity(methods, in_currency(held), what),
        Grid((what, *(m.name for m in methods[0][1])), rows, f"{caption}."),
    ]


def _decision_curves(held: Held) -> list[Block]:
    if not held.has_cut_off:
        return []
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
