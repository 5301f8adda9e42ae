"""A table whose rows must be asked in different orders."""

from __future__ import annotations

import numpy as np
import pandas as pd

from adacos import Costs

N_ROWS = 600


PRICES = {"age": 0.0, "ward": 1.0, "blood": 4.0, "urine": 4.0, "scan": 9.0}


COSTS = Costs(
    PRICES, false_positive=60, false_negative=90, panels={"lab": (1.5, ["blood", "urine"])}
)


def table(seed: int = 0, missing: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """The ward says which of two tests holds the class; the scan says a little in either."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["east", "north", "south", "west"], size=N_ROWS)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 15, size=N_ROWS),
            "ward": ward,
            "blood": rng.normal(size=N_ROWS),
            "urine": rng.normal(size=N_ROWS),
            "scan": rng.normal(size=N_ROWS),
        }
    )
    deciding = np.where(np.isin(ward, ["east", "south"]), frame["blood"], frame["urine"])
    y = (3 * deciding + 0.3 * frame["scan"] + 0.4 * rng.normal(size=N_ROWS) > 0).astype(int)
    if missing:
        for name in ("ward", "blood", "scan"):
            frame.loc[rng.random(N_ROWS) < 0.08, name] = np.nan
    return frame, np.asarray(y)
