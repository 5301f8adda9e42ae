"""How a registered method is built for one setting, and what identifies it."""

from __future__ import annotations

import re
from typing import Any

from adacos.bench.settings import Setting
from adacos.bench.sources import code_digest
from adacos.costs import Costs
from adacos.policies.target_recall import TargetRecallClassifier
from adacos.registry import Method
from adacos.validation import is_given


def supports(method: Method, setting: Setting) -> bool:
    """Whether the method can be run in a setting with a target recall, where it has one."""
    if setting.target_recall is None:
        return True
    if method.recall is None:
        policy = method.make(Costs())
        return getattr(policy, "stops_by_rule", False) or "target_recall" in _parameters(policy)
    return method.recall


def shares_fit(method: Method) -> bool:
    """Whether one fit serves several settings and the other methods of the family."""
    return can_share(method.make(Costs()))


def can_share(policy: object) -> bool:
    """Whether a policy can become fitted with the fit of another."""
    return hasattr(policy, "from_model") and getattr(policy, "shares_fits", True)


def parameters(method: Method) -> dict[str, Any]:
    """The parameters it is run with, but for costs, seed and target recall."""
    accepted = _parameters(method.make(Costs()))
    return {
        name: value
        for name, value in accepted.items()
        if name not in ("costs", "random_state", "target_recall") and is_given(value)
    }


def signature(method: Method) -> str:
    """Name, parameters and code from elsewhere as text, the same in every process."""
    described = re.sub(r" at 0x[0-9a-f]+", "", repr(parameters(method)))
    return method.name + described + code_digest(method)


def build(method: Method, costs: Costs, setting: Setting, seed: int) -> Any:
    """An unfitted object for one setting and seed."""
    policy = method.make(costs)
    chosen: dict[str, Any] = {"random_state": seed}
    recall = setting.target_recall
    if recall is not None and getattr(policy, "stops_by_rule", False):
        # The paper's own rule, as in its experiments.
        policy.set_params(**chosen)
        return TargetRecallClassifier(policy, target_recall=recall, recall_at="every_set")
    if recall is not None:
        chosen["target_recall"] = recall
    known = {name: value for name, value in chosen.items() if name in _parameters(policy)}
    return policy.set_params(**known) if known else policy


def _parameters(policy: object) -> dict[str, Any]:
    return dict(policy.get_params(deep=False)) if hasattr(policy, "get_params") else {}
