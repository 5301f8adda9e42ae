"""What DIME and GDFS share: the fit of two networks, the choice of when to stop, the decider.

Either method says which covariate comes next and leaves open when a row stops. Its natural rule
becomes one of total cost: a row stops where a statistic of the networks is at most a threshold, or
after a number of covariates. Both are those of least total cost on rows held out from training.
The label is the Bayes decision on the classifier's probability.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from adacos.costs import Costs, CostTable, total_of
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.exceptions import MissingExtraError
from adacos.kernels.class_risk import best_label, least_risk, log_loss
from adacos.kernels.folds import stratified_folds
from adacos.kernels.threads import one_blas_thread
from adacos.policies.base import BasePolicy
from adacos.rivals.masked_networks import (
    CLASSIFIER,
    SELECTOR,
    Inputs,
    Weights,
    forward,
    initial_weights,
)
from adacos.rivals.shim2018 import DEVICES, torch_device
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, one_of, whole

# How often the networks are looked at, and how many thresholds are compared.
_UPDATES_PER_CHECK = 50
_THRESHOLDS = 50
# A covariate without a cost counts as this share of the most expensive one when scores are divided
# by costs.
_CHEAPEST = 1e-3
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class GreedyNetworks:
    """Fitted networks, and how their scores are used.

    Attributes
    ----------
    inputs : how they read rows.
    weights : of both, by name.
    by_information : whether scores are conditional mutual information (DIME), or those of a
        choice (GDFS).
    by_cost : whether scores are divided by what the covariate costs.
    """

    inputs: Inputs
    weights: Weights
    by_information: bool
    by_cost: bool = True

    def assess(
        self, values: Floats, acquired: Bools, allowed: Bools, costs: CostTable
    ) -> tuple[Floats, Ints, Floats]:
        """Log-odds of the later classes, the next covariate or `STOP`, and the statistic.

        A row stops where the statistic is small: with DIME the largest information per cost, with
        GDFS the expected cost of the answer.
        """
        shown = self.inputs.shown(values, acquired)
        logits = forward(self.weights, CLASSIFIER, shown)
        score = forward(self.weights, SELECTOR, shown)
        price = floored(costs.of_next(acquired), float(costs.covariates.max()))
        log_odds = logits[:, 1:] - logits[:, :1]
        log_odds = log_odds[:, 0] if log_odds.shape[1] == 1 else log_odds
        if self.by_information:
            entropy = -(softmax(logits, axis=1) * log_softmax(logits, axis=1)).sum(axis=1)
            worth = expit(score) * entropy[:, None] / price
        else:
            worth = log_softmax(score, axis=1) - (np.log(price) if self.by_cost else 0.0)
        # Rounded, so that a row is answered alike in whatever company it comes.
        worth = np.where(allowed, np.round(worth, 9), -np.inf)
        best = np.where(allowed.any(axis=1), worth.argmax(axis=1), STOP)
        information = np.where(best == STOP, 0.0, worth.max(axis=1))
        statistic = information if self.by_information else least_risk(log_odds, costs.matrix)
        return log_odds, best, statistic


class Stopping(NamedTuple):
    """A row stops where the statistic is at most a threshold, or after that many covariates."""

    threshold: float
    most: int


class _Walks(NamedTuple):
    """Rows taken to the end: for each number of steps what they paid, would answer and show."""

    paid: Floats
    log_odds: Floats
    statistic: Floats


class GreedyNetworkClassifier(BasePolicy):
    """Base of the policies that a selecting network and a classifying network make up.

    Parameters
    ----------
    n_updates : int, default=2000
        Most updates of both networks.
    n_pretraining : int, default=500
        Updates of the classifier on randomly masked rows before them.
    learning_rate : float, default=0.001
        Of Adam; falls to a tenth in the course of training.
    validation_fraction : float, default=0.2
        Share of the rows held out, on which training ends and the stopping rule is chosen.
    patience : int, default=10
        Checks (every 50 updates) without a lower validation loss before training stops.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the networks learn: "auto" takes a GPU if there is one. Decisions are made on the CPU.
    random_state : int, default=0
        Seed of everything random; on a CPU it makes fits repeatable.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        Both networks, arrays by layer.
    stop_at_ : float
        A row stops where the statistic of the method is at most this.
    stop_after_ : int
        It stops after that many covariates at the latest.
    by_cost_ : bool
        Whether scores are divided by what the covariate costs.
    validation_cost_ : float
        Mean total cost on the held-out rows.
    n_updates_ : int
        Update at which the networks were kept.
    centre_ : ndarray
        Of each encoded column.
    scale_ : ndarray
        Likewise.
    """

    takes_many_classes = True

    saved_fields: ClassVar[Fields] = {
        "centre_": Floats,
        "scale_": Floats,
        "weights_": dict[str, NDArray[Any]],
        "stop_at_": float,
        "stop_after_": int,
        "by_cost_": bool,
        "validation_cost_": float,
        "n_updates_": int,
    }

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "n_updates": whole(1),
        "n_pretraining": whole(0),
        "learning_rate": finite(above=0),
        "validation_fraction": finite(above=0, below=1),
        "patience": whole(1),
        "device": one_of(*DEVICES),
        "random_state": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        n_updates: int = 2000,
        n_pretraining: int = 500,
        learning_rate: float = 1e-3,
        validation_fraction: float = 0.2,
        patience: int = 10,
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.n_updates = n_updates
        self.n_pretraining = n_pretraining
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.random_state = random_state

    @property
    @abstractmethod
    def by_information(self) -> bool:
        """Whether scores are conditional mutual information."""

    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Train both networks on a part of the rows and choose when to stop on the others."""
        learning = _learning()
        training = self.begin_fit(X, y)
        source, first = self.encoder_.source, self.encoder_.first
        inputs = Inputs.of(training.encoded, source)
        self.centre_, self.scale_ = inputs.centre, inputs.scale
        values, available = inputs.values(training.encoded), ~np.isnan(training.encoded[:, first])
        n_folds = max(round(1 / self.validation_fraction), 2)
        fold = stratified_folds(
            training.encoded, training.y, n_folds, self.random_state, training.groups
        )
        learned, held_out = np.flatnonzero(fold > 0), np.flatnonzero(fold == 0)
        p = len(first)
        trainer = learning.GreedyTrainer(
            initial_weights(
                np.random.default_rng(self.random_state), len(source) + p, len(self.classes_), p
            ),
            values[learned],
            available[learned],
            training.y[learned],
            source,
            floored(training.costs.covariates),
            by_information=self.by_information,
            learning_rate=self.learning_rate,
            n_updates=self.n_updates,
            seed=self.random_state,
            device=torch_device(learning.torch, self.device),
        )
        held = (values[held_out], available[held_out], training.y[held_out])
        self.weights_, self.n_updates_ = self._train(trainer, inputs, held, training.costs)
        self._choose_stopping(inputs, held, training.costs)
        return self.finish_fit()

    def _train(self, trainer: Any, inputs: Inputs, held: Any, costs: CostTable) -> Any:
        """Weights of least loss on the held-out rows, mean over all steps, and their update."""
        for _ in range(self.n_pretraining):
            trainer.pretrain()
        best: tuple[float, Weights, int] = (np.inf, {}, 0)
        checks_since = 0
        for number in range(self.n_updates):
            trainer.update(number)
            if (number + 1) % _UPDATES_PER_CHECK and number + 1 < self.n_updates:
                continue
            weights = {name: w.cpu().numpy() for name, w in trainer.averaged.items()}
            networks = GreedyNetworks(inputs, weights, self.by_information)
            walks = _walks(networks, held[0], held[1], costs)
            loss = float(
                np.mean([log_loss(log_odds, held[2]).mean() for log_odds in walks.log_odds])
            )
            checks_since = 0 if loss < best[0] else checks_since + 1
            if loss < best[0]:
                best = (loss, {name: w.copy() for name, w in weights.items()}, number + 1)
            if checks_since >= self.patience:
                break
        return best[1], best[2]

    def _choose_stopping(self, inputs: Inputs, held: Any, costs: CostTable) -> None:
        """Set the rule of least total cost on the held-out rows."""
        self.validation_cost_ = np.inf
        for by_cost in (True,) if self.by_information else (True, False):
            networks = GreedyNetworks(inputs, self.weights_, self.by_information, by_cost)
            walks = _walks(networks, held[0], held[1], costs)
            stopping, cost = cheapest_stop(walks, held[2], costs)
            if cost < self.validation_cost_:
                self.by_cost_, self.validation_cost_ = by_cost, cost
                self.stop_at_, self.stop_after_ = stopping

    def make_decider(self, terms: Terms) -> GreedyNetworkDecider:
        """Give the decider that decides by what was learned."""
        inputs = Inputs(self.centre_, self.scale_, self.encoder_.source)
        weights = {name: w.astype(np.float64) for name, w in self.weights_.items()}
        networks = GreedyNetworks(inputs, weights, self.by_information, self.by_cost_)
        return GreedyNetworkDecider(terms, networks, Stopping(self.stop_at_, self.stop_after_))


@dataclass(frozen=True, eq=False)
class GreedyNetworkDecider(ObservedDecider):
    """A decider that acquires the covariate of the best score until it stops.

    Attributes
    ----------
    networks : the fitted networks.
    stopping : when a row stops.
    """

    networks: GreedyNetworks
    stopping: Stopping

    def with_multiplier(self, multiplier: float) -> Self:
        """The decider whose rows stop at a threshold 1 + `multiplier` times as large."""
        times = (1 + multiplier) / (1 + self.multiplier)
        stopping = self.stopping._replace(threshold=times * self.stopping.threshold)
        return replace(super().with_multiplier(multiplier), stopping=stopping)

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        values = self.networks.inputs.values(np.asarray(state.values))
        allowed = state.available & ~state.acquired
        log_odds, covariate, statistic = self.networks.assess(
            values, state.acquired, allowed, self.costs
        )
        count = state.acquired.sum(axis=1)
        stops = (statistic <= self.stopping.threshold) | (count >= self.stopping.most)
        return Decision(np.where(stops, STOP, covariate), log_odds)


def floored(prices: Floats, largest: float | None = None) -> Floats:
    """Costs to divide by, in units of the largest: nothing is free."""
    unit = max(float(prices.max()) if largest is None else largest, _ROUNDING)
    return np.asarray(np.maximum(prices / unit, _CHEAPEST))


def cheapest_stop(walks: _Walks, y: Floats, costs: CostTable) -> tuple[Stopping, float]:
    """Threshold and largest number of covariates of least mean total cost, and that cost."""
    n_steps, n_rows = walks.paid.shape
    label = np.stack([best_label(log_odds, costs.matrix) for log_odds in walks.log_odds])
    total = total_of(walks.paid, y, label, costs.matrix)
    levels: Floats = np.quantile(walks.statistic, np.linspace(0, 1, _THRESHOLDS))
    best = (Stopping(-np.inf, n_steps - 1), np.inf)
    for threshold in (-np.inf, *(float(level) for level in np.unique(levels)), np.inf):
        below = walks.statistic <= threshold
        below[-1] = True
        first = below.argmax(axis=0)
        for most in range(n_steps):
            cost = float(total[np.minimum(first, most), np.arange(n_rows)].mean())
            # A rule must be clearly cheaper than one that stops later.
            if cost < best[1] - _ROUNDING:
                best = (Stopping(threshold, most), cost)
    return best


def _walks(networks: GreedyNetworks, values: Floats, available: Bools, costs: CostTable) -> _Walks:
    """Rows that acquire all they can, step by step; a row that has everything stays where it is."""
    steps = list(_steps(networks, values, available, costs))
    return _Walks(*(np.stack(part) for part in zip(*steps, strict=True)))


def _steps(
    networks: GreedyNetworks, values: Floats, available: Bools, costs: CostTable
) -> Iterator[tuple[Floats, Floats, Floats]]:
    acquired, paid = np.zeros_like(available), np.zeros(len(available))
    for _ in range(available.shape[1] + 1):
        allowed = available & ~acquired
        log_odds, covariate, statistic = networks.assess(values, acquired, allowed, costs)
        yield paid, log_odds, statistic
        rows = np.flatnonzero(covariate != STOP)
        price = costs.of_next(acquired)
        paid, acquired = paid.copy(), acquired.copy()
        paid[rows] += price[rows, covariate[rows]]
        acquired[rows, covariate[rows]] = True


def _learning() -> Any:
    """The module that needs torch."""
    try:
        from adacos.rivals import greedy_learning
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", "rivals") from error
    return greedy_learning
