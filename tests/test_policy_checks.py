"""The contract suite itself: each of its checks catches a policy that cheats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier
from adacos.deciders.sequence import AdaCOSDecider
from adacos.decision import Decision, Terms
from adacos.engine import AcquisitionResult
from adacos.models.lookahead import WalkState
from tests.policy_checks import check_consultation, check_known, check_parameters, check_pickle
from tests.rivals.problems import MIXED_COSTS, mixed_table

QUICK: dict[str, Any] = {"cv": 2, "strengths": "common"}


class Forgetful(AdaCOSClassifier):
    """Pays for what is known."""

    def acquire(self, X: Any, *, known: Any = None) -> AcquisitionResult:
        return super().acquire(X)


class SneakyDecider(AdaCOSDecider):
    def decide(self, state: WalkState) -> Decision:
        decision = super().decide(state)
        return decision._replace(log_odds=decision.log_odds + np.nan_to_num(state.encoded[:, -1]))


class Sneaky(AdaCOSClassifier):
    """Reads the last covariate as soon as something else is known."""

    def make_decider(self, terms: Terms) -> SneakyDecider:
        return SneakyDecider(terms, self.model_, self.lookahead)


class TwoFacedDecider(AdaCOSDecider):
    def decide(self, state: WalkState) -> Decision:
        decision = super().decide(state)
        surer = 1e-6 if len(decision.log_odds) == 1 else 0.0
        return decision._replace(log_odds=decision.log_odds + surer)


class TwoFaced(AdaCOSClassifier):
    """Is surer of a row that is asked about alone."""

    def make_decider(self, terms: Terms) -> TwoFacedDecider:
        return TwoFacedDecider(terms, self.model_, self.lookahead)


class Hoarder(AdaCOSClassifier):
    """Keeps the training rows."""

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None) -> Any:
        super().fit(X, y, X_unlabeled)
        self.rows_ = X.drop(columns="kind").to_numpy(copy=True)
        return self


class Careless(AdaCOSClassifier):
    """Takes any seed."""

    constraints = {  # noqa: RUF012
        name: rule for name, rule in AdaCOSClassifier.constraints.items() if name != "random_state"
    }


def fitted(cls: Any) -> tuple[Any, Any]:
    X, y = mixed_table(80)
    return cls(MIXED_COSTS, **QUICK).fit(X, y), X


@pytest.mark.parametrize("cls", [Forgetful, Sneaky])
def test_known_values(cls: Any) -> None:
    with pytest.raises(AssertionError):
        check_known(*fitted(cls))


def test_known_values_that_are_charged() -> None:
    policy, X = fitted(AdaCOSClassifier)
    check_known(policy, X)
    honest = policy.acquire

    def charged(X: Any, known: Any = None) -> AcquisitionResult:
        result = honest(X, known=known)
        return replace(result, cost=policy.cost_table_.of(result.acquired))

    policy.acquire = charged
    with pytest.raises(AssertionError):
        check_known(policy, X)


def test_a_consultation_that_differs() -> None:
    with pytest.raises(AssertionError):
        check_consultation(*fitted(TwoFaced))


def test_a_pickle_with_the_training_rows() -> None:
    policy, X = fitted(Hoarder)
    with pytest.raises(AssertionError, match="training values"):
        check_pickle(policy, X, policy.acquire(X))


def test_parameters_that_are_not_held_to_a_rule() -> None:
    with pytest.raises(AssertionError):
        check_parameters(
            lambda **given: Careless(MIXED_COSTS, **{**QUICK, **given}), *mixed_table(40)
        )
