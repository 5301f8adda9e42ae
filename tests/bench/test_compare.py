"""The guard against slower code: what it calls slower, and that it runs workloads of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import compare  # noqa: E402


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
    seconds, peak = compare.measure(ROOT, "gam_pima")
    assert seconds > 0
    assert peak > 10


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
