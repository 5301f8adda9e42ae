"""Sections of a report for any number of classes: what the policy does, what it looks at."""

from __future__ import annotations

from adacos.document.blocks import Block, Grid, Heading, Text
from adacos.policies.picture import has_tree
from adacos.policies.sequence_policy import asked_in_order
from adacos.report import figures, numbers, words
from adacos.report.held import Held, MethodCost
from adacos.report.importances import covariate_importances
from adacos.report.tree_figure import policy_tree


def policy(held: Held) -> list[Block]:
    """Who is asked what, in a picture and in numbers."""
    policy, said = held.policy, held.said
    names = {name: said.label(name) for name in policy.encoder_.names}
    answers = [said.class_name(label) for label in policy.decisions_.tolist()]
    if has_tree(policy):
        picture = policy_tree(numbers.tree(policy, held.encoded, held.result), answers, said.money)
    else:
        picture = figures.policy_flow(numbers.flow(held.result, policy), names, answers)
    free = policy.model_.sequence.n_free if asked_in_order(policy) else 0
    stops = numbers.stops(held)
    incomplete = any(stop.missing > 0 for stop in stops)
    rows = tuple(
        (
            f"{rank}. {said.label(stop.covariate)}",
            said.money(stop.cost),
            f"{stop.acquired:.1%}",
            f"{stop.stopped:.1%}" if rank >= free else "",
            *([f"{stop.missing:.1%}"] if incomplete else []),
        )
        for rank, stop in enumerate(stops, start=1)
    )
    header = ["covariate", "cost", "rows that acquire it", "rows that stop after it"]
    blocks: list[Block] = [
        Heading("What the policy does"),
        picture,
        Text(words.order(held)),
        Grid((*header, "rows without it") if incomplete else tuple(header), rows),
    ]
    if incomplete:
        blocks.append(
            Text(
                "A row without a value cannot acquire it and continues with the next covariate, "
                "which is why fewer rows may acquire a covariate than one after it."
            )
        )
    return blocks + _panels(held)


def _panels(held: Held) -> list[Block]:
    panels = numbers.panels(held.policy)
    if not panels:
        return []
    said = held.said
    return [
        Text(
            "Some covariates share a cost, which is part of the cost of each: the first of them "
            "that is acquired pays its full cost, every later one its cost less the shared cost, "
            "or the cost next to its name."
        ),
        Grid(
            ("panel", "shared cost", "members"),
            tuple(
                (
                    p.name,
                    "" if p.shared is None else said.money(p.shared),
                    ", ".join(
                        said.label(name) + (f" {said.money(cost)}" if p.shared is None else "")
                        for name, cost in p.later
                    ),
                )
                for p in panels
            ),
        ),
    ]


def importances(held: Held) -> list[Block]:
    """What each covariate is worth."""
    importances = covariate_importances(held.policy, held.table, held.result)
    said = held.said
    rows = tuple(
        (said.label(i.covariate), f"{i.share:.1%}", said.money(i.cost), said.money(i.drop))
        for i in importances
        if i.share > 0
    )
    if not rows:
        return []
    return [
        Heading("What each covariate is worth"),
        Grid(
            ("covariate", "rows that acquire it", "costs", "lowers the cost of errors by"),
            rows,
            caption="Means over all held-out rows. The last column is how much higher the expected "
            "cost of a wrong answer would be if the covariate were unavailable; where it is not "
            "above 0, nothing is lost without it.",
        ),
    ]


def cost_curve(held: Held, own: MethodCost) -> list[Block]:
    """The cost along the set sequence, for a policy that has one."""
    policy = held.policy
    if not asked_in_order(policy):
        return []
    names, curve = numbers.cost_curve(held, policy)
    unit = f"mean {held.counted}{in_currency(held)}"
    picture = figures.cost_curve(names, *curve, own.total.value, unit)
    return [Heading("Expected cost along the sequence"), picture]


def in_currency(held: Held) -> str:
    """The currency in brackets, if there is one."""
    return f" ({held.said.currency})" if held.said.currency else ""
