"""`adacos bench networks`: the optimum, what policies cost, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos import Costs
from adacos.bench.networks import PRICE_SHARES, run_networks
from adacos.bench.regret import RegretOptions
from adacos.cli.app import app
from adacos.datasets import load_network
from adacos.exceptions import InvalidInputError
from adacos.registry import forgetting, register_method
from adacos.rivals import OptimalPolicyClassifier

# Two signs of one illness, which is found on neither alone.
CLINIC = """
variable ill { type discrete [ 2 ] { no, yes }; }
variable fever { type discrete [ 2 ] { no, yes }; }
variable blood { type discrete [ 3 ] { low, normal, high }; }
variable scan { type discrete [ 2 ] { clear, shadow }; }
probability ( ill ) { table 0.7, 0.3; }
probability ( fever | ill ) { (no) 0.8, 0.2; (yes) 0.3, 0.7; }
probability ( blood | ill, fever ) {
  (no, no) 0.1, 0.8, 0.1;
  (no, yes) 0.1, 0.4, 0.5;
  (yes, no) 0.5, 0.4, 0.1;
  (yes, yes) 0.1, 0.2, 0.7;
}
probability ( scan | ill ) { (no) 0.95, 0.05; (yes) 0.05, 0.95; }
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.bif"
    path.write_text(CLINIC)
    return path


def test_the_optimum_has_no_regret_and_others_have_some(clinic: Path, tmp_path: Path) -> None:
    problem = load_network(clinic, target="ill", positive="yes")

    def known(costs: Costs) -> OptimalPolicyClassifier:
        """The policy that knows the distribution."""
        return OptimalPolicyClassifier(costs, joint=problem.joint)

    options = RegretOptions(methods=["Known", "Full Model"], problems=2, rows=200, out=tmp_path)
    targets = {"clinic": ("ill", ("yes",))}
    with forgetting():
        register_method("Known", known)
        report = run_networks([clinic], options, targets, progress=False)
    assert not report.failures
    assert not report.below_optimum
    regrets = report.regrets()
    np.testing.assert_allclose(regrets["Known"], 0.0, atol=1e-7)
    assert np.all(regrets["Full Model"] > 1)
    assert len(report.trials) == 2 * 2 * len(PRICE_SHARES)
    text = (tmp_path / "summary.md").read_text()
    assert "ill: yes" in text
    assert "30.0%" in text
    # What all cost together is a share of the best answer without any: 0.3 × 75 = 22.5.
    setting = report.trials[0].setting
    assert sum(setting.problem(0).prices.values()) == pytest.approx(
        22.5 * setting.price_share, abs=1e-3
    )


def test_the_command(clinic: Path, tmp_path: Path) -> None:
    call = ["bench", "networks", str(clinic.parent), "--quick", "--jobs", "1", "--json"]
    call += ["--out", str(tmp_path / "out")]
    runner = CliRunner()
    with pytest.raises(InvalidInputError, match="target clinic=VARIABLE:VALUE"):
        runner.invoke(app, call, catch_exceptions=False)
    done = runner.invoke(app, [*call, "--target", "clinic=ill:yes"], catch_exceptions=False)
    assert done.exit_code == 0
    summary = json.loads(done.stdout)
    assert set(summary["mean_regret_percent"]) == {"AdaCOS (group lasso)", "Branching", "Planning"}
    assert min(summary["mean_regret_percent"].values()) >= 0
    with pytest.raises(InvalidInputError, match="must be NETWORK=VARIABLE:VALUE"):
        runner.invoke(app, [*call, "--target", "clinic=ill"], catch_exceptions=False)


def test_a_method_that_cannot_be_run_is_named(clinic: Path, tmp_path: Path) -> None:
    options = RegretOptions(methods=["Half", "Full Model"], rows=200, out=tmp_path, quick=True)
    with forgetting():
        register_method("Half", lambda costs: object())
        with pytest.raises(InvalidInputError, match="Half must build an object with fit"):
            run_networks([clinic], options, {"clinic": ("ill", ("yes",))}, progress=False)


def test_paths_that_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.bif"):
        with pytest.raises(InvalidInputError, match="a folder of such files"):
            run_networks([path], RegretOptions(out=tmp_path), progress=False)
