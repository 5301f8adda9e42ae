"""The digest of a fitted policy: a consultation is not continued on another model."""

from __future__ import annotations

from typing import Protocol

from adacos.decision import AnyDecider


class Fitted(Protocol):
    """What has a decider."""

    decider_: AnyDecider


def fingerprint(policy: Fitted) -> str:
    """Digest of everything that decisions of a policy depend on, and of nothing else."""
    return policy.decider_.digest
