"""Bayesian networks: the format, their marginals by brute force, and what is refused."""

from __future__ import annotations

import gzip
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from adacos.datasets import load_network
from adacos.datasets._network import BayesianNetwork, Factor, read_network
from adacos.exceptions import InvalidInputError

SPRINKLER = """
network sprinkler { property made by hand; }
// A comment, and /* another one */
variable cloudy { type discrete [ 2 ] { no, yes }; }
variable rain { type discrete [ 3 ] { none, <5, >=5/day }; property position = (1, 2); }
variable wet { type discrete [ 2 ] { no, yes }; }
probability ( cloudy ) { table 0.6, 0.4; }
probability ( rain | cloudy ) {
  (no) 0.7, 0.2, 0.1;
  (yes) 0.2, 0.3, 0.5;
}
probability ( wet | cloudy, rain ) {
  default 0.5, 0.5;
  (no, none) 0.9, 0.1;
  (yes, >=5/day) 1e-1, 0.9;
}
"""


@pytest.fixture
def sprinkler(tmp_path: Path) -> Path:
    path = tmp_path / "sprinkler.bif"
    path.write_text(SPRINKLER)
    return path


def brute_force(network: BayesianNetwork, variables: tuple[str, ...]) -> np.ndarray:
    """The marginal as the sum over every combination of values of all variables."""
    names = list(network.states)
    total = np.zeros([len(network.states[name]) for name in variables])
    for values in product(*(range(len(network.states[name])) for name in names)):
        place = dict(zip(names, values, strict=True))
        chance = prod(
            float(factor.table[tuple(place[each] for each in factor.variables)])
            for factor in network.factors.values()
        )
        total[tuple(place[name] for name in variables)] += chance
    return total


def test_what_the_format_says(sprinkler: Path) -> None:
    network = read_network(sprinkler)
    assert network.states["rain"] == ("none", "<5", ">=5/day")
    wet = network.factors["wet"]
    assert wet.variables == ("cloudy", "rain", "wet")
    np.testing.assert_allclose(wet.table[0, 0], [0.9, 0.1])
    np.testing.assert_allclose(wet.table[1, 2], [0.1, 0.9])
    np.testing.assert_allclose(wet.table[1, 0], [0.5, 0.5])
    packed = sprinkler.with_suffix(".bif.gz")
    packed.write_bytes(gzip.compress(SPRINKLER.encode()))
    np.testing.assert_array_equal(read_network(packed).factors["wet"].table, wet.table)


def test_a_whole_table_has_the_variable_first(tmp_path: Path) -> None:
    path = tmp_path / "n.bif"
    path.write_text(
        "variable a { type discrete [ 2 ] { n, y }; } variable b { type discrete [ 2 ] { n, y }; }"
        "probability ( a ) { table 0.3, 0.7; } probability ( b | a ) { table 0.9, 0.2, 0.1, 0.8; }"
    )
    np.testing.assert_allclose(read_network(path).factors["b"].table, [[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize("seed", range(4))
def test_marginals_of_random_networks_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=8)
    names = [f"v{k}" for k in range(8)]
    states = {name: tuple(map(str, range(n))) for name, n in zip(names, sizes, strict=True)}
    factors = {}
    for k, name in enumerate(names):
        parents = sorted(rng.choice(k, size=min(k, int(rng.integers(0, 4))), replace=False))
        shape = [int(sizes[parent]) for parent in parents]
        table = rng.dirichlet(np.full(int(sizes[k]), 0.5), size=shape)
        factors[name] = Factor((*(names[parent] for parent in parents), name), table)
    network = BayesianNetwork(states, factors)
    for _ in range(5):
        wanted = tuple(rng.permutation(names)[: int(rng.integers(1, 5))].tolist())
        np.testing.assert_allclose(network.marginal(wanted), brute_force(network, wanted))


def test_a_problem(sprinkler: Path) -> None:
    problem = load_network(sprinkler, target="rain", positive=["<5", ">=5/day"])
    assert list(problem.prices) == ["cloudy", "wet"]
    whole = brute_force(read_network(sprinkler), ("rain", "cloudy", "wet"))
    np.testing.assert_allclose(problem.joint, [whole[0], whole[1:].sum(axis=0)])
    apart = problem.joint.sum(axis=2)
    alone = apart.sum(axis=1, keepdims=True) * apart.sum(axis=0)
    cloudy = float((apart * np.log(apart / alone)).sum())
    apart = problem.joint.sum(axis=1)
    alone = apart.sum(axis=1, keepdims=True) * apart.sum(axis=0)
    wet = float((apart * np.log(apart / alone)).sum())
    assert problem.prices["cloudy"] == pytest.approx(1 + 9 * cloudy / max(cloudy, wet), abs=0.01)
    assert problem.prices["wet"] == pytest.approx(1 + 9 * wet / max(cloudy, wet), abs=0.01)
    one = load_network(sprinkler, target="rain", positive="none", covariates=["wet"])
    np.testing.assert_allclose(one.joint, problem.joint.sum(axis=1)[::-1])


def test_networks_that_are_well_known(shared_dir: Path) -> None:
    """Figures that their authors give: lung cancer and X-rays of Asia; Alarm has 37 variables."""
    folder = shared_dir / "data" / "networks"
    if not folder.is_dir():
        pytest.skip(f"no networks in {folder}")
    asia = read_network(folder / "asia.bif.gz")
    np.testing.assert_allclose(asia.marginal(["lung"]), [0.055, 0.945])
    np.testing.assert_allclose(asia.marginal(["xray"]), [0.11029, 0.88971], atol=1e-5)
    names = ("xray", "lung", "dysp")
    np.testing.assert_allclose(asia.marginal(names), brute_force(asia, names))
    assert len(read_network(folder / "alarm.bif.gz").states) == 37
    child = load_network(folder / "child.bif.gz", target="Disease", positive="TGA")
    assert child.joint.sum() == pytest.approx(1.0)
    assert np.prod(np.array(child.levels) + 1) <= 1_500_000


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("variable wet { type discrete [ 2 ] { no, yes }; }", "", "there is no variable wet"),
        ("[ 3 ]", "[ 4 ]", "as many values as it states"),
        ("(no) 0.7, 0.2, 0.1;", "(no) 0.7, 0.2;", "2 of 3 numbers"),
        ("(no) 0.7, 0.2, 0.1;", "(no) 0.7, 0.2, 0.3;", "must be given, and sum to 1"),
        ("(no) 0.7, 0.2, 0.1;", "(no) 0.7, -0.2, 0.5;", "must be given, and sum to 1"),
        ("(no) 0.7, 0.2, 0.1;", "", "must be given, and sum to 1"),
        ("(no) 0.7, 0.2, 0.1;", "(maybe) 0.7, 0.2, 0.1;", "are not values of"),
        ("(no) 0.7, 0.2, 0.1;", "(no) many, 0.2, 0.1;", "are not numbers"),
        ("probability ( cloudy ) { table 0.6, 0.4; }", "", "needs the probabilities of cloudy"),
        ("( cloudy ) { table 0.6, 0.4; }", "( cloudy | wet ) { default 0.6, 0.4; }", "on itself"),
    ],
)
def test_files_that_are_refused(sprinkler: Path, before: str, after: str, message: str) -> None:
    assert before in SPRINKLER
    sprinkler.write_text(SPRINKLER.replace(before, after))
    with pytest.raises(InvalidInputError, match=message):
        read_network(sprinkler)


def test_what_else_is_refused(sprinkler: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="readable"):
        read_network(tmp_path / "none.bif")
    (tmp_path / "broken.bif.gz").write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(InvalidInputError, match="readable"):
        read_network(tmp_path / "broken.bif.gz")
    (tmp_path / "empty.bif").write_text("")
    with pytest.raises(InvalidInputError, match="is empty"):
        read_network(tmp_path / "empty.bif")
    with pytest.raises(InvalidInputError, match=r"target: must be in the network.*mean rain"):
        load_network(sprinkler, target="Rain", positive="none")
    with pytest.raises(InvalidInputError, match="positive: must be in the network"):
        load_network(sprinkler, target="rain", positive="some")
    with pytest.raises(InvalidInputError, match="must leave a value"):
        load_network(sprinkler, target="wet", positive=["no", "yes"])
    with pytest.raises(InvalidInputError, match="covariates: must be in the network"):
        load_network(sprinkler, target="rain", positive="none", covariates=["rain"])
