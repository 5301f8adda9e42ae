"""Rows that belong together, named or found: they stay on one side and count once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom
from sklearn.model_selection import GroupKFold

from adacos import (
    AdaCOSClassifier,
    AutoPolicyClassifier,
    BranchingClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    PlanningClassifier,
    TargetRecallClassifier,
    load_heart,
    load_pima,
    load_wisconsin,
)
from adacos.exceptions import InvalidInputError, NotCertifiableError, TableWarning
from adacos.kernels.folds import shuffled_folds, stratified_folds
from adacos.kernels.groups import copies, one_of_each, standard_error
from adacos.policies import growing, planning, sequence_policy
from adacos.policies.estimates import estimate_costs
from adacos.policies.nested import nested_cost
from adacos.policies.recall_choices import recall_choices
from adacos.rivals import GreedyMiserClassifier, POMDPClassifier, pomdp
from adacos.tables.suspicions import suspicions
from tests.policies.tables import drawn, patients, repeated, tables_of_different_cases
from tests.policy_checks import same

QUICK: dict[str, Any] = {"strengths": "common", "n_splines": 5, "cv": 3}
PRICES = Costs([1.0, 1.0, 1.0, 1.0], false_positive=10.0, false_negative=10.0)
NO_MISS = Costs([1.0, 1.0, 1.0, 1.0], false_positive=10.0)


@pytest.mark.parametrize("times", [2, 6])
def test_repeated_rows_are_found(times: int) -> None:
    X, y = repeated(*drawn(0, 200), times)
    found = copies(X, y.astype(float))
    assert found is not None
    assert np.all(np.bincount(found) == times)
    for rows in np.split(np.argsort(found, kind="stable"), 200):
        assert len(np.unique(X[rows], axis=0)) == 1


def test_repeated_rows_of_few_values_are_found_by_their_even_counts() -> None:
    X, y, *_ = load_wisconsin(as_frame=False)
    labels = np.asarray(y, dtype=float)
    assert copies(X, labels) is None  # though 234 rows are equal to an earlier one
    assert copies(*repeated(X, labels, 2)) is not None


def test_rows_drawn_again_for_one_class_are_found() -> None:
    X, y, *_ = load_pima(as_frame=False)
    again = np.random.default_rng(0).choice(np.flatnonzero(y == 1), 232)
    rows = np.concatenate([np.arange(len(y)), again])
    assert copies(X[rows], np.asarray(y, dtype=float)[rows]) is not None


@pytest.mark.parametrize("name", tables_of_different_cases())
def test_different_cases_that_agree_are_no_copies(name: str) -> None:
    X = tables_of_different_cases()[name].astype(float)
    y = (np.random.default_rng(2).random(len(X)) < 0.3).astype(float)
    assert copies(X, y) is None


def test_the_counts_of_independent_rows_are_hardly_ever_called_too_even() -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, rng.integers(2, 5), (rng.integers(100, 2000), rng.integers(2, 8)))
        alarms += copies(X.astype(float), (rng.random(len(X)) < 0.4).astype(float)) is not None
    assert alarms == 0


@pytest.mark.parametrize("load", [load_pima, load_wisconsin, load_heart])
def test_nothing_is_said_of_the_bundled_tables(load: Any) -> None:
    X, y, *_ = load()
    assert "copies" not in {item.kind for item in suspicions(X, y)}


def test_folds_keep_groups_together_and_share_the_classes() -> None:
    X, y, who = patients(0)
    y = np.where(who % 3 == 0, 1, 0)
    for fold in (
        stratified_folds(X, y.astype(float), 4, 0, who),
        shuffled_folds(y.astype(float), 4, 0, who),
    ):
        assert all(len(np.unique(fold[who == one])) == 1 for one in range(24))
        assert [len(np.unique(who[(fold == k) & (y == 1)])) for k in range(4)] == [2] * 4
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_array_equal(
        stratified_folds(X[order], y[order].astype(float), 4, 0, 23 - who[order]),
        stratified_folds(X, y.astype(float), 4, 0, who)[order],
    )


def test_a_group_for_each_row_changes_nothing() -> None:
    X, y = drawn(3, 150)
    labels = y.astype(float)
    np.testing.assert_array_equal(
        stratified_folds(X, labels, 5, 1, np.arange(150)[::-1]), stratified_folds(X, labels, 5, 1)
    )
    one = AdaCOSClassifier(PRICES, **QUICK).fit(X, y)
    other = AdaCOSClassifier(PRICES, **QUICK).fit(X, y, groups=np.arange(150))
    same(one.acquire(X), other.acquire(X))


@pytest.mark.parametrize(
    "kind", [AdaCOSClassifier, BranchingClassifier, COSClassifier, FullModelClassifier]
)
def test_no_model_has_seen_the_patient_it_is_judged_on(kind: Any) -> None:
    """Covariates that only tell who it is say nothing about the class of anybody else."""
    X, y, who = patients(1)
    costs = Costs([0.0, 0.0, 0.0], false_positive=10.0, false_negative=10.0)

    def loss(**options: Any) -> float:
        policy = kind(costs, **{**QUICK, "n_splines": 12}).fit(X, y, **options)
        p = expit(policy.model_.out_of_fold_log_odds[:, -1])
        return float(-np.mean(np.log(np.where(y == 1, p, 1 - p))))

    assert loss() < 0.4
    assert loss(groups=who) > 0.6
    assert loss(groups=[f"patient {k}" for k in who]) == loss(groups=who)


@pytest.mark.parametrize(
    ("module", "policy"),
    [
        (growing, BranchingClassifier(PRICES, **QUICK)),
        (planning, PlanningClassifier(PRICES, n_splines=5, cv=3)),
        (sequence_policy, AutoPolicyClassifier(PRICES, **QUICK)),
        (planning, AutoPolicyClassifier(PRICES, **QUICK)),
    ],
)
def test_every_fold_of_every_policy_is_of_groups(
    monkeypatch: Any, module: Any, policy: Any
) -> None:
    X, y = drawn(5, 120)
    X, y, who = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(120), 2)
    X = X + 0.001 * np.random.default_rng(0).normal(size=X.shape)
    calls = []

    def watched(X: Any, y: Any, n_folds: int, seed: int, groups: Any = None) -> Any:
        fold = stratified_folds(X, y, n_folds, seed, groups)
        assert groups is not None
        assert all(len(np.unique(fold[groups == one])) == 1 for one in np.unique(groups))
        calls.append(n_folds)
        return fold

    monkeypatch.setattr(module, "stratified_folds", watched)
    policy.fit(X, y, groups=who)
    assert calls


def test_the_folds_of_pomdp_keep_copies_together(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = repeated(*drawn(0, 200), 2)
    calls = []

    def watched(codes: Any, labels: Any, sizes: Any, candidates: Any, fold: Any, *rest: Any) -> Any:
        calls.append(fold)
        return candidates[0]

    monkeypatch.setattr(pomdp, "_choose", watched)
    with pytest.warns(TableWarning, match="copies"):
        POMDPClassifier(PRICES, n_init=1).fit(X, y)
    for copy in np.unique(X, axis=0):
        assert len(np.unique(calls[0][(copy == X).all(axis=1)])) == 1


def test_given_splits_may_be_of_groups() -> None:
    X, y, who = patients(2)
    costs = Costs([0.0, 0.0, 0.0], false_positive=10.0, false_negative=10.0)
    settings = {**QUICK, "cv": GroupKFold(3)}
    policy = AdaCOSClassifier(costs, **settings).fit(X, y, groups=who)
    splits = list(GroupKFold(3).split(X, y, who))
    again = AdaCOSClassifier(costs, **{**QUICK, "cv": splits}).fit(X, y)
    same(policy.acquire(X), again.acquire(X))


def test_the_nested_cost_and_its_error_are_of_groups() -> None:
    X, y, who = patients(4)
    costs = Costs([0.0, 0.0, 0.0], false_positive=10.0, false_negative=10.0)
    policy = COSClassifier(costs, **{**QUICK, "n_splines": 12})
    apart, together = nested_cost(policy, X, y), nested_cost(policy, X, y, groups=who)
    assert all(len(np.unique(together.fold[who == one])) == 1 for one in range(24))
    assert together.mean > apart.mean + 1
    assert together.error > 2 * apart.error


def test_the_error_of_a_mean_is_that_of_the_groups() -> None:
    """By simulation: rows of a group have an error in common."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), np.arange(60) % 5 + 1)
    draws = rng.normal(size=(2000, 60))[:, who] + 0.3 * rng.normal(size=(2000, len(who)))
    errors = np.array([standard_error(values, who) for values in draws])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(draws.mean(axis=1).std(), rel=0.06)


def test_one_row_of_each_group_is_drawn() -> None:
    groups = np.array([0, 0, 0, 1, 2, 2])
    rows = np.array([0, 1, 2, 3, 5])
    drawn_rows = [one_of_each(rows, groups, seed) for seed in range(50)]
    assert all(np.unique(groups[r]).tolist() == [0, 1, 2] and len(r) == 3 for r in drawn_rows)
    assert {int(r[0]) for r in drawn_rows} == {0, 1, 2}
    np.testing.assert_array_equal(one_of_each(rows, None, 0), rows)


def target_recall_policy(seed: int) -> TargetRecallClassifier:
    policy = AdaCOSClassifier(PRICES, **QUICK)
    return TargetRecallClassifier(
        policy, target_recall=0.8, recall_confidence=0.9, random_state=seed
    )


def test_at_most_the_nominal_share_of_certificates_on_copies_is_false() -> None:
    """200 rows, six times each; new rows have no copies."""
    repetitions, false = 40, 0
    for seed in range(repetitions):
        X, y = repeated(*drawn(seed, 200), 6, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)
            try:
                policy = target_recall_policy(seed).fit(X, y)
            except NotCertifiableError:
                continue
        new, labels = drawn(1000 + seed, 10_000)
        false += np.mean(policy.predict(new[labels == 1]) == 1) < 0.8
        assert policy.certificate_.n_positives < 70
    assert binom.sf(false - 1, repetitions, 0.1) > 0.01, false


@pytest.mark.parametrize("visits", [2, 5])
def test_a_certificate_counts_patients(visits: int) -> None:
    X, y = drawn(0, 240)
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(240), visits)
    X, y = X[who] + 0.01 * rng.normal(size=(len(who), 4)), y[who]
    for policy in (
        TargetRecallClassifier(
            AdaCOSClassifier(NO_MISS, **QUICK), target_recall=0.8, recall_confidence=0.9
        ),
        target_recall_policy(0),
    ):
        policy.fit(X, y, groups=who)
        n = policy.certificate_.n_positives
        assert n == len(np.unique(who[y == 1])) // 2
        assert "of each group of rows one was drawn" in policy.certificate_.method
        trained = policy.training_rows_.digests
        assert len(trained) % visits == 0
        new = X + 0.5
        policy.calibrate(new, y, groups=who, confidence=0.8)
        assert policy.certificate_.n_positives == len(np.unique(who[y == 1]))
        choice = recall_choices(policy, new, y, [0.7], groups=who)[0]
        assert choice.certificate.n_positives == policy.certificate_.n_positives


def test_classes_are_counted_by_patients() -> None:
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(300), 3)
    z = np.arange(300) % 3
    X = (rng.normal(size=(300, 4)) + 1.5 * z[:, None])[who] + 0.01 * rng.normal(size=(900, 4))
    y, costs = z[who], Costs([1.0] * 4, misclassification=10 * (1 - np.eye(3)))
    recall = {2: 0.7}
    policies: tuple[Any, ...] = (
        TargetRecallClassifier(
            AdaCOSClassifier(costs, **QUICK), target_recall=recall, recall_confidence=0.8
        ),
        TargetRecallClassifier(
            FullModelClassifier(costs, **QUICK), target_recall=recall, recall_confidence=0.8
        ),
    )
    for policy in policies:
        policy.fit(X, y, groups=who)
        assert policy.certificate_.n_rows == (50,)
        assert "of each group of rows one was drawn" in policy.certificate_.method


def test_copies_are_reported_once() -> None:
    X, y = repeated(*drawn(0, 200), 3)
    for policy in (COSClassifier(PRICES, **QUICK), target_recall_policy(0)):
        with pytest.warns(TableWarning, match="600 of 600 rows are equal to another") as reported:
            policy.fit(X, y)
        assert len([item for item in reported if item.category is TableWarning]) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", TableWarning)
            policy.fit(X, y, groups=np.arange(600))
    assert "copies" in {item.kind for item in suspicions(X, y)}
    assert "copies" not in {item.kind for item in suspicions(X, y, np.arange(600))}


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_copies_are_no_evidence_of_a_misfit(seed: int) -> None:
    """Counted as different cases, these rows contradict a sum that the 200 cases do not."""
    X, y = repeated(*drawn(seed, 200), 3)
    number = copies(X, y.astype(float))
    policy = COSClassifier(PRICES, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        policy.fit(X, y)
    assert [item for item in policy.check(X, y) if item.kind == "misfit"] == []
    assert [item for item in policy.check(X, y, groups=number) if item.kind == "misfit"] == []
    estimate_costs(policy, X, y)
    assert policy.misfit_ == ()
    found = policy.cost_estimates_
    estimate_costs(policy, X, y, groups=number)
    assert policy.cost_estimates_ == found


@pytest.mark.parametrize(
    ("groups", "reported"),
    [
        (np.arange(59), "needs one group for each of the 60 rows"),
        ([None, *range(59)], "must name a group for every row"),
        ([np.nan, *range(59)], "must name a group for every row"),
        (np.zeros(60), "must be two or more for the rows of each class"),
    ],
)
def test_what_is_no_group_is_refused(groups: Any, reported: str) -> None:
    X, y = drawn(0, 60)
    for policy in (COSClassifier(PRICES, **QUICK), PlanningClassifier(PRICES)):
        with pytest.raises(InvalidInputError, match=reported):
            policy.fit(X, y, groups=groups)


def test_those_that_take_no_groups_name_those_that_do() -> None:
    X, y = drawn(0, 60)
    with pytest.raises(TypeError, match=r"does not support groups\. .*TargetRecallClassifier"):
        GreedyMiserClassifier(PRICES).fit(X, y, groups=np.arange(60))
