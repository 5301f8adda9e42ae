"""Print the lowest version of every dependency that pyproject.toml allows, as pip constraints.

    python tools/lowest_versions.py > constraints.txt

`make test-lowest` installs these and runs the tests, so that a lower bound is a tested claim. The
tools of the extras `dev` and `docs` are as new as they come, but for the tables that users bring.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

BOUND = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?>=(?P<version>[0-9][^;,\s]*)")
TOOLS = ("dev", "docs")
BROUGHT = ("pandas", "polars")


def lowest(project: dict[str, Any]) -> dict[str, str]:
    """Lower bound of each dependency that users install or bring."""
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, str] = {}
    for extra, requirement in ((e, r) for e, listed in groups.items() for r in listed):
        if requirement.startswith(f"{project['name']}["):  # one extra that includes another
            continue
        bound = BOUND.match(requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} states no lower bound (name>=version)")
        if extra not in TOOLS or bound["name"] in BROUGHT:
            found[bound["name"]] = bound["version"]
    return found


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, version in lowest(project).items():
        print(f"{name}=={version}")
