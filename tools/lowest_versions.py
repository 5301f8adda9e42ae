"""Print the lowest version of every dependency that pyproject.toml allows, as pip constraints.

    python tools/lowest_versions.py > constraints.txt

`make test-lowest` installs these and runs the tests, so that a lower bound is a tested claim.
Tools that only develop the library (the extras `dev` and `docs`) are left as they come.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

BOUND = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?>=(?P<version>[0-9][^;,\s]*)")
TOOLS = ("dev", "docs")


def lowest(project: dict[str, object]) -> dict[str, str]:
    """Lower bound of each dependency and of each extra that users install."""
    requirements: list[str] = list(project["dependencies"])  # type: ignore[call-overload]
    for extra, listed in project["optional-dependencies"].items():  # type: ignore[attr-defined]
        requirements += [] if extra in TOOLS else listed
    found = {}
    for requirement in requirements:
        bound = BOUND.match(requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} states no lower bound (name>=version)")
        found[bound["name"]] = bound["version"]
    return found


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, version in lowest(project).items():
        print(f"{name}=={version}")
