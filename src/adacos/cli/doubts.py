"""What `adacos fit` doubts about its training rows, and about what a description says of them."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

import numpy as np

from adacos.cli.common import say
from adacos.cli.training import TrainingRows
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.tables.description import Description, check_description
from adacos.tables.sampling import SHARES_OPTIONS, SHARES_REMEDY
from adacos.tables.weights import (
    COPIES_OPTIONS,
    COPIES_REMEDY,
    VISITS_OPTIONS,
    VISITS_REMEDY,
)
from adacos.validation import listed

# What Python offers against a doubt, and what the command line does.
_REMEDIES = {
    SHARES_REMEDY: SHARES_OPTIONS,
    COPIES_REMEDY: COPIES_OPTIONS,
    VISITS_REMEDY: VISITS_OPTIONS,
}
# Fits that take longer, in seconds, are announced.
_LONG = 60


def report_doubts(estimator: BasePolicy, rows: TrainingRows, seconds: float) -> list[str]:
    """Print what looks like a mistake and what will take long, once, on standard error."""
    found = estimator.check(rows.table, rows.y, groups=rows.groups)
    answered = set() if rows.weights is None else {"class_shares"}
    doubts = [_in_options(str(one)) for one in found if one.kind not in answered]
    if rows.codes:
        doubts.append(
            f"{listed(rows.codes)}: digits with zeros in front are codes, kept as categories. "
            "Where they are numbers, name them with --numeric."
        )
    if seconds > _LONG:
        doubts.append(
            f"{rows.table.shape[1]} covariates: this will take about {seconds / 60:.0f} minutes. "
            "Leave out those that hardly matter with --drop."
        )
    for message in doubts:
        say(f"warning: {message}", err=True)
    return doubts


def _in_options(text: str) -> str:
    """A remedy as the command line offers it."""
    for remedy, option in _REMEDIES.items():
        text = text.replace(remedy, option)
    return text


def with_classes(said: Description, rows: TrainingRows) -> Description:
    """The description by the classes of the model, where it names them as the table does."""
    of_model = {name: label for label, name in rows.class_names.items()}
    if not set(said.classes) <= set(of_model):
        return said
    return replace(said, classes={of_model[name]: said.classes[name] for name in said.classes})


def check_described(
    said: Description, covariates: list[str], rows: TrainingRows, positive: str | None
) -> None:
    """Refuse words for what the model will not have, before it is learned."""
    if rows.class_names and not set(said.classes) <= set(rows.class_names):
        raise InvalidInputError(
            "description.classes",
            f"must name 0 and 1, or {rows.class_names['0']} and {rows.class_names['1']}",
            listed(said.classes),
            f"--positive {quote(str(positive))} sets that class against all others.",
        )
    check_description(said, covariates, np.unique(rows.y).tolist())
