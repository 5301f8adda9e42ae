"""Tables as users bring them: codes, words for classes, cells that were never filled in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adacos.cli.training import expected_seconds
from adacos.tables.columns import ColumnTable

ERRORS = ("--false-positive", 100, "--false-negative", 100)


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """Sixty postal codes, of which every third has many positives: as numbers they say nothing."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 60, 1200)
    y = rng.random(1200) < np.where(place % 3 == 0, 0.95, 0.05)
    lines = [
        f"{k:05},{v:.3f},{int(c)}" for k, v, c in zip(place, rng.normal(size=1200), y, strict=True)
    ]
    path = tmp_path / "towns.csv"
    path.write_text("zip,x,y\n" + "\n".join(lines) + "\n")
    return path


def fitted(run, data: Path, out: Path, *options: object) -> dict:
    prices = ("--default-price", 1)
    arguments = (data, "--target", "y", *prices, *ERRORS, "--out", out, "--json", *options)
    code, reported, err = run("fit", *arguments)
    assert code == 0, err
    return json.loads(reported)


def test_codes_with_leading_zeros_are_categories(run, towns, tmp_path):
    reported = fitted(run, towns, tmp_path / "a.adacos")
    assert any(
        w.startswith("zip: digits with zeros in front are codes") for w in reported["warnings"]
    )
    numbers = fitted(run, towns, tmp_path / "b.adacos", "--numeric", "zip")
    assert not any("zip" in warning for warning in numbers["warnings"])
    costs = [min(fit["card"]["out_of_fold_cost_by_set"]) for fit in (reported, numbers)]
    assert costs[0] < 0.5 * costs[1]
    named = fitted(run, towns, tmp_path / "c.adacos", "--categorical", "zip")
    assert not any("zip" in warning for warning in named["warnings"])
    code, _, err = run(
        *("fit", towns, "--target", "y", "--default-price", 1, *ERRORS),
        *("--numeric", "zip", "--categorical", "zip"),
    )
    assert code == 2
    assert "--numeric: must name covariates that --categorical does not name" in err


def test_report_and_tradeoff_on_training_rows_say_so(run, folder, tmp_path):
    for rows, reported in (("train", True), ("held_out", False)):
        data = (folder / "model.adacos", "--data", folder / f"{rows}.csv", "--target", "diabetes")
        for command in (("tradeoff",), ("report", "--out", tmp_path / "r.html")):
            code, _, err = run(command[0], *data, *command[1:])
            assert code == 0
            assert ("of 500 rows are rows that the" in err) is reported


@pytest.fixture
def customers(tmp_path: Path) -> Path:
    """Rows of two classes that are words."""
    rng = np.random.default_rng(3)
    spend = rng.normal(10, 3, 300)
    churn = spend + rng.normal(0, 3, 300) < 9
    words = np.where(churn, "churn", np.where(rng.random(300) < 0.5, "stay", "grow"))
    path = tmp_path / "customers.csv"
    lines = (f"{s:.3f},{w}" for s, w in zip(spend, words, strict=True))
    path.write_text("spend,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("others", ["stay", "not churn"])
def test_report_and_tradeoff_know_the_positive_class_of_the_fit(run, customers, tmp_path, others):
    if others == "stay":
        customers.write_text(customers.read_text().replace("grow", "stay"))
    model = tmp_path / "m.adacos"
    fitted(run, customers, model, "--positive", "churn")
    code, out, _ = run("info", model)
    assert code == 0
    assert "False positive 100, false negative 100." in " ".join(out.split())
    options = (model, "--data", customers, "--target", "y", "--json")
    page = tmp_path / "r.html"
    asked = run("report", *options, "--out", page, "--positive", "churn")
    without_id = run("report", *options, "--out", page)
    assert asked[:2] == without_id[:2]
    assert asked[0] == 0
    assert run("tradeoff", *options)[0] == 0
    customers.write_text(customers.read_text().replace("churn", "gone"))
    code, _, err = run("report", *options, "--out", page)
    if others == "stay":
        assert code == 2
        assert "gone" in err


def test_the_positive_class_of_the_fit_may_be_0(run, towns, tmp_path):
    """Classes that are numbers are not taken for what the model calls 0 and 1."""
    model, page, data = tmp_path / "m.adacos", tmp_path / "r.html", [towns, "--target", "y"]
    prices = ("--prices", "zip=1", "--prices", "x=1")
    code, _, err = run("fit", *data, *prices, *ERRORS, "--positive", 0, "--out", model)
    assert code == 0, err
    curves = [
        json.loads(run("tradeoff", model, "--data", *data, *given, "--points", 2, "--json")[1])
        for given in ([], ["--positive", 0])
    ]
    assert curves[0] == curves[1]
    assert curves[0]["total_cost"][0] < 15
    code, _, err = run("report", model, "--data", *data, "--positive", 1, "--out", page)
    assert code == 2
    assert "must be the class that the model was fitted with" in " ".join(err.split())
    assert not page.exists()


def test_all_of_many_classes_are_named(run, tmp_path):
    path = tmp_path / "six.csv"
    path.write_text("x,y\n" + "".join(f"{k},class{k % 6}\n" for k in range(60)))
    code, _, err = run("fit", path, "--target", "y", "--default-price", 1, *ERRORS)
    assert code == 2
    assert "class5" in err


def test_a_price_list_may_have_points_next_to_a_table_with_commas(run, tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=200)
    rows = (f"{v:.3f};{int(v + rng.normal() > 0)}".replace(".", ",") for v in x)
    data, prices = tmp_path / "t.csv", tmp_path / "p.csv"
    data.write_text("x;y\n" + "\n".join(rows) + "\n")
    options = ("--target", "y", *ERRORS, "--decimal", ",", "--json", "--out", tmp_path / "m.adacos")
    for text in ("x,17.61\n", "x;17,61\n"):
        prices.write_text("covariate" + text[1] + "cost\n" + text)
        code, out, err = run("fit", data, "--prices", prices, *options)
        assert code == 0, err
        assert json.loads(out)["card"]["covariates"][0]["cost"] == 17.61
    prices.write_text("covariate;cost\nx;1.234\n")
    assert run("fit", data, "--prices", prices, *options)[0] == 2
    assert run("fit", data, "--prices", "x=17.61", *options)[0] == 0


def test_a_fit_of_more_classes_is_expected_to_take_longer():
    table = ColumnTable({f"x{k}": np.zeros(1000) for k in range(12)})
    two, six = (expected_seconds(table, n_classes=k) for k in (2, 6))
    # 0.5 and 8.6 s of one processor were measured.
    assert 8 < six / two < 32


def test_the_order_is_found_as_it_is_asked_for(run, tmp_path):
    """A dear covariate says all, and four cheap ones a little of it each."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=240)
    cheap = [z + 2 * rng.normal(size=240) for _ in range(2)]
    y = (z + 0.2 * rng.normal(size=240) > 0).astype(int)
    lines = [
        ",".join(f"{v:.3f}" for v in row) + f",{c}"
        for row, c in zip(np.column_stack([*cheap, z]), y, strict=True)
    ]
    data = tmp_path / "rows.csv"
    data.write_text("a,b,dear,y\n" + "\n".join(lines) + "\n")
    common = ("--target", "y", "--prices", "a=4", "--prices", "b=4", "--prices", "dear=12", *ERRORS)
    found = {}
    for word in ("group-lasso", "group_lasso", "forward", "auto"):
        out = tmp_path / f"{word}.adacos"
        code, reported, err = run("fit", data, *common, "--out", out, "--sequence", word, "--json")
        assert code == 0, err
        found[word] = json.loads(reported)["card"]
    assert found["group-lasso"]["sequence"] == found["group_lasso"]["sequence"] == "group_lasso"
    assert found["forward"]["sequence"] == "forward"
    assert found["forward"]["order"][0] == "dear"
    assert found["auto"]["sequence"] == "forward"
    code, reported, _ = run("info", tmp_path / "auto.adacos")
    assert "costs less than that of the group lasso on rows" in reported
    code, reported, _ = run("info", tmp_path / "forward.adacos")
    assert "than that of the group lasso" not in reported
    for policy, word, text in (
        ("adacos", "forwards", "Did you mean forward?"),
        ("planning", "forward", "goes with --policy adacos, branching, cos and full"),
    ):
        arguments = ("--out", tmp_path / "x.adacos", "--sequence", word, "--policy", policy)
        code, _, err = run("fit", data, *common, *arguments)
        assert code == 2
        assert text in err


def test_a_price_list_need_not_follow_what_is_dropped(run, tmp_path):
    """Costs of columns that are no covariates are named and not used; others are refused."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    lines = [
        f"{k},{a + 2 * b:.3f},{b}"
        for k, (a, b) in enumerate(zip(rng.normal(size=80), y, strict=False))
    ]
    table, prices = tmp_path / "t.csv", tmp_path / "p.csv"
    table.write_text("\n".join(["visit,a,ill", *lines]) + "\n")
    prices.write_text("a,2\nvisit,9\n")
    errors = ("--false-positive", 10, "--false-negative", 10, "--out", tmp_path / "m.adacos")
    fit = ("fit", table, "--target", "ill", "--prices", prices, *errors)
    code, _, err = run(*fit, "--drop", "visit")
    assert code == 0, err
    assert "visit: not a covariate here; its cost is not used" in err
    prices.write_text("a,2\nvisits,9\n")
    code, _, err = run(*fit, "--drop", "visit")
    assert code != 0
    assert "every price must be that of a covariate; received visits" in " ".join(err.split())


def test_another_spelling_of_the_positive_class_is_not_the_other_class(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.4, "yes", "no")
    y[3] = "Yes "
    lines = [f"{v:.3f},{c}" for v, c in zip(rng.normal(size=80), y, strict=True)]
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    options = ("--target", "y", "--default-price", 1, *ERRORS, "--positive", "yes")
    code, _, reported = run("fit", tmp_path / "t.csv", *options, "--out", tmp_path / "m.adacos")
    assert code == 2
    assert "one spelling of the positive class" in " ".join(reported.split())
    assert not (tmp_path / "m.adacos").exists()
