"""Products of pairs of covariates next to the additive functions of `LogisticGAM`.

    log-odds(x) = intercept + Σ_i f_i(x_i) + Σ_kl w_kl x_k x_l,

x standardised, with indicators for categories. A `PairedBasis` holds the products as further
columns, those of two covariates as one more group with a ridge term of its own, so that strengths,
refits and out-of-fold log-odds are those of the additive model (`adacos.models.additive`). Products
that do not predict out-of-fold rows clearly better are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adacos.exceptions import InvalidInputError
from adacos.kernels.class_risk import log_loss
from adacos.models.additive import AdditiveFit, fit_additive
from adacos.models.basis import AdditiveBasis
from adacos.models.large_fits import LARGE_ROWS
from adacos.models.pairs import Products, varying_products
from adacos.typing import Bools, Floats, Ints

# A product's strength over that of a linear part, where one ridge is common to all of them: there
# are many products, and few of them act.
RATIO = 10.0
# Standard errors by which products must lower the leave-out loss of the additive model.
ERRORS = 2.0
# Products, times the classes less one, that a model may have: a fit takes the cube of its columns.
MOST_PRODUCTS = 1000


@dataclass(frozen=True)
class PairedBasis(AdditiveBasis):
    """An additive basis with products of encoded columns as its last columns.

    In `group` and `term_group` pair number m of the covariates is len(kinds) + m.

    Attributes
    ----------
    pairs : (pairs, 2) covariates of each pair.
    first, second : encoded columns of each product.
    spread : by which a product is divided.
    """

    pairs: Ints
    first: Ints
    second: Ints
    spread: Floats

    @property
    def n_groups(self) -> int:
        """Number of covariates and pairs."""
        return len(self.kinds) + len(self.pairs)

    def transform(self, encoded: Floats) -> Floats:
        """Centred basis columns of every covariate and every pair, shape (rows, len(group)).

        Beyond the range of the training rows a product is held at its edge.
        """
        columns, last = super().transform(encoded), slice(-len(self.first), None)
        inside = self.standardise(np.clip(encoded, self.low, self.high))
        products = inside[:, self.first] * inside[:, self.second]
        columns[:, last] = products / self.spread - self.center[last]
        return columns


def asked_pairs(interactions: Any, names: tuple[str, ...], n_rows: int) -> Bools | None:
    """Which pairs of covariates may act together, (covariates, covariates); None for none."""
    if interactions is None:
        return None
    if n_rows >= LARGE_ROWS:
        raise InvalidInputError(
            "interactions",
            f"must be None from {LARGE_ROWS:,} rows on",
            f"{interactions!r} with {n_rows:,} rows",
            "Fit an additive model, or a sample of the rows.",
        )
    if isinstance(interactions, str) and interactions == "auto":
        return ~np.eye(len(names), dtype=np.bool_)
    asked = np.zeros((len(names), len(names)), dtype=np.bool_)
    for pair in interactions if isinstance(interactions, list | tuple) else [interactions]:
        both = list(pair) if isinstance(pair, list | tuple) else []
        places = [position("interactions", covariate, names) for covariate in both]
        if len(places) != 2 or places[0] == places[1]:
            raise InvalidInputError(
                "interactions",
                "must be None, 'auto' or a list of pairs of different covariates",
                pair,
                "Give two names or positions for each pair.",
            )
        asked[places[0], places[1]] = asked[places[1], places[0]] = True
    return asked


def position(parameter: str, covariate: str | int, names: tuple[str, ...]) -> int:
    """Position of a covariate given by its name or position."""
    if isinstance(covariate, str) and covariate in names:
        return names.index(covariate)
    if isinstance(covariate, int) and 0 <= covariate < len(names):
        return covariate
    raise InvalidInputError(
        parameter, "must be a fitted column", covariate, f"The columns are {list(names)}."
    )


def fit_paired(
    encoded: Floats,
    columns: Floats,
    basis: AdditiveBasis,
    asked: Bools,
    y: Floats,
    weight: Floats,
    fold: Ints | None,
    *,
    families: tuple[str, ...],
    strengths: Floats | None,
    n_classes: int,
) -> tuple[AdditiveBasis, AdditiveFit]:
    """Basis and fit with products of the pairs in `asked` (covariates, covariates), if they help.

    They help if they lower the out-of-fold loss clearly; otherwise basis and fit are the additive
    ones. The out-of-fold log-odds of a fold come from what the other folds choose. With the
    strengths given nothing is chosen: a pair has the geometric mean of its covariates' ridge
    strengths.
    """
    _check_size(basis, asked, n_classes)
    products = varying_products(basis, encoded, weight, asked)

    def fit(basis: AdditiveBasis, columns: Floats, given: Floats | None = None) -> AdditiveFit:
        return fit_additive(
            columns,
            basis,
            np.arange(basis.n_groups),
            y,
            weight,
            fold,
            families=families,
            strengths=given,
            n_classes=n_classes,
        )

    if len(products.first) == 0:
        return basis, fit(basis, columns, strengths)
    if strengths is not None:
        paired = _paired(basis, products, 1.0)
        given = np.append(strengths, _pair_strengths(paired, strengths))
        return paired, fit(paired, paired.transform(encoded), given)
    assert fold is not None
    paired = _paired(basis, products, RATIO)
    fits = fit(basis, columns), fit(paired, paired.transform(encoded))
    helps, chosen = _choice(fits, y, weight, fold)
    return (paired if helps else basis), chosen


def _check_size(basis: AdditiveBasis, asked: Bools, n_classes: int) -> None:
    width = np.bincount(basis.source)
    products = int((np.outer(width, width) * np.triu(asked, 1)).sum())
    most = MOST_PRODUCTS // (n_classes - 1)
    if products > most:
        raise InvalidInputError(
            "interactions",
            f"may lead to at most {most} products of columns with {n_classes} classes",
            f"{products} products",
            'Name the pairs that may act together: interactions=[("age", "dose"), ...].',
        )


def _paired(basis: AdditiveBasis, products: Products, ratio: float) -> PairedBasis:
    """The basis with these products, at `ratio` times the strength of a linear part."""
    covariates = basis.source[np.column_stack([products.first, products.second])]
    pairs, number = np.unique(covariates, axis=0, return_inverse=True)
    number = number.ravel()
    spread = products.scale * np.sqrt(ratio)
    return PairedBasis(
        kinds=basis.kinds,
        source=basis.source,
        n_splines=basis.n_splines,
        low=basis.low,
        high=basis.high,
        mean=basis.mean,
        scale=basis.scale,
        group=np.append(basis.group, len(basis.kinds) + number),
        term=np.append(basis.term, len(basis.linear) + number),
        linear=np.append(basis.linear, np.ones(len(pairs), dtype=np.bool_)),
        term_group=np.append(basis.term_group, len(basis.kinds) + np.arange(len(pairs))),
        center=np.append(basis.center, products.mean / spread),
        maps=basis.maps,
        pairs=pairs,
        first=products.first,
        second=products.second,
        spread=spread,
    )


def _pair_strengths(paired: PairedBasis, strengths: Floats) -> Floats:
    ridge = np.empty(len(paired.kinds))
    linear = paired.linear[: len(strengths)]
    ridge[paired.term_group[: len(strengths)][linear]] = strengths[linear]
    return np.asarray(np.sqrt(ridge[paired.pairs].prod(axis=1)))


def _choice(
    fits: tuple[AdditiveFit, AdditiveFit], y: Floats, weight: Floats, fold: Ints
) -> tuple[bool, AdditiveFit]:
    """Whether the second fit is clearly better, and the better one, out-of-fold."""
    losses = np.stack([log_loss(fit.out_of_fold_log_odds, y) for fit in fits])
    gain, folds = losses[0] - losses[1], range(int(fold.max()) + 1)
    helps = _clear(gain, weight)
    elsewhere = np.array([_clear(gain[fold != f], weight[fold != f]) for f in folds])
    chosen, second = fits[int(helps)], elsewhere[fold]
    if (elsewhere == helps).all():
        return helps, chosen
    out_of_fold = fits[0].out_of_fold_log_odds.copy()
    out_of_fold[second] = fits[1].out_of_fold_log_odds[second]
    loss = float(weight @ np.where(second, losses[1], losses[0]))
    return helps, chosen._replace(out_of_fold_log_odds=out_of_fold, out_of_fold_loss=loss)


def _clear(gain: Floats, weight: Floats) -> bool:
    """Whether the mean gain of the rows is clearly positive; weights are repetitions."""
    mean = np.average(gain, weights=weight)
    error = np.sqrt(np.average((gain - mean) ** 2, weights=weight) / weight.sum())
    return bool(mean > ERRORS * error)
