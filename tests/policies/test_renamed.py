"""Parameters that are elsewhere now: they hold for one more release, and say so."""

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
    COSClassifier,
    Costs,
    FullModelClassifier,
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


def warned(call: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """What a call gives, and that the name has changed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [each for each in caught if each.category is FutureWarning]


@pytest.mark.parametrize("kind", [AdaCOSClassifier, BranchingClassifier])
def test_the_old_name_does_as_the_new_one_and_shows_the_new_call(kind: Any) -> None:
    X, y = rows()
    new, silent = warned(lambda: kind(COSTS, lookahead="paper", **QUICK).fit(X, y))
    old, heard = warned(lambda: kind(COSTS, outlook="paper", **QUICK).fit(X, y))
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
    other, heard = warned(lambda: other.from_model(fitted))
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
    found, heard = warned(
        lambda: GridSearchCV(
            AdaCOSClassifier(COSTS, **QUICK), {"outlook": ["paper", "dynamic"]}, cv=2
        ).fit(X, y)
    )
    assert heard
    assert found.best_params_["outlook"] in ("paper", "dynamic")
    around = TargetRecallClassifier(AdaCOSClassifier(NO_MISS, **QUICK), target_recall=0.8)
    nested, heard = warned(lambda: around.set_params(policy__outlook="paper").fit(X, y))
    assert heard
    assert nested.policy_.resolved_lookahead == "paper"


def test_both_names_at_once_are_refused() -> None:
    X, y = rows()
    with pytest.raises(InvalidInputError, match=r"outlook: cannot be given together with lookah"):
        AdaCOSClassifier(COSTS, outlook="paper", lookahead="dynamic").fit(X, y)
    with pytest.raises(InvalidInputError, match="outlook: must be one of"):
        AdaCOSClassifier(COSTS, outlook="sunny").fit(X, y)


def test_a_file_holds_the_new_name_alone(tmp_path: Path) -> None:
    X, y = rows()
    policy, _ = warned(lambda: AdaCOSClassifier(COSTS, outlook="paper", **QUICK).fit(X, y))
    save(policy, tmp_path / "model.adacos")
    with zipfile.ZipFile(tmp_path / "model.adacos") as archive:
        state = json.loads(archive.read("model.json"))
    assert "outlook" not in json.dumps(state)
    again, heard = warned(lambda: load(tmp_path / "model.adacos"))
    assert not heard
    assert (again.lookahead, again.outlook) == ("paper", "deprecated")
    assert fingerprint(again) == fingerprint(policy)
    _, heard = warned(lambda: clone(again).fit(X, y))
    assert not heard


def test_a_file_with_the_old_name_has_the_new_one() -> None:
    """Its digest is that of the release which wrote it, see `saved/digests.json`."""
    policy = load(Path(__file__).parents[1] / "saved" / "adacos-outlook.adacos")
    assert (policy.lookahead, policy.outlook) == ("coherent", "deprecated")


NO_MISS = Costs([1.0, 2.0, 3.0], false_positive=10)
CERTIFIED: dict[str, Any] = {
    "target_recall": 0.7,
    "recall_confidence": 0.8,
    "on_uncertifiable": "largest",
}


def others() -> tuple[Any, Any]:
    """Rows that nothing was fitted on."""
    return np.random.default_rng(1).normal(size=(90, 3)), np.arange(90) % 2


KINDS = [AdaCOSClassifier, BranchingClassifier, COSClassifier, FullModelClassifier]


@pytest.mark.parametrize("kind", KINDS)
def test_a_recall_of_the_policy_itself_warns_once_and_shows_the_new_call(kind: Any) -> None:
    X, y = rows()
    own, heard = warned(lambda: kind(NO_MISS, **CERTIFIED, **QUICK).fit(X, y))
    assert len(heard) == 1
    call = (
        f"call TargetRecallClassifier({kind.__name__}(...), target_recall=0.7, "
        "recall_confidence=0.8, on_uncertifiable='largest')."
    )
    assert call in str(heard[0].message)
    assert Path(heard[0].filename) == Path(__file__), "the warning is at the caller's line"
    new = TargetRecallClassifier(kind(NO_MISS, **QUICK), **CERTIFIED)
    new, silent = warned(lambda: new.fit(X, y))
    assert not silent
    assert fingerprint(new) == fingerprint(own)
    assert new.certificate_ == own.certificate_


def test_so_does_calibrating_and_sharing() -> None:
    X, y = rows()
    new = TargetRecallClassifier(
        AdaCOSClassifier(NO_MISS, **QUICK), target_recall=0.7, on_uncertifiable="largest"
    ).fit(X, y)
    own, heard = warned(lambda: AdaCOSClassifier(NO_MISS, target_recall=0.7).from_model(new))
    assert len(heard) == 1
    assert Path(heard[0].filename) == Path(__file__)
    own.set_params(on_uncertifiable="largest")
    _, heard = warned(lambda: own.calibrate(*others(), confidence=0.8))
    assert len(heard) == 1
    assert Path(heard[0].filename) == Path(__file__)
    assert "call TargetRecallClassifier(AdaCOSClassifier(...)" in str(heard[0].message)
    _, silent = warned(lambda: new.calibrate(*others(), confidence=0.8))
    assert not silent
    assert own.certificate_ == new.certificate_
    around = TargetRecallClassifier(AdaCOSClassifier(NO_MISS), target_recall=0.9)
    _, silent = warned(lambda: around.from_model(new))
    assert not silent
    assert around.recall_estimate_ >= 0.9


def test_a_file_holds_them_only_where_they_are_given(tmp_path: Path) -> None:
    X, y = rows()
    new = TargetRecallClassifier(AdaCOSClassifier(NO_MISS, **QUICK), **CERTIFIED).fit(X, y)
    own, _ = warned(lambda: AdaCOSClassifier(NO_MISS, **CERTIFIED, **QUICK).fit(X, y))
    for policy, number in ((new, 1), (own, 1)):
        save(policy, tmp_path / "model.adacos")
        with zipfile.ZipFile(tmp_path / "model.adacos") as archive:
            state = archive.read("model.json").decode()
        assert "deprecated" not in state
        assert state.count('"on_uncertifiable"') == number
        again, heard = warned(lambda: load(tmp_path / "model.adacos"))
        assert not heard
        assert again.recall_aim == policy.recall_aim
        assert fingerprint(again) == fingerprint(policy)
        for each in (again, policy):
            warned(lambda each=each: each.calibrate(*others(), confidence=0.7))
        assert again.certificate_ == policy.certificate_


def test_a_file_of_an_older_release_is_calibrated_without_a_warning() -> None:
    """Its policy holds the recall in parameters of its own."""
    saved = Path(__file__).parents[1] / "saved"
    _, heard = warned(lambda: load(saved / "recall-around.adacos"))
    assert not heard
    for name in ("adacos.adacos", "branching.adacos"):
        policy, heard = warned(lambda name=name: load(saved / name))
        assert not heard
        assert policy.get_params()["target_recall"] == "deprecated"


def test_what_goes_with_stopping_by_the_recall_is_refused_elsewhere() -> None:
    X, y = rows()
    forward = {**QUICK, "sequence": "forward"}
    around = TargetRecallClassifier(AdaCOSClassifier(COSTS, **forward), target_recall=0.8)
    for options in ({"sample_weight": np.ones(len(y))}, {"X_unlabeled": X}):
        with pytest.raises(InvalidInputError, match="must be None where the recall decides the"):
            around.fit(X, y, **options)
    fitted = AdaCOSClassifier(COSTS, **QUICK).fit(X, y)
    with pytest.raises(InvalidInputError, match="must stop by the recall and share its fits"):
        around.from_model(fitted)
    with pytest.raises(InvalidInputError, match="fitted: must be a fitted policy over a set seq"):
        TargetRecallClassifier(AdaCOSClassifier(NO_MISS)).from_model(AdaCOSClassifier(NO_MISS))


def test_a_parameter_of_a_fitted_policy_is_checked_before_it_calibrates() -> None:
    around = TargetRecallClassifier(AdaCOSClassifier(NO_MISS, **QUICK), target_recall=0.7)
    around.fit(*rows()).set_params(on_uncertifiable="hope")
    with pytest.raises(InvalidInputError, match="on_uncertifiable: must be one of"):
        around.calibrate(*others(), confidence=0.8)
