"""Attacks by many connections do not silence the service for others; `make attack` runs all."""

from __future__ import annotations

import pytest

from tests.attack.outages import (
    LONGEST_GAP,
    deep_bodies,
    endless_pipelines,
    many_mistakes,
    slow_bodies,
    suffer,
    unread_answers,
)
from tests.service.conftest import model, pima
from tests.service.running import running

__all__ = ["model", "pima"]


@pytest.mark.parametrize(
    "attacker", [unread_answers, endless_pipelines, slow_bodies, many_mistakes, deep_bodies]
)
def test_others_are_answered(model, attacker):
    with running(model) as service:
        noticed = suffer(service, attacker, LONGEST_GAP + 2)
        assert noticed.wrong() == []
        assert noticed.good > 0
        assert service.process.poll() is None
