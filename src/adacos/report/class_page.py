"""The page of a report on a policy with three or more classes: no class is the positive one."""

from __future__ import annotations

from typing import Any

from adacos import __version__
from adacos.card import budgets_in_words, recalls_in_words
from adacos.consultation import fingerprint
from adacos.document.blocks import Block, Grid, Heading, Items, Text
from adacos.policies.sequence_policy import asked_in_order
from adacos.report import class_counts, class_figures, figures, sections, words
from adacos.report.choice import choice
from adacos.report.class_counts import Share
from adacos.report.held import OWN, Held, Mean, Method, sensitivity
from adacos.report.shapes import usual_stage
from adacos.report.spending import spending


def class_sections(held: Held, compared: list[Method]) -> list[Block]:
    """All sections of the page."""
    return [
        *_summary(held, compared),
        *_confusion(held),
        *sections.policy(held),
        *choice(held),
        *sections.importances(held),
        *sections.cost_curve(held, compared[0]),
        *spending(held),
        *_shapes(held),
        *_calibration(held),
        *_misfit(held),
        *_sensitivity(held),
        Heading("Glossary"),
        Items(words.explained([m.name for m in compared], len(held.class_names))),
    ]


def class_numbers(held: Held) -> dict[str, Any]:
    """Headline numbers: the recall of each class, None of one that does not occur."""
    lines = zip(held.policy.classes_.tolist(), class_counts.class_lines(held), strict=True)
    return {
        "recall": {
            str(label): line.recall.value if line.recall.among else None for label, line in lines
        }
    }


def _summary(held: Held, compared: list[Method]) -> list[Block]:
    said, own = held.said, compared[0]
    shares = (f"{(held.true == k).mean():.1%} {name}" for k, name in enumerate(held.class_names))
    best = min(compared[1:], key=lambda m: m.total.value)
    apart = words.with_error(held, Mean(abs(best.more.value), best.more.error))
    lines = [
        f"{len(held.true):,} held-out rows: {', '.join(shares)}. {words.part_in_fitting(held)}",
        "The answer is the class whose expected cost of being wrong is least.",
        *filter(None, [budgets_in_words(held.policy)]),
        *recalls_in_words(held.policy),
        f"The policy costs {words.with_error(held, own.total)} per row, of which "
        f"{said.money(own.covariate.value)} for covariates. The best alternative below, "
        f"{best.name}, costs {apart} {'more' if best.more.value >= 0 else 'less'}, compared row by "
        "row.",
        *words.boosting(held, compared),
        words.model(held, fingerprint(held.given), __version__),
        *words.described(held),
    ]
    return [
        Text(words.PURPOSE),
        Items(tuple(lines)),
        Heading("What it costs"),
        Grid(
            ("", "total cost", "right answers", "covariate cost", f"more than {OWN}"),
            tuple(
                (
                    m.name,
                    words.with_error(held, m.total),
                    f"{m.right:.1%}",
                    said.money(m.covariate.value),
                    "" if m is own else words.with_error(held, m.more),
                )
                for m in compared
            ),
            caption="Means per row on the held-out rows ± standard error.",
        ),
        Grid(
            ("", *(f"answered {name}" for name in held.class_names)),
            tuple(
                (name, *map(said.money, line))
                for name, line in zip(held.class_names, held.charged.tolist(), strict=True)
            ),
            caption="What an answer costs, by the true class.",
        ),
    ]


def _confusion(held: Held) -> list[Block]:
    counts, said = class_counts.confusion(held), held.said
    lines = class_counts.class_lines(held)
    paid = counts * held.charged / len(held.true)
    rows = []
    for k, name in enumerate(held.class_names):
        cells = (
            f"{n:,}" if cost == 0 else f"{n:,} ({said.money(cost)})"
            for n, cost in zip(counts[k].tolist(), paid[k].tolist(), strict=True)
        )
        rows.append((name, *cells, said.money(float(paid[k].sum()))))
    rows.append(("all", *map(said.money, paid.sum(axis=0).tolist()), said.money(float(paid.sum()))))
    marks = tuple((k, k + 1, "good") for k in range(len(counts)))
    by_class = tuple(
        (
            line.name,
            *_told(line.recall),
            *_told(line.right),
            said.money(line.cost) if line.recall.among else "–",
        )
        for line in lines
    )
    return [
        Heading("Classes and answers"),
        Grid(
            ("true class", *(f"answered {name}" for name in held.class_names), "cost"),
            tuple(rows),
            "Held-out rows, and in brackets what they add to the mean misclassification cost.",
            marks,
        ),
        Grid(
            ("class", "recall", "95% interval", "right where answered", "95% interval", "cost"),
            by_class,
            caption="Share of a class's rows that are answered with it, share of the answers with "
            "it that are right, and the mean misclassification cost of its rows.",
        ),
        *_certificate(held),
    ]


def _certificate(held: Held) -> list[Block]:
    certificate = held.policy.certificate_
    if certificate is None:
        return []
    return [
        Text(
            "The certificate was obtained on calibration rows when the model was fitted, "
            "not on the held-out rows:"
        ),
        Items(tuple(str(certificate).splitlines())),
    ]


def _told(share: Share) -> tuple[str, str]:
    if not share.among:
        return "none", ""
    return (
        f"{share.found:,} of {share.among:,} ({share.value:.1%})",
        f"{share.low:.1%} to {share.high:.1%}",
    )


def _shapes(held: Held) -> list[Block]:
    policy, said = held.policy, held.said
    if not asked_in_order(policy):
        return []
    stage = usual_stage(held)
    curves = class_counts.class_shapes(held, stage)
    if not curves:
        return []
    share = float((held.result.stage == stage).mean())
    names = {name: said.label(name) for name in policy.encoder_.names}
    units = {name: said.of(name).unit or "" for name in policy.encoder_.names}
    return [
        Heading("Shape functions"),
        Text(
            f"The model of {', '.join(said.label(name) for name in policy.sets_[stage])}, at which "
            f"{share:.1%} of the rows stop. The difference of two classes at a value is what it "
            "adds to the log-odds of one against the other."
        ),
        class_figures.shapes_by_class(curves, held.class_names, names, units),
    ]


def _calibration(held: Held) -> list[Block]:
    loss, brier = class_counts.class_scores(held)
    bins = class_counts.class_calibration(held)
    return [
        Heading("Calibration"),
        class_figures.calibration_by_class(bins, held.class_names),
        Grid(
            ("log-loss", "Brier score"),
            ((f"{loss:.3f}", f"{brier:.3f}"),),
            caption="For the probabilities at the stop; the Brier score sums over the classes.",
        ),
    ]


def _misfit(held: Held) -> list[Block]:
    misfits, money = class_counts.class_misfits(held), held.said.money
    if not misfits:
        return []
    rows = tuple(
        (
            f"{m.stop}, {held.class_names[m.answer]}",
            f"{m.found.among:,}",
            f"{m.expected:.1%}",
            f"{m.found.value:.1%}",
            f"{m.found.low:.1%} to {m.found.high:.1%}",
            money(m.expected_cost),
            money(m.cost),
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
            f"it is {len(marks)} of {len(misfits)}."
        ),
        Grid((*header, "their cost, expected", "found"), rows, marks=marks),
    ]


def _sensitivity(held: Held) -> list[Block]:
    if held.policy.sequence_model is None:
        return []
    methods, money = sensitivity(held), held.said.money
    rows = tuple(
        (f"{factor:g} times", *(money(m.total.value) for m in compared))
        for factor, compared in methods
    )
    return [
        Heading("Cost sensitivity"),
        figures.sensitivity(methods, sections.in_currency(held), "cost of errors"),
        Grid(
            ("cost of errors", *(m.name for m in methods[0][1])),
            rows,
            caption="Mean total cost per row if every error costs this many times as much beyond "
            "a right answer.",
        ),
    ]
