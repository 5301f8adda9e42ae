"""Figures of the report for notebooks and scripts, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.document.style import styled
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.policies.sequence_policy import SequencePolicy, asked_in_order
from adacos.policies.trade_off import TradeOff, trade_off
from adacos.report import figures, numbers
from adacos.report.held import hold, own_method
from adacos.tables.description import Description, description_of
from adacos.typing import Floats


class AcquisitionDisplay:
    """Who is asked what, and who stops where with which answer.

    A funnel: each bar holds the rows that are still asked. It is the figure of `adacos report`.

    Parameters
    ----------
    levels : sequence of Level
        The bars of the funnel.
    description : Description
        Names of covariates and classes.
    covariates : sequence of str
        Names of the covariates in the table.
    classes : sequence
        The classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the figure was drawn.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    TreeDisplay : The questions of a policy that branches.
    CostCurveDisplay : What each stop costs.
    TradeOffDisplay : What more spending saves.

    Examples
    --------
    >>> from adacos import AcquisitionDisplay, AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima(zeros="missing")
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[:500], y[:500])
    >>> display = AcquisitionDisplay.from_estimator(policy, X[500:])
    >>> display.ax_.get_xlabel()
    'share of all rows, %'
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        levels: Sequence[numbers.Level],
        *,
        description: Description,
        covariates: Sequence[str],
        classes: Sequence[Any],
    ) -> None:
        self.levels = levels
        self.description = description
        self.covariates = covariates
        self.classes = classes

    @classmethod
    def from_estimator(cls, policy: BasePolicy, X: Any, *, ax: Any = None) -> AcquisitionDisplay:
        """Draw what a fitted policy asks of some rows.

        Parameters
        ----------
        policy : policy
            A fitted policy.
        X : table of shape (n_rows, n_covariates)
            Rows; held-out rows show what new cases will be asked.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AcquisitionDisplay
            The display.
        """
        inner = policy.chosen
        display = cls(
            numbers.flow(policy.acquire(X), inner),
            description=description_of(inner),
            covariates=list(inner.encoder_.names),
            classes=inner.decisions_.tolist(),
        )
        return display.plot(ax=ax)

    @styled
    def plot(self, *, ax: Any = None) -> AcquisitionDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        AcquisitionDisplay
            The display itself.
        """
        answers = [self.description.class_name(label) for label in self.classes]
        levels = list(self.levels)
        names = {name: self.description.label(name) for name in self.covariates}
        self.figure_, self.ax_ = _axes(ax, figures.flow_size(levels))
        figures.draw_flow(self.ax_, levels, names, answers)
        _legend(self.figure_, self.ax_, ax)
        return self


class CostCurveDisplay:
    """Mean cost if every row stopped at a set of the sequence, next to the policy's own.

    It is the figure of `adacos report`, for policies that ask in one order.

    Parameters
    ----------
    names : sequence of str
        The covariate that each set adds.
    expected : ndarray of shape (n_sets,)
        Cross-validated mean cost of the training rows.
    observed : ndarray of shape (n_sets,)
        Mean cost of the rows given.
    error : ndarray of shape (n_sets,)
        Its standard error.
    policy_cost : float
        Mean cost of the policy, which stops row by row.
    label : str, default="mean total cost"
        What the costs are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the figure was drawn.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    AcquisitionDisplay : Who is asked what.
    TradeOffDisplay : What more spending saves.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, CostCurveDisplay, Costs, load_pima
    >>> X, y, prices, *_ = load_pima(zeros="missing")
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[:500], y[:500])
    >>> display = CostCurveDisplay.from_estimator(policy, X[500:], y[500:])
    >>> len(display.observed) == len(policy.sets_)
    True
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        names: Sequence[str],
        expected: Floats,
        observed: Floats,
        error: Floats,
        policy_cost: float,
        *,
        label: str = "mean total cost",
    ) -> None:
        self.names = names
        self.expected = expected
        self.observed = observed
        self.error = error
        self.policy_cost = policy_cost
        self.label = label

    @classmethod
    def from_estimator(
        cls, policy: BasePolicy, X: Any, y: ArrayLike, *, ax: Any = None
    ) -> CostCurveDisplay:
        """Draw what stopping everyone at each set costs on some rows.

        Parameters
        ----------
        policy : policy
            A fitted policy that asks in one order.
        X : table of shape (n_rows, n_covariates)
            Held-out rows.
        y : array-like of shape (n_rows,)
            Their classes.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CostCurveDisplay
            The display.
        """
        held = hold(policy, X, np.asarray(y))
        if not asked_in_order(held.policy):
            raise InvalidInputError(
                "policy",
                "must ask in one order",
                type(policy).__name__,
                "Use AcquisitionDisplay for this policy.",
            )
        names, curve = numbers.cost_curve(held, held.policy)
        unit = f" ({held.said.currency})" if held.said.currency else ""
        display = cls(
            names, *curve, own_method(held).total.value, label=f"mean {held.counted}{unit}"
        )
        return display.plot(ax=ax)

    @styled
    def plot(self, *, ax: Any = None) -> CostCurveDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        CostCurveDisplay
            The display itself.
        """
        self.figure_, self.ax_ = _axes(ax, figures.CURVE_SIZE)
        figures.draw_cost_curve(
            self.ax_,
            list(self.names),
            self.expected,
            self.observed,
            self.error,
            self.policy_cost,
            self.label,
        )
        _legend(self.figure_, self.ax_, ax)
        return self


class TradeOffDisplay:
    """Mean cost of errors against mean covariate cost: what more spending saves.

    It is the figure of `adacos report` and of `adacos tradeoff`.

    Parameters
    ----------
    curve : TradeOff
        What `trade_off` returned.
    paid : float, default=None
        Mean covariate cost of the policy at hand, marked by a line.
    currency : str, default=""
        Currency of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the figure was drawn.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    trade_off : The numbers.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, TradeOffDisplay, load_pima
    >>> X, y, prices, *_ = load_pima(zeros="missing")
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X[:500], y[:500])
    >>> display = TradeOffDisplay.from_estimator(policy, X[500:], y[500:], points=4)
    >>> display.ax_.get_xlabel()
    'mean covariate cost'
    """

    ax_: Any
    figure_: Any

    def __init__(self, curve: TradeOff, *, paid: float | None = None, currency: str = "") -> None:
        self.curve = curve
        self.paid = paid
        self.currency = currency

    @classmethod
    def from_estimator(
        cls, policy: SequencePolicy, X: Any, y: ArrayLike, *, points: int = 30, ax: Any = None
    ) -> TradeOffDisplay:
        """Draw what more or less spending would save on some rows.

        Parameters
        ----------
        policy : policy
            A fitted policy that `trade_off` takes.
        X : table of shape (n_rows, n_covariates)
            Held-out rows.
        y : array-like of shape (n_rows,)
            Their classes.
        points : int, default=30
            Points of the curve at most.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        TradeOffDisplay
            The display.
        """
        curve = trade_off(policy, X, y, points=points)
        paid = float(policy.acquire(X).cost.mean())
        return cls(curve, paid=paid, currency=description_of(policy).currency or "").plot(ax=ax)

    @styled
    def plot(self, *, ax: Any = None) -> TradeOffDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        TradeOffDisplay
            The display itself.
        """
        self.figure_, self.ax_ = _axes(ax, figures.CURVE_SIZE)
        unit = f" ({self.currency})" if self.currency else ""
        figures.draw_trade_off(self.ax_, self.curve, self.paid, unit)
        return self


def _axes(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """The figure and the axes to draw into: those given, or new ones that a notebook shows."""
    if ax is not None:
        return ax.figure, ax
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=size, layout="constrained")
    return figure, axis


def _legend(figure: Any, axis: Any, given: Any) -> None:
    """The legend: above a figure of our own, or above axes that were given."""
    if given is None:
        figure.legend(loc="outside upper center", ncols=3)
    else:
        width = axis.get_window_extent().width / figure.dpi
        columns = 3 if width > 6 else 1
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
