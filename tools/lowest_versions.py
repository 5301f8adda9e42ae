"""Print the lowest version of every dependency that pyproject.toml allows, as pip constraints.

    python tools/lowest_versions.py > constraints.txt

`make test-lowest` installs these and runs the tests, so that a lower bound is a tested claim.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

BOUND = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?>=(?P<version>[0-9][^;,\s]*)")


def lowest(project: dict[str, Any]) -> dict[str, str]:
    """Lower bound of each dependency, those of the extras included."""
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found: dict[str, str] = {}
    for requirement in (requirement for group in groups for requirement in group):
        if requirement.startswith(f"{project['name']}["):  # one extra that includes another
            continue
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
