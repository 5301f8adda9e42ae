"""The misfit alarm: raised where what one value says depends on another, else quiet."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from adacos import AdaCOSClassifier, Costs
from adacos.card import model_card
from adacos.policies.estimates import estimate_costs
from adacos.policies.misfit import LEAST_ROWS, advice, misfit_by_cell
from adacos.tables.encoder import TableEncoder
from tests.policies.branching_table import COSTS, table

QUICK = {"cv": 3, "strengths": "common"}


def encoded(frame: pd.DataFrame):
    import narwhals as nw

    wrapped = nw.from_native(frame, eager_only=True)
    encoder = TableEncoder.fit(wrapped, tuple(frame.columns))
    return encoder, encoder.transform(wrapped)


def test_cells_are_counted_right() -> None:
    """Against groups of a data frame."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=300), "b": rng.integers(0, 2, 300), "c": rng.choice(["u", "v"], 300)}
    )
    y = ((frame["b"] == 1) ^ (frame["c"] == "u")).to_numpy().astype(float)
    cells = misfit_by_cell(*encoded(frame), y, np.full(300, 0.5))
    assert {(c.first.covariate, c.second.covariate) for c in cells} == {("b", "c")}
    assert len(cells) == 4
    for cell in cells:
        rows = (frame["b"] == cell.first.value) & (frame["c"] == cell.second.value)
        assert cell.rows == rows.sum() >= LEAST_ROWS
        assert cell.found == pytest.approx(y[rows].mean())
        assert cell.expected == 0.5
        assert not cell.low <= 0.5 <= cell.high


def test_true_probabilities_raise_no_alarm_beyond_the_nominal_share() -> None:
    """An additive world with its own probabilities, 200 times."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
        p = expit(frame.to_numpy() @ [1.0, -1.0, 0.5, 0.0])
        y = (rng.random(200) < p).astype(float)
        alarms += bool(misfit_by_cell(*encoded(frame), y, p))
    assert alarms <= 0.05 * 200


def test_a_fitted_additive_problem_is_quiet() -> None:
    """With models that are learned, too: at most one alarm in ten repetitions."""
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(250, 3))
        y = (rng.random(250) < expit(X @ [1.5, -1.0, 0.5])).astype(int)
        costs = Costs([1.0, 1.0, 1.0], false_positive=20, false_negative=30)
        policy = AdaCOSClassifier(costs, **QUICK).fit(X, y)
        estimate_costs(policy, X, y)
        alarms += model_card(policy)["misfit"]["advice"] is not None
    assert alarms <= 1


@pytest.mark.filterwarnings("ignore")
def test_new_rows_are_held_against_what_few_training_rows_could_show() -> None:
    """3,000 new rows of an additive problem, fitted to 250: quiet; with an interaction, found.

    The stated confidence is 95%. Without the error of training most of these would be alarms.
    """
    alarms, without, found = 0, 0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        for strength in (0.0, 1.2):
            X = rng.normal(size=(3250, 4))
            reported = strength * np.sign(X[:, 0] * X[:, 1])
            log_odds = 1.2 * X[:, 0] - X[:, 1] + 0.8 * np.sin(2 * X[:, 2]) + reported
            y = (rng.random(3250) < expit(log_odds)).astype(int)
            costs = Costs([1.0] * 4, false_positive=20, false_negative=30)
            policy = AdaCOSClassifier(costs, **QUICK).fit(X[:250], y[:250])
            new = policy._encode(X[250:])
            named = [item for item in policy.check(X[250:], y[250:]) if item.kind == "misfit"]
            alarms += strength == 0 and bool(named)
            found += strength > 0 and bool(named)
            p = expit(policy._log_odds_with_all(new))
            cells = misfit_by_cell(policy.encoder_, new, y[250:].astype(float), p)
            without += strength == 0 and bool(cells)
    assert alarms <= 1
    assert without >= 6
    assert found >= 11


def test_where_additivity_fails_branching_is_named() -> None:
    X, y = table(0)
    policy = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    estimate_costs(policy, X, y)
    found = model_card(policy)["misfit"]
    assert "BranchingClassifier" in found["advice"]
    assert "ward" in found["cells"][0]
    assert "blood" in found["cells"][0] or "urine" in found["cells"][0]
    assert advice(policy, []) is None
