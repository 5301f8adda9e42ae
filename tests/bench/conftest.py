from __future__ import annotations

import pytest

from adacos import registry as tables
from adacos.registry import forgetting, register_dataset, register_method
from tests.bench.toy import Noisy, Thresholder, toy_dataset


@pytest.fixture
def registry():
    """The registry with a toy method and data set, restored afterwards."""
    with forgetting():
        register_method("toy", Thresholder)
        register_method("noisy", Noisy)
        register_dataset("made up", toy_dataset)
        yield tables
