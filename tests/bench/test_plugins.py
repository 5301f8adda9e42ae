"""Plugins: their code belongs to the results, their failures are told once with file and line."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos.bench import BenchConfig, FoldTable, asymmetric, run
from adacos.bench.tables import Cell
from adacos.cli.app import app
from adacos.cli.bench import load_plugins
from adacos.exceptions import InvalidInputError
from adacos.registry import METHODS, Method
from tests.bench.toy import Thresholder

PLUGIN = """
from types import SimpleNamespace
import numpy as np
from adacos.bench import register_method
from {helper} import ANSWER

class Constant:
    def __init__(self, costs):
        self.costs = costs
    def fit(self, X, y):
        return self
    def acquire(self, X):
        {acquire}
        n = len(X)
        return SimpleNamespace(
            label=np.full(n, ANSWER), probability=np.full(n, 0.5), cost=np.full(n, {paid}),
            acquired=np.zeros(X.shape, dtype=bool))

register_method("mine", lambda costs: Constant(costs))
"""


@pytest.fixture
def plugin(tmp_path, registry, monkeypatch):
    """Writes the plugin and the module beside it, and loads it as a new process would."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(*, paid=1.0, answer=0, acquire="pass"):
        METHODS.pop("mine", None)
        sys.modules.pop("answers_beside", None)
        (tmp_path / "answers_beside.py").write_text(f"ANSWER = {answer}\n")
        text = PLUGIN.format(helper="answers_beside", acquire=acquire, paid=paid)
        (tmp_path / "mine.py").write_text(text)
        sys.path_importer_cache.clear()
        load_plugins([tmp_path / "mine.py"])
        return BenchConfig(
            ("made up",), ("mine",), (asymmetric(10.0),), tmp_path / "out", folds=(0, 1)
        )

    return write


def mean_cost(config):
    result = run(config, progress=False)
    cell = Cell("made up", "mine", "asymmetric", 10.0)
    return FoldTable(result.outcomes).mean(cell, "total_cost"), result.n_reused


def test_results_are_not_reused_after_the_plugin_changed(plugin):
    first, reused = mean_cost(plugin())
    assert reused == 0
    assert mean_cost(plugin()) == (first, 2)
    assert mean_cost(plugin(paid=3.0)) == (pytest.approx(first + 2.0), 0)


def test_nor_after_a_module_beside_it_changed(plugin):
    first, _ = mean_cost(plugin(answer=0))
    second, reused = mean_cost(plugin(answer=1))
    assert reused == 0
    assert second != first


def test_the_code_of_a_function_passed_in_python_counts_too(tmp_path, registry):
    names = {}
    for number, text in enumerate(("costs", "(costs)")):
        path = tmp_path / "made.py"
        path.write_text(f"make = lambda costs: Thresholder({text})\n")
        space = {"Thresholder": Thresholder}
        exec(compile(path.read_text(), str(path), "exec"), space)
        METHODS["mine"] = Method("mine", space["make"], "mine")
        out = tmp_path / "out"
        run(BenchConfig(("made up",), ("mine",), (asymmetric(1.0),), out, folds=(0,)))
        names[number] = {file.name for file in (out / "units").iterdir()}
    assert len(names[1]) == 2 * len(names[0])


def test_failures_are_told_once_with_file_and_line(plugin, tmp_path):
    plugin(acquire="raise ValueError('no [answer]')")
    line = 1 + PLUGIN.splitlines().index("        {acquire}")
    arguments = ["bench", "paper", "--methods", "mine", "--datasets", "made up", "--quick"]
    arguments += ["--jobs", "1", "--out", str(tmp_path / "report")]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 1
    told = f"failed ValueError: no [answer] (mine.py, line {line}) in made up, paper fold 0"
    assert done.output.count("failed") == 1
    assert told in done.output
    assert "and 13 more" in done.output
    assert (tmp_path / "report" / "summary.md").read_text().count("no [answer]") == 1
    again = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert len(again["failures"]) == 14


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\ny = nobody\n", r"NameError: .*nobody.* \(bad\.py, line 2\)"),
        ("x = (", "bad.py, line 1"),
    ],
)
def test_a_plugin_that_does_not_run_is_told_with_its_line(tmp_path, monkeypatch, text, told):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(InvalidInputError, match=told):
        load_plugins([tmp_path / "bad.py"])


def test_methods_get_arrays_and_costs_by_position(tmp_path, registry):
    """As docs/reproduce.md says of data sets that are arrays."""
    seen = []

    class Looks(Thresholder):
        def fit(self, X, y):
            seen.append((type(X), X.dtype, self.costs.covariates))
            return super().fit(X, y)

    METHODS["looks"] = Method("looks", Looks, "looks")
    config = BenchConfig(("pima",), ("looks",), (asymmetric(1.0),), tmp_path / "out", folds=(0,))
    run(config, progress=False)
    assert seen == [(np.ndarray, np.float64, (1.0, 17.61, 1.0, 1.0, 22.78, 1.0, 1.0, 1.0))]
