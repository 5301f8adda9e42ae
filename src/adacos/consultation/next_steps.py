"""What comes next for many rows, each as a consultation about it says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.decision import BY_RULE, STOP, Decider, Rows, State, probability_at
from adacos.engine import acquired_in, alike, pandas_module, probability_columns, step
from adacos.exceptions import InvalidInputError
from adacos.families import family
from adacos.typing import Bools, Floats, Ints


@dataclass(frozen=True, repr=False)
class NextSteps:
    """What to acquire next for each row, or the label where it stops.

    Parameters
    ----------
    order : ndarray of int of shape (n_rows, n_covariates)
        Covariates to acquire next, by position, then -1; several where they are ordered together.
        A row that stops has none.
    cost : ndarray of shape (n_rows,)
        What that costs, with waiting for it; 0 where a row stops.
    label : ndarray of shape (n_rows,)
        Class given to the row if it stops now.
    probability : ndarray of shape (n_rows,) or (n_rows, n_classes)
        P(second class) given what there is of the row; with three or more classes that of each.
    paid : ndarray of shape (n_rows,)
        Covariate cost so far.
    expected_cost : ndarray of shape (n_rows,)
        Expected total cost of stopping now: `paid` plus the expected misclassification cost.
    names : tuple of str
        Covariate names.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X, y)
    >>> steps = policy.next(X[["Age"]].head(2))
    >>> steps
    NextSteps(2 rows, of which 0 stop)
    >>> steps.covariates(0), float(steps.cost[0]), float(steps.paid[0])
    (('BMI',), 1.0, 1.0)
    """

    order: Ints
    cost: Floats
    label: NDArray[Any]
    probability: Floats
    paid: Floats
    expected_cost: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return f"NextSteps({len(self)} rows, of which {int(self.stops.sum())} stop)"

    @property
    def stops(self) -> Bools:
        """Mask of the rows that stop, so that `label` is their answer."""
        return np.asarray((self.order == STOP).all(axis=1))

    def covariates(self, row: int) -> tuple[str, ...]:
        """Names to acquire next for one row.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        tuple of str
            The names; none if the row stops.
        """
        return tuple(self.names[i] for i in self.order[row] if i >= 0)

    def to_frame(self) -> Any:
        """Make a pandas data frame of it, one line per row, with what to acquire as text.

        Returns
        -------
        pandas.DataFrame
            Columns next, cost, stops, label, probability, paid and expected_cost; with three or
            more classes probability_0, probability_1, … in their order.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = pandas_module()
        return pandas.DataFrame(
            {
                "next": [", ".join(self.covariates(row)) for row in range(len(self))],
                "cost": self.cost,
                "stops": self.stops,
                "label": self.label,
                **probability_columns(self.probability),
                "paid": self.paid,
                "expected_cost": self.expected_cost,
            }
        )


def steps(
    decider: Decider[State],
    encoded: Floats,
    known: Bools,
    unavailable: Bools,
    paid: ArrayLike | None = None,
) -> NextSteps:
    """What comes next for each row; labels are 0, 1, …

    Rows have what they have a value of; masks (rows, covariates) say what of it was known from the
    start, and what cannot be acquired. Without `paid` the rest was paid by the price list, in the
    cheapest order.
    """
    n_rows, n_covariates = known.shape
    have = ~np.isnan(encoded[:, decider.encoder.first])
    costs, rule, later = decider.costs, decider.rule, family(len(decider.classes)).later
    amounts = costs.of(have, given=known) if paid is None else _amounts(paid, n_rows)
    order = np.full((n_rows, n_covariates), STOP)
    log_odds = np.empty((n_rows, *later))
    fixed = np.full(n_rows, BY_RULE)
    complete = np.asarray(~unavailable.any(axis=1))
    unseen = decider.encoder.unseen(encoded)
    for part in alike(have, known, complete, *([] if unseen is None else [unseen])):
        first = part[0]
        rows = Rows(encoded[part], ~unavailable[part], have[first], known[first], part)
        order[part], log_odds[part], fixed[part], *_ = step(decider, rows, amounts[part])
    label, risk = rule.answer(log_odds, fixed)
    return NextSteps(
        order=order,
        cost=costs.of_order(order, given=have) + costs.waiting(acquired_in(order)),
        label=label,
        probability=probability_at(log_odds),
        paid=amounts,
        expected_cost=amounts + risk,
        names=costs.names,
    )


def _amounts(paid: ArrayLike, n_rows: int) -> Floats:
    """What each row has paid, checked."""
    try:
        amounts = np.asarray(paid, dtype=np.float64)
    except (TypeError, ValueError):
        amounts = np.empty(0)
    if amounts.shape != (n_rows,) or not (np.isfinite(amounts) & (amounts >= 0)).all():
        raise InvalidInputError(
            "paid",
            f"must be {n_rows} finite amounts, one for each row, none below 0",
            paid,
            "Leave it out for what the covariates cost by the price list.",
        )
    return amounts
