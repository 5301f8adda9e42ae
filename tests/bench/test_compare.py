"""The guard against slower code: what it calls slower, and that it runs workloads of a checkout."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import compare, packages, speed  # noqa: E402


def test_noise_is_not_slower_and_slower_is() -> None:
    rng = np.random.default_rng(0)
    before = rng.lognormal(sigma=0.1, size=6)
    middle, low, high = compare.ratio(before.tolist(), before.tolist())
    assert low == middle == high == 1.0
    noisy = before * rng.lognormal(sigma=0.3, size=6)
    assert compare.ratio(before.tolist(), noisy.tolist())[1] < 1.2
    slow = 1.5 * before * rng.lognormal(sigma=0.05, size=6)
    middle, low, high = compare.ratio(before.tolist(), slow.tolist())
    assert 1.2 < low < middle < high
    assert 1.4 < middle < 1.6


def test_a_checkout_is_measured() -> None:
    seconds, peak, loss = compare.measure(ROOT, "gam_pima")
    assert seconds > 0
    assert peak > 10
    assert np.isnan(loss)


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no checkout" in done.stderr


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{speed.BEGIN}\nold\n{speed.END}\nafter\n")
    for _ in range(2):
        speed.write(page, ["| a |", "|---|"])
        before, _, rest = page.read_text().partition(speed.BEGIN)
        table, _, after = rest.partition(speed.END)
        assert (before, after) == ("before\n", "\nafter\n")
        caption = r"Measured on \d{4}-\d\d-\d\d at commit [0-9a-f]{7,}(-dirty)?\."
        assert re.fullmatch(rf"\n\| a \|\n\|---\|\n\n{caption}\n", table)


def test_a_peer_that_is_not_there_is_none() -> None:
    assert speed.interpreter("no_such_package") is None
    assert speed.interpreter("numpy") == sys.executable


def test_peers_are_given_our_objectives() -> None:
    """What is written for them has its minimum where our fits are."""
    table = speed.pima()
    rows = speed.arrays(table, "equal_strengths")
    _, least = packages.adacos_equal_strengths(rows)
    coef = np.zeros(rows["columns"].shape[1])
    assert least < packages.penalised(rows, float(np.log(0.5)), coef)
    path = speed.arrays(table, "group_lasso")
    path["lams"] = path["lams"][:3]
    _, mean = packages.adacos_group_lasso(path)
    share = path["y"].mean()
    null = np.zeros((3, path["columns"].shape[1]))
    at_zero = packages.path_objective(path, np.full(3, np.log(share / (1 - share))), null)
    assert mean <= at_zero
    assert len(path["lams"]) == 3
