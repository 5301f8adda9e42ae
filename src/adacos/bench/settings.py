"""What a wrong answer costs in one run, and which rows are tested in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adacos.costs import Costs

PAPER_FALSE_POSITIVE = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)
PAPER_SYMMETRIC = (400.0, 800.0)
PAPER_RECALL = (0.95, 0.99)

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Setting:
    """One way of charging errors.

    Parameters
    ----------
    name : str
        What it is called in the tables; settings that differ only in cost share a name.
    false_positive : float
        Cost of a false positive, C[0, 1].
    misclassification : tuple of tuple of float, or None
        C[true class, label], or None where a target recall replaces the cost of a false negative.
    target_recall : float or None, default=None
        Least recall asked for.
    datasets : tuple of str or None, default=None
        Data sets it is run on, or None for all.
    panels : bool, default=True
        Whether the data set's panels count. Those of the paper's data sets have none in its
        experiments, which charge every covariate in full.

    Examples
    --------
    >>> from adacos.bench import Setting
    >>> Setting("mine", 100.0, ((0.0, 100.0), (300.0, 0.0))).key
    ('mine', 100.0)
    """

    name: str
    false_positive: float
    misclassification: Matrix | None
    target_recall: float | None = None
    datasets: tuple[str, ...] | None = None
    panels: bool = True

    def costs(
        self, prices: Mapping[str, float] | list[float], panels: Mapping[str, Any] | None = None
    ) -> Costs:
        """Combine these error costs with covariate costs.

        Parameters
        ----------
        prices : mapping of str to float, or list of float
            Covariate costs.
        panels : mapping of str to panel, or None, default=None
            Panels as `Costs` takes them; they are ignored unless the setting counts them.

        Returns
        -------
        Costs
            Both together.
        """
        panels = panels if self.panels else None
        if self.misclassification is None:
            return Costs(prices, false_positive=self.false_positive, panels=panels)
        return Costs(prices, misclassification=self.misclassification, panels=panels)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return 2 if self.misclassification is None else len(self.misclassification)

    def applies_to(self, dataset: str) -> bool:
        """Whether the setting is run on a data set.

        Parameters
        ----------
        dataset : str
            Its registered name.

        Returns
        -------
        bool
            Whether it is.
        """
        return self.datasets is None or dataset in self.datasets

    @property
    def key(self) -> tuple[str, float]:
        """What identifies the setting in the tables."""
        return self.name, self.false_positive

    def as_json(self) -> list[Any]:
        """What the result of a run depends on.

        Returns
        -------
        list
            Name, costs, target recall and whether panels count.
        """
        errors = self.false_positive, self.misclassification, self.target_recall
        return [self.name, *errors, self.panels]


def asymmetric(false_positive: float, *, ratio: float = 10.0) -> Setting:
    """Charge a false negative ten false positives: the paper's first setting (section 7).

    Parameters
    ----------
    false_positive : float
        Cost of a false positive.
    ratio : float, default=10.0
        How many times as much a false negative costs.

    Returns
    -------
    Setting
        The setting.

    Examples
    --------
    >>> from adacos.bench import asymmetric
    >>> asymmetric(100).misclassification
    ((0.0, 100), (1000.0, 0.0))
    """
    return Setting(
        "asymmetric", false_positive, ((0.0, false_positive), (ratio * false_positive, 0.0))
    )


def symmetric(error: float, *, correct: float = -50.0) -> Setting:
    """Charge both errors the same, a right answer earning 50: Table 1 of the paper, on Pima.

    Parameters
    ----------
    error : float
        Cost of either error.
    correct : float, default=-50.0
        Cost of a right answer; negative, it earns something.

    Returns
    -------
    Setting
        The setting.

    Examples
    --------
    >>> from adacos.bench import symmetric
    >>> symmetric(400).misclassification
    ((-50.0, 400), (400, -50.0))
    """
    return Setting("symmetric", error, ((correct, error), (error, correct)), datasets=("pima",))


def recall(target: float, false_positive: float) -> Setting:
    """Ask for a least recall instead of the cost of a false negative: the paper's second setting.

    Parameters
    ----------
    target : float
        Least recall.
    false_positive : float
        Cost of a false positive.

    Returns
    -------
    Setting
        The setting.

    Examples
    --------
    >>> from adacos.bench import recall
    >>> recall(0.95, 100).target_recall
    0.95
    """
    return Setting(f"recall_{target:g}", false_positive, None, target)


@dataclass(frozen=True)
class CrossValidation:
    """One cross-validation of a data set.

    Attributes
    ----------
    name : "paper" for the paper's folds, "random-1", "random-2", … for repeated random ones.
    seed : of the shuffle within the classes; None for the paper's.
    every_row : whether rows with missing values are tested too, which the paper's are not.
    """

    name: str
    seed: int | None
    every_row: bool = False
