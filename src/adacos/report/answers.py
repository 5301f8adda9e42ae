"""Who is answered what, and how right: counts by class, and the section of the report on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.card import rule_in_words
from adacos.document.blocks import Block, Grid, Heading, Items, Text
from adacos.kernels.groups import share_interval
from adacos.policies.many_classes import resolved_target_recall
from adacos.report.held import Held
from adacos.typing import Bools, Ints


class Share(NamedTuple):
    """Rows counted among others, with the 95% interval of their share, see `share_interval`."""

    found: int
    among: int
    low: float
    high: float

    @classmethod
    def of(cls, hits: Bools, groups: Ints | None = None) -> Share:
        """The share of the rows that are hits, each by itself or in groups."""
        return cls(int(hits.sum()), len(hits), *share_interval(hits, groups, 0.95))

    @property
    def value(self) -> float:
        """The share; NaN of none."""
        return self.found / self.among if self.among else np.nan


class ClassLine(NamedTuple):
    """How one class fares: how many of its rows are found, and of its answers right.

    `cost` is the mean misclassification cost of its rows, NaN of none.
    """

    name: str
    recall: Share
    right: Share
    cost: float


def confusion(held: Held) -> Ints:
    """Number of rows by true class and answer."""
    counts = np.zeros(held.charged.shape, dtype=np.intp)
    np.add.at(counts, (held.true, held.label), 1)
    return counts


def class_lines(held: Held) -> list[ClassLine]:
    """Every class in order."""
    counts = confusion(held)
    rows = counts.sum(axis=1)
    wrong = (counts * held.charged).sum(axis=1)

    def among(members: Bools) -> Ints | None:
        return None if held.groups is None else held.groups[members]

    return [
        ClassLine(
            name,
            Share.of(held.label[held.true == k] == k, among(held.true == k)),
            Share.of(held.true[held.label == k] == k, among(held.label == k)),
            float(wrong[k] / rows[k]) if rows[k] else np.nan,
        )
        for k, name in enumerate(held.class_names)
    ]


def answers(held: Held) -> list[Block]:
    """The recall of the positive class, or with three or more classes of each of them."""
    if held.decides:
        return _by_decision(held)
    blocks = _recall(held) if held.has_cut_off else _by_class(held)
    certificate = held.policy.certificate_
    if certificate is None:
        return blocks
    return [
        *blocks,
        Text(
            "The certificate was obtained on calibration rows when the model was fitted, "
            "not on the held-out rows:"
        ),
        Items(tuple(str(certificate).splitlines())),
    ]


def _recall(held: Held) -> list[Block]:
    recall, target = class_lines(held)[1].recall, resolved_target_recall(held.policy)
    lines = [
        f"{recall.found} of {recall.among} held-out positives were called positive: "
        f"sensitivity (recall) {recall.value:.1%}, "
        f"{held.interval} {recall.low:.1%} to {recall.high:.1%}."
        if recall.among
        else "There is no positive among these rows."
    ]
    if held.policy.certificate_ is None and target is not None:
        lines.append(f"Target recall {target:.1%}; no certificate was asked for.")
    elif held.policy.certificate_ is None:
        lines.append("No recall was certified: the policy follows the costs of errors.")
    return [Heading("Sensitivity (recall)"), Items(tuple(lines))]


def decision_shares(held: Held) -> dict[str, float]:
    """Share of the rows for which each decision is taken."""
    shares = confusion(held).sum(axis=0) / len(held.true)
    return dict(zip(held.policy.decisions_.tolist(), shares.tolist(), strict=True))


def _by_decision(held: Held) -> list[Block]:
    """How many rows of each class each decision is taken for, and what that costs."""
    grid = _counted(held)
    described = rule_in_words(held.policy)
    each = ", ".join(f"{name} {share:.1%}" for name, share in decision_shares(held).items())
    return [
        Heading("Classes and decisions"),
        Items((described, f"Share of the rows: {each}.")),
        grid,
    ]


def _counted(held: Held) -> Grid:
    """Rows by true class and answer, with what they cost."""
    counts, money = confusion(held), held.said.money
    paid = counts * held.charged / len(held.true)
    rows = []
    for k, name in enumerate(held.class_names):
        cells = (
            f"{n:,}" if cost == 0 else f"{n:,} ({money(cost)})"
            for n, cost in zip(counts[k].tolist(), paid[k].tolist(), strict=True)
        )
        rows.append((name, *cells, money(float(paid[k].sum()))))
    rows.append(("all", *map(money, paid.sum(axis=0).tolist()), money(float(paid.sum()))))
    marks = tuple((k, k + 1, "good") for k in range(len(counts)) if not held.decides)
    return Grid(
        ("true class", *(held.answered(name) for name in held.label_names), "cost"),
        tuple(rows),
        "Held-out rows, and in brackets what they add to the mean misclassification cost.",
        marks,
    )


def _by_class(held: Held) -> list[Block]:
    money = held.said.money
    by_class = tuple(
        (
            line.name,
            *_cells_of_share(line.recall),
            *_cells_of_share(line.right),
            money(line.cost) if line.recall.among else "–",
        )
        for line in class_lines(held)
    )
    return [
        Heading("Classes and answers"),
        _counted(held),
        Grid(
            ("class", "recall", "95% interval", "right where answered", "95% interval", "cost"),
            by_class,
            caption="Share of a class's rows that are answered with it, share of the answers with "
            "it that are right, and the mean misclassification cost of its rows.",
        ),
    ]


def _cells_of_share(share: Share) -> tuple[str, str]:
    if not share.among:
        return "none", ""
    return (
        f"{share.found:,} of {share.among:,} ({share.value:.1%})",
        f"{share.low:.1%} to {share.high:.1%}",
    )
