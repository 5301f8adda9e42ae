from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos.bench.claims import check_claims
from adacos.bench.comparisons import OutcomeIndex
from adacos.bench.figures import asymmetric_figure, sequence_figure
from adacos.bench.paper import PaperOptions, run_paper
from adacos.bench.reference import paper_table_1, read_authors_code
from adacos.bench.same_recall import at_same_recall
from adacos.bench.settings import asymmetric, recall, symmetric
from adacos.bench.sigmoid import BINS, LINEAR, NORMAL, largest_errors
from adacos.bench.tables import Cell, FoldTable
from adacos.bench.units import Outcome
from adacos.cli.app import app
from adacos.cli.bench_results import print_paper
from adacos.document.blocks import Grid, Heading, Text, to_html, to_markdown
from adacos.exceptions import InvalidInputError

OWN = ("adacos-group-lasso", "cos-group-lasso", "full-model")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Quick mode on one data set."""
    out = tmp_path_factory.mktemp("quick") / "report"
    options = PaperOptions(methods=OWN, datasets=("pima",), out=out, quick=True)
    return out, run_paper(options, progress=False)


def test_quick_report_is_whole(quick):
    out, found = quick
    assert not found.failures
    page = (out / "index.html").read_text()
    assert "not tested" in page
    assert "physionet.org" in page
    tables = ("folds", "summary", "table_1", "comparisons", "overall", "claims", "timings")
    for name in (*tables, "settings"):
        assert (out / "tables" / f"{name}.csv").stat().st_size > 0
    figures = {path.name for path in (out / "figures").iterdir()}
    for name in ("asymmetric_pima", "recall_0.95_pima", "observed_recall_0.99"):
        assert {f"{name}.png", f"{name}.pdf"} <= figures
    assert "sigmoid_approximation.png" in (out / "summary.md").read_text()


def test_page_needs_no_other_file(quick):
    page = (quick[0] / "index.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "<script" not in page
    assert "@import" not in page


def test_table_1_marks_every_cell(quick):
    with (quick[0] / "tables" / "table_1.csv").open() as file:
        records = list(csv.DictReader(file))
    assert len(records) == 6
    for record in records:
        inside = abs(float(record["mean"]) - float(record["paper_mean"])) <= float(
            record["paper_std"]
        )
        assert record["within_one_paper_std"] == str(inside)


def test_without_matplotlib_the_report_says_how_to_install_it(quick, monkeypatch):
    from adacos.document import style

    out = quick[0]
    monkeypatch.setattr(style, "find_spec", lambda name: None)
    run_paper(PaperOptions(methods=OWN, datasets=("pima",), out=out, quick=True), progress=False)
    page = (out / "index.html").read_text()
    assert ".[plot]" in page
    assert "<img" not in page


def test_command_line_prints_json(tmp_path, monkeypatch):
    from adacos.document import style

    monkeypatch.setattr(style, "find_spec", lambda name: None)
    runner = CliRunner()
    arguments = ["bench", "paper", "--methods", "full-model", "--datasets", "heart", "--quick"]
    result = runner.invoke(
        app, [*arguments, "--json", "--jobs", "1", "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["failures"] == []
    assert any(claim["holds"] is True for claim in found["claims"])


def test_the_printed_ratios_are_those_of_a_table_of_ones_own(tmp_path, registry, capsys):
    """No claim of the paper is made of it; the first method is compared with the other."""
    options = PaperOptions(methods=("toy", "noisy"), datasets=("made up",), out=tmp_path / "out")
    report = run_paper(options, progress=False)
    assert not report.claims
    print_paper(report)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Claim of the paper" not in printed
    with open(tmp_path / "out" / "tables" / "folds.csv", newline="") as file:
        lines = list(csv.DictReader(file))

    def logs(method: str) -> Any:
        """Logarithm of the mean total cost, for each fold and each false-positive cost from 10."""
        return np.log(
            [
                float(line["total_cost"])
                for line in lines
                if (line["method"], line["setting"]) == (method, "asymmetric")
                and float(line["false_positive_cost"]) >= 10
            ]
        )

    ratio = np.exp(np.mean(logs("toy") - logs("noisy")))
    (own,) = [c for c in report.overall if c.setting == "asymmetric"]
    assert (own.first, own.second) == ("toy", "noisy")
    assert own.folds.estimate == pytest.approx(ratio)
    assert f"{ratio:.3f}" in printed


def test_command_line_prints_an_error_in_one_line(tmp_path, monkeypatch, capsys):
    from adacos.cli.app import main

    monkeypatch.setattr(
        sys, "argv", ["adacos", "bench", "paper", "--methods", "nothing", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    reported = capsys.readouterr().err
    assert reported.startswith("adacos: methods: must be registered; received nothing.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pair", ["physionet", "=path", "physionet="])
def test_data_must_be_name_and_path(pair):
    result = CliRunner().invoke(app, ["bench", "paper", "--data", pair])
    assert isinstance(result.exception, InvalidInputError)


def test_plugin_registers_a_method(tmp_path, registry):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from adacos.bench import register_method\n"
        "from adacos import FullModelClassifier\n"
        "register_method('mine', lambda costs: FullModelClassifier(costs=costs))\n"
    )
    result = CliRunner().invoke(app, ["bench", "list", "--plugin", str(plugin)])
    assert "  mine\n" in result.stdout


def test_reference_table(shared_dir):
    authors = read_authors_code(shared_dir / "reference")
    cell = Cell("pima", "Full Model", "symmetric", 400.0)
    assert authors[cell, "total_cost"][0] == pytest.approx(100.69, abs=0.01)
    assert paper_table_1()[cell, "total_cost"] == (99.52, 8.67)


def test_reference_of_another_form_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="columns"):
        read_authors_code(path)


def test_sigmoid_errors_are_those_of_the_theory():
    errors = largest_errors()
    h = 20 / 40
    assert errors[LINEAR] <= h**2 / 8 * 0.0963
    assert errors[LINEAR] == pytest.approx(h**2 / 8 * 0.0963, rel=0.05)
    # The first bin ends at 0, where the slope is 1/4, a quarter of a unit from its middle.
    assert errors[BINS] == pytest.approx(h / 2 / 4, rel=0.02)
    assert errors[LINEAR] < errors[NORMAL] < errors[BINS]


def outcome(method, setting, fold, y, label, cost, acquired):
    n = len(y)
    return Outcome(
        "pima",
        "paper",
        fold,
        method,
        setting,
        np.arange(n) + fold * n,
        np.asarray(y),
        np.asarray(label),
        np.where(np.asarray(label) == 1, 0.9, 0.1),
        np.full(n, float(cost)),
        np.full(n, acquired),
    )


def test_claims_are_stated_from_the_numbers():
    y = [0, 1, 0, 1]
    made = []
    for fold in range(2):
        for cost, acquired in ((10.0, 1), (100.0, 2)):
            setting = asymmetric(cost)
            made += [
                outcome("AdaCOS (group lasso)", setting, fold, y, y, 1.0, acquired),
                outcome("COS (group lasso)", setting, fold, y, y, 2.0, acquired + 1),
                outcome("Full Model", setting, fold, y, y, 8.0, 8),
            ]
        missed = [0, 1, 0, 0]
        made.append(outcome("AdaCOS (group lasso)", recall(0.95, 10.0), fold, y, missed, 1.0, 1))
        made.append(outcome("AdaCOS (group lasso)", recall(0.99, 10.0), fold, y, y, 1.0, 1))
    claims = {c.text: c for c in check_claims(FoldTable(made), OutcomeIndex(made))}
    verdicts = {
        "AdaCOS has at most the total cost": True,
        "Below a false-positive cost of about 100": True,
        "Every method acquires more": True,
        "Full Model has the best weighted": True,
        "AdaCOS is as accurate as COS": True,
        "Forward selection and group lasso": None,
        "In Table 1": None,
        "The recall of AdaCOS on test data is never below its target 0.95": False,
        "The recall of AdaCOS on test data is never below its target 0.99": True,
        "At target recall 0.95": None,
    }
    for start, holds in verdicts.items():
        (claim,) = (c for text, c in claims.items() if text.startswith(start))
        assert claim.holds is holds, claim


def test_a_costlier_adacos_makes_the_claim_false():
    y = [0, 1, 0, 1]
    made = []
    for fold in range(2):
        setting = asymmetric(10.0)
        made.append(outcome("AdaCOS (group lasso)", setting, fold, y, y, 9.0, 1))
        made.append(outcome("Full Model", setting, fold, y, y, 8.0, 8))
    claim = check_claims(FoldTable(made), OutcomeIndex(made))[0]
    assert claim.holds is False
    assert "Higher in 1" in claim.numbers


def of_dataset(name, made):
    return replace(made, dataset=name)


@pytest.mark.parametrize(
    ("pima", "wisconsin", "holds"),
    [(1.0, 0.8, True), (1.05, 0.8, True), (1.3, 0.8, False), (1.0, 1.2, False), (1.0, 1.0, False)],
)
def test_forward_selection_is_judged_by_its_ratio_on_each_data_set(pima, wisconsin, holds):
    """Similar means within ten percent, and better on Wisconsin means below one."""
    y = [0, 1, 0, 1]
    made = []
    for name, ratio in (("pima", pima), ("wisconsin", wisconsin)):
        for fold in range(2):
            setting = asymmetric(10.0)
            ours = outcome("AdaCOS (group lasso)", setting, fold, y, y, 2.0, 1)
            forward = outcome("AdaCOS (forward)", setting, fold, y, y, 2.0 * ratio, 1)
            # Below a cost of 10 nothing is compared.
            cheap = outcome("AdaCOS (forward)", asymmetric(1.0), fold, y, y, 50.0, 1)
            made += [of_dataset(name, o) for o in (ours, forward, cheap)]
    claims = check_claims(FoldTable(made), OutcomeIndex(made))
    (claim,) = (c for c in claims if c.text.startswith("Forward selection and group lasso"))
    assert claim.holds is holds
    assert f"{pima:.3f}" in claim.numbers
    assert f"{wisconsin:.3f}" in claim.numbers


@pytest.mark.parametrize(("forward", "holds"), [(1.0, True), (3.0, False)])
def test_table_1_names_the_lowest_total_cost(forward, holds):
    y = [0, 1, 0, 1]
    costs = {"AdaCOS (forward)": forward, "COS (forward)": 2.0, "Full Model": 8.0}
    made = [
        outcome(method, symmetric(error), fold, y, y, cost, 1)
        for method, cost in costs.items()
        for error in (400.0, 800.0)
        for fold in range(2)
    ]
    claims = check_claims(FoldTable(made), OutcomeIndex(made))
    (claim,) = (c for c in claims if c.text.startswith("In Table 1"))
    assert claim.holds is holds
    lowest = min(costs, key=costs.get)
    # A right answer gains 50 in the paper's Table 1.
    assert claim.numbers.count(f"the lowest is {lowest} with {costs[lowest] - 50:.2f}") == 2


def test_the_figure_of_the_two_sequences_draws_each_method_once(tmp_path):
    y = [0, 1, 0, 1]
    methods = [f"{p} ({s})" for p in ("AdaCOS", "COS") for s in ("group lasso", "forward")]
    made = [
        of_dataset(name, outcome(method, asymmetric(cost), fold, y, y, 1.0 + k, 2))
        for name in ("pima", "wisconsin")
        for k, method in enumerate(methods)
        for cost in (10.0, 100.0)
        for fold in range(2)
    ]
    picture = sequence_figure(FoldTable(made), ("pima", "wisconsin"), tmp_path)
    text = picture.svg.decode()
    for words in (*methods, "Pima diabetes", "Wisconsin breast cancer"):
        assert text.count(f"<!-- {words} -->") == 1, words
    assert {path.suffix for path in tmp_path.iterdir()} == {".png", ".pdf"}


def test_rivals_are_shown_at_the_recall_that_adacos_reached():
    y = [0, 1, 0, 1, 1, 0]
    target, cost = recall(0.95, 10.0), asymmetric(10.0)
    ours = outcome("AdaCOS (group lasso)", target, 0, y, [0, 1, 0, 1, 0, 0], 1.0, 1)
    theirs = replace(
        outcome("rival", cost, 0, y, y, 2.0, 2),
        probability=np.array([0.5, 0.9, 0.1, 0.4, 0.2, 0.3]),
    )
    (matched,) = at_same_recall([ours, theirs], (target, cost))
    assert matched.setting == target
    # Two of three positives are needed: the threshold is 0.4, which also admits the first row.
    assert matched.label.tolist() == [1, 1, 0, 1, 0, 0]
    assert matched.operation.mean() == pytest.approx(2.0 + 10 / 6)


def test_figure_without_adacos_takes_the_first_method_as_yardstick(tmp_path):
    y = [0, 1, 0, 1]
    made = [
        outcome(method, asymmetric(cost), fold, y, y, 2.0, 2)
        for method in ("Full Model", "other")
        for cost in (10.0, 100.0)
        for fold in range(2)
    ]
    picture = asymmetric_figure(FoldTable(made), "pima", ("Full Model", "other"), {}, tmp_path)
    assert picture.svg.startswith(b"<?xml")
    assert {path.suffix for path in tmp_path.iterdir()} == {".png", ".pdf"}


def test_document_escapes_and_marks():
    blocks = [
        Heading("A & B"),
        Text("`x < 1`"),
        Grid(("a", "b"), (("1|2", "<"),), marks=((0, 1, "bad"),)),
    ]
    page, text = to_html("T", blocks), to_markdown("T", blocks)
    assert "A &amp; B" in page
    assert "<code>x &lt; 1</code>" in page
    assert '<td class="bad">&lt;</td>' in page
    assert "| 1\\|2 | < |" in text
