"""The methods and data sets that can be named in a benchmark, and how to add one's own.

A method is a function from `Costs` to an unfitted object with `fit(X, y)` and `acquire(X)`, whose
result has `label`, `probability`, `cost` and `acquired` as `AcquisitionResult` has. A data set is a
function without arguments that returns a `Dataset`. Each plugs in with one call:

    register_method("mine", lambda costs: MyClassifier(costs))
    register_dataset("clinic", lambda: Dataset(X, y, prices, {}, "our records", names))
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from adacos.bench.settings import Setting
from adacos.costs import Costs
from adacos.datasets import Dataset
from adacos.exceptions import InvalidInputError, MissingExtraError

Make = Callable[[Costs], Any]


@dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes
    ----------
    name : unique name, as it stands in tables and legends.
    make : function from costs to an unfitted object.
    family : methods of one family are run together; those with `from_model` share one fit.
    effort : run time relative to the others, to start the longest first.
    rival : whether it is a method of the literature rather than of this library.
    recall : False if it cannot be run with a target recall although it has the parameter.
    requires : package it cannot do without and the extra that brings it.
    """

    name: str
    make: Make
    family: str
    effort: float = 1.0
    rival: bool = False
    recall: bool = True
    requires: tuple[str, str] | None = None

    def check_installed(self) -> None:
        """Raise MissingExtraError if what the method needs is absent."""
        if self.requires is not None and find_spec(self.requires[0]) is None:
            raise MissingExtraError(*self.requires)

    def supports(self, setting: Setting) -> bool:
        """Whether the method can be run in a setting: a target recall needs the parameter."""
        if setting.target_recall is None:
            return True
        return self.recall and "target_recall" in _parameters(self.make(Costs()))

    def shares_fit(self) -> bool:
        """Whether one fit serves several settings and the other methods of the family."""
        return hasattr(self.make(Costs()), "from_model")

    def parameters(self) -> dict[str, Any]:
        """The parameters it is run with, but for costs, seed and target recall."""
        own = _parameters(self.make(Costs()))
        return {k: v for k, v in own.items() if k not in ("costs", "random_state", "target_recall")}

    @property
    def signature(self) -> str:
        """Name and parameters as text, the same in every process."""
        return self.name + re.sub(r" at 0x[0-9a-f]+", "", repr(self.parameters()))

    def build(self, costs: Costs, setting: Setting, seed: int) -> Any:
        """An unfitted object for one setting and seed."""
        policy = self.make(costs)
        chosen: dict[str, Any] = {"random_state": seed}
        if setting.target_recall is not None:
            chosen["target_recall"] = setting.target_recall
        known = {name: value for name, value in chosen.items() if name in _parameters(policy)}
        return policy.set_params(**known) if known else policy


@dataclass(frozen=True)
class Source:
    """A registered data set.

    Attributes
    ----------
    name : unique name.
    load : function that returns a `Dataset`; it is given the path if one is needed.
    obtain : how to get the file where the user must bring it, None where nothing is needed.
    """

    name: str
    load: Callable[..., Dataset]
    obtain: str | None = None


@dataclass
class Registry:
    """Methods and data sets by name, in order of registration."""

    methods: dict[str, Method] = field(default_factory=dict)
    datasets: dict[str, Source] = field(default_factory=dict)


REGISTRY = Registry()


def register_method(
    name: str,
    make: Make,
    *,
    family: str | None = None,
    effort: float = 1.0,
    rival: bool = False,
    recall: bool = True,
    requires: tuple[str, str] | None = None,
) -> None:
    """Add a method under a new name. See `Method` for the arguments."""
    _check_new("name", name, REGISTRY.methods)
    if not callable(make):
        raise InvalidInputError(
            "make",
            "must be a function from Costs to an object with fit and acquire",
            make,
            f"For example register_method({name!r}, lambda costs: MyClassifier(costs)).",
        )
    REGISTRY.methods[name] = Method(name, make, family or name, effort, rival, recall, requires)


def register_dataset(name: str, load: Callable[..., Dataset], *, obtain: str | None = None) -> None:
    """Add a data set under a new name. See `Source` for the arguments."""
    _check_new("name", name, REGISTRY.datasets)
    if not callable(load):
        raise InvalidInputError(
            "load",
            "must be a function that returns a Dataset",
            load,
            f"For example register_dataset({name!r}, load_it).",
        )
    REGISTRY.datasets[name] = Source(name, load, obtain)


def _check_new(parameter: str, name: str, taken: dict[str, Any]) -> None:
    if not isinstance(name, str) or not name.strip() or any(c in name for c in ",/\\\n"):
        raise InvalidInputError(
            parameter,
            "must be a non-empty name without commas, slashes or line breaks",
            name,
            "Choose another name.",
        )
    if name in taken:
        raise InvalidInputError(
            parameter, "must not be registered yet", name, f"Taken are: {', '.join(taken)}."
        )


def _parameters(policy: Any) -> dict[str, Any]:
    return dict(policy.get_params(deep=False)) if hasattr(policy, "get_params") else {}
