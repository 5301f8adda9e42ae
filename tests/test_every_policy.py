"""Every registered policy, ours or a rival, goes through commands, files, consultation and service.

A policy that is added to the registry is checked here without an edit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from adacos import Costs, load, save
from adacos.cli.app import app
from adacos.consultation.steps import Acquire
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.registry import POLICIES, Policy

N_ROWS = 120


def rows() -> pd.DataFrame:
    """A number, a count, a yes or no and a word, one of them sometimes missing."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=N_ROWS)
    frame = pd.DataFrame(
        {
            "dose": np.round(x, 2),
            "visits": rng.poisson(2 + (x > 0)),
            "smokes": np.where(rng.random(N_ROWS) < 0.4, "true", "false"),
            "town": rng.choice(["north", "south"], size=N_ROWS),
        }
    )
    frame["ill"] = (x + 0.7 * rng.normal(size=N_ROWS) > 0.3).astype(int)
    frame.loc[::15, "visits"] = np.nan
    return frame


def covariates() -> pd.DataFrame:
    """The rows as the commands read them."""
    return rows().drop(columns="ill").assign(smokes=lambda frame: frame["smokes"] == "true")


PRICES = {"dose": 1.0, "visits": 2.0, "smokes": 0.5, "town": 0.5}


def command(*arguments: Any) -> Any:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done


# Whatever of these a policy has, so that fitting takes no time.
QUICK = {"cv": 2, "n_trees": 6, "n_lambdas": 2, "n_init": 1, "strengths": "common"}


@pytest.fixture(scope="module", params=POLICIES.values(), ids=POLICIES.keys())
def fitted(request: Any, tmp_path_factory: Any) -> tuple[Policy, Path, Path]:
    """A fitted policy: its row of the registry, the model file, the table."""
    policy: Policy = request.param
    try:
        estimator = policy.make(Costs(PRICES, false_positive=10, false_negative=20))
    except MissingExtraError as error:
        pytest.skip(str(error))
    own = estimator.get_params()
    estimator.set_params(**{name: value for name, value in QUICK.items() if name in own})
    folder = tmp_path_factory.mktemp(policy.name)
    data, model = folder / "rows.csv", folder / "model.adacos"
    rows().to_csv(data, index=False)
    save(estimator.fit(covariates(), rows()["ill"]), model)
    return policy, model, data


@pytest.mark.parametrize("name", ["full", "dwsm", "optimal"])
def test_fit_by_name(name: str, tmp_path: Path) -> None:
    data, model = tmp_path / "rows.csv", tmp_path / "model.adacos"
    rows().to_csv(data, index=False)
    prices = [x for price in PRICES.items() for x in ("--prices", "{}={}".format(*price))]
    errors = ("--false-positive", 10, "--false-negative", 20)
    arguments = ("--target", "ill", *prices, *errors, "--policy", name, "--out", model)
    command("fit", data, *arguments)
    assert type(load(model)) is POLICIES[name].load()


def test_a_recall_is_refused_by_name_where_it_cannot_be_taken(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    rows().to_csv(data, index=False)
    arguments = ["--target", "ill", "--default-price", "1", "--false-positive", "1"]
    arguments += ["--policy", "dwsm", "--target-recall", "0.9"]
    done = CliRunner().invoke(app, ["fit", str(data), *arguments])
    assert isinstance(done.exception, InvalidInputError)
    assert "dwsm" in str(done.exception)


def test_card_and_report(fitted: tuple[Policy, Path, Path]) -> None:
    policy, model, data = fitted
    card = json.loads(command("info", model, "--json").stdout)
    assert card["policy"] == policy.class_name
    assert policy.class_name in command("info", model).output
    out = model.with_name("report.html")
    command("report", model, "--data", data, "--target", "ill", "--out", out)
    assert "What the policy does" in out.read_text()


def test_score_says_what_acquire_says(fitted: tuple[Policy, Path, Path]) -> None:
    _, model, data = fitted
    out = model.with_name("scored.csv")
    command("score", model, data, out)
    scored = pd.read_csv(out)
    result = load(model).acquire(covariates())
    assert scored["label"].tolist() == result.label.tolist()
    np.testing.assert_allclose(scored["cost"], result.cost)


def test_a_consultation_decides_as_acquire_does(fitted: tuple[Policy, Path, Path]) -> None:
    policy = load(fitted[1])
    table = covariates().head(12)
    result = policy.acquire(table)
    for i in range(len(table)):
        values = table.iloc[i]
        consultation = policy.consultation()
        step = consultation.next()
        while isinstance(step, Acquire):
            for name in step.covariates:
                if pd.isna(values[name]):
                    consultation.unavailable(name)
                else:
                    consultation.observe(**{name: values[name]})
            step = consultation.next()
        assert step.label == result.label[i]
        assert step.probability == pytest.approx(result.probability[i], rel=1e-9)
        assert consultation.paid == pytest.approx(result.cost[i])


def test_service(fitted: tuple[Policy, Path, Path]) -> None:
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app

    policy, model, _ = fitted
    client = TestClient(create_app(load(model)), base_url="http://127.0.0.1")
    card = client.get("/v1/model")
    assert card.status_code == 200, card.text
    assert card.json()["policy"] == policy.class_name
    step = client.post("/v1/step", json={"acquired": {}})
    assert step.status_code == 200, step.text
