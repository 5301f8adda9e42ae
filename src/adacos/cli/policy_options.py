"""The options of `adacos fit` that choose a policy: made, checked, and how long its fit takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from adacos.cli.common import pairs
from adacos.costs import Costs
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.policies.orders import SEQUENCES
from adacos.policies.target_recall import TargetRecallClassifier
from adacos.protocols import DecisionProtocol
from adacos.registry import POLICIES
from adacos.validation import choice, choices, listed

Monotonic = Annotated[
    list[str] | None,
    typer.Option(
        help="Covariates whose contribution only rises (NAME=1) or only falls (NAME=-1) with "
        "their value; may be given repeatedly."
    ),
]
# Parameters about recalls.
_RECALLS = ("target_recall", "recall_confidence", "on_uncertifiable")
# Fits of AdaCOS with the default order that take as long.
_OF_POLICY = {"branching": 10, "planning": 30, "auto": 50}
_OF_SEQUENCE = {"forward": 2, "auto": 2, "both": 3}


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
    words = {name.replace("_", "-"): name for name in (*SEQUENCES, "auto", "both")}
    return words[choice("--sequence", given.replace("_", "-"), tuple(words))]


def read_protocol(policy: str, path: Path | None) -> DecisionProtocol | None:
    """The protocol to follow; None where none is given."""
    if path is None:
        return None
    if policy != "protocol":
        rule = "goes with --policy protocol"
        raise InvalidInputError("--protocol", rule, f"--policy {policy}", "Add --policy protocol.")
    return DecisionProtocol.read(path)


def read_directions(given: list[str] | None, covariates: Sequence[str]) -> dict[str, int] | None:
    """In which direction contributions go, by covariate; None where none is given."""
    if not given:
        return None
    found = pairs(given, covariates, "--monotonic", f"{covariates[0]}=1")
    if unknown := set(found) - set(covariates):
        remedy = choices(unknown, covariates, "The covariates are")
        raise InvalidInputError("--monotonic", "must name covariates", listed(unknown), remedy)
    for name, direction in found.items():
        if direction not in ("-1", "0", "1", "+1"):
            remedy = "1 for a contribution that rises with the value, -1 for one that falls."
            raise InvalidInputError("--monotonic", f"must be 1 or -1 for {name}", direction, remedy)
    return {name: int(direction) for name, direction in found.items()}


def effort(policy: str, sequence: str) -> int:
    """How many times as long a fit takes as that of AdaCOS along the default order, about."""
    return _OF_POLICY.get(policy, 1) * _OF_SEQUENCE.get(sequence, 1)


def make_policy(policy: str, costs: Costs, **parameters: Any) -> BasePolicy:
    """The unfitted policy with those of the parameters that it has; recalls are put around it."""
    chosen: BasePolicy = POLICIES[policy].make(costs)
    known = chosen.get_params(deep=False)
    recalls = {name: parameters.pop(name) for name in _RECALLS}
    for name, option in (("budget", "--budget"), ("mean_budget", "--mean-budget")):
        if parameters[name] is not None and name not in known:
            remedy = "Choose --policy adacos, branching, auto or cos, which keep budgets."
            rule = f"is not supported by --policy {policy}"
            raise InvalidInputError(option, rule, "", remedy)
    if parameters["monotonic_cst"] is not None and "monotonic_cst" not in known:
        remedy = "Choose --policy adacos, branching, cos or full."
        raise InvalidInputError(
            "--monotonic", f"cannot be combined with --policy {policy}", "", remedy
        )
    chosen.set_params(**{name: value for name, value in parameters.items() if name in known})
    if recalls["target_recall"] is None:
        return chosen
    return TargetRecallClassifier(chosen, **recalls, random_state=parameters["random_state"])
