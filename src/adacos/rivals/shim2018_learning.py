"""How Shim2018 learns: pretraining of the classifier, then Q-learning in parallel environments.

An environment is a training row of which some covariates have been acquired. The return of a
state is

    -price · (cost of what is acquired from here on) + reward at the stop,

where the reward is log p(y | acquired) ("log_likelihood") or, with price 1, what the best label is
expected to cost more than the right one ("money"). That is the Bayes risk less the expected cost of
right answers, which no policy can change. Money is counted in units of its value at the empty set,
so that returns are of order one. Importing this module needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from adacos.costs import CostTable
from adacos.rivals.shim2018_network import (
    TensorRows,
    Weights,
    acquire_chosen,
    allowed_actions,
    assess,
    embed,
    initial_weights,
)
from adacos.typing import Floats

_WEIGHT_DECAY = 0.3
# Share of the way that the averaged network moves to the trained one at each update.
_AVERAGING = 0.02
_FIRST_EXPLORATION, _LAST_EXPLORATION = 1.0, 0.05
_LAST_LEARNING_RATE = 0.1
# Weight of the cross-entropy on randomly masked rows during joint training.
_MASKED_WEIGHT = 0.5


class Rewards:
    """What actions bring under each candidate (reward, price) of a stack.

    Attributes
    ----------
    n_candidates : size of the stack.
    log_odds : of the second class when nothing is acquired.
    """

    def __init__(
        self,
        candidates: Sequence[tuple[str, float]],
        costs: CostTable,
        share: float,
        device: Any,
    ) -> None:
        """`share` is that of the second class among the rows."""
        self.n_candidates = len(candidates)
        self.log_odds = math.log(share / (1 - share))
        (c00, c01), (c10, c11) = costs.matrix.tolist()
        self._false_positive, self._false_negative = c01 - c00, c10 - c11
        self._stake = min((1 - share) * self._false_positive, share * self._false_negative)
        money = np.array([reward == "money" for reward, _ in candidates])
        price = np.array([price for _, price in candidates]) / np.where(money, self._stake, 1.0)
        same = (costs.panel[:, None] == costs.panel) & (costs.panel >= 0)
        self._money = torch.tensor(money, device=device).unsqueeze(-1)
        self._price = torch.tensor(price, dtype=torch.float32, device=device).view(-1, 1, 1)
        self._covariates = torch.tensor(costs.covariates, dtype=torch.float32, device=device)
        self._discount = torch.tensor(costs.discount, dtype=torch.float32, device=device)
        self._same_panel = torch.tensor(same, dtype=torch.float32, device=device)

    def of_acquiring(self, acquired: Any) -> Any:
        """Reward of acquiring each covariate next: minus the price of what is not yet paid."""
        opened = acquired.float() @ self._same_panel > 0
        return -self._price * (self._covariates - self._discount * opened)

    def of_stopping(self, log_odds: Any, y: Any) -> Any:
        """Reward of stopping at these log-odds."""
        regret = torch.minimum(
            torch.sigmoid(-log_odds) * self._false_positive,
            torch.sigmoid(log_odds) * self._false_negative,
        )
        return torch.where(self._money, -regret / self._stake, -cross_entropy(log_odds, y))


def cross_entropy(log_odds: Any, y: Any) -> Any:
    """-log p(y) of each row."""
    return functional.binary_cross_entropy_with_logits(log_odds, y, reduction="none")


def n_step_returns(rewards: Sequence[Any], continuing: Sequence[Any], last_value: Any) -> list[Any]:
    """Return from each of n steps: the rewards up to the stop, or all n and the value after them.

    `continuing` says after each step whether the row has not stopped yet.
    """
    returns = []
    following = last_value
    for reward, still in zip(reversed(rewards), reversed(continuing), strict=True):
        following = reward + still * following
        returns.append(following)
    return returns[::-1]


class Trainer:
    """Trains a stack of models, one per candidate, each in its own environments.

    `averaged` is the running mean of the trained weights. It is the target network of double
    Q-learning, and the network to keep: its policy is steadier than that of any single update.
    """

    def __init__(
        self,
        rows: TensorRows,
        y: Floats,
        rewards: Rewards,
        *,
        n_environments: int,
        n_steps: int,
        learning_rate: float,
        n_updates: int,
        seed: int,
    ) -> None:
        device = rows.values.device
        self.rows, self.rewards = rows, rewards
        self.y = torch.tensor(y, dtype=torch.float32, device=device)
        self.n_environments, self.n_steps = n_environments, n_steps
        self.learning_rate, self.n_updates = learning_rate, n_updates
        self.random = torch.Generator(device=device).manual_seed(seed)
        self.trained: Weights = {
            name: torch.tensor(array, device=device, requires_grad=True)
            for name, array in initial_weights(
                np.random.default_rng(seed),
                rewards.n_candidates,
                rows.values.shape[1],
                rows.available.shape[1],
                rewards.log_odds,
            ).items()
        }
        self.averaged: Weights = {}
        biases = [w for name, w in self.trained.items() if name.endswith("_bias")]
        matrices = [w for name, w in self.trained.items() if not name.endswith("_bias")]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": _WEIGHT_DECAY},
                {"params": biases, "weight_decay": 0.0},
            ],
            lr=learning_rate,
        )
        self.row = self._draw(n_environments)
        self.acquired = torch.zeros_like(rows.available[self.row])

    def pretrain(self) -> None:
        """One update of the classifier on randomly masked rows."""
        row = self._draw(2 * self.n_environments)
        embedded = embed(self.trained, self.rows.values[row], self.rows.source)
        self._descend(self._masked_loss(embedded, row))

    def update(self, number: int) -> None:
        """One joint update: n steps in every environment, then Q-head and classifier learn."""
        done = number / self.n_updates
        self._set_learning_rate(1 + (_LAST_LEARNING_RATE - 1) * done)
        if not self.averaged:
            self.averaged = {name: w.detach().clone() for name, w in self.trained.items()}
        explored = min(2 * done, 1.0)
        exploration = _FIRST_EXPLORATION + (_LAST_EXPLORATION - _FIRST_EXPLORATION) * explored
        values, y = self.rows.values[self.row], self.y[self.row]
        available = self.rows.available[self.row]
        embedded = embed(self.trained, values, self.rows.source)
        acquired, continuing = self.acquired, torch.ones_like(self.row, dtype=torch.bool)
        chosen, rewards, after, losses, active = [], [], [], [], []
        for _ in range(self.n_steps):
            allowed = allowed_actions(available, acquired)
            log_odds, q = assess(self.trained, embedded, acquired, allowed)
            with torch.no_grad():
                action = self._explore(q, allowed, exploration)
                at_stop = self.rewards.of_stopping(log_odds, y).unsqueeze(-1)
                reward = torch.cat([self.rewards.of_acquiring(acquired), at_stop], dim=-1)
            rewards.append(_pick(reward, action))
            chosen.append(_pick(q, action))
            # The reward of stopping is known in every state, whether or not it is chosen.
            stop_loss = functional.smooth_l1_loss(q[..., -1:], at_stop, reduction="none")
            losses.append(cross_entropy(log_odds, y) + stop_loss.squeeze(-1))
            active.append(continuing)
            continuing = continuing & (action < available.shape[-1])
            after.append(continuing)
            acquired = acquire_chosen(acquired, action, continuing)
        with torch.no_grad():
            value = self._bootstrap(embedded, values, available, acquired)
        returns = n_step_returns(rewards, after, value)
        q_loss = functional.smooth_l1_loss(
            torch.stack(chosen), torch.stack(returns), reduction="none"
        )
        weight = torch.stack(active).float()
        loss = ((torch.stack(losses) + q_loss) * weight).sum((0, 2)) / weight.sum((0, 2))
        self._descend(loss.sum() + _MASKED_WEIGHT * self._masked_loss(embedded, self.row))
        with torch.no_grad():
            for name, mean in self.averaged.items():
                mean.lerp_(self.trained[name], _AVERAGING)
        self.row = torch.where(continuing, self.row, self._draw(self.n_environments))
        self.acquired = acquired & continuing.unsqueeze(-1)

    def _bootstrap(self, embedded: Any, values: Any, available: Any, acquired: Any) -> Any:
        """Double Q: the averaged network's value of the action that the trained one prefers."""
        allowed = allowed_actions(available, acquired)
        _, preferred = assess(self.trained, embedded, acquired, allowed)
        embedded = embed(self.averaged, values, self.rows.source)
        _, q = assess(self.averaged, embedded, acquired, allowed)
        return _pick(q, preferred.argmax(dim=-1))

    def _explore(self, q: Any, allowed: Any, exploration: float) -> Any:
        """The best action, or with probability `exploration` any allowed one."""
        at_random = self._uniform(*allowed.shape).masked_fill(~allowed, -1.0).argmax(dim=-1)
        return torch.where(
            self._uniform(*allowed.shape[:-1]) < exploration, at_random, q.argmax(dim=-1)
        )

    def _masked_loss(self, embedded: Any, row: Any) -> Any:
        """Cross-entropy with a random share of each row's covariates acquired."""
        available = self.rows.available[row]
        share = self._uniform(*row.shape, 1)
        acquired = available & (self._uniform(*available.shape) < share)
        log_odds, _ = assess(self.trained, embedded, acquired, allowed_actions(available, acquired))
        return cross_entropy(log_odds, self.y[row]).mean(dim=1).sum()

    def _descend(self, loss: Any) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def _set_learning_rate(self, factor: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = factor * self.learning_rate

    def _draw(self, number: int) -> Any:
        return torch.randint(
            len(self.y),
            (self.rewards.n_candidates, number),
            generator=self.random,
            device=self.rows.values.device,
        )

    def _uniform(self, *shape: int) -> Any:
        return torch.rand(*shape, generator=self.random, device=self.rows.values.device)


def _pick(values: Any, action: Any) -> Any:
    return values.gather(-1, action.unsqueeze(-1)).squeeze(-1)
