"""The arrays that most modules name: numbers, positions and masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
# What model files hold of objects of a class: types by name.
Fields = Mapping[str, Any]
