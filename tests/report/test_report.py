"""The report: its numbers agree with the library, and its words are used in one meaning each."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import adacos
from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    CostedClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
    load_wisconsin,
)
from adacos.exceptions import InvalidInputError
from adacos.metrics import total_costs
from adacos.report import covariate_importances, figures, model_figures, numbers, write_report
from adacos.report.held import hold, methods, sensitivity
from adacos.report.shapes import shapes, usual_stage
from tests.report.every_policy import build, registered, table
from tests.report.reading import readable

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def heart():
    """Rows with missing cells, and a policy with panels."""
    data = adacos.load_heart()
    costs = Costs(data.prices, false_positive=100, false_negative=1633, panels=data.panels)
    return data, AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y)


@pytest.fixture(scope="module")
def asking(heart):
    """The same model where errors are dear enough that much is asked for."""
    data, policy = heart
    costs = Costs(data.prices, false_positive=2000, false_negative=3000, panels=data.panels)
    return data, AdaCOSClassifier(costs).from_model(policy)


@pytest.fixture(scope="module")
def page(heart, tmp_path_factory) -> str:
    """The text of a report, without figures and tags."""
    data, policy = heart
    path = tmp_path_factory.mktemp("report") / "r.html"
    write_report(policy, data.X, data.y, path, "Report")
    return readable(path.read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Figures are made but not drawn, where only the text is read."""
    monkeypatch.setattr(figures, "_svg", lambda figure: b"")


def test_one_name_for_the_policy(page, heart):
    assert "this policy" in page
    assert "AdaCOS " not in page.replace("AdaCOSClassifier", "")
    data, policy = heart
    for kind, others in (
        (AdaCOSClassifier, ["COS", "full model"]),
        (COSClassifier, ["AdaCOS", "full model"]),
        (FullModelClassifier, ["AdaCOS", "COS"]),
    ):
        held = hold(kind(policy.costs).from_model(policy), data.X, data.y)
        found = [m.name for m in methods(held)]
        assert found == ["this policy", *others, "everyone positive", "everyone negative"]
        assert sorted(m.name for m in sensitivity(held)[2][1]) == sorted(found[:3])
        _, curves = numbers.decision_curves(held)
        assert {c.name for c in curves} <= set(found) <= set(figures._LOOK)


def test_the_difference_is_paired(heart):
    data, policy = heart
    held = hold(policy, data.X, data.y)
    own, cos, *_ = methods(held)
    other = COSClassifier(policy.costs).from_model(policy).acquire(data.X)
    each = total_costs(other, data.y, policy.costs) - total_costs(held.result, data.y, policy.costs)
    assert own.more == (0.0, 0.0)
    assert cos.more.value == pytest.approx(each.mean())
    assert cos.more.error == pytest.approx(each.std(ddof=1) / np.sqrt(len(each)))


def test_panels_are_listed(page, heart):
    data, policy = heart
    assert [p.name for p in numbers.panels(policy)] == list(data.panels)
    for title, (shared, members) in data.panels.items():
        assert re.search(rf"{title}\s+{shared:.2f}\s+{', '.join(members)}", page)
    free = Costs(data.prices, false_positive=100, false_negative=1633)
    assert numbers.panels(AdaCOSClassifier(free).from_model(policy)) == []


@pytest.mark.usefixtures("undrawn")
def test_missing_cells_explain_the_order(page, heart, tmp_path):
    data, policy = heart
    held = hold(policy, data.X, data.y)
    for stop in numbers.stops(held):
        assert stop.missing == pytest.approx(data.X[stop.covariate].isna().mean())
    assert any(stop.missing > 0 for stop in numbers.stops(held))
    assert "A row without a value" in page
    whole = data.X.notna().all(axis=1).to_numpy()
    write_report(policy, data.X[whole], data.y[whole], tmp_path / "r.html", "Report")
    assert "A row without a value" not in readable((tmp_path / "r.html").read_text())


def test_false_negative_costs_have_like_decimals(page):
    (table,) = re.findall(r"false-negative cost(.*?)Decision curve", page, flags=re.DOTALL)
    first = [line.split()[0] for line in table.split("    ") if line.strip()[:1].isdigit()]
    assert "408.25" in first
    assert "1,633.00" in first


@pytest.mark.usefixtures("undrawn")
def test_calibration_rows_are_those_of_the_certificate_alone(page, tmp_path):
    assert "calibration rows" not in page
    data = adacos.load_pima()
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=400), strengths="common", cv=5),
        target_recall=0.85,
        recall_confidence=0.9,
    ).fit(data.X, data.y)
    reported = write_report(policy, data.X[:200], data.y[:200], tmp_path / "r.html", "Report")
    result = policy.acquire(data.X[:200])
    paid = result.cost + 400 * ((result.label == 1) & (data.y[:200] == 0))
    assert reported["operation_cost"] == pytest.approx(paid.mean())
    assert "total_cost" not in reported
    found = readable((tmp_path / "r.html").read_text())
    assert "Without missed positives, which nobody gave a cost, the policy costs" in found
    assert "A missed positive counts as " in found
    before, _, after = found.partition("not on the held-out rows:")
    assert "held-out positives were called positive" in before
    assert "calibration positives" in after
    assert before.count("calibration rows") == 1


def test_the_legend_of_the_calibration_is_clear_of_the_intervals(monkeypatch):
    drawn = []
    original = figures._svg
    monkeypatch.setattr(figures, "_svg", lambda figure: drawn.append(figure) or original(figure))
    bins = [numbers.Bin(p, 0.9, 0.5, 1.0, 10) for p in (0.05, 0.3, 0.6, 0.95)]
    model_figures.calibration(bins, bins, (0.2, 0.8), 0.5, np.linspace(0, 1, 50))
    assert len(drawn) == 2
    for figure in drawn:
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
        assert all(legend.y0 >= axis.get_window_extent().y1 - 1 for axis in figure.axes)
        assert legend.x0 >= 0
        assert legend.x1 <= figure.bbox.x1


@pytest.mark.parametrize("wrong", [(100, 1633), (1, 999), (400, 400), (1000, 100)])
def test_the_net_benefit_is_the_total_cost_in_other_units(heart, wrong):
    """At the threshold in use: (cost of everyone negative - total cost) / worth of a positive."""
    data, policy = heart
    costs = Costs(data.prices, false_positive=wrong[0], false_negative=wrong[1], panels=data.panels)
    held = hold(AdaCOSClassifier(costs).from_model(policy), data.X, data.y)
    total = {m.name: m.total.value for m in methods(held)}
    _, curves = numbers.decision_curves(held)
    for curve in curves:
        benefit = (total["everyone negative"] - total[curve.name]) / wrong[1]
        assert curve.in_use == pytest.approx(benefit, abs=1e-9)
    assert {curve.name for curve in curves} == set(total)


def test_the_curve_holds_acquisition_and_says_so(asking):
    data, policy = asking
    held = hold(policy, data.X, data.y)
    threshold, curves = numbers.decision_curves(held)
    own = curves[0]
    at = 40
    positive = held.result.probability >= threshold[at]
    odds = threshold[at] / (1 - threshold[at])
    found = np.mean(positive & (held.true == 1)) - odds * np.mean(positive & (held.true == 0))
    assert own.benefit[at] == pytest.approx(found - held.result.cost.mean() / 3000)
    caption = figures.decision_curves(threshold, curves, 0.1).caption
    assert "kept" in caption
    assert "what the covariates cost" in caption


@pytest.mark.usefixtures("undrawn")
def test_the_caption_gives_the_threshold_in_use(heart, tmp_path):
    data, policy = heart
    costs = Costs(data.prices, false_positive=1, false_negative=999, panels=data.panels)
    write_report(
        AdaCOSClassifier(costs).from_model(policy), data.X, data.y, tmp_path / "r.html", "Report"
    )
    text = readable((tmp_path / "r.html").read_text())
    assert "At the threshold in use, 0.1%" in text


def test_calibration_scores_agree_with_another_package(asking):
    data, policy = asking
    held = hold(policy, data.X, data.y)
    found = numbers.scores(held)
    p = held.result.probability
    u = np.log(p / (1 - p))
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(u[:, None], held.true)
    assert found.slope == pytest.approx(peer.coef_[0, 0], rel=1e-4)
    assert np.mean(1 / (1 + np.exp(-u - found.intercept))) == pytest.approx(held.true.mean())
    pairs = p[held.true == 1][:, None] - p[held.true == 0]
    assert found.auc == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))
    assert found.brier == pytest.approx(np.mean((p - held.true) ** 2))
    same = replace(held, result=replace(held.result, probability=np.full(len(p), 0.3)))
    assert np.isnan(numbers.scores(same).slope)
    assert all(np.isnan(numbers.scores(replace(held, true=np.zeros_like(held.true)))[1:]))
    low, high = numbers.threshold_window(held)
    assert low < 0.4 < high < 0.7
    inside = (p >= low) & (p <= high)
    assert sum(b.rows for b in numbers.calibration(held, low, high)) == inside.sum()


def test_the_flow_accounts_for_every_row(asking):
    data, policy = asking
    held = hold(policy, data.X, data.y)
    levels = numbers.flow(held.result, held.policy)
    assert levels[0].asked == ()
    reached = 1.0
    for level in levels:
        assert sum(level.answered) + level.further == pytest.approx(reached)
        reached = level.further
    assert reached == 0
    assert sum(v.answered[1] for v in levels) == pytest.approx(np.mean(held.label == 1))
    for before, level in itertools.pairwise(levels):
        assert sum(share for _, share in level.asked) == pytest.approx(before.further)
    first = policy.encoder_.names[policy.model_.sequence.order[0]]
    assert levels[1].asked[0][0] == first


def test_misfits_count_the_wrong_answers(asking):
    data, policy = asking
    held = hold(policy, data.X, data.y)
    found = numbers.misfits(held)
    counted = [m.found.among for m in found]
    assert sum(counted) > 0.8 * len(held.true)
    last = found[-1]
    stage = [f"after {names[-1]}" if names else "" for names in policy.sets_].index(last.stop)
    rows = (held.result.stage == stage) & (held.label == last.answer)
    assert last.found.among == rows.sum()
    assert last.found.found == np.sum(held.true[rows] != last.answer)
    risk = held.result.expected_cost - held.result.cost
    assert last.expected_cost == pytest.approx(risk[rows].mean())
    assert last.found.low <= last.found.value <= last.found.high


def test_the_band_is_as_wide_as_refits_differ():
    """Half the band against the spread of the shape function over fresh samples."""
    costs = Costs([1.0, 1.0], false_positive=10, false_negative=10)

    def fitted(seed: int):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(400, 2))
        y = (rng.random(400) < 1 / (1 + np.exp(-(X[:, 0] ** 2 - 1 + X[:, 1])))).astype(int)
        policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(X, y)
        return shapes(hold(policy, X, y), len(policy.sets_) - 1)

    grid = np.linspace(-1.6, 1.6, 9)
    found = [fitted(seed) for seed in range(16)]
    for name in ("x0", "x1"):
        own = [next(s for s in run if s.covariate == name) for run in found]
        spread = np.std([np.interp(grid, s.values, s.effects[:, 0]) for s in own], axis=0, ddof=1)
        half = np.mean([np.interp(grid, s.values, s.half) for s in own], axis=0) / 1.96
        assert 0.6 < np.mean(half) / np.mean(spread) < 1.6
        assert all(len(s.rug) > 0 for s in own)


def test_shapes_are_those_of_the_usual_stop(asking):
    data, policy = asking
    held = hold(policy, data.X, data.y)
    stage = usual_stage(held)
    counts = np.bincount(held.result.stage)
    assert counts[stage] == counts[1:].max()
    found = shapes(held, stage)
    assert {s.covariate for s in found} <= set(policy.sets_[stage])
    complete = data.X.notna().all(axis=1).to_numpy()
    encoded = hold(policy, data.X[complete], data.y[complete]).encoded
    total = policy.model_.intercepts[stage]
    for shape in found:
        k = policy.encoder_.names.index(shape.covariate)
        if policy.encoder_.categories[k]:
            return
        column = encoded[:, np.flatnonzero(policy.encoder_.source == k)[0]]
        total = total + np.interp(column, shape.values, shape.effects[:, 0])
    np.testing.assert_allclose(total, policy.model_.log_odds(encoded, stage), atol=0.05)


def test_importances_share_out_what_was_paid(asking):
    data, policy = asking
    result = policy.acquire(data.X)
    found = covariate_importances(policy, data.X)
    assert [i.covariate for i in sorted(found)] == sorted(policy.encoder_.names)
    assert sum(i.cost for i in found) == pytest.approx(result.cost.mean())
    shares = dict(zip(result.names, result.acquired.mean(axis=0), strict=True))
    assert {i.covariate: i.share for i in found} == pytest.approx(shares)
    top = found[0]
    blank = data.X.copy()
    blank[top.covariate] = np.nan
    without = policy.acquire(blank)
    drop = np.mean(without.expected_cost - without.cost) - np.mean(
        result.expected_cost - result.cost
    )
    assert top.drop == pytest.approx(drop)
    assert top.drop > 0


@pytest.mark.parametrize("kind", registered(), ids=lambda kind: kind.__name__)
@pytest.mark.usefixtures("undrawn")
def test_every_policy_has_a_report(kind, tmp_path):
    X, y = table()
    policy = build(kind).fit(X, y)
    found = write_report(policy, X, y, tmp_path / "r.html", "Report")
    text = readable((tmp_path / "r.html").read_text())
    result = policy.acquire(X)
    wrong = np.where(y == 1, 60 * (result.label == 0), 20 * (result.label == 1))
    assert found["total_cost"] == pytest.approx((result.cost + wrong).mean())
    assert "What the policy does" in text
    assert ("Shape functions" in text) == (policy.chosen.sequence_model is not None)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("classes", [2, 3])
def test_training_rows_are_reported(classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 2))
    y = np.digitize(X[:, 0] + rng.normal(size=450), [0, 1][: classes - 1])
    costs = Costs([1.0, 2.0], misclassification=40 * (1 - np.eye(classes)))
    policy = AdaCOSClassifier(costs, strengths="common", cv=2).fit(X[:300], y[:300])
    for rows, reported in ((slice(300), 300), (slice(300, None), 0)):
        found = write_report(policy, X[rows], y[rows], tmp_path / "r.html", "Report")
        assert found["training_rows"] == reported
        text = readable((tmp_path / "r.html").read_text())
        assert ("The model was trained on 300 of them." in text) == bool(reported)
        assert ("They should not have been used for fitting." in text) != bool(reported)


@pytest.mark.usefixtures("undrawn")
def test_everyone_positive_is_the_first_thing_said(tmp_path):
    data = adacos.load_pima()
    policy = TargetRecallClassifier(
        AdaCOSClassifier(Costs(data.prices, false_positive=100), strengths="common", cv=5),
        target_recall=0.999,
        recall_confidence=0.95,
        on_uncertifiable="always_positive",
    ).fit(data.X, data.y)
    write_report(policy, data.X[:200], data.y[:200], tmp_path / "r.html", "Report")
    text = readable((tmp_path / "r.html").read_text())
    body = text.partition("Glossary")[2].split()
    assert " ".join(body[:5]) == "The model calls everyone positive"
    assert "to compare it with, everyone positive, costs 0.00" in text
    assert "e+" not in text
    assert "everyone negative costs" not in text


@pytest.mark.usefixtures("undrawn")
def test_every_amount_has_its_currency_and_every_covariate_its_label(heart, tmp_path):
    data, policy = heart
    (tmp_path / "d.toml").write_text(
        'currency = "CAD"\n[classes]\n1 = "ill"\n[covariates.age]\nlabel = "Years of life"\n'
    )
    described = AdaCOSClassifier(policy.costs).from_model(policy)
    adacos.describe(described, tmp_path / "d.toml")
    write_report(described, data.X, data.y, tmp_path / "r.html", "Report")
    text = readable((tmp_path / "r.html").read_text())
    amounts = re.findall(r"([±×]\s)?(?<![\d.])(-?\d+\.\d\d)(?![\d.])(\s*(?:times|[A-Z%]*))", text)
    assert len(amounts) > 50
    # The curve of budgets counts covariate costs so many times.
    units = ("CAD", "times")
    assert [found for found in amounts if not found[0] and found[2].strip() not in units] == []
    assert "Years of life" in text
    assert "with ill" in text


def test_the_words_of_the_tables_are_explained(page):
    explained = page.rpartition("Glossary")[2]
    known = "expected cost of a wrong answer"
    for word in ("COS", "full model", "total cost", known, "sensitivity (recall)"):
        assert f"{word}:" in explained
    assert "net benefit:" in explained
    assert "AdaCOS:" not in explained


def test_the_lookahead_is_held_against_itself():
    """The paper's lookahead expects harm of information in about half the cases, ours never."""
    data = load_wisconsin()
    costs = Costs(data.prices, false_positive=100, false_negative=1000)
    coherent = AdaCOSClassifier(costs).fit(data.X, data.y)
    paper = AdaCOSClassifier(costs, lookahead="paper").from_model(coherent)
    assert numbers.incoherent_share(hold(coherent, data.X, data.y)) == 0
    assert numbers.incoherent_share(hold(paper, data.X, data.y)) > 0.3
    full = FullModelClassifier(costs).from_model(coherent)
    assert numbers.incoherent_share(hold(full, data.X, data.y)) is None


@pytest.fixture
def few_trees(monkeypatch) -> None:
    """Boosting that takes no time."""
    few = HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=4, random_state=0)
    monkeypatch.setattr(CostedClassifier, "_boosting", lambda self: few)


def test_boosting_is_compared_row_by_row(heart, undrawn, few_trees, tmp_path):
    X, y = heart[0].X.iloc[:, :4], np.asarray(heart[0].y)
    prices = {name: heart[0].prices[name] for name in X.columns}
    costs = Costs(prices, false_positive=100, false_negative=1633)
    train, test = np.arange(0, 303, 2), np.arange(1, 303, 2)
    policy = AdaCOSClassifier(costs, strengths="common").fit(X.iloc[train], y[train])
    training, path = (X.iloc[train], y[train]), tmp_path / "r.html"
    reported = write_report(policy, X.iloc[test], y[test], path, "Report", training)["boosting"]
    boosted = CostedClassifier(None, costs, covariates="best").fit(*training)
    theirs = total_costs(boosted.acquire(X.iloc[test]), y[test], costs)
    ours = total_costs(policy.acquire(X.iloc[test]), y[test], costs)
    assert reported["covariates"] == list(boosted.covariates_)
    assert reported["cost"] == pytest.approx(theirs.mean())
    assert reported["more"] == pytest.approx((theirs - ours).mean())
    assert reported["more_error"] == pytest.approx((theirs - ours).std(ddof=1) / np.sqrt(len(test)))
    text = readable(path.read_text(encoding="utf-8"))
    assert f"fitted on {len(train)} training rows, of which the model learned from 152" in text
    low = reported["more"] - 1.96 * reported["more_error"]
    assert f"95% interval of the difference {low:.2f} to" in text
    # Rows that are judged are not learned from, and every class is learned of.
    with pytest.raises(InvalidInputError, match="151 rows that are in both"):
        hold(policy, X.iloc[test], y[test], (X, y))
    one_class = X.iloc[train][y[train] == 0], y[train][y[train] == 0]
    with pytest.raises(InvalidInputError, match="none of 1"):
        hold(policy, X.iloc[test], y[test], one_class)


def test_boosting_keeps_the_budget_of_the_policy(heart, few_trees):
    data, y = heart[0], np.asarray(heart[0].y)
    costs = Costs(data.prices, false_positive=1000, false_negative=1633, panels=data.panels)
    policy = AdaCOSClassifier(costs, strengths="common", budget=3.0)
    policy.fit(data.X.iloc[::2], y[::2])
    held = hold(policy, data.X.iloc[1::2], y[1::2], (data.X.iloc[::2], y[::2]))
    assert held.boosted.policy.acquire(data.X).cost.max() <= 3.0


def test_without_training_rows_the_report_says_how_to_compare_boosting(page):
    assert "--training FILE" in page
    assert "boosting on the best fixed set:" not in page
