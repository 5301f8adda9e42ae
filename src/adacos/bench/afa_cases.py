"""What one method comes to on one instance of a problem in `adacos bench afa`."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from adacos.bench.methods import build, signature
from adacos.bench.settings import asymmetric
from adacos.bench.sources import library_digest
from adacos.bench.units import rows_of, table_digest
from adacos.costs import Costs
from adacos.datasets import CubeProblem, Dataset, make_cube_problem
from adacos.decision import AnyDecider
from adacos.engine import log_odds_given, run
from adacos.exceptions import InvalidInputError
from adacos.registry import Method
from adacos.tables.encoder import validate_table
from adacos.tables.writing import write_whole
from adacos.typing import Bools, Floats

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# Mean costs of covariates that an error costs: only the budget ends an acquisition; and weighed.
UNLIMITED, WEIGHED = 1e4, 20.0
# How many times more covariates count in the curve of soft budgets.
TIMES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MOST_COVARIATES = 12
FRESH_ROWS = 1000
STARTS = ("nothing known", "values known", "values unavailable", "never acquirable")
# Share of the values that are known or unavailable, and of the covariates never acquirable.
SHARE = 0.2
# Random orders, and random masks of a start: rows take them in turn, so that few differ.
PATTERNS = 10
ROUNDING = 1e-9


@dataclass(frozen=True)
class CubeSettings:
    """What `make_cube_problem` is asked for."""

    contexts: int = 1
    noise: float = 0.1
    prices: str = "equal"

    @property
    def title(self) -> str:
        """For tables."""
        name = "CUBE" if self.contexts == 1 else f"CUBE with {self.contexts} contexts"
        return f"{name}, {self.prices} costs"

    def problem(self, seed: int) -> CubeProblem:
        """The problem; only its random costs depend on the seed."""
        return make_cube_problem(
            contexts=self.contexts, noise=self.noise, prices=self.prices, seed=seed
        )

    def rows(self, n: int, seed: int) -> Sample:
        """Training rows and fresh ones."""
        problem = self.problem(seed)
        train, fresh = problem.sample(n, [seed, 0]), problem.sample(FRESH_ROWS, [seed, 1])
        return Sample(*train, *fresh, problem.prices)


@dataclass(frozen=True)
class TableSettings:
    """A table of the user's own, of which 30% are tested.

    Attributes
    ----------
    title : name of the table.
    table : covariates, classes and covariate costs.
    digest : of the table, so that results of another one are not taken for its own.
    """

    title: str
    table: Dataset = field(repr=False, compare=False)
    digest: str = ""

    @classmethod
    def of(cls, title: str, table: Dataset) -> TableSettings:
        """The table, with its digest."""
        return cls(title, table, table_digest(table))

    def rows(self, n: int, seed: int) -> Sample:
        """A random split, of `n` training rows at most."""
        X, y, *_ = self.table
        train, fresh = train_test_split(
            np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed
        )
        train = train[:n]
        rows = rows_of(X, train), y[train], rows_of(X, fresh), y[fresh]
        return Sample(*rows, dict(self.table.prices), dict(self.table.panels))


@dataclass(frozen=True)
class Sample:
    """Rows to learn from and others to be answered, with covariate costs and panels."""

    X: Any
    y: NDArray[Any]
    X_fresh: Any
    y_fresh: NDArray[Any]
    prices: dict[str, float]
    panels: dict[str, Any] | None = None

    @property
    def unit(self) -> float:
        """Mean cost of a covariate."""
        return float(np.mean(list(self.prices.values()))) or 1.0

    def costs(self, error: float) -> Costs:
        """Costs in which an error costs that many covariates."""
        n_classes = len(np.unique(self.y))
        matrix = error * self.unit * (1 - np.eye(n_classes))
        # An array has no names, and no panels.
        prices = list(self.prices.values()) if isinstance(self.X, np.ndarray) else self.prices
        return Costs(prices, misclassification=matrix, panels=self.panels)


CUBES = (
    CubeSettings(),
    CubeSettings(prices="random"),
    CubeSettings(prices="informative"),
    CubeSettings(contexts=3),
)


@dataclass(frozen=True)
class AccuracyCase:
    """One method on one instance, and the folder that holds its result."""

    setting: Any
    seed: int
    method: Method
    n_rows: int
    folder: Path

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self.method.name}, {self.setting.title}, instance {self.seed}"

    @property
    def path(self) -> Path:
        """File of the result, named by everything it depends on."""
        content = (self.setting, self.seed, self.n_rows, library_digest(), signature(self.method))
        return self.folder / f"{hashlib.sha256(repr(content).encode()).hexdigest()[:24]}.json"


@dataclass(frozen=True)
class Curves:
    """What one method came to on one instance.

    Attributes
    ----------
    title : the setting.
    seed : the instance.
    method : the method.
    budgets : numbers of covariates of mean cost.
    accuracy, f1 : by start; accuracy and macro F1 at each budget.
    random : accuracy of the same classifier at each budget, in random order.
    soft : for each entry of `TIMES` what a row paid in mean costs, accuracy and macro F1.
    total_cost : mean cost of covariates and errors, in mean costs of a covariate.
    seconds : what fitting and answering took.
    error : why there is no result.
    """

    title: str
    seed: int
    method: str
    budgets: list[int] = field(default_factory=list)
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    f1: dict[str, list[float]] = field(default_factory=dict)
    random: list[float] = field(default_factory=list)
    soft: list[list[float]] = field(default_factory=list)
    total_cost: float = np.nan
    seconds: float = 0.0
    error: str = ""


def run_case(case: AccuracyCase) -> None:
    """Fit the method for both costs of an error, and store what it came to."""
    started = time.perf_counter()
    sample = case.setting.rows(case.n_rows, case.seed)
    errors = asymmetric(1.0, ratio=1.0)
    fits = []
    for cost in (UNLIMITED, WEIGHED):
        policy = build(case.method, sample.costs(cost), errors, case.seed)
        fits.append(policy.fit(sample.X, sample.y))
    unlimited, weighed = fits
    if not hasattr(unlimited, "decider_"):
        raise InvalidInputError(
            "method", "must be a policy of this library", case.method.name, "Register a policy."
        )
    budgets = list(range(1, min(len(sample.prices), MOST_COVARIATES) + 1))
    stored = {"budgets": budgets, **_under_budgets(unlimited, sample, budgets, case.seed)}
    stored |= _weighed(weighed, sample)
    stored["seconds"] = round(time.perf_counter() - started, 3)
    write_whole(case.path, json.dumps(stored).encode())


def _under_budgets(
    policy: BasePolicy, sample: Sample, budgets: Sequence[int], seed: int
) -> dict[str, Any]:
    """Accuracy and F1 at each budget, from each start."""
    rng = np.random.default_rng([seed, 2])
    found: dict[str, Any] = {"accuracy": {}, "f1": {}}
    for start in STARTS:
        encoded, known = _begun(policy, sample, start, rng)
        scores = []
        for budget in budgets_from(start, budgets):
            label = _answers(with_budget(policy.decider_, budget * sample.unit), encoded, known)
            scores.append(_scores(policy, label, sample.y_fresh))
        found["accuracy"][start], found["f1"][start] = map(list, zip(*scores, strict=True))
        if start == STARTS[0]:
            found["random"] = _random_order(policy, encoded, budgets, sample, rng)
    return found


def budgets_from(start: str, budgets: Sequence[int]) -> Sequence[int]:
    """Every budget where nothing is known, every third one otherwise."""
    return budgets if start == STARTS[0] else budgets[2::3]


def _begun(
    policy: BasePolicy, sample: Sample, start: str, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Encoded fresh rows, NaN where a value is unavailable, and the mask of what is known."""
    encoder = policy.encoder_
    encoded = encoder.transform(_table(policy, sample.X_fresh))
    shape = (len(encoded), len(encoder.names))
    known = np.zeros(shape, dtype=np.bool_)
    drawn = (rng.random((PATTERNS, shape[1])) < SHARE)[np.arange(shape[0]) % PATTERNS]
    if start == "values known":
        known = drawn
    elif start == "values unavailable":
        encoded[drawn[:, encoder.source]] = np.nan
    elif start == "never acquirable":
        count = max(round(SHARE * shape[1]), 1)
        never = np.isin(encoder.source, rng.choice(shape[1], count, replace=False))
        encoded[:, never] = np.nan
    return encoded, known


def _table(policy: BasePolicy, X: Any) -> Any:
    return validate_table(policy, X, reset=False)


def with_budget(decider: AnyDecider, budget: float) -> AnyDecider:
    """The decider by which a row may pay at most that."""
    return replace(decider, terms=decider.terms._replace(budget=budget))


def _answers(decider: AnyDecider, encoded: Floats, known: Bools) -> NDArray[Any]:
    """Labels of encoded rows."""
    labels: NDArray[Any] = decider.classes[run(decider, encoded, known).label]
    return labels


def _random_order(
    policy: BasePolicy,
    encoded: Floats,
    budgets: Sequence[int],
    sample: Sample,
    rng: np.random.Generator,
) -> list[float]:
    """Accuracy of the same classifier at each budget, by covariates in random orders."""
    decider, available = policy.decider_, ~np.isnan(encoded[:, policy.encoder_.first])
    prices = decider.costs.covariates
    orders = rng.permuted(np.tile(np.arange(len(prices)), (PATTERNS, 1)), axis=1)
    number = np.arange(len(encoded)) % PATTERNS
    found = []
    for budget in budgets:
        paid = np.cumsum(prices[orders], axis=1) <= budget * sample.unit * (1 + ROUNDING)
        masks = np.zeros(orders.shape, dtype=np.bool_)
        np.put_along_axis(masks, orders, paid, axis=1)
        log_odds = log_odds_given(decider, encoded, masks[number] & available)
        label = decider.classes[decider.rule.label(log_odds)]
        found.append(float((label == sample.y_fresh).mean()))
    return found


def _weighed(policy: BasePolicy, sample: Sample) -> dict[str, Any]:
    """Total cost, and what is paid and right as covariates count more."""
    encoded, known = _begun(policy, sample, STARTS[0], np.random.default_rng(0))
    soft, total = [], np.nan
    for times in TIMES:
        decider = policy.decider_.with_multiplier(times) if times else policy.decider_
        result = run(decider, encoded, known)
        label = decider.classes[result.label]
        paid = float(result.cost.mean()) / sample.unit
        soft.append([paid, *_scores(policy, label, sample.y_fresh)])
        if not times:
            total = paid + WEIGHED * float((label != sample.y_fresh).mean())
    return {"soft": soft, "total_cost": total}


def _scores(policy: BasePolicy, label: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """Accuracy and macro F1."""
    f1 = f1_score(y, label, labels=policy.classes_, average="macro", zero_division=0)
    return float((label == y).mean()), float(f1)


def read_curves(case: AccuracyCase, error: str) -> Curves:
    """The result of a case, or the error that it ended in."""
    stored = {} if error else json.loads(case.path.read_text())
    return Curves(case.setting.title, case.seed, case.method.name, **stored, error=error)
