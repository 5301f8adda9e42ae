"""What a model file holds of each object: named fields of stated types, and nothing else.

A value of ours is a dataclass, and its fields are those it is made from. An estimator has its
parameters and, if it is fitted, what its class and the bases of it name in `saved_fields`; so has
`Costs`. Each field is checked against its type before an object is made. Objects are of classes
that these types or the registry name. Their parts must then fit together: columns, classes, costs.

Formats: 1 held every attribute of an estimator, those that are computed now among them; since 2
it is the fields, since 3 parameters have the names of this release alone, and since 4 so have
fields. `upgraded` makes the state of one the state of the other.

Two digests say what a model decides and what it states: that of its decider, and that of
`statements`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from adacos.costs import Costs, CostTable
from adacos.decision import RENAMED_FIELDS, Decider, digest_of, first_name
from adacos.exceptions import InvalidInputError
from adacos.models.basis import MOST_SPLINES
from adacos.tables.encoder import covariate_names
from adacos.typing import Fields
from adacos.validation import fits, given_parameter, is_given, renamed_parameters

# Number of the way in which digests of statements are made. It rises whenever that of an unchanged
# model changes: with a name below, or with the fields of what has it.
STATEMENT_SCHEME = 1
# What the card states of a model and nothing decides by: a file with another value would decide as
# before, and say something else.
STATED = (
    "costs",
    "target_recall",
    "recall_at",
    "choice_",
    "compared_",
    "cross_validated_cost_",
    "mean_spent_",
    "threshold_",
    "false_negative_cost_",
    "surcharges_",
    "recall_estimate_",
    "certificate_",
    "training_rows_",
    "sequence_",
    "sets_",
    "tree_",
    "cost_estimates_",
    "misfit_",
    "misfit_states_",
    "description_",
    "recalibration_",
)
# What a policy around another one has of it.
_COMMON = ("n_features_in_", "feature_names_in_", "classes_", "encoder_", "cost_table_")


def fields_of(cls: type) -> dict[str, Any]:
    """Type of each field of an estimator besides its plain parameters, its bases' first."""
    named: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own: Fields = vars(base).get("saved_fields", {})
        named.update(own)
    return named


def stored_by(cls: type) -> dict[str, type]:
    """Classes of the values that the fields of an estimator hold, by name."""
    found: dict[str, type] = {}
    for hint in fields_of(cls).values():
        _collect(hint, found)
    return found


def _collect(hint: Any, found: dict[str, type]) -> None:
    """Add the classes of values that a type names, and those that their fields name."""
    inside: Iterable[Any] = get_args(hint)
    if _is_value(hint):
        if hint.__name__ in found:
            return
        found[hint.__name__] = hint
        inside = (_made_from(hint) if dataclasses.is_dataclass(hint) else fields_of(hint)).values()
    for inner in inside:
        _collect(inner, found)


def _is_value(hint: Any) -> bool:
    """Whether a type is a class of values of ours; estimators are found by the registry."""
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint)
        or (hasattr(hint, "saved_fields") and not issubclass(hint, BaseEstimator))
    )


def _made_from(cls: Any) -> dict[str, Any]:
    """Type of each field that objects of a dataclass are made from."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def state_of(value: Any) -> dict[str, Any]:
    """The fields of an object of ours, by name."""
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        return {name: getattr(value, name) for name in _made_from(cls)}
    names = {**dict.fromkeys(_parameters(cls)), **fields_of(cls)}
    # A decider is made again from the fields.
    more = [
        name
        for name, item in vars(value).items()
        if name.endswith("_") and name not in names and not isinstance(item, Decider)
    ]
    if more:
        raise InvalidInputError(
            "model",
            "may have learned what saved_fields of its class names, and nothing else",
            more[0],
            f"Name it there: {more[0]!r}: {type(vars(value)[more[0]]).__name__}.",
        )
    fitted = any(name.endswith("_") for name in vars(value))
    there = [
        name
        for name in names
        if name in vars(value) or (fitted and name.endswith("_") and _computed(cls, name))
    ]
    given = {name: given_parameter(value, name) for name in there}
    return {name: item for name, item in given.items() if is_given(item)}


def statements(model: Any) -> str:
    """Digest of what a policy states, and the policies in it."""
    stated, inside = [], model
    while inside is not None:
        # A policy around another one has the costs of that, with the names of their panels.
        own = {**state_of(inside), "costs": inside.costs}
        there = [name for name in STATED if own.get(name) is not None]
        stated.append({first_name(name): own[name] for name in there})
        inside = own.get("policy_")
    return digest_of(stated)


def check_state(cls: type[Any], state: Mapping[str, Any]) -> None:
    """The fields are those of the class, all that it needs, and each of its type."""
    if dataclasses.is_dataclass(cls):
        hints = _made_from(cls)
        needed = {
            field.name
            for field in dataclasses.fields(cls)
            if field.init and field.default is field.default_factory is dataclasses.MISSING
        }
    else:
        parameters, learned = _parameters(cls), fields_of(cls)
        hints = {**dict.fromkeys(parameters, Any), **learned}
        if parameters and not any(name in state for name in learned if name.endswith("_")):
            learned = {}  # an unfitted policy, which is the parameter of another
        needed = {name for name, hint in learned.items() if not fits(None, hint)} | set(parameters)
        # A parameter that is missing in older files has a value in the class.
        needed = {name for name in needed if name.endswith("_") or not hasattr(cls, name)}
    unknown = set(state) - set(hints)
    wrong = [name for name in state if name in hints and not fits(state[name], hints[name])]
    if unknown or wrong or needed - set(state):
        raise ValueError(
            f"{cls.__name__}: absent {needed - set(state)}, unknown {unknown}, wrong {wrong}"
        )
    if not 0 <= state.get("n_splines", 0) <= MOST_SPLINES:
        raise ValueError(f"n_splines = {state['n_splines']}")


def made_of(cls: Any, state: dict[str, Any]) -> Any:
    """An object made of a checked state, with parts that fit each other."""
    value: Any
    if dataclasses.is_dataclass(cls):
        make: Any = cls
        value = make(**state)
        if hasattr(value, "check"):
            value.check()
        return value
    value = cls.__new__(cls)
    if hasattr(value, "restore"):
        value.restore(state)
    else:
        value.__dict__.update(state)
    _check_parts(value)
    return value


def upgraded(cls: type, state: Mapping[str, Any], format_number: int) -> dict[str, Any]:
    """The state of an object in this format that a file of an older format holds."""
    renamed = {**RENAMED_FIELDS, **renamed_parameters(cls)}
    unnamed: Fields = getattr(cls, "in_older_files", {})
    state = {**unnamed, **{renamed.get(name, name): value for name, value in state.items()}}
    if dataclasses.is_dataclass(cls) or format_number > 1:
        return state
    named = fields_of(cls)
    kept = {k: value for k, value in state.items() if k in named or not _computed(cls, k)}
    if "rule_" in kept:
        kept.setdefault("multiplier_", 0.0)
    return kept


def _parameters(cls: Any) -> list[str]:
    names = cls._get_param_names() if issubclass(cls, BaseEstimator) else []
    return [name for name in names if name not in renamed_parameters(cls)]


def _computed(cls: type, name: str) -> bool:
    """Whether objects compute what has this name."""
    return isinstance(getattr(cls, name, None), property)


def _check_parts(model: Any) -> None:
    """Refuse a fitted model whose columns, classes and costs do not fit each other."""
    encoder, classes = getattr(model, "encoder_", None), getattr(model, "classes_", None)
    if encoder is None or classes is None:
        return
    if covariate_names(model) != encoder.names:
        raise ValueError("the names of the columns do not fit the encoder")
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError("the classes are not distinct and in order")
    inside = getattr(model, "policy_", None)
    for name in _COMMON if inside is not None else ():
        own, other = (getattr(one, name, None) for one in (model, inside))
        if digest_of(own) != digest_of(other):
            raise ValueError(f"{name} is not that of the policy inside")
    for part in _of_columns(model):
        if part.kinds != encoder.kinds or not np.array_equal(part.source, encoder.source):
            raise ValueError("the kinds of the columns do not fit the encoder")
    costs, rule = getattr(model, "cost_table_", None), getattr(model, "rule_", None)
    if costs is None or rule is None:
        return
    fitting = costs.matrix.shape == rule.matrix.shape and len(costs.matrix) == len(classes)
    if costs.names != encoder.names or not fitting:
        raise ValueError("the costs do not fit the columns or the classes")
    _check_costs(costs)
    bound = (model.costs or Costs()).bind(encoder.names, len(classes))
    if any(
        not np.array_equal(getattr(bound, part.name), getattr(costs, part.name))
        for part in dataclasses.fields(costs)
    ):
        raise ValueError("the bound costs are not those of the parameter")
    # A target recall stands for other costs, or for a threshold.
    replaced = model.threshold_ is not None or model.surcharges_ is not None
    if not replaced and not np.array_equal(rule.matrix, costs.matrix):
        raise ValueError("the rule does not fit the costs")
    if rule.threshold not in (None, model.threshold_):
        raise ValueError("the threshold of the rule is not that of a target recall")


def _of_columns(model: Any) -> list[Any]:
    """The parts of a model that hold the kinds of the columns, as the encoder does."""
    held = [getattr(model, "basis_", None), getattr(model, "model_", None)]
    held += [getattr(held[1], name, None) for name in ("basis", "joint")]
    return [part for part in held if hasattr(part, "kinds") and hasattr(part, "source")]


def _check_costs(costs: CostTable) -> None:
    p, k = len(costs.names), len(costs.matrix)
    n_labels = k if costs.decisions is None else len(costs.decisions)
    amounts = [costs.covariates, costs.shared, np.array([costs.round_cost])]
    amounts += [] if costs.excess is None else [costs.excess]
    if not (
        costs.covariates.shape == costs.panel.shape == (p,)
        and (costs.excess is None or costs.excess.shape == (p,))
        and (costs.immediate is None or costs.immediate.shape == (p,))
        and costs.matrix.shape == (k, n_labels)
        and np.isfinite(costs.matrix).all()
        and all((np.isfinite(each) & (each >= 0)).all() for each in amounts)
        and set(costs.panel.tolist()) - {-1} == set(range(len(costs.shared)))
    ):
        raise ValueError("the parts of the costs do not fit each other")
