"""The optimal policy (Theorem 1) for discrete covariates, by dynamic programming.

See `adacos.kernels.planning`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from adacos.costs import Costs
from adacos.datasets import DiscreteProblem
from adacos.deciders.plan import PlanDecider
from adacos.decision import Terms
from adacos.exceptions import InvalidInputError
from adacos.kernels.threads import one_blas_thread
from adacos.models.plans import PlanTable, tabulate
from adacos.policies.base import BasePolicy
from adacos.tables.codes import UNKNOWN, Codes, fit_codes, integer_codes
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Fields, Floats, Ints
from adacos.validation import Constraints, choice, finite, maybe, whole

ESTIMATORS = ("counts", "naive_bayes")
# More distinct values than this are taken for a measurement, not for a discrete covariate.
MAX_LEVELS = 12
# Per state: P(y, x_S) for both classes, W, its value, the action, and the log-odds.
_BYTES_PER_STATE = 2 * 8 + 8 + 8 + 1 + 8


class OptimalPolicyClassifier(BasePolicy):
    """The policy of least expected total cost for discrete covariates.

    It is exact for its joint distribution: with the true one given as `joint` no policy has a
    lower expected cost. Estimated from data it is optimal for the estimate. The label is the Bayes
    decision for the misclassification costs, and panels are charged as acquired.

    A value that is not available (NaN) cannot be acquired. Rows without the same covariates get
    the policy that is optimal for the covariates they have: one more dynamic programme for each
    pattern of missing values in the table.

    The number of states is Π(1 + levels), 3^p for p binary covariates: about 15 of them fit.

    Parameters
    ----------
    joint : {"counts", "naive_bayes"}, ndarray or DiscreteProblem, default="counts"
        "counts", "naive_bayes", an array P(y, x) of shape (2, levels of the first covariate,
        …), or a `DiscreteProblem`. With a given distribution the values of X must be the
        positions along the axes of the array (0, 1, …), and the rows only give names and
        classes.
    smoothing : float, default=1.0
        Pseudo-rows. Naive Bayes adds this many to each value of a covariate in each class.
        "counts" adds them to each cell (y, x), on average over cells: they are spread as naive
        Bayes has it, so that a cell with few rows falls back on naive Bayes. It counts complete
        rows only.
    n_codes : int or None, default=None
        None refuses a numeric covariate with more than 12 distinct values; a number cuts it
        into that many codes of about equal frequency. A number between two levels seen in
        training counts as the nearer one.
    max_memory : float, default=4.0
        GiB that the tables may take.

    Attributes
    ----------
    expected_cost_ : float
        Expected total cost of the policy, when everything is available.
    joint_ : ndarray
        P(y, x) that was used.
    table_ : PlanTable
        Optimal action and log-odds of every state.

    References
    ----------
    Theorem 1 in section 2.1 of D. Andrade and Y. Okajima, "Adaptive covariate acquisition for
    minimizing total cost of classification".

    Examples
    --------
    >>> from adacos import Costs
    >>> from adacos.datasets import make_value_dependent_problem
    >>> from adacos.rivals import OptimalPolicyClassifier
    >>> problem = make_value_dependent_problem(noise=0.05)
    >>> X, y = problem.sample(100, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=100, false_negative=100)
    >>> round(OptimalPolicyClassifier(costs, joint=problem).fit(X, y).expected_cost_, 6)
    11.0
    """

    saved_fields: ClassVar[Fields] = {
        "joint": DiscreteProblem | Any,
        "codes_": Codes,
        "joint_": Floats,
        "planned_": Ints,
        "table_": PlanTable,
    }

    constraints: ClassVar[Constraints] = {
        "smoothing": finite(above=0),
        "n_codes": maybe(whole(2)),
        "max_memory": finite(above=0),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        joint: Any = "counts",
        smoothing: float = 1.0,
        n_codes: int | None = None,
        max_memory: float = 4.0,
    ) -> None:
        self.costs = costs
        self.joint = joint
        self.smoothing = smoothing
        self.n_codes = n_codes
        self.max_memory = max_memory

    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Estimate or take over the joint distribution, and solve for the optimal policy."""
        training = self.begin_fit(X, y)
        if isinstance(self.joint, str):
            choice("joint", self.joint, ESTIMATORS)
            if self.n_codes is None:
                _refuse_measurements(training.encoded, self.encoder_.source, self.encoder_.names)
            self.codes_ = fit_codes(training.encoded, self.encoder_, self.n_codes or MAX_LEVELS)
            _check_memory(self.codes_.sizes, self.max_memory)
            codes = self.codes_.transform(training.encoded)
            labels = training.y.astype(np.intp)
            self.joint_ = naive_bayes(codes, labels, self.codes_.sizes, self.smoothing)
            if self.joint == "counts":
                self.joint_ = smoothed_counts(codes, labels, self.joint_, self.smoothing)
        else:
            self.joint_ = _checked_joint(self.joint, len(self.encoder_.names))
            _check_memory(np.array(self.joint_.shape[1:]), self.max_memory)
            self.codes_ = integer_codes(self.encoder_, self.joint_.shape[1:])
            self._refuse_other_values(training.encoded)
        self.planned_ = np.arange(len(self.encoder_.names))
        self.table_ = tabulate(self.joint_, training.costs)
        return self.finish_fit()

    @property
    def expected_cost_(self) -> float:
        """What a row is expected to cost under the plan."""
        return self.table_.expected_cost

    def make_decider(self, terms: Terms) -> PlanDecider:
        """Give the decider that decides by what was learned."""
        return PlanDecider(terms, self.codes_, self.planned_, self.joint_, self.table_)

    def _refuse_other_values(self, encoded: Floats) -> None:
        """The values of X must be places along the axes of the given distribution."""
        for covariate, size in enumerate(self.codes_.sizes):
            own = encoded[:, self.encoder_.source == covariate]
            if self.encoder_.kinds[covariate] == CATEGORICAL:
                fits = own.shape[1] == size
            else:
                fits = bool(np.isin(own[~np.isnan(own)], np.arange(size)).all())
            if not fits:
                raise InvalidInputError(
                    f"column {self.encoder_.names[covariate]!r}",
                    f"joint has {size} values for it, so its values must be 0, …, {size - 1}",
                    np.unique(own[~np.isnan(own)])[:10].tolist(),
                    "Code the column by position, or give joint with the axes of X.",
                )


def naive_bayes(codes: Ints, labels: Ints, sizes: Ints, smoothing: float) -> Floats:
    """P(y, x) with covariates independent in each class, from the known values of each."""
    joint: Floats = np.bincount(labels, minlength=2) / len(labels)
    for covariate, size in enumerate(sizes):
        known = codes[:, covariate] != UNKNOWN
        cell = labels[known] * size + codes[known, covariate]
        counts = np.bincount(cell, minlength=2 * size).reshape(2, size) + smoothing
        share = counts / counts.sum(axis=1, keepdims=True)
        joint = joint[..., None] * share.reshape(2, *[1] * covariate, size)
    return joint


def smoothed_counts(codes: Ints, labels: Ints, prior: Floats, smoothing: float) -> Floats:
    """P(y, x) from complete rows and `smoothing` pseudo-rows per cell, spread as in `prior`."""
    complete = (codes != UNKNOWN).all(axis=1)
    cells = np.ravel_multi_index((labels[complete], *codes[complete].T), prior.shape)
    counts = np.bincount(cells, minlength=prior.size).reshape(prior.shape)
    joint: Floats = counts + smoothing * prior.size * prior
    return np.asarray(joint / joint.sum())


def _refuse_measurements(encoded: Floats, source: Ints, names: tuple[str, ...]) -> None:
    for column, covariate in enumerate(source):
        values = encoded[:, column]
        distinct = len(np.unique(values[~np.isnan(values)]))
        if distinct > MAX_LEVELS:
            raise InvalidInputError(
                f"column {names[covariate]!r}",
                f"a discrete covariate has at most {MAX_LEVELS} distinct values",
                f"{distinct} distinct values",
                "Bin it, or pass n_codes=3, say, to have every such column cut into 3 codes.",
            )


def _check_memory(sizes: Ints, max_memory: float) -> None:
    n_states = float(np.prod(sizes + 1.0))
    needed = n_states * _BYTES_PER_STATE / 2**30
    if needed > max_memory:
        raise InvalidInputError(
            "X",
            f"the tables of all states (sets with values) must fit into {max_memory:g} GiB",
            f"{len(sizes)} covariates with {n_states:.2g} states, which take {needed:.2g} GiB",
            "Drop covariates, use fewer values per covariate, or raise max_memory.",
        )


def _checked_joint(joint: Any, n_covariates: int) -> Floats:
    table = joint.joint if isinstance(joint, DiscreteProblem) else joint
    try:
        table = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != n_covariates + 1 or table.shape[0] != 2:
        raise InvalidInputError(
            "joint",
            f"must be one of {ESTIMATORS}, a DiscreteProblem or an array P(y, x) with 2 classes "
            f"and one axis for each of {n_covariates} covariates",
            f"shape {table.shape}",
            "Put the class first, then the covariates in the order of the columns.",
        )
    if not (np.all(table >= 0) and np.isclose(table.sum(), 1.0)):
        raise InvalidInputError(
            "joint",
            "must hold probabilities that sum to 1",
            f"smallest {table.min():g}, sum {table.sum():g}",
            "Divide the array by its sum.",
        )
    if not np.all(table.reshape(2, -1).sum(axis=1) > 0):
        raise InvalidInputError(
            "joint",
            "both classes must have positive probability",
            table.reshape(2, -1).sum(axis=1).tolist(),
            "A class that never occurs needs no classifier.",
        )
    return table
