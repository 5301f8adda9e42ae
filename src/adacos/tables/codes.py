"""Covariates as codes 0, 1, …, for policies that need a finite alphabet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adacos.tables.encoder import TableEncoder
from adacos.tables.kinds import CATEGORICAL
from adacos.typing import Floats, Ints

UNKNOWN = -1


@dataclass(frozen=True)
class Codes:
    """How encoded values become codes.

    A category's code is its position; a category never seen counts as the most common one. A number
    gets the number of cuts it reaches.

    Attributes
    ----------
    source : covariate of each encoded column.
    sizes : number of codes of each covariate.
    cuts : cuts of each covariate, empty for a categorical one.
    """

    source: Ints
    sizes: Ints
    cuts: tuple[Floats, ...]

    def transform(self, encoded: Floats) -> Ints:
        """Code of each value, shape (rows, covariates), `UNKNOWN` where the value is unknown."""
        first = np.searchsorted(self.source, np.arange(len(self.sizes)))
        codes = np.empty((len(encoded), len(self.sizes)), dtype=np.intp)
        for covariate, cuts in enumerate(self.cuts):
            own = encoded[:, self.source == covariate]
            if own.shape[1] > 1:
                codes[:, covariate] = np.argmax(own, axis=1)
            else:
                codes[:, covariate] = np.searchsorted(cuts, own[:, 0], side="right")
        codes[np.isnan(encoded[:, first])] = UNKNOWN
        return codes

    def only(self, covariates: Ints) -> Codes:
        """The codes of some covariates, of which the encoded columns are at hand."""
        width = np.bincount(self.source, minlength=len(self.sizes))[covariates]
        cuts = tuple(self.cuts[k] for k in covariates.tolist())
        return Codes(np.repeat(np.arange(len(covariates)), width), self.sizes[covariates], cuts)


def fit_codes(encoded: Floats, encoder: TableEncoder, most: int) -> Codes:
    """A code for each distinct value of a covariate, or `most` codes of about equal frequency.

    Cuts between distinct values lie half-way, so that a value never seen takes the code of the
    nearest one.
    """
    sizes, cuts = [], []
    for covariate, kind in enumerate(encoder.kinds):
        own = encoded[:, encoder.source == covariate]
        if kind == CATEGORICAL:
            cuts.append(np.empty(0))
            sizes.append(own.shape[1])
            continue
        known = own[~np.isnan(own[:, 0]), 0]
        distinct = np.unique(known)
        if len(distinct) <= most:
            cuts.append((distinct[1:] + distinct[:-1]) / 2)
        else:
            quantiles = np.quantile(known, np.arange(1, most) / most, method="higher")
            cuts.append(np.unique(quantiles[quantiles > distinct[0]]))
        sizes.append(len(cuts[-1]) + 1)
    return Codes(encoder.source, np.array(sizes, dtype=np.intp), tuple(cuts))


def integer_codes(encoder: TableEncoder, sizes: tuple[int, ...]) -> Codes:
    """Codes of covariates whose values are the codes themselves."""
    cuts: tuple[Floats, ...] = tuple(
        np.empty(0) if kind == CATEGORICAL else np.arange(0.5, size - 1)
        for kind, size in zip(encoder.kinds, sizes, strict=True)
    )
    return Codes(encoder.source, np.array(sizes, dtype=np.intp), cuts)
