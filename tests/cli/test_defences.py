"""What strange files, names and signals meet on the command line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from adacos.tables.columns import ColumnTable
from tests.cli.conftest import read_rows


def fit_arguments(table: Path, out: Path, target: str = "y") -> tuple[object, ...]:
    costs = ("--default-price", 1, "--false-positive", 10, "--false-negative", 10)
    return "fit", table, "--target", target, *costs, "--out", out


def with_changes(source: Path, target: Path, changes: dict[int, dict[str, str]]) -> Path:
    """A copy with other cells on some lines."""
    with open(source, newline="") as file:
        header, *rows = list(csv.reader(file))
    for line, cells in changes.items():
        for name, cell in cells.items():
            rows[line - 2][header.index(name)] = cell
    target.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    return target


def test_an_unclosed_quotation_mark_ends_score_and_fit(run, folder, tmp_path):
    bad = with_changes(folder / "train.csv", tmp_path / "bad.csv", {250: {"id": '"p1'}})
    costs = ("--default-price", 1, "--false-positive", 1, "--false-negative", 1)
    for skip in ([], ["--skip-malformed"]):
        score = run("score", folder / "model.adacos", bad, tmp_path / "o.csv", *skip)
        fit = run("fit", bad, "--target", "diabetes", *costs, "--out", tmp_path / "m", *skip)
        for code, _, err in (score, fit):
            assert code == 2
            assert "line 250: a quoted cell begins" in err
    assert list(tmp_path.iterdir()) == [bad]


def test_the_number_of_rows_read_is_reported(run, folder, tmp_path):
    arguments = ("score", folder / "model.adacos", folder / "held_out.csv", tmp_path / "o.csv")
    assert "268 of 268 rows read" in run(*arguments)[1]
    found = json.loads(run(*arguments, "--json")[1])
    assert found["rows_read"] == found["rows"] == len(read_rows(tmp_path / "o.csv")) == 268
    arguments = fit_arguments(folder / "train.csv", tmp_path / "m", "diabetes")
    code, out, _ = run(*arguments, "--drop", "id", "--max-rows", 300)
    assert code == 0
    assert "300 of 500 rows read" in " ".join(out.split())


def test_no_file_is_its_own_output(run, folder, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.csv"
    table.write_bytes((folder / "train.csv").read_bytes())
    model.write_bytes((folder / "model.adacos").read_bytes())
    (tmp_path / "link.csv").symlink_to(table)
    before = table.read_bytes(), model.read_bytes()
    costs = ("--default-price", 1, "--false-positive", 1, "--false-negative", 1)
    for arguments in (
        ("score", model, table, table),
        ("score", model, table, tmp_path / "link.csv"),
        ("score", model, table, model),
        ("fit", table, "--target", "diabetes", "--drop", "id", *costs, "--out", table),
        ("report", model, "--data", table, "--target", "diabetes", "--out", table),
        ("report", model, "--data", table, "--target", "diabetes", "--out", model),
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert "must not be a file that is read" in err
    assert (table.read_bytes(), model.read_bytes()) == before


def test_values_unlike_those_in_training_are_counted_and_named(run, folder, tmp_path):
    strange = {2: {"Age": "50000"}, 3: {"Age": "-5"}, 4: {"Age": "85", "BMI": "200"}}
    odd = with_changes(folder / "held_out.csv", tmp_path / "odd.csv", strange)
    arguments = ("score", folder / "model.adacos", odd, tmp_path / "o.csv", "--known", "Age")
    code, _, reported = run(*arguments)
    assert code == 0
    assert "--flag-unusual names them" in reported
    assert "unusual" not in read_rows(tmp_path / "o.csv")[0]
    code, out, _ = run(*arguments, "--flag-unusual", "--json")
    rows = read_rows(tmp_path / "o.csv")
    assert [row["unusual"].split(";")[0] for row in rows[:2]] == ["Age:implausible"] * 2
    assert "Age:outside_range" in rows[2]["unusual"]
    # Only values behind the answer count.
    assert ("BMI:implausible" in rows[2]["unusual"]) == ("BMI" in rows[2]["acquired"])
    found = json.loads(out)
    assert found["unusual_rows"] == sum(row["unusual"] != "" for row in rows)
    named = [part for row in rows for part in row["unusual"].split(";") if part]
    assert sum(found["unusual"].values()) == len(named)
    implausible = sum(part.endswith(":implausible") for part in named)
    assert implausible >= 2
    assert f"{implausible} implausible" in reported


def test_formulas_are_escaped_on_demand(run, folder, tmp_path):
    cells = ['=HYPERLINK("x")', "@sum", "-1+2", "+x", "-1.5", "plain"]
    changes = {line: {"id": cell} for line, cell in enumerate(cells, start=2)}
    source = with_changes(folder / "held_out.csv", tmp_path / "f.csv", changes)
    arguments = ("score", folder / "model.adacos", source, tmp_path / "o.csv", "--keep", "id")
    assert run(*arguments)[0] == 0
    assert [row["id"] for row in read_rows(tmp_path / "o.csv")[:6]] == cells
    assert run(*arguments, "--escape-formulas")[0] == 0
    expected = [f"'{cell}" for cell in cells[:4]] + cells[4:]
    assert [row["id"] for row in read_rows(tmp_path / "o.csv")[:6]] == expected
    arguments = ("score", folder / "model.adacos", source, tmp_path / "o.parquet")
    assert "in .csv only" in run(*arguments, "--escape-formulas")[2]


def test_a_model_is_compared_with_its_digest(run, folder, tmp_path):
    model, data = folder / "model.adacos", folder / "held_out.csv"
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    commands = {
        "info": ["info", model],
        "ask": ["ask", model],
        "score": ["score", model, data, tmp_path / "o.csv"],
        "explain": ["explain", model, "--data", data],
        "report": ["report", model, "--data", data, "--target", "diabetes", "--out", "r.html"],
        "serve": ["serve", model],
    }
    for arguments in commands.values():
        code, _, err = run(*arguments, "--expect-sha256", "0" * 64)
        assert code == 2
        assert f"its SHA-256 is {digest}" in err
    for name in ("info", "score", "explain"):
        assert run(*commands[name], "--expect-sha256", digest)[0] == 0


ESCAPE = "\x1b]0;owned\x07\x1b[31mAge\u202e"


def test_control_characters_in_names_are_spelled_out(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{x:.2f},{int(x + rng.normal() > 0)}" for x in rng.normal(size=80)]
    (tmp_path / "t.csv").write_text("\n".join([f"{ESCAPE},y", *rows]) + "\n")
    code, out, err = run(*fit_arguments(tmp_path / "t.csv", tmp_path / "m.adacos"))
    assert code == 0
    texts = [out, err, *run("fit", tmp_path / "t.csv", "--target", "Age")[1:]]
    texts += run("info", tmp_path / "m.adacos")[1:]
    texts += run("explain", tmp_path / "m.adacos", "--row", "Age=3")[1:]
    texts += run("explain", tmp_path / "m.adacos", "--row", f"{ESCAPE}=3")[1:]
    assert not any(character in text for text in texts for character in "\x1b\x07\u202e")
    assert sum("owned" in text for text in texts) >= 4


def test_fit_warns_once_about_what_looks_like_a_mistake(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["number,visit,weight,outcome,y"]
    for k in range(120):
        y = int(rng.random() < 0.5)
        day = f"2026-01-{1 + k % 28:02}"
        lines.append(
            f'{9000 + k},{day},"{rng.choice([60, 61, 62])},5",{y + rng.random() / 9:.3f},{y}'
        )
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    arguments = fit_arguments(tmp_path / "t.csv", tmp_path / "m")
    code, out, err = run(*arguments)
    assert code == 0
    assert "warning" not in out
    for beginning in (
        "outcome: alone almost enough",
        "number: a different whole number",
        "visit: looks like dates",
        "weight: looks like numbers with a decimal",
    ):
        assert err.count(f"warning: {beginning}") == 1
    code, out, err = run(*arguments, "--json", "--drop", "outcome", "--drop", "number")
    warnings = json.loads(out)["warnings"]
    assert [text.split(":")[0] for text in warnings] == ["visit", "weight"]
    digest = hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert json.loads(out)["sha256"] == digest


def test_long_fits_are_announced(run, tmp_path, monkeypatch):
    from adacos.cli import doubts
    from adacos.cli.training import expected_seconds

    def table(n: int, p: int) -> ColumnTable:
        return ColumnTable({f"x{k}": np.zeros(n) for k in range(p)})

    # Measured on one core: 1.9, 3.1, 3.3, 9.6 and 22 s.
    assert 0.9 < expected_seconds(table(200, 20)) < 4
    assert 1.5 < expected_seconds(table(200, 40)) < 7
    assert 1.6 < expected_seconds(table(200, 80)) < 9
    assert 4.8 < expected_seconds(table(200, 160)) < 20
    assert 11 < expected_seconds(table(1000, 200)) < 44
    monkeypatch.setattr(doubts, "_LONG", 1e-9)
    rng = np.random.default_rng(0)
    lines = [f"{a:.2f},{int(a + rng.normal() > 0)}" for a in rng.normal(size=60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    arguments = fit_arguments(tmp_path / "t.csv", tmp_path / "m")
    assert "1 covariates: this will take about" in run(*arguments)[2]


def test_a_recall_takes_the_place_of_a_false_negative_cost(run, folder, tmp_path):
    arguments = (
        "fit", folder / "train.csv", "--target", "diabetes", "--drop", "id", "--prices",
        folder / "prices.toml", "--target-recall", 0.9, "--out", tmp_path / "m",
    )  # fmt: skip
    code, _, err = run(*arguments, "--false-negative", 400)
    assert code == 2
    assert "--target-recall: cannot be combined with a false-negative cost" in err
    assert not (tmp_path / "m").exists()
    code, _, err = run(*arguments)
    assert code == 0
    assert "The false-negative cost of 400 is not used" in err


def test_progress_is_for_terminals(monkeypatch):
    from adacos.cli import common

    shown = io.StringIO()
    make = common.plain_console

    def on_terminal(**options):
        return make(file=shown, force_terminal=True, width=100, quiet=options["quiet"])

    with common.progress("reading x", quiet=False) as update:
        update(10, 0.5)
    monkeypatch.setattr(common, "plain_console", on_terminal)
    with common.progress("reading x", quiet=True) as update:
        update(10, 0.5)
    assert shown.getvalue() == ""
    with common.progress("reading \x1b[31m[x]", quiet=False) as update:
        update(10, 0.5)
    assert "reading \\x1b[31m[x]: 10 rows" in shown.getvalue()
    assert "left" in shown.getvalue()


def test_corrupt_files_end_without_a_traceback(run, folder, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-9])
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("t.parquet", "t.csv.gz", "pipe.csv"):
        code, _, err = run("score", folder / "model.adacos", tmp_path / name, tmp_path / "o.csv")
        assert code == 2
        assert err.count("\n") <= 2
        assert "Traceback" not in err
    arguments = ("score", folder / "model.adacos", folder / "held_out.csv", tmp_path / "o.csv")
    code, _, err = run(*arguments, "--encoding", "klingon")
    assert code == 2
    assert "must be a text encoding" in err


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT] * 2])
def test_interrupted_scoring_leaves_nothing(folder, tmp_path, signals):
    """Ctrl-C, once or twice, or SIGTERM in the middle of a long file: no output, nothing left."""
    lines = (folder / "held_out.csv").read_text().splitlines()
    source = tmp_path / "long.csv"
    source.write_text("\n".join([lines[0], *lines[1:] * 2000]) + "\n")
    target = tmp_path / "out"
    target.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "adacos.cli.app", "score", folder / "model.adacos", source,
         target / "o.csv", "--chunk-rows", "2000"],
        stderr=subprocess.PIPE,
        text=True,
        # What was started in the background of a shell ignores Ctrl-C, and its children with it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(f.stat().st_size for f in target.iterdir()):
        time.sleep(0.05)
    assert list(target.iterdir()), "the run must be under way"
    for number in signals:
        process.send_signal(number)
        time.sleep(0.002)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert list(target.iterdir()) == []


def test_an_output_that_cannot_be_written_is_reported_before_any_work(run, tmp_path):
    """None of the inputs is there: they are not looked at."""
    absent = tmp_path / "absent.csv"
    fit = ("fit", absent, "--target", "y", "--false-positive", 1, "--false-negative", 1)
    report = ("report", absent, "--data", absent, "--target", "y")
    for command in (fit, report):
        code, _, error = run(*command, "--out", tmp_path)
        assert code != 0
        assert "--out: must be a file; received the folder" in " ".join(error.split())


def test_a_pipe_as_description_is_refused(run, folder, tmp_path):
    os.mkfifo(tmp_path / "words.toml")
    code, _, error = run(
        "fit", folder / "train.csv", "--target", "diabetes", "--prices", folder / "prices.toml",
        "--describe", tmp_path / "words.toml", "--out", tmp_path / "m.adacos",
        "--false-positive", 1, "--false-negative", 1,
    )  # fmt: skip
    assert code != 0
    assert "description: must be a plain file" in " ".join(error.split())
