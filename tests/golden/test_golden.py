"""The quick part of `make golden`: a few policies on two tables decide as the file says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from tests.golden.lines import differences, golden_cases, lines_of, read
from tests.golden.record import hashed

# The policies' own parameters, which hold for one more release.
pytestmark = pytest.mark.filterwarnings("ignore:.*call TargetRecallClassifier:FutureWarning")

QUICK = {"adacos": ("pima",), "cos": ("three",), "full": ("pima",), "dwsm": ("pima",)}


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_decided_otherwise(name: str) -> None:
    """`make golden` compares all of it, and the words; `make golden UPDATE=1` records it again."""
    (case,) = [case for case in golden_cases() if case.policy.name == name][:1]
    lines = lines_of(case, QUICK[name])
    found = {line: value for line, value in lines.items() if not line.endswith("| words")}
    assert found
    expected = {line: value for line, value in read().items() if line in found}
    assert not differences(expected, found)


def test_a_hash_sees_ten_digits_and_no_more() -> None:
    assert hashed(np.array([1.0, 1e-14])) == hashed([1.0 + 1e-13, 0.0])
    assert hashed(np.array([1.0])) != hashed(np.array([1.0 + 1e-8]))
    assert hashed(np.array(["a", "b"])) != hashed(np.array(["b", "a"]))
    assert hashed([1]) != hashed([True])
