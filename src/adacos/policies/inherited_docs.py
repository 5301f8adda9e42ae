"""What policies have in common is documented once: a docstring inherits entries of its bases."""

from __future__ import annotations

import re
from inspect import cleandoc, signature


def inherit_entries(cls: type) -> None:
    """Complete the parameters and attributes in a docstring by those that bases describe.

    A class describes what is new or other than in its bases. Parameters stand in the order of the
    signature. A docstring without a section Parameters stays as it is.
    """
    doc = cleandoc(cls.__doc__ or "")
    if _head("Parameters") not in doc:
        return
    attributes = _entries(cls, "Attributes")
    if _head("Attributes") not in doc:
        own = _section(doc, "Parameters")
        doc = doc.replace(own, f"{own}\n\n{_head('Attributes')}")
    for title, entries in (("Parameters", _in_order(cls)), ("Attributes", attributes)):
        before, head, after = doc.partition(_head(title))
        own = _section(doc, title)
        doc = before + head + "\n".join(entries.values()) + after.removeprefix(own)
    cls.__doc__ = doc


def _in_order(cls: type) -> dict[str, str]:
    described = _entries(cls, "Parameters")
    return {name: described[name] for name in signature(cls).parameters if name in described}


def _entries(cls: type, title: str) -> dict[str, str]:
    """Entries of a section by name, those of the class in place of those of its bases."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        entries = re.split(r"\n(?=\S)", _section(cleandoc(base.__doc__ or ""), title))
        found |= {entry.partition(" :")[0]: entry for entry in entries if entry}
    return found


def _section(doc: str, title: str) -> str:
    return doc.partition(_head(title))[2].partition("\n\n")[0]


def _head(title: str) -> str:
    return f"{title}\n{'-' * len(title)}\n"
