"""Draw the import layers into docs/architecture.md, between their markers.

    python tools/draw_layers.py           # rewrite the drawing
    python tools/draw_layers.py --check   # only say whether it is up to date

The layers are those of pyproject.toml, which lint-imports enforces; what is said of a room is the
first line of its own docstring. Nothing is stated a second time, so the drawing cannot drift.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers: python tools/draw_layers.py -->", "<!-- end of layers -->"


def layers() -> list[list[str]]:
    """Names on each level, the highest level first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    return [re.findall(r"\w+", level) for level in contract["layers"]]


def purpose(name: str) -> str:
    """First line of the docstring of a module or package."""
    source = ROOT / "src" / "adacos" / name
    file = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    line = docstring.partition("\n")[0].strip()
    # "Tables: what a column is" says its own name, which stands beside it already.
    line = re.sub(rf"^`?{name}s?`?: ", "", line, flags=re.IGNORECASE)
    return line[:1].lower() + line[1:].removesuffix(".")


def drawing() -> str:
    """The layers as a block of text, the highest on top."""
    levels = layers()
    width = max(len(name) for level in levels for name in level)
    lines = []
    for number, level in zip(range(len(levels) - 1, -1, -1), levels, strict=True):
        for position, name in enumerate(level):
            head = f"{number:2}" if position == 0 else "  "
            lines.append(f"{head}  {name:{width}}  {purpose(name)}")
    return "\n".join(lines)


def redrawn(text: str) -> str:
    """A page with the drawing between its markers."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has no {BEGIN} … {END}")
    return f"{head}{BEGIN}\n```text\n{drawing()}\n```\n{END}{tail}"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = redrawn(before)
    if "--check" not in sys.argv:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        raise SystemExit(f"{PAGE.name}: run python tools/draw_layers.py")
