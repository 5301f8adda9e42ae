"""The code that results depend on: the library's, and that of methods from elsewhere.

Digests of it belong to the name of a result, so that results of other code are not reused.
"""

from __future__ import annotations

import ast
import hashlib
import sysconfig
from collections.abc import Iterator
from functools import cache, partial
from importlib import resources
from pathlib import Path
from types import FunctionType
from typing import Any

from adacos.costs import Costs
from adacos.registry import Method

_ROOT = Path(str(resources.files("adacos")))
_INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
# Parts of the package that cannot change what a method decides.
_NOT_METHODS = ("bench", "cli", "service", "document", "report", "batch.py", "demo.py")


@cache
def library_digest() -> str:
    """Digest of the library's code that decides."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        if path.relative_to(_ROOT).parts[0] not in _NOT_METHODS:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def code_digest(method: Method) -> str:
    """Digest of the files that a method from elsewhere is written in; empty for our own.

    They are the files of its function and classes, and the modules next to them that they import.
    """
    make: Any = method.make
    while isinstance(make, partial):
        make = make.func
    functions = [make, *_functions(type(method.make(Costs())))]
    sources = {Path(f.__code__.co_filename) for f in functions if isinstance(f, FunctionType)}
    files = [f for f in sources if f.is_file() and not is_ours(f) and not is_installed(f)]
    digest = hashlib.sha256()
    for path in sorted(_with_neighbours(files)):
        digest.update(path.read_bytes())
    return digest.hexdigest() if files else ""


def is_ours(path: str | Path) -> bool:
    """Whether a file belongs to this library."""
    return Path(path).is_relative_to(_ROOT)


def is_installed(path: str | Path) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return any(Path(path).is_relative_to(folder) for folder in _INSTALLED)


def _functions(cls: type) -> Iterator[Any]:
    for base in cls.__mro__:
        yield from vars(base).values()


def _with_neighbours(files: list[Path]) -> set[Path]:
    """The files, and all files next to them that they import, by whatever way."""
    modules: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in modules:
            modules.add(path)
            waiting += _imported_from_folder(path)
    return modules


def _imported_from_folder(path: Path) -> list[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names |= {module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)}
    candidates = []
    for name in names - {""}:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            place = path.parent.joinpath(*parts[:length])
            candidates += [place.with_suffix(".py"), place / "__init__.py"]
    return [candidate for candidate in candidates if candidate.is_file()]
