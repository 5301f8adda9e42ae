"""How finely the worth of continuing is computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adacos.typing import Floats

# The grid lies around the threshold of decision, where values bend, closer together the nearer to
# it; beyond its ends their values hold.
CLOSE, _FARTHEST = 0.3, 10.0
END = float(np.arcsinh(_FARTHEST / CLOSE))


class Accuracy(NamedTuple):
    """How finely values are computed.

    Attributes
    ----------
    around : grid of log-odds, from the threshold; an odd number, so that it is among them.
    points, masses : Gauss-Hermite rule for a standard normal.
    n_nodes, n_rows : with three or more classes, training rows at whose beliefs plans are made, and
        by which they are judged.
    """

    around: Floats
    points: Floats
    masses: Floats
    n_nodes: int
    n_rows: int


def _accuracy(n_grid: int, n_rule: int, n_nodes: int, n_rows: int) -> Accuracy:
    points, masses = np.polynomial.hermite_e.hermegauss(n_rule)
    around = CLOSE * np.sinh(np.linspace(-END, END, n_grid))
    return Accuracy(around, points, masses / masses.sum(), n_nodes, n_rows)


FINE = _accuracy(97, 31, 150, 3000)
# For models that are only compared with each other.
ROUGH = _accuracy(33, 11, 40, 200)
