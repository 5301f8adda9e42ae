"""Model files with changed contents are refused, or decide exactly as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.mutants import MODELS, REFUSED, Mutants

# Of these every leaf is changed in every run of the tests; of the others it takes too long.
QUICK = ("Planning", "COS", "three classes")
study = pytest.mark.study


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [50, pytest.param(2_500, marks=study)])
def test_mutants_are_refused_or_decide_as_before(count: int, name: str, tmp_path: Path) -> None:
    """Of each of eight models: 400 in all, and 20,000 as a study."""
    mutants = Mutants(tmp_path, name)
    counts, wrong = mutants.fates(mutants.drawn(count, seed=count))
    print(f"{count} mutants of {name}: {dict(counts)}")
    assert not wrong
    assert counts[REFUSED] > 0.5 * count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else study) for name in MODELS]
)
def test_another_value_anywhere_is_refused_or_changes_nothing(name: str, tmp_path: Path) -> None:
    """Every number, text and empty place of a description, one after the other."""
    mutants = Mutants(tmp_path, name)
    counts, wrong = mutants.fates(mutants.of_every_leaf())
    print(f"{counts.total()} mutants of {name}, one for each leaf: {dict(counts)}")
    assert not wrong
    assert counts[REFUSED] > 0.5 * counts.total()
