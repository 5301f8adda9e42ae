from __future__ import annotations

import io

import pytest
from rich.console import Console
from sklearn.metrics import log_loss

from adacos import LogisticGAM
from adacos.bench import BenchConfig, FoldTable, asymmetric, run, study
from adacos.bench.peers import EBM, GAM, RIDGE, register_peers
from adacos.bench.tables import Cell
from adacos.datasets import paper_folds
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
    registry.methods[EBM] = registry.methods[EBM].__class__(
        EBM, lambda costs: None, EBM, requires=("no_such_package", "dev")
    )
    text = io.StringIO()
    options = study.StudyOptions(splits=2, out=tmp_path / "study")
    study.run_study(options, console=Console(file=text, width=200))
    told = text.getvalue()
    assert "Pass the table of the authors' code" in told
    assert "Pass data={'physionet': PATH}" in told
    assert "Without EBM (no interactions); install with: pip install interpret" in told
    assert "AdaCOS above COS in" in told


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
