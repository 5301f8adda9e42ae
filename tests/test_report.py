"""The report: its numbers agree with the library, and its words are used in one meaning each."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

import adacos
from adacos import AdaCOSClassifier, COSClassifier, Costs, FullModelClassifier
from adacos.metrics import total_costs
from adacos.report import figures, numbers, write_report

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def heart():
    """Rows with missing cells, and a policy with panels."""
    data = adacos.load_heart()
    costs = Costs(data.prices, false_positive=100, false_negative=1633, panels=data.panels)
    return data, AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y)


@pytest.fixture(scope="module")
def page(heart, tmp_path_factory) -> str:
    """The text of a report, without figures and tags."""
    data, policy = heart
    path = tmp_path_factory.mktemp("report") / "r.html"
    write_report(policy, data.X, data.y, path, "Report")
    return readable(path.read_text(encoding="utf-8"))


def readable(text: str) -> str:
    text = re.sub(r"<style>.*?</style>|<img [^>]*>", "", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


def test_one_name_for_the_policy(page, heart):
    assert "this policy" in page
    assert "AdaCOS " not in page.replace("AdaCOSClassifier", "")
    data, policy = heart
    for kind, others in (
        (AdaCOSClassifier, ["COS", "full model"]),
        (COSClassifier, ["AdaCOS", "full model"]),
        (FullModelClassifier, ["AdaCOS", "COS"]),
    ):
        held = numbers.hold(kind(policy.costs).from_model(policy), data.X, data.y)
        found = [m.name for m in numbers.methods(held)]
        assert found == ["this policy", *others, "everyone positive", "everyone negative"]
        assert sorted(m.name for m in numbers.sensitivity(held)[2][1]) == sorted(found[:3])
        _, curves = numbers.decision_curves(held)
        assert {c.name for c in curves} <= set(found) <= set(figures._LOOK)


def test_the_difference_is_paired(heart):
    data, policy = heart
    held = numbers.hold(policy, data.X, data.y)
    own, cos, *_ = numbers.methods(held)
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


def test_missing_cells_explain_the_order(page, heart, tmp_path):
    data, policy = heart
    held = numbers.hold(policy, data.X, data.y)
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
    assert "1633.00" in first


def test_held_out_is_said_of_the_certificate_alone(page, tmp_path):
    assert "held-out" not in page
    data = adacos.load_pima()
    policy = AdaCOSClassifier(
        Costs(data.prices, false_positive=400),
        strengths="common",
        target_recall=0.85,
        recall_confidence=0.9,
        cv=5,
    ).fit(data.X, data.y)
    write_report(policy, data.X[:200], data.y[:200], tmp_path / "r.html", "Report")
    found = readable((tmp_path / "r.html").read_text())
    before, _, after = found.partition("not on the evaluation rows:")
    assert "positive evaluation rows were answered positive" in before
    assert "held-out positive rows missed" in after
    assert before.count("held-out") == 1
    assert "“held-out” below" in before


def test_the_legend_of_the_calibration_is_clear_of_the_intervals(monkeypatch):
    drawn = []
    original = figures._picture
    monkeypatch.setattr(
        figures, "_picture", lambda figure, *rest: drawn.append(figure) or original(figure, *rest)
    )
    bins = [numbers.Bin(p, 0.9, 0.5, 1.0, 10) for p in (0.05, 0.3, 0.6, 0.95)]
    figures.calibration(bins, np.linspace(0, 1, 50))
    (figure,) = drawn
    figure.draw_without_rendering()
    axis = figure.axes[0]
    legend = axis.get_legend().get_window_extent()
    assert legend.y0 >= axis.get_window_extent().y1 - 1
    assert legend.x1 <= figure.bbox.x1
