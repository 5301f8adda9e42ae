"""How DIME and GDFS learn: a classifier and a score of the next covariate, along greedy walks.

Rows of a batch begin with nothing acquired and acquire one covariate after the other. At each step
the classifier f learns by its cross-entropy after the acquisition, and the scores learn by

- DIME: (v_i(x_S) - [loss of f(x_S) - loss of f(x_S, x_i)])² of the covariate i acquired, so that
  v_i is the conditional mutual information of the class and x_i given x_S. It lies between 0 and
  the entropy of f(x_S). The covariate of largest v_i per cost is acquired, or, rarely, any other.
- GDFS: the cross-entropy itself, through a covariate drawn by the scores in a differentiable way
  (the Concrete distribution, whose temperature falls).

No gradient flows from one step to the next. Importing this module needs torch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from adacos.rivals.masked_networks import CLASSIFIER, SELECTOR, Weights, forward
from adacos.typing import Bools, Floats, Ints

_BATCH = 128
_DROPOUT = 0.3
# More than the original explores: what is never tried is never learned.
_FIRST_EXPLORATION, _LAST_EXPLORATION = 1.0, 0.1
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 1.0, 0.1
_LAST_LEARNING_RATE = 0.1
# The weights kept are a running mean: steadier than those of any single update.
_AVERAGING = 0.02


class Batch(NamedTuple):
    """Training rows that walk together."""

    values: Any
    available: Any
    y: Any


class GreedyTrainer:
    """Trains both networks; `averaged` are the weights to keep."""

    def __init__(
        self,
        weights: Weights,
        values: Floats,
        available: Bools,
        y: Floats,
        source: Ints,
        prices: Floats,
        *,
        by_information: bool,
        learning_rate: float,
        n_updates: int,
        seed: int,
        device: Any,
    ) -> None:
        """`by_information` is DIME, otherwise GDFS."""
        self.by_information, self.n_updates, self.learning_rate = (
            by_information,
            n_updates,
            learning_rate,
        )
        self.rows = Batch(
            torch.tensor(values, dtype=torch.float32, device=device),
            torch.tensor(available, device=device),
            torch.tensor(y.astype(np.int64), device=device),
        )
        self.source = torch.tensor(source, device=device)
        self.prices = torch.tensor(prices, dtype=torch.float32, device=device)
        self.random = torch.Generator(device=device).manual_seed(seed)
        self.trained = {
            name: torch.tensor(array, device=device, requires_grad=True)
            for name, array in weights.items()
        }
        self.averaged: dict[str, Any] = {}
        self.optimizer = torch.optim.Adam(list(self.trained.values()), lr=learning_rate)

    def pretrain(self) -> None:
        """One update of the classifier on rows of which a random share is acquired."""
        batch = self._batch()
        share = self._uniform(len(batch.y), 1)
        acquired = batch.available & (self._uniform(*batch.available.shape) < share)
        logits = self._classify(batch, acquired.float())
        self._descend(functional.cross_entropy(logits, batch.y))

    def update(self, number: int) -> None:
        """One update of both networks along the walk of a batch."""
        done = number / self.n_updates
        if not self.averaged:
            self.averaged = {name: w.detach().clone() for name, w in self.trained.items()}
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * (1 + (_LAST_LEARNING_RATE - 1) * done)
        walk = self._walk_by_information if self.by_information else self._walk_by_selection
        self._descend(walk(self._batch(), done))
        with torch.no_grad():
            for name, mean in self.averaged.items():
                mean.lerp_(self.trained[name], _AVERAGING)

    def _walk_by_information(self, batch: Batch, done: float) -> Any:
        acquired = torch.zeros_like(batch.available)
        logits = self._classify(batch, acquired.float())
        before = functional.cross_entropy(logits, batch.y, reduction="none")
        losses, steps = before.sum(), torch.ones_like(before).sum()
        for _ in range(acquired.shape[1]):
            allowed = batch.available & ~acquired
            going = allowed.any(dim=-1)
            if not going.any():
                break
            value = self._information(batch, acquired, logits)
            chosen = self._explore(value.detach() / self.prices, allowed, done)
            acquired = acquired | (_one_hot(chosen, acquired) & going.unsqueeze(-1))
            logits = self._classify(batch, acquired.float())
            after = functional.cross_entropy(logits, batch.y, reduction="none")
            gained = (before - after).detach()
            missed = (value.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) - gained) ** 2
            losses = losses + ((after + missed) * going).sum()
            steps, before = steps + going.sum(), after
        return losses / steps

    def _walk_by_selection(self, batch: Batch, done: float) -> Any:
        temperature = _FIRST_TEMPERATURE * (_LAST_TEMPERATURE / _FIRST_TEMPERATURE) ** done
        acquired = torch.zeros_like(batch.available)
        logits = self._classify(batch, acquired.float())
        losses = functional.cross_entropy(logits, batch.y, reduction="sum")
        steps = torch.tensor(float(len(batch.y)), device=losses.device)
        for _ in range(acquired.shape[1]):
            allowed = batch.available & ~acquired
            going = allowed.any(dim=-1)
            if not going.any():
                break
            score = self._score(batch, acquired)
            gumbel = -torch.log(-torch.log(self._uniform(*score.shape) + 1e-20) + 1e-20)
            drawn = ((score + gumbel) / temperature).masked_fill(~allowed, -1e9).softmax(dim=-1)
            mask = acquired.float() + drawn * allowed
            loss = functional.cross_entropy(self._classify(batch, mask), batch.y, reduction="none")
            losses, steps = losses + (loss * going).sum(), steps + going.sum()
            chosen = drawn.argmax(dim=-1)
            acquired = acquired | (_one_hot(chosen, acquired) & going.unsqueeze(-1))
        return losses / steps

    def _information(self, batch: Batch, acquired: Any, logits: Any) -> Any:
        probability = logits.detach().softmax(dim=-1)
        entropy = -(probability * torch.log(probability + 1e-12)).sum(dim=-1, keepdim=True)
        return torch.sigmoid(self._score(batch, acquired)) * entropy

    def _classify(self, batch: Batch, mask: Any) -> Any:
        return forward(self.trained, CLASSIFIER, self._shown(batch, mask), self._drop)

    def _score(self, batch: Batch, acquired: Any) -> Any:
        return forward(self.trained, SELECTOR, self._shown(batch, acquired.float()), self._drop)

    def _shown(self, batch: Batch, mask: Any) -> Any:
        return torch.cat([batch.values * mask[:, self.source], mask], dim=-1)

    def _drop(self, hidden: Any) -> Any:
        return hidden * (self._uniform(*hidden.shape) >= _DROPOUT) / (1 - _DROPOUT)

    def _explore(self, worth: Any, allowed: Any, done: float) -> Any:
        """The best covariate, or with a falling probability any that is allowed."""
        best = worth.masked_fill(~allowed, -1.0).argmax(dim=-1)
        at_random = self._uniform(*allowed.shape).masked_fill(~allowed, -1.0).argmax(dim=-1)
        share = _FIRST_EXPLORATION + (_LAST_EXPLORATION - _FIRST_EXPLORATION) * min(2 * done, 1.0)
        explores = self._uniform(len(best)) < share
        return torch.where(explores, at_random, best)

    def _descend(self, loss: Any) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def _batch(self) -> Batch:
        count = len(self.rows.y)
        device = self.rows.values.device
        row = torch.randint(count, (min(_BATCH, 2 * count),), generator=self.random, device=device)
        return Batch(*(tensor[row] for tensor in self.rows))

    def _uniform(self, *shape: int) -> Any:
        return torch.rand(*shape, generator=self.random, device=self.rows.values.device)


def _one_hot(chosen: Any, like: Any) -> Any:
    return torch.zeros_like(like).scatter(-1, chosen.unsqueeze(-1), True)
