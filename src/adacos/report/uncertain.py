"""What depends on uncertain costs, and what the covariates are worth, in a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adacos.document.blocks import Block, Heading, Items
from adacos.document.style import Picture
from adacos.exceptions import TrainingRowsWarning
from adacos.policies import sensitivity_figures as drawn
from adacos.policies.sensitivity import Sensitivity, sensitivity
from adacos.policies.worth import Worth, covariate_worth
from adacos.report.figures import picture
from adacos.report.held import Held

# How closely ranges and prices are found: the page shows four digits, and prices roughly.
_RANGES, _PRICES = 1e-4, 0.02


def uncertain_costs(held: Held, uncertain: Mapping[Any, Any]) -> list[Block]:
    """Costs one at a time, two and all together; then each covariate at its price and at others."""
    about = held.policy, held.table, held.policy.classes_[held.true]
    with warnings.catch_warnings():
        # The page says so at its beginning.
        warnings.simplefilter("ignore", TrainingRowsWarning)
        found = sensitivity(*about, uncertain, tolerance=_RANGES, groups=held.groups)
        worth = covariate_worth(*about, tolerance=_PRICES, groups=held.groups)
    found, worth = _labelled(held, found), _covariates_labelled(held, worth)
    currency = held.said.currency or ""
    first, second = found.tables()
    blocks: list[Block] = [
        Heading("Uncertain costs"),
        _drawn(
            lambda narrow: drawn.tornado(found, None, currency, narrow)[0],
            "tornado",
            "Mean total cost, and covariates acquired per row, where one cost is at either end of "
            "its interval and the policy decides by it.",
        ),
        first,
        second,
        Items(tuple(found.notes())),
    ]
    if found.map is not None:
        both = found.map
        blocks.append(
            _drawn(
                lambda narrow: drawn.regions(both, None, narrow),
                "regions",
                "Which policy is the cheapest at two costs. Numbers are the share of rows that "
                "are asked something else than at the stated costs.",
            )
        )
    return [
        *blocks,
        Heading("Prices of the covariates"),
        _drawn(
            lambda narrow: drawn.worth(worth, None, currency, narrow),
            "worth",
            "What dropping each covariate costs per row, its price, and the highest price at which "
            "some rows acquire it.",
        ),
        worth.table(),
    ]


def _label(held: Held, name: str) -> str:
    """How a cost is called on the page: the label of a covariate, or the name in words."""
    return held.said.label(name) if name in held.policy.encoder_.names else name.replace("_", " ")


def _labelled(held: Held, found: Sensitivity) -> Sensitivity:
    """The sensitivity with the labels of the covariates."""
    costs = tuple(replace(one, name=_label(held, one.name)) for one in found.costs)
    both = found.map
    if both is not None:
        both = replace(both, first=_label(held, both.first), second=_label(held, both.second))
    return replace(found, costs=costs, map=both)


def _covariates_labelled(held: Held, worth: Worth) -> Worth:
    """What the covariates are worth, with their labels."""
    named = (replace(one, covariate=held.said.label(one.covariate)) for one in worth.covariates)
    return replace(worth, covariates=tuple(named))


def _drawn(axis: Callable[[bool], Any], name: str, caption: str) -> Picture:
    """A figure of which the axes are drawn for a wide and for a narrow window."""
    return picture(lambda narrow: axis(narrow).figure, name, caption)
