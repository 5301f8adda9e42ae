"""`adacos next`: what to order for many rows, again and again as results come in."""

from __future__ import annotations

import csv
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adacos
from tests.cli.conftest import read_rows

UNAVAILABLE = "Unavailable"


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def truth(folder: Path) -> list[dict[str, str]]:
    """Rows with all values that can be acquired; a fifth of them cannot."""
    rows = read_rows(folder / "held_out.csv")[:60]
    rng = np.random.default_rng(4)
    for row in rows:
        for name in list(row)[1:-1]:
            if rng.random() < 0.2:
                row[name] = ""
    return rows


def test_ordering_until_all_stop_ends_as_score(run, folder, tmp_path, truth):
    """A table of identifiers only is where it begins; results are filled in as they come."""
    model, orders = folder / "model.adacos", tmp_path / "orders.csv"
    known = [{"id": row["id"]} for row in truth]
    spent = np.zeros(len(truth))
    for _ in range(20):
        source = write(tmp_path / "known.csv", known)
        code, out, _ = run("next", model, source, orders, "--chunk-rows", 23, "--json")
        assert code == 0
        reported = read_rows(orders)
        assert [row["id"] for row in reported] == [row["id"] for row in truth]
        spent += [float(row["next_cost"]) for row in reported]
        for row, order, values in zip(known, reported, truth, strict=True):
            assert (order["next"] == "") == (order["label"] != "")
            for name in filter(None, order["next"].split(";")):
                row[name] = values[name] or UNAVAILABLE
        # Names that somebody ordered become columns of all.
        names = list(dict.fromkeys(name for row in known for name in row))
        known = [{name: row.get(name, "") for name in names} for row in known]
        summary = json.loads(out)
        if not summary["orders"]:
            break
    assert summary["cost"] == 0
    assert sum(summary["labels"].values()) == len(truth)
    asked = {name for row in known for name, cell in row.items() if cell == UNAVAILABLE}
    assert asked, "something that was ordered must have been unavailable"
    # What a lab cannot deliver costs nothing; the others were paid once, panels counted.
    paid = np.array([float(row["paid"]) for row in reported])
    assert np.all(paid <= spent + 1e-9)

    # Had it been said at the start, the rows are those of score, which takes empty cells so.
    said = [{name: cell or "unavailable" for name, cell in row.items()} for row in truth]
    scored = tmp_path / "scored.csv"
    first = write(tmp_path / "said.csv", said)
    assert run("score", model, write(tmp_path / "truth.csv", truth), scored)[0] == 0
    again = tmp_path / "again.csv"
    assert run("score", model, first, again)[0] == 0
    assert scored.read_text() == again.read_text()


def test_what_is_said_at_the_start_ends_exactly_as_score(run, folder, tmp_path, truth):
    model, orders = folder / "model.adacos", tmp_path / "orders.csv"
    names = [name for name in truth[0] if name not in ("id", "diabetes")]
    known = [
        {"id": row["id"]} | {n: "" if row[n] else "unavailable" for n in names} for row in truth
    ]
    spent = np.zeros(len(truth))
    for _ in range(20):
        assert run("next", model, write(tmp_path / "k.csv", known), orders)[0] == 0
        reported = read_rows(orders)
        spent += [float(row["next_cost"]) for row in reported]
        for row, order, values in zip(known, reported, truth, strict=True):
            row |= {name: values[name] for name in filter(None, order["next"].split(";"))}
        if not any(row["next"] for row in reported):
            break
    scored = tmp_path / "scored.csv"
    assert run("score", model, write(tmp_path / "truth.csv", truth), scored)[0] == 0
    for order, row, own, paid in zip(reported, read_rows(scored), known, spent, strict=True):
        assert order["label"] == row["label"]
        assert float(order["probability"]) == pytest.approx(float(row["probability"]), rel=1e-9)
        assert float(order["paid"]) == pytest.approx(float(row["cost"]))
        assert paid == pytest.approx(float(row["cost"]))
        have = {name for name in names if own[name] not in ("", "unavailable")}
        assert have == set(filter(None, row["acquired"].split(";")))


def test_an_empty_cell_is_not_a_missing_value(run, folder, tmp_path):
    """In next it can still be acquired, in score it cannot."""
    model = folder / "model.adacos"
    rows = [{"id": "a", "Age": "50", "BMI": ""}, {"id": "b", "Age": "50", "BMI": "unavailable"}]
    source, out = write(tmp_path / "k.csv", rows), tmp_path / "o.csv"
    assert run("next", model, source, out)[0] == 0
    first, second = read_rows(out)
    assert "BMI" in first["next"]
    assert "BMI" not in second["next"]
    code, _, err = run("score", model, source, out)
    assert code == 0
    assert "has no column Pregnancies" in err
    assert "adacos next" in err
    assert len({row["probability"] for row in read_rows(out)}) == 1


def test_the_amount_paid_may_be_a_column(run, folder, tmp_path):
    model, out = folder / "model.adacos", tmp_path / "o.csv"
    rows = [{"id": "a", "Age": "50", "invoice": "12.5"}, {"id": "b", "Age": "50", "invoice": ""}]
    assert run("next", model, write(tmp_path / "k.csv", rows), out, "--paid", "invoice")[0] == 0
    first, second = read_rows(out)
    assert list(first)[:2] == ["id", "next"]
    assert (float(first["paid"]), float(second["paid"])) == (12.5, 1.0)
    rows[0]["invoice"] = "-3"
    code, _, err = run("next", model, write(tmp_path / "k.csv", rows), out, "--paid", "invoice")
    assert code == 2
    assert "-3 on line 2" in err


def test_known_values_cost_nothing_and_columns_are_chosen(run, folder, tmp_path):
    model, out = folder / "model.adacos", tmp_path / "o.csv"
    rows = [{"id": "a", "name": "=X()", "Age": "50"}]
    source = write(tmp_path / "k.csv", rows)
    arguments = ("--known", "Age", "--keep", "name", "--flag-unusual", "--escape-formulas")
    assert run("next", model, source, out, *arguments)[0] == 0
    (row,) = read_rows(out)
    assert float(row["paid"]) == 0
    assert "id" not in row
    assert row["name"] == "'=X()"
    assert row["unusual"] == ""


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_an_output_keeps_its_permissions_and_its_link(run, folder, tmp_path):
    model, private = folder / "model.adacos", tmp_path / "private.csv"
    private.touch(0o600)
    (tmp_path / "o.csv").symlink_to(private)
    source = write(tmp_path / "k.csv", [{"id": "a", "Age": "50"}])
    assert run("next", model, source, tmp_path / "o.csv")[0] == 0
    assert (tmp_path / "o.csv").is_symlink()
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert len(read_rows(private)) == 1


def test_a_refused_run_leaves_what_was_there(run, folder, tmp_path):
    model, out = folder / "model.adacos", tmp_path / "o.csv"
    out.write_text("mine")
    wrong = write(tmp_path / "k.csv", [{"id": "a", "Age": "50"}, {"id": "b", "Age": "old"}])
    assert run("next", model, wrong, out, "--chunk-rows", 1)[0] == 2
    taken = write(tmp_path / "t.csv", [{"label": "a", "Age": "50"}])
    code, _, err = run("next", model, taken, out)
    assert code == 2
    assert "must not name a column of the results" in err
    assert out.read_text() == "mine"
    assert run("next", model, wrong, wrong)[0] == 2


def test_parquet_and_a_category_of_that_name(run, tmp_path):
    """Where unavailable is a category of the covariate, it is that."""
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    status = rng.choice(["unavailable", "home"], 200)
    x = rng.normal(size=200)
    y = (x + (status == "home") > 0.5).astype(int)
    table: dict[str, Any] = {"status": status, "x": x}
    import pandas as pd

    costs = adacos.Costs({"status": 1.0, "x": 2.0}, false_positive=20, false_negative=20)
    policy = adacos.COSClassifier(costs, cv=3, strengths="common").fit(pd.DataFrame(table), y)
    adacos.save(policy, tmp_path / "m.adacos")
    rows = {"id": [1, 2], "status": ["unavailable", None], "x": ["unavailable", "0.5"]}
    parquet.write_table(pa.table(rows), tmp_path / "k.parquet")
    out = tmp_path / "o.parquet"
    assert (
        run("next", tmp_path / "m.adacos", tmp_path / "k.parquet", out, "--chunk-rows", 1)[0] == 0
    )
    found = parquet.read_table(out).to_pydict()
    assert found["id"] == ["1", "2"]
    assert found["paid"] == [1.0, 2.0]
    assert found["next"] == ["", "status"]
    assert found["label"][1] == ""


def test_names_are_cut_at_commas(run, folder, tmp_path):
    model, source = folder / "model.adacos", folder / "held_out.csv"
    lists = [
        ["--known", "Age,BMI", "--keep", "id, diabetes"],
        ["--known", "Age", "--known", "BMI", "--keep", "id", "--keep", "diabetes"],
    ]
    for command in ("next", "score"):
        written = []
        for number, given in enumerate(lists):
            out = tmp_path / f"{command}{number}.csv"
            code, _, err = run(command, model, source, out, *given)
            assert code == 0, err
            written.append(out.read_text())
        assert written[0] == written[1]
        code, _, err = run(command, model, source, tmp_path / "no.csv", "--keep", "id,diabets")
        assert code == 2
        assert "Did you mean diabetes?" in err
