"""Target recall on the paper's folds, against the authors' code and against MAPIE; speed.

    python benchmarks/recall.py [paper] [mapie] [speed] [--shared ../shared]

`paper`: recall and operation cost of the three policies at target recalls 0.95 and 0.99 beside the
authors' code. `mapie`: certified policies beside those that MAPIE's risk control certifies on the
same rows. `speed`: time to calibrate on 100,000 rows. The shared folder holds
`reference/authors_code.csv` and `data/physionet2012.csv.gz`; what is not there is left out.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from adacos import (
    AdaCOSClassifier,
    COSClassifier,
    Costs,
    FullModelClassifier,
    TargetRecallClassifier,
    load_heart,
    load_physionet2012,
    load_pima,
    load_wisconsin,
    paper_folds,
)
from adacos.exceptions import NotCertifiableError
from adacos.metrics import false_discovery_rate, operation_cost, recall
from adacos.policies.recall import threshold_sequence
from adacos.policies.sequence_policy import SequencePolicy

KINDS = {"AdaCOS": AdaCOSClassifier, "COS": COSClassifier, "Full": FullModelClassifier}
FALSE_POSITIVE = (1, 5, 10, 50, 100, 500, 1000)


def tables(shared: Path, *, physionet: bool = True) -> Iterator[tuple[str, Any]]:
    """The paper's tables; in its Wisconsin the sample code is a covariate."""
    yield "pima", load_pima(as_frame=False)
    yield "wisconsin", load_wisconsin(sample_code=True, as_frame=False)
    yield "heart", load_heart(as_frame=False)
    path = shared / "data" / "physionet2012.csv.gz"
    if physionet and path.exists():
        yield "physionet", load_physionet2012(path, as_frame=False)


def authors(shared: Path) -> dict[tuple[str, str, int, str], float]:
    path = shared / "reference" / "authors_code.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (
                row["dataset"],
                row["method"].split(" ")[0],
                int(row["false_positive_cost"]),
                row["metric"],
            ): float(row["mean"])
            for row in csv.DictReader(file)
            if row["setting"] == "recall_0.95"
        }


def paper(shared: Path) -> None:
    reference = authors(shared)
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    print(
        f"{'table':10} {'policy':7} {'r':>4} {'FP':>5} {'recall':>7} {'s.e.':>7} {'FDR':>6}"
        f" {'cost':>9} {'authors':>9} {'their recall':>13}"
    )
    for name, data in tables(shared):
        folds = paper_folds(data.X, data.y)
        prices = list(data.prices.values())
        models = [
            AdaCOSClassifier(Costs(prices)).fit(data.X[folds != k], data.y[folds != k])
            for k in range(5)
        ]
        for kind, policy in KINDS.items():
            for target in (0.95, 0.99):
                for fp in FALSE_POSITIVE:
                    costs = Costs(prices, false_positive=fp)
                    rows = []
                    for k, model in enumerate(models):
                        tested = folds == k
                        fitted = TargetRecallClassifier(
                            policy(costs), target_recall=target, recall_at="every_set"
                        ).from_model(model)
                        result, y = fitted.acquire(data.X[tested]), data.y[tested]
                        fdr = false_discovery_rate(result, y)
                        rows.append((recall(result, y), fdr, operation_cost(result, y, costs)))
                    found, fdr, cost = np.mean(rows, axis=0)
                    error = np.std(rows, axis=0, ddof=1)[0] / np.sqrt(len(rows))
                    # The authors' code was run at 0.95 only.
                    key = (name, kind, fp) if target == 0.95 else ("",)
                    theirs = reference.get((*key, "operation_cost"), np.nan)
                    their_recall = reference.get((*key, "recall"), np.nan)
                    if fp >= 10 and not np.isnan(theirs):
                        ratios[kind].append(cost / theirs)
                    print(
                        f"{name:10} {kind:7} {target:4} {fp:5} {found:7.4f} {error:7.4f} {fdr:6.3f}"
                        f" {cost:9.3f} {theirs:9.3f} {their_recall:13.4f}",
                        flush=True,
                    )
    for kind, values in ratios.items():
        if values:
            mean = np.exp(np.mean(np.log(values)))
            print(
                f"{kind}: operation cost / authors' at 0.95 and FP >= 10, geometric mean {mean:.3f}"
            )


Certified = tuple[float, float]  # operation cost and recall on test rows


def mapie(shared: Path, confidence: float = 0.9) -> None:
    """Same fitted model, calibration rows, confidence and test rows for everybody.

    "ours" is `calibrate`. For AdaCOS, MAPIE gets the same policies at the same thresholds, with its
    default control of the family-wise error and with a sequence that it learns on the training
    rows (its fixed sequence takes scores only); for Full Model the score, with its fixed sequence.
    Where nothing is certified every row is answered positive.
    """
    pairs = {
        "AdaCOS, MAPIE default": "AdaCOS, ours",
        "AdaCOS, MAPIE learned": "AdaCOS, ours",
        "Full, MAPIE": "Full, ours",
    }
    methods = ["AdaCOS, ours", "AdaCOS, MAPIE default", "AdaCOS, MAPIE learned"]
    methods += ["Full, ours", "Full, MAPIE"]
    print(f"{'table':10} {'r':>5} {'FP':>5}" + "".join(f"{m:>30}" for m in methods))
    logs: dict[str, list[float]] = {method: [] for method in methods}
    for name, data in tables(shared):
        folds = paper_folds(data.X, data.y)
        prices = list(data.prices.values())
        # MAPIE walks every row at every threshold; one cell of PhysioNet is minutes.
        for fp in (100,) if name == "physionet" else (10, 100, 1000):
            costs = Costs(prices, false_positive=fp)
            rows: dict[tuple[float, str], list[Certified]] = {}
            for k in range(1 if name == "physionet" else 5):
                train = np.random.default_rng(k).permutation(np.flatnonzero(folds != k))
                kept, held_out = train[len(train) // 2 :], train[: len(train) // 2]
                stated = costs.with_misclassification([[0, fp], [fp, 0]])
                fitted = FullModelClassifier(stated).fit(data.X[kept], data.y[kept])
                parts = Parts(
                    *((data.X[part], data.y[part]) for part in (kept, held_out, folds == k))
                )
                for target in (0.9, 0.95):
                    for method, outcome in zip(
                        methods, side_by_side(fitted, costs, parts, target, confidence), strict=True
                    ):
                        rows.setdefault((target, method), []).append(outcome)
            for target in (0.9, 0.95):
                line = f"{name:10} {target:5} {fp:5}"
                for method in methods:
                    cost, found = np.mean(rows[target, method], axis=0)
                    logs[method].append(np.log(cost))
                    line += f"{cost:15.3f} (recall {found:.3f})"
                print(line, flush=True)
    for theirs, ours in pairs.items():
        ratio = np.array(logs[ours]) - np.array(logs[theirs])
        print(
            f"operation cost, {ours} / {theirs}: geometric mean {np.exp(ratio.mean()):.3f},"
            f" from {np.exp(ratio.min()):.3f} to {np.exp(ratio.max()):.3f}"
        )


Rows = tuple[np.ndarray, np.ndarray]
Certified = tuple[float, float]  # operation cost and recall on test rows


class Parts(NamedTuple):
    train: Rows
    calibration: Rows
    test: Rows


def side_by_side(
    fitted: FullModelClassifier, costs: Costs, parts: Parts, target: float, confidence: float
) -> Iterator[Certified]:
    X, y = parts.test

    def measured(result: Any) -> Certified:
        if result is None:  # nothing certified: every row is answered positive
            return float(costs.matrix[0, 1] * np.mean(y == 0)), 1.0
        return operation_cost(result, y, costs), recall(result, y)

    def ours(kind: type[SequencePolicy]) -> Certified:
        policy = TargetRecallClassifier(kind(costs), target_recall=target).from_model(fitted)
        try:
            policy.calibrate(*parts.calibration, confidence=confidence)
        except NotCertifiableError:
            return measured(None)
        return measured(policy.acquire(X))

    yield ours(AdaCOSClassifier)

    fp = float(costs.matrix[0, 1])

    def at(t: float) -> AdaCOSClassifier:
        stated = Costs(costs.covariates, false_positive=fp, false_negative=(1 - t) / t * fp)
        return AdaCOSClassifier(stated).from_model(fitted)

    @cache
    def answers(part: str, t: float) -> np.ndarray:
        return at(t).predict(getattr(parts, part)[0])

    def predict(rows: np.ndarray, t: float) -> np.ndarray:
        part = "train" if rows is parts.train[0] else "calibration"
        return answers(part, float(t))

    model = fitted.model_
    thresholds = expit(threshold_sequence(model.out_of_fold_log_odds[model.y == 1]))
    for method in ("bonferroni_holm", "split_fixed_sequence"):
        chosen = controlled(predict, thresholds[:, None], target, confidence, parts, method)
        yield measured(None if chosen is None else at(chosen[0]).acquire(X))

    yield ours(FullModelClassifier)
    chosen = controlled(
        fitted.predict_proba, np.linspace(0, 0.99, 100), target, confidence, parts, "fixed_sequence"
    )
    result = fitted.acquire(X)
    yield measured(
        None if chosen is None else replace(result, label=(result.probability >= chosen) * 1)
    )


def controlled(
    predict: Callable[..., Any],
    parameters: np.ndarray,
    target: float,
    confidence: float,
    parts: Parts,
    method: str,
) -> Any:
    from mapie.risk_control import BinaryClassificationController

    controller = BinaryClassificationController(
        predict_function=predict,
        risk="recall",
        target_level=target,
        confidence_level=confidence,
        list_predict_params=parameters,
        fwer_method=method,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "split_fixed_sequence":
            controller.learn_fixed_sequence_order(*parts.train, binary=True)
        controller.calibrate(*parts.calibration)
    return controller.best_predict_param


def speed(shared: Path, n: int = 100_000) -> None:
    """Rows drawn with a little noise from the tables, so that no two are alike."""
    rng = np.random.default_rng(0)
    print(f"{n} calibration rows")
    print(f"{'table':10} {'positives':>9} {'FP':>5} {'r':>5} {'seconds':>8} {'of processor':>13}")
    for name, data in tables(shared):
        prices = list(data.prices.values())
        model = AdaCOSClassifier(Costs(prices)).fit(data.X, data.y)
        drawn = rng.integers(len(data.y), size=n)
        X = data.X[drawn] * rng.normal(1, 0.02, size=(n, data.X.shape[1]))
        y = data.y[drawn]
        for fp in (10, 1000):
            for target in (0.9, 0.95, 0.99):
                costs = Costs(prices, false_positive=fp)
                policy = TargetRecallClassifier(AdaCOSClassifier(costs), target_recall=target)
                policy.from_model(model)
                start, busy = time.perf_counter(), time.process_time()
                policy.calibrate(X, y, confidence=0.9)
                seconds, busy = time.perf_counter() - start, time.process_time() - busy
                print(
                    f"{name:10} {int(y.sum()):9} {fp:5} {target:5} {seconds:8.2f} {busy:13.2f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"paper": paper, "mapie": mapie, "speed": speed}
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(parts)}; default all")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    arguments = parser.parse_args()
    for part in arguments.parts or parts:
        parts[part](arguments.shared)


if __name__ == "__main__":
    main()
