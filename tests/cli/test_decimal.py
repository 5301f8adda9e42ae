"""Tables with decimal commas: read like the same table with points, or refused with a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

import adacos
from adacos.exceptions import MalformedRowsError
from adacos.tables.pieces import Kinds
from adacos.tables.reading import TableFile
from tests.cli.conftest import read_rows

ERRORS = "--false-positive", 200, "--false-negative", 200


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One table twice: with points and commas, with commas and semicolons; prices likewise."""
    path = tmp_path_factory.mktemp("decimal")
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(240):
        dose, level = rng.normal(2, 0.7), rng.lognormal(1, 0.5)
        ward = rng.choice(["east", "west"])
        ill = rng.random() < 1 / (1 + np.exp(2 - level + dose / 3))
        gap = rng.random() < 0.12
        rows.append(f"{dose:.3f};{'' if gap else f'{level:.2f}'};{ward};{'ill' if ill else 'well'}")
    semicolons = "dose;level;ward;state\n" + "\n".join(rows) + "\n"
    (path / "points.csv").write_text(semicolons.replace(";", ","))
    (path / "commas.csv").write_text(semicolons.replace(".", ","))
    (path / "prices_points.csv").write_text("dose,1.5\nlevel,4.25\nward,0\n")
    (path / "prices_commas.csv").write_text("dose;1,5\nlevel;4,25\nward;0\n")
    return path


def fit(run, tables, kind, *more):
    return run(
        "fit", tables / f"{kind}.csv", "--target", "state", *ERRORS, "--out",
        tables / f"{kind}.adacos", "--prices", tables / f"prices_{kind}.csv", *more,
    )  # fmt: skip


@pytest.fixture
def models(run, tables):
    assert fit(run, tables, "points", "--positive", "ill")[0] == 0
    code, _, err = fit(run, tables, "commas", "--positive", "ill", "--decimal", ",")
    assert code == 0
    assert "decimal comma" not in err
    return tables


def test_a_table_with_commas_is_that_with_points(run, models):
    here, there = (adacos.load(models / f"{kind}.adacos") for kind in ("points", "commas"))
    np.testing.assert_array_equal(here.model_.coefs, there.model_.coefs)
    np.testing.assert_array_equal(here.cost_table_.covariates, there.cost_table_.covariates)
    assert there.encoder_.names == ("dose", "level", "ward")
    for kind, sign in (("points", "."), ("commas", ",")):
        model, table = models / f"{kind}.adacos", models / f"{kind}.csv"
        answers = models / f"answers_{kind}.csv"
        assert run("score", model, table, answers, "--decimal", sign)[0] == 0
        page = models / f"{kind}.html"
        report = ("--data", table, "--target", "state", "--positive", "ill", "--out", page)
        assert run("report", model, *report, "--decimal", sign)[0] == 0
    assert read_rows(models / "answers_points.csv") == read_rows(models / "answers_commas.csv")


def test_answers_have_the_names_of_the_classes(run, models):
    assert run("score", models / "points.adacos", models / "points.csv", models / "a.csv")[0] == 0
    rows = read_rows(models / "a.csv")
    assert {(row["label"], row["class"]) for row in rows} == {("0", "well"), ("1", "ill")}
    policy = adacos.load(models / "points.adacos")
    assert [policy.description_.class_name(label) for label in policy.classes_] == ["well", "ill"]


def test_one_class_against_several_others_is_named_so(run, tables):
    text = (tables / "points.csv").read_text().replace("well", "better", 60)
    (tables / "three.csv").write_text(text)
    code, out, _ = run("fit", tables / "three.csv", "--target", "state", *ERRORS, "--out",
                       tables / "three.adacos", "--default-price", 1, "--positive", "ill",
                       "--json")  # fmt: skip
    assert code == 0
    assert json.loads(out)["card"]["class_names"] == ["not ill", "ill"]


def test_what_is_typed_may_have_a_comma(run, models):
    model = models / "commas.adacos"
    _, out, _ = run("ask", model, "--decimal", ",", "--known", "dose=2,25,ward=east", "--json",
                    answers="1.250\n5,5\n")  # fmt: skip
    steps = [json.loads(line) for line in out.splitlines()]
    assert [step["action"] for step in steps] == ["acquire", "repeat", "acquire", "classify"]
    assert "Use a decimal comma, and nothing between thousands" in steps[1]["message"]
    assert steps[3]["state"]["known"] == {"dose": 2.25, "ward": "east"}
    assert steps[3]["state"]["events"] == [{"observe": {"level": 5.5}}]
    code, out, _ = run("explain", model, "--row", "dose=2,25,level=5,5", "--decimal", ",", "--json")
    assert code == 0
    assert json.loads(out)["values"] == {"dose": 2.25, "level": 5.5}
    code, out, _ = run("explain", model, "--data", models / "commas.csv", "--decimal", ",")
    assert code == 0
    code, _, err = run("ask", model, "--decimal", ";")
    assert code == 2
    assert "must be a point or a comma" in err


def test_without_the_option_it_is_reported(run, tables):
    code, _, err = fit(run, tables, "commas")
    assert code == 2
    assert "prices_commas.csv" in err
    arguments = "--default-price", 1, *ERRORS, "--out", tables / "no.adacos"
    code, _, err = run("fit", tables / "commas.csv", "--target", "state", *arguments)
    assert code == 2
    assert "dose, level: looks like numbers with a decimal comma" in " ".join(err.split())
    assert "--decimal ," in err
    assert fit(run, tables, "points")[0] == 0
    code, _, err = run("score", tables / "points.adacos", tables / "commas.csv", tables / "o.csv")
    assert code == 2
    assert "Numbers with a decimal comma are read with `--decimal ,`." in " ".join(err.split())


@pytest.mark.parametrize(
    ("decimal", "cell"),
    [(",", "1.234,5"), (",", "1.5"), (",", "1,234,567"), (".", '"1,234.5"'), (".", "1 234")],
)
def test_thousands_are_not_guessed(tmp_path, decimal, cell):
    rows = [f"{k}{decimal}5;x" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows, f"{cell};x"]) + "\n")
    file = TableFile(tmp_path / "t.csv", decimal=decimal)
    assert file.kinds().text == {"b"}
    sign = {",": "comma", ".": "point"}[decimal]
    with pytest.raises(MalformedRowsError, match=f"line 42: .* decimal {sign} and no separators"):
        file.read(["a", "b"], Kinds(frozenset("b")))


def test_a_column_of_thousands_is_reported(run, tmp_path):
    rows = [f"1'{k:03}.5;{'ill' if k % 3 else 'well'}" for k in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows]) + "\n")
    arguments = "--default-price", 1, *ERRORS, "--out", tmp_path / "no.adacos"
    code, _, err = run("fit", tmp_path / "t.csv", "--target", "b", *arguments)
    assert code == 2
    assert "separators between thousands" in " ".join(err.split())
