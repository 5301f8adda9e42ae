"""What was compared where a policy was chosen automatically."""

from __future__ import annotations

from adacos.document.blocks import Block, Grid, Heading, Text
from adacos.report import words
from adacos.report.held import Held, Mean


def choice(held: Held) -> list[Block]:
    """What was compared, where the policy was chosen automatically."""
    given, said = held.given.unwrapped, held.said
    if given.choice_ is None:
        return []
    first = given.compared_[0].title
    apart = [Mean(item.more, item.more_error) for item in given.compared_]
    return [
        Heading("How the policy was chosen"),
        Text(
            "Each candidate was fitted again without each of five folds of the training rows, with "
            "everything that it chooses, and run on the fold. " + given.reason(said.money)
        ),
        Grid(
            ("candidate", "total cost", f"more than {first}", ""),
            tuple(
                (
                    item.title,
                    words.with_error(held, Mean(item.cost, item.error)),
                    "" if item.title == first else words.with_error(held, apart[number]),
                    "chosen" if item.title == given.choice_ else "",
                )
                for number, item in enumerate(given.compared_)
            ),
            caption="Means per training row ± standard error, compared row by row.",
        ),
    ]
