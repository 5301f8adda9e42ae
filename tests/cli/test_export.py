"""`adacos export`: a file that decides without Python, from a model file."""

from __future__ import annotations

import json
from pathlib import Path

from adacos import AdaCOSClassifier, Costs, load_pima, save


def test_a_model_file_becomes_json_and_a_page(run, folder, tmp_path) -> None:
    model = next(Path(folder).glob("*.adacos"))
    for name in ("policy.json", "policy.html"):
        code, out, err = run("export", model, "--out", tmp_path / name)
        assert (code, err) == (0, "")
        assert out.strip().endswith("kB")
        assert name in out
    content = json.loads((tmp_path / "policy.json").read_text())
    assert f"model {content['model']}" not in (tmp_path / "policy.html").read_text()
    assert json.dumps(content["model"]) in (tmp_path / "policy.html").read_text()


def test_mistakes_are_named_and_nothing_is_written(run, folder, tmp_path) -> None:
    model = next(Path(folder).glob("*.adacos"))
    code, _, err = run("export", model, "--out", tmp_path / "policy.js")
    assert code == 2
    assert "--out: must end in .json or .html" in err
    code, _, err = run("export", tmp_path / "none.adacos", "--out", tmp_path / "policy.json")
    assert code == 2
    assert "must be an existing file" in err
    data = load_pima()
    costs = Costs(data.prices, false_positive=400, false_negative=400)
    policy = AdaCOSClassifier(costs, lookahead="paper", cv=2, strengths="common")
    save(policy.fit(data.X, data.y), tmp_path / "paper.adacos")
    code, _, err = run("export", tmp_path / "paper.adacos", "--out", tmp_path / "policy.json")
    assert code == 2
    assert "lookahead='paper'" in err
    assert [path.name for path in tmp_path.iterdir()] == ["paper.adacos"]
