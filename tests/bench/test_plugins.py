"""Plugins: their code belongs to the results, their failures are told once with file and line."""

from __future__ import annotations

import json
import re
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
from adacos.tables.columns import ColumnTable
from tests.bench.toy import Thresholder, toy_dataset

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
        acquired = np.tile(np.arange(X.shape[1]) < {acquired}, (n, 1))
        return SimpleNamespace(
            label=np.full({labels}, ANSWER), probability=np.full(n, 0.5),
            cost={paid}, acquired=acquired)

register_method("mine", lambda costs: Constant(costs))
"""


@pytest.fixture
def plugin(tmp_path, registry, monkeypatch):
    """Writes the plugin and the module beside it, and loads it as a new process would."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(
        *,
        acquired=1,
        answer=0,
        acquire="pass",
        labels="n",
        paid="acquired @ self.costs.covariates",
        methods=("mine",),
    ):
        METHODS.pop("mine", None)
        sys.modules.pop("answers_beside", None)
        (tmp_path / "answers_beside.py").write_text(f"ANSWER = {answer}\n")
        text = PLUGIN.format(
            helper="answers_beside", acquire=acquire, acquired=acquired, labels=labels, paid=paid
        )
        (tmp_path / "mine.py").write_text(text)
        sys.path_importer_cache.clear()
        load_plugins([tmp_path / "mine.py"])
        return BenchConfig(
            ("made up",), methods, (asymmetric(10.0),), tmp_path / "out", folds=(0, 1)
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
    # The second covariate costs 3.
    assert mean_cost(plugin(acquired=2)) == (pytest.approx(first + 3.0), 0)


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"paid": "np.zeros(n)"}, r"cost must be .* received 0 in place of 2 in row \d+"),
        ({"acquired": 1, "paid": "np.full(n, 5.0)"}, "received 5 in place of 2"),
        ({"labels": "n - 1"}, r"label must have the shape \(12,\)"),
        ({"answer": 7}, r"labels must be classes of the data set, \[0, 1\]"),
    ],
)
def test_what_a_method_says_of_itself_is_not_believed(plugin, wrong, reported):
    """A plugin that returned cost 0 was reported at 0; one label too few ended the whole run."""
    result = run(plugin(methods=("mine", "toy"), **wrong), progress=False)
    assert len(result.failures) == 2
    for failure in result.failures:
        assert "method 'mine': " in failure.error
        assert re.search(reported, failure.error)
    assert {outcome.method for outcome in result.outcomes} == {"toy"}
    assert len(FoldTable(result.outcomes).cells()) == 1


@pytest.mark.parametrize("as_frame", [False, True])
def test_panels_of_a_registered_data_set_count(tmp_path, registry, as_frame):
    """They were ignored; those of the paper's data sets do not count in its experiments."""
    table = toy_dataset(n=100)._replace(panels={"blood": (1.5, ["a", "b"])})
    if as_frame:
        columns = {"a": table.X[:, 0], "b": table.X[:, 1]}
        table = table._replace(X=ColumnTable(columns))
    registry.register_dataset("with panels", lambda: table)
    costs = []
    for name in ("with panels", "made up"):
        config = BenchConfig((name,), ("full-model",), (asymmetric(10.0),), tmp_path, folds=(0,))
        result = run(config, progress=False)
        assert not result.failures
        costs.append(result.outcomes[0].cost)
    np.testing.assert_allclose(costs[0], 2.0 + 3.0 - 1.5)
    np.testing.assert_allclose(costs[1], 5.0)
    for name in ("pima", "heart"):
        source = registry.DATASETS[name]
        assert source.load().panels
        assert not source.load(paper=True).panels


def test_nor_after_a_module_next_to_it_changed(plugin):
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


def test_failures_are_reported_once_with_file_and_line(plugin, tmp_path):
    plugin(acquire="raise ValueError('no [answer]')")
    line = 1 + PLUGIN.splitlines().index("        {acquire}")
    arguments = ["bench", "paper", "--methods", "mine", "--datasets", "made up", "--quick"]
    arguments += ["--jobs", "1", "--out", str(tmp_path / "report")]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 1
    reported = f"failed ValueError: no [answer] (mine.py, line {line}) in made up, paper fold 0"
    assert done.output.count("failed") == 1
    assert reported in done.output
    assert "and 13 more" in done.output
    assert (tmp_path / "report" / "summary.md").read_text().count("no [answer]") == 1
    again = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert len(again["failures"]) == 14


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("x = 1\ny = nobody\n", r"NameError: .*nobody.* \(bad\.py, line 2\)"),
        ("x = (", "bad.py, line 1"),
    ],
)
def test_a_plugin_that_does_not_run_is_reported_with_its_line(
    tmp_path, monkeypatch, text, reported
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(InvalidInputError, match=reported):
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
