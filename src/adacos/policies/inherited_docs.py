"""What policies have in common is documented once: a docstring inherits entries of its bases."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from inspect import cleandoc, isfunction, signature
from operator import or_
from typing import Any


def inherit_entries(cls: type) -> None:
    """Complete the docstrings of a class and of its public methods by what its bases describe.

    A class describes parameters and attributes that are new or other than in its bases, a method
    those that are so compared with the method that it overrides, and what it returns only where
    that is something else. Parameters stand in the order of the signature. A class docstring
    without a section Parameters stays as it is.
    """
    own = _sections(cls.__doc__)
    if "Parameters" in own:
        parameters, attributes = (
            reduce(or_, [_entries(base.__doc__, title) for base in reversed(cls.__mro__)])
            for title in ("Parameters", "Attributes")
        )
        own["Parameters"] = _in_order(cls, parameters)
        own["Attributes"] = "\n".join(attributes.values())
        cls.__doc__ = _joined(own, first=("", "Parameters", "Attributes"))
    for name, method in vars(cls).items():
        above = next((vars(base)[name] for base in cls.__mro__[1:] if name in vars(base)), None)
        if isfunction(method) and isfunction(above) and not name.startswith("_"):
            _inherit_sections(method, above)


def _inherit_sections(method: Callable[..., Any], above: Callable[..., Any]) -> None:
    own, inherited = _sections(method.__doc__), _sections(above.__doc__)
    if "Returns" in inherited:
        entries = _entries(above.__doc__, "Parameters") | _entries(method.__doc__, "Parameters")
        own = {"Returns": inherited["Returns"]} | own | {"Parameters": _in_order(method, entries)}
        method.__doc__ = _joined(own, first=("", "Parameters", "Returns"))


def _in_order(described: Callable[..., Any], entries: dict[str, str]) -> str:
    # One entry may describe several parameters.
    of_each = {name: entry for key, entry in entries.items() for name in key.split(", ")}
    names = signature(described).parameters
    return "\n".join(dict.fromkeys(of_each[name] for name in names if name in of_each))


def _entries(doc: str | None, title: str) -> dict[str, str]:
    """Entries of a section by name."""
    entries = re.split(r"\n(?=\S)", _sections(doc).get(title, ""))
    return {re.split(r" :|\n", entry)[0].lstrip("*"): entry for entry in entries if entry}


def _sections(doc: str | None) -> dict[str, str]:
    """Sections of a docstring by title, what comes before all of them under no title."""
    start, *parts = re.split(r"\n\n(.+)\n-+\n", cleandoc(doc or ""))
    return {"": start} | dict(zip(parts[::2], parts[1::2], strict=True))


def _joined(sections: dict[str, str], first: tuple[str, ...]) -> str:
    """The sections as a docstring, these first, and no empty one."""
    ordered = {title: sections[title] for title in first} | sections
    heads = {title: f"{title}\n{'-' * len(title)}\n" if title else "" for title in ordered}
    return "\n\n".join(heads[title] + text for title, text in ordered.items() if text)
