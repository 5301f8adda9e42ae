"""Strengths of more than two classes: no fit is made twice."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels import class_strengths
from adacos.kernels.class_strengths import blend_class_strengths, straight_classes


def test_without_wiggly_parts_smoothness_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blend is that of the ridge strengths alone."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(120), rng.integers(0, 2, (120, 3)).astype(float)])
    y = np.argmax(design[:, 1:] + rng.gumbel(size=(120, 3)), axis=1)
    term, linear = np.array([-1, 0, 1, 2]), np.ones(3, dtype=np.bool_)
    weight, fold = np.ones(120), np.arange(120) % 4
    start = straight_classes(design, y, weight, np.ones(4, dtype=np.bool_), 3)
    rows = (design, y, weight, fold, term, linear)
    blend = blend_class_strengths(*rows, start=start)
    n_ridge = len(class_strengths.RIDGE_GRID)
    assert blend.used is not None
    assert not blend.used[n_ridge:-1].any()
    # Candidates that a set with wiggly parts used: their ridge strengths are kept.
    wiggly = np.zeros(len(blend.used), dtype=np.bool_)
    wiggly[[n_ridge + 1, 2 * n_ridge + 1]] = True
    again = blend_class_strengths(*rows, start=start, candidates=wiggly)
    assert again.used is not None
    assert np.flatnonzero(again.used).tolist() == [1]
    monkeypatch.setattr(class_strengths, "SMOOTHNESS_GRID", (7.0,))
    alone = blend_class_strengths(*rows, start=start)
    np.testing.assert_allclose(blend.coef, alone.coef, rtol=1e-12)
