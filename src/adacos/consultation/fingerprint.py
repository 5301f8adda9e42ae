"""The digest of a fitted policy: a consultation is not continued on another model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from adacos.engine import Policy

# What is told of a policy beside what it decides by: words, and estimates of its cost.
_TOLD = {"description_", "leave_out_", "misfit_", "misfit_states_"}
_FINGERPRINTS: WeakKeyDictionary[Any, tuple[tuple[int, ...], str]] = WeakKeyDictionary()


def fingerprint(policy: Policy) -> str:
    """Digest of everything learned, so that a state is not continued on another model."""
    # Neither other words nor another estimate of its cost make another model.
    learned = {
        name: value
        for name, value in vars(policy).items()
        if name.endswith("_") and name not in _TOLD
    }
    identity = tuple(id(value) for value in learned.values())
    cached = _FINGERPRINTS.get(policy)
    if cached is not None and cached[0] == identity:
        return cached[1]
    digest = hashlib.sha256(type(policy).__name__.encode())
    _digest(learned, digest)
    _FINGERPRINTS[policy] = identity, digest.hexdigest()[:16]
    return _FINGERPRINTS[policy][1]


def _digest(value: Any, digest: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for name in sorted(value, key=str):
            digest.update(f"{name}:".encode())
            _digest(value[name], digest)
    elif isinstance(value, (list, tuple, np.ndarray)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _digest(item, digest)
    elif hasattr(value, "__dict__"):
        digest.update(type(value).__name__.encode())
        _digest(vars(value), digest)
    else:
        digest.update(repr(value).encode())
