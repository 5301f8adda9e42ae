"""The policies that go through the contract suite: every one in the registry, made quick.

A policy that is added to the registry takes part without an edit; `VARIANTS` names the parameters
in which a policy decides by other code.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest

from adacos.registry import POLICIES, Policy

# Whatever of these a policy has, so that fitting takes no time.
QUICK: dict[str, Any] = {
    "cv": 2,
    "n_trees": 6,
    "n_lambdas": 2,
    "n_tradeoffs": 3,
    "max_depth": 2,
    "n_init": 1,
    "n_rounds": 2,
    "n_states": 400,
    "strengths": "common",
    "learning_rates": (0.3,),
    "full_fractions": (0.3, 0.7),
    "n_updates": 30,
    "n_pretraining": 40,
    "n_environments": 32,
    "device": "cpu",
}
_FORWARD: dict[str, Any] = {"sequence": "forward"}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "aaco": [{"max_sets": 32}, {"max_sets": 10}],
    "adacos": [
        {},
        {"lookahead": "coherent"},
        {"lookahead": "paper"},
        _FORWARD,
        {"sequence": "auto"},
    ],
    "cos": [{}, _FORWARD],
    "full": [{}, _FORWARD],
    "dwsm": [{"variant": "cost_weighted"}, {"variant": "unconstrained"}],
    "greedy-miser": [{"loss": "logistic"}, {"loss": "squared"}],
    "optimal": [{"joint": "counts", "n_codes": 3}, {"joint": "naive_bayes", "n_codes": 3}],
    "pomdp": [
        {"lookahead": 1, "n_codes": 4, "n_components": 2, "smoothing": 5.0},
        {"lookahead": 2, "n_codes": 4, "n_components": 2, "smoothing": 5.0},
    ],
    "shim2018": [
        {"reward": reward, "learning_rate": 3e-3, "lambdas": (0.0, 0.01)}
        for reward in ("money", "log_likelihood", "auto")
    ],
}


class Case(NamedTuple):
    """A registered policy and the parameters with which it is tried."""

    policy: Policy
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the policy and what sets this case apart."""
        words = [str(value) for value in self.parameters.values() if isinstance(value, str)]
        return "-".join([self.policy.name, *words, *self._numbered()])

    def _numbered(self) -> list[str]:
        words = {"lookahead": "ahead", "max_sets": "sets"}
        numbers = {k: n for k, n in self.parameters.items() if isinstance(n, int)}
        return [f"{words[key]}{n}" for key, n in numbers.items() if key in words]

    def make(self, costs: Any = None, **parameters: Any) -> Any:
        """The policy, unfitted."""
        estimator = self.policy.load()(costs=costs)
        has = estimator.get_params()
        quick = {key: value for key, value in QUICK.items() if key in has}
        return estimator.set_params(**{**quick, **self.parameters, **parameters})


def cases(*, variants: bool = True) -> list[Any]:
    """One pytest parameter for each policy, or for each of its variants."""
    return [
        pytest.param(case, id=case.name, marks=marks(policy))
        for policy in POLICIES.values()
        for case in [Case(policy, given) for given in VARIANTS.get(policy.name, [{}])][
            : None if variants else 1
        ]
    ]


def marks(policy: Policy) -> list[Any]:
    """What torch needs is run by `make test-all`; what is not installed is skipped."""
    if policy.requires is None:
        return []
    package = policy.requires[0]
    absent = pytest.mark.skipif(find_spec(package) is None, reason=f"needs {package}")
    return [absent, *([pytest.mark.torch] if package == "torch" else [])]
