"""The Python examples of README and documentation run, and print what is shown below them."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from adacos.exceptions import AdacosError

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/rivals.md", "docs/recall.md", "docs/tutorial-data-scientist.md")
# A block of Python and, if one follows at once, the block of what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for code, printed in blocks:
        output = StringIO()
        with redirect_stdout(output):
            try:
                exec(compile(code, page, "exec"), names)
            except AdacosError as error:
                if not printed:
                    raise
                print(f"{type(error).__name__}: {error}")
        assert not printed or output.getvalue().split() == printed.split()
