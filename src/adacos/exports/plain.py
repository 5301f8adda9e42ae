"""A policy as plain values from which a small evaluator decides exactly as the policy does.

Of complete rows a policy along a set sequence needs little: at each set the log-odds are a sum of
functions of one covariate, which are cubic between equally spaced knots, and whether a row
continues depends on the log-odds alone. What needs more is refused by name.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from adacos import __version__
from adacos.card import model_card
from adacos.deciders.protocol import ProtocolDecider
from adacos.deciders.sequence import (
    AdaCOSDecider,
    CheapestSetDecider,
    OneSetDecider,
    SequenceDecider,
)
from adacos.deciders.weighing import FREE
from adacos.decision import AnyDecider
from adacos.exceptions import InvalidInputError
from adacos.exports.intervals import Intervals, intervals_of
from adacos.exports.protocols import protocol_parts
from adacos.kernels.spline_moments import interval_polynomials
from adacos.models.basis import AdditiveBasis
from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.base import BasePolicy
from adacos.policies.cos import COSClassifier
from adacos.policies.full_model import FullModelClassifier
from adacos.policies.protocol import ProtocolClassifier
from adacos.tables.kinds import CONSTANT, NUMERIC
from adacos.typing import Floats, Ints
from adacos.validation import listed

FORMAT, VERSION = "adacos-policy", 1
_POLICIES = (AdaCOSClassifier, COSClassifier, FullModelClassifier, ProtocolClassifier)
_DECIDERS = (AdaCOSDecider, CheapestSetDecider, OneSetDecider, ProtocolDecider)
# Log-odds between which a label is looked for to change, and beyond which no probability differs.
_FARTHEST, _POINTS = 750.0, 3001
# What of the card of a model a page shows.
_SHOWN = ("title", "outcome", "intended_use", "currency", "headline", "classes", "class_names")
_OF_COVARIATE = ("name", "label", "unit", "help", "kind", "low", "high", "categories", "grouped")


def plain_policy(policy: BasePolicy) -> dict[str, Any]:
    """The policy as JSON values, see `policy.json` in docs/file-formats.md."""
    fitted, card = policy.as_fitted, model_card(policy)
    decider = _exportable(fitted)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "adacos": __version__,
        "model": card["model"],
        "policy": card["policy"],
        **{name: card[name] for name in _SHOWN},
        "notice": card["notice"],
    }
    if isinstance(fitted.chosen, ProtocolClassifier):
        cards = [_covariate_card(each) for each in card["covariates"]]
        return head | {"cut_off": None} | protocol_parts(cast(ProtocolDecider, decider), cards)
    along = cast(SequenceDecider, decider)
    return head | {"cut_off": card["threshold"]} | _sequence_parts(along, card)


def _sequence_parts(decider: SequenceDecider, card: dict[str, Any]) -> dict[str, Any]:
    """What `policy.json` holds of a policy along a set sequence."""
    rule, sequence, stages = decider.rule, decider.model.sequence, _stages(decider)
    # As rows of which nothing is known acquire: those of S_1 by column, then along the sequence.
    later = sequence.order[sequence.sizes[0] : sequence.sizes[stages[-1]]]
    order = np.append(np.sort(sequence.set(0)), later).astype(np.intp)
    grid = np.linspace(-_FARTHEST, _FARTHEST, _POINTS)
    return {
        "misclassification_costs": rule.matrix.tolist(),
        "label": None if len(rule.matrix) > 2 else _plain(intervals_of(rule.label, grid)),
        "covariates": [_covariate(decider, card["covariates"][k], k) for k in order.tolist()],
        "paid": _paid(decider, order),
        "stages": [_stage(decider, stage, order) for stage in stages],
    }


def _exportable(policy: BasePolicy) -> AnyDecider:
    """The decider of a policy, refused by name where a file could not decide as it does."""
    decider = policy.decider_
    refused = _refusal(policy.chosen, decider)
    if refused:
        raise InvalidInputError(
            "policy",
            "must be one that decides without Python: COS, Full Model, a protocol, or AdaCOS of "
            "two classes",
            refused,
            "Keep it with save(policy, path), and ask it with `adacos ask` or `adacos serve`.",
        )
    return decider


def _refusal(policy: BasePolicy, decider: AnyDecider) -> str:
    """What of a policy cannot be exported, in words; nothing where all can."""
    name = type(policy).__name__
    if type(policy) not in _POLICIES:
        around = policy.wrapped
        return name if around is policy else f"{name} around {type(around).__name__}"
    if len(policy.classes_) > 2 and isinstance(policy, AdaCOSClassifier):
        return f"{name} of {len(policy.classes_)} classes"
    if decider.costs.decisions is not None:
        return f"{name} with decisions in place of labels"
    if decider.costs.immediate is not None or decider.costs.round_cost:
        return f"{name} with rounds, for which waiting costs something"
    if decider.budget is not None or decider.terms.mean_budget is not None:
        return f"{name} with a budget"
    if isinstance(policy, AdaCOSClassifier) and policy.resolved_lookahead not in FREE:
        return f"{name} with lookahead={policy.resolved_lookahead!r}"
    if policy.restriction_ is not None:
        return f"{name} with questions that are always or never asked"
    if dates := decider.encoder.date_forms:
        return f"{name} with the date {listed(list(dates))}"
    if type(decider) not in _DECIDERS:
        return f"{name} that decides by {type(decider).__name__}"
    return ""


def _continues(decider: SequenceDecider, stage: int) -> Intervals | None:
    """Where rows at a set continue; None where none does."""
    last = len(decider.model.sequence) - 1
    saved = decider.saved_at(stage)
    if saved is None or stage == last or decider.only_stage is not None:
        return None
    grid, saving = saved

    def goes(log_odds: Floats) -> Ints:
        return np.asarray(saving(log_odds) > 0).astype(np.intp)

    ends = np.array([-_FARTHEST, _FARTHEST])
    found = intervals_of(goes, np.union1d(grid, ends))
    return found if found.values.any() else None


def _stages(decider: SequenceDecider) -> list[int]:
    """Numbers of the sets at which rows may stand when it is decided whether they continue."""
    if decider.only_stage is not None:
        return [decider.only_stage]
    stages = [0]
    while _continues(decider, stages[-1]) is not None:
        stages.append(stages[-1] + 1)
    return stages


def _paid(decider: SequenceDecider, order: Ints) -> list[float]:
    """Covariate cost of each beginning of an order, from nothing to all of it."""
    beginnings = np.tile(order, (len(order) + 1, 1))
    beginnings[np.triu_indices(len(order) + 1, 0, len(order))] = -1
    width = len(decider.encoder.names) - len(order)
    padded = np.pad(beginnings, ((0, 0), (0, width)), constant_values=-1)
    paid: list[float] = decider.costs.of_order(padded).tolist()
    return paid


def _covariate_card(card: dict[str, Any]) -> dict[str, Any]:
    """What a covariate is called, and which values it may have."""
    return {name: card[name] for name in _OF_COVARIATE} | {"choices": card["choices"]}


def _covariate(decider: SequenceDecider, card: dict[str, Any], k: int) -> dict[str, Any]:
    """What a covariate is called, which values it may have, and how these become places."""
    basis = decider.model.basis
    found = _covariate_card(card)
    if basis.kinds[k] != NUMERIC:
        return found
    j = int(np.searchsorted(basis.source, k))
    own = np.flatnonzero(basis.maps.columns == j)
    points = [] if len(own) == 0 else [basis.maps.values[own[0]], basis.maps.mapped[own[0]]]
    found["map"] = None if not points else [part.tolist() for part in points]
    found["knots"] = [float(basis.low[j]), float(basis.high[j]), basis.n_splines - 3]
    return found


def _stage(decider: SequenceDecider, stage: int, order: Ints) -> dict[str, Any]:
    """The model of one set, and where rows there continue."""
    model, continues = decider.model, _continues(decider, stage)
    size = int(model.sequence.sizes[stage])
    coefs, own = np.atleast_2d(model.coefs[stage]), order[:size].tolist()
    # One function for each later class against the first; of two classes a single one.
    terms = [[_term(model.basis, coef, k) for coef in coefs] for k in own]
    return {
        "acquired": size,
        "intercept": model.intercepts[stage].tolist(),
        "terms": terms if model.many_classes else [each for (each,) in terms],
        "continues": None if continues is None else _plain(continues),
    }


def _term(basis: AdditiveBasis, coef: Floats, k: int) -> list[Any]:
    """What a covariate adds to the log-odds.

    Of a numeric one the four coefficients of each interval; else a constant, then the coefficient
    of each encoded column.
    """
    own = coef[basis.group == k]
    if basis.kinds[k] == CONSTANT:
        return [0.0, 0.0]
    columns = np.flatnonzero(basis.source == k)
    center, j = basis.center[basis.group == k], int(columns[0])
    low, high = float(basis.low[j]), float(basis.high[j])
    mean, scale = float(basis.mean[j]), float(basis.scale[j])
    if basis.kinds[k] == NUMERIC:
        parts = interval_polynomials(own[:, None], center, low, high, mean, scale, basis.n_splines)
        return list(parts[1:-1, :, 0].tolist())
    # Of a category one coefficient each, centred; of two values that of the standardised number.
    at_zero = basis.block(np.zeros((1, len(columns))), k)
    slopes = basis.block(np.eye(len(columns)), k) - at_zero
    return [float(at_zero[0] @ own), *(slopes @ own).tolist()]


def _plain(intervals: Intervals) -> dict[str, Any]:
    return {"breaks": intervals.breaks.tolist(), "values": intervals.values.tolist()}
