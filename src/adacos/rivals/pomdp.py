"""POMDP (Ji & Carin 2007): a belief over hidden states, and acquisitions that look ahead.

The hidden state is (class, component): in each class the covariates, as codes of a finite
alphabet, follow a mixture, independent given the component. The belief after acquiring x_S is

    b_m ∝ w_m Π_{i in S} P(x_i | m),

so covariates not acquired drop out for free. With one look ahead covariate i is worth acquiring if

    c_i + Σ_v min over label of Σ_m b_m P(x_i = v | m) C[y_m, label]

is below the Bayes risk now; the sum over the codes v is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from adacos.costs import Costs, CostTable
from adacos.decision import STOP, Decision, ObservedDecider, ObservedState, Terms
from adacos.exceptions import InvalidInputError
from adacos.kernels.folds import shuffled_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.progress import prints_progress, report_progress
from adacos.policies.base import BasePolicy
from adacos.tables.codes import UNKNOWN, Codes, fit_codes
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import Constraints, amount, finite, maybe, whole

# What the log-loss of held-out rows chooses from.
N_COMPONENTS = (1, 2, 4, 8)
SMOOTHING = (3.0, 12.0, 40.0)
# Keeps the log-loss of a row that was thought impossible finite.
_LEAST_BELIEF = 1e-12
# Pseudo-rows that draw the values' frequencies in a class to those in both classes.
_CLASS_SMOOTHING = 10.0
_EM_STEPS = 200
_EM_TOLERANCE = 1e-5
# An acquisition must lower the expected cost by more than rounding, relative to the stakes.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class HiddenStates:
    """Hidden states and the codes they emit.

    Attributes
    ----------
    label : class of each state.
    log_weight : log-probability of each state before anything was acquired.
    log_emission : (states, codes of all covariates side by side) log P(code | state).
    sizes : number of codes of each covariate.
    """

    label: Ints
    log_weight: Floats
    log_emission: Floats
    sizes: Ints

    @property
    def first(self) -> Ints:
        """Where the codes of each covariate begin."""
        return np.cumsum(self.sizes) - self.sizes

    def beliefs(self, codes: Ints, acquired: Bools) -> Floats:
        """Probability of each state given the acquired codes, shape (rows, states)."""
        log_belief = np.tile(self.log_weight, (len(codes), 1))
        for covariate, first in enumerate(self.first):
            rows = np.flatnonzero(acquired[:, covariate])
            log_belief[rows] += self.log_emission[:, first + codes[rows, covariate]].T
        belief: Floats = np.exp(log_belief - logsumexp(log_belief, axis=1, keepdims=True))
        return belief


def _one_or_two(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value not in (1, 2):
        raise InvalidInputError(name, "must be 1 or 2", value, "Choose one of these.")


class POMDPClassifier(BasePolicy):
    """Acquisition by the belief over hidden states of a mixture model per class.

    The label is the Bayes decision on the belief for the misclassification costs. A covariate is
    acquired at most once; one that is not available (NaN) for a row is not offered to it, and drops
    out of the likelihood of a training row. Numeric covariates are cut into codes, as the
    original quantises its observations.

    Where the original leaves the choice open: the frequencies of the codes in a component are drawn
    towards those in its class; the number of components and that amount are chosen by the
    probability of held-out classes rather than of held-out covariates, and a class is the average
    of mixtures from several starts, both of which lower the total cost; and a second look ahead is
    offered. It costs more to decide and need not pay on real data: it finds covariates that only
    pay together, in the model.

    Parameters
    ----------
    n_components : int or None, default=None
        Components of each mixture; None chooses 1, 2, 4 or 8 by held-out log-loss.
    smoothing : float or None, default=None
        Pseudo-rows that draw a component towards its class; None chooses 3, 12 or 40 by
        held-out log-loss.
    n_codes : int, default=10
        Most codes of a numeric covariate.
    lookahead : int, default=1
        1 weighs each covariate as if it were the last, 2 as if one more might follow.
    cv : int, default=5
        Number of folds for the held-out log-loss.
    n_init : int, default=5
        Random starts, and mixtures that are averaged, in each class.
    random_state : int, default=0
        Seed of folds and starts.

    Attributes
    ----------
    model_ : HiddenStates
        The hidden states.
    n_components_ : int
        What was chosen.
    smoothing_ : float
        Likewise.

    References
    ----------
    S. Ji and L. Carin, "Cost-sensitive feature acquisition and classification", Pattern
    Recognition 40, 2007.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import POMDPClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = POMDPClassifier(costs, n_components=2, smoothing=12.0).fit(X[:300], y[:300])
    >>> policy.acquire(X[300:]).acquired.shape
    (468, 8)
    """

    saved_fields: ClassVar[Fields] = {
        "codes_": Codes,
        "n_components_": int,
        "smoothing_": float,
        "model_": HiddenStates,
    }

    takes_decisions = False

    constraints: ClassVar[Constraints] = {
        "budget": amount,
        "n_components": maybe(whole(1)),
        "smoothing": maybe(finite(above=0)),
        "n_codes": whole(2),
        "lookahead": _one_or_two,
        "cv": whole(2),
        "n_init": whole(1),
        "random_state": whole(0),
        "verbose": whole(0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        budget: float | None = None,
        n_components: int | None = None,
        smoothing: float | None = None,
        n_codes: int = 10,
        lookahead: int = 1,
        cv: int = 5,
        n_init: int = 5,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.n_components = n_components
        self.smoothing = smoothing
        self.n_codes = n_codes
        self.lookahead = lookahead
        self.cv = cv
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    @one_blas_thread
    @prints_progress
    def fit(self, X: Any, y: Any) -> Self:
        """Fit a mixture to the rows of each class."""
        training = self.begin_fit(X, y)
        numbers = N_COMPONENTS if self.n_components is None else (self.n_components,)
        amounts = SMOOTHING if self.smoothing is None else (self.smoothing,)
        rng = np.random.default_rng(self.random_state)
        self.codes_ = fit_codes(training.encoded, self.encoder_, self.n_codes)
        codes, labels = self.codes_.transform(training.encoded), training.y.astype(np.intp)
        candidates = [(k, amount) for k in numbers for amount in (amounts if k > 1 else (1.0,))]
        fold = np.empty(len(labels), dtype=np.intp)
        for label in (0, 1):
            own = np.flatnonzero(labels == label)
            fold[own] = rng.permutation(len(own)) % self.cv
        if training.groups is not None:
            fold = shuffled_folds(training.y, self.cv, self.random_state, training.groups)
        settings = _choose(codes, labels, self.codes_.sizes, candidates, fold, self.n_init, rng)
        self.n_components_, self.smoothing_ = settings
        self.model_ = fit_states(codes, labels, self.codes_.sizes, *settings, self.n_init, rng)
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> BeliefDecider:
        """Give the decider that decides by what was learned."""
        return BeliefDecider(terms, self.codes_, self.model_, self.lookahead)


@dataclass(frozen=True, eq=False)
class BeliefDecider(ObservedDecider):
    """A decider that looks a few steps ahead from what is believed of the hidden state.

    Attributes
    ----------
    codes : how values become codes.
    model : the hidden states.
    lookahead : how many steps.
    """

    codes: Codes
    model: HiddenStates
    lookahead: int

    def read(self, encoded: Floats) -> Ints:
        """The codes of encoded rows."""
        return self.codes.transform(encoded)

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        belief = self.model.beliefs(state.values, state.acquired)
        covariate = next_covariate(
            self.model, belief, state.acquired, state.available, self.costs, self.lookahead
        )
        positive = belief[:, self.model.label == 1].sum(axis=1)
        negative = belief[:, self.model.label == 0].sum(axis=1)
        with np.errstate(divide="ignore"):
            return Decision(covariate, np.log(positive) - np.log(negative))


def next_covariate(
    model: HiddenStates,
    belief: Floats,
    acquired: Bools,
    available: Bools,
    costs: CostTable,
    lookahead: int,
) -> Ints:
    """Covariate of least expected cost for each row, or `STOP` if classifying now is cheaper."""
    now = _risk(model, belief, costs)
    future = future_costs(model, belief, acquired, available, costs, lookahead)
    best = np.argmin(future, axis=1)
    gain = now - future[np.arange(len(best)), best]
    return np.where(gain > _ROUNDING * np.ptp(costs.matrix), best, STOP)


def future_costs(
    model: HiddenStates,
    belief: Floats,
    acquired: Bools,
    available: Bools,
    costs: CostTable,
    lookahead: int,
) -> Floats:
    """Expected cost from here on if each covariate comes next, shape (rows, covariates).

    Infinite where the covariate was acquired already or is not available.
    """
    emission = np.exp(model.log_emission)
    if lookahead == 1:
        by_label = [(belief * costs.matrix[model.label, k]) @ emission for k in (0, 1)]
        after = np.minimum(*by_label)
    else:
        after = np.empty((len(belief), emission.shape[1]))
        for code, covariate in enumerate(np.repeat(np.arange(len(model.sizes)), model.sizes)):
            joint = belief * emission[:, code]
            mass = joint.sum(axis=1)
            belief_then = joint / mass[:, None]
            acquired_then = acquired.copy()
            acquired_then[:, covariate] = True
            continues = future_costs(
                model, belief_then, acquired_then, available, costs, lookahead - 1
            )
            stop = _risk(model, belief_then, costs)
            after[:, code] = mass * np.minimum(stop, continues.min(axis=1))
    future = costs.of_next(acquired) + np.add.reduceat(after, model.first, axis=1)
    future[acquired | ~available] = np.inf
    return future


def _risk(model: HiddenStates, belief: Floats, costs: CostTable) -> Floats:
    risk: Floats = (belief @ costs.matrix[model.label]).min(axis=1)
    return risk


class ClassMixture(NamedTuple):
    """Components of one class."""

    log_weight: Floats
    log_emission: Floats


def indicators_of(codes: Ints, sizes: Ints) -> csr_array:
    """One column per code of each covariate, 1 where the row has it; unknown codes have none."""
    row, covariate = np.nonzero(codes != UNKNOWN)
    column = (np.cumsum(sizes) - sizes)[covariate] + codes[row, covariate]
    return csr_array((np.ones(len(row)), (row, column)), shape=(len(codes), sizes.sum()))


def fit_mixture(
    indicators: csr_array,
    prior: Floats,
    sizes: Ints,
    n_components: int,
    smoothing: float,
    rng: np.random.Generator,
) -> ClassMixture:
    """EM from a random start; each component is given `smoothing` pseudo-rows that follow `prior`.

    It maximises Σ_rows log Σ_k w_k P(row | k) + smoothing · Σ_k Σ_codes prior log P(code | k)
    + Σ_k log w_k.
    """
    n = indicators.shape[0]
    membership = rng.dirichlet(np.full(n_components, 0.5), size=n)
    objective = -np.inf
    for _ in range(_EM_STEPS):
        members = membership.sum(axis=0) + 1.0
        log_weight = np.log(members / members.sum())
        counts = (indicators.T @ membership).T + smoothing * prior
        log_emission = np.log(_shares(counts, sizes))
        log_joint = log_weight + indicators @ log_emission.T
        log_row = logsumexp(log_joint, axis=1, keepdims=True)
        before = objective
        objective = float(
            log_row.sum() + smoothing * (log_emission @ prior).sum() + log_weight.sum()
        )
        if objective - before < _EM_TOLERANCE * n:
            break
        membership = np.exp(log_joint - log_row)
    return ClassMixture(log_weight, log_emission)


def fit_states(
    codes: Ints,
    labels: Ints,
    sizes: Ints,
    n_components: int,
    smoothing: float,
    n_init: int,
    rng: np.random.Generator,
) -> HiddenStates:
    """Hidden states of both classes; a class is the average of mixtures from random starts."""
    indicators = indicators_of(codes, sizes)
    everyone = _shares(np.asarray(indicators.sum(axis=0)) + 1e-3, sizes)
    label, log_weight, log_emission = [], [], []
    for k in (0, 1):
        own = indicators[np.flatnonzero(labels == k)]
        prior = _shares(own.sum(axis=0) + _CLASS_SMOOTHING * everyone, sizes)
        starts = n_init if n_components > 1 else 1
        log_share = np.log(own.shape[0] / len(labels) / starts)
        for _ in range(starts):
            mixture = fit_mixture(own, prior, sizes, n_components, smoothing, rng)
            label.append(np.full(n_components, k))
            log_weight.append(log_share + mixture.log_weight)
            log_emission.append(mixture.log_emission)
    return HiddenStates(
        np.concatenate(label), np.concatenate(log_weight), np.vstack(log_emission), sizes
    )


def _choose(
    codes: Ints,
    labels: Ints,
    sizes: Ints,
    candidates: list[tuple[int, float]],
    fold: Ints,
    n_init: int,
    rng: np.random.Generator,
) -> tuple[int, float]:
    """Number of components and smoothing under which the classes of held-out rows are likeliest."""
    if len(candidates) == 1:
        return candidates[0]
    log_loss = np.zeros(len(candidates))
    for k in range(int(fold.max()) + 1):
        inside, outside = fold == k, fold != k
        for number, settings in enumerate(candidates):
            model = fit_states(codes[outside], labels[outside], sizes, *settings, n_init, rng)
            belief = model.beliefs(codes[inside], codes[inside] != UNKNOWN)
            true = (belief * (model.label == labels[inside, None])).sum(axis=1)
            log_loss[number] -= np.log(np.maximum(true, _LEAST_BELIEF)).sum()
        report_progress("fold", k + 1, int(fold.max()) + 1)
    return candidates[int(log_loss.argmin())]


def _shares(counts: Floats, sizes: Ints) -> Floats:
    """Counts divided by their sum over each covariate's codes (the last axis)."""
    total = np.add.reduceat(counts, np.cumsum(sizes) - sizes, axis=-1)
    shares: Floats = counts / np.repeat(total, sizes, axis=-1)
    return shares
