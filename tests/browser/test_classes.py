"""A consultation of a model with three classes on the web page."""

from __future__ import annotations

import numpy as np
import pytest

import adacos
from adacos import AdaCOSClassifier
from adacos.consultation.steps import Acquire
from tests.browser.conftest import playwright, served
from tests.rivals.problems import THREE_COSTS, three_table

pytestmark = pytest.mark.browser
expect = playwright.expect


def test_every_class_is_shown_with_its_probability(open_page, tmp_path):
    X, y = three_table()
    number = int(np.flatnonzero(X.notna().all(axis=1).to_numpy() & (y == "very sick"))[0])
    row = X.iloc[number].to_dict()
    policy = AdaCOSClassifier(THREE_COSTS, cv=3, strengths="common").fit(X, y)
    adacos.save(policy, tmp_path / "three.adacos")
    consultation = policy.consultation()
    with served(tmp_path / "three.adacos") as url:
        page = open_page(url)
        page.locator("#start-form").wait_for()
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator("#consultation").wait_for()
        while isinstance(step := consultation.next(), Acquire):
            now = page.locator("#now").inner_text().replace("\u00a0", " ")
            for name, chance in step.explanation.probabilities.items():
                assert f"{name} {100 * chance:.1f}%" in now
            for name in step.covariates:
                place = page.locator(f'#answers [data-name="{name}"]').first
                control = place.locator("input, select").first
                if control.get_attribute("type") == "radio":
                    place.get_by_text(str(row[name]), exact=True).click()
                else:
                    control.fill(f"{row[name]:g}")
            with page.expect_response("**/v1/step"):
                page.get_by_role("button", name="Enter", exact=True).click()
            expect(page.locator("button:disabled")).to_have_count(0)
            consultation.observe({name: row[name] for name in step.covariates})
        expect(page.locator("#decision-title")).to_have_text(step.label)
        facts = page.locator("#decision-facts").inner_text().replace("\u00a0", " ")
        for name, chance in step.explanation.probabilities.items():
            assert f"Probability of {name}\n{100 * chance:.1f}%" in facts
        shown = page.locator("body").inner_text().lower()
        assert "positive" not in shown
        assert "undefined" not in shown
        assert "nan" not in shown.split()
        # Start and contributions make up the log-odds that are told.
        parts = page.locator("#contributions td.number").all_inner_texts()
        *parts, total = (float(part.replace("−", "-")) for part in parts)
        assert sum(parts) == pytest.approx(total, abs=0.01 * len(parts))
