"""When two costs are equal: one rule for every decision.

The same sum is rounded otherwise in a batch of another size or order. Costs that differ by less
than `TIE` of what they are made of count as equal, so that one row is decided as among many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adacos.typing import Bools, Floats, Ints

TIE = 1e-9


def last_of_least(costs: Floats, size: Floats) -> Ints:
    """Place of the least cost, of equal ones the last; `size` is what each cost is made of."""
    equal = costs <= (costs + TIE * size).min(axis=-1, keepdims=True)
    return np.asarray(costs.shape[-1] - 1 - np.argmax(equal[..., ::-1], axis=-1), dtype=np.intp)


def below(costs: Floats, others: Floats) -> Bools:
    """Whether costs are less than others, and not just equal to them."""
    less: Bools = costs < others - TIE * np.abs(others)
    return less


def reaches(values: Any, threshold: float) -> Bools:
    """Whether values are at or above a threshold."""
    reached: Bools = values >= threshold - TIE * max(abs(threshold), 1.0)
    return reached


def reaches_odds(probability: Any, rest: Any, threshold: float) -> Bools:
    """Whether probabilities are at or above a threshold; `rest` is 1 - p to all digits."""
    near = probability * (1 - threshold) >= (1 - TIE) * threshold * rest
    reached: Bools = (probability >= threshold) | near
    return reached
