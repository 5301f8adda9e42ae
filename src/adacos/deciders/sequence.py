"""Deciders along one set sequence: AdaCOS, which stops row by row, and one set for every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from adacos.costs import ROUNDING, CostTable
from adacos.deciders.out_of_fold import FoldedDecider
from adacos.deciders.remembered import RememberedDecider
from adacos.deciders.walk_reasons import walk_reasons
from adacos.deciders.weighing import FREE, REALISED, up_to, weigh
from adacos.decision import STOP, AnyDecider, Decision, DecisionRule, Kept, Rows, Terms
from adacos.kernels.class_risk import probabilities
from adacos.kernels.namespace import namespace
from adacos.models.dynamic import ValueTables
from adacos.models.lookahead import (
    WalkState,
    advance,
    begin,
    log_odds_now,
    out_of_fold_state,
    payable_sets,
)
from adacos.models.sequence_model import SequenceModel
from adacos.reasons import Reasons
from adacos.typing import Bools, Floats, Ints
from adacos.validation import listed


@dataclass(frozen=True, eq=False)
class SequenceDecider(FoldedDecider[WalkState]):
    """A decider about rows that acquire along S_1 ⊂ … ⊂ S_q; a subclass adds `decide`.

    Its state says at which set the rows are: `state.upcoming` holds the covariates of the later
    sets in order, and `state.original_stage` is the number of the set.

    Parameters
    ----------
    terms : Terms
        What every decider is made of.
    model : SequenceModel
        Sets, additive models and densities.

    See Also
    --------
    SequencePolicy : A policy that learns the model and makes a decider with it.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import STOP, Decision, SequenceDecider
    >>> class DoubtDecider(SequenceDecider):
    ...     def decide(self, state):
    ...         log_odds = self.log_odds(state)
    ...         upcoming = state.upcoming[0] if len(state.upcoming) else STOP
    ...         covariates = np.where(np.abs(log_odds) < 1, upcoming, STOP)
    ...         return Decision(covariates, log_odds, state.original_stage)
    """

    model: SequenceModel

    @property
    def opening(self) -> Ints:
        """The covariates of S_1."""
        return np.asarray(self.model.sequence.set(0))

    @property
    def takes_tensors(self) -> bool:
        """Whether complete rows are decided on the device of a tensor."""
        plain = self.budget is None and self.costs.immediate is None and self.costs.excess is None
        return plain and not self.model.many_classes

    def begin(self, rows: Rows) -> WalkState:
        """State of rows that have some covariates."""
        return begin(self.model, rows.encoded, rows.available, rows.have, rows.known)

    def advance(self, state: WalkState, going: Bools, covariates: Ints) -> WalkState:
        """State of the rows in `going` after acquiring what is available of `covariates`."""
        return advance(state, going, covariates.shape[1])

    def limit(self, state: WalkState, left: Floats) -> WalkState:
        """A state of rows that can pay that much more, at most."""
        return state._replace(left=(1 + self.multiplier) * left)

    def judged(self, state: WalkState, rows: Ints) -> WalkState:
        """Give a state of training rows with the log-odds of models that did not see them.

        Parameters
        ----------
        state : state
            The rows.
        rows : ndarray of int of shape (n_rows,)
            Their numbers among the training rows.

        Returns
        -------
        state
            The same rows.
        """
        return out_of_fold_state(state, rows)

    def log_odds(self, state: WalkState) -> Floats:
        """Log-odds of rows if they stopped now."""
        return log_odds_now(state)

    def remembering(self, kept: Kept) -> AnyDecider:
        """The decider with the states of rows that were kept at other costs."""
        if self.terms.mixture is not None:
            return self
        return RememberedDecider(self.terms, self, kept.setdefault(id(self.model), {}))

    def worth(self, state: WalkState, log_odds: Floats) -> Floats:
        """Give what rows at a set are expected to cost later, by their log-odds.

        Parameters
        ----------
        state : state
            The rows.
        log_odds : ndarray of shape (n_rows,) or (n_rows, n_classes - 1)
            The log-odds.

        Returns
        -------
        ndarray of shape (n_rows,)
            The costs.
        """
        return self.rule.risk(log_odds)

    @property
    def only_stage(self) -> int | None:
        """The number of the set at which every row stops; None where it depends on the row."""
        return 0 if self.rule.always_positive else None

    def saved_at(self, stage: int) -> tuple[Floats, Callable[[Floats], Floats]] | None:
        """Give what continuing from a set saves complete rows, by their log-odds alone.

        Parameters
        ----------
        stage : int
            Number of the set.

        Returns
        -------
        tuple or None
            A grid of log-odds, and the saving as a function; None where it is not kept so.
        """
        return None

    explain = walk_reasons


@dataclass(frozen=True, eq=False)
class OneSetDecider(SequenceDecider):
    """Acquire one set and stop there, whatever the values.

    Attributes
    ----------
    stage : number of the set.
    """

    stage: int

    @property
    def only_stage(self) -> int:
        """The number of the set at which every row stops."""
        return 0 if self.rule.always_positive else self.stage

    def decide(self, state: WalkState) -> Decision:
        """What comes next for each row."""
        last = 0 if self.rule.always_positive else self.stage
        return up_to(state, int(np.searchsorted(state.origin, last)), self.costs)

    def explain(self, state: WalkState, decision: Decision) -> Reasons:
        """The reasons, the first of which is that the set is the same for every row."""
        reasons = super().explain(state, decision)
        names = [self.encoder.names[k] for k in self.model.sequence.set(self.stage).tolist()]
        if self.rule.always_positive:
            own = "Every row is called positive, so that no question would change the result."
        elif len(names) == len(self.encoder.names):
            own = "Every row acquires all covariates, whatever the values."
        elif names:
            own = f"Every row acquires the same set, whatever the values: {listed(names)}."
        else:
            own = "No row acquires anything, whatever its probability."
        return replace(reasons, because=" ".join(filter(None, [own, reasons.because])))

    def answers(self, rows: Ints, encoded: Callable[[], Floats]) -> Ints:
        """Labels of training rows at the set, by models that did not see them."""
        return self.rule.label(self.model.out_of_fold_log_odds[rows, self.stage])


@dataclass(frozen=True, eq=False)
class CheapestSetDecider(OneSetDecider):
    """Acquire the set of least out-of-fold total cost that the budgets pay for, and stop there."""

    @classmethod
    def cheapest(cls, terms: Terms, model: SequenceModel) -> Self:
        """The decider whose set is found on the training rows of a model."""
        most = min(np.inf if b is None else b for b in (terms.budget, terms.mean_budget))
        payable = model.sequence.costs(terms.costs) <= most * (1 + ROUNDING)
        cost = model.expected_costs(replace(terms.costs, matrix=terms.rule.matrix))
        return cls(terms, model, int(np.argmin(np.where(payable, cost, np.inf))))

    def with_rule(self, rule: DecisionRule) -> Self:
        """The decider that decides by another rule, and acquires the cheapest set for it."""
        return self.cheapest(self.terms._replace(rule=rule), self.model)

    def with_costs(self, costs: CostTable) -> Self:
        """The decider that decides by other costs, and acquires the cheapest set for them."""
        return self.cheapest(self._terms_at(costs), self.model)


@dataclass(frozen=True, eq=False)
class AdaCOSDecider(SequenceDecider):
    """Acquire the next covariate as long as some later set is expected to pay.

    Attributes
    ----------
    lookahead : model of the log-odds after an acquisition, see `AdaCOSClassifier`.
    values : what each set is worth at these costs.
    """

    lookahead: str = field(metadata={"first_name": "outlook"})
    values: ValueTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shown = self.costs if self.lookahead == REALISED else None
        tables = ValueTables(self.weighed_costs, self.rule.matrix, realised=shown)
        object.__setattr__(self, "values", tables)

    def with_multiplier(self, multiplier: float) -> Self:
        """The decider by which covariate costs count 1 + `multiplier` times."""
        decider = super().with_multiplier(multiplier)
        # What rows left out showed is of the costs as they are.
        object.__setattr__(decider, "values", self.values.reweighed(decider.weighed_costs))
        return decider

    def with_costs(self, costs: CostTable) -> Self:
        """The decider that decides by other costs."""
        decider = super().with_costs(costs)
        realised = None if decider.values.realised is None else decider.costs
        values = self.values.recosted(decider.weighed_costs, decider.rule.matrix, realised)
        object.__setattr__(decider, "values", values)
        return decider

    def worth(self, state: WalkState, log_odds: Floats) -> Floats:
        """As for one set; where one may stop at any later set, continuing counts."""
        risk, last = super().worth(state, log_odds), state.stage + payable_sets(state, self.costs)
        given = self.lookahead not in FREE or self.rule.always_positive or self.multiplier > 0
        if given or last == state.stage:
            return risk
        saved = self._gain_at(state, log_odds, last, stated=True)
        return np.asarray(risk - np.maximum(saved, 0.0))

    def saved_at(self, stage: int) -> tuple[Floats, Callable[[Floats], Floats]] | None:
        """What continuing saves, where one may stop at any later set."""
        if self.lookahead not in FREE or self.model.many_classes:
            return None
        values = self.values.of_sets(self.model)
        return values.grid, lambda log_odds: values.gain_at(stage, log_odds)

    def gain(self, state: WalkState) -> Floats | None:
        """What continuing saves each row, by dynamic programming along the sequence."""
        if self.lookahead not in FREE or self.rule.always_positive:
            return None
        now, last = log_odds_now(state), state.stage + len(state.upcoming)
        if last == state.stage:
            return np.full(len(now), -np.inf)
        return self._gain_at(state, now, last, stated=False)

    def _gain_at(self, state: WalkState, log_odds: Floats, last: int, *, stated: bool) -> Floats:
        """What continuing saves where one may stop at any set up to `last`.

        By it rows continue; `stated` gives what is reported of it.
        """
        if state.model.many_classes:
            many, belief = self.values.of_classes(state.model, last), probabilities(log_odds)
            gain = many.stated_gain if stated else many.gain_at
            return gain(state.stage, belief)
        return self.values.of_sets(state.model, last).gain_at(state.stage, log_odds)

    @property
    def takes_tensors(self) -> bool:
        """Whether complete rows are decided on the device of a tensor."""
        return super().takes_tensors and self.lookahead in FREE

    def decide(self, state: WalkState) -> Decision:
        """What comes next for each row."""
        if self.rule.always_positive:
            return up_to(state, 0, self.costs)
        continues, lookahead = weigh(state, self.values, self.lookahead)
        upcoming = state.upcoming[0] if len(state.upcoming) else STOP
        covariates = namespace(continues).where(continues, int(upcoming), STOP)
        return Decision(covariates, lookahead.log_odds, state.original_stage, lookahead)
