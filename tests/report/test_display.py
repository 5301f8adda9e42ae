"""Figures for notebooks: the same drawing as in the report, and objects shown as HTML."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adacos import (
    AcquisitionDisplay,
    AdaCOSClassifier,
    BranchingClassifier,
    CostCurveDisplay,
    Costs,
    InvalidInputError,
    TargetRecallClassifier,
    TradeOffDisplay,
    TreeDisplay,
    load_pima,
    trade_off,
)
from adacos.datasets import make_value_dependent_problem
from adacos.metrics import total_cost

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(scope="module")
def fitted() -> Any:
    X, y, prices, *_ = load_pima(zeros="missing", as_frame=False)
    costs = Costs(tuple(prices.values()), false_positive=100, false_negative=1000)
    policy = AdaCOSClassifier(costs, strengths="common", cv=3).fit(X[:400], y[:400])
    return policy, X[400:], y[400:], costs


@pytest.fixture(scope="module")
def branching() -> Any:
    problem = make_value_dependent_problem()
    X, y = problem.sample(500, seed=0)
    costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    return BranchingClassifier(costs).fit(X, y), X, y


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def test_the_bars_are_the_shares_of_rows(fitted: Any) -> None:
    policy, X, _, _ = fitted
    display = AcquisitionDisplay.from_estimator(policy, X)
    result = policy.acquire(X)
    count = result.acquired.sum(axis=1)
    negative, positive, further = (
        [bar.get_width() for bar in bars] for bars in display.ax_.containers
    )
    for step in range(count.max() + 1):
        here = count == step
        assert negative[step] == pytest.approx(100 * np.mean(here & (result.label == 0)))
        assert positive[step] == pytest.approx(100 * np.mean(here & (result.label == 1)))
        assert further[step] == pytest.approx(100 * np.mean(count > step))


def test_axes_that_are_given_are_drawn_into(fitted: Any) -> None:
    policy, X, y, _ = fitted
    figure, axes = pyplot.subplots(1, 3)
    shown = (
        AcquisitionDisplay.from_estimator(policy, X, ax=axes[0]),
        CostCurveDisplay.from_estimator(policy, X, y, ax=axes[1]),
        TradeOffDisplay.from_estimator(policy, X, y, points=3, ax=axes[2]),
    )
    for display, axis in zip(shown, axes, strict=True):
        assert display.ax_ is axis
        assert display.figure_ is figure
        assert axis.get_xlabel() or axis.get_ylabel()
    assert pyplot.get_fignums() == [figure.number]
    assert shown[0].plot().ax_ is not axes[0]


def test_the_style_of_the_caller_is_not_touched(fitted: Any) -> None:
    before = dict(matplotlib.rcParams)
    AcquisitionDisplay.from_estimator(fitted[0], fitted[1])
    assert dict(matplotlib.rcParams) == before


def test_the_cost_curve_is_that_of_the_rows(fitted: Any) -> None:
    policy, X, y, costs = fitted
    display = CostCurveDisplay.from_estimator(policy, X, y)
    assert display.policy_cost == pytest.approx(total_cost(policy.acquire(X), y, costs))
    label = np.full(len(y), 1)
    alike = 100 * np.mean((y == 0) & (label == 1))
    # Nothing is acquired at the first set, and the prior is above the cut-off of 1 / 11.
    assert display.observed[0] == pytest.approx(alike)
    assert display.ax_.lines[0].get_ydata() == pytest.approx(policy.expected_cost_by_set_)
    # At the last set rows pay for what they have: every covariate but the missing ones.
    encoded = np.asarray(policy._encode(X))
    last = policy.model_.log_odds_by_set(encoded)[:, -1] >= np.log(0.1)
    paid = np.where(np.isnan(X), 0.0, costs.covariates).sum(axis=1)
    total = paid + 100 * (last & (y == 0)) + 1000 * (~last & (y == 1))
    assert display.observed[-1] == pytest.approx(total.mean())


def test_the_trade_off_is_the_curve(fitted: Any) -> None:
    policy, X, y, _ = fitted
    display = TradeOffDisplay.from_estimator(policy, X, y, points=4)
    curve = trade_off(policy, X, y, points=4)
    assert display.curve == curve
    assert display.ax_.lines[0].get_xdata() == pytest.approx(
        [p.covariate_cost for p in curve.points]
    )
    assert display.paid == pytest.approx(policy.acquire(X).cost.mean())


def test_a_policy_that_branches_is_drawn_as_its_tree(fitted: Any, branching: Any) -> None:
    policy, X, y = branching
    display = TreeDisplay.from_estimator(policy)
    texts = [text.get_text() for text in display.ax_.texts]
    root = texts.index("everyone")
    assert texts[root + 1] == "asked x0"
    assert texts[root + 2].startswith("x0 = 0")
    zero = (policy.acquire(X).order[:, 0] == 0) & (X[:, 0] == 0)
    half = TreeDisplay.from_estimator(policy, X[zero])
    assert [place.share for place in half.tree.places] == [1, 1, 0]
    with pytest.raises(InvalidInputError, match=r"policy: must branch.*Use AcquisitionDisplay"):
        TreeDisplay.from_estimator(fitted[0])
    with pytest.raises(InvalidInputError, match="policy: must ask in one order"):
        CostCurveDisplay.from_estimator(policy, X, y)


@pytest.mark.parametrize("width", [3.5, 9.0])
def test_a_tree_is_drawn_into_axes_that_are_given(branching: Any, width: float) -> None:
    figure, axis = pyplot.subplots(figsize=(width, 3))
    display = TreeDisplay.from_estimator(branching[0], ax=axis)
    assert (display.ax_, display.figure_) == (axis, figure)
    window = axis.get_window_extent()
    renderer = figure.canvas.get_renderer()
    for text in axis.texts:
        shown = text.get_window_extent(renderer)
        assert window.x0 - 1 <= shown.x0
        assert shown.x1 <= window.x1 + 1
    assert pyplot.get_fignums() == [figure.number]


def test_a_policy_that_branches_has_a_funnel(branching: Any) -> None:
    policy, X, _ = branching
    labels = AcquisitionDisplay.from_estimator(policy, X).ax_.get_yticklabels()
    first, second = (label.get_text() for label in labels[1:3])
    assert "x0" in first
    assert {"x1", "x2"} <= set(second.split())


def test_objects_are_shown_as_html(fitted: Any, branching: Any) -> None:
    policy, X, y, costs = fitted
    result = policy.acquire(X)
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + X.shape[1]
    assert f"{result.cost.mean():.2f} paid" in html
    assert "0 rows" in result.rows(slice(0, 0))._repr_html_()
    consultation = policy.consultation()
    step = consultation.next()
    assert str(step.explanation) in step._repr_html_()
    assert step.text() in step._repr_html_()
    consultation.observe({step.covariates[0]: 999.0})
    odd = consultation.next()
    assert f"<li>{odd.warnings[0]}</li>" in odd._repr_html_()
    assert consultation.stop().next()._repr_html_().startswith("<h3>Classify as")
    assert "├─ x0 = 0" in branching[0].tree_._repr_html_()
    half = np.arange(len(y)) % 2 == 0
    certified = TargetRecallClassifier(
        AdaCOSClassifier(Costs(costs.covariates, false_positive=100), strengths="common", cv=3),
        target_recall=0.8,
    ).fit(X[half], y[half])
    certified.calibrate(X[~half], y[~half], confidence=0.9)
    assert str(certified.certificate_) in certified.certificate_._repr_html_()


def test_text_is_escaped() -> None:
    from adacos.document.blocks import Plain, fragment, to_markdown

    assert fragment([Plain("a < b\n  c")]) == "<pre>a &lt; b\n  c</pre>"
    assert "```\na < b\n```" in to_markdown("title", [Plain("a < b")])
