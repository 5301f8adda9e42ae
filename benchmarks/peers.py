"""Probability models to compare `LogisticGAM` with: methods that read everything and pay nothing.

Each is tuned the way its users would, by log-loss, with missing values filled by `GaussianImputer`.
"""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adacos.costs import Costs
from adacos.models.gam import LogisticGAM
from adacos.registry import METHODS, register_method
from adacos.tables.imputer import GaussianImputer
from adacos.typing import Floats

GAM, RIDGE, PYGAM, EBM, FOREST = (
    "LogisticGAM",
    "ridge logistic",
    "pygam (one λ)",
    "EBM (no interactions)",
    "random forest",
)
PEERS = (RIDGE, PYGAM, EBM, FOREST)


class Judged(NamedTuple):
    """The result of a classifier of which the probabilities alone are judged: nothing is paid."""

    label: NDArray[np.int64]
    probability: Floats
    acquired: NDArray[np.bool_]
    cost: Floats


class ProbabilityMethod:
    """A scikit-learn classifier as a method of the harness."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier on completed rows."""
        self.model.fit(GaussianImputer().fit_transform(X), y)
        return self

    def acquire(self, X: Any) -> Judged:
        """Probabilities of all rows; rows to be tested are complete."""
        p = self.model.predict_proba(X)[:, 1]
        return Judged(
            (p >= 0.5).astype(np.int64),
            p,
            np.zeros(np.shape(X), dtype=np.bool_),
            np.zeros(len(p)),
        )


class PyGAMOneStrength(BaseEstimator):
    """pygam's logistic GAM with one strength for all terms, chosen by 5-fold log-loss."""

    def fit(self, X: Floats, y: Any) -> Self:
        """Choose the strength, then fit all rows."""
        grid = np.logspace(-1, 3, 9)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        losses = [np.mean([self._loss(X, y, lam, *fold) for fold in folds]) for lam in grid]
        self.model_ = self._fitted(X, y, float(grid[int(np.argmin(losses))]))
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Class probabilities."""
        p = self.model_.predict_proba(X)
        return np.column_stack([1 - p, p])

    def _loss(self, X: Floats, y: Any, lam: float, train: Any, test: Any) -> float:
        # pygam diverges or raises for small strengths on nearly separated rows.
        try:
            p = self._fitted(X[train], y[train], lam).predict_proba(X[test])
        except Exception:
            return float("inf")
        return float(log_loss(y[test], p, labels=[0, 1])) if np.all(np.isfinite(p)) else np.inf

    @staticmethod
    def _fitted(X: Floats, y: Any, lam: float) -> Any:
        from pygam import LogisticGAM as PyGAM
        from pygam import s

        terms = s(0, n_splines=10, lam=lam)
        for column in range(1, X.shape[1]):
            terms += s(column, n_splines=10, lam=lam)
        # It prints and warns where it does not converge.
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PyGAM(terms).fit(X, y)


class TunedForest(BaseEstimator):
    """300 trees with the leaf size of least out-of-bag log-loss."""

    n_trees = 300

    def fit(self, X: Floats, y: Any) -> Self:
        """Fit one forest per leaf size and keep the best."""
        forests = [
            RandomForestClassifier(
                self.n_trees, min_samples_leaf=leaf, oob_score=True, random_state=0
            ).fit(X, y)
            for leaf in (1, 3, 5, 10)
        ]
        losses = [log_loss(y, self._inside(f.oob_decision_function_)) for f in forests]
        self.model_ = forests[int(np.argmin(losses))]
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Class probabilities; a unanimous vote of the trees counts as half a vote less."""
        return self._inside(self.model_.predict_proba(X))

    def _inside(self, p: Floats) -> Floats:
        return np.clip(p, 0.5 / self.n_trees, 1 - 0.5 / self.n_trees)


def register_peers() -> None:
    """Register `LogisticGAM` and its peers, once."""
    if GAM in METHODS:
        return
    models = {
        GAM: (LogisticGAM, None),
        RIDGE: (_ridge, None),
        PYGAM: (PyGAMOneStrength, ("pygam", "dev")),
        EBM: (_ebm, ("interpret", "dev")),
        FOREST: (TunedForest, None),
    }
    for name, (model, requires) in models.items():
        register_method(name, _as_method(model), requires=requires, recall=False)


def _as_method(model: Any) -> Any:
    def make(costs: Costs) -> ProbabilityMethod:
        return ProbabilityMethod(model())

    return make


def _ridge() -> Any:
    search = GridSearchCV(
        LogisticRegression(solver="newton-cholesky"),
        {"C": np.logspace(-4, 4, 17)},
        scoring="neg_log_loss",
        cv=StratifiedKFold(10, shuffle=True, random_state=0),
    )
    return make_pipeline(StandardScaler(), search)


def _ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, random_state=0, n_jobs=1)
