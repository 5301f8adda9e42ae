"""How much there is to win on Lomax's two-class sets: the optimum beside policies, in known worlds.

    python -m benchmarks.headroom --lomax FOLDER [--sets heart] [--policies planning streed]

What the best possible policy costs on a table is unknown. In a world made like the table it can be
computed: a row of the table is drawn; its class by a random forest that did not see it, of the leaf
size and the slope of the log-odds that predict such rows best; and each of its values is drawn anew
with a small probability (`--width`). Policies learn from samples of four fifths of as many rows;
their expected total cost is a sum over all rows that can occur. All is given as a ratio to the
first policy; nobody can go below the optimum.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from adacos import AdaCOSClassifier, AutoPolicyClassifier, Costs, PlanningClassifier
from adacos.bench.lomax_sets import LomaxSet, read_set
from adacos.datasets import DiscreteProblem
from adacos.metrics import total_costs
from adacos.rivals import OptimalPolicyClassifier, STreeDClassifier

POLICIES: dict[str, Any] = {
    "streed": STreeDClassifier,
    "planning": PlanningClassifier,
    "adacos": AdaCOSClassifier,
    "auto": AutoPolicyClassifier,
}
SETS = ("breast", "diabetes", "heart", "tictactoe")
# Rows in a leaf of the forest to choose from.
LEAF_SIZES = (1, 3, 10)


def out_of_bag(codes: np.ndarray, y: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """P(y = 1) of every row, by trees that did not see it."""
    indicators = np.hstack([np.eye(size)[codes[:, k]] for k, size in enumerate(sizes)])
    found = []
    for leaf in LEAF_SIZES:
        forest = RandomForestClassifier(
            500, min_samples_leaf=leaf, oob_score=True, random_state=0
        ).fit(indicators, y)
        log_odds = logit(np.clip(forest.oob_decision_function_[:, 1], 0.005, 0.995))[:, None]
        p = LogisticRegression(C=1e6).fit(log_odds, y).predict_proba(log_odds)[:, 1]
        found.append((log_loss(y, p), leaf, p))
    return np.asarray(min(found, key=lambda one: one[:2])[2])


def made_like(folder: Path, name: str, data: LomaxSet, width: float) -> DiscreteProblem:
    """The world of a table."""
    columns = pd.read_csv(folder / f"{name}.csv")[list(data.table.prices)]
    codes = columns.apply(lambda values: pd.factorize(values, sort=True)[0]).to_numpy()
    sizes = tuple((codes.max(axis=0) + 1).tolist())
    p, n = out_of_bag(codes, np.asarray(data.table.y), sizes), len(codes)
    joint = np.zeros((2, *sizes))
    for label, weight in enumerate((1 - p, p)):
        np.add.at(joint[label], tuple(codes.T), weight / n)
    for k, size in enumerate(sizes):
        share = np.bincount(codes[:, k], minlength=size) / n
        along = share.reshape([-1 if axis == k else 1 for axis in range(len(sizes))])
        joint = (1 - width) * joint + width * joint.sum(axis=1 + k, keepdims=True) * along
    return DiscreteProblem(joint, dict(data.table.prices))


def in_words(rows: np.ndarray, problem: DiscreteProblem) -> pd.DataFrame:
    """Rows as a table of categories."""
    return pd.DataFrame(rows.astype(int), columns=list(problem.prices)).astype(str).radd("c")


def expected_cost(policy: Any, problem: DiscreteProblem, costs: Costs) -> float:
    """Expected total cost of a fitted policy."""
    cells = np.indices(problem.levels).reshape(len(problem.levels), -1).T
    result, weight = policy.acquire(in_words(cells, problem)), problem.joint.reshape(2, -1)
    each = (weight[y] @ total_costs(result, np.full(len(cells), y), costs) for y in (0, 1))
    return float(sum(each))


def trials(
    folder: Path, name: str, policies: list[str], repetitions: int, width: float, into: Path
) -> dict[str, dict[str, np.ndarray]]:
    """Cost by level and policy, one for each training sample; the optimum has a single one.

    What was done before is read from the folder.
    """
    path = into / f"{name}-{'-'.join(policies)}-{repetitions}-{width:g}.json"
    if path.is_file():
        found = json.loads(path.read_text())
        return {level: {k: np.array(v) for k, v in one.items()} for level, one in found.items()}
    data = read_set(folder, name)
    problem, n_rows = made_like(folder, name, data, width), int(0.8 * len(data.table.y))
    cost: dict[str, dict[str, list[float]]] = {}
    for setting in data.settings:
        costs = setting.costs(data.table.prices, data.table.panels)
        own = cost.setdefault(setting.name, {policy: [] for policy in policies})
        for seed in range(repetitions):
            X, y = problem.sample(n_rows, seed)
            for policy in policies:
                fitted = POLICIES[policy](costs).fit(in_words(X, problem), y)
                own[policy].append(expected_cost(fitted, problem, costs))
        table = pd.DataFrame(X, columns=list(problem.prices))
        best = OptimalPolicyClassifier(costs, joint=problem).fit(table, y)
        own["optimum"] = [best.expected_cost_]
    path.write_text(json.dumps(cost))
    return {level: {k: np.array(v) for k, v in one.items()} for level, one in cost.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lomax", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--policies", nargs="+", default=["streed", "planning", "adacos"])
    parser.add_argument("--repetitions", type=int, default=16)
    parser.add_argument("--width", type=float, default=0.05)
    parser.add_argument("--into", type=Path, default=Path("headroom-benchmark"))
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    first, *others = given.policies
    logs: dict[str, list[float]] = {}
    for name in given.sets:
        found = trials(
            given.lomax, name, given.policies, given.repetitions, given.width, given.into
        )
        for level, cost in found.items():
            words = []
            for other in (*others, "optimum"):
                ratio = cost[other].mean() / cost[first].mean()
                error = (cost[other] - cost[first]).std(ddof=1) / cost[first].mean()
                error /= np.sqrt(given.repetitions)
                logs.setdefault(other, []).append(float(np.log(ratio)))
                words.append(f"{other} {ratio:.3f} ± {error:.3f}")
            print(
                f"{name:9s} {level:6s} {first} {cost[first].mean():8.2f}   " + "   ".join(words),
                flush=True,
            )
    for other, each in logs.items():
        print(f"{other} / {first}: {np.exp(np.mean(each)):.3f} over {len(each)} cells")


if __name__ == "__main__":
    main()
