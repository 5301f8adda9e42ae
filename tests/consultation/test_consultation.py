"""Consultations agree with `acquire`, can be undone and restored, and explain themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import adacos
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
)
from adacos.consultation import Consultation, fingerprint
from adacos.consultation.steps import Acquire, Classify
from adacos.datasets import load_heart, load_pima, load_wisconsin
from adacos.exceptions import InvalidInputError
from adacos.rivals.greedy_miser import GreedyMiserClassifier

LOADERS = {"pima": load_pima, "heart": load_heart, "wisconsin": load_wisconsin}


@pytest.fixture(scope="module")
def fitted():
    """One fit per bundled table, with panels."""
    models = {}
    for name, loader in LOADERS.items():
        data = loader()
        costs = Costs(data.prices, false_positive=100, false_negative=1000, panels=data.panels)
        models[name] = data, AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y)
    return models


@pytest.fixture(scope="module")
def mixed():
    """Categorical, two-valued, free, constant and numeric covariates."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 500
    a, b = rng.normal(size=(2, n))
    group = rng.choice(["low", "mid", "high"], size=n)
    lift = np.select([group == "mid", group == "high"], [0.5, 2.5], -1.0)
    y = np.where(rng.random(n) < expit(a + b + lift - 0.7), "ill", "healthy")
    table = pandas.DataFrame(
        {"a": a, "group": group, "b": b, "flag": 1.0 * (a + rng.normal(size=n) > 0), "same": 1.0}
    )
    costs = Costs(
        {"a": 2.0, "group": 1.0, "b": 3.0, "flag": 0.0, "same": 1.0},
        false_positive=40,
        false_negative=60,
    )
    return table, y, AdaCOSClassifier(costs, strengths="common").fit(table, y)


def play(policy, values: dict, known: dict | None = None, missing: tuple[str, ...] = ()):
    """Answer every question from `values`; the steps, and the covariates in order."""
    consultation = policy.consultation(known)
    if missing:
        consultation.unavailable(*missing)
    asked: list[str] = []
    while isinstance(step := consultation.next(), Acquire):
        consultation.observe({name: values[name] for name in step.covariates})
        asked += step.covariates
    return consultation, step, asked


def agrees(policy, X, rows, known=None):
    result = policy.acquire(X, known=known)
    names = policy.encoder_.names
    table = X.to_dict("records")
    for row in rows:
        values = table[row]
        missing = tuple(name for name in names if values[name] != values[name])
        start = (
            {}
            if known is None
            else {names[k]: values[names[k]] for k in np.flatnonzero(known[row])}
        )
        consultation, step, asked = play(policy, values, start, missing)
        assert isinstance(step, Classify)
        # Covariates of S_1 are asked for together, so their order is that of the result too.
        assert tuple(asked) == result.covariates(row)
        assert step.label == result.label[row]
        assert abs(step.probability - result.probability[row]) <= 1e-12
        assert abs(step.cost - result.cost[row]) <= 1e-12
        assert abs(step.expected_cost - result.expected_cost[row]) <= 1e-9
        assert consultation.paid == step.cost


@pytest.mark.parametrize("name", LOADERS)
def test_every_row_of_the_bundled_data_agrees_with_acquire(fitted, name):
    data, policy = fitted[name]
    agrees(policy, data.X, range(len(data.y)))


@pytest.mark.parametrize("kind", [COSClassifier, FullModelClassifier])
def test_the_other_policies_of_the_paper_agree_with_acquire(fitted, kind):
    data, policy = fitted["heart"]
    agrees(kind(policy.costs).from_model(policy), data.X, range(0, 303, 5))


def test_a_rival_agrees_with_acquire(fitted):
    data, policy = fitted["pima"]
    rival = GreedyMiserClassifier(policy.costs, n_trees=10, n_lambdas=3, cv=3).fit(data.X, data.y)
    agrees(rival, data.X, range(0, 768, 40))


@pytest.mark.parametrize("errors", [(400, 400), (100, 1000)])
def test_known_values_agree_with_acquire(fitted, errors):
    data, policy = fitted["heart"]
    costs = Costs(data.prices, false_positive=errors[0], false_negative=errors[1])
    other = AdaCOSClassifier(costs).from_model(policy)
    known = np.random.default_rng(3).random(data.X.shape) < 0.3
    known &= data.X.notna().to_numpy()
    agrees(other, data.X, range(0, 303, 4), known)


def test_mixed_tables_agree_with_acquire(mixed):
    table, _, policy = mixed
    agrees(policy, table, range(0, 500, 10))


def test_a_target_recall_agrees_with_acquire(fitted):
    data, policy = fitted["pima"]
    recall = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=100)), target_recall=0.95
    )
    agrees(recall.from_model(policy), data.X, range(0, 768, 20))


def test_unavailable_everything_still_ends_in_a_classification(fitted, mixed):
    for policy in [fitted["pima"][1], fitted["heart"][1], mixed[2]]:
        consultation = policy.consultation().unavailable(*policy.encoder_.names)
        step = consultation.next()
        assert isinstance(step, Classify)
        assert step.cost == 0
        consultation = policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            consultation.unavailable(*step.covariates)
        assert step.cost == 0


def test_stopping_gives_the_label_that_remains(fitted):
    for name in ("pima", "heart"):
        data, policy = fitted[name]
        for row in range(0, 200, 20):
            values = {k: v for k, v in data.X.iloc[row].to_dict().items() if v == v}
            consultation = policy.consultation()
            while isinstance(step := consultation.next(), Acquire):
                shown = step.explanation
                stopped = consultation.stop().next()
                assert isinstance(stopped, Classify)
                assert stopped.label == shown.label
                assert stopped.probability == shown.probability
                assert stopped.expected_cost == shown.stop_now
                assert stopped.cost == shown.paid
                assert consultation.undo().next() == step
                if not set(step.covariates) <= set(values):
                    break
                consultation.observe({k: values[k] for k in step.covariates})


calls = st.lists(
    st.tuples(
        st.sampled_from(["observe", "other", "unavailable", "stop", "undo", "restore"]),
        st.integers(0, 1000),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(calls=calls, row=st.integers(0, 302), known=st.sets(st.integers(0, 12), max_size=4))
def test_random_calls(fitted, calls, row, known):
    data, policy = fitted["heart"]
    values = {name: v for name, v in data.X.iloc[row].to_dict().items() if v == v}
    names = policy.encoder_.names
    start = {names[k]: values[names[k]] for k in known if names[k] in values}
    consultation = policy.consultation(start)
    history = [consultation.next()]
    for call, number in calls:
        step = consultation.next()
        left = [n for n in values if n not in consultation.values]
        if consultation.stopped and call in ("observe", "other", "unavailable", "stop"):
            with pytest.raises(InvalidInputError, match="undo"):
                consultation.stop()
            continue
        if call == "observe" and isinstance(step, Acquire) and set(step.covariates) <= set(values):
            consultation.observe({name: values[name] for name in step.covariates})
        elif call == "stop":
            consultation.stop()
        elif call == "other" and left:
            name = left[number % len(left)]
            consultation.observe({name: values[name]})
        elif call == "unavailable" and left:
            consultation.unavailable(left[number % len(left)])
        elif call == "undo" and len(history) > 1:
            consultation.undo()
            history.pop()
            assert consultation.next() == history[-1]
            continue
        elif call == "restore":
            state = json.loads(json.dumps(consultation.state()))
            consultation = Consultation.from_state(policy, state)
            assert consultation.next() == history[-1]
            continue
        else:
            continue
        history.append(consultation.next())
        step = history[-1]
        explained = step.explanation
        assert 0 <= explained.probability <= 1
        assert explained.stop_now == pytest.approx(explained.paid + explained.bayes_risk)
        assert explained.expected_saving >= 0
        if isinstance(step, Acquire):
            assert not set(step.covariates) & set(consultation.values)
            assert not set(step.covariates) & set(consultation.missing)
            assert step.cost >= 0
        json.dumps(step.to_dict(), allow_nan=False)
        log_odds = explained.intercept + sum(c.log_odds for c in explained.contributions)
        assert expit(log_odds) == pytest.approx(explained.probability, abs=1e-9)
        paid = set(consultation.values) - set(start)
        assert explained.paid == pytest.approx(policy.costs.of(paid, given=set(start)), abs=1e-9)


def test_restored_in_another_process_continues_identically(fitted, tmp_path):
    _, policy = fitted["pima"]
    adacos.save(policy, tmp_path / "model.adacos")
    consultation = policy.consultation({"Pregnancies": 2}).observe(Age=31).unavailable("BMI")
    (tmp_path / "state.json").write_text(json.dumps(consultation.state()))
    program = (
        "import adacos, json, sys; from adacos.consultation import Consultation\n"
        "policy = adacos.load(sys.argv[1] + '/model.adacos')\n"
        "state = json.load(open(sys.argv[1] + '/state.json'))\n"
        "c = Consultation.from_state(policy, state)\n"
        "print(json.dumps([c.next().to_dict(), c.observe(Glucose=120).next().to_dict()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    here = [consultation.next().to_dict(), consultation.observe(Glucose=120).next().to_dict()]
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


def test_a_state_is_not_continued_on_another_model(fitted):
    _, policy = fitted["pima"]
    costlier = AdaCOSClassifier(policy.costs.with_misclassification([[0, 1], [9, 0]]))
    other = costlier.from_model(policy)
    assert fingerprint(policy) != fingerprint(other)
    with pytest.raises(InvalidInputError, match="same model"):
        Consultation.from_state(other, policy.consultation({"Age": 40}).state())
    for broken in ({}, {"format": 1}, {"format": 9}, [], {"format": 1, "model": "", "known": []}):
        with pytest.raises(InvalidInputError, match="state"):
            Consultation.from_state(policy, broken)


def test_flips_are_where_the_label_changes(fitted):
    """A value just inside a stated range gives the other label by the next model, outside not."""
    data, policy = fitted["pima"]
    costs = Costs(data.prices, false_positive=400, false_negative=400)
    policy = FullModelClassifier(costs).from_model(policy)
    checked = 0
    for row in range(0, 768, 16):
        values = data.X.iloc[row].to_dict()
        consultation = policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            (name,) = step.covariates
            low = policy.encoder_.low[policy.encoder_.names.index(name)]
            high = policy.encoder_.high[policy.encoder_.names.index(name)]
            width = high - low
            now = step.explanation.label

            def after(value, consultation=consultation, name=name):
                label = consultation.observe({name: value}).next().explanation.label
                consultation.undo()
                return label

            for flip in step.explanation.flips:
                for ends in flip.ranges:
                    for end, inward in zip(ends, (1, -1), strict=True):
                        if end is not None:
                            assert after(end + inward * 1e-5 * width) == flip.label != now
                            assert after(end - inward * 1e-5 * width) == now
                            checked += 1
            if not step.explanation.flips:
                for value in (low, high, (low + high) / 2):
                    assert after(value) == now
            consultation.observe({name: values[name]})
    assert checked > 20


def test_flips_name_categories_and_two_valued_values(mixed):
    table, _, policy = mixed
    found = set()
    for row in range(0, 500, 5):
        consultation = policy.consultation()
        while isinstance(step := consultation.next(), Acquire):
            for flip in step.explanation.flips:
                found.add(flip.covariate)
                allowed = {"low", "mid", "high"} if flip.covariate == "group" else {0.0, 1.0}
                assert set(flip.values) <= allowed
                assert flip.label in ("ill", "healthy")
            consultation.observe({name: table[name].iloc[row] for name in step.covariates})
    assert "group" in found


def test_the_expected_costs_are_those_of_the_definition(fitted):
    """Against an integral over the predictive density, by the definition of the future cost."""
    from adacos.kernels.bayes_risk import bayes_risk
    from adacos.models.lookahead import begin, look_ahead

    data, policy = fitted["pima"]
    policy = AdaCOSClassifier(policy.costs, lookahead="coherent").from_model(policy)
    step = policy.consultation().next()
    costs, model = policy.cost_table_, policy.model_
    row = data.X.to_numpy()[:1]
    nothing = np.zeros(row.shape[1], dtype=bool)
    lookahead = look_ahead(begin(model, row, row == row, nothing, nothing), costs)
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    mean, sd = lookahead.forecast.moments(lookahead.log_odds[:, None], lookahead.mean, lookahead.sd)
    u = mean[0][:, None] + sd[0][:, None] * nodes
    future = bayes_risk(u, costs.matrix) @ weights / weights.sum() + lookahead.cost[0]
    assert step.explanation.acquire_next == pytest.approx(future[0], rel=1e-2)
    assert step.explanation.best_plan.expected_total_cost == pytest.approx(future.min(), rel=1e-2)
    assert step.explanation.expected_saving == pytest.approx(
        step.explanation.stop_now - step.explanation.best_plan.expected_total_cost
    )


def test_a_panel_is_cheaper_once_it_is_open(fitted):
    _, policy = fitted["pima"]
    full = FullModelClassifier(policy.costs).from_model(policy)
    consultation = full.consultation()
    seen = {}
    while isinstance(step := consultation.next(), Acquire):
        (name,) = step.covariates
        seen[name] = step
        consultation.observe({name: 50})
    assert seen["Glucose"].cost == pytest.approx(17.61)
    assert seen["Glucose"].sharing == (("Insulin", pytest.approx(20.68)),)
    assert seen["Insulin"].cost == pytest.approx(20.68)


def test_odd_values_are_flagged_and_carried(fitted, mixed):
    _, policy = fitted["pima"]
    step = policy.consultation({"Age": 95}).next()
    assert [w.kind for w in step.warnings] == ["outside_range"]
    step = policy.consultation().observe(BMI=318).next()
    assert [w.kind for w in step.warnings] == ["implausible"]
    assert "31.8 would lie inside" in str(step.warnings[0])
    assert "it counts as 67.1" in str(step.warnings[0])
    farther = policy.consultation().observe(BMI=31800).next()
    assert farther.explanation.probability == step.explanation.probability
    *_, other = mixed
    consultation = other.consultation({"group": "highest", "flag": 3})
    kinds = [w.kind for w in consultation.next().warnings]
    assert kinds == ["unknown_category", "unknown_value"]


def test_the_explanation_reads_as_text(fitted):
    _, policy = fitted["pima"]
    step = policy.consultation({"Age": 24}).unavailable("BMI").next()
    text = str(step.explanation)
    assert text.startswith("Probability ")
    assert "if you stop" in text
    assert "Age" in text
    assert str(step).startswith(("Acquire", "Classify"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.observe(Nonsense=1), "must name covariates"),
        (lambda c: c.observe(), "at least one value"),
        (lambda c: c.observe(BMI=float("nan")), "finite number"),
        (lambda c: c.observe(BMI="thirty"), "finite number"),
        (lambda c: c.observe(BMI=None), "finite number"),
        (lambda c: c.observe(Age=3), "has a value already"),
        (lambda c: c.unavailable("Age"), "without a value"),
        (lambda c: c.unavailable("Nonsense"), "must name covariates"),
        (lambda c: c.unavailable(), "needs a covariate"),
        (lambda c: c.undo(), "needs something"),
        (
            lambda c: Consultation.from_state(c.policy, {**c.state(), "events": [{"stop": 1}]}),
            "hold",
        ),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(fitted, call, message):
    _, policy = fitted["pima"]
    consultation = policy.consultation({"Age": 50})
    before = consultation.state()
    with pytest.raises(InvalidInputError, match=message):
        call(consultation)
    assert consultation.state() == before


@pytest.fixture(scope="module")
def workshop():
    """Two free covariates, a number and a category, that settle most rows; a test for 5."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    n = 700
    hours, heat = rng.uniform(0, 500, n), rng.normal(size=n)
    model = rng.choice(["a", "b", "c"], size=n)
    log_odds = (hours - 250) / 60 + 2.5 * (model == "c") + heat - 1.5
    y = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    table = pandas.DataFrame({"hours": hours, "model": model, "heat": heat})
    costs = Costs({"hours": 0, "model": 0, "heat": 5}, false_positive=40, false_negative=200)
    return table, y, AdaCOSClassifier(costs, cv=3, strengths="common").fit(table, y)


def test_free_covariates_at_the_first_step_are_weighed_by_themselves(workshop):
    """Against the table itself: what knowing them is worth, and which values turn the label."""
    table, y, policy = workshop
    step = policy.consultation().next()
    assert step.covariates == ("hours", "model")
    assert step.cost == 0
    reported = step.explanation
    assert reported.best_plan.covariates == step.covariates
    assert reported.acquire_next == reported.best_plan.expected_total_cost
    # With nothing entered the probability is the base rate, within the model's own error.
    assert reported.probability == pytest.approx(np.mean(y), abs=0.03)
    # What deciding with both costs, by the answers to rows whose test cannot be had.
    without = table.assign(heat=np.nan)
    realised = policy.acquire(without)
    wrong = policy.rule_.matrix[y.astype(int), realised.label.astype(int)]
    error = wrong.std() / np.sqrt(len(wrong))
    assert reported.acquire_next == pytest.approx(wrong.mean(), abs=3 * error + 0.1 * wrong.mean())
    # A value that is said to turn the label does, and one just outside the range does not.
    turned = {flip.covariate: flip for flip in reported.flips}
    assert set(turned) == {"hours", "model"} or set(turned) == {"hours"}
    low, high = turned["hours"].ranges[0]
    inside, outside = (high - 1, high + 1) if high is not None else (low + 1, low - 1)
    for hours, other in ((inside, True), (outside, False)):
        consultation = policy.consultation().observe(hours=hours).unavailable("model", "heat")
        assert (consultation.next().label == turned["hours"].label) == other


def test_what_is_being_asked_for_is_not_called_unavailable(workshop):
    _, _, policy = workshop
    reported = policy.consultation().next().explanation
    assert reported.contributions == ()
    assert reported.intercept == pytest.approx(
        np.log(reported.probability / (1 - reported.probability))
    )
    one = policy.consultation().observe(hours=300).next()
    assert one.covariates == ("model",)
    assert [part.covariate for part in one.explanation.contributions] == ["hours"]
    assert one.explanation.intercept + one.explanation.contributions[0].log_odds == pytest.approx(
        np.log(one.explanation.probability / (1 - one.explanation.probability))
    )
    assert "unavailable" not in str(one.explanation)


@pytest.mark.parametrize(("typed", "end"), [(90, 81), (3, 21), (-5, 21)])
def test_beyond_the_training_range_nothing_is_learned(typed, end):
    """A straight continuation said 2.0% at age 90, 1.4% at 3 and 0.4% at -5, and stopped."""
    data = load_pima()
    costs = Costs(data.prices, false_positive=400, false_negative=400)
    policy = AdaCOSClassifier(costs).fit(data.X, data.y)
    outside = policy.consultation().observe(Age=typed).next()
    at_end = policy.consultation().observe(Age=end).next()
    assert outside.explanation == replace(
        at_end.explanation,
        contributions=(replace(at_end.explanation.contributions[0], value=float(typed)),),
    )
    (warning,) = outside.warnings
    assert warning.kind == ("implausible" if typed < 0 else "outside_range")
    assert f"it counts as {end}" in str(warning)
