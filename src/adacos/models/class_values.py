"""What may be ordered after a batch is worth, where classes are more than two.

As in `adacos.models.dynamic`, from the last set back:

    V_i(u) = min( Bayes risk of u,  min over j > i of  c_ij + E[V_j(u_j) | u] ),

with c_ij the cost of ordering S_j \\ S_i at once, the wait included. Log-odds are vectors here, for
which a grid would be too large: what the freedom adds, V_j less the Bayes risk, is kept at the
leave-out log-odds of some training rows, and where a class is all but sure, and interpolated by the
inverse fourth power of the distance of the probabilities. Its expectation is a mean over a few
points of the rule of `adacos.kernels.class_risk`; the expected Bayes risk is that of AdaCOS.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.kernels.class_risk import (
    class_bayes_risk,
    coherent_class_mean,
    kept_class_risk,
    log_odds_of,
    normal_points,
    probabilities,
    roots,
)
from adacos.kernels.folds import drawn_rows
from adacos.models.sequence_model import SequenceModel

Floats = NDArray[np.float64]

# Training rows whose log-odds are the nodes, and points of the expectation.
_NODES, _POINTS = 150, 64
# Probability of a class that is all but sure.
_SURE = 1 - 1e-6
# Squared distance of probabilities within which nodes count alike.
_NEAR = 1e-4


class ClassValues(NamedTuple):
    """What the freedom after each later set is expected to add, for given costs.

    Attributes
    ----------
    nodes : for each set, (nodes, K) probabilities.
    after : for each set, (nodes, later sets) expectation of V_j less the Bayes risk, at most zero.
    """

    nodes: tuple[Floats, ...]
    after: tuple[Floats, ...]

    def after_batch(self, stage: int, log_odds: Floats) -> Floats:
        """What the freedom adds after each later set, (rows, later sets)."""
        near = _weights(probabilities(log_odds), self.nodes[stage])
        return np.asarray(near @ self.after[stage])


# Values by model, for the latest costs only.
_FOUND: WeakKeyDictionary[SequenceModel, tuple[bytes, ClassValues]] = WeakKeyDictionary()
_LOCK = Lock()


def class_values(model: SequenceModel, costs: CostTable, matrix: Floats) -> ClassValues:
    """What each set of a sequence leaves open; found once for a model and costs."""
    key = model.sequence.costs(costs).tobytes() + matrix.tobytes() + repr(costs.round_cost).encode()
    with _LOCK:
        found = _FOUND.get(model)
    if found is None or found[0] != key:
        found = (key, _solve(model, costs, matrix))
        with _LOCK:
            _FOUND[model] = found
    return found[1]


def _solve(model: SequenceModel, costs: CostTable, matrix: Floats) -> ClassValues:
    """From the last set back."""
    masks, rank = model.sequence.masks(), model.sequence.rank
    last = len(masks) - 1
    log_odds = model.leave_out_log_odds[drawn_rows(model.y, _NODES, 0)]
    size = log_odds.shape[2] + 1
    sure = log_odds_of(_SURE * np.eye(size) + (1 - _SURE) / size)
    log_odds = np.concatenate([log_odds, np.repeat(sure[:, None], last + 1, axis=1)])
    nodes = tuple(probabilities(log_odds[:, i]) for i in range(last + 1))
    points = normal_points(size - 1, rough=True)[:_POINTS]
    freedom = [np.zeros(len(log_odds))] * (last + 1)
    after: list[Floats] = [np.zeros((len(log_odds), 0))] * (last + 1)
    for i in range(last - 1, -1, -1):
        own, spread = log_odds[:, i], roots(model.densities[i].variance)
        cost = costs.of_batch(masks[i + 1 :], given=masks[i], rank=rank)
        freed = np.zeros((len(own), last - i))
        future = np.empty_like(freed)
        for step, root in enumerate(spread):
            j = i + 1 + step
            if freedom[j].any():
                mean = coherent_class_mean(own, root)
                later = _moved(mean, points @ root.T)
                weights = _weights(later.reshape(-1, later.shape[2]), nodes[j])
                freed[:, step] = (weights @ freedom[j]).reshape(later.shape[:2]).mean(axis=1)
            future[:, step] = cost[step] + kept_class_risk(own, root, matrix) + freed[:, step]
        after[i] = freed
        gain = class_bayes_risk(own, matrix) - future.min(axis=1)
        freedom[i] = np.minimum(-gain, 0.0)
    return ClassValues(nodes, tuple(after))


def _moved(mean: Floats, moves: Floats) -> Floats:
    """Probabilities (rows, points, K) at the mean log-odds plus moves (points, K) of the scores."""
    relative = moves[:, 1:] - moves[:, :1]
    return probabilities(mean[:, None, :] + relative)


def _weights(at: Floats, nodes: Floats) -> Floats:
    """Share of each node in the value at some probabilities, (rows, nodes)."""
    apart = (at**2).sum(axis=1)[:, None] + (nodes**2).sum(axis=1) - 2.0 * at @ nodes.T
    near = 1.0 / (np.maximum(apart, 0.0) + _NEAR) ** 2
    return np.asarray(near / near.sum(axis=1, keepdims=True))
