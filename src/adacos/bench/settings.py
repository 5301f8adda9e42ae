"""What a wrong answer costs in one run, and which rows are tested in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adacos.costs import Costs

PAPER_FALSE_POSITIVE = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0)
PAPER_SYMMETRIC = (400.0, 800.0)
PAPER_RECALL = (0.95, 0.99)

Matrix = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Setting:
    """One way of charging errors.

    Attributes
    ----------
    name : what it is called in the tables; settings that differ only in cost share a name.
    false_positive : cost of a false positive.
    misclassification : C[true class, label], or None where a target recall replaces the cost of a
        false negative.
    target_recall : least recall asked for, or None.
    datasets : data sets it is run on, or None for all.
    """

    name: str
    false_positive: float
    misclassification: Matrix | None
    target_recall: float | None = None
    datasets: tuple[str, ...] | None = None

    def costs(self, prices: Mapping[str, float] | list[float]) -> Costs:
        """These errors beside the given covariate costs."""
        if self.misclassification is None:
            return Costs(prices, false_positive=self.false_positive)
        return Costs(prices, misclassification=self.misclassification)

    def applies_to(self, dataset: str) -> bool:
        """Whether the setting is run on a data set."""
        return self.datasets is None or dataset in self.datasets

    @property
    def key(self) -> tuple[str, float]:
        """What identifies the setting in the tables."""
        return self.name, self.false_positive

    def as_json(self) -> list[Any]:
        """What the result of a run depends on."""
        return [self.name, self.false_positive, self.misclassification, self.target_recall]


def asymmetric(false_positive: float, *, ratio: float = 10.0) -> Setting:
    """The paper's first setting: a false negative costs ten false positives."""
    return Setting(
        "asymmetric", false_positive, ((0.0, false_positive), (ratio * false_positive, 0.0))
    )


def symmetric(error: float, *, correct: float = -50.0) -> Setting:
    """Table 1 of the paper, on Pima: both errors cost the same, a right answer earns 50."""
    return Setting("symmetric", error, ((correct, error), (error, correct)), datasets=("pima",))


def recall(target: float, false_positive: float) -> Setting:
    """The paper's second setting: a least recall instead of the cost of a false negative."""
    return Setting(f"recall_{target:g}", false_positive, None, target)


@dataclass(frozen=True)
class Split:
    """One cross-validation of a data set.

    Attributes
    ----------
    name : "paper" for the paper's folds, "random-1", "random-2", … for repeated random ones.
    seed : of the shuffle within the classes; None for the paper's.
    """

    name: str
    seed: int | None
