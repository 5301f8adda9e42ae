"""Parameters that have another name now: the old one holds for one release, and says so."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from adacos import (
    AdaCOSClassifier,
    BranchingClassifier,
    Costs,
    InvalidInputError,
    TargetRecallClassifier,
    load,
    save,
)
from adacos.consultation.fingerprint import fingerprint

COSTS = Costs([1.0, 2.0, 3.0], false_positive=10, false_negative=30)
QUICK: dict[str, Any] = {"strengths": "common", "n_splines": 5, "cv": 3}


def rows(n: int = 120) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3))
    return X, (X.sum(axis=1) + rng.normal(size=n) > 0).astype(int)


def told(call: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """What a call gives, and that the name has changed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [each for each in caught if each.category is FutureWarning]


@pytest.mark.parametrize("kind", [AdaCOSClassifier, BranchingClassifier])
def test_the_old_name_does_as_the_new_one_and_shows_the_new_call(kind: Any) -> None:
    X, y = rows()
    new, silent = told(lambda: kind(COSTS, lookahead="paper", **QUICK).fit(X, y))
    old, heard = told(lambda: kind(COSTS, outlook="paper", **QUICK).fit(X, y))
    assert not silent
    assert len(heard) == 1
    assert f"{kind.__name__}(..., lookahead='paper')" in str(heard[0].message)
    assert Path(heard[0].filename) == Path(__file__), "the warning is at the caller's line"
    assert fingerprint(new) == fingerprint(old)
    np.testing.assert_array_equal(new.acquire(X).order, old.acquire(X).order)
    default = kind(COSTS, **QUICK).fit(X, y)
    assert fingerprint(default) != fingerprint(old)


def test_sharing_a_model_warns_too() -> None:
    X, y = rows()
    fitted = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    other = AdaCOSClassifier(COSTS, outlook="coherent", **QUICK)
    other, heard = told(lambda: other.from_model(fitted))
    assert len(heard) == 1
    assert Path(heard[0].filename) == Path(__file__)
    assert other.resolved_lookahead == "coherent"


def test_it_is_a_parameter_as_scikit_learn_knows_them() -> None:
    X, y = rows()
    policy = AdaCOSClassifier(COSTS, outlook="paper")
    assert policy.get_params()["outlook"] == "paper"
    assert policy.get_params()["lookahead"] == "realised"
    assert clone(policy).get_params() == policy.get_params()
    assert clone(policy).set_params(outlook="deprecated", lookahead="paper").fit(X, y)
    found, heard = told(
        lambda: GridSearchCV(
            AdaCOSClassifier(COSTS, **QUICK), {"outlook": ["paper", "dynamic"]}, cv=2
        ).fit(X, y)
    )
    assert heard
    assert found.best_params_["outlook"] in ("paper", "dynamic")
    around = TargetRecallClassifier(AdaCOSClassifier(COSTS, **QUICK), target_recall=0.8)
    nested, heard = told(lambda: around.set_params(policy__outlook="paper").fit(X, y))
    assert heard
    assert nested.unwrapped.resolved_lookahead == "paper"


def test_both_names_at_once_are_refused() -> None:
    X, y = rows()
    with pytest.raises(InvalidInputError, match=r"outlook: cannot be given together with lookah"):
        AdaCOSClassifier(COSTS, outlook="paper", lookahead="dynamic").fit(X, y)
    with pytest.raises(InvalidInputError, match="outlook: must be one of"):
        AdaCOSClassifier(COSTS, outlook="sunny").fit(X, y)


def test_a_file_holds_the_new_name_alone(tmp_path: Path) -> None:
    X, y = rows()
    policy, _ = told(lambda: AdaCOSClassifier(COSTS, outlook="paper", **QUICK).fit(X, y))
    save(policy, tmp_path / "model.adacos")
    with zipfile.ZipFile(tmp_path / "model.adacos") as archive:
        state = json.loads(archive.read("model.json"))
    assert "outlook" not in json.dumps(state)
    again, heard = told(lambda: load(tmp_path / "model.adacos"))
    assert not heard
    assert (again.lookahead, again.outlook) == ("paper", "deprecated")
    assert fingerprint(again) == fingerprint(policy)
    _, heard = told(lambda: clone(again).fit(X, y))
    assert not heard


def test_a_file_with_the_old_name_has_the_new_one() -> None:
    """Its digest is that of the release which wrote it, see `saved/digests.json`."""
    policy = load(Path(__file__).parents[1] / "saved" / "adacos-outlook.adacos")
    assert (policy.lookahead, policy.outlook) == ("coherent", "deprecated")
