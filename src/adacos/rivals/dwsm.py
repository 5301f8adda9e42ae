"""DWSM (Dulac-Arnold, Denoyer, Preux, Gallinari 2012): datum-wise sparse classification.

The state is what was acquired of a row, as φ = (1, z, z ⊙ x) with the mask z and standardised
values x. Every action (answer 0, answer 1, acquire covariate i) has a score linear in φ, and the
policy takes the best one.

Approximate policy iteration: take states along the current policy and in random sets, roll the
policy out after each acquisition possible there, and fit the scores again to what each action
turned out to cost. With π the softmax of the scores the fit minimises, over the states s,

    mean over s of Σ_a π(a | s) cost(s, a) / stake + ridge / (2 n) · |θ|²,

the cost of a randomised policy that acts once and then continues as before: a cost-sensitive
classification of actions. (In hindsight the true class is always the best action, so a classifier
of best actions would never acquire.) The fit is mixed into the scores with a step of
1 / (1 + number of rounds); the first scores are ridge regressions of the costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from adacos.costs import Costs, CostTable, rank_in, total_of
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.engine import acquired_in, walk
from adacos.kernels.threads import one_blas_thread
from adacos.models.progress import prints_progress, report_progress
from adacos.policies.base import BasePolicy
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, maybe, one_of, whole

VARIANTS = ("cost_weighted", "unconstrained")
# Rounds without a better training reward after which policy iteration ends.
_PATIENCE = 5
# The first scores: penalty of the regression in rows, and what a stake is worth in the softmax.
_START_RIDGE = 10.0
_START_SCALE = 5.0
_NEWTON_STEPS = 60
# Pseudo-rows of the ridge on the logistic model of the class at the stop.
_LOGISTIC_RIDGE = 10.0


@dataclass(frozen=True)
class LinearScores:
    """Scores of all actions.

    Attributes
    ----------
    mean, scale : of the encoded columns, for standardising.
    source : covariate of each encoded column.
    coef : (1 + covariates + columns, 2 + covariates), the two answers first.
    """

    mean: Floats
    scale: Floats
    source: Ints
    coef: Floats

    def features(self, encoded: Floats, acquired: Bools) -> Floats:
        """φ of each row; values not acquired are not read."""
        standardised = (encoded - self.mean) / self.scale
        seen = np.where(acquired[:, self.source], standardised, 0.0)
        return np.hstack([np.ones((len(encoded), 1)), acquired, seen])

    def next_covariate(self, seen: ObservedState) -> Ints:
        """Covariate of the best score, or `STOP` where an answer scores best."""
        scores = self.features(seen.values, seen.acquired) @ self.coef
        scores[:, 2:][seen.acquired | ~seen.available] = -np.inf
        best = np.argmax(scores, axis=1)
        return np.where(best < 2, STOP, best - 2)

    def answer(self, encoded: Floats, acquired: Bools) -> Ints:
        """The better answer by its score."""
        scores = self.features(encoded, acquired) @ self.coef[:, :2]
        return np.asarray(np.argmax(scores, axis=1))


class DWSMClassifier(BasePolicy):
    """Datum-wise sparse model: linear action scores learned by policy iteration with roll-outs.

    The scores only decide which covariate comes next and when to stop. The class probability at
    the stop is that of a ridge logistic regression on φ, fitted to the training rows in the states
    where the policy stops and, so that it knows other sets too, in random sets; the label is its
    Bayes decision for the misclassification costs. A covariate that is not available (NaN) for a
    row is not offered to it. Panels are charged as acquired.

    Where the original leaves the choice open: actions are fitted by the cost of all of them, states
    in random sets are added to those the policy meets, and stopping at once is allowed.

    Parameters
    ----------
    variant : {"cost_weighted", "unconstrained"}, default="cost_weighted"
        "cost_weighted" charges each covariate its cost; "unconstrained" charges every covariate
        the same while learning, as in the original, whatever it costs.
    charge : float or None, default=None
        What "unconstrained" charges for a covariate; None is the mean covariate cost.
    ridge : float, default=0.05
        Penalty on the scores, see the top of the module.
    n_rounds : int, default=15
        Most rounds of policy iteration.
    n_states : int, default=5000
        Most states per round from which roll-outs start.
    n_init : int, default=3
        Runs of policy iteration on different random sets; policy iteration can get stuck, so
        the run with the best training reward is kept.
    random_state : int, default=0
        Seed of the random sets.
    verbose : int, default=0
        Whether `fit` prints where it is: which round of policy iteration.

    Attributes
    ----------
    scores_ : LinearScores
        The linear scores of the actions.
    logistic_ : ndarray
        Coefficients of the log-odds at the stop on φ.
    rewards_ : ndarray
        Mean training reward (minus the total cost charged) after each round.

    References
    ----------
    G. Dulac-Arnold, L. Denoyer, P. Preux and P. Gallinari, "Sequential approaches for learning
    datum-wise sparse representations", Machine Learning 89, 2012.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import DWSMClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = DWSMClassifier(costs, n_rounds=2, n_init=1).fit(X[:300], y[:300])
    >>> policy.acquire(X[300:]).acquired.shape
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "scores_": LinearScores,
        "rewards_": Floats,
        "logistic_": Floats,
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "variant": one_of(*VARIANTS),
        "charge": maybe(finite(at_least=0)),
        "ridge": finite(above=0),
        "n_rounds": whole(1),
        "n_states": whole(1),
        "n_init": whole(1),
        "random_state": whole(0),
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        variant: str = "cost_weighted",
        charge: float | None = None,
        ridge: float = 0.05,
        n_rounds: int = 15,
        n_states: int = 5000,
        n_init: int = 3,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.variant = variant
        self.charge = charge
        self.ridge = ridge
        self.n_rounds = n_rounds
        self.n_states = n_states
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread
    @prints_progress
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the scores by policy iteration, then the class probability where they stop."""
        training = self.begin_fit(X, y)
        rng = np.random.default_rng(self.random_state)
        charged = training.costs
        if self.variant == "unconstrained":
            charged = _same_for_all(charged, self.charge)
        game = Game(
            training.encoded,
            training.y.astype(np.intp),
            _available(training.encoded, self.encoder_.source),
            charged,
        )
        runs = (
            iterate_policy(
                game,
                self.encoder_.source,
                ridge=self.ridge,
                n_rounds=self.n_rounds,
                n_states=self.n_states,
                rng=rng,
            )
            for _ in range(self.n_init)
        )
        self.scores_, self.rewards_ = max(runs, key=lambda run: run[1][-1])
        self.logistic_ = _class_at_the_stop(game, self.scores_, rng)
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> ScoresDecider:
        """Give the decider that decides by what was learned."""
        return ScoresDecider(terms, self.scores_, self.logistic_)


@dataclass(frozen=True, eq=False)
class ScoresDecider(ObservedDecider):
    """A decider that acquires what scores best, and answers by logistic regression.

    Attributes
    ----------
    scores : of what can come next.
    logistic : coefficients of the log-odds at the stop.
    """

    scores: LinearScores
    logistic: Floats

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        log_odds = self.scores.features(state.values, state.acquired) @ self.logistic
        return Decision(self.scores.next_covariate(state), log_odds)


class Game(NamedTuple):
    """Training rows to play on: encoded values, classes, what is available, and costs."""

    encoded: Floats
    y: Ints
    available: Bools
    costs: CostTable

    def rows(self, selection: Ints) -> Game:
        """The same game on some of the rows, which may repeat."""
        return Game(
            self.encoded[selection], self.y[selection], self.available[selection], self.costs
        )


def follow(
    scores: LinearScores, encoded: Floats, available: Bools, start: Bools
) -> tuple[Bools, Ints]:
    """What each row has acquired when the policy stops, and in which order, from a given set."""
    unused = np.zeros(len(encoded))

    def decide(seen: ObservedState) -> Decision:
        return Decision(scores.next_covariate(seen), unused[: len(seen.values)])

    nothing = np.full(start.shape, STOP)
    order = walk(
        ObservedState(encoded, available, start), decide, ObservedState.after, available, nothing
    ).order
    return start | acquired_in(order), order


def costs_to_go(game: Game, scores: LinearScores, start: Bools, paid_for: Bools) -> Floats:
    """What each row costs if the policy takes over at `start`, beyond the set `paid_for`."""
    acquired, order = follow(scores, game.encoded, game.available, start)
    label = scores.answer(game.encoded, acquired)
    rank = rank_in(order, order.shape[1])
    # What lies between `paid_for` and `start`, one covariate at most, comes first.
    paid = game.costs.of(acquired, given=paid_for, rank=np.where(start, -1, rank))
    return total_of(paid, game.y, label, game.costs.matrix)


def iterate_policy(
    game: Game,
    source: Ints,
    *,
    ridge: float,
    n_rounds: int,
    n_states: int,
    rng: np.random.Generator,
) -> tuple[LinearScores, Floats]:
    """Scores after the last round, and the mean training reward after each round."""
    spread = np.nanstd(game.encoded, axis=0)
    scores = LinearScores(
        mean=np.nanmean(game.encoded, axis=0),
        scale=np.where(spread > 0, spread, 1.0),
        source=source,
        coef=np.zeros((1 + game.available.shape[1] + len(source), 2 + game.available.shape[1])),
    )
    matrix = game.costs.matrix
    stake = (np.abs(matrix[:, 0] - matrix[:, 1])).mean()
    nothing = np.zeros_like(game.available)
    history: list[float] = []
    for n_done in range(n_rounds + 1):
        report_progress("round", n_done, n_rounds)
        rows, acquired = sample_states(game, scores, n_states, rng)
        states = game.rows(rows)
        features = scores.features(states.encoded, acquired)
        cost = action_costs(states, scores, acquired) / stake
        if n_done == 0:
            coef = -_START_SCALE * regress(features, cost)
        else:
            target = fit_actions(features, cost, scores.coef, ridge / len(game.y))
            coef = scores.coef + (target - scores.coef) / (n_done + 1)
        scores = replace(scores, coef=coef)
        history.append(-float(costs_to_go(game, scores, nothing, nothing).mean()))
        if np.argmax(history) < n_done - _PATIENCE:
            break
    return scores, np.array(history)


def sample_states(
    game: Game, scores: LinearScores, n_states: int, rng: np.random.Generator
) -> tuple[Ints, Bools]:
    """Rows with what they have acquired: along the policy from nothing on, and in random sets."""
    every = np.arange(len(game.y))
    acquired = np.zeros_like(game.available)
    _, order = follow(scores, game.encoded, game.available, acquired)
    rows, sets = [every, every], [acquired.copy(), _random_sets(game.available, rng)]
    for covariate in order.T:
        walking = np.flatnonzero(covariate >= 0)
        acquired[walking, covariate[walking]] = True
        rows.append(walking)
        sets.append(acquired[walking])
    which, met = np.concatenate(rows), np.vstack(sets)
    if len(which) > n_states:
        kept = rng.choice(len(which), n_states, replace=False)
        which, met = which[kept], met[kept]
    return which, met


def action_costs(states: Game, scores: LinearScores, acquired: Bools) -> Floats:
    """Cost of each action in each state; NaN where the action is not possible."""
    cost = np.full((len(acquired), 2 + acquired.shape[1]), np.nan)
    cost[:, :2] = states.costs.matrix[states.y]
    possible = states.available & ~acquired
    for covariate in range(acquired.shape[1]):
        rows = np.flatnonzero(possible[:, covariate])
        after = acquired[rows]
        after[:, covariate] = True
        cost[rows, 2 + covariate] = costs_to_go(states.rows(rows), scores, after, acquired[rows])
    return cost


def regress(features: Floats, cost: Floats) -> Floats:
    """Ridge regression of each action's cost on φ, over the states in which it is possible.

    The intercept, the first column of φ, is all but free.
    """
    penalty = _START_RIDGE * np.eye(features.shape[1])
    penalty[0, 0] = 1e-6
    coef = np.zeros((features.shape[1], cost.shape[1]))
    for action, target in enumerate(cost.T):
        known = ~np.isnan(target)
        own = features[known]
        coef[:, action] = np.linalg.solve(own.T @ own + penalty, own.T @ target[known])
    return coef


def fit_actions(features: Floats, cost: Floats, start: Floats, penalty: float) -> Floats:
    """Scores whose softmax has the least expected cost, see the top of the module."""
    impossible = np.isnan(cost)
    cost = np.where(impossible, 0.0, cost)

    def objective(flat: Floats) -> tuple[float, Floats]:
        coef = flat.reshape(start.shape)
        scores = np.where(impossible, -np.inf, features @ coef)
        policy = softmax(scores, axis=1)
        expected = (policy * cost).sum(axis=1)
        slope = features.T @ (policy * (cost - expected[:, None])) / len(features)
        penalised = np.vstack([np.zeros_like(coef[:1]), coef[1:]])
        value = expected.mean() + penalty / 2 * (penalised**2).sum()
        return value, (slope + penalty * penalised).ravel()

    options = {"maxiter": _NEWTON_STEPS}
    optimum = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(optimum.x).reshape(start.shape)


def _class_at_the_stop(game: Game, scores: LinearScores, rng: np.random.Generator) -> Floats:
    """Coefficients on φ of the log-odds, from rows at the policy's stop and in random sets."""
    nothing = np.zeros_like(game.available)
    stopped, _ = follow(scores, game.encoded, game.available, nothing)
    features = np.vstack(
        [
            scores.features(game.encoded, stopped),
            scores.features(game.encoded, _random_sets(game.available, rng)),
        ]
    )
    weight = np.repeat([2.0, 1.0], len(game.y))
    model = LogisticRegression(C=1 / _LOGISTIC_RIDGE, max_iter=1000)
    model.fit(features[:, 1:], np.tile(game.y, 2), sample_weight=weight)
    return np.append(model.intercept_, model.coef_[0])


def _random_sets(available: Bools, rng: np.random.Generator) -> Bools:
    """For each row a random set of its available covariates, of every size alike."""
    share = rng.random((len(available), 1))
    return available & (rng.random(available.shape) < share)


def _available(encoded: Floats, source: Ints) -> Bools:
    """Mask (rows, covariates) of what is known."""
    first = np.searchsorted(source, np.arange(source[-1] + 1))
    return ~np.isnan(encoded[:, first])


def _same_for_all(costs: CostTable, charge: float | None) -> CostTable:
    """Every covariate at the same cost, without panels."""
    n = len(costs.names)
    amount = costs.covariates.mean() if charge is None else charge
    return CostTable(
        costs.names, np.full(n, amount), np.full(n, -1, dtype=np.intp), np.empty(0), costs.matrix
    )
