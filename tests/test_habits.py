"""What people who know scikit-learn try: splits as lists, words as classes, masks, processes."""

from __future__ import annotations

import copy
import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.utils.validation import has_fit_parameter

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
)
from adacos.exceptions import InvalidInputError, PositiveClassWarning
from adacos.registry import POLICIES
from adacos.rivals import DWSMClassifier, GreedyMiserClassifier, POMDPClassifier
from tests.policy_checks import same

PRICES = Costs([1.0, 2.0, 3.0], false_positive=10, false_negative=30)
QUICK: dict[str, Any] = {"strengths": "common", "n_splines": 5, "cv": 3}


def rows(n: int = 90) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3))
    return X, (X.sum(axis=1) + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("as_list", [True, False])
def test_from_model_knows_the_same_splits_again(as_list: bool) -> None:
    X, y = rows()

    def splits(seed: int) -> Any:
        folds = KFold(3, shuffle=True, random_state=seed)
        return list(folds.split(X)) if as_list else folds

    first = AdaCOSClassifier(PRICES, **{**QUICK, "cv": splits(0)}).fit(X, y)
    for again in (splits(0), copy.deepcopy(first.cv)):
        settings = {**QUICK, "cv": again}
        assert COSClassifier(PRICES, **settings).from_model(first).model_ is first.model_
    with pytest.raises(InvalidInputError, match="cv: must be that of the fitted policy"):
        COSClassifier(PRICES, **{**QUICK, "cv": splits(1)}).from_model(first)


@pytest.mark.parametrize("jobs", [0, 1.5, "two", True])
def test_processes_are_counted_as_joblib_does(jobs: Any) -> None:
    X, y = rows()
    with pytest.raises(InvalidInputError, match="n_jobs: must be None or an integer"):
        COSClassifier(PRICES, n_jobs=jobs, **QUICK).fit(X, y)


def test_a_covariate_known_for_all_rows_may_have_missing_values() -> None:
    """Known where there is a value; where there is none, it cannot be acquired either."""
    X, y = rows()
    policy = FullModelClassifier(PRICES, **QUICK).fit(X, y)
    X = X[:20].copy()
    X[::3, 1] = np.nan
    known = np.array([False, True, False])
    result = policy.acquire(X, known=known)
    same(result, policy.acquire(X, known=known & ~np.isnan(X)))
    np.testing.assert_allclose(result.cost, 4.0)
    with pytest.raises(InvalidInputError, match="row 0, column 'x1' is missing"):
        policy.acquire(X, known=np.tile(known, (20, 1)))


def test_which_word_is_positive_is_said_where_it_matters() -> None:
    X, y = rows()
    words = np.array(["ill", "well"])[y]
    with pytest.warns(PositiveClassWarning, match="positive class is 'well', the second"):
        policy = COSClassifier(PRICES, **QUICK).fit(X, words)
    assert policy.classes_.tolist() == ["ill", "well"]
    with pytest.warns(PositiveClassWarning):
        GreedyMiserClassifier(PRICES, n_trees=2, n_lambdas=1, cv=2).fit(X, words)
    with pytest.warns(PositiveClassWarning):
        TargetRecallClassifier(
            COSClassifier(Costs([1.0, 2.0, 3.0]), **QUICK), target_recall=0.9
        ).fit(X, words)
    alike = Costs([1.0, 2.0, 3.0], false_positive=20, false_negative=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        COSClassifier(PRICES, **QUICK).fit(X, y)
        COSClassifier(alike, **QUICK).fit(X, words)


@pytest.mark.parametrize(
    ("rival", "reported"),
    [
        (GreedyMiserClassifier(PRICES, n_trees=2, n_lambdas=1, cv=2), "fold 2 of 2"),
        (POMDPClassifier(PRICES, n_components=2, cv=2, n_init=1), "fold 2 of 2"),
        (DWSMClassifier(PRICES, n_rounds=2, n_states=200, n_init=1), "round 2 of 2"),
    ],
)
def test_rivals_say_where_they_are_if_asked(rival: Any, reported: str, capsys: Any) -> None:
    X, y = rows()
    rival.fit(X, y)
    assert capsys.readouterr().out == ""
    rival.set_params(verbose=1).fit(X, y)
    assert f"[{type(rival).__name__}] {reported}" in capsys.readouterr().out


def test_weights_are_refused_by_those_that_cannot_count_them() -> None:
    """With the names of those that can; scikit-learn asks the signature, which stays."""
    X, y = rows()
    policies = {policy.load() for policy in POLICIES.values()}
    accepting = {cls.__name__ for cls in policies if has_fit_parameter(cls, "sample_weight")}
    assert "AdaCOSClassifier" in accepting
    for cls in policies:
        if cls.__name__ in accepting:
            continue
        with pytest.raises(TypeError, match="does not support sample_weight") as refused:
            cls().fit(X, y, sample_weight=np.ones(len(y)))
        reported = str(refused.value)
        assert reported.startswith(f"{cls.__name__}.fit()")
        assert accepting == set(
            re.findall(r"\b(\w+Classifier)\b", reported.partition("weight.")[2])
        )
