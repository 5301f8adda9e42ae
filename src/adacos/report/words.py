"""Sentences of a report, and its words explained."""

from __future__ import annotations

from collections.abc import Collection

from adacos.policies.base import BasePolicy
from adacos.policies.picture import has_tree
from adacos.policies.recosting import OWN
from adacos.policies.sequence_policy import asked_in_order
from adacos.report.held import BOOSTED, Held, Mean, MethodCost
from adacos.tables.description import description_of
from adacos.validation import listed

_EXPLAINED = {
    OWN: "the policy that this page is about.",
    "AdaCOS": "decides row by row, along one order of covariates, whether the next ones are worth "
    "their cost.",
    "COS": "acquires one set of covariates for every row: the one with the lowest expected total "
    "cost.",
    "full model": "acquires every covariate of every row.",
    BOOSTED: "acquires one set of covariates for every row and answers by gradient boosting of "
    "scikit-learn. The set is the one of least cross-validated total cost along an order of "
    "forward selection, found on the training rows that were given.",
    "everyone positive": "acquires nothing and answers positive for every row.",
    "everyone negative": "acquires nothing and answers negative for every row.",
}
PURPOSE = (
    "For research use. The policy acquires covariates one after the other. It stops when the next "
    "ones cost more than the wrong answers that they are expected to prevent."
)
DIFFERENCES = (
    " The difference of two classes at a value is what it adds to the log-odds of one against the "
    "other."
)
_COMMON = (
    "total cost: what was paid for covariates, plus the cost of the answer if it is wrong.",
    "expected cost of a wrong answer: what the best answer costs on average if it is wrong, given "
    "what is known (Bayes risk).",
    "standard error: how much the mean would typically differ on other rows of the same kind.",
)
_OF_TWO = (
    "sensitivity (recall): share of the positive rows that are answered positive; specificity: "
    "share of the negative rows that are answered negative.",
    "log-odds: logarithm of the odds, 0 at a probability of one half; the contributions of "
    "covariates are summed.",
    "net benefit: positives found per row, less false alarms and costs, all in units of one "
    "positive found.",
)
_OF_MANY = (
    "recall of a class: share of its rows that are answered with it.",
    "log-odds of two classes: logarithm of the ratio of their probabilities; the contributions of "
    "covariates are summed.",
)


def explained(names: Collection[str], two_classes: bool) -> tuple[str, ...]:
    """What the words of the page mean; of the methods only those that occur."""
    own = tuple(f"{name}: {text}" for name, text in _EXPLAINED.items() if name in names)
    return (*own, *_COMMON[:2], *(_OF_TWO if two_classes else _OF_MANY), *_COMMON[2:])


def described(held: Held) -> list[str]:
    """What the description says of the model as a whole."""
    said = held.said
    parts = {
        "Outcome": said.outcome,
        "Intended use": said.intended_use,
        "Source": said.citation,
    }
    return [f"{lead}: {text}" for lead, text in parts.items() if text]


def part_in_fitting(held: Held) -> str:
    """Whether the rows had a part in fitting, which makes every figure too optimistic."""
    if not held.trained_on:
        return "They should not have been used for fitting."
    return (
        f"The model was trained on {held.trained_on:,} of them. It errs less on these than on new "
        "rows, so every figure on this page is too optimistic. Use other rows."
    )


def class_in_words(held: Held, number: int) -> str:
    """Of which class, in words."""
    label = held.policy.classes_.tolist()[number]
    return f"with {held.said.class_name(label)}" if held.said.classes else f"of class {label}"


def shares(held: Held) -> str:
    """Of which class the rows are."""
    parts = [
        f"{(held.true == k).mean():.1%} {class_in_words(held, k)}"
        for k in range(len(held.class_names))
    ]
    grouped = ""
    if held.groups is not None:
        grouped = f" in {held.groups.max() + 1:,} groups"
    return f"{len(held.true):,} held-out rows{grouped}: {', '.join(parts)}."


def errors(held: Held) -> list[str]:
    """What wrong answers cost, where that takes no table."""
    if not held.has_cut_off:
        return []
    (c00, c01), (c10, c11) = held.policy.cost_table_.matrix.tolist()
    said = held.said
    text = f"False positive {said.money(c01)}"
    if not held.missed_is_priced:
        return [f"{text}, false negative not given."]
    text += f", false negative {said.money(c10)}"
    right = f", true negative {said.money(c00)}, true positive {said.money(c11)}"
    return [text + (right if c00 or c11 else "") + "."]


def implied_cost(policy: BasePolicy) -> str:
    """What a missed positive counts as under a target recall; empty where that was stated."""
    cost = policy.false_negative_cost_
    if cost is None:
        return ""
    return (
        f"A missed positive counts as {description_of(policy).money(cost)}, which follows from the "
        "target recall: nobody stated that cost."
    )


def model(held: Held, digest: str, version: str) -> str:
    """Which model it is."""
    policy, acquires, kind = held.policy, held.given.unwrapped, type(held.given).__name__
    if held.given.wrapped is not held.given:
        kind += f" around {type(held.given.wrapped).__name__}"
    chosen = ""
    if acquires.choice_ is not None:
        chosen = f", which chose {acquires.choice_}"
    rows = policy.training_rows_ if policy.sequence_model is not None else None
    learned = "" if rows is None else f", learned from {len(rows.digests):,} rows"
    return f"Model {digest} ({kind}{chosen}, adacos {version}){learned}."


def order(held: Held) -> str:
    """In which order covariates are asked for, and who is answered at once."""
    at_once = float((held.result.acquired.sum(axis=1) == 0).mean())
    if has_tree(held.policy):
        first = held.said.label(held.policy.tree_.places[0].question)
        return (
            f"Every row is asked {first}; what comes next depends on the values. The covariates "
            "that most rows acquire come first:"
        )
    if not asked_in_order(held.policy):
        return (
            f"The order differs from row to row; {at_once:.1%} of the rows are answered before "
            "anything is acquired."
        )
    free = held.policy.model_.sequence.n_free
    first = "before anything is acquired" if free == 0 else "after the free covariates"
    at_once = float((held.result.stage == 0).mean())
    return (
        f"Covariates are asked for in this order; {at_once:.1%} of the rows are answered {first}."
    )


def boosting(held: Held, compared: Collection[MethodCost]) -> list[str]:
    """What boosting on a fixed set acquires and costs, or how to have it compared."""
    boosted = held.boosted
    if boosted is None:
        return [
            "Boosting on the best fixed set is compared as well if the training rows are given "
            "(--training FILE)."
        ]
    more = next(m.more for m in compared if m.name == BOOSTED)
    money, wide = held.said.money, 1.96 * more.error
    asked = listed(held.said.label(name) for name in boosted.policy.covariates_) or "nothing"
    among = f", of which the model learned from {boosted.learned_from:,}"
    among = "" if boosted.learned_from is None else among
    apart = f"{money(abs(more.value))} {'more' if more.value >= 0 else 'less'}"
    return [
        f"Boosting on the best fixed set, fitted on {boosted.rows:,} training rows{among}, "
        f"acquires {asked}. It costs {apart} than the policy, compared row by row (95% interval of "
        f"the difference {money(more.value - wide)} to {money(more.value + wide)})."
    ]


def with_error(held: Held, mean: Mean) -> str:
    """A mean and its standard error."""
    # Spaces at which no line is broken.
    error = f"±\N{NO-BREAK SPACE}{mean.error:.2f}"
    return f"{held.said.money(mean.value)}\N{NO-BREAK SPACE}{error}"
