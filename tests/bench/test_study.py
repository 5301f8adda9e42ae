from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import log_loss

from adacos import LogisticGAM
from adacos.bench import BenchConfig, FoldTable, asymmetric, run
from adacos.bench.run import RunResult
from adacos.bench.tables import Cell
from adacos.bench.units import Outcome
from adacos.datasets import paper_folds
from adacos.registry import Method
from benchmarks import study
from benchmarks.peers import EBM, GAM, RIDGE, register_peers
from tests.bench.toy import toy_dataset


def test_peers_are_judged_by_their_probabilities(tmp_path, registry):
    register_peers()
    register_peers()
    config = BenchConfig(
        ("made up",), (GAM, RIDGE), (asymmetric(100.0),), tmp_path / "out", folds=(0,)
    )
    folds = FoldTable(run(config, progress=False).outcomes)
    table = toy_dataset()
    test = paper_folds(table.X, table.y) == 0
    p = LogisticGAM().fit(table.X[~test], table.y[~test]).predict_proba(table.X[test])
    found = folds.mean(Cell("made up", GAM, "asymmetric", 100.0), "log_loss")
    assert found == pytest.approx(log_loss(table.y[test], p))
    assert folds.has(Cell("made up", RIDGE, "asymmetric", 100.0))


def test_study_answers_what_it_can_and_says_what_it_skips(tmp_path, registry, monkeypatch):
    monkeypatch.setattr(study, "BUNDLED", ("made up",))
    monkeypatch.setattr(study, "COSTS", (10.0, 100.0))
    monkeypatch.setattr(study, "PEERS", (RIDGE, EBM))
    monkeypatch.setattr(study, "_symmetric", lambda options: study.Answer("left out", None, ()))
    register_peers()
    registry.METHODS[EBM] = Method(
        EBM, lambda costs: None, EBM, requires=("no_such_package", "dev")
    )
    text = io.StringIO()
    options = study.StudyOptions(splits=2, out=tmp_path / "study")
    held = study.run_study(options, console=Console(file=text, width=200))
    reported = text.getvalue()
    assert held == ("does not hold" not in reported)
    assert reported.count("skipped") == 3
    assert "Pass the table of the authors' code" in reported
    assert "Pass its path as data" in reported
    assert "Without EBM (no interactions); install with: pip install interpret" in reported
    assert "AdaCOS above COS in" in reported


@pytest.mark.parametrize(
    ("verdicts", "held"),
    [((True, None, True), True), ((None,) * 3, True), ((True, False, None), False)],
)
def test_one_claim_that_fails_makes_the_study_fail(monkeypatch, verdicts, held):
    names = ("_against_authors", "_fresh_splits", "_log_loss", "_symmetric", "_physionet")
    for name, holds in zip(names, (*verdicts, None, None), strict=True):
        answer = study.Answer(name, holds, ())
        monkeypatch.setattr(study, name, lambda options, answer=answer: answer)
    console = Console(file=io.StringIO())
    assert study.run_study(study.StudyOptions(), console=console) is held


def outcomes(first, second):
    """Rows of two splits of one data set, with these total costs of AdaCOS and COS."""
    n = len(first)
    return [
        Outcome(
            "made up",
            split,
            fold,
            method,
            asymmetric(10.0),
            rows,
            np.zeros(len(rows), dtype=int),
            np.zeros(len(rows), dtype=int),
            np.full(len(rows), 0.1),
            cost[rows],
            np.ones(len(rows), dtype=int),
        )
        for method, cost in (
            (study.ADACOS, first),
            (study.COS, second),
            (study.FULL_MODEL, second),
        )
        for seed, split in enumerate(("random-1", "random-2"))
        for fold, rows in enumerate(np.array_split(np.random.default_rng(seed).permutation(n), 5))
    ]


@pytest.mark.parametrize(("factor", "holds"), [(0.8, True), (1.0, None), (1.2, False)])
def test_fresh_splits_are_judged_by_rows(monkeypatch, tmp_path, registry, factor, holds):
    rng = np.random.default_rng(4)
    second = 1 + 10 * rng.exponential(size=300)
    # Equal but for chance: every split of these very rows shows the same difference.
    first = factor * (1 + (second - 1) * rng.lognormal(-0.02, 0.2, size=300))
    made = RunResult(tuple(outcomes(first, second)), {}, (), 0)
    monkeypatch.setattr(study, "BUNDLED", ("made up",))
    monkeypatch.setattr(study, "run", lambda config: made)
    answer = study._fresh_splits(study.StudyOptions(splits=2, out=tmp_path))
    assert answer.holds is holds


def test_study_against_the_authors_divides_means(tmp_path, registry, monkeypatch):
    monkeypatch.setattr(study, "BUNDLED", ("made up",))
    monkeypatch.setattr(study, "COSTS", (10.0,))
    monkeypatch.setattr(study, "PAPER_SYMMETRIC", (400.0,))
    reference = tmp_path / "authors_code.csv"
    header = "dataset,method,setting,false_positive_cost,metric,mean,std\n"

    def write(factor):
        config = study._paper_config(study.StudyOptions(out=tmp_path / "study"))
        folds = FoldTable(run(config, progress=False).outcomes)
        lines = [
            f"made up,{m},asymmetric,10,total_cost,{factor * folds.mean(c, 'total_cost')},0\n"
            for m in study.POLICIES
            for c in [Cell("made up", m, "asymmetric", 10.0)]
        ]
        reference.write_text(header + "".join(lines))

    options = study.StudyOptions(out=tmp_path / "study", reference=tmp_path)
    for factor, holds in ((1.0, True), (0.9, False)):
        write(factor)
        assert study._against_authors(options).holds is holds
