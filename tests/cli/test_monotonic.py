"""`adacos fit --monotonic`: contributions that only rise or fall."""

import numpy as np
import pandas as pd
import pytest

from adacos import load


@pytest.fixture
def fit(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["dose, mg", "age"])
    risen = np.sin(2 * frame["dose, mg"]) + frame["age"]
    frame["ill"] = (rng.random(200) < 1 / (1 + np.exp(-risen))).astype(int)
    frame.to_csv(tmp_path / "rows.csv", index=False)

    def call(*options):
        return run(
            "fit", tmp_path / "rows.csv", "--target", "ill", "--default-price", 1,
            "--false-positive", 20, "--false-negative", 20, "--out", tmp_path / "m.adacos",
            *options,
        )  # fmt: skip

    return call


def test_a_model_with_directions(fit, tmp_path):
    code, _, reported = fit("--monotonic", "dose, mg=1", "--monotonic", "age=+1")
    assert code == 0, reported
    policy = load(tmp_path / "m.adacos")
    assert policy.monotonic_cst == {"dose, mg": 1, "age": 1}
    rows = pd.DataFrame({"dose, mg": np.linspace(-5, 5, 200), "age": 0.0})
    p = policy.predict_proba(rows, known=["dose, mg", "age"])[:, 1]
    assert np.all(np.diff(p) >= -1e-12)


def test_mistakes_are_reported(fit, tmp_path):
    for options, message in (
        (("--monotonic", "Age=1"), "Did you mean age"),
        (("--monotonic", "age"), "must be NAME=VALUE"),
        (("--monotonic", "age=up"), "must be 1 or -1 for age"),
        (("--monotonic", "age=1", "--policy", "planning"), "cannot be combined with --policy"),
    ):
        code, _, reported = fit(*options)
        assert code == 2, options
        assert message in reported, (options, reported)
        assert not (tmp_path / "m.adacos").exists()
