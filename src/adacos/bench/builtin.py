"""The methods and data sets of the paper, registered under the names of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adacos.bench.registry import Make, register_dataset, register_method
from adacos.costs import Costs
from adacos.datasets import load_heart, load_physionet2012, load_pima, load_wisconsin
from adacos.policies import AdaCOSClassifier, COSClassifier, FullModelClassifier

ADACOS, ADACOS_FORWARD = "AdaCOS (group lasso)", "AdaCOS (forward)"
COS, COS_FORWARD = "COS (group lasso)", "COS (forward)"
FULL_MODEL = "Full Model"
OWN_METHODS = (ADACOS, COS, FULL_MODEL, ADACOS_FORWARD, COS_FORWARD)

# Name in the tables, class, its parameters, package it needs beyond the core, effort.
_RIVALS: tuple[tuple[str, str, dict[str, Any], tuple[str, str] | None, float], ...] = (
    ("Shim2018", "Shim2018Classifier", {}, ("torch", "rivals"), 50.0),
    ("AdaptGbrt", "AdaptGbrtClassifier", {}, None, 50.0),
    ("GreedyMiser", "GreedyMiserClassifier", {}, None, 10.0),
    ("DWSM", "DWSMClassifier", {}, None, 10.0),
    ("POMDP", "POMDPClassifier", {}, None, 10.0),
    ("CEGB", "CEGBClassifier", {}, ("lightgbm", "rivals"), 10.0),
    # The exact optimum needs discrete covariates: numbers are cut into three codes.
    ("Optimal (3 codes)", "OptimalPolicyClassifier", {"n_codes": 3}, None, 10.0),
)

PHYSIONET_OBTAIN = (
    "Download set-a, set-b, set-c and their Outcomes files from "
    "https://physionet.org/content/challenge-2012/1.0.0/, unpack them into one folder and pass "
    "--data physionet=FOLDER (a ready CSV table also serves)."
)


def _with_sequence(policy: Callable[..., Any], sequence: str) -> Make:
    return lambda costs: policy(costs=costs, sequence=sequence)


def _rival(class_name: str, parameters: dict[str, Any]) -> Make:
    def make(costs: Costs) -> Any:
        import adacos.rivals

        return getattr(adacos.rivals, class_name)(costs=costs, **parameters)

    return make


def register_builtin() -> None:
    """Register everything the library brings along."""
    shared: dict[str, Any] = {"family": "group lasso"}
    register_method(ADACOS, lambda costs: AdaCOSClassifier(costs=costs), **shared)
    register_method(COS, lambda costs: COSClassifier(costs=costs), **shared)
    register_method(FULL_MODEL, lambda costs: FullModelClassifier(costs=costs), **shared)
    # Forward selection needs the cost of a false negative, which a target recall replaces.
    shared = {"family": "forward", "effort": 10.0, "recall": False}
    for sequence in ("forward", "both"):
        for name, policy in (("AdaCOS", AdaCOSClassifier), ("COS", COSClassifier)):
            register_method(f"{name} ({sequence})", _with_sequence(policy, sequence), **shared)
    for name, class_name, parameters, requires, effort in _RIVALS:
        make = _rival(class_name, parameters)
        register_method(name, make, effort=effort, rival=True, requires=requires)
    register_dataset("pima", lambda: load_pima(as_frame=False))
    register_dataset("wisconsin", lambda: load_wisconsin(sample_code=True, as_frame=False))
    register_dataset("heart", lambda: load_heart(as_frame=False))
    register_dataset(
        "physionet",
        lambda path: load_physionet2012(path, as_frame=False),
        obtain=PHYSIONET_OBTAIN,
    )


register_builtin()
