"""`Consultation`: one row asked about step by step, by any policy.

A consultation is a list of events (values observed, covariates ordered or unavailable, the user's
wish to stop) on top of what was known at the start. The next step is a function of these alone:
undoing the last event brings the previous step back, and the events as JSON carry a consultation
into another process.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from adacos.consultation.alternatives import ranked, sharing
from adacos.consultation.coverage import departures
from adacos.consultation.cut_off import cut_off_of, place_shown, weighed_decisions
from adacos.consultation.state import FORMAT, MOST_REASON, OF_PERSON, check_state
from adacos.consultation.steps import (
    Acquire,
    Alternative,
    Classify,
    Explanation,
    ValueWarning,
    asked_in_any_case,
    explain,
    with_reason,
)
from adacos.consultation.values import check_value
from adacos.decision import STOP, AnyDecider, Rows, probability_at
from adacos.engine import step
from adacos.exceptions import InvalidInputError
from adacos.reasons import Plan, Reasons, Value
from adacos.restricted import restricted
from adacos.tables.description import Describable, description_of
from adacos.tables.encoder import TableEncoder
from adacos.tables.known import asked_of
from adacos.typing import Bools, Floats
from adacos.validation import choices

WAITING = "What comes next is decided when the results of what was ordered are in."


class Advisor(Describable, Protocol):
    """A fitted policy, which may add to the reasons of its decider."""

    @property
    def decider_(self) -> AnyDecider:
        """What decides."""

    def add_words(self, reasons: Reasons) -> Reasons:
        """The reasons with what only the policy can say."""


@dataclass(frozen=True)
class _Progress:
    """What is there of the row: encoded values (NaN = none), masks, values and warnings by name.

    `ordered` marks what was ordered and is not back yet; `stopped` if the user wants the label,
    whatever the policy would ask.
    """

    encoded: Floats
    have: Bools
    unavailable: Bools
    ordered: Bools
    values: dict[str, Value]
    warnings: tuple[ValueWarning, ...]
    stopped: bool = False


class Consultation:
    """One row, asked about step by step.

    Parameters
    ----------
    policy : policy
        A fitted policy.
    known : mapping of str to value, default=None
        Values by covariate name that are known from the start, at no cost.
    key : str or int, default=0
        What the row is known by, see `AdaCOSClassifier.consultation`.
    must, never : collection of str, default=()
        Covariates that are asked first in any case, and that are not asked.

    See Also
    --------
    AdaCOSClassifier.consultation : The usual way to begin one.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> consultation = AdaCOSClassifier(costs).fit(X, y).consultation()
    >>> print(consultation.next())
    Acquire Age for 1.00.
    >>> print(consultation.observe(Age=24).next())
    Acquire BMI for 1.00.
    """

    def __init__(
        self,
        policy: Advisor,
        known: Mapping[str, Any] | None = None,
        key: Hashable = 0,
        must: Collection[str] = (),
        never: Collection[str] = (),
    ) -> None:
        check_is_fitted(policy)
        self.policy, self.key = policy, key
        self._fitted = policy.decider_
        # What was begun with one decider ends with it, whatever becomes of the policy.
        self._decider = self._fitted.of_key(key)
        self._encoder: TableEncoder = self._decider.encoder
        self._said = description_of(policy)
        self._position = {name: k for k, name in enumerate(self._encoder.names)}
        n = len(self._encoder.names)
        none, nothing = np.zeros(n, np.bool_), np.full((1, len(self._encoder.source)), np.nan)
        empty = _Progress(nothing, none, none, none, {}, ())
        start = self._with_values(empty, dict(known or {}), "known")
        self._known = start.have
        # What a person chose for this row, and with it what the policy asks of all rows or of none.
        self._chosen = asked_of(self._encoder, must, never)
        self._must, self._never = asked_of(self._encoder, must, never, self._fitted.lists)
        self._decider = restricted(self._decider, *self._chosen)
        self._reasons: list[str] = []
        self._plans: tuple[Plan, ...] = ()
        self._events: list[dict[str, Any]] = []
        self._states = [start]
        self._step: Acquire | Classify | None = None

    def next(self) -> Acquire | Classify:
        """Say what the policy advises now.

        Returns
        -------
        Acquire or Classify
            The step: what to acquire, or the label; with its reasons in `explanation`.
        """
        if self._step is not None:
            return self._step
        current, decider = self._states[-1], self._decider
        available = ~current.unavailable[None, :]
        row = Rows(current.encoded, available, current.have, self._known)
        advised = step(decider, row, np.array([self.paid]))
        acquired = [k for k in advised.covariates[0].tolist() if k != STOP]
        reasons = self.policy.add_words(decider.explain(advised.state, advised.decision))
        if current.ordered.any():
            # What comes next is not decided before the results are in.
            acquired = np.flatnonzero(current.ordered).tolist()
            reasons = replace(reasons, plans=(), flips=(), because=WAITING)
        self._plans = reasons.plans
        own = np.ravel(advised.decision.covariates)[:1].tolist()
        if acquired != own and self._must[acquired].any():
            asked = [self._said.label(self._encoder.names[k]) for k in acquired if self._must[k]]
            reasons = asked_in_any_case(reasons, asked)
        log_odds, rule = advised.log_odds, decider.rule
        labels, risk = rule.answer(log_odds, advised.label)
        number = int(labels[0])
        label = decider.decisions[number]
        probability = probability_at(log_odds)[0]
        explanation = explain(
            reasons,
            label.item() if isinstance(label, np.generic) else label,
            float(np.ravel(probability)[place_shown(decider, probability, number)]),
            float(risk[0]),
            current.values,
            self.paid,
        )
        if probability.ndim:
            each = zip(map(str, decider.classes.tolist()), probability.tolist(), strict=True)
            explanation = replace(explanation, probabilities=dict(each))
        elif decider.answers_by_rule and decider.costs.decisions is None:
            explanation = replace(explanation, cut_off=cut_off_of(decider.rule))
        if decider.costs.decisions is not None:
            explanation = replace(explanation, decisions=weighed_decisions(decider, log_odds))
        if current.stopped or not acquired:
            self._step = Classify(
                label=explanation.label,
                probability=explanation.probability,
                cost=self.paid,
                expected_cost=explanation.stop_now,
                explanation=explanation,
                warnings=current.warnings,
            )
        else:
            self._step = self._asking_for(acquired, explanation)
        return self._step

    def observe(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Add values that were acquired: those asked for, or others at the user's choice.

        Parameters
        ----------
        values : mapping of str to value, default=None
            Values by covariate name.
        **named : value
            The same as keywords, for names that are Python names.

        Returns
        -------
        self
            The consultation, one event further.

        Raises
        ------
        InvalidInputError
            If there is no value, a name is not a covariate, it has a value already, the value
            cannot be one of this covariate, or the consultation was stopped.
        """
        added = {**(values or {}), **named}
        if not added:
            name, value = self._encoder.example
            shown = repr(value) if isinstance(value, str) else f"{value:g}"
            pair = f"{name}={shown}" if name.isidentifier() else f"{{{name!r}: {shown}}}"
            raise InvalidInputError(
                "observe", "needs at least one value", "", f"For example observe({pair})."
            )
        current = self._with_values(self._continuing("observe"), added, "observe")
        plain = {name: current.values[name] for name in added}
        return self._record({"observe": plain}, current)

    def order(self, *covariates: str) -> Self:
        """Say that these covariates were ordered, and that their results arrive later.

        They are paid from now on, and waited for once, however their results arrive. The next step
        is decided when each of them is observed or said to be unavailable.

        Parameters
        ----------
        *covariates : str
            Their names; without any, what the next step asks for.

        Returns
        -------
        self
            The consultation, one event further.

        Raises
        ------
        InvalidInputError
            If there is nothing to order, a name is not a covariate, has a value or was ordered
            before, or the consultation was stopped.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000, round_cost=5)
        >>> consultation = AdaCOSClassifier(costs).fit(X, y).consultation().order("Age", "BMI")
        >>> print(consultation.observe(Age=24).next(), consultation.paid)
        Wait for BMI, which was ordered. 7.0
        """
        current = self._continuing("order")
        if not covariates and not current.ordered.any():
            covariates = getattr(self.next(), "covariates", ())
        if not covariates:
            example = f"For example order({self._encoder.names[0]!r})."
            raise InvalidInputError("order", "needs a covariate", "", example)
        ordered, unavailable = current.ordered.copy(), current.unavailable.copy()
        for name in covariates:
            k = self._index(name, "order")
            if current.have[k] or ordered[k]:
                raise InvalidInputError(
                    "order",
                    "must name covariates without a value that were not ordered before",
                    name,
                    "undo() takes back what was entered last.",
                )
            ordered[k], unavailable[k] = True, False
        after = replace(current, ordered=ordered, unavailable=unavailable)
        return self._record({"order": list(covariates)}, after)

    def unavailable(self, *covariates: str) -> Self:
        """Say that these covariates cannot be acquired for this row.

        One that was ordered is cancelled by this, and is not paid.

        Parameters
        ----------
        *covariates : str
            Their names.

        Returns
        -------
        self
            The consultation, one event further.

        Raises
        ------
        InvalidInputError
            If there is no name, a name is not a covariate or has a value, or the consultation was
            stopped.
        """
        if not covariates:
            raise InvalidInputError(
                "unavailable",
                "needs a covariate",
                "",
                f"For example unavailable({self._encoder.names[0]!r}).",
            )
        current = self._continuing("unavailable")
        mask, ordered = current.unavailable.copy(), current.ordered.copy()
        for name in covariates:
            k = self._index(name, "unavailable")
            if current.have[k]:
                raise InvalidInputError(
                    "unavailable",
                    "must be a covariate without a value",
                    name,
                    "It was observed already; undo() takes back what was entered last.",
                )
            mask[k], ordered[k] = True, False
        after = replace(current, unavailable=mask, ordered=ordered)
        return self._record({"unavailable": list(covariates)}, after)

    def stop(self) -> Self:
        """Decide now, with what there is: the next step gives the label reached so far.

        Returns
        -------
        self
            The consultation, stopped; `undo` lets it continue.

        Raises
        ------
        InvalidInputError
            If it was stopped before.
        """
        current = replace(self._continuing("stop"), stopped=True)
        return self._record({"stop": True}, current)

    def undo(self) -> Self:
        """Take the last `observe`, `order`, `unavailable` or `stop` back.

        Returns
        -------
        self
            The consultation as it was before.

        Raises
        ------
        InvalidInputError
            If nothing was entered.
        """
        if not self._events:
            raise InvalidInputError(
                "undo", "needs something to take back", "no event", "Nothing was entered yet."
            )
        self._events.pop()
        self._states.pop()
        self._step = None
        return self

    def alternatives(self) -> tuple[Alternative, ...]:
        """List all open questions, the one with the least expected total cost first.

        Returns
        -------
        tuple of Alternative
            What each costs, and what following the policy's plan with it is expected to cost.

        Notes
        -----
        A policy in one order knows what its own later sets are expected to cost. The figure of a
        question is that of the first set that holds it, together with the questions that come
        before it. A plan has a figure for each question. A policy that does not weigh has none.

        Examples
        --------
        >>> from adacos import AdaCOSClassifier, Costs, load_pima
        >>> X, y, prices, *_ = load_pima()
        >>> costs = Costs(prices, false_positive=100, false_negative=1000)
        >>> consultation = AdaCOSClassifier(costs).fit(X, y).consultation(known={"Age": 24})
        >>> first = consultation.alternatives()[0]
        >>> first.covariate, first.cost
        ('BMI', 1.0)
        """
        explanation, current = self.next().explanation, self._states[-1]
        closed = current.have | current.unavailable | current.ordered | self._never
        return ranked(self._decider.costs, self._plans, explanation, current.have, ~closed)

    def because(self, reason: str) -> Self:
        """Record why a person departs from what the policy advises.

        Parameters
        ----------
        reason : str
            The reason, in words; it is kept with the state of the consultation.

        Returns
        -------
        self
            The consultation; what comes next is the same as before.
        """
        if not isinstance(reason, str) or not 0 < len(reason.strip()) <= MOST_REASON:
            rule = f"must be a text of at most {MOST_REASON} characters"
            raise InvalidInputError("because", rule, reason, "Say why in a sentence.")
        self._reasons.append(reason.strip())
        return self

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a person departed from what the policy advises."""
        return tuple(self._reasons)

    @property
    def must(self) -> tuple[str, ...]:
        """Covariates that are asked in any case."""
        return tuple(self._encoder.names[k] for k in np.flatnonzero(self._chosen[0]))

    @property
    def never(self) -> tuple[str, ...]:
        """Covariates that are not asked."""
        return tuple(self._encoder.names[k] for k in np.flatnonzero(self._chosen[1]))

    @property
    def known(self) -> dict[str, Value]:
        """Values known from the start."""
        return dict(self._states[0].values)

    @property
    def values(self) -> dict[str, Value]:
        """All values so far, known and observed, in order."""
        return dict(self._states[-1].values)

    @property
    def missing(self) -> tuple[str, ...]:
        """Covariates that were said to be unavailable."""
        return tuple(self._encoder.names[k] for k in np.flatnonzero(self._states[-1].unavailable))

    @property
    def ordered(self) -> tuple[str, ...]:
        """Covariates that were ordered and are not back yet."""
        return tuple(self._encoder.names[k] for k in np.flatnonzero(self._states[-1].ordered))

    @property
    def stopped(self) -> bool:
        """Whether the user stopped it."""
        return self._states[-1].stopped

    @property
    def paid(self) -> float:
        """Covariate cost so far, with what waiting for results cost."""
        order = np.array([k for batch in self._batches() for k in batch], dtype=np.intp)
        costs = self._decider.costs
        return float(costs.of_order(order, given=self._known)) + costs.round_cost * self.rounds

    @property
    def rounds(self) -> int:
        """How often results were waited for: what was ordered, or came, together counts once."""
        immediate = self._decider.costs.immediate
        if immediate is None:
            return 0
        return sum(not immediate[batch].all() for batch in self._batches())

    @property
    def warnings(self) -> tuple[ValueWarning, ...]:
        """What is odd about the values so far."""
        return self._states[-1].warnings

    @property
    def departures(self) -> tuple[str, ...]:
        """Why a certificate of the policy does not cover this consultation; empty where it does."""
        return departures(self)

    def begun_again(self) -> Consultation:
        """Begin another consultation about the same row, with the same decider.

        Returns
        -------
        Consultation
            A consultation in the state in which this one began.
        """
        other = copy(self)
        other._events, other._states, other._step = [], self._states[:1], None
        other._reasons = []
        return other

    def state(self) -> dict[str, Any]:
        """Give the consultation as plain JSON values, for `from_state`.

        Returns
        -------
        dict
            Its format, the fingerprint of the model, what was known and what was entered.
        """
        return {
            "format": FORMAT,
            "model": self._fitted.digest,
            "known": self.known,
            **({"key": self.key} if self.key != 0 else {}),
            **{
                name: list(own)
                for name, own in zip(OF_PERSON, (self.must, self.never, self.reasons), strict=True)
                if own
            },
            "events": [dict(event) for event in self._events],
        }

    @classmethod
    def from_state(cls, policy: Advisor, state: Mapping[str, Any]) -> Self:
        """Continue a consultation with the same policy it was begun with.

        Parameters
        ----------
        policy : policy
            The fitted policy.
        state : mapping
            What `state` gave, as it is or after a round trip through JSON.

        Returns
        -------
        Consultation
            A consultation in the state of the other.

        Raises
        ------
        InvalidInputError
            If the state is malformed or belongs to another model.
        """
        check_state(state)
        if state["model"] != policy.decider_.digest:
            raise InvalidInputError(
                "state",
                "must come from a consultation with the same model",
                f"model {state['model']}",
                f"This is model {policy.decider_.digest}: load the other one, or begin again.",
            )
        must, never, reasons = (state.get(name, ()) for name in OF_PERSON)
        consultation = cls(policy, state["known"], state.get("key", 0), must, never)
        for reason in reasons:
            consultation.because(reason)
        for event in state["events"]:
            if "observe" in event:
                consultation.observe(event["observe"])
            elif "order" in event:
                consultation.order(*event["order"])
            elif "stop" in event:
                consultation.stop()
            else:
                consultation.unavailable(*event["unavailable"])
        return consultation

    def _continuing(self, call: str) -> _Progress:
        """How things stand, unless the user has stopped."""
        if self.stopped:
            raise InvalidInputError(
                call,
                "is impossible after stop()",
                "",
                "undo() takes the stop back.",
            )
        return self._states[-1]

    def _batches(self) -> list[list[int]]:
        """What was paid together, as it was ordered or came; what is unavailable is not paid."""
        unpaid = ~self._states[-1].unavailable
        batches: list[list[int]] = []
        for event in self._events:
            names = event.get("order") or event.get("observe") or ()
            batch = [k for k in map(self._position.__getitem__, names) if unpaid[k]]
            unpaid[batch] = False
            batches.append(batch)
        return batches

    def _record(self, event: dict[str, Any], current: _Progress) -> Self:
        self._events.append(event)
        self._states.append(current)
        self._step = None
        return self

    def _asking_for(self, covariates: list[int], explanation: Explanation) -> Acquire:
        """The step that asks for these covariates."""
        current = self._states[-1]
        asked = np.array(covariates, dtype=np.intp)
        after = current.have.copy()
        after[asked] = True
        costs, new = self._decider.costs, after & ~current.have
        ordered = bool(current.ordered.any())
        cost = float(costs.of_order(asked, given=current.have) + costs.waiting(new))
        return Acquire(
            covariates=tuple(self._encoder.names[k] for k in covariates),
            cost=0.0 if ordered else cost,
            sharing=sharing(costs, asked, after | current.unavailable | self._never, after),
            explanation=with_reason(explanation, cost),
            warnings=current.warnings,
            ordered=ordered,
        )

    def _with_values(
        self, current: _Progress, added: Mapping[str, Any], parameter: str
    ) -> _Progress:
        encoded, have = current.encoded.copy(), current.have.copy()
        unavailable, ordered = current.unavailable.copy(), current.ordered.copy()
        values, warnings = dict(current.values), list(current.warnings)
        for name, given in added.items():
            k = self._index(name, parameter)
            if have[k]:
                raise InvalidInputError(
                    f"{parameter}[{name!r}]",
                    "has a value already",
                    given,
                    "undo() takes back what was entered last.",
                )
            value, warning = check_value(self._encoder, k, given, self._said)
            columns = self._encoder.source == k
            encoded[0, columns] = self._encoder.encode(k, np.array([value]))[0]
            have[k], values[name] = True, value
            unavailable[k] = ordered[k] = False
            warnings += [] if warning is None else [warning]
        return _Progress(encoded, have, unavailable, ordered, values, tuple(warnings))

    def _index(self, name: str, parameter: str) -> int:
        if name not in self._position:
            raise InvalidInputError(
                parameter,
                "must name covariates of the model",
                name,
                choices([name], self._encoder.names, "The covariates are"),
            )
        return self._position[name]
