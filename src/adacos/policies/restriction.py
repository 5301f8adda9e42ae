"""A fitted policy that asks some covariates of every row first, and others of none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from adacos.decision import AnyDecider
from adacos.exceptions import InvalidInputError
from adacos.policies.recalibration import without_promises
from adacos.restricted import restricted
from adacos.tables.description import description_of
from adacos.tables.known import asked_of
from adacos.validation import listed

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy


@dataclass(frozen=True)
class Restriction:
    """What a policy asks of every row, and of none, by a person's wish.

    Parameters
    ----------
    must : tuple of str
        Covariates that every row acquires first, as far as they are available.
    never : tuple of str
        Covariates that no row acquires.

    See Also
    --------
    AdaCOSClassifier.restrict : Gives a policy that has one.

    Examples
    --------
    >>> from adacos import Restriction
    >>> print(Restriction(("Age",), ("BMI", "Insulin")))
    Every row is asked first: Age. No row is asked: BMI, Insulin.
    """

    must: tuple[str, ...]
    never: tuple[str, ...]

    def __str__(self) -> str:
        return self.text({})

    def text(self, labels: dict[str, str]) -> str:
        """Say what is asked.

        Parameters
        ----------
        labels : dict
            What covariates are called, by name.

        Returns
        -------
        str
            One sentence or two.
        """
        parts = (("Every row is asked first", self.must), ("No row is asked", self.never))
        described = [
            f"{what}: {listed([labels.get(name, name) for name in own])}."
            for what, own in parts
            if own
        ]
        return " ".join(described)


def restriction_in_words(policy: BasePolicy) -> str | None:
    """What a policy asks of every row first, and of none; None if it is free."""
    if policy.restriction_ is None:
        return None
    said = description_of(policy)
    return policy.restriction_.text({name: said.label(name) for name in policy.encoder_.names})


def restriction_as_values(policy: BasePolicy) -> dict[str, Any] | None:
    """The same as plain values, with the names of the covariates."""
    found = policy.restriction_
    if found is None:
        return None
    own = {"must": list(found.must), "never": list(found.never)}
    return {**own, "text": restriction_in_words(policy)}


def held_to_lists(policy: BasePolicy, decider: AnyDecider) -> AnyDecider:
    """The decider of a policy with its lists; a policy around another has those of that one."""
    found = policy.restriction_
    if found is None or "policy_" in vars(policy):
        return decider
    return restricted(decider, *asked_of(policy.encoder_, found.must, found.never))


def restricted_policy(policy: BasePolicy, must: Collection[str], never: Collection[str]) -> Any:
    """A copy of a fitted policy with lists in place of those that it had; with none it has none."""
    check_is_fitted(policy)
    names = policy.encoder_.names
    masks = asked_of(policy.encoder_, must, never)
    if policy.mean_budget is not None:
        raise InvalidInputError(
            "must or never",
            "cannot be given to a policy with a mean budget, which training rows have kept",
            f"mean_budget={policy.mean_budget:g}",
            "Pass them to acquire and consultation, or fit without the covariates never asked.",
        )
    found = without_promises(policy)
    lists = (tuple(names[k] for k in np.flatnonzero(mask).tolist()) for mask in masks)
    found.restriction_ = Restriction(*lists) if any(mask.any() for mask in masks) else None
    inside = vars(policy).get("policy_")
    if inside is not None:
        vars(found)["policy_"] = restricted_policy(inside, must, never)
    found.decide_by(policy.decider_.terms)
    return found
