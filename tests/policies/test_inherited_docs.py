"""What several policies have in common is documented once, and shown with each."""

from __future__ import annotations

import re
from ast import literal_eval
from inspect import signature
from typing import Any

import pytest

from adacos.policies.base import BasePolicy
from adacos.policies.inherited_docs import inherit_entries
from adacos.registry import POLICIES
from adacos.validation import DEPRECATED


class First:
    """A base.

    Parameters
    ----------
    a : int, default=1
        Of the base,
        in two lines.
    b : int, default=2
        Not of the other.

    Attributes
    ----------
    x_ : int
        Of the base.
    """

    def __init__(self, a: int = 1, b: int = 2) -> None:
        self.a, self.b = a, b

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn.

        Parameters
        ----------
        X : table
            The rows.
        y : array
            Not of the other.

        Returns
        -------
        self
            The base.
        """


class Second(First):
    """What differs.

    Parameters
    ----------
    c : int, default=3
        New.

    See Also
    --------
    First : The base.
    """

    def __init__(self, c: int = 3, a: int = 1) -> None:
        self.c, self.a = c, a

    def fit(self, X: Any, groups: Any = None) -> Any:  # type: ignore[override]
        """Learn otherwise.

        Parameters
        ----------
        groups : array
            New.

        Raises
        ------
        ValueError
            If it cannot.
        """


def test_a_docstring_is_completed_in_the_order_of_the_signature() -> None:
    inherit_entries(Second)
    assert Second.__doc__ == (
        "What differs.\n\nParameters\n----------\nc : int, default=3\n    New.\n"
        "a : int, default=1\n    Of the base,\n    in two lines.\n\n"
        "Attributes\n----------\nx_ : int\n    Of the base.\n\n"
        "See Also\n--------\nFirst : The base."
    )


def test_a_method_is_completed_by_the_one_that_it_overrides() -> None:
    inherit_entries(Second)
    assert Second.fit.__doc__ == (
        "Learn otherwise.\n\nParameters\n----------\nX : table\n    The rows.\n"
        "groups : array\n    New.\n\nReturns\n-------\nself\n    The base.\n\n"
        "Raises\n------\nValueError\n    If it cannot."
    )


def test_one_without_parameters_stays_as_it_is() -> None:
    class Plain(First):
        """Nothing more."""

    inherit_entries(Plain)
    assert Plain.__doc__ == "Nothing more."


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_documents_its_parameters_and_what_fit_leaves(name: str) -> None:
    """Once each, in the order of the signature and with the defaults that they have."""
    cls: type[BasePolicy] = POLICIES[name].load()
    parameters: dict[str, Any] = dict(signature(cls).parameters)
    gone = re.search(r"^(\w+(?:, \w+)*) : deprecated$", cls.__doc__ or "", re.MULTILINE)
    for name in gone[1].split(", ") if gone else ():
        assert parameters.pop(name).default == DEPRECATED
    described = re.findall(r"^(\w+) : (?:.*default=(.+))?", cls.__doc__ or "", re.MULTILINE)
    names = [name for name, _ in described]
    assert names[: len(parameters)] == list(parameters)
    assert len(set(names)) == len(names)
    assert {"classes_", "encoder_", "cost_table_", "rule_"} <= set(names)
    for name, default in described[: len(parameters)]:
        assert literal_eval(default) == parameters[name].default
