"""A decider from elsewhere does everything that those of the library do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import Costs, load, load_pima, save
from adacos.bench import BenchConfig, FoldTable, asymmetric, run
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError, ModelFileError
from adacos.registry import POLICIES, forgetting, register_policy
from tests.deciders.own_decider import EvidenceClassifier
from tests.policy_checks import check_consultation, check_pickle, check_policy, same
from tests.rivals.problems import MIXED_COSTS, mixed_table


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with forgetting():
        register_policy("evidence", EvidenceClassifier, title="Evidence")
        yield


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any, Any]:
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=500)
    return X, y, EvidenceClassifier(costs).fit(X, y)


@pytest.mark.parametrize("budget", [None, 4.0])
def test_it_keeps_the_promises_of_every_policy(budget: float | None) -> None:
    X, y = mixed_table()
    policy = EvidenceClassifier(MIXED_COSTS, budget)
    check_policy(policy, X, y)
    check_consultation(policy.fit(X, y), X.head(20))
    result = policy.acquire(X)
    check_pickle(policy, X, result)
    assert budget is None or (result.cost <= budget).all()
    assert len({result.covariates(row) for row in range(len(result))}) > 1


def test_its_reasons_are_reported(fitted: Any) -> None:
    _, _, policy = fitted
    assert "cheapest next step" in str(policy.consultation().next().explanation)


def test_threads_share_it(fitted: Any) -> None:
    X, _, policy = fitted
    masks = [np.arange(X.shape[1]) == k for k in range(X.shape[1])]
    alone = [policy.acquire(X, known=known) for known in masks]
    with ThreadPoolExecutor(8) as pool:
        shared = list(pool.map(lambda known: policy.acquire(X, known=known), masks))
    for result, expected in zip(shared, alone, strict=True):
        same(result, expected)


def test_it_is_saved_served_and_reported_on(fitted: Any, tmp_path: Path) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    from adacos.service.app import create_app
    from adacos.service.settings import Settings

    X, _, policy = fitted
    save(policy, tmp_path / "model.adacos")
    loaded = load(tmp_path / "model.adacos")
    same(loaded.acquire(X), policy.acquire(X))
    service = create_app(loaded, Settings(rate_limit=0))
    client = testclient.TestClient(service, base_url="http://localhost")
    result, row = policy.acquire(X), X.iloc[0]
    asked: dict[str, float] = {}
    while (step := client.post("/v1/step", json={"acquired": asked}).json())["action"] == "acquire":
        asked |= {name: float(row[name]) for name in step["covariates"]}
    assert tuple(asked) == result.covariates(0)
    assert step["probability"] == pytest.approx(result.probability[0])
    expected_by = CliRunner().invoke(app, ["info", str(tmp_path / "model.adacos"), "--json"])
    assert json.loads(expected_by.stdout)["policy"] == "EvidenceClassifier"


def test_a_file_says_that_its_policy_has_to_be_registered(fitted: Any, tmp_path: Path) -> None:
    save(fitted[2], tmp_path / "model.adacos")
    del POLICIES["evidence"]
    with pytest.raises(ModelFileError, match="import the module that calls register_policy"):
        load(tmp_path / "model.adacos")


@pytest.mark.parametrize("name", ["evidence", "Evidence"])
def test_it_is_benchmarked_by_either_name(tmp_path: Path, name: str) -> None:
    config = BenchConfig(("pima",), (name,), (asymmetric(10.0),), tmp_path / "out", folds=(0,))
    assert config.methods == ("Evidence",)
    result = run(config, progress=False)
    assert not result.failures
    assert [cell.method for cell in FoldTable(result.outcomes).cells()] == ["Evidence"]


def test_a_name_that_is_nearly_right_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="Did you mean Evidence"):
        BenchConfig(("pima",), ("evidense",), (asymmetric(10.0),), tmp_path / "out")
