"""Shim2018 (Shim, Hwang, Yang 2018): a classifier and an acquisition policy learned jointly.

The state is the set of acquired (value, index) pairs. An order-invariant encoder reads it; on its
code stand a classifier p(y | set) and a dueling Q-head with one action per covariate and one for
stopping. Both are learned together by n-step double Q-learning and cross-entropy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs, CostTable, total_of
from adacos.decision import Decision, ObservedDecider, ObservedState, Terms
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.kernels.bayes_risk import label_of
from adacos.kernels.folds import stratified_folds
from adacos.policies.base import BasePolicy
from adacos.typing import Fields, Floats, Ints
from adacos.validation import Constraints, amount, each, finite, maybe, one_of, whole

REWARDS = ("auto", "money", "log_likelihood")
DEVICES = ("auto", "cpu", "cuda")
# The paper takes 11 values from 0 to 0.1; equal ratios reach the small ones that prices need.
LAMBDAS = (0.0, *np.geomspace(1e-4, 0.1, 10).tolist())

# Updates from one look at the validation cost to the next, as the mean of the last few looks.
_UPDATES_PER_CHECK = 50
_CHECKS_PER_MEAN = 8
_ROWS_AT_ONCE = 4096


class Shim2018Classifier(BasePolicy):
    """Joint classifier and Q-learning policy over sets of acquired covariates (torch).

    The label is the Bayes decision under the misclassification matrix on the predicted
    probability. Acquired and unavailable covariates are masked out of the actions. A part of the
    training rows is held out: the updates at which to stop, and the reward and λ among the
    candidates, are those of least total cost on it. All candidates are trained side by side.

    Where it departs from the original, it does so in favour of the method: stopping is offered
    before the first acquisition; the reward of stopping is learned in every visited state, since
    it is known there; λ is spaced in equal ratios; the running mean of the weights serves as
    target network and as the network kept; and a reward in money is among the candidates.

    Parameters
    ----------
    reward : {"money", "log_likelihood", "auto"}, default="money"
        "log_likelihood" pays -λ c_i for acquiring i and log p(y | set) at the stop, as in the
        original; "money" pays minus the costs themselves: -c_i, and minus the Bayes risk at the
        stop; "auto" takes log-likelihood only where it is clearly cheaper on the held-out rows.
    lambdas : sequence of float or None, default=None
        Values of λ to choose from; None for 0 and ten values in equal ratios up to 0.1.
    n_updates : int, default=1000
        Most updates of the joint training.
    n_pretraining : int, default=300
        Updates of the classifier on randomly masked rows before it.
    n_environments : int, default=64
        Rows acted on in parallel by each candidate.
    n_steps : int, default=4
        Length of the returns.
    learning_rate : float, default=0.001
        Of Adam; falls to a tenth in the course of training.
    validation_fraction : float, default=0.2
        Share of the rows held out.
    patience : int, default=10
        Checks (every 50 updates) without a lower validation cost before training stops.
    device : {"auto", "cpu", "cuda"}, default="auto"
        "cpu", "cuda", or "auto" for a GPU if there is one.
    verbose : int, default=0
        Whether to show a progress bar.
    random_state : int, default=0
        Seed of everything random; on a CPU it makes fits repeatable.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        The network, arrays by layer.
    reward_ : str
        The candidate chosen; λ is 1 for the reward in money.
    lambda_ : float
        Likewise.
    candidates_ : list of (str, float)
        Pairs (reward, λ) that were trained.
    validation_cost_ : ndarray
        Mean total cost on the held-out rows, (checks, candidates).
    n_updates_ : int
        Update at which the network was kept.
    centre_ : ndarray
        Of each encoded column.
    scale_ : ndarray
        Likewise.

    References
    ----------
    H. Shim, S. J. Hwang and E. Yang, "Joint active feature acquisition and classification with
    variable-size set encoding", NeurIPS 2018.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import Shim2018Classifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = Shim2018Classifier(costs).fit(X[:300], y[:300])  # doctest: +SKIP
    >>> policy.acquire(X[300:]).acquired.shape  # doctest: +SKIP
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "centre_": Floats,
        "scale_": Floats,
        "candidates_": list[tuple[str, float]],
        "reward_": str,
        "lambda_": float,
        "validation_cost_": Floats,
        "n_updates_": int,
        "weights_": dict[str, NDArray[Any]],
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "reward": one_of(*REWARDS),
        "lambdas": maybe(each(finite(at_least=0))),
        "n_updates": whole(1),
        "n_pretraining": whole(0),
        "n_environments": whole(1),
        "n_steps": whole(1),
        "learning_rate": finite(above=0),
        "validation_fraction": finite(above=0, below=1),
        "patience": whole(1),
        "device": one_of(*DEVICES),
        "random_state": whole(0),
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        reward: str = "money",
        lambdas: Sequence[float] | None = None,
        n_updates: int = 1000,
        n_pretraining: int = 300,
        n_environments: int = 64,
        n_steps: int = 4,
        learning_rate: float = 1e-3,
        validation_fraction: float = 0.2,
        patience: int = 10,
        device: str = "auto",
        verbose: int = 0,
        random_state: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.reward = reward
        self.lambdas = lambdas
        self.n_updates = n_updates
        self.n_pretraining = n_pretraining
        self.n_environments = n_environments
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train every candidate on a part of the rows and keep the cheapest on the others."""
        network, learning = _modules()
        training = self.begin_fit(X, y)
        device = torch_device(network.torch, self.device)
        self.centre_, self.scale_ = _moments(training.encoded)
        readings = Readings(self.centre_, self.scale_, self.encoder_.source)
        self.candidates_ = _candidates(
            self.reward, LAMBDAS if self.lambdas is None else self.lambdas, training.costs
        )
        n_folds = max(round(1 / self.validation_fraction), 2)
        fold = stratified_folds(
            training.encoded, training.y, n_folds, self.random_state, training.groups
        )
        learned, held_out = np.flatnonzero(fold > 0), np.flatnonzero(fold == 0)
        trainer = learning.Trainer(
            readings.rows(network, training.encoded[learned], "float32", device),
            training.y[learned],
            learning.Rewards(self.candidates_, training.costs, training.y.mean(), device),
            n_environments=self.n_environments,
            n_steps=self.n_steps,
            learning_rate=self.learning_rate,
            n_updates=self.n_updates,
            seed=self.random_state,
        )
        rows = readings.rows(network, training.encoded[held_out], "float32", device)
        best = _Best()
        for number in self._progress():
            if number < 0:
                trainer.pretrain()
                continue
            trainer.update(number)
            if (number + 1) % _UPDATES_PER_CHECK == 0 or number + 1 == self.n_updates:
                log_odds, order = (t.cpu().numpy() for t in network.walk(trainer.averaged, rows))
                total = _total_costs(log_odds, order, training.y[held_out], training.costs)
                best.look(number + 1, total, trainer.averaged)
                if best.checks_since >= self.patience:
                    break
        chosen = _choose(best.total, self.candidates_)
        self.reward_, self.lambda_ = self.candidates_[chosen]
        self.validation_cost_ = np.array(best.history)
        self.n_updates_ = int(best.number[chosen])
        self.weights_ = {name: array[[chosen]] for name, array in best.weights.items()}
        return self.finish_fit()

    def _progress(self) -> Iterable[int]:
        """Numbers of the updates, negative in pretraining, with a progress bar if verbose."""
        updates = range(-self.n_pretraining, self.n_updates)
        if not self.verbose:
            return updates
        from rich.progress import track

        return track(updates, "Shim2018")

    def make_decider(self, terms: Terms) -> NetworkDecider:
        """Give the decider that decides by what was learned."""
        readings = Readings(self.centre_, self.scale_, self.encoder_.source)
        return NetworkDecider(terms, readings, self.weights_, self.device)


class Readings(NamedTuple):
    """How a network reads encoded rows: standardised, 0 for what is unknown.

    Attributes
    ----------
    centre, scale : of the encoded columns.
    source : the covariate of each.
    """

    centre: Floats
    scale: Floats
    source: Ints

    def rows(self, network: Any, encoded: Floats, dtype: str, device: Any) -> Any:
        """Encoded rows as tensors."""
        torch = network.torch
        first = np.searchsorted(self.source, np.arange(self.source.max() + 1))
        known = ~np.isnan(encoded)
        values = np.where(known, (encoded - self.centre) / self.scale, 0.0)
        return network.TensorRows(
            torch.tensor(values, dtype=getattr(torch, dtype), device=device),
            torch.tensor(known[:, first], device=device),
            torch.tensor(self.source, device=device),
        )


@dataclass(frozen=True, eq=False)
class NetworkDecider(ObservedDecider):
    """A decider by a network that values every acquisition and every answer.

    Attributes
    ----------
    readings : how the network reads rows.
    weights : of the network, by name.
    device : where it runs.
    """

    readings: Readings
    weights: dict[str, NDArray[Any]]
    device: str

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        network, _ = _modules()
        torch = network.torch
        device = torch_device(torch, self.device)
        # In double precision a row is answered alike in whatever company it comes.
        weights = {
            name: torch.tensor(array, dtype=torch.float64, device=device)
            for name, array in self.weights.items()
        }
        log_odds = np.empty(len(state.values))
        covariate = np.empty(len(state.values), dtype=np.intp)
        for first in range(0, len(log_odds), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            rows = self.readings.rows(network, state.values[part], "float64", device)
            rows = rows._replace(available=torch.tensor(state.available[part], device=device))
            acquired = torch.tensor(state.acquired[part], device=device)
            chosen = network.choose(weights, rows, acquired)
            log_odds[part], covariate[part] = (tensor[0].cpu().numpy() for tensor in chosen)
        return Decision(covariate, log_odds)


class _Best:
    """Weights and held-out total costs of each candidate where the latter are least on average.

    They are averaged over the last few checks: a single one says more about luck.
    """

    def __init__(self) -> None:
        self.history: list[Floats] = []
        self.checks_since = 0
        self._recent: deque[Floats] = deque(maxlen=_CHECKS_PER_MEAN)

    def look(self, number: int, total: Floats, weights: dict[str, Any]) -> None:
        """Compare the total costs (candidates, rows) after an update with the best so far."""
        self.history.append(total.mean(axis=1))
        self._recent.append(total)
        mean = np.mean(self._recent, axis=0)
        current = {name: tensor.cpu().numpy() for name, tensor in weights.items()}
        if len(self.history) <= _CHECKS_PER_MEAN:
            # A mean over fewer checks is no match for the later ones.
            self.total, self.number = mean, np.full(len(total), number)
            self.weights = {name: array.copy() for name, array in current.items()}
            return
        better = mean.mean(axis=1) < self.total.mean(axis=1)
        self.total[better], self.number[better] = mean[better], number
        for name, array in current.items():
            self.weights[name][better] = array[better]
        self.checks_since = 0 if better.any() else self.checks_since + 1


def _modules() -> tuple[Any, Any]:
    """The two modules that need torch."""
    try:
        from adacos.rivals import shim2018_learning, shim2018_network
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", "rivals") from error
    return shim2018_network, shim2018_learning


def torch_device(torch: Any, name: str) -> Any:
    """The device of that name, or for \"auto\" a GPU if there is one."""
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InvalidInputError(
            "device", "'cuda' needs a GPU that torch can use", name, "Use 'auto' or 'cpu'."
        )
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def _candidates(reward: str, lambdas: Sequence[float], costs: CostTable) -> list[tuple[str, float]]:
    """Pairs (reward, λ) to train; when nothing costs anything one λ is as good as another."""
    if not costs.covariates.any():
        lambdas = lambdas[:1]
    money = [("money", 1.0)] if reward != "log_likelihood" else []
    original = [("log_likelihood", value) for value in lambdas] if reward != "money" else []
    return money + original


def _choose(total: Floats, candidates: list[tuple[str, float]]) -> int:
    """Candidate of least mean total cost (candidates, rows).

    Log-likelihood must be cheaper than money by more than the standard error of the difference:
    the least of many noisy means flatters itself.
    """
    cheapest = int(total.mean(axis=1).argmin())
    if candidates[0][0] == "money" and cheapest > 0:
        saved = total[0] - total[cheapest]
        if saved.mean() <= saved.std() / np.sqrt(len(saved)):
            return 0
    return cheapest


def _moments(encoded: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation (1 if there is none) of the known values of each column."""
    deviation = np.nanstd(encoded, axis=0)
    return np.nanmean(encoded, axis=0), np.where(deviation > 0, deviation, 1.0)


def _total_costs(log_odds: Floats, order: Any, y: Floats, costs: CostTable) -> Floats:
    """Covariate cost paid plus misclassification cost of the Bayes label, for each row."""
    label = label_of(log_odds, costs.matrix)
    return total_of(costs.of_order(order), y, label, costs.matrix)
