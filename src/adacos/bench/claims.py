"""The paper's claims, each checked on the run and stated true or false with its numbers.

A claim about means is judged literally, cell by cell on the paper's folds. Where it fails, the
numbers give the 95% intervals of the largest difference and say how many of the failing cells lie
outside theirs, so that neither a win, nor a loss, nor equality is sold that the data do not
support.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import gmean

from adacos.bench.comparisons import PAPER, OutcomeIndex, compare_cells
from adacos.bench.names import ADACOS, ADACOS_FORWARD, COS, COS_FORWARD, FULL_MODEL
from adacos.bench.pairing import fold_interval
from adacos.bench.settings import PAPER_RECALL
from adacos.bench.sigmoid import LINEAR, NORMAL, largest_errors
from adacos.bench.tables import Cell, FoldTable
from adacos.document.style import dataset_title
from adacos.kernels.intervals import ConfidenceInterval
from adacos.registry import METHODS

# Means that differ by less than this share are equal: a sum in another order, not a difference.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, whether it holds here (None: not tested), and the numbers."""

    text: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """For the report."""
        return "not tested" if self.holds is None else "true" if self.holds else "false"


def check_claims(folds: FoldTable, index: OutcomeIndex) -> list[Claim]:
    """Every claim of the paper's experiments."""
    methods = list(dict.fromkeys(cell.method for cell in folds.cells()))
    return [
        _least_total_cost(folds, index, methods),
        _full_model_worse_below_100(folds),
        _more_covariates(folds, methods),
        _full_model_most_accurate(folds, methods),
        _as_accurate_with_fewer(folds),
        _forward_and_lasso(folds),
        _table_1_order(folds),
        *(_recall_kept(folds, target) for target in PAPER_RECALL),
        _least_operation_cost(folds, methods),
        _sigmoid(),
    ]


def _least_total_cost(folds: FoldTable, index: OutcomeIndex, methods: list[str]) -> Claim:
    text = (
        "AdaCOS has at most the total cost of every previously proposed method, at every "
        "false-positive cost of every data set."
    )
    others = [m for m in methods if m == FULL_MODEL or _is_baseline(m)]
    compared = [
        c
        for other in others
        for c in compare_cells(index, ADACOS, other)
        if c.splits == PAPER and c.first.setting == "asymmetric"
    ]
    if not compared:
        return Claim(text, None, "Needs AdaCOS, at least one other method and two folds.")
    worse = [c for c in compared if c.folds.estimate > _EQUAL * abs(c.means[1])]
    beyond = [c for c in worse if not c.is_noise]
    ratio = gmean([c.means[0] / c.means[1] for c in compared])
    numbers = (
        f"Against {', '.join(others)}: at most theirs in {len(compared) - len(worse)} of "
        f"{len(compared)} cells, geometric mean of the ratio {ratio:.3f}."
    )
    if worse:
        top = max(worse, key=lambda c: c.means[0] / c.means[1])
        numbers += (
            f" Higher in {len(worse)}, in {len(beyond)} of them by both intervals; most so on "
            f"{_place(top.first)} against {top.second.method}: {top.means[0]:.4g} to "
            f"{top.means[1]:.4g}, difference {_span(top.folds)} over folds, {_span(top.rows)} over "
            "rows."
        )
    return Claim(text, not worse, numbers)


def _full_model_worse_below_100(folds: FoldTable) -> Claim:
    text = (
        "Below a false-positive cost of about 100, Full Model costs considerably more in total "
        "than AdaCOS."
    )
    pairs = [p for p in _pairs(folds, ADACOS, FULL_MODEL) if p[0].false_positive < 100]
    if not pairs:
        return Claim(text, None, "Needs AdaCOS and Full Model.")
    ratios = {a: folds.mean(b, "total_cost") / folds.mean(a, "total_cost") for a, b in pairs}
    least = min(ratios, key=lambda cell: ratios[cell])
    return Claim(
        text,
        ratios[least] > 1.1,
        f"Full Model / AdaCOS is at least {ratios[least]:.2f} ({_place(least)}), geometric mean "
        f"{gmean(list(ratios.values())):.2f} over {len(ratios)} cells. Considerably: over 1.1.",
    )


def _more_covariates(folds: FoldTable, methods: list[str]) -> Claim:
    text = "Every method acquires more covariates as the false-positive cost rises."
    falls, curves = [], 0
    for method in methods:
        for dataset in _datasets(folds):
            cells = [c for c in folds.cells(setting="asymmetric") if c[:2] == (dataset, method)]
            if len(cells) < 2 or method == FULL_MODEL:
                continue
            cells.sort(key=lambda c: c.false_positive)
            curves += 1
            numbers = [folds.mean(c, "n_acquired") for c in cells]
            falls += [
                (b, before, after)
                for b, (before, after) in zip(cells[1:], pairwise(numbers), strict=True)
                if after < before - _EQUAL
            ]
    if not curves:
        return Claim(text, None, "Needs at least two false-positive costs.")
    numbers_text = f"{curves} curves (Full Model always acquires all), {len(falls)} steps down."
    if falls:
        worst = min(falls, key=lambda f: f[2] - f[1])
        numbers_text += (
            f" Largest: {worst[0].method}, {_place(worst[0])}, {worst[1]:.2f} to {worst[2]:.2f}."
        )
    return Claim(text, not falls, numbers_text)


def _full_model_most_accurate(folds: FoldTable, methods: list[str]) -> Claim:
    text = "Full Model has the best weighted accuracy."
    gaps = []
    for other in methods:
        for full, cell in _pairs(folds, FULL_MODEL, other):
            a, b = (folds.folds(c, "weighted_accuracy") for c in (full, cell))
            if other != FULL_MODEL and len(a) == len(b) > 1:
                gaps.append((cell, float(b.mean() - a.mean()), fold_interval(b - a)))
    if not gaps:
        return Claim(text, None, "Needs Full Model, another method and two folds.")
    better = [g for g in gaps if g[1] > _EQUAL]
    beyond = [g for g in better if g[2].excludes(0.0)]
    numbers = f"Best or equal in {len(gaps) - len(better)} of {len(gaps)} comparisons."
    if better:
        top = max(better, key=lambda g: g[1])
        numbers += (
            f" Another method is ahead in {len(better)}, in {len(beyond)} of them by the interval "
            f"over folds; most {top[0].method}, {_place(top[0])}, by {top[1]:.4f} {_span(top[2])}."
        )
    return Claim(text, not better, numbers)


def _as_accurate_with_fewer(folds: FoldTable) -> Claim:
    text = "AdaCOS is as accurate as COS with fewer covariates."
    pairs = [(a, b) for a, b in _pairs(folds, ADACOS, COS) if folds.mean(b, "n_acquired") > 0]
    if not pairs or len(folds.folds(pairs[0][0], "n_acquired")) < 2:
        return Claim(text, None, "Needs AdaCOS, COS and two folds.")
    gaps = [
        folds.folds(a, "weighted_accuracy") - folds.folds(b, "weighted_accuracy") for a, b in pairs
    ]
    less_accurate = sum(fold_interval(gap).high < 0 for gap in gaps)
    overall = fold_interval(np.mean(gaps, axis=0))
    fewer = [folds.mean(a, "n_acquired") - folds.mean(b, "n_acquired") for a, b in pairs]
    n_fewer = sum(difference < 0 for difference in fewer)
    return Claim(
        text,
        less_accurate == 0 and n_fewer == len(pairs),
        f"Weighted accuracy differs by {overall.estimate:+.4f} {_span(overall)} on average, and is "
        f"lower by the interval over folds in {less_accurate} of {len(pairs)} cells in which COS "
        f"acquires anything; fewer covariates in {n_fewer} of them, {np.mean(fewer):+.2f} on "
        "average.",
    )


def _forward_and_lasso(folds: FoldTable) -> Claim:
    text = (
        "Forward selection and group lasso give AdaCOS similar total costs, except on Wisconsin, "
        "where forward selection is better."
    )
    ratios: dict[str, float] = {}
    for dataset in _datasets(folds):
        values = [
            folds.mean(a, "total_cost") / folds.mean(b, "total_cost")
            for a, b in _pairs(folds, ADACOS_FORWARD, ADACOS)
            if a.dataset == dataset and a.false_positive >= 10
        ]
        if values:
            ratios[dataset] = float(gmean(values))
    if "wisconsin" not in ratios:
        return Claim(text, None, "Needs AdaCOS with both sequences on Wisconsin.")
    similar = all(abs(np.log(r)) < np.log(1.1) for d, r in ratios.items() if d != "wisconsin")
    listed = ", ".join(f"{dataset_title(dataset)} {ratio:.3f}" for dataset, ratio in ratios.items())
    return Claim(
        text,
        similar and ratios["wisconsin"] < 1,
        f"Forward / group lasso, geometric mean over false-positive costs from 10: {listed}. "
        "Similar: within 10%.",
    )


def _table_1_order(folds: FoldTable) -> Claim:
    text = "In Table 1 AdaCOS with forward selection has the lowest total cost."
    cells = folds.cells(setting="symmetric")
    if not any(cell.method == ADACOS_FORWARD for cell in cells):
        return Claim(text, None, "Needs AdaCOS (forward) on Pima with symmetric costs.")
    parts, holds = [], True
    for error in sorted({cell.false_positive for cell in cells}):
        at = {c.method: folds.mean(c, "total_cost") for c in cells if c.false_positive == error}
        best = min(at, key=lambda method: at[method])
        holds &= best == ADACOS_FORWARD
        parts.append(
            f"At {error:g} the lowest is {best} with {at[best]:.2f}, "
            f"AdaCOS (forward) has {at[ADACOS_FORWARD]:.2f}"
        )
    return Claim(text, holds, ". ".join(parts) + ".")


def _recall_kept(folds: FoldTable, target: float) -> Claim:
    text = f"The recall of AdaCOS on test data is never below its target {target:g}."
    cells = [c for c in folds.cells(setting=f"recall_{target:g}") if c.method == ADACOS]
    if not cells:
        return Claim(text, None, "Needs AdaCOS in the target-recall setting.")
    below = [c for c in cells if folds.mean(c, "recall") < target]
    least = min(cells, key=lambda c: folds.mean(c, "recall"))
    values = folds.folds(least, "recall")
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Claim(
        text,
        not below,
        f"Mean over folds below {target:g} in {len(below)} of {len(cells)} cells; least "
        f"{values.mean():.4f} (standard error {error:.4f}) on {_place(least)}.",
    )


def _least_operation_cost(folds: FoldTable, methods: list[str]) -> Claim:
    text = (
        "At target recall 0.95 AdaCOS has the least operation cost on every data set, except on "
        "Heart."
    )
    setting = f"recall_{PAPER_RECALL[0]:g}"
    others = [m for m in methods if m not in (ADACOS, ADACOS_FORWARD, COS_FORWARD)]
    parts, holds = [], []
    for dataset in _datasets(folds):
        least: list[bool] = []
        for cell in folds.cells(setting=setting):
            rivals = [cell._replace(method=m) for m in others]
            rivals = [c for c in rivals if folds.has(c)]
            if cell[:2] == (dataset, ADACOS) and rivals:
                best = min(folds.mean(c, "operation_cost") for c in rivals)
                least.append(folds.mean(cell, "operation_cost") <= best * (1 + _EQUAL))
        if least:
            parts.append(f"{dataset_title(dataset)} {sum(least)} of {len(least)}")
            holds.append(all(least) or dataset == "heart")
    if not parts:
        return Claim(text, None, "Needs AdaCOS and another method in the target-recall setting.")
    return Claim(
        text, all(holds), f"False-positive costs at which it is least: {', '.join(parts)}."
    )


def _sigmoid() -> Claim:
    errors = largest_errors()
    return Claim(
        "40 linear pieces approximate the sigmoid more closely than Φ(√(π/8) u).",
        errors[LINEAR] < errors[NORMAL],
        "Largest error: "
        + ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
        + ".",
    )


def _pairs(folds: FoldTable, first: str, second: str) -> list[tuple[Cell, Cell]]:
    """Cells of two methods with asymmetric costs on the paper's folds."""
    pairs = [
        (cell, cell._replace(method=second))
        for cell in folds.cells(setting="asymmetric")
        if cell.method == first
    ]
    return [pair for pair in pairs if folds.has(pair[1])]


def _datasets(folds: FoldTable) -> list[str]:
    return list(dict.fromkeys(cell.dataset for cell in folds.cells()))


def _is_baseline(method: str) -> bool:
    return method in METHODS and METHODS[method].rival


def _span(interval: ConfidenceInterval) -> str:
    """The 95% interval: how large a difference may be that is not seen."""
    return f"[{interval.low:.4g}, {interval.high:.4g}]"


def _place(cell: Cell) -> str:
    return f"{dataset_title(cell.dataset)} at {cell.false_positive:g}"
