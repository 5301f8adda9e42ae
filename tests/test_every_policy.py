"""The contract: what every registered policy, ours or a rival, must do.

scikit-learn's checks, no peeking, costs that add up, known values, consultation, bad parameters,
files, pickles, commands and service. A policy that is added to the registry is checked here without
an edit; `tests/policy_cases.py` says with which parameters.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator
from typer.testing import CliRunner

from adacos import Costs, load, load_pima, save
from adacos.cli.app import app
from adacos.exceptions import InvalidInputError
from adacos.registry import POLICIES, Policy
from tests.policy_cases import Case, cases
from tests.policy_checks import (
    check_consultation,
    check_file,
    check_parameters,
    check_parameters_of_the_fit,
    check_pickle,
    check_policy,
    check_result,
    missing,
)
from tests.rivals.problems import MIXED_COSTS, THREE_COSTS, mixed_table, three_table

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


def scikit_learn_checks() -> list[Any]:
    """Every check with every policy that it applies to."""
    found = []
    for parameter in cases(variants=False):
        (case,) = parameter.values
        for estimator, check in estimator_checks_generator(case.make(), mark="skip"):
            name = f"{parameter.id}-{check.func.__name__}"
            found.append(pytest.param(estimator, check, id=name, marks=parameter.marks))
    return found


@pytest.mark.parametrize(("estimator", "check"), scikit_learn_checks())
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def pima() -> tuple[Any, Any, Costs]:
    """An array without missing values."""
    X, y, prices, *_ = load_pima(as_frame=False)
    costs = Costs(list(prices.values()), false_positive=50, false_negative=200)
    return X[::4], y[::4], costs


@pytest.mark.parametrize("case", cases(variants=False))
def test_a_fit_that_fails_leaves_the_policy_as_it_was(case: Case) -> None:
    """Not fitted before: not fitted afterwards. Fitted before: it decides as it did."""
    X, y, costs = pima()
    policy = case.make(costs)
    one_class, wide = np.zeros(len(y), dtype=int), np.column_stack([X, X])
    for rows, classes in ((X, one_class), (wide, y), (None, y)):
        with pytest.raises((ValueError, TypeError)):
            policy.fit(rows, classes)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            policy.acquire(X)
    before = policy.fit(X, y).acquire(X)
    for rows, classes in ((X, one_class), (wide, y), (None, y)):
        with pytest.raises((ValueError, TypeError)):
            policy.fit(rows, classes)
        after = policy.acquire(X)
        np.testing.assert_array_equal(after.order, before.order)
        np.testing.assert_array_equal(after.label, before.label)


@pytest.mark.parametrize("case", cases())
def test_promises_on_a_mixed_table(case: Case) -> None:
    """Numbers, categories, missing values, a free covariate, a panel, gains for right answers."""
    check_policy(case.make(MIXED_COSTS), *mixed_table())


def takes_many_classes(case: Case) -> bool:
    return bool(case.policy.load().takes_many_classes)


@pytest.mark.parametrize("case", cases())
def test_promises_of_three_classes(case: Case) -> None:
    """The same where a policy takes more than two classes; one that does not says so."""
    X, y = three_table(100)
    if takes_many_classes(case):
        check_policy(case.make(THREE_COSTS), X, y)
        check_consultation(case.make(THREE_COSTS).fit(X, y), X.head(12))
    else:
        with pytest.raises(InvalidInputError, match="AdaCOSClassifier"):
            case.make(THREE_COSTS).fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("case", cases(variants=False))
def test_a_handful_of_rows_is_fitted_or_refused_in_words(case: Case, n_classes: int) -> None:
    """Some classes have one row only; values vary or do not."""
    rng = np.random.default_rng(0)
    costs = Costs([1.0, 1.0, 1.0], misclassification=10 * (1 - np.eye(n_classes)))
    fitted = 0
    for n in (n_classes, n_classes + 1, 6):
        for X in (rng.normal(size=(n, 3)), rng.integers(2, size=(n, 3)) * 1.0, np.ones((n, 3))):
            try:
                policy = case.make(costs).fit(X, np.arange(n) % n_classes)
            except InvalidInputError:
                continue
            check_result(policy, X, policy.acquire(X))
            fitted += 1
    assert fitted > 0 or (n_classes > 2 and not takes_many_classes(case))


@pytest.mark.parametrize("case", cases(variants=False))
def test_members_of_a_panel_may_have_discounts_of_their_own(case: Case) -> None:
    """Each row pays by its order of acquisition, asked step by step as well, and after a file."""
    X, y = mixed_table()
    costs = Costs(
        {"age": 1.0, "blood": 3.0, "sugar": 4.0, "kind": 2.0, "noise": 2.0},
        false_positive=60,
        false_negative=90,
        panels={"draw": {"blood": 2.5, "sugar": 0.5, "age": 0.0}},
    )
    policy = case.make(costs).fit(X, y)
    assert policy.cost_table_.excess is not None
    result = policy.acquire(X)
    check_result(policy, X, result)
    check_consultation(policy, X.head(8))
    check_file(policy, X, result)


@pytest.mark.parametrize("case", cases(variants=False))
def test_promises_on_an_array(case: Case) -> None:
    X, y, costs = pima()
    check_policy(case.make(costs), X, y)


@pytest.mark.parametrize("case", cases())
def test_a_consultation_decides_as_acquire_does(case: Case) -> None:
    X, y = mixed_table()
    check_consultation(case.make(MIXED_COSTS).fit(X, y), X.head(30))


@pytest.mark.parametrize("case", cases())
def test_a_pickle_decides_the_same_and_holds_no_training_values(case: Case) -> None:
    X, y = mixed_table()
    policy = case.make(MIXED_COSTS).fit(X, y)
    check_pickle(policy, X, policy.acquire(X))


@pytest.mark.parametrize("case", cases(variants=False))
def test_set_params_after_fit_changes_nothing_that_is_stated(case: Case) -> None:
    X, y = mixed_table()
    policy = case.make(MIXED_COSTS).fit(X, y)
    check_parameters_of_the_fit(policy, X)


@pytest.mark.parametrize("case", cases(variants=False))
def test_wrong_parameters_are_refused_by_name(case: Case) -> None:
    X, y = mixed_table(40)
    check_parameters(partial(case.make, MIXED_COSTS), X, y)


# Commands, files and service


@pytest.fixture(scope="module", params=cases(variants=False))
def fitted(request: Any, tmp_path_factory: Any) -> tuple[Policy, Path, Path]:
    """A fitted policy: its row of the registry, the model file, the table."""
    policy = request.param.policy
    estimator = request.param.make(Costs(PRICES, false_positive=10, false_negative=20))
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


def test_a_recall_needs_both_costs_where_it_does_not_replace_one(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    rows().to_csv(data, index=False)
    arguments = ["--target", "ill", "--default-price", "1", "--false-positive", "1"]
    arguments += ["--policy", "dwsm", "--target-recall", "0.9"]
    done = CliRunner().invoke(app, ["fit", str(data), *arguments])
    assert isinstance(done.exception, InvalidInputError)
    assert "dwsm acquires by both costs" in str(done.exception)


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


def test_service(fitted: tuple[Policy, Path, Path]) -> None:
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app

    policy, model, _ = fitted
    loaded = load(model)
    client = TestClient(create_app(loaded), base_url="http://127.0.0.1")
    card = client.get("/v1/model")
    assert card.status_code == 200, card.text
    assert card.json()["policy"] == policy.class_name
    table = covariates().head(16)
    result = loaded.acquire(table)
    assert missing(table).any()
    for row, values in enumerate(table.astype(object).to_dict("records")):
        gone = [name for name, value in values.items() if pd.isna(value)]
        request: dict[str, Any] = {"acquired": {}, "unavailable": gone}
        while True:
            answer = client.post("/v1/step", json=request)
            assert answer.status_code == 200, answer.text
            step = answer.json()
            if step["action"] == "classify":
                break
            request["acquired"] |= {name: values[name] for name in step["covariates"]}
        assert tuple(request["acquired"]) == result.covariates(row)
        assert step["label"] == result.label[row]
        assert step["probability"] == pytest.approx(result.probability[row], rel=1e-9)
        assert step["cost"] == pytest.approx(result.cost[row])
