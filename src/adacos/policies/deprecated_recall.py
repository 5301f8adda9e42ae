"""The parameters about recalls that policies over a set sequence have for one more release.

They are those of `TargetRecallClassifier`. A policy that is given them warns, and does as that one
does around it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from adacos.policies.recall import RecallAim
from adacos.validation import is_given, level_of_caller

if TYPE_CHECKING:
    from adacos.policies.sequence_policy import SequencePolicy

_DEFAULTS = asdict(RecallAim())


def own_aim(policy: SequencePolicy) -> RecallAim:
    """What the deprecated parameters of a policy ask of its recall."""
    own = {name: getattr(policy, name) for name in _DEFAULTS}
    return RecallAim(**{name: value for name, value in own.items() if is_given(value)})


def warn_of_recall(policy: SequencePolicy, aim: RecallAim) -> None:
    """Say how to ask for a recall from now on."""
    _warn(
        "The parameters about recalls are now those of TargetRecallClassifier",
        f"TargetRecallClassifier({type(policy).__name__}(...), {aim})",
    )


def warn_of_calibrate(policy: SequencePolicy) -> None:
    """Say how to certify a recall from now on."""
    kind = type(policy).__name__
    _warn(
        f"{kind}.calibrate is now that of TargetRecallClassifier",
        f"TargetRecallClassifier({kind}(...), target_recall=...).fit(X, y).calibrate(...)",
    )


def _warn(what: str, call: str) -> None:
    warnings.warn(
        f"{what}: call {call}. The old way holds for this release only.",
        FutureWarning,
        stacklevel=level_of_caller(),
    )


def with_aim_as_given(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a policy in a model file, which held all parameters of every policy so far.

    Those that say nothing about recalls are not given.
    """
    silent = dict(_DEFAULTS)
    if state.get("target_recall") is None:
        silent["recall_at"] = state.get("recall_at", silent["recall_at"])
    return {k: v for k, v in state.items() if k not in silent or v != silent[k]}
