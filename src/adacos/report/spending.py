"""What more spending saves, in a report."""

from __future__ import annotations

import warnings

from adacos.document.blocks import Block, Grid, Heading
from adacos.exceptions import TrainingRowsWarning
from adacos.policies.trade_off import trade_off
from adacos.report import figures, words
from adacos.report.held import Held

# Points of the curve.
_POINTS = 12


def spending(held: Held) -> list[Block]:
    """Covariate cost against the cost of errors, for a policy that weighs acquisitions."""
    policy, said = held.policy, held.said
    currency = f" ({said.currency})" if said.currency else ""
    if policy.resolved_lookahead is None or policy.always_positive_:
        return []
    y = policy.classes_[held.true]
    with warnings.catch_warnings():
        # The page says so at its beginning.
        warnings.simplefilter("ignore", TrainingRowsWarning)
        curve = trade_off(policy, held.table, y, points=_POINTS, groups=held.groups)
    if len(curve.points) < 2:
        return []
    rows = tuple(
        (
            f"× {1 + p.multiplier:.3g}",
            said.money(p.covariate_cost),
            f"{said.money(p.misclassification_cost)} ± {p.misclassification_error:.2f}",
            f"{said.money(p.total_cost)} ± {p.total_error:.2f}",
        )
        for p in curve.points
    )
    return [
        Heading("What more spending saves"),
        figures.trade_off_curve(curve, float(held.result.cost.mean()), currency),
        Grid(
            ("covariate costs counted", "covariates", "errors", "total"),
            rows,
            caption=words.implied_cost(policy),
        ),
    ]
