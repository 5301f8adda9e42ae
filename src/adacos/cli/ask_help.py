"""What may be typed in a consultation in the terminal, and how open questions are listed."""

from __future__ import annotations

from collections.abc import Sequence

from adacos.consultation.steps import Alternative
from adacos.tables.description import Description

WHILE_ASKED = """\
Type the value (yes and no do for 1 and 0), or
  skip           it is not available
  order          it is ordered, its result comes later
  undo           take the last answer back
  why            show the reasons, in numbers
  other          show all open questions, with what they cost
  because TEXT   say why you depart from what is advised
  NAME=VALUE     enter another value instead
  stop           get the result now
  help, quit"""
WHILE_CONFIRMED = """\
This value was given before the questions began, and looks like a slip. Type
  the same value   it is right
  another value    it takes its place
  quit             end without a result"""
AFTERWARDS = """\
Press enter to finish, or type
  NAME=VALUE     enter a further value
  undo           take the last answer back
  because TEXT   say why you departed from what was advised
  why            show the reasons, in numbers"""


def listed(alternatives: Sequence[Alternative], said: Description) -> list[str]:
    """Lines with what each open question costs, and what is expected in all."""
    rows = [("question", "cost", "expected total cost")]
    for one in alternatives:
        total = one.expected_total_cost
        in_all = "–" if total is None else said.money(total)
        rows.append((said.label(one.covariate), said.money(one.cost), in_all))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{name:<{widths[0]}}  {cost:>{widths[1]}}  {in_all:>{widths[2]}}"
        for name, cost, in_all in rows
    ]
    if any(one.others for one in alternatives):
        lines.append(
            "This policy asks in one order: a total includes the questions that come before."
        )
    return lines
