"""One workload by one package, in a process and an environment of its own.

    python benchmarks/packages.py glum equal_strengths rows.npz

Prints one line of JSON: processor seconds of the best of a few fits, peak memory in MiB, and how
good the result is. `benchmarks.speed` calls it; nothing here needs the package `adacos` but the
functions that measure it, so that a peer may live with other versions of numpy.

What the workloads are: `equal_strengths` is one logistic additive model at given strengths, good
for its penalised objective; `chosen_strengths` is a probability model tuned as its users would,
good for its log-loss on rows held out; `group_lasso` is a path over a hundred strengths, good for
the mean objective over them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Rows = Any  # the arrays of an npz file
Result = tuple[float, float]  # seconds, how good


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least processor time of a few runs, and what the last gave."""
    least = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        given = work()
        least = min(least, time.process_time() - begin)
    return least, given


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))


def penalised(rows: Rows, intercept: float, coef: np.ndarray) -> float:
    """Objective of `equal_strengths` on the columns of our basis, a mean over rows."""
    u = intercept + rows["columns"] @ coef
    loss = np.logaddexp(0.0, u) - rows["y"] * u
    return float(np.mean(loss) + 0.5 * rows["penalty"] @ coef**2 / len(u))


def adacos_equal_strengths(rows: Rows) -> Result:
    from adacos import LogisticGAM

    gam = LogisticGAM(n_splines=20, smoothness=rows["lam"], ridge=rows["ridge"], cv=None)
    seconds, gam = best(lambda: gam.fit(rows["X"], rows["y"]), 5)
    return seconds, penalised(rows, gam.intercept_, gam.coef_)


def pygam_equal_strengths(rows: Rows) -> Result:
    """Its own knots and a ridge of its own: only its log-loss can be compared, and agrees."""
    from pygam import LogisticGAM

    def fit() -> Any:
        return LogisticGAM(n_splines=20, lam=float(rows["lam"])).fit(rows["X"], rows["y"])

    seconds, _ = best(fit, 1 if rows["y"].size > 5000 else 3)
    return seconds, float("nan")


def glum_equal_strengths(rows: Rows) -> Result:
    """On our basis columns, whose making is not counted."""
    from glum import GeneralizedLinearRegressor

    n, columns = len(rows["y"]), np.asfortranarray(rows["columns"])

    def fit() -> Any:
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=1.0, l1_ratio=0.0, P2=rows["penalty"] / n, gradient_tol=1e-6
        )
        return model.fit(columns, rows["y"])

    seconds, model = best(fit, 3)
    return seconds, penalised(rows, model.intercept_, model.coef_)


def _held_out(rows: Rows, fit: Callable[[], Any], repeats: int) -> Result:
    seconds, model = best(fit, repeats)
    return seconds, log_loss(rows["y_test"], model.predict_proba(rows["X_test"])[:, 1])


def adacos_chosen_strengths(rows: Rows) -> Result:
    from adacos import LogisticGAM

    return _held_out(rows, lambda: LogisticGAM().fit(rows["X"], rows["y"]), 3)


def interpret_chosen_strengths(rows: Rows) -> Result:
    from interpret.glassbox import ExplainableBoostingClassifier

    ebm = ExplainableBoostingClassifier(interactions=0, random_state=0, n_jobs=1)
    return _held_out(rows, lambda: ebm.fit(rows["X"], rows["y"]), 1)


def lightgbm_chosen_strengths(rows: Rows) -> Result:
    """Rounds chosen by cross-validated log-loss."""
    import lightgbm

    settings = {"objective": "binary", "verbosity": -1, "num_threads": 1, "learning_rate": 0.05}

    def fit() -> Any:
        data = lightgbm.Dataset(rows["X"], rows["y"], free_raw_data=False)
        stop = lightgbm.early_stopping(20, verbose=False)
        found = lightgbm.cv(settings, data, 1000, nfold=10, seed=0, callbacks=[stop])
        return lightgbm.train(settings, data, len(found["valid binary_logloss-mean"]))

    seconds, model = best(fit, 1)
    return seconds, log_loss(rows["y_test"], model.predict(rows["X_test"]))


MGCV = """
library(mgcv)
train <- read.csv("train.csv"); test <- read.csv("test.csv")
terms <- sapply(setdiff(names(train), "y"), function(name) {
  values <- length(unique(train[[name]]))
  if (values < 4) name else sprintf("s(%s, bs='ps', k=%d)", name, min(10, values))
})
model <- as.formula(paste("y ~", paste(terms, collapse = " + ")))
taken <- system.time(
  fit <- bam(model, binomial(), train, discrete = TRUE, select = TRUE, nthreads = 1)
)
p <- pmin(pmax(predict(fit, test, type = "response"), 1e-12), 1 - 1e-12)
status <- readLines("/proc/self/status")
peak <- as.numeric(gsub("[^0-9]", "", grep("VmHWM", status, value = TRUE))) / 1024
cat(taken["user.self"] + taken["sys.self"], peak,
    -mean(test$y * log(p) + (1 - test$y) * log(1 - p)))
"""


def mgcv_chosen_strengths(rows: Rows) -> tuple[float, float, float]:
    """bam(discrete = TRUE) in R: seconds, MiB and how good."""
    with tempfile.TemporaryDirectory() as folder:
        for name, suffix in (("train", ""), ("test", "_test")):
            X, y = rows["X" + suffix], rows["y" + suffix]
            varying = rows["X"].std(axis=0) > 0
            names = [f"x{i}" for i in np.flatnonzero(varying)] + ["y"]
            table = np.column_stack([X[:, varying], y])
            np.savetxt(
                Path(folder) / f"{name}.csv",
                table,
                delimiter=",",
                header=",".join(names),
                comments="",
                fmt="%.10g",
            )
        done = subprocess.run(
            ["Rscript", "-e", MGCV], cwd=folder, capture_output=True, text=True, check=True
        )
    seconds, peak, loss = map(float, done.stdout.split()[-3:])
    return seconds, loss, peak


def path_objective(rows: Rows, intercepts: np.ndarray, coefs: np.ndarray) -> float:
    """Mean over the path of the summed logistic loss plus penalty, per row."""
    X, y, starts = rows["columns"], rows["y"], rows["starts"]
    values = []
    for lam, b, beta in zip(rows["lams"], intercepts, coefs, strict=True):
        u = b + X @ beta
        norms = np.sqrt(np.add.reduceat(beta**2, starts))
        values.append(np.sum(np.logaddexp(0.0, u) - y * u) + lam * rows["weights"] @ norms)
    return float(np.mean(values)) / len(y)


def adacos_group_lasso(rows: Rows) -> Result:
    from adacos.kernels.group_lasso import solve_path

    def fit() -> Any:
        inputs = rows["columns"], rows["y"], rows["groups"], rows["weights"], rows["lams"]
        return solve_path(*inputs, tol=1e-3)

    seconds, path = best(fit, 3)
    intercepts = np.array([one.intercept for one in path])
    return seconds, path_objective(rows, intercepts, np.stack([one.coef for one in path]))


def adelie_group_lasso(rows: Rows) -> Result:
    import adelie

    X, n = np.asfortranarray(rows["columns"]), len(rows["y"])

    def fit() -> Any:
        return adelie.grpnet(
            X,
            adelie.glm.binomial(rows["y"].astype(float)),
            groups=rows["starts"],
            penalty=rows["weights"],
            lmda_path=rows["lams"] / n,
            early_exit=False,
            n_threads=1,
            progress_bar=False,
        )

    seconds, path = best(fit, 3)
    return seconds, path_objective(rows, path.intercepts, path.betas.toarray())


def skglm_group_lasso(rows: Rows) -> Result:
    """Compiled beforehand by a fit that is not counted."""
    from skglm.datafits import LogisticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupProxNewton
    from skglm.utils.jit_compilation import compiled_clone

    X, y, n = np.asfortranarray(rows["columns"]), 2.0 * rows["y"] - 1.0, len(rows["y"])
    pointers = np.append(rows["starts"], X.shape[1]).astype(np.int32)
    indices = np.arange(X.shape[1], dtype=np.int32)
    datafit = compiled_clone(LogisticGroup(pointers, indices))
    solver = GroupProxNewton(fit_intercept=True, tol=1e-4, warm_start=True)

    def fit(lams: np.ndarray = rows["lams"]) -> Any:
        w, Xw, found = np.zeros(X.shape[1] + 1), np.zeros(n), []
        for lam in lams:
            penalty = compiled_clone(
                WeightedGroupL2(lam / n, rows["weights"].astype(float), pointers, indices)
            )
            w = solver.solve(X, y, datafit, penalty, w, Xw)[0]
            Xw = X @ w[:-1] + w[-1]
            found.append(w.copy())
        return np.stack(found)

    fit(rows["lams"][:2])
    seconds, path = best(fit, 1)
    return seconds, path_objective(rows, path[:, -1], path[:, :-1])


def peak() -> float:
    """Peak memory of this process in MiB; `ru_maxrss` counts that of the process that began it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return float(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    package, workload, path = sys.argv[1:4]
    with np.load(path) as file:
        rows = dict(file)
    warnings.simplefilter("ignore")
    seconds, good, *elsewhere = globals()[f"{package}_{workload}"](rows)
    print(json.dumps({"seconds": seconds, "good": good, "peak": [*elsewhere, peak()][0]}))


if __name__ == "__main__":
    main()
