"""What a covariate is worth at its price and at others, and what a planned test could be worth.

A covariate is dropped by making it unavailable for every row: the policy acquires others in its
place, and the models integrate over its values. Its price is raised and lowered as other costs are
(`Decider.with_costs`). A new test is offered where the policy stops. With probabilities p of the
classes there and P(t | y) of its results, it saves of the expected cost of the answer

    min over d of Σ_y p_y C[y, d]  -  Σ_t min over d of Σ_y p_y P(t | y) C[y, d],

if its result depends on nothing but the class. That is a lower bound of what it is worth: offered
earlier it could also replace questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.costs import CostTable
from adacos.deciders.mixing import run_mixed
from adacos.decision import AnyDecider, Kept
from adacos.document.blocks import Grid, fragment, plain_text
from adacos.engine import AcquisitionResult
from adacos.exceptions import InvalidInputError
from adacos.kernels.groups import standard_error
from adacos.kernels.threads import one_blas_thread
from adacos.metrics.evaluation import EvaluatedRows, drawn, held_out_rows
from adacos.policies.fitted import fitted_policy
from adacos.policies.information import with_error
from adacos.policies.recosting import charged_matrix
from adacos.typing import Floats
from adacos.validation import real

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy

# Doublings of a price after which a covariate counts as acquired at any price.
_MOST_DOUBLINGS = 40


@dataclass(frozen=True)
class CovariateWorth:
    """What one covariate is worth to a policy; means over rows.

    Parameters
    ----------
    covariate : str
        The covariate.
    price : float
        Its price.
    acquired, paid : float
        Share of the rows that acquire it, and what it costs per row.
    value : float
        By how much the policy expects it to lower the cost of the answers, per row.
    dropping, dropping_error : float
        How much more a row costs without it, and the standard error; below 0 it is not worth it.
    price_for_some, price_for_half : float or None
        Highest price at which some rows, and at which half of them, acquire it. None where that
        holds at no price; infinite where it holds at any.
    """

    covariate: str
    price: float
    acquired: float
    paid: float
    value: float
    dropping: float
    dropping_error: float
    price_for_some: float | None
    price_for_half: float | None


@dataclass(frozen=True)
class Worth:
    """What the covariates are worth, see `covariate_worth`.

    Parameters
    ----------
    covariates : tuple of CovariateWorth
        The covariates, the one that costs most to drop first.
    rows : int
        How many rows were looked at.

    See Also
    --------
    covariate_worth : Makes it.
    """

    covariates: tuple[CovariateWorth, ...]
    rows: int

    def __str__(self) -> str:
        return plain_text(self.table())

    def _repr_html_(self) -> str:
        return fragment([self.table()])

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain JSON values; an infinite price is the text "any".

        Returns
        -------
        dict
            The covariates, each a dict, and the number of rows.
        """
        return {
            "rows": self.rows,
            "covariates": [
                {key: "any" if value == np.inf else value for key, value in asdict(item).items()}
                for item in self.covariates
            ],
        }

    def table(self) -> Grid:
        """Give the results as a table of texts.

        Returns
        -------
        Grid
            One line for each covariate.
        """
        rows = tuple(
            (
                item.covariate,
                f"{item.price:.4g}",
                f"{item.acquired:.1%}",
                f"{item.paid:.4g}",
                f"{item.value:.4g}",
                with_error(item.dropping, item.dropping_error),
                _price(item.price_for_some),
                _price(item.price_for_half),
            )
            for item in self.covariates
        )
        header = ("covariate", "price", "acquired by", "paid", "value", "dropping it costs")
        return Grid(
            (*header, "some acquire it up to", "half up to"),
            rows,
            f"Means over {self.rows:,} rows. The value is what the policy expects to save.",
        )

    def plot(self, *, ax: Any = None, currency: str = "") -> Any:
        """Draw price, value and the price that some rows would still pay, by covariate.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        currency : str, default=""
            Currency of the axis.

        Returns
        -------
        Axes
            The axes.
        """
        from adacos.policies.sensitivity_figures import worth

        return worth(self, ax, currency)


def _price(price: float | None) -> str:
    """The highest price at which something holds, in words."""
    if price is None:
        return "at no price"
    return "any price" if price == np.inf else f"{price:.4g}"


def paid_by_covariate(costs: CostTable, result: AcquisitionResult) -> Floats:
    """What each row paid for each covariate, in the order in which it acquired them."""
    paid = np.zeros(result.acquired.shape)
    before = np.zeros_like(result.acquired)
    for step in range(result.order.shape[1]):
        rows = np.flatnonzero(result.order[:, step] >= 0)
        covariate = result.order[rows, step]
        after = before.copy()
        after[rows, covariate] = True
        paid[rows, covariate] = costs.of(after, given=before)[rows]
        before = after
    return paid


@one_blas_thread
def covariate_worth(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    *,
    tolerance: float = 0.01,
    groups: ArrayLike | None = None,
) -> Worth:
    """Say what each covariate is worth at its price, and up to which price it is acquired.

    Parameters
    ----------
    policy : policy
        A fitted policy; it is not changed.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on; at most 10,000 are used, drawn by class.
    y : array-like of shape (n_rows,)
        Their classes.
    tolerance : float, default=0.01
        How closely prices are found, as a share of them.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together.

    Returns
    -------
    Worth
        The covariates, the one that costs most to drop first.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that the policy was trained on.

    See Also
    --------
    new_test_worth : What a test that is not there yet may cost.
    sensitivity : What depends on the costs.

    Notes
    -----
    Nothing is learned again: a dropped covariate is unavailable, and at another price the order of
    a set sequence stays.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, covariate_worth, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> worth = covariate_worth(policy, X[1::2], y[1::2], tolerance=0.1)
    >>> worth.covariates[0].covariate
    'Age'
    """
    real("tolerance", tolerance, above=0, below=1)
    chosen = fitted_policy(policy).chosen
    rows = drawn(held_out_rows(policy, X, y, groups, "the values are"), 0)[0]
    decider, source = chosen.decider_, chosen.encoder_.source
    own = run_mixed(decider, rows.encoded)
    total, risk = _total(chosen, own, rows), own.expected_cost - own.cost
    paid = paid_by_covariate(chosen.cost_table_, own).mean(axis=0)
    found = []
    for k, name in enumerate(chosen.encoder_.names):
        acquired, value, more = own.acquired[:, k], 0.0, np.zeros(len(total))
        if acquired.any():
            encoded = rows.encoded.copy()
            encoded[:, source == k] = np.nan
            without = run_mixed(decider, encoded)
            more = _total(chosen, without, rows) - total
            value = float((without.expected_cost - without.cost - risk).mean())
        some, half = _highest_prices(decider, rows.encoded, k, tolerance)
        found.append(
            CovariateWorth(
                name,
                float(chosen.cost_table_.covariates[k]),
                float(acquired.mean()),
                float(paid[k]),
                value,
                float(more.mean()),
                standard_error(more, rows.groups),
                some,
                half,
            )
        )
    found.sort(key=lambda item: -item.dropping)
    return Worth(tuple(found), len(total))


def _total(policy: BasePolicy, result: AcquisitionResult, rows: EvaluatedRows) -> Floats:
    """What each row costs, covariates and the answer."""
    charged = charged_matrix(policy, policy.cost_table_.matrix)
    return np.asarray(result.cost + charged[rows.true, result.label])


def _highest_prices(
    decider: AnyDecider, encoded: Floats, k: int, tolerance: float
) -> tuple[float | None, float | None]:
    """The highest prices at which some rows, and at which half of them, acquire a covariate."""
    shares: dict[float, float] = {}
    states: Kept = {}
    # A copy at the same costs shares with those at other costs what does not depend on them.
    own = decider.with_costs(decider.costs)

    def share(price: float) -> float:
        if price not in shares:
            covariates = decider.costs.covariates.copy()
            covariates[k] = price
            at = own.with_costs(replace(decider.costs, covariates=covariates))
            result = run_mixed(at.remembering(states), encoded)
            shares[price] = float(result.acquired[:, k].mean())
        return shares[price]

    least = float(decider.costs.discount[k])
    stated = float(decider.costs.covariates[k])
    scale = stated or float(np.ptp(decider.rule.matrix)) * tolerance
    some = _highest(lambda price: share(price) > 0, least, scale, tolerance)
    return some, _highest(lambda price: share(price) >= 0.5, least, scale, tolerance)


def _highest(
    holds: Callable[[float], bool], least: float, scale: float, tolerance: float
) -> float | None:
    """The highest price at which something holds; None at none, infinite at any."""
    low, high = least, scale
    if not holds(low):
        return None
    doublings = 0
    while holds(high):
        low, high, doublings = high, 2 * high, doublings + 1
        if doublings == _MOST_DOUBLINGS:
            return np.inf
    while high - low > tolerance * max(high, scale):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class PricedTest:
    """A new test at one price; means over all rows.

    Parameters
    ----------
    price : float
        The price.
    acquired : float
        Share of the rows for which it is expected to save more than that.
    saving : float
        What these are expected to save, less the price.
    realised, error : float
        What they do save by their true classes, less the price, and the standard error.
    """

    price: float
    acquired: float
    saving: float
    realised: float
    error: float


@dataclass(frozen=True)
class NewTest:
    """What a new test may cost, see `new_test_worth`.

    Parameters
    ----------
    price_for_some : float
        Highest price at which it is worth introducing: some row is expected to save as much.
    price_for_half : float
        Highest price at which half of the rows are expected to save as much.
    price_for_all : float
        What it is expected to save on average: the highest price at which everyone can have it.
    realised_for_all, error : float
        The same by the true classes of the rows, and the standard error.
    points : tuple of PricedTest
        What it saves at several prices, if those rows have it that are expected to gain.
    rows : int
        How many rows were looked at.

    See Also
    --------
    new_test_worth : Makes it.
    """

    price_for_some: float
    price_for_half: float
    price_for_all: float
    realised_for_all: float
    error: float
    points: tuple[PricedTest, ...]
    rows: int

    def __str__(self) -> str:
        return plain_text(self.table())

    def _repr_html_(self) -> str:
        return fragment([self.table()])

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain JSON values.

        Returns
        -------
        dict
            Numbers by name, and the points as a list.
        """
        return asdict(self)

    def table(self) -> Grid:
        """Give the results as a table of texts.

        Returns
        -------
        Grid
            One line for each price.
        """
        rows = tuple(
            (
                f"{p.price:.4g}",
                f"{p.acquired:.1%}",
                f"{p.saving:.3g}",
                with_error(p.realised, p.error),
            )
            for p in self.points
        )
        caption = (
            f"Worth introducing for some rows below a price of {self.price_for_some:.4g}, for half "
            f"of them below {self.price_for_half:.4g}. Given to everyone it saves "
            f"{self.price_for_all:.4g} per row by the model, and "
            f"{with_error(self.realised_for_all, self.error)} on these {self.rows:,} rows, before "
            "its price."
        )
        return Grid(
            ("price", "given to", "saves by the model", "saves on these rows"), rows, caption
        )


@one_blas_thread
def new_test_worth(
    policy: BasePolicy,
    X: Any,
    y: ArrayLike,
    *,
    sensitivity: float | None = None,
    specificity: float | None = None,
    results: ArrayLike | None = None,
    prices: Sequence[float] | None = None,
    groups: ArrayLike | None = None,
) -> NewTest:
    """Say what a planned test may cost, by its assumed accuracy.

    It is offered where the policy stops, and its result depends on nothing but the class.

    Parameters
    ----------
    policy : policy
        A fitted policy; it is not changed.
    X : array-like or data frame of shape (n_rows, n_covariates)
        Rows that it was not fitted on; at most 10,000 are used, drawn by class.
    y : array-like of shape (n_rows,)
        Their classes.
    sensitivity, specificity : float, default=None
        With two classes, probability of a positive result for a positive row, and of a negative
        one for a negative row.
    results : array-like of shape (n_classes, n_results), default=None
        In place of these, probability of each result by true class.
    prices : sequence of float, default=None
        Prices to look at; None for five up to the highest one.
    groups : array-like of shape (n_rows,), default=None
        The group of each row, such as its patient, where rows belong together.

    Returns
    -------
    NewTest
        The highest prices, and what it saves at some.

    Warns
    -----
    TrainingRowsWarning
        If rows look like those that the policy was trained on.

    See Also
    --------
    covariate_worth : What the covariates that are there are worth.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima, new_test_worth
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> test = new_test_worth(policy, X[1::2], y[1::2], sensitivity=0.95, specificity=0.9)
    >>> test.price_for_some > test.price_for_half > 0
    True
    """
    chosen = fitted_policy(policy).chosen
    given = _results(sensitivity, specificity, results, chosen.classes_.tolist())
    rows = drawn(held_out_rows(policy, X, y, groups, "the values are"), 0)[0]
    stopped = run_mixed(chosen.decider_, rows.encoded)
    p, matrix = stopped.probability, chosen.rule_.matrix
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    # Unnormalised beliefs after each result: (results, rows, classes).
    after = p * given.T[:, None, :]
    risk = after @ matrix
    answer = risk.argmin(axis=2)
    now = (p @ matrix)[np.arange(len(p)), stopped.label]
    value = now - risk.min(axis=2).sum(axis=0)
    charged = charged_matrix(chosen, chosen.cost_table_.matrix)
    then = (given[rows.true].T * charged[rows.true, answer]).sum(axis=0)
    saved = charged[rows.true, stopped.label] - then
    highest = float(value.max())
    asked = np.linspace(0, highest, 6)[:-1] if prices is None else _checked_prices(prices)
    points = []
    for price in asked.tolist():
        going = value > price
        found = np.where(going, saved - price, 0.0)
        points.append(
            PricedTest(
                price,
                float(going.mean()),
                float(np.where(going, value - price, 0.0).mean()),
                float(found.mean()),
                standard_error(found, rows.groups),
            )
        )
    return NewTest(
        highest,
        float(np.median(value)),
        float(value.mean()),
        float(saved.mean()),
        standard_error(saved, rows.groups),
        tuple(points),
        len(value),
    )


def _results(
    sensitivity: float | None, specificity: float | None, results: Any, classes: list[Any]
) -> Floats:
    """P(result | class), (classes, results)."""
    if results is None:
        if len(classes) != 2 or sensitivity is None or specificity is None:
            raise InvalidInputError(
                "sensitivity, specificity",
                "must both be given for two classes, or else results",
                (sensitivity, specificity),
                "For example sensitivity=0.9, specificity=0.8.",
            )
        both = {"sensitivity": sensitivity, "specificity": specificity}
        for name, share in both.items():
            if real(name, share, at_least=0) > 1:
                remedy = f"Did you mean {share / 100:g}?" if share <= 100 else "Pass a share."
                raise InvalidInputError(name, "must be at most 1", share, remedy)
        return np.array([[specificity, 1 - specificity], [1 - sensitivity, sensitivity]])
    if sensitivity is not None or specificity is not None:
        raise InvalidInputError(
            "results", "cannot be given together with sensitivity or specificity", results,
            "Give either.",
        )  # fmt: skip
    try:
        table = np.array(results, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if (
        table.ndim != 2
        or len(table) != len(classes)
        or not (table >= 0).all()
        or not np.allclose(table.sum(axis=1), 1, atol=1e-6)
    ):
        raise InvalidInputError(
            "results",
            f"must hold a row for each of {len(classes)} classes that sums to 1",
            results,
            "For example [[0.8, 0.2], [0.1, 0.9]], the classes in their order.",
        )
    return table


def _checked_prices(prices: Any) -> Floats:
    """Prices that are numbers and not negative."""
    several = isinstance(prices, Sequence | np.ndarray) and not isinstance(prices, str)
    if not several or not len(prices):
        raise InvalidInputError("prices", "must list numbers", prices, "For example [5, 10, 20].")
    return np.array([real("prices", price, at_least=0) for price in np.asarray(prices).tolist()])
