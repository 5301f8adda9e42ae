"""What looks wrong about rows before or after a policy was fitted on them, or with new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator

from adacos.kernels.namespace import host
from adacos.policies.alone import cheaper_alone
from adacos.policies.base import BasePolicy
from adacos.policies.estimates import cost_doubt, out_of_fold_cost, set_doubt
from adacos.policies.fitting import inner_fits
from adacos.policies.misfit import advice, learned_from, misfit_by_cell
from adacos.policies.sequence_policy import has_sets
from adacos.tables.description import description_of
from adacos.tables.encoder import table_rows, validate_table
from adacos.tables.row_digests import trained_among
from adacos.tables.suspicions import Suspicion, suspicions
from adacos.tables.unusual import KINDS, unusual
from adacos.tables.weights import groups_or_copies
from adacos.typing import Floats, Ints
from adacos.validation import listed

# Rows that are looked at; where there are more, this number is drawn.
MOST_ROWS = 50_000
# Values and cells that are named.
_MOST_NAMED = 3
_UNLIKE = {
    "implausible": "far outside the range of the training rows, or negative where none was. "
    "Correct slips and other units",
    "unknown_category": "no category of the training rows. They count as missing values",
    "unknown_value": "no code of the training rows. Correct slips",
}


def alarms(policy: BasePolicy, X: Any, y: Any, groups: Any) -> list[Suspicion]:
    """What looks wrong, see `BasePolicy.check`."""
    y = None if y is None else np.asarray(host(y)).ravel()
    with inner_fits():
        return _alarms(policy, *_some_rows(host(X), y, groups))


def _alarms(policy: BasePolicy, X: Any, y: Any, groups: Any) -> list[Suspicion]:
    found = suspicions(X, y, groups)
    if not hasattr(policy, "encoder_"):
        return found
    encoded = policy._encode(X)
    trained = trained_among(policy.training_rows_, encoded) > 0
    if not trained and policy.training_rows_ is not None:
        # New rows are not learned from, however few they are.
        of_learning = ("few_rows", "many_categories", "missing_by_values", "many_missing")
        found = [suspicion for suspicion in found if suspicion.kind not in of_learning]
    found += _unlike_training(policy, X)
    if y is None:
        return found
    labels = np.unique(y, return_inverse=True)[1].astype(np.float64)
    number = groups_or_copies(groups, encoded, labels)
    return [*found, *_misfit(policy, encoded, y, number), *_no_better(policy, X, y, number)]


def _no_better(policy: BasePolicy, X: Any, y: Any, groups: Ints | None) -> Iterator[Suspicion]:
    """Whether another way to answer costs less on the training rows, by fits without them.

    Everyone may be answered alike, or by one set of covariates, or by one covariate alone.
    """
    if policy.always_positive_ or not np.isin(y, policy.classes_).all():
        return
    true, weight, model = np.searchsorted(policy.classes_, y), None, policy.sequence_model
    labels = None if policy._out_of_fold is None else policy._out_of_fold[1]
    if labels is None and model is not None:
        labels, weight = model.y, model.weight
    if labels is None or not np.array_equal(true, labels):
        return
    own = out_of_fold_cost(policy, X, true)
    if own is not None:
        doubt = cost_doubt(policy, own, true, weight, groups)
        doubt = doubt or set_doubt(policy, X, own, true, groups)
        if doubt is not None:
            yield Suspicion("no_better", (), doubt[0].upper() + doubt[1:])
        alone = cheaper_alone(policy, X, own, true, groups)
        if alone is not None:
            yield Suspicion("other_order", (alone[0],), alone[1][0].upper() + alone[1][1:])


def _some_rows(X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """The rows, or some drawn at random where they are very many."""
    table = validate_table(BaseEstimator(), X, reset=True)
    if len(table) <= MOST_ROWS:
        return X, y, groups
    rows = np.sort(np.random.default_rng(0).choice(len(table), MOST_ROWS, replace=False))
    own = None if groups is None else np.asarray(groups)[rows]
    return table_rows(table, rows), None if y is None else y[rows], own


def _unlike_training(policy: BasePolicy, X: Any) -> Iterator[Suspicion]:
    """Values that no training row is like, by kind; the edges of a range are none."""
    table, encoder = validate_table(policy, X, reset=False), policy.encoder_
    number = unusual(encoder, table, description_of(policy))
    for kind, rule in _UNLIKE.items():
        strange = number == KINDS.index(kind)
        covariates = np.flatnonzero(strange.any(axis=0))
        if not len(covariates):
            continue
        named = []
        for k in covariates[:_MOST_NAMED]:
            values = encoder.values(table, int(k))[strange[:, k]]
            first = np.unique(values)[:_MOST_NAMED].tolist()
            such = listed(v if isinstance(v, str) else f"{v:g}" for v in first)
            named.append(f"{encoder.names[k]} ({len(values):,} rows, such as {such})")
            if kind == "unknown_category" and _lost_zeros(values, encoder.categories[k]):
                named[-1] += ", codes of training without their leading zeros; read them as text"
        more = len(covariates) - len(named)
        also = f" and {more} more covariates" if more else ""
        yield Suspicion(
            kind,
            tuple(encoder.names[k] for k in covariates),
            f"{', '.join(named)}{also}: {rule}.",
        )


def _lost_zeros(values: NDArray[Any], levels: Sequence[str]) -> bool:
    """Whether values are categories but for zeros at the front, which reading as numbers loses."""
    bare = {level.lstrip("0") for level in levels if level.startswith("0")}
    return all(str(value).removesuffix(".0") in bare for value in np.unique(values))


def _misfit(
    policy: BasePolicy, encoded: Floats, y: Any, groups: Ints | None
) -> Iterator[Suspicion]:
    """Where a sum over covariates is wrong about the rows, by models that did not see them."""
    chosen = policy.chosen
    if not has_sets(chosen) or len(chosen.classes_) > 2:
        return
    true = (y == chosen.classes_[1]).astype(np.float64)
    log_odds = chosen._log_odds_with_all
    # On the training rows themselves the cross-validated log-odds are the honest ones.
    own = np.array_equal(true, chosen.model_.y)
    p = expit(chosen._out_of_fold_with_all() if own else log_odds(encoded))
    n_training = None if own else learned_from(chosen)
    cells = misfit_by_cell(
        chosen.encoder_, encoded, true, p, groups=groups, learned_from=n_training
    )
    advised = advice(chosen, cells)
    if advised is not None:
        said = description_of(chosen)
        text = " ".join(cell.describe(said) for cell in cells[:_MOST_NAMED])
        names = dict.fromkeys(side.covariate for cell in cells for side in cell[:2])
        yield Suspicion("misfit", tuple(names), f"{text} {advised}")
