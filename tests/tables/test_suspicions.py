"""Mistakes in a training table that are told, and tables about which nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    FullModelClassifier,
    load_heart,
    load_pima,
    load_wisconsin,
)
from adacos.exceptions import TableWarning
from adacos.tables.suspicions import far_values, suspicions


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
        ("far_value", lambda y, rng: np.append(np.exp(rng.normal(10, 1, len(y) - 1)), 1e9)),
        ("far_value", lambda y, rng: np.append(rng.normal(50, 10, len(y) - 2), [500, 510])),
        ("far_value", lambda y, rng: np.where(rng.random(len(y)) < 0.1, -999, rng.random(len(y)))),
        ("decimal_comma", lambda y, rng: ["1", "2,5", "-3,25", "0,5"] * 45 + [""] * 20),
    ],
)
def test_one_covariate(name: str, column: Any) -> None:
    X, y = table()
    X = X.assign(odd=column(y, np.random.default_rng(2)))
    found = suspicions(X, y)
    assert [(item.kind, item.covariates) for item in found] == [(name, ("odd",))]
    assert str(found[0]).startswith(("odd: ", "odd = "))


@pytest.mark.parametrize("classes", [2, 3])
def test_one_word_in_every_row_is_no_leak(classes: int) -> None:
    y = np.arange(301) % classes
    X = pd.DataFrame({"country": ["France"] * 301, "x": np.random.default_rng(0).normal(size=301)})
    assert [item.kind for item in suspicions(X, y)] == []


def test_many_categories_alone_are_no_leak() -> None:
    """In the rows themselves a hundred categories tell two hundred rows apart quite well."""
    X, y = table()
    X = X.assign(village=np.random.default_rng(3).integers(0, 100, len(y)).astype(str))
    assert kinds(X, y) == {}


def test_covariates_of_one_kind_are_reported_together() -> None:
    X, y = table()
    X = X.assign(first=np.arange(200), second=np.arange(200)[::-1])
    (found,) = suspicions(X, y)
    assert found.covariates == ("first", "second")
    assert str(found).startswith("first, second: ")


TAILS = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "t": lambda rng, n: rng.standard_t(3, n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "income": lambda rng, n: np.exp(rng.normal(10, 1, n)),
    "log-normal, 2": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "pareto": lambda rng, n: rng.pareto(2, n),
    "counts": lambda rng, n: rng.poisson(3, n).astype(float),
    "rare": lambda rng, n: rng.poisson(0.3, n).astype(float),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.9, 0, np.exp(rng.normal(3, 1.5, n))),
}


@pytest.mark.parametrize("tail", TAILS)
def test_slips_are_reported_from_heavy_tails(tail: str) -> None:
    """At a level of 1e-4 two of 600 sound columns may be named, Monte Carlo error included."""
    rng = np.random.default_rng(0)
    sound = sum(len(far_values(TAILS[tail](rng, n))) for n in (60, 200, 1000) for _ in range(200))
    assert sound <= 2
    slips = [far_values(np.append(TAILS[tail](rng, 3000), 1e9)).tolist() for _ in range(20)]
    assert slips == [[1e9]] * 20


@pytest.mark.parametrize("policy", [AdaCOSClassifier, AutoPolicyClassifier])
def test_fit_warns_once_and_check_lists_the_same(policy: Any) -> None:
    X, y = table()
    X = X.assign(number=np.arange(200), typo=np.append(X.age[1:], 1e7))
    quick = {"cv": 2, "strengths": "common"} if policy is AdaCOSClassifier else {}
    fresh = policy(**quick)
    expected = [item.kind for item in fresh.check(X, y)]
    assert expected == ["identifier", "far_value"]
    with pytest.warns(TableWarning) as caught:
        fresh.fit(X, y)
    reported = [w for w in caught if w.category is TableWarning]
    assert len(reported) == 1
    assert reported[0].filename == __file__
    for suspicion in fresh.check(X, y):
        assert str(suspicion) in str(reported[0].message)


def test_a_fitted_policy_lists_values_that_training_did_not_see() -> None:
    X, y = table()
    rng = np.random.default_rng(5)
    X = X.assign(town=rng.choice(["Bonn", "Ulm"], 200), code=rng.integers(0, 2, 200))
    policy = FullModelClassifier(cv=2, strengths="common").fit(X, y)
    assert policy.check(X) == policy.check(X, y) == []
    new = X[:20].copy()
    new.loc[3, "age"] = 1e4
    new.loc[4:6, "town"] = "Jena"
    new.loc[7, "code"] = 7
    found = {item.kind: item for item in policy.check(new)}
    assert {kind: item.covariates for kind, item in found.items()} == {
        "implausible": ("age",),
        "unknown_category": ("town",),
        "unknown_value": ("code",),
    }
    assert str(found["unknown_category"]).startswith("town (3 rows, such as Jena): no category")


def test_a_fitted_policy_lists_misfit() -> None:
    """The classes are told by whether two signs agree, which no sum says."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.choice([-1.0, 1.0], size=(600, 2)), columns=["a", "b"])
    y = (X.a * X.b * rng.choice([1, 1, 1, 1, -1], 600) > 0).to_numpy().astype(int)
    policy = AdaCOSClassifier(cv=2, strengths="common")
    with pytest.warns(TableWarning, match="depends on the value of another"):
        policy.fit(X, y)
    (found,) = policy.check(X, y)
    assert (found.kind, set(found.covariates)) == ("misfit", {"a", "b"})


def test_a_slip_is_named_where_numbers_are_whole_too() -> None:
    """Incomes are as different as identifiers are: neither suspicion hides the other."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": np.append(np.round(rng.lognormal(10, 0.6, 599)), 1e9)})
    y = rng.integers(0, 2, 600)
    found = [item.kind for item in AdaCOSClassifier().check(X, y)]
    assert found == ["identifier", "far_value"]
