"""The network of Shim2018: a set encoder under a classifier and a dueling Q-head, in torch.

Every function acts on a stack of models: the first axis of weights and batches runs over models,
the second over rows. Settings to be compared are trained side by side this way, for little more
than one costs. Importing this module needs torch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

Weights = dict[str, Any]


class TensorRows(NamedTuple):
    """Rows of a table as tensors.

    Attributes
    ----------
    values : (rows, columns), any number where a value is unknown.
    available : mask (rows, covariates) of what can be acquired.
    source : covariate of each column.
    """

    values: Any
    available: Any
    source: Any


HIDDEN = 32
EMBEDDING = 16
PROCESS_STEPS = 5


def initial_weights(
    rng: np.random.Generator, n_models: int, n_columns: int, n_covariates: int, log_odds: float
) -> dict[str, NDArray[np.float32]]:
    """Random weights of a stack of models that predict `log_odds` to begin with.

    The first layer of an element is `value` (of each column of its covariate) and `index` (its
    one-hot position). A matrix of any other layer also has a bias.
    """

    def uniform(inputs: int, outputs: int, limit: float) -> NDArray[np.float32]:
        return rng.uniform(-limit, limit, (n_models, inputs, outputs)).astype(np.float32)

    weights = {
        "value": uniform(n_columns, HIDDEN, 1.0),
        "index": uniform(n_covariates, HIDDEN, 1.0),
    }
    rectified = math.sqrt(3.0)
    for name, inputs, outputs, gain in (
        ("element", HIDDEN, HIDDEN, rectified),
        ("embedding", HIDDEN, EMBEDDING, rectified),
        ("process", 2 * EMBEDDING, 4 * EMBEDDING, 1.0),
        ("classifier", 2 * EMBEDDING, HIDDEN, rectified),
        ("log_odds", HIDDEN, 1, 0.1),
        ("action", 2 * EMBEDDING, HIDDEN, rectified),
        ("value_and_advantages", HIDDEN, n_covariates + 2, 0.1),
    ):
        weights[name] = uniform(inputs, outputs, gain / math.sqrt(inputs))
        weights[f"{name}_bias"] = np.zeros((n_models, 1, outputs), dtype=np.float32)
    weights["log_odds_bias"][:] = log_odds
    return weights


def _layer(weights: Weights, name: str, inputs: Any) -> Any:
    return torch.baddbmm(weights[f"{name}_bias"], inputs, weights[name])


def embed(weights: Weights, values: Any, source: Any) -> Any:
    """Embedding of each (value, index) pair: (models, rows, covariates, `EMBEDDING`).

    `values` is (models, rows, columns); `source` gives the covariate of each column.
    """
    n_models, n_rows, _ = values.shape
    first = weights["index"].unsqueeze(1).expand(-1, n_rows, -1, -1)
    first = first.index_add(2, source, values.unsqueeze(-1) * weights["value"].unsqueeze(1))
    hidden = torch.relu(first).flatten(1, 2)
    hidden = torch.relu(_layer(weights, "element", hidden))
    return _layer(weights, "embedding", hidden).reshape(n_models, n_rows, -1, EMBEDDING)


def encode(weights: Weights, embedded: Any, acquired: Any) -> Any:
    """Code of the set of acquired elements, whatever their order; zero for the empty set.

    An LSTM cell asks `PROCESS_STEPS` times: its output is the query, the answer is the mean of
    the elements weighted by their match with it, and query and answer are the cell's next input.
    """
    some = acquired.any(dim=-1, keepdim=True)
    # An empty set may attend to anything: its code is replaced by zero below.
    hidden = torch.zeros_like(embedded[..., 0]).masked_fill(~acquired & some, -math.inf)
    code = embedded.new_zeros(*embedded.shape[:2], 2 * EMBEDDING)
    cell = embedded.new_zeros(*embedded.shape[:2], EMBEDDING)
    for _ in range(PROCESS_STEPS):
        enter, keep, new, leave = _layer(weights, "process", code).chunk(4, dim=-1)
        cell = torch.sigmoid(keep + 1) * cell + torch.sigmoid(enter) * torch.tanh(new)
        query = torch.sigmoid(leave) * torch.tanh(cell)
        match = (embedded @ query.unsqueeze(-1)).squeeze(-1) + hidden
        answer = (torch.softmax(match, dim=-1).unsqueeze(-2) @ embedded).squeeze(-2)
        code = torch.cat([query, answer], dim=-1)
    return code * some


def allowed_actions(available: Any, acquired: Any) -> Any:
    """Mask over acquiring each covariate and, last, stopping, which is always allowed."""
    stop = torch.ones_like(available[..., :1])
    return torch.cat([available & ~acquired, stop], dim=-1)


def assess(weights: Weights, embedded: Any, acquired: Any, allowed: Any) -> tuple[Any, Any]:
    """Log-odds of each row, and the value Q of each action, -inf where it is not allowed.

    Dueling: Q is the value of the state plus the action's advantage over the mean of those allowed.
    """
    code = encode(weights, embedded, acquired)
    log_odds = _layer(weights, "log_odds", torch.relu(_layer(weights, "classifier", code))).squeeze(
        -1
    )
    output = _layer(weights, "value_and_advantages", torch.relu(_layer(weights, "action", code)))
    value, advantage = output[..., :1], output[..., 1:]
    mean = (advantage * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True)
    return log_odds, (value + advantage - mean).masked_fill(~allowed, -math.inf)


def acquire_chosen(acquired: Any, action: Any, continuing: Any) -> Any:
    """The acquired sets after these actions of the rows that are continuing."""
    n_covariates = acquired.shape[-1]
    chosen = functional.one_hot(action, n_covariates + 1)[..., :n_covariates].bool()
    return acquired | (chosen & continuing.unsqueeze(-1))


@torch.no_grad()
def choose(weights: Weights, rows: TensorRows, acquired: Any) -> tuple[Any, Any]:
    """Log-odds of rows that have acquired these covariates, and the best action, -1 to stop."""
    stack = (len(weights["value"]), -1, -1)
    values, available = rows.values.expand(stack), rows.available.expand(stack)
    acquired = acquired.expand(stack)
    embedded = embed(weights, values, rows.source)
    allowed = allowed_actions(available, acquired)
    log_odds, q = assess(weights, embedded, acquired, allowed)
    action = q.argmax(dim=-1)
    return log_odds, torch.where(action == available.shape[-1], -1, action)


@torch.no_grad()
def walk(weights: Weights, rows: TensorRows) -> tuple[Any, Any]:
    """Log-odds at the stop of the greedy policy, and the order of acquisition, filled with -1.

    Every model of the stack takes all the rows.
    """
    stack = (len(weights["value"]), -1, -1)
    values, available = rows.values.expand(stack), rows.available.expand(stack)
    embedded = embed(weights, values, rows.source)
    n_covariates = available.shape[-1]
    acquired = torch.zeros_like(available)
    continuing = torch.ones_like(available[..., 0])
    at_stop = torch.zeros_like(values[..., 0])
    order = torch.full_like(available, -1, dtype=torch.long)
    for step in range(n_covariates + 1):
        allowed = allowed_actions(available, acquired)
        log_odds, q = assess(weights, embedded, acquired, allowed)
        action = q.argmax(dim=-1)
        at_stop = torch.where(continuing & (action == n_covariates), log_odds, at_stop)
        continuing = continuing & (action < n_covariates)
        if not continuing.any():
            break
        order[..., step] = torch.where(continuing, action, -1)
        acquired = acquire_chosen(acquired, action, continuing)
    return at_stop, order
