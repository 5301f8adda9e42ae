"""`adacos audit`: groups by columns of a file, in bands and crossed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import audit, load, load_heart
from adacos.policies.audit_groups import bands_of


@pytest.fixture(scope="module")
def heart(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("audit")
    X, y, *_ = load_heart()
    rng = np.random.default_rng(0)
    table = X.assign(
        y=y, site=rng.choice(["north", "south", ""], len(y)), visit=np.arange(len(y)) // 2
    )
    table[::2].to_csv(folder / "train.csv", index=False)
    table[1::2].to_csv(folder / "held.csv", index=False)
    return folder


@pytest.fixture
def model(heart: Path, run: Any) -> Path:
    out = heart / "m.adacos"
    if not out.exists():
        code, _, reported = run(
            "fit", heart / "train.csv", "--target", "y", "--drop", "site,visit", "--policy", "cos",
            "--default-price", 1, "--false-positive", 100, "--false-negative", 300, "--out", out,
        )  # fmt: skip
        assert code == 0, reported
    return out


def test_groups_of_a_file_are_those_of_python(run: Any, heart: Path, model: Path) -> None:
    rows = ("--data", heart / "held.csv", "--target", "y")
    options = ("--group", "sex,site", "--group", "age", "--bands", "age=50,60", "--recall", 0.8)
    code, out, reported = run("audit", model, *rows, *options, "--json")
    assert code == 0, reported
    found = json.loads(out)
    X, y, *_ = load_heart()
    X, y = X[1::2], y[1::2]
    rng = np.random.default_rng(0)
    site = rng.choice(["north", "south", ""], 2 * len(y) + 1)[1::2]
    ages = bands_of(X["age"], [50, 60])
    by = {"sex": X["sex"].astype(int), "site": site, "age": ages}
    own = audit(load(model), X, y, by, recall=0.8)
    assert found == json.loads(json.dumps(own.to_dict()))
    assert [one["name"] for one in found["groupings"]] == ["sex", "site", "age"]
    assert list(found["groupings"][1]["by_group"]["recall"]) == ["north", "south", "(no value)"]
    code, out, _ = run("audit", model, *rows, *options)
    assert code == 0
    assert str(own) in out


def test_crossed_clustered_and_drawn(run: Any, heart: Path, model: Path, tmp_path: Path) -> None:
    plot = tmp_path / "a.png"
    code, out, reported = run(
        "audit", model, "--data", heart / "held.csv", "--target", "y", "--group", "sex",
        "--group", "site", "--cross", "--groups", "visit", "--plot", plot,
    )  # fmt: skip
    assert code == 0, reported
    assert "1 × north" in out
    assert "groups of dependent rows" in out
    assert "fewer than 30 rows" in reported
    assert plot.read_bytes().startswith(b"\x89PNG")
    code, _, reported = run(
        "audit", model, "--data", heart / "train.csv", "--target", "y", "--group", "sex"
    )
    assert code == 0
    assert "rows that the policy was trained on" in reported


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--groups is for rows that belong together"),
        (("--group", "gender"), "--group: must name columns; received gender"),
        (("--group", "sxe"), "Did you mean sex?"),
        (("--group", "y"), "must be another column than the target"),
        (("--group", "sex", "--bands", "age=40"), "must name a column of --group"),
        (("--group", "age", "--bands", "age=60,40"), "must be numbers that rise"),
        (("--group", "site", "--bands", "site=40"), "must be a column of numbers; received"),
        (("--group", "sex", "--recall", 85), "Did you mean 0.85?"),
        (("--group", "sex", "--confidence", 95), "Did you mean 0.95?"),
        (("--group", "sex", "--plot", "a.doc"), "must end in .png"),
    ],
)
def test_what_cannot_be_audited(run: Any, heart: Path, model: Path, options, message) -> None:  # type: ignore[no-untyped-def]
    code, out, reported = run(
        "audit", model, "--data", heart / "held.csv", "--target", "y", *options
    )
    assert code == 2
    assert not out
    assert message in reported
