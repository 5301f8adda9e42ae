from __future__ import annotations

import pytest

from adacos.bench.registry import REGISTRY, register_dataset, register_method
from tests.bench.toy import Noisy, Thresholder, toy_dataset


@pytest.fixture
def registry():
    """The registry with a toy method and data set, restored afterwards."""
    import adacos.bench.builtin  # noqa: F401

    methods, datasets = dict(REGISTRY.methods), dict(REGISTRY.datasets)
    register_method("toy", lambda costs: Thresholder(costs))
    register_method("noisy", lambda costs: Noisy(costs))
    register_dataset("made up", toy_dataset)
    yield REGISTRY
    REGISTRY.methods, REGISTRY.datasets = methods, datasets
