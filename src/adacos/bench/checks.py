"""What a method returns is checked: answers for all rows, and costs that follow from the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.costs import CostTable
from adacos.datasets import Dataset
from adacos.exceptions import InvalidInputError

# Part of the name of a result: those that were checked less strictly are not reused.
CHECKS = 1


def costs_of(table: Dataset) -> tuple[dict[str, float] | list[float], dict[str, Any]]:
    """Covariate costs and panels as the columns of a data set are called: an array's by place."""
    if not isinstance(table.X, np.ndarray):
        return table.prices, dict(table.panels)

    def places(panel: Any) -> Any:
        if isinstance(panel, dict):
            return {table.names.index(name): cost for name, cost in panel.items()}
        shared, members = panel
        return shared, [table.names.index(name) for name in members]

    panels = {title: places(panel) for title, panel in table.panels.items()}
    return [table.prices[name] for name in table.names], panels


def check_result(
    method: str, result: Any, costs: CostTable, classes: NDArray[Any], rows: NDArray[Any]
) -> None:
    """Refuse answers that are not one for each row, and costs other than those of the mask.

    The cost of a row is that of its mask by the price list: in its order of acquisition where the
    result has one, else in any order. What a method says of itself is not believed.
    """
    n, k = len(rows), len(classes)
    shapes = {
        "label": {(n,)},
        "probability": {(n,)} if k == 2 else {(n, k)},
        "cost": {(n,)},
        "acquired": {(n, len(costs.names))},
    }
    for name, allowed in shapes.items():
        given: Any = getattr(result, name, None)
        shape = np.shape(given)
        if shape not in allowed:
            rule, described = f"{name} must have the shape {allowed.pop()}", f"shape {shape}"
            raise _refused(
                method, rule, described, "Return it for every row that acquire was given."
            )
    strange = np.setdiff1d(np.asarray(result.label), classes).tolist()
    if strange:
        rule = f"labels must be classes of the data set, {classes.tolist()}"
        raise _refused(method, rule, strange, "Return the classes as fit was given them.")
    acquired = np.asarray(result.acquired)
    if acquired.dtype != np.bool_:
        remedy = "Return True where a covariate was acquired."
        raise _refused(method, "acquired must be a mask", str(acquired.dtype), remedy)
    order = getattr(result, "order", None)
    if order is not None and not np.array_equal(_in_order(order, acquired.shape), acquired):
        rule, remedy = "order must list what acquired marks", "Return both of the same run."
        raise _refused(method, rule, "other covariates", remedy)
    cost = np.asarray(result.cost, dtype=np.float64)
    paid = costs.of(acquired) if order is None else costs.of_order(np.asarray(order))
    most = paid
    if order is None and costs.excess is not None:
        # The member of a panel that is spared least may have come first.
        most = costs.of(acquired, rank=-costs.excess)
    wrong = np.flatnonzero(~(np.isclose(cost, np.clip(cost, paid, most), rtol=1e-6, atol=1e-9)))
    if len(wrong):
        row = int(wrong[0])
        raise _refused(
            method,
            "cost must be that of what acquired marks, by the price list",
            f"{cost[row]:g} in place of {paid[row]:g} in row {rows[row]}, and "
            f"{len(wrong) - 1} more",
            "Count panels, and every covariate once.",
        )


def _in_order(order: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mask of what an order of acquisition lists."""
    listed = np.zeros(shape, dtype=np.bool_)
    row, place = np.nonzero(np.asarray(order) >= 0)
    listed[row, np.asarray(order)[row, place]] = True
    return listed


def _refused(method: str, rule: str, received: Any, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"method {method!r}", rule, received, remedy)
