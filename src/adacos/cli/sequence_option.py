"""The option of `adacos fit` that says how covariates are ordered, and how long fits take."""

from __future__ import annotations

from adacos.exceptions import InvalidInputError
from adacos.policies.leave_out import SEQUENCES
from adacos.registry import POLICIES
from adacos.validation import choice

# Fits of AdaCOS with the default order that take as long.
_OF_POLICY = {"branching": 10, "planning": 30, "auto": 50}
_OF_SEQUENCE = {"forward": 2, "both": 20}


def read_sequence(policy: str, given: str | None) -> str:
    """How the set sequence is found; the default where nobody says."""
    if given is None:
        return SEQUENCES[0]
    if "sequence" not in POLICIES[policy].load()().get_params():
        raise InvalidInputError(
            "--sequence",
            "goes with --policy adacos, branching, cos and full",
            f"--policy {policy}",
            "Choose one of them, or leave the option out.",
        )
    words = {name.replace("_", "-"): name for name in (*SEQUENCES, "both")}
    return words[choice("--sequence", given.replace("_", "-"), tuple(words))]


def effort(policy: str, sequence: str) -> int:
    """How many times as long a fit takes as that of AdaCOS along the default order, about."""
    return _OF_POLICY.get(policy, 1) * _OF_SEQUENCE.get(sequence, 1)
