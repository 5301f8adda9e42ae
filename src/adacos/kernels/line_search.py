"""Step halving along a descent direction."""

from __future__ import annotations

from collections.abc import Callable

from adacos.typing import Floats

# Share of the predicted fall that a step must reach (Armijo).
SUFFICIENT = 1e-4


def halve(
    objective: Callable[[Floats, Floats], float],
    log_odds: Floats,
    move: Floats,
    coef: Floats,
    step: Floats,
    value: float,
    slope: float,
    *,
    slack: float = 0.0,
    shortest: float = 1e-8,
) -> tuple[float, Floats, Floats, float]:
    """The first of the lengths 1, 1/2, 1/4, … at which the objective falls enough.

    `objective` takes log-odds and coefficients, which change by `move` and `step` at length 1;
    `value` is what it is now and `slope` < 0 its derivative along the step. `slack` is what
    rounding may hide. A length below `shortest` is taken as it is.

    Returns the length with the log-odds, the coefficients and the objective there.
    """
    length = 1.0
    while True:
        odds, point = log_odds + length * move, coef + length * step
        reached = objective(odds, point)
        if reached <= value + SUFFICIENT * length * slope + slack or length < shortest:
            return length, odds, point, reached
        length *= 0.5
