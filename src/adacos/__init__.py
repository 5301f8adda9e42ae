"""adacos: which covariate to acquire next, and when to stop and classify.

Names are imported on first use, so that `import adacos` costs nothing. They are listed once, in
`__init__.pyi`, for type checkers and for this module.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

__version__ = "0.1.0"

_STUB = (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode()
_NAMED = re.findall(r"^from (\S+) import (\w+) as", _STUB, re.M)
_MODULES = {name: module for module, name in _NAMED}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    import difflib

    by_case = {known.casefold(): known for known in __all__}
    meant = difflib.get_close_matches(name.casefold(), by_case, n=1, cutoff=0.8)
    question = f". Did you mean {by_case[meant[0]]}?" if meant else ""
    raise AttributeError(f"module 'adacos' has no attribute {name!r}{question}")


def __dir__() -> list[str]:
    return sorted(__all__)
