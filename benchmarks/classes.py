"""More than two classes: `LogisticGAM` beside scikit-learn's multinomial regression and EBM.

Held-out log-loss on fresh splits, how long a fit takes beside one with two classes, and how many
rows a second AdaCOS answers.

    python -m benchmarks.classes [--lomax FOLDER] [--splits 5] [--seed 900] [--only car]

Iris and wine come with scikit-learn; `car.csv` is read from the folder of Lomax's sets, if there is
one. Each peer gets what its users would give it: standardised columns and indicators for the
regression, whose strength is chosen by ten folds, and the table as it is for EBM. EBM comes with
functions of pairs of covariates: `LogisticGAM` with `interactions="auto"` is set against the better
peer, the additive one against the better additive peer too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from adacos import AdaCOSClassifier, Costs, LogisticGAM, load_pima

Table = tuple[pd.DataFrame, Any]


def tables(lomax: Path | None) -> dict[str, Table]:
    """The data sets by name."""
    found: dict[str, Table] = {}
    for name, loader in (("iris", load_iris), ("wine", load_wine)):
        bunch = loader(as_frame=True)
        found[name] = bunch.data, bunch.target.to_numpy()
    if lomax is not None:
        car = pd.read_csv(lomax / "car.csv", dtype=str)
        found["car"] = car.drop(columns="y"), car["y"].to_numpy()
    return found


def regression(X: pd.DataFrame) -> Any:
    """scikit-learn's multinomial regression with its strength by cross-validation."""
    words = [name for name in X if X[name].dtype == object or str(X[name].dtype).startswith("str")]
    numbers = [name for name in X if name not in words]
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words)
    )
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    model = LogisticRegressionCV(Cs=12, cv=folds, scoring="neg_log_loss", max_iter=2000)
    return make_pipeline(columns, model)


def boosting(X: pd.DataFrame, **parameters: Any) -> Any:
    """EBM as it comes."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, **parameters)


OWN, OWN_PAIRS = "LogisticGAM", "LogisticGAM with pairs"
PEER_PAIRS = "EBM"
MODELS: dict[str, Callable[[pd.DataFrame], Any]] = {
    OWN: lambda X: LogisticGAM(),
    OWN_PAIRS: lambda X: LogisticGAM(interactions="auto"),
    "regression": regression,
    PEER_PAIRS: boosting,
    "EBM without pairs": lambda X: boosting(X, interactions=0),
}


def held_out(name: str, table: Table, splits: int, first: int) -> None:
    """Print the mean held-out log-loss of each model over fresh splits, and processor seconds."""
    X, y = table
    losses: dict[str, list[float]] = {model: [] for model in MODELS}
    seconds: dict[str, list[float]] = {model: [] for model in MODELS}
    for seed in range(splits):
        parts = train_test_split(X, y, test_size=0.3, random_state=first + seed, stratify=y)
        for model, make in MODELS.items():
            begun = time.process_time()
            try:
                fitted = make(parts[0]).fit(parts[0], parts[2])
            except ImportError:
                continue
            seconds[model].append(time.process_time() - begun)
            p = fitted.predict_proba(parts[1])
            losses[model].append(log_loss(parts[3], p, labels=fitted.classes_))
    means = {model: float(np.mean(found)) for model, found in losses.items() if found}
    peers = {model: value for model, value in means.items() if model not in (OWN, OWN_PAIRS)}
    better = min(peers.values())
    additive = min(value for model, value in peers.items() if model != PEER_PAIRS)
    described = ", ".join(
        f"{model} {value:.4f} ({np.mean(seconds[model]):.1f} s)" for model, value in means.items()
    )
    ratios = means[OWN_PAIRS] / better, means[OWN] / better, means[OWN] / additive
    print(
        f"{name}: {described}; with pairs / better peer {ratios[0]:.3f}, "
        f"additive / better peer {ratios[1]:.3f}, / better additive peer {ratios[2]:.3f}",
        flush=True,
    )


def three_classes() -> tuple[Any, Any, Any]:
    """Pima's rows with their classes, and with the positive ones cut in two by a noisy value."""
    X, y, *_ = load_pima(as_frame=False)
    value = X[:, 1] + 10 * np.random.default_rng(0).normal(size=len(y))
    return X, y, np.where(y == 0, 0, np.where(value > np.median(value[y == 1]), 1, 2))


def acquire_rate() -> None:
    """Print how many rows a second AdaCOS answers with three classes, on one core."""
    X, _, y = three_classes()
    costs = Costs(np.ones(X.shape[1]), misclassification=100 * (1 - np.eye(3)))
    policy = AdaCOSClassifier(costs).fit(X, y)
    # All different: rows that have seen the same are decided once.
    rows = np.tile(X, (27, 1))[:20_000]
    rows += 0.01 * X.std(axis=0) * np.random.default_rng(1).normal(size=rows.shape)
    best = np.inf
    for _ in range(5):
        begun = time.process_time()
        result = policy.acquire(rows)
        best = min(best, time.process_time() - begun)
    asked = result.acquired.sum(axis=1).mean()
    print(f"acquire: {len(rows) / best:,.0f} rows/s, {asked:.2f} covariates a row", flush=True)


def fit_times() -> None:
    """Print how long a fit with three classes takes beside two, rows and columns being the same."""
    X, y, three = three_classes()
    seconds: dict[int, float] = {2: np.inf, 3: np.inf}
    for _ in range(7):
        for labels in (y, three):
            begun = time.process_time()
            LogisticGAM().fit(X, labels)
            k = len(np.unique(labels))
            seconds[k] = min(seconds[k], time.process_time() - begun)
    ratio = seconds[3] / seconds[2]
    print(f"fit: 2 classes {seconds[2]:.3f} s, 3 classes {seconds[3]:.3f} s, ratio {ratio:.2f}")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lomax", type=Path, default=None)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=900, help="of the first split")
    parser.add_argument("--only", help="one data set, and nothing else")
    arguments = parser.parse_args()
    if arguments.only is None:
        acquire_rate()
        fit_times()
    for name, table in tables(arguments.lomax).items():
        if arguments.only in (None, name):
            held_out(name, table, arguments.splits, arguments.seed)


if __name__ == "__main__":
    main()
