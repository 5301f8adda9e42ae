"""Figures of any run: what each method costs, by data set and setting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adacos.bench.comparisons import PAPER, measure_of
from adacos.bench.configuration import slug
from adacos.bench.run import RunResult
from adacos.bench.tables import Cell, FoldTable
from adacos.document.style import (
    check_matplotlib,
    cost_axis,
    dataset_title,
    key,
    legend_below,
    look,
    new_figure,
    save,
    styled,
)
from adacos.exceptions import InvalidInputError


def draw_costs(result: RunResult, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Draw what each method costs over false-positive costs, for each data set and setting.

    The cost is the total cost; in a setting with a target recall that of covariates and false
    positives. Means are over folds, bars are one standard deviation over folds. The paper's folds
    and the random splits have a figure each.

    Parameters
    ----------
    result : RunResult
        What `run` returned.
    folder : path-like
        Where the figures are written, as PNG and PDF; made if it is not there.

    Returns
    -------
    tuple of Path
        The PNG files.

    Raises
    ------
    InvalidInputError
        If the result has no outcomes.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from adacos.bench import BenchConfig, asymmetric, draw_costs, run
    >>> with tempfile.TemporaryDirectory() as out:
    ...     config = BenchConfig(("pima",), ("full-model",), (asymmetric(100),), out, folds=(0, 1))
    ...     [path.name for path in draw_costs(run(config, progress=False), out)]
    ['pima-asymmetric-paper.png']
    """
    check_matplotlib()
    if not result.outcomes:
        raise InvalidInputError("result", "must have outcomes", "none", "See result.failures.")
    path, folds = Path(folder), FoldTable(result.outcomes)
    path.mkdir(parents=True, exist_ok=True)
    random = [split for split in folds.splits() if split != PAPER]
    drawn = []
    for kind, splits in ((PAPER, [PAPER]), ("random", random)):
        cells = list(dict.fromkeys(cell for split in splits for cell in folds.cells(split)))
        for dataset, setting in dict.fromkeys((cell.dataset, cell.setting) for cell in cells):
            own = [c for c in cells if (c.dataset, c.setting) == (dataset, setting)]
            name = f"{slug(dataset)}-{slug(setting)}-{kind}"
            _draw(folds, own, splits, path, name)
            drawn.append(path / f"{name}.png")
    return tuple(drawn)


@styled
def _draw(
    folds: FoldTable, cells: Sequence[Cell], splits: Sequence[str], folder: Path, name: str
) -> None:
    """One figure: a line for each method."""
    figure, axes = new_figure(1, 1, 6.4, 4.4)
    axis, (dataset, _, setting, _) = axes[0, 0], cells[0]
    measure = measure_of(setting)
    methods = list(dict.fromkeys(cell.method for cell in cells))
    for number, method in enumerate(methods):
        own = sorted((c for c in cells if c.method == method), key=lambda c: c.false_positive)
        tested = [[s for s in splits if folds.has(c, s)] for c in own]
        costs = [
            np.concatenate([folds.folds(c, f"{measure}_cost", s) for s in found])
            for c, found in zip(own, tested, strict=True)
        ]
        # A little aside, so that bars do not cover each other.
        aside = 1.03 ** (number - (len(methods) - 1) / 2)
        axis.errorbar(
            [c.false_positive * aside for c in own],
            [cost.mean() for cost in costs],
            yerr=[cost.std() for cost in costs],
            elinewidth=0.9,
            **look(method, number),
        )
    cost_axis(axis)
    axis.set(
        title=f"{dataset_title(dataset)}: {setting}",
        xlabel="False-positive cost",
        ylabel=f"{measure.capitalize()} cost per row",
    )
    legend_below(figure, [key(m, **look(m, k)) for k, m in enumerate(methods)])
    save(figure, folder, name, "")
