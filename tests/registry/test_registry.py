"""The registry is the truth: one call brings a policy or a data set everywhere, without edits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from typer.testing import CliRunner

import adacos
from adacos import Costs, load, load_pima, registry, save
from adacos.bench import BenchConfig, FoldTable, asymmetric, run
from adacos.bench.names import OWN_METHODS
from adacos.bench.tables import Cell
from adacos.cli.app import app
from adacos.datasets import Dataset
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.document.style import dataset_title, look
from adacos.exceptions import InvalidInputError, ModelFileError
from adacos.model_fields import stored_by
from adacos.policies.base import BasePolicy
from adacos.registry import (
    DATASETS,
    METHODS,
    POLICIES,
    forgetting,
    register_dataset,
    register_policy,
    saved_classes,
)
from tests.interpreter import fresh

N_ROWS = 60


@dataclass(frozen=True)
class Halves:
    """What the toy policy learns: a value, and the log-odds on either side of it."""

    middle: float
    log_odds: tuple[float, float]


class ToyClassifier(BasePolicy):
    """Acquires the first covariate and answers by the side of its middle a row lies on."""

    saved_fields = {"halves_": Halves}  # noqa: RUF012

    def __init__(self, costs: Costs | None = None) -> None:
        self.costs = costs

    def fit(self, X: Any, y: Any) -> ToyClassifier:
        training = self.begin_fit(X, y)
        first = training.encoded[:, 0]
        middle = float(np.nanmedian(first))
        share = [
            (training.y[side].mean() + 0.01) / 1.02 for side in (first <= middle, first > middle)
        ]
        self.halves_ = Halves(middle, tuple(float(np.log(p / (1 - p))) for p in share))
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> ToyDecider:
        return ToyDecider(terms, self.halves_)


@dataclass(frozen=True, eq=False)
class ToyDecider(ObservedDecider):
    """Asks for the first covariate."""

    halves: Halves

    def decide(self, state: ObservedState) -> Decision:
        seen = state.acquired[:, 0]
        side = (state.values[:, 0] > self.halves.middle).astype(int)
        log_odds = np.where(seen, np.array(self.halves.log_odds)[side], 0.0)
        return Decision(np.where(seen | ~state.available[:, 0], STOP, 0), log_odds)


def load_toy() -> Dataset:
    """A made-up table of two covariates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=N_ROWS) > 0).astype(int)
    return Dataset(X, y, {"first": 1.0, "second": 2.0}, {}, "made up", ("first", "second"))


@pytest.fixture
def toys() -> Iterator[None]:
    with forgetting():
        register_policy("toy", ToyClassifier, title="Toy")
        register_dataset("toys", load_toy, title="Made-up rows")
        yield


def command(*arguments: Any) -> Any:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done


@pytest.fixture
def model(toys: None, tmp_path: Path) -> Path:
    """The toy policy, fitted on the toy data set by commands."""
    command("datasets", "export", "toys", "--out", tmp_path)
    path = tmp_path / "toy.adacos"
    prices = ("--prices", tmp_path / "toys.toml", "--false-positive", 10, "--false-negative", 20)
    data = tmp_path / "toys.csv"
    command("fit", data, "--target", "y", *prices, "--policy", "toy", "--out", path)
    return path


def test_toys_in_fit_save_and_load(model: Path) -> None:
    policy = load(model)
    assert type(policy) is ToyClassifier
    assert isinstance(policy.halves_, Halves)
    table = load_toy()
    costs = Costs(table.prices, false_positive=10, false_negative=20)
    again = ToyClassifier(costs).fit(model_frame(), table.y).acquire(model_frame())
    assert np.array_equal(policy.predict(model_frame()), again.label)
    assert "ToyClassifier" in command("info", model).output


def model_frame() -> Any:
    import pandas as pd

    table = load_toy()
    return pd.DataFrame(table.X, columns=list(table.names))


def test_toys_in_the_report(model: Path) -> None:
    out = model.with_name("report.html")
    data = model.with_name("toys.csv")
    command("report", model, "--data", data, "--target", "y", "--out", out)
    page = out.read_text()
    assert "ToyClassifier" in page
    assert "everyone positive" in page


def test_toys_in_the_service(model: Path) -> None:
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app

    client = TestClient(create_app(load(model)), base_url="http://127.0.0.1")
    assert client.get("/v1/model").json()["policy"] == "ToyClassifier"
    step = client.post("/v1/step", json={"acquired": {}}).json()
    assert step["covariates"] == ["first"], step


def test_toys_in_the_benchmark(toys: None, tmp_path: Path) -> None:
    listed = command("bench", "list").output
    assert "  Toy\n" in listed
    assert "  toys\n" in listed
    assert json.loads(command("datasets", "list", "--json").output)[-1]["name"] == "toys"
    assert dataset_title("toys") == "Made-up rows"
    config = BenchConfig(("toys",), ("toy", "full-model"), (asymmetric(10.0),), tmp_path / "out")
    result = run(config, progress=False)
    assert not result.failures
    cell = Cell("toys", "Toy", "asymmetric", 10.0)
    assert FoldTable(result.outcomes).mean(cell, "covariate_cost") == 1.0


def test_what_was_registered_is_forgotten(toys: None) -> None:
    with forgetting():
        register_dataset("more", load_toy)
        assert "more" in DATASETS
    assert "more" not in DATASETS
    assert "toy" in POLICIES


def test_a_name_is_registered_once(toys: None) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        register_policy("toy", type("Another", (BasePolicy,), {}))
    with pytest.raises(InvalidInputError, match="class name"):
        register_policy("another", type("ToyClassifier", (BasePolicy,), {}))
    with pytest.raises(InvalidInputError, match="name"):
        register_dataset("toys", load_toy)
    assert "another" not in POLICIES


def test_a_file_holds_registered_classes_only(model: Path) -> None:
    # The policy's own values are declared by the policy: without it nobody knows them.
    del POLICIES["toy"]
    with pytest.raises(ModelFileError, match="does not know"):
        load(model)
    POLICIES["toy"] = registry.Policy("toy", ToyClassifier)
    assert isinstance(load(model), ToyClassifier)


def test_a_value_belongs_to_the_policy_that_declares_it(tmp_path: Path) -> None:
    X = load_toy().X
    gam = adacos.LogisticGAM().fit(X, load_toy().y)
    gam.halves_ = Halves(0.0, (0.0, 1.0))
    with pytest.raises(InvalidInputError, match="Halves"):
        save(gam, tmp_path / "gam.adacos")


# What the library brings along


def test_rows_name_what_is_there() -> None:
    for policy in POLICIES.values():
        cls = policy.load()
        assert issubclass(cls, BasePolicy)
        assert cls.__name__ == policy.class_name
        assert {kind.__name__ for kind in stored_by(cls).values()} == set(stored_by(cls))
    for home in saved_classes().values():
        assert registry.resolve(home).__name__ in saved_classes()
    assert set(OWN_METHODS) <= set(METHODS)
    for source in DATASETS.values():
        assert callable(registry.resolve(source.loader))
        assert source.bundled == (source.obtain is None)


def test_target_recall_is_said_of_those_that_stop_by_it() -> None:
    for method in METHODS.values():
        policy = method.make(Costs())
        # Forward selection needs the cost of a false negative, which a target recall replaces.
        able = policy.stops_by_rule and policy.sequence != "forward"
        assert method.recall is able, method.name


def test_every_method_has_a_look_of_its_own() -> None:
    looks = [tuple(look(name).values()) for name in METHODS]
    assert len(set(looks)) == len(looks)


def test_the_registry_loads_nothing_heavy() -> None:
    code = "import sys, adacos.registry; print(*[m for m in sys.modules if m.startswith('adacos')])"
    loaded = set(fresh(code).split())
    assert not {"adacos.policies", "adacos.rivals", "adacos.datasets", "adacos.costs"} & loaded


def test_methods_of_one_family_take_over_one_fit() -> None:
    """The first method of a family is fitted, the others are derived from it."""
    families: dict[str, list[Any]] = {}
    for method in METHODS.values():
        families.setdefault(method.family, []).append(method)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    costs = Costs([1.0, 2.0], false_positive=10, false_negative=10)
    shared = [members for members in families.values() if len(members) > 1]
    assert len(shared) == 2
    for first, *others in shared:
        fitted = first.make(costs).set_params(cv=2, strengths="common").fit(X, y)
        for other in others:
            assert len(other.make(costs).from_model(fitted).acquire(X)) == 60


def test_boosting_on_the_best_fixed_set_is_a_method() -> None:
    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=100, false_negative=400)
    method = METHODS["Boosting (best fixed set)"]
    boosted = method.make(costs)
    few = HistGradientBoostingClassifier(max_iter=3, random_state=0)
    result = boosted.set_params(estimator=few, cv=2).fit(X[:200], y[:200]).acquire(X[200:])
    assert len({result.covariates(row) for row in range(len(result))}) == 1
    assert not method.recall
