"""A decider that acquires one fixed set and then asks an estimator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adacos.decision import STOP, Decision, ObservedDecider, ObservedState
from adacos.engine import compact_left
from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import log_odds_of
from adacos.models.estimator_answers import EstimatorAnswers
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints
from adacos.validation import listed


@dataclass(frozen=True, eq=False)
class FixedSetDecider(ObservedDecider):
    """Acquire the same covariates for every row, then classify by an estimator.

    What is unavailable is missing for the estimator. As long as something is to be acquired the
    probabilities are the shares of the classes: an estimator says nothing of part of its input.

    Attributes
    ----------
    members : the covariates, in order of acquisition.
    shares : share of each class in training.
    answers : what the estimator says; None where nothing is acquired.
    """

    members: Ints
    shares: Floats
    answers: EstimatorAnswers | None

    def decide(self, state: ObservedState) -> Decision:
        """What comes next for each row."""
        n_rows = len(state.values)
        if self.answers is None:
            return Decision(np.full(n_rows, STOP), self._log_odds_of_shares(n_rows))
        wanted = (state.available & ~state.acquired)[:, self.members]
        stops = np.asarray(~wanted.any(axis=1))
        log_odds = self._log_odds_of_shares(n_rows)
        if stops.any():
            log_odds[stops] = self._answered(state, stops)
        return Decision(compact_left(np.where(wanted, self.members, STOP)), log_odds)

    def log_odds(self, state: ObservedState) -> Floats:
        """Log-odds given exactly what was acquired: the whole set, or nothing."""
        of_set = np.zeros(len(self.costs.names), dtype=np.bool_)
        of_set[self.members] = True
        there = state.acquired
        if state.unseen is not None:
            there = there | (state.unseen & ~state.available)
        whole = (there == of_set).all(axis=1)
        odd = ~whole & state.acquired.any(axis=1)
        if odd.any():
            known = np.array(self.costs.names)[state.acquired[np.flatnonzero(odd)[0]]]
            raise InvalidInputError(
                "known",
                f"must be {listed(np.array(self.costs.names)[self.members]) or 'nothing'}, with a "
                "value in every row, or nothing: the estimator says nothing of other covariates",
                listed(known),
                "Name exactly these, or leave known out.",
            )
        log_odds = self._log_odds_of_shares(len(whole))
        if whole.any() and self.answers is not None:
            log_odds[whole] = self._answered(state, whole)
        return log_odds

    def explain(self, state: ObservedState, decision: Decision) -> Reasons:
        """What the answer rests on."""
        if self.answers is None:
            return Reasons(because="Nothing is acquired: every row is answered by class shares.")
        names = listed(np.array(self.costs.names)[self.members])
        kind = type(self.answers.estimator).__name__
        if np.ravel(decision.covariates)[0] == STOP:
            return Reasons(because=f"{kind} answers by {names}.")
        return Reasons(
            because=f"Every row acquires {names}. Until all are there, the probability is the "
            "share of the class among the training rows."
        )

    def _answered(self, state: ObservedState, rows: Bools) -> Floats:
        """Log-odds of rows by the estimator, which sees what was acquired of the set."""
        assert self.answers is not None
        source = self.encoder.source
        columns = columns_of(self.members, source)
        there = state.acquired[rows][:, source[columns]]
        values = np.where(there, state.values[rows][:, columns], np.nan)
        return _log_odds(self.answers.probabilities(values))

    def _log_odds_of_shares(self, n_rows: int) -> Floats:
        return _log_odds(np.tile(self.shares, (n_rows, 1)))


def columns_of(members: Ints, source: Ints) -> Ints:
    """Encoded columns of some covariates, in their order."""
    none = np.empty(0, dtype=np.intp)
    return np.concatenate([none, *(np.flatnonzero(source == k) for k in members)])


def _log_odds(probabilities: Floats) -> Floats:
    """Log-odds of the second class, or of each later one against the first."""
    log_odds = log_odds_of(probabilities)
    return log_odds[:, 0] if log_odds.shape[1] == 1 else log_odds
