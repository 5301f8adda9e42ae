"""The methods of the literature we compare with, as policies like our own.

Names are imported on first use, so that one baseline does not load what another one needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adacos.registry import POLICIES

_HOME = {policy.class_name: policy for policy in POLICIES.values() if policy.rival}

__all__ = list(_HOME)

if TYPE_CHECKING:
    from adacos.rivals.aaco import AACOClassifier as AACOClassifier
    from adacos.rivals.adapt_gbrt import AdaptGbrtClassifier as AdaptGbrtClassifier
    from adacos.rivals.cegb import CEGBClassifier as CEGBClassifier
    from adacos.rivals.dime import DIMEClassifier as DIMEClassifier
    from adacos.rivals.dwsm import DWSMClassifier as DWSMClassifier
    from adacos.rivals.gdfs import GDFSClassifier as GDFSClassifier
    from adacos.rivals.greedy_miser import GreedyMiserClassifier as GreedyMiserClassifier
    from adacos.rivals.optimal import OptimalPolicyClassifier as OptimalPolicyClassifier
    from adacos.rivals.pomdp import POMDPClassifier as POMDPClassifier
    from adacos.rivals.shim2018 import Shim2018Classifier as Shim2018Classifier
    from adacos.rivals.streed import STreeDClassifier as STreeDClassifier


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return _HOME[name].load()
    raise AttributeError(f"module 'adacos.rivals' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
