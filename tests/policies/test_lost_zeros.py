"""Codes that lost their leading zeros on the way are named by `check`, and what to do about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from adacos import COSClassifier, Costs
from adacos.policies.fitting import inner_fits


@pytest.mark.parametrize(
    ("written", "reported"),
    [("text", False), ("whole numbers", True), ("numbers", True), ("another code", False)],
)
def test_codes_without_their_leading_zeros_are_named(written: str, reported: bool) -> None:
    rng = np.random.default_rng(0)
    code = rng.choice(["00501", "02134", "08540"], 300)
    y = (rng.random(300) < np.where(code == "00501", 0.8, 0.3)).astype(int)
    costs = Costs({"zip": 1.0, "age": 1.0}, false_positive=10, false_negative=10)
    X = pd.DataFrame({"zip": code, "age": rng.normal(50, 10, 300)})
    with inner_fits():
        policy = COSClassifier(costs, cv=3, strengths="common").fit(X, y)
    new = {
        "text": code,
        "whole numbers": code.astype(int),
        "numbers": code.astype(float),
        "another code": np.where(code == "08540", "90210", code),
    }[written]
    rows = pd.DataFrame({"zip": new, "age": rng.normal(50, 10, 300)})
    found = [item for item in policy.check(rows) if item.kind == "unknown_category"]
    assert any("without their leading zeros" in item.message for item in found) is reported
    assert bool(found) is (written != "text")
