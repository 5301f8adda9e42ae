"""The report on three classes: its numbers are those of the rows, and no class is positive."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss, recall_score

from adacos import AdaCOSClassifier, COSClassifier
from adacos.metrics import total_costs
from adacos.report import answers, figures, numbers, write_report
from adacos.report.held import FACTORS, Held, hold, methods, sensitivity
from adacos.report.shapes import shapes
from tests.rivals.problems import THREE_COSTS, three_table

pytest.importorskip("matplotlib")

# Dear enough that rows are asked for something.
COSTS = THREE_COSTS.with_misclassification(8 * THREE_COSTS.matrix)


@pytest.fixture(scope="module")
def held() -> Held:
    X, y = three_table(300, seed=1)
    policy = AdaCOSClassifier(COSTS, cv=3, strengths="common").fit(*three_table())
    return hold(policy, X, y)


def test_counts_are_those_of_the_rows(held: Held) -> None:
    counts = answers.confusion(held)
    np.testing.assert_array_equal(counts, confusion_matrix(held.true, held.label, labels=range(3)))
    lines = answers.class_lines(held)
    found = [line.recall.value for line in lines]
    np.testing.assert_allclose(found, recall_score(held.true, held.label, average=None))
    assert all(line.recall.low <= line.recall.value <= line.recall.high for line in lines)
    wrong = held.charged[held.true, held.label]
    for k, line in enumerate(lines):
        assert line.cost == pytest.approx(wrong[held.true == k].mean())
    loss, brier = numbers.class_scores(held)
    p = held.result.probability
    assert loss == pytest.approx(log_loss(held.true, p))
    assert brier == pytest.approx(np.mean(np.sum((np.eye(3)[held.true] - p) ** 2, axis=1)))
    rows = sum(bin.rows for bin in numbers.class_calibration(held)[1])
    assert rows == len(held.true)


def test_misfits_hold_expected_and_found(held: Held) -> None:
    lines = numbers.misfits(held)
    assert lines
    expected = held.result.expected_cost - held.result.cost
    wrong = held.charged[held.true, held.label]
    n = np.array([line.found.among for line in lines])
    assert n.sum() >= 0.9 * len(held.true)
    # The few rows that are not listed are the only difference.
    bound = (len(held.true) - n.sum()) * np.ptp(held.charged) / len(held.true) + 1e-9
    for own, values in (("expected_cost", expected), ("cost", wrong)):
        listed = np.sum([getattr(line, own) for line in lines] * n) / len(held.true)
        assert listed == pytest.approx(values.mean(), abs=bound)


def test_shapes_are_the_differences_of_log_odds(held: Held) -> None:
    """A change of one value changes log-odds of two classes by the difference of their shapes."""
    policy = held.policy
    stage = len(policy.sets_) - 1
    found = {shape.covariate: shape for shape in shapes(held, stage)}
    shape = found["sugar"]
    np.testing.assert_allclose(shape.effects.sum(axis=1), 0.0, atol=1e-9)
    row = held.table.dropna().head(1)
    low, high = (row.assign(sugar=value) for value in shape.values[[10, 100]])
    encoded = [policy._encode(part) for part in (low, high)]
    before, after = (policy.model_.log_odds_by_set(part)[0, stage] for part in encoded)
    change = shape.effects[100] - shape.effects[10]
    np.testing.assert_allclose(after - before, change[1:] - change[0], rtol=1e-7)


def test_methods_and_sensitivity(held: Held) -> None:
    compared = methods(held)
    names = [f"everyone {name}" for name in ("healthy", "sick", "very sick")]
    assert [m.name for m in compared] == ["this policy", "COS", "full model", *names]
    cos = COSClassifier(COSTS).from_model(held.policy).acquire(held.table)
    total = total_costs(cos, held.policy.classes_[held.true], COSTS)
    assert compared[1].total.value == pytest.approx(total.mean())
    at_once = dict(sensitivity(held))[FACTORS[2]]
    assert at_once[0].total.value == pytest.approx(compared[0].total.value)
    # Dearer errors cannot make the cheapest way of answering cheaper, right answers as they are.
    assert sensitivity(held)[-1][1][0].covariate.value > at_once[0].covariate.value


def test_the_page_names_every_class_and_none_positive(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "_svg", lambda figure: b"")
    y = held.policy.classes_[held.true]
    reported = write_report(held.policy, held.table, y, tmp_path / "r.html", "Report")
    recall = recall_score(held.true, held.label, average=None)
    assert list(reported["recall"].values()) == pytest.approx(recall.tolist())
    page = re.sub(r"<style>.*?</style>|<[^>]*>", " ", (tmp_path / "r.html").read_text())
    page = html.unescape(page)
    for name in ("healthy", "sick", "very sick"):
        assert f"answered {name}" in page
    for word in ("positive", "negative", "threshold", "nan"):
        assert word not in page.lower().split()
