"""Commands read a sheet of Excel where they read a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.tables.excel_files import book


def test_fit_and_score_read_a_sheet(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2)).round(3)
    y = (x[:, 0] + rng.normal(size=120) > 0).astype(int)
    rows = [["id", "a", "b", "ill"], *np.column_stack([range(120), x, y]).tolist()]
    data, model = book(tmp_path / "t.xlsx", ["nothing"], Cohort=rows), str(tmp_path / "m.adacos")
    costs = ["--default-price", "1", "--false-positive", "10", "--false-negative", "10"]
    target = ["--target", "ill", "--drop", "id"]
    code, out, _ = run("fit", f"{data}#Cohort", *target, *costs, "--out", model)
    assert code == 0
    assert "120 rows" in out
    assert run("score", model, f"{data}#Cohort", tmp_path / "o.csv", "--keep", "id")[0] == 0
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[2].startswith("1,")
    assert len(lines) == 121
