"""What each covariate is worth to a policy on some rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from adacos.engine import AcquisitionResult
from adacos.policies.base import BasePolicy
from adacos.policies.fitting import inner_fits
from adacos.policies.worth import paid_by_covariate
from adacos.tables.columns import ColumnTable
from adacos.tables.encoder import validate_table


class Importance(NamedTuple):
    """One covariate: share of rows that acquire it, what it costs and saves, means over all rows.

    `drop` is how much lower the Bayes risk at the stop is than where the covariate is unavailable;
    the policy may then acquire others in its place.
    """

    covariate: str
    share: float
    cost: float
    drop: float


def covariate_importances(
    policy: BasePolicy, X: Any, result: AcquisitionResult | None = None
) -> list[Importance]:
    """Importance of every covariate on the rows X, the largest drop in Bayes risk first.

    `result` is that of `policy.acquire(X)`, if it is there already.
    """
    result = policy.acquire(X) if result is None else result
    paid = paid_by_covariate(policy.cost_table_, result)
    risk = float(np.mean(result.expected_cost - result.cost))
    importances = []
    for k, name in enumerate(result.names):
        share, drop = float(result.acquired[:, k].mean()), 0.0
        if share > 0:
            with inner_fits():
                without = policy.acquire(_without(policy, X, k))
            drop = float(np.mean(without.expected_cost - without.cost)) - risk
        importances.append(Importance(name, share, float(paid[:, k].mean()), drop))
    return sorted(importances, key=lambda item: -item.drop)


def _without(policy: BasePolicy, X: Any, k: int) -> Any:
    """The rows with one covariate unavailable."""
    table = validate_table(policy, X, reset=False)
    if isinstance(table, np.ndarray):
        table = table.astype(np.float64)
        table[:, k] = np.nan
        return table
    name = policy.encoder_.names[k]
    if isinstance(table, ColumnTable):
        columns = {other: table.column(other) for other in table.columns}
        text = columns[name].dtype.kind == "U"
        columns[name] = np.full(len(table), "" if text else np.nan)
        return ColumnTable(columns)
    return table.with_columns(nw.lit(None, dtype=nw.Float64).alias(name)).to_native()
