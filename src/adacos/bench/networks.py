"""`adacos bench networks`: regret on Bayesian networks, whose joint distribution is known.

A variable is the class, and others of the network can be acquired. As for random problems the
optimum is that of Theorem 1, and the expected total cost of a policy is a sum over all rows.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from adacos.bench.regret import (
    FALSE_NEGATIVE,
    FALSE_POSITIVE,
    MethodRun,
    RegretOptions,
    RegretReport,
    Study,
    expected_cost,
    fitted,
    grid,
    not_run,
    run_study,
    store,
    verdict,
)
from adacos.datasets import DiscreteProblem, load_network
from adacos.document.blocks import Block, Grid, Heading, Text
from adacos.exceptions import InvalidInputError
from adacos.models.plans import tabulate
from adacos.tables.writing import write_whole

TITLE = "Regret on Bayesian networks"
# What all covariates cost together, as a multiple of the best answer without any of them.
PRICE_SHARES = (0.5, 2.0)
# Class and its positive values in networks that are well known.
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "alarm": ("HYPOVOLEMIA", ("TRUE",)),
    "asia": ("lung", ("yes",)),
    "child": ("Disease", ("TGA",)),
    "insurance": ("Accident", ("Moderate", "Severe")),
}


@dataclass(frozen=True)
class NetworkSettings:
    """A network, its class, and what covariates cost.

    Attributes
    ----------
    network : name of the network, from that of its file.
    target, positive : the variable to be predicted, and its values that make the positive class.
    price_share : what all covariates cost together, as a share of the best answer without any.
    digest : of the file, so that results of another one are not taken for its own.
    path : the file.
    """

    network: str
    target: str
    positive: tuple[str, ...]
    price_share: float
    digest: str
    path: Path = field(repr=False, compare=False)

    def problem(self, seed: int) -> DiscreteProblem:
        """The problem, whatever the seed, which is that of the rows drawn from it."""
        drawn = load_network(self.path, target=self.target, positive=self.positive)
        negative, positive = drawn.joint.reshape(2, -1).sum(axis=1)
        alone = min(FALSE_POSITIVE * negative, FALSE_NEGATIVE * positive)
        times = self.price_share * alone / sum(drawn.prices.values())
        prices = {name: round(times * price, 4) for name, price in drawn.prices.items()}
        return replace(drawn, prices=prices)


def run_networks(
    files: Sequence[Path],
    options: RegretOptions,
    targets: Mapping[str, tuple[str, tuple[str, ...]]] | None = None,
    *,
    progress: bool | None = None,
) -> RegretReport:
    """Run what is not finished, and write the report.

    Parameters
    ----------
    files : files in the format BIF, or folders of them.
    options : what is run; `problems` is the number of samples to learn from.
    targets : by name of a network its class and the positive values, for those that are not known.
    """
    settings = [
        _settings(path, {**TARGETS, **(targets or {})}, share)
        for path in network_files(files)
        for share in (PRICE_SHARES[:1] if options.quick else PRICE_SHARES)
    ]
    for one in settings:
        one.problem(0)
    return run_study(Study(TITLE, tuple(settings), run_case, _blocks), options, progress=progress)


def network_files(files: Sequence[Path]) -> list[Path]:
    """The files that are meant by files and folders."""
    found: list[Path] = []
    for path in files:
        inside = sorted([*path.glob("*.bif"), *path.glob("*.bif.gz")]) if path.is_dir() else [path]
        if not inside or not all(each.is_file() for each in inside):
            raise InvalidInputError(
                "network",
                "must be a file in the format BIF, or a folder of such files",
                str(path),
                "Check the path.",
            )
        found += inside
    return found


def _settings(
    path: Path, targets: Mapping[str, tuple[str, tuple[str, ...]]], share: float
) -> NetworkSettings:
    name = path.name.removesuffix(".gz").removesuffix(".bif")
    if name not in targets:
        raise InvalidInputError(
            "target",
            f"must be stated for the network {name!r}",
            "",
            f"For example --target {name}=VARIABLE:VALUE.",
        )
    target, positive = targets[name]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return NetworkSettings(name, target, positive, share, digest, path)


def run_case(case: MethodRun) -> None:
    """Fit the method on a sample, and store what its policy and the optimum cost."""
    problem, costs = case.problem, case.costs
    path = case.file("optimum")
    if not path.is_file():
        plan = tabulate(problem.joint, costs.bind(tuple(problem.prices), 2))
        write_whole(path, json.dumps(plan.expected_cost).encode())
    start = time.perf_counter()
    policy = fitted(case, *problem.sample(case.n_rows, seed=case.seed))
    cost = expected_cost(policy, problem, costs, case.method.name)
    store(case, cost, json.loads(path.read_text()), time.perf_counter() - start)


def _blocks(
    options: RegretOptions, report: RegretReport, methods: Sequence[str], absent: dict[str, str]
) -> Iterator[Block]:
    settings = list(dict.fromkeys(trial.setting for trial in report.trials))
    yield Text(
        "Expected total cost above that of the optimal policy, in per cent of the latter, exact "
        f"for the distribution of the network. Methods learn from {options.rows} rows; the optimum "
        f"knows the distribution. A false positive costs {FALSE_POSITIVE:g}, a false negative "
        f"{FALSE_NEGATIVE:g}. A covariate costs between 1 and 10 parts, in proportion to its "
        "mutual information with the class. All together they cost the stated share of the best "
        f"answer without any. Mean and standard error over {options.problems} samples."
    )
    yield verdict(report)
    for share in sorted({setting.price_share for setting in settings}):
        own = [setting for setting in settings if setting.price_share == share]
        yield Heading(f"All covariates cost {share:g} times the best answer without any")
        yield grid([setting.network for setting in own], own, report, methods)
    yield Heading("The problems")
    yield _problems([setting for setting in settings if setting.price_share == PRICE_SHARES[0]])
    yield from not_run(report, absent)


def _problems(settings: Sequence[NetworkSettings]) -> Grid:
    """What is predicted, how often it is positive, and what can be acquired."""
    rows = []
    for setting in settings:
        problem = setting.problem(0)
        positive = float(np.sum(problem.joint[1]))
        covariates = ", ".join(f"{name} {price:g}" for name, price in problem.prices.items())
        values = " or ".join(setting.positive)
        rows.append((setting.network, f"{setting.target}: {values}", f"{positive:.1%}", covariates))
    header = ("Network", "Positive class", "Share", "Covariates and their costs")
    return Grid(header, tuple(rows), f"Costs where all cost {PRICE_SHARES[0]:g} times")
