"""What is decided about rows, and by what: the rules of a decision, states of rows, and `Decider`.

A decider is a few pure functions over many rows at once: `begin` gives the state of rows that have
some covariates, `decide` says for each row which covariates come next or that it stops, and with
which log-odds; `advance` gives the state of the rows that continue. It is frozen and holds
everything that a decision depends on: fitting makes one, a search makes others of it, and threads
share it.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.families import family_at
from adacos.kernels.class_risk import best_label, least_risk, probabilities
from adacos.kernels.namespace import expit, like, whole
from adacos.kernels.ties import reaches_odds
from adacos.reasons import Reasons
from adacos.tables.encoder import TableEncoder
from adacos.typing import Bools, Floats, Ints

State = TypeVar("State")
Kind = TypeVar("Kind")

# A decider of which only itself knows what its states are; what holds one does not look at them.
# Python's types have no other word for it, so that `Any` is here and nowhere else.
AnyDecider: TypeAlias = "Decider[Any]"

# Of one table of rows what deciders keep for other costs, by model and by rows that begin alike.
Kept: TypeAlias = dict[int, dict[bytes, object]]

# In place of a covariate: stop and classify.
STOP = -1
# In place of a label: that of the rule.
BY_RULE = -1
# A whole number as text; with a zero in front it would be a code.
_WHOLE = re.compile(r"-?[1-9][0-9]{0,18}|0")

# Of fields that were added later: without a value they leave a digest as it was.
_IF_GIVEN = "digested_if_given"

# Number of the way in which digests are made. It rises whenever the digest of an unchanged model
# changes: with the name of a decider, with its fields and those of what it holds.
DIGEST_SCHEME = 3
# Fields that have another name since model format 4, by the name that they had.
RENAMED_FIELDS = {
    "leave_out_": "cost_estimates_",
    "leave_out_cost_": "out_of_fold_cost_",
    "leave_out_log_loss_": "out_of_fold_log_loss_",
    "leave_out_log_odds": "out_of_fold_log_odds",
    "leave_out_proba_": "out_of_fold_proba_",
}
_FIRST_NAMES = {new: old for old, new in RENAMED_FIELDS.items()}


@dataclass(frozen=True)
class DecisionRule:
    """How log-odds become a label, and the costs by which acquisitions are weighed.

    Parameters
    ----------
    matrix : ndarray of shape (n_classes, n_classes) or (n_classes, n_decisions)
        Misclassification costs C[y, label] in force: the user's, or those that a target recall
        implies.
    threshold : float, default=None
        Probability at or above which the label is the second class; None for Bayes' rule of the
        matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import DecisionRule
    >>> rule = DecisionRule(np.array([[0.0, 100.0], [900.0, 0.0]]))
    >>> rule.label(np.log([1 / 19, 1 / 4]))
    array([0, 1])
    >>> rule.risk(np.log([1 / 19, 1 / 4])).round(1)
    array([45., 80.])
    """

    matrix: Floats
    threshold: float | None = None

    @property
    def always_positive(self) -> bool:
        """Whether every row is given the second class."""
        return self.threshold == 0

    def label(self, log_odds: Floats) -> Ints:
        """Give the number of each row's label, 0, 1, …

        Parameters
        ----------
        log_odds : ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
            Of the second class; with three or more classes of each later class against the first.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            The numbers.
        """
        if self.threshold is None:
            return best_label(log_odds, self.matrix)
        label: Ints = whole(reaches_odds(expit(log_odds), expit(-log_odds), self.threshold))
        return label

    def risk(self, log_odds: Floats) -> Floats:
        """Give the expected misclassification cost of the label of each row.

        Parameters
        ----------
        log_odds : ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
            As for `label`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The costs.
        """
        if self.threshold is None:
            return least_risk(log_odds, self.matrix)
        p, label, matrix = expit(log_odds), self.label(log_odds), like(log_odds, self.matrix)
        risk: Floats = (1 - p) * matrix[0, label] + p * matrix[1, label]
        return risk

    def restated(self, stated: Floats, matrix: Floats) -> DecisionRule:
        """Give the rule where other misclassification costs are stated.

        What a target recall made of the stated costs stays: the cut-off, and so the false-negative
        cost in proportion to the false-positive cost, or the surcharges.

        Parameters
        ----------
        stated : ndarray of shape (n_classes, n_classes)
            The costs that were stated.
        matrix : ndarray of shape (n_classes, n_classes)
            The costs that are stated now.

        Returns
        -------
        DecisionRule
            Another rule.
        """
        if stated.shape != (2, 2) or np.array_equal(self.matrix, stated):
            return DecisionRule(matrix + (self.matrix - stated), self.threshold)
        times = (matrix[0, 1] - matrix[0, 0]) / (self.matrix[0, 1] - self.matrix[0, 0])
        missed = matrix[1, 1] + times * (self.matrix[1, 0] - self.matrix[1, 1])
        in_force = np.array([matrix[0], [missed, matrix[1, 1]]])
        return DecisionRule(in_force, self.threshold)

    def answer(self, log_odds: Floats, fixed: Ints) -> tuple[Ints, Floats]:
        """Give the number of each row's label and its expected misclassification cost.

        Parameters
        ----------
        log_odds : ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
            As for `label`.
        fixed : ndarray of int of shape (n_rows,)
            Labels that the decider fixes; `BY_RULE` where this rule decides.

        Returns
        -------
        tuple of ndarray
            Labels and costs.
        """
        label, risk = self.label(log_odds), self.risk(log_odds)
        rows = np.flatnonzero(fixed != BY_RULE) if isinstance(fixed, np.ndarray) else ()
        if len(rows):
            label, risk = label.copy(), risk.copy()
            label[rows] = fixed[rows]
            p = probabilities(log_odds[rows].reshape(len(rows), -1))
            risk[rows] = (p * self.matrix[:, fixed[rows]].T).sum(axis=1)
        return label, risk


def probability_at(log_odds: Floats) -> Floats:
    """P(second class) of each row, or with three or more classes that of each, (rows, K)."""
    return family_at(log_odds).probability(log_odds)


class Rows(NamedTuple):
    """Rows that have the same covariates: what `Decider.begin` is given.

    Parameters
    ----------
    encoded : ndarray of shape (n_rows, n_encoded)
        Encoded values, NaN where there is none. Those that a row does not have may be there all the
        same, so that `advance` can read them later; a decision must not look at them.
    available : ndarray of bool of shape (n_rows, n_covariates)
        Mask of what can be acquired or is there.
    have : ndarray of bool of shape (n_covariates,)
        Mask of what every row has, as far as it is available.
    known : ndarray of bool of shape (n_covariates,)
        Mask of what was known from the start, at no cost; part of `have`.
    numbers : ndarray of int of shape (n_rows,), default=None
        Their places in the table; None for a row that comes alone.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import Rows
    >>> everything = np.ones((2, 2), dtype=bool)
    >>> age_only = np.array([True, False])
    >>> rows = Rows(np.array([[50.0, 7.0], [60.0, 8.0]]), everything, age_only, age_only)
    >>> np.where(rows.have, rows.encoded, np.nan)
    array([[50., nan],
           [60., nan]])
    """

    encoded: Floats
    available: Bools
    have: Bools
    known: Bools
    numbers: Ints | None = None


class Decision(NamedTuple):
    """What comes next for each row.

    Parameters
    ----------
    covariates : ndarray of int of shape (n_rows,) or (n_rows, k)
        Covariates to acquire, in this order, or `STOP`. A row that stops has `STOP` first. They are
        ordered together; where waiting costs nothing, a consultation asks for the first only. One
        that is not available is passed over, at no cost.
    log_odds : ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
        Of the second class, if the row stopped now; with three or more classes of each later class
        against the first.
    stage : int or ndarray of int, default=None
        Number of the set at which the rows are, of each or of all; None for the number of
        acquisitions.
    weighed : object, default=None
        What the decision was taken by, for the reasons.
    label : ndarray of int of shape (n_rows,), default=None
        Numbers of labels that the decider fixes for rows that stop, -1 where the rule decides;
        None where it decides everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import STOP, Decision
    >>> Decision(np.array([2, STOP]), np.array([0.1, -3.0])).covariates
    array([ 2, -1])
    """

    covariates: Ints
    log_odds: Floats
    stage: int | Ints | None = None
    weighed: object = None
    label: Ints | None = None

    def weighed_as(self, kind: type[Kind]) -> Kind | None:
        """Give what the decision was taken by, if it is of this kind.

        Parameters
        ----------
        kind : type
            The kind.

        Returns
        -------
        object or None
            What it was taken by; None if it is something else.
        """
        return self.weighed if isinstance(self.weighed, kind) else None


@dataclass(frozen=True)
class ObservedState:
    """The state of a decider that looks at what was acquired and nothing else.

    Parameters
    ----------
    values : ndarray
        What is read of the rows; the decider must not look at what was not acquired.
    available : ndarray of bool of shape (n_rows, n_covariates)
        Mask of what can be acquired.
    acquired : ndarray of bool of shape (n_rows, n_covariates)
        Mask of what there is, known values included.
    at_any_price : ndarray of bool, default=None
        Mask of what could be acquired by who can pay it, where `available` holds less.
    unseen : ndarray of bool, default=None
        Mask of values that are categories never seen in training: once acquired they say nothing,
        and are neither acquired nor available from then on. None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import ObservedState
    >>> everything = np.ones((2, 2), dtype=bool)
    >>> state = ObservedState(np.array([[5.0, 7.0], [6.0, 8.0]]), everything, ~everything)
    >>> state.after(np.array([False, True]), np.array([[1]])).acquired
    array([[False,  True]])
    """

    values: NDArray[Any]
    available: Bools
    acquired: Bools
    at_any_price: Bools | None = field(default=None, kw_only=True)
    unseen: Bools | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, values: NDArray[Any], rows: Rows, encoder: TableEncoder) -> ObservedState:
        """Give the state of rows that have some covariates.

        Parameters
        ----------
        values : ndarray of shape (n_rows, any)
            What is read of the rows.
        rows : Rows
            The rows.
        encoder : TableEncoder
            What was learned about the columns.

        Returns
        -------
        ObservedState
            Their state.
        """
        acquired = np.tile(rows.have, (len(rows.encoded), 1)) & rows.available
        unseen = encoder.unseen(rows.encoded)
        return ObservedState(values, rows.available, acquired, unseen=unseen)._read()

    def _read(self) -> Self:
        """The same rows after what was acquired and says nothing was put away."""
        if self.unseen is None:
            return self
        silent = self.acquired & self.unseen
        return replace(self, available=self.available & ~silent, acquired=self.acquired & ~silent)

    def after(self, going: Bools, covariates: Ints) -> ObservedState:
        """Give the rows that continue, with what they acquired.

        Parameters
        ----------
        going : ndarray of bool of shape (n_rows,)
            Mask of the rows that continue.
        covariates : ndarray of int of shape (n_going, k)
            What each of them acquires, as far as it is available.

        Returns
        -------
        ObservedState
            Their state.
        """
        every = self.available if self.at_any_price is None else self.at_any_price
        acquired, available = self.acquired[going], every[going]
        for column in covariates.T:
            rows = np.flatnonzero((column != STOP) & available[np.arange(len(column)), column])
            acquired[rows, column[rows]] = True
        return replace(
            self,
            values=self.values[going],
            available=available,
            acquired=acquired,
            at_any_price=None,
            unseen=None if self.unseen is None else self.unseen[going],
        )._read()


# The golden ratio in units of 2^-64: its multiples are spread most evenly between whole numbers.
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Mixture:
    """Which share of the rows walks with a lower multiplier than the others.

    Attributes
    ----------
    multiplier : by how much more than once covariate costs count for these rows.
    share : how many of all rows they are.
    seed : what the draw depends on besides the key of a row.
    """

    multiplier: float
    share: float
    seed: int

    def spends_more(self, key: Hashable) -> bool:
        """Whether the row of this key is one of them; "17" and 17 are one key, as in a file."""
        if isinstance(key, str) and _WHOLE.fullmatch(key):
            key = int(key)
        if isinstance(key, int | np.integer):
            # In integers, because the product has no digits left behind the point as a float.
            turned = int(key) * _GOLDEN % 2**64 / 2.0**64
            return (_uniform(f"{self.seed}") + turned) % 1.0 < self.share
        return _uniform(f"{self.seed}:{key}") < self.share

    def rows(self, keys: Sequence[Hashable]) -> Bools:
        """Which rows of these keys are among them."""
        return np.array([self.spends_more(key) for key in keys], dtype=np.bool_)


def _uniform(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") / 2.0**64


class Terms(NamedTuple):
    """What every decider is made of.

    Parameters
    ----------
    classes : ndarray
        The classes, of which decisions know the numbers only.
    encoder : TableEncoder
        What was learned about the columns.
    costs : CostTable
        The costs as given, bound to the columns.
    rule : DecisionRule
        How log-odds become a label, and the misclassification costs in force.
    multiplier : float, default=0.0
        How many times more covariate costs count when acquisitions are weighed.
    budget : float, default=None
        What a row may pay at most; None for any amount.
    mean_budget : float, default=None
        The mean budget that the multiplier keeps, for the reasons.
    mixture : Mixture, default=None
        Which rows are decided about with a lower multiplier, see `adacos.deciders.mixing`.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> policy = AdaCOSClassifier(Costs(prices), budget=5.0, cv=2, strengths="common").fit(X, y)
    >>> policy.decider_.terms.budget
    5.0
    """

    classes: NDArray[Any]
    encoder: TableEncoder
    costs: CostTable
    rule: DecisionRule
    multiplier: float = 0.0
    budget: float | None = None
    mean_budget: float | None = None
    mixture: Mixture | None = None


@dataclass(frozen=True, eq=False)
class Decider(ABC, Generic[State]):
    """Everything that decisions about rows depend on.

    A subclass adds what was learned as fields, and implements `begin`, `decide`, `advance` and
    `limit`; `ObservedDecider` leaves only `decide` to implement.

    Parameters
    ----------
    terms : Terms
        What every decider is made of: classes, encoder, costs, rule, multiplier and budgets.

    See Also
    --------
    BasePolicy : An estimator that makes a decider.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> decider = AdaCOSClassifier(costs, cv=2, strengths="common").fit(X, y).decider_
    >>> decider.multiplier, decider.with_multiplier(0.5).multiplier
    (0.0, 0.5)
    """

    terms: Terms

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, of which decisions know the numbers only."""
        return self.terms.classes

    @property
    def decisions(self) -> NDArray[Any]:
        """What the numbers of labels stand for: the classes, or what is decided instead."""
        named = self.terms.costs.decisions
        return self.terms.classes if named is None else np.array(named)

    @property
    def encoder(self) -> TableEncoder:
        """What was learned about the columns."""
        return self.terms.encoder

    @property
    def costs(self) -> CostTable:
        """The costs as given, bound to the columns."""
        return self.terms.costs

    @property
    def rule(self) -> DecisionRule:
        """How log-odds become a label, and the misclassification costs in force."""
        return self.terms.rule

    @property
    def multiplier(self) -> float:
        """How many times more covariate costs count when acquisitions are weighed."""
        return self.terms.multiplier

    @property
    def budget(self) -> float | None:
        """What a row may pay at most; None for any amount."""
        return self.terms.budget

    @property
    def opening(self) -> Ints:
        """Covariates that every row acquires together, before the first decision."""
        return np.empty(0, dtype=np.intp)

    @property
    def answers_by_rule(self) -> bool:
        """Whether the rule gives all answers; else the decider fixes labels of its own."""
        return True

    @property
    def takes_tensors(self) -> bool:
        """Whether complete rows are decided on the device of a tensor; others are in numpy."""
        return False

    @property
    def weighed_costs(self) -> CostTable:
        """The costs by which acquisitions are weighed: covariates count 1 + `multiplier` times."""
        return self.costs.scaled(1 + self.multiplier)

    @property
    def lists(self) -> tuple[Bools, Bools]:
        """Masks of what every row is asked first, and of what none is asked, by a person's wish."""
        nothing = np.zeros(len(self.encoder.names), dtype=np.bool_)
        return nothing, nothing

    def admitted(self, rows: Rows) -> Rows:
        """Give the rows as the decider may see them.

        Parameters
        ----------
        rows : Rows
            The rows, with everything that they have.

        Returns
        -------
        Rows
            The same rows, without what nobody may be asked.
        """
        return rows

    @abstractmethod
    def begin(self, rows: Rows) -> State:
        """Give the state of rows that have some covariates.

        Parameters
        ----------
        rows : Rows
            The rows, which have the same covariates.

        Returns
        -------
        state
            Their state.
        """

    @abstractmethod
    def decide(self, state: State) -> Decision:
        """Say what comes next for each row of a state, and its log-odds if it stopped now.

        Only what was acquired may be looked at; what is not available cannot be acquired.

        Parameters
        ----------
        state : state
            The rows.

        Returns
        -------
        Decision
            What comes next for each.
        """

    @abstractmethod
    def advance(self, state: State, going: Bools, covariates: Ints) -> State:
        """Give the state of the rows that continue, after what they acquire.

        Parameters
        ----------
        state : state
            The rows.
        going : ndarray of bool of shape (n_rows,)
            Mask of the rows that continue.
        covariates : ndarray of int of shape (n_going, k)
            What each of them acquires, as far as it is available.

        Returns
        -------
        state
            Their state.
        """

    @abstractmethod
    def limit(self, state: State, left: Floats) -> State:
        """Give a state of rows that can pay that much more, at most.

        Parameters
        ----------
        state : state
            The rows.
        left : ndarray of shape (n_rows,)
            What each can still pay.

        Returns
        -------
        state
            The same rows, for which what costs more cannot be acquired.
        """

    def log_odds(self, state: State) -> Floats:
        """Give the log-odds of rows if they stopped now, whatever comes next for them.

        Parameters
        ----------
        state : state
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
            The log-odds.
        """
        return self.decide(state).log_odds

    def gain(self, state: State) -> Floats | None:
        """Give what continuing saves each row, where exactly that decides whether it continues.

        Parameters
        ----------
        state : state
            The rows, of which everything is available.

        Returns
        -------
        ndarray of shape (n_rows,) or None
            Positive for the rows that continue; None where rows are decided about otherwise.
        """
        return None

    def explain(self, state: State, decision: Decision) -> Reasons:
        """Say why it decides so about one row.

        Parameters
        ----------
        state : state
            The row.
        decision : Decision
            What was decided.

        Returns
        -------
        Reasons
            The reasons, empty where it does not weigh.
        """
        return Reasons()

    def with_rule(self, rule: DecisionRule) -> Self:
        """Give the decider that decides by another rule.

        Parameters
        ----------
        rule : DecisionRule
            The rule.

        Returns
        -------
        Decider
            Another decider.
        """
        return replace(self, terms=self.terms._replace(rule=rule))

    def with_multiplier(self, multiplier: float) -> Self:
        """Give the decider by which covariate costs count more.

        Parameters
        ----------
        multiplier : float
            How many times more they count.

        Returns
        -------
        Decider
            Another decider.
        """
        return replace(self, terms=self.terms._replace(multiplier=multiplier))

    def with_costs(self, costs: CostTable) -> Self:
        """Give the decider that decides by other costs, with everything else that was learned.

        Parameters
        ----------
        costs : CostTable
            The costs, bound to the same columns.

        Returns
        -------
        Decider
            Another decider.
        """
        return replace(self, terms=self._terms_at(costs))

    def remembering(self, kept: Kept) -> AnyDecider:
        """Give the decider with the states of rows that were kept at other costs.

        Parameters
        ----------
        kept : dict
            What was kept of one table of rows, by model; filled.

        Returns
        -------
        Decider
            Another decider where something can be kept, else this one.
        """
        return self

    def _terms_at(self, costs: CostTable) -> Terms:
        """The terms with other costs."""
        rule = self.rule.restated(self.costs.matrix, costs.matrix)
        return self.terms._replace(costs=costs, rule=rule)

    @cached_property
    def arms(self) -> tuple[Self, Self]:
        """The deciders that a mixture consists of, the second for the rows that spend more."""
        mixture = self.terms.mixture
        if mixture is None:
            return self, self
        first = replace(self, terms=self.terms._replace(mixture=None))
        return first, first.with_multiplier(mixture.multiplier)

    def of_key(self, key: Hashable) -> Self:
        """Give the decider about the row of a key: one of two where there is a mixture.

        Parameters
        ----------
        key : str or int
            What the row is known by.

        Returns
        -------
        Decider
            The decider, without a mixture.
        """
        mixture = self.terms.mixture
        return self.arms[mixture is not None and mixture.spends_more(key)]

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that are the same for all that decide alike."""
        return digest_of(self)

    def __getstate__(self) -> dict[str, object]:
        """What goes into a pickle: the fields, without what is computed from them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def __setstate__(self, state: dict[str, object]) -> None:
        # The fields are set as the initialiser sets them.
        make: Callable[..., None] = type(self).__init__
        make(self, **state)


@dataclass(frozen=True, eq=False)
class ObservedDecider(Decider[ObservedState]):
    """A decider whose state is what was acquired and nothing else; a subclass adds `decide`.

    Parameters
    ----------
    terms : Terms
        What every decider is made of.

    See Also
    --------
    BasePolicy : An estimator that makes a decider.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import STOP, Decision, ObservedDecider
    >>> class Cheapest(ObservedDecider):
    ...     def decide(self, state):
    ...         first = int(np.argmin(self.costs.covariates))
    ...         wanted = state.available[:, first] & ~state.acquired[:, first]
    ...         return Decision(np.where(wanted, first, STOP), np.zeros(len(wanted)))
    """

    def read(self, encoded: Floats) -> NDArray[Any]:
        """Give what is read of encoded rows.

        Parameters
        ----------
        encoded : ndarray of shape (n_rows, n_encoded)
            Encoded values, NaN where there is none.

        Returns
        -------
        ndarray
            One row each.
        """
        return encoded

    def begin(self, rows: Rows) -> ObservedState:
        """State of rows that have some covariates."""
        return ObservedState.of(self.read(rows.encoded), rows, self.encoder)

    def advance(self, state: ObservedState, going: Bools, covariates: Ints) -> ObservedState:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return state.after(going, covariates)

    def limit(self, state: ObservedState, left: Floats) -> ObservedState:
        """A state of rows that can pay that much more: what costs more is not available."""
        payable = self.costs.of_next(state.acquired) <= left[:, None]
        available = state.available & (state.acquired | payable)
        return replace(state, available=available, at_any_price=state.available)


def digest_of(value: object) -> str:
    """Sixteen hexadecimal digits that are the same for equal values."""
    digest = hashlib.sha256()
    _add(value, digest)
    return digest.hexdigest()[:16]


def _digested(value: object) -> dict[str, object]:
    """What an object is made of; a field that was renamed has its first name."""
    if is_dataclass(value):
        return {
            f.metadata.get("first_name", first_name(f.name)): getattr(value, f.name)
            for f in fields(value)
            if f.init and (getattr(value, f.name) is not None or not f.metadata.get(_IF_GIVEN))
        }
    return {first_name(name): item for name, item in vars(value).items()}


def first_name(name: str) -> str:
    """The name by which digests know a field that has another one since."""
    return _FIRST_NAMES.get(name, name)


def _add(value: object, digest: hashlib._Hash) -> None:
    """Add a value to a digest, part by part."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for name in sorted(value, key=str):
            digest.update(f"{name}:".encode())
            _add(value[name], digest)
    elif isinstance(value, (list, tuple, np.ndarray)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _add(item, digest)
    elif hasattr(value, "__dict__"):
        # Our values are told apart by their fields, so that their classes may be renamed.
        own = type(value).__module__.startswith("adacos.") and not isinstance(value, Decider)
        digest.update(b"{" if own else type(value).__name__.encode())
        _add(_digested(value), digest)
    else:
        # Numbers of numpy are written differently by its versions.
        digest.update(repr(value.item() if isinstance(value, np.generic) else value).encode())
