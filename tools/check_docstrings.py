"""Validate the docstrings of everything exported, by numpydoc's rules.

    python tools/check_docstrings.py

What is exported is what stands in `__all__` of the modules named in pyproject.toml, under
[tool.adacos.docstrings]; public methods of exported classes count as well. The rules, and the
names that are not held to them yet, stand there too: a name leaves the list with one line.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parents[1]


def exported(modules: list[str]) -> Iterator[str]:
    """Full names of exported objects and of the public methods that their classes define."""
    seen = set()
    for module_name in modules:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            if name.startswith("_") or id(getattr(module, name)) in seen:
                continue
            if isinstance(getattr(module, name), int):
                continue  # a constant has no docstring of its own
            seen.add(id(getattr(module, name)))
            yield f"{module_name}.{name}"
            if inspect.isclass(getattr(module, name)):
                yield from (
                    f"{module_name}.{name}.{method}" for method in methods(getattr(module, name))
                )


def methods(cls: type[Any]) -> Iterator[str]:
    """Public methods and properties that come from this library.

    A method that overrides a documented one may say in one line what is different.
    """
    for name in dir(cls):
        if name.startswith("_") or name.endswith("_request"):
            continue
        member = inspect.getattr_static(cls, name)
        member = member.fget if isinstance(member, property) else member
        function = getattr(member, "__func__", member)
        if not (inspect.isfunction(function) and function.__module__.startswith("adacos.")):
            continue
        above = [base for base in cls.__mro__ if name in vars(base)][1:]
        shown_above = any("Returns" in (vars(base)[name].__doc__ or "") for base in above)
        if not (shown_above and len((function.__doc__ or "").splitlines()) == 1):
            yield name


def main() -> int:
    """Print what breaks a rule; the exit status says whether anything did."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rules = rules["tool"]["adacos"]["docstrings"]
    names = list(exported(rules["modules"]))
    broken, used = 0, set()
    for name in names:
        pending = [pattern for pattern in rules["pending"] if fnmatch(name, pattern)]
        checks = set(rules["checks"])
        checks |= {"EX01"} if name.rpartition(".")[0] in rules["modules"] else set()
        errors = [(code, text) for code, text in validate(name)["errors"] if code in checks]
        if pending:
            used |= set(pending) if errors else set()
            continue
        broken += len(errors)
        for code, text in errors:
            print(f"{name}: {code} {text}")
    for pattern in set(rules["pending"]) - used:
        broken += 1
        print(f"{pattern}: passes now; remove it from the pending names in pyproject.toml")
    print(f"{len(names)} docstrings checked, {broken} complaints")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
