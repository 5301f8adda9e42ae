"""Which candidates of the strengths a set tries, and how many columns a basis may have."""

from __future__ import annotations

import numpy as np
import pytest

from adacos.kernels.folds import stratified_folds
from adacos.models import set_fits
from adacos.models.gam import FAMILIES, fit_additive
from adacos.models.set_fits import SetFits, affordable_splines, prepare
from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import BINARY, NUMERIC


def rows(n: int, p: int) -> SetFits:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((n, p))
    y = (rng.random(n) < 1 / (1 + np.exp(-np.sin(2 * X[:, 0]) - X[:, 1]))).astype(float)
    encoder = TableEncoder.fit(X, [str(i) for i in range(p)])
    fold = stratified_folds(X, y, 4, 0)
    return prepare(X, y, encoder, n_splines=6, families=FAMILIES["auto"], fold=fold)


def test_small_sets_try_every_candidate() -> None:
    """Bit for bit the fit without any rule, along the whole sequence."""
    fits, start = rows(150, 4), None
    for size in range(1, 5):
        members = np.arange(size)
        found = fits.fit(members, start)
        whole = fit_additive(
            fits.columns, fits.basis, members, fits.y, fits.weight, fits.fold, start=start
        )
        np.testing.assert_array_equal(found.coef, whole.coef)
        np.testing.assert_array_equal(found.leave_out_log_odds, whole.leave_out_log_odds)
        assert found.chosen_at == size
        start = found


def test_large_sets_try_what_the_last_choice_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out log-loss within 0.1 % of trying all at every set."""
    every, start = rows(300, 10), None
    full = []
    for size in range(1, 11):
        start = every.fit(np.arange(size), start)
        full.append(start.leave_out_loss)
    monkeypatch.setattr(set_fits, "SMALL_SET", 3)
    fits, start, chosen = rows(300, 10), None, []
    for size in range(1, 11):
        start = fits.fit(np.arange(size), start)
        chosen.append(start.chosen_at)
        assert start.leave_out_loss <= full[size - 1] * 1.001
    assert chosen == [1, 2, 3, 3, 5, 5, 5, 8, 8, 8]


def test_columns_are_limited_by_rows_only_where_there_are_many() -> None:
    numeric = (NUMERIC,)
    assert affordable_splines(20, numeric * 28, 10) == 10
    assert affordable_splines(614, (*numeric * 8, BINARY), 10) == 10
    assert affordable_splines(200, numeric * 40, 10) == 7
    assert affordable_splines(200, numeric * 80, 10) == 4
    assert affordable_splines(1000, numeric * 200, 10) == 6
    assert affordable_splines(10_000, numeric * 200, 10) == 10
    assert affordable_splines(50, numeric * 500, 10) == 4
    assert affordable_splines(50, (BINARY,) * 500, 10) == 10
