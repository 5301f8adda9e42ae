"""Model files with changed contents are refused, or decide exactly as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.mutants import MODELS, REFUSED, Mutants


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [50, pytest.param(2_500, marks=pytest.mark.study)])
def test_mutants_are_refused_or_decide_as_before(count: int, name: str, tmp_path: Path) -> None:
    """Of each of four models: 200 in all, and 10,000 as a study."""
    counts, wrong = Mutants(tmp_path, name).fates(count, seed=count)
    print(f"{count} mutants of {name}: {dict(counts)}")
    assert not wrong
    assert counts[REFUSED] > 0.5 * count
