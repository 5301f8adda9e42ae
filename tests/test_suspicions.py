"""Mistakes in a training table that are told, and tables about which nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import load_heart, load_pima, load_wisconsin
from adacos.tables.suspicions import suspicions


def table(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["age", "dose"])
    return X, (X.age + rng.normal(size=n) > 0).to_numpy().astype(int)


def kinds(X: Any, y: Any) -> dict[str, tuple[str, ...]]:
    return {found.kind: found.covariates for found in suspicions(X, y)}


def test_nothing_is_said_about_a_sound_table() -> None:
    assert kinds(*table()) == {}
    X, y = table()
    assert kinds(X.to_numpy(), y) == {}
    word = np.random.default_rng(1).choice(["a", "b,c", "1,x"], len(y))
    assert kinds(X.assign(word=word, whole=np.arange(len(y)) % 40), y) == {}


def test_the_bundled_tables() -> None:
    assert kinds(*load_pima()[:2]) == {}
    assert kinds(*load_wisconsin()[:2]) == {}
    assert kinds(*load_wisconsin(sample_code=True)[:2]) == {"identifier": ("sample_code",)}
    # 139 patients are ill, and there are 13 covariates.
    assert kinds(*load_heart()[:2]) == {}


def test_few_rows_of_the_rarer_class() -> None:
    X, y = table()
    (found,) = suspicions(X[:30], y[:30])
    rarer = min(y[:30].sum(), (1 - y[:30]).sum())
    assert found.kind == "few_rows"
    assert f"{rarer} rows of the rarer class for 2 covariates" in str(found)
    assert "leave out covariates" in str(found)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("leak", lambda y, rng: y + 0.1 * rng.random(len(y))),
        ("leak", lambda y, rng: -(y * 5.0)),
        ("leak", lambda y, rng: np.where(y == 1, "ward 7", "home")),
        ("leak", lambda y, rng: np.where(y == 1, rng.normal(size=len(y)), np.nan)),
        ("identifier", lambda y, rng: 1000 + rng.permutation(len(y))),
        ("identifier", lambda y, rng: (10**12 + rng.permutation(len(y))).astype(float)),
        ("date", lambda y, rng: [f"2026-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(len(y))]),
        ("date", lambda y, rng: [f"{1 + k % 28}.{1 + k % 12}.26" for k in range(len(y))]),
        ("date", lambda y, rng: [f"2026/3/{1 + k % 28} 10:{k % 60:02}" for k in range(len(y))]),
        ("date", lambda y, rng: 20260000 + 100 * rng.integers(1, 13, len(y)) + 5),
        ("decimal_comma", lambda y, rng: [f"{v:.1f}".replace(".", ",") for v in rng.random(200)]),
        ("decimal_comma", lambda y, rng: ["1", "2,5", "", "-3,25"] * 50),
    ],
)
def test_one_covariate(name: str, column: Any) -> None:
    X, y = table()
    X = X.assign(odd=column(y, np.random.default_rng(2)))
    found = suspicions(X, y)
    assert [(item.kind, item.covariates) for item in found] == [(name, ("odd",))]
    assert str(found[0]).startswith("odd: ")


@pytest.mark.parametrize("classes", [2, 3])
def test_one_word_in_every_row_is_no_leak(classes: int) -> None:
    y = np.arange(300) % classes
    X = pd.DataFrame({"country": ["France"] * 300, "x": np.random.default_rng(0).normal(size=300)})
    assert [item.kind for item in suspicions(X, y)] == []


def test_many_categories_alone_are_no_leak() -> None:
    """In the rows themselves a hundred categories tell two hundred rows apart quite well."""
    X, y = table()
    X = X.assign(village=np.random.default_rng(3).integers(0, 100, len(y)).astype(str))
    assert kinds(X, y) == {}


def test_covariates_of_one_kind_are_told_together() -> None:
    X, y = table()
    X = X.assign(first=np.arange(200), second=np.arange(200)[::-1])
    (found,) = suspicions(X, y)
    assert found.covariates == ("first", "second")
    assert str(found).startswith("first, second: ")
