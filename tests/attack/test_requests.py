"""Attacks over raw sockets are refused, cost little, and leave the service as it was."""

from __future__ import annotations

import pytest

from tests.attack.runner import SERVICES, attack, attacks, judge
from tests.service.conftest import model, pima
from tests.service.running import running

__all__ = ["model", "pima"]

ATTACKS = attacks()


@pytest.fixture(scope="module")
def services(model):
    """One service of each kind, started when first needed."""
    started, contexts = {}, []

    def of(kind: str):
        if kind not in started:
            context = running(model, **SERVICES[kind])
            started[kind] = context.__enter__()
            contexts.append(context)
        return started[kind]

    yield of
    for context in contexts:
        context.__exit__(None, None, None)


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(services, name):
    described = ATTACKS[name]
    service = services(described.get("service", "open"))
    assert judge(service, described, attack(service, described)) == []
    assert "61.25" not in service.log()
    assert service.process.poll() is None
