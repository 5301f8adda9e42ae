"""The figure of an audit for notebooks and scripts, in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.document.style import styled
from adacos.exceptions import InvalidInputError
from adacos.policies.audit_figures import draw_audit, drawn_measures, size_of
from adacos.policies.audited import Audit
from adacos.policies.auditing import audit
from adacos.policies.base import BasePolicy
from adacos.tables.description import description_of


class AuditDisplay:
    """Cost, burden and recall of groups of rows, with intervals that hold together.

    It is the figure of `adacos audit`.

    Parameters
    ----------
    found : Audit
        What `audit` returned.
    currency : str, default=""
        Currency of the total cost.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Where the panels were drawn.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    audit : The numbers.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, AuditDisplay, Costs, load_heart
    >>> X, y, prices, *_ = load_heart()
    >>> costs = Costs(prices, false_positive=100, false_negative=300)
    >>> policy = AdaCOSClassifier(costs).fit(X[::2], y[::2])
    >>> display = AuditDisplay.from_estimator(policy, X[1::2], y[1::2], "sex")
    >>> display.axes_[0].get_xlabel()
    'total cost'
    """

    axes_: Any
    figure_: Any

    def __init__(self, found: Audit, *, currency: str = "") -> None:
        self.found = found
        self.currency = currency

    @classmethod
    def from_estimator(
        cls, policy: BasePolicy, X: Any, y: ArrayLike, by: Any, *, axes: Any = None, **options: Any
    ) -> AuditDisplay:
        """Audit a fitted policy and draw the figure.

        Parameters
        ----------
        policy : policy
            A fitted policy.
        X : table of shape (n_rows, n_covariates)
            Held-out rows.
        y : array-like of shape (n_rows,)
            Their classes.
        by : mapping of str to array, data frame, array or list of str
            The columns whose values are the groups, see `audit`.
        axes : array of matplotlib Axes, default=None
            Where to draw, one for each panel; None makes a figure.
        **options : object
            Other parameters of `audit`.

        Returns
        -------
        AuditDisplay
            The display.
        """
        currency = description_of(policy.chosen).currency or ""
        return cls(audit(policy, X, y, by, **options), currency=currency).plot(axes=axes)

    @styled
    def plot(self, *, axes: Any = None) -> AuditDisplay:
        """Draw the figure.

        Parameters
        ----------
        axes : array of matplotlib Axes, default=None
            Where to draw, one for each panel; None makes a figure.

        Returns
        -------
        AuditDisplay
            The display itself.
        """
        needed = len(drawn_measures(self.found))
        if axes is None:
            from matplotlib import pyplot

            columns, width, height = size_of(self.found)
            rows = -(-needed // columns)
            size = width * columns, height * rows
            axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained")[1]
        self.axes_ = np.atleast_1d(axes).ravel()
        if len(self.axes_) < needed:
            rule, remedy = f"must be {needed} or more", "Leave axes out for a figure of its own."
            raise InvalidInputError("axes", rule, len(self.axes_), remedy)
        self.figure_ = self.axes_[0].figure
        draw_audit(self.found, self.currency, self.axes_)
        return self
