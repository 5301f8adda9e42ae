"""The tree of a policy's questions for notebooks and scripts, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adacos.document.style import styled
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.policies.picture import has_tree
from adacos.policies.tree import Tree, described_tree
from adacos.report import numbers
from adacos.report.tree_figure import WIDE, draw_tree
from adacos.tables.description import Description, description_of


class TreeDisplay:
    """The questions of a policy that branches, and what becomes of rows after each answer.

    For `BranchingClassifier` and `PlanningClassifier`, and what wraps them. It is the figure of
    `adacos report`.

    Parameters
    ----------
    tree : Tree
        The questions, with shares of rows.
    description : Description
        Names of covariates and classes.
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
    AcquisitionDisplay : Who is asked what, for policies of every kind.

    Examples
    --------
    >>> from adacos import BranchingClassifier, Costs, TreeDisplay
    >>> from adacos.datasets import make_value_dependent_problem
    >>> problem = make_value_dependent_problem()
    >>> X, y = problem.sample(500, seed=0)
    >>> costs = Costs(list(problem.prices.values()), false_positive=50, false_negative=75)
    >>> display = TreeDisplay.from_estimator(BranchingClassifier(costs).fit(X, y))
    >>> print(display.tree)
    500 rows: every row is asked x0
    ├─ x0 = 0 (50%): x1 100%; paid 6.00, answered 1: 55%
    └─ x0 = 1 (50%): x2 100%; paid 6.00, answered 1: 56%
    """

    ax_: Any
    figure_: Any

    def __init__(self, tree: Tree, *, description: Description, classes: Sequence[Any]) -> None:
        self.tree = tree
        self.description = description
        self.classes = classes

    @classmethod
    def from_estimator(cls, policy: BasePolicy, X: Any = None, *, ax: Any = None) -> TreeDisplay:
        """Draw the tree of a fitted policy.

        Parameters
        ----------
        policy : policy
            A fitted policy that branches.
        X : table of shape (n_rows, n_covariates), default=None
            Rows whose shares are shown; held-out rows show what new cases will be asked. None shows
            the training rows.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure as large as the tree.

        Returns
        -------
        TreeDisplay
            The display.
        """
        inner = policy.chosen
        if not has_tree(inner):
            raise InvalidInputError(
                "policy",
                "must branch, as BranchingClassifier and PlanningClassifier do",
                type(inner).__name__,
                "Use AcquisitionDisplay for this policy.",
            )
        if X is None:
            tree = described_tree(inner)
        else:
            tree = numbers.tree(inner, np.asarray(inner._encode(X)), policy.acquire(X))
        display = cls(tree, description=description_of(inner), classes=inner.decisions_.tolist())
        return display.plot(ax=ax)

    @styled
    def plot(self, *, ax: Any = None) -> TreeDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure as large as the tree.

        Returns
        -------
        TreeDisplay
            The display itself.
        """

        def sheet(width: float, height: float) -> Any:
            if ax is not None:
                return ax
            from matplotlib import pyplot

            return pyplot.figure(figsize=(width, height)).add_axes((0, 0, 1, 1))

        answers = [self.description.class_name(label) for label in self.classes]
        width = WIDE if ax is None else ax.get_window_extent().width / ax.figure.dpi
        self.ax_ = draw_tree(sheet, self.tree, answers, self.description.money, width)
        self.figure_ = self.ax_.figure
        return self
