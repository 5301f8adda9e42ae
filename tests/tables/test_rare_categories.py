"""A model of a column with many categories: files, consultations, card, alarms and commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from adacos import COSClassifier, Costs, load, save
from adacos.card import model_card
from adacos.cli.app import app
from adacos.exceptions import TableWarning

COSTS = Costs({"town": 1.0, "age": 1.0}, false_positive=50, false_negative=50)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, Any]:
    """Two large towns that say much, and 150 of five rows or four."""
    rng = np.random.default_rng(0)
    villages = [f"v{k // 5:03d}" for k in range(745)]
    towns = np.array([*np.repeat(["Rome", "Oslo"], 120), *villages, "solo"])
    X = pd.DataFrame({"town": towns, "age": rng.integers(20, 80, len(towns))})
    p = np.where(towns == "Rome", 0.9, np.where(towns == "Oslo", 0.1, 0.5))
    return X, (rng.random(len(X)) < p).astype(int)


@pytest.fixture(scope="module")
def policy(table: tuple[pd.DataFrame, Any]) -> Any:
    with pytest.warns(TableWarning, match=r"town \(152\): more categories than 100"):
        return COSClassifier(COSTS, cv=2, strengths="common").fit(*table)


def test_a_rare_name_is_entered_as_it_is_written(policy: Any, tmp_path: Path) -> None:
    save(policy, tmp_path / "model.adacos")
    for fitted in (policy, load(tmp_path / "model.adacos")):
        answers = {}
        for town in ("solo", "other", "Nowhere"):
            consultation = fitted.consultation({"town": town})
            answers[town] = consultation.next().explanation.stop_now
            assert bool(consultation.warnings) == (town == "Nowhere")
            assert consultation.values["town"] == town
        assert answers["solo"] == answers["other"] != answers["Nowhere"]
    assert load(tmp_path / "model.adacos").decider_.digest == policy.decider_.digest


def test_card_and_alarms_know_what_is_grouped(policy: Any, table: Any) -> None:
    (town, age) = model_card(policy)["covariates"]
    assert "other" in town["categories"]
    assert "solo" in town["grouped"]
    assert len(town["categories"]) + len(town["grouped"]) == 152 + 1
    assert age["grouped"] == []
    new = table[0].tail(40).assign(town="solo")
    assert not [s for s in policy.check(new) if "town" in s.covariates]
    strange = policy.check(new.assign(town="Nowhere"))
    assert [s.kind for s in strange if "town" in s.covariates] == ["unknown_category"]


def test_commands(table: Any, tmp_path: Path) -> None:
    X, y = table
    X.assign(ill=y).to_csv(tmp_path / "rows.csv", index=False)
    X.tail(9).to_csv(tmp_path / "new.csv", index=False)
    model, out = str(tmp_path / "m.adacos"), str(tmp_path / "out.csv")
    prices = ["--default-price", "1", "--false-positive", "50", "--false-negative", "50"]
    arguments = ["fit", str(tmp_path / "rows.csv"), "--target", "ill", *prices, "--out", model]
    done = CliRunner().invoke(app, [*arguments, "--policy", "cos"])
    assert done.exit_code == 0, done.output
    assert "more categories than 100" in done.output
    done = CliRunner().invoke(app, ["score", model, str(tmp_path / "new.csv"), out, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["unusual"] == {}
    done = CliRunner().invoke(app, ["explain", model, "--row", "town=solo"])
    assert done.exit_code == 0, done.output
    assert "never seen" not in done.output
