"""The tables, and the settings in which every policy is fitted and asked on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adacos import Costs, InvalidInputError, TargetRecallClassifier, load_heart, load_pima
from tests.policy_cases import Case
from tests.rivals.problems import THREE_COSTS, three_table

N_DECIDED = 60


@dataclass(frozen=True)
class Problem:
    """A table, of which some rows are fitted and others decided, and what is asked about it."""

    X: pd.DataFrame
    y: NDArray[Any]
    X_decided: pd.DataFrame
    costs: Callable[..., Costs]
    immediate: str
    budget: float
    mean_budget: float
    recall: Any

    def with_missing(self) -> Problem:
        """The problem with a sixth of all values removed."""
        X, decided = (_punched(table, seed) for seed, table in enumerate((self.X, self.X_decided)))
        return Problem(**{**vars(self), "X": X, "X_decided": decided})

    def known(self) -> NDArray[np.bool_]:
        """A third of the values that are there."""
        drawn = np.random.default_rng(2).random(self.X_decided.shape) < 1 / 3
        return np.asarray(drawn & self.X_decided.notna().to_numpy())


def _punched(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    return table.mask(np.random.default_rng(seed).random(table.shape) < 1 / 6)


def _split(X: pd.DataFrame, y: Any, n_fitted: int) -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    """Rows without missing values in a drawn order: those to fit, and those to decide."""
    order = np.random.default_rng(0).permutation(np.flatnonzero(X.notna().all(axis=1)))
    fitted, decided = order[:n_fitted], order[n_fitted : n_fitted + N_DECIDED]
    return (
        X.iloc[fitted].reset_index(drop=True),
        np.asarray(y)[fitted],
        X.iloc[decided].reset_index(drop=True),
    )


def _of_dataset(
    data: Any, errors: dict[str, float], immediate: str, budget: float, mean_budget: float
) -> Problem:
    def costs(**others: Any) -> Costs:
        given = {**errors, "panels": data.panels, **others}
        return Costs(data.prices, **{k: v for k, v in given.items() if v is not None})

    return Problem(*_split(data.X, data.y, 160), costs, immediate, budget, mean_budget, 0.75)


def _three_classes() -> Problem:
    X, y = three_table(360)

    def costs(**others: Any) -> Costs:
        return Costs(
            THREE_COSTS.covariates,
            misclassification=8 * THREE_COSTS.matrix,
            panels=THREE_COSTS.panels,
            **{k: v for k, v in others.items() if v is not None},
        )

    recalls = {"very sick": 0.5, "sick": 0.3}
    return Problem(*_split(X, y, 180), costs, "noise", 4.0, 1.5, recalls)


@cache
def problem(table: str) -> Problem:
    """The problem of a name."""
    return TABLES[table]()


TABLES: dict[str, Callable[[], Problem]] = {
    "pima": lambda: _of_dataset(
        load_pima(), {"false_positive": 100.0, "false_negative": 400.0}, "Age", 4.0, 2.0
    ),
    "heart": lambda: _of_dataset(
        load_heart(), {"false_positive": 600.0, "false_negative": 1200.0}, "age", 10.0, 3.0
    ),
    "three": _three_classes,
}


@dataclass(frozen=True)
class Fitted:
    """A fitted policy and what it is asked."""

    policy: Any
    X: pd.DataFrame
    known: NDArray[np.bool_] | None = None


def _fit(case: Case, given: Problem, costs: Costs | None = None, **parameters: Any) -> Fitted:
    policy = _made(case, given.costs() if costs is None else costs, **parameters)
    return Fitted(policy.fit(given.X, given.y), given.X_decided)


def _made(case: Case, costs: Costs, **parameters: Any) -> Any:
    """The unfitted policy, seeded; a parameter that it does not have is refused by name."""
    has = case.make(costs).get_params()
    for name in [name for name in parameters if name not in has]:
        raise InvalidInputError(name, "must be a parameter of the policy", case.name, "None.")
    return case.make(costs, **parameters, **({"random_state": 0} if "random_state" in has else {}))


def _known(case: Case, given: Problem) -> Fitted:
    fitted = _fit(case, given)
    return Fitted(fitted.policy, fitted.X, given.known())


def _rounds(case: Case, given: Problem) -> Fitted:
    return _fit(case, given, given.costs(round_cost=2.0, immediate=[given.immediate]))


def _own_recall(case: Case, given: Problem, **parameters: Any) -> Fitted:
    """A target recall as a parameter, in place of a false negative's cost."""
    costs = given.costs(false_negative=None)
    return _fit(case, given, costs, target_recall=given.recall, **parameters)


def _recall_around(case: Case, given: Problem, **parameters: Any) -> Fitted:
    """A target recall by the answers at the stop."""
    policy = TargetRecallClassifier(
        _made(case, given.costs()), target_recall=given.recall, **parameters
    )
    return Fitted(policy.fit(given.X, given.y), given.X_decided)


_CERTIFIED = {"recall_confidence": 0.8, "on_uncertifiable": "largest"}

SETTINGS: dict[str, Callable[[Case, Problem], Fitted]] = {
    "complete": _fit,
    "missing": lambda case, given: _fit(case, given.with_missing()),
    "known": _known,
    "rounds": _rounds,
    "budget": lambda case, given: _fit(case, given, budget=given.budget),
    "mean budget": lambda case, given: _fit(case, given, mean_budget=given.mean_budget),
    "recall": _own_recall,
    "certificate": lambda case, given: _own_recall(case, given, **_CERTIFIED),
    "recall around": _recall_around,
    "certificate around": lambda case, given: _recall_around(case, given, **_CERTIFIED),
}
