"""Sums over rows as codes for three or more classes, see `adacos.kernels.binned`.

Coefficients are those of the contrasts of `adacos.kernels.multinomial`, (P, K - 1) with the
columns slowest, so that the intercepts come first: a fit sees one vector of P (K - 1) numbers. The
Hessian is a sum over pairs of classes, of the rows' p_a p_b D D' times d d', d being the difference
of the two classes' rows of U. Each is one symmetric product of the expanded columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from adacos.kernels.binned import (
    Block,
    Design,
    Expansion,
    Sums,
    log_odds,
    missing_variance,
    sums,
)
from adacos.kernels.class_risk import pairwise_shrink
from adacos.kernels.martingale import shrink
from adacos.kernels.multinomial import contrasts, symmetric, to_contrasts, to_reference
from adacos.typing import Floats

# Of each function: own variance and loading at the places of `adacos.kernels.binned.CodedMissing`.
Tables = tuple[Floats, Floats]


def flat_of(later: Floats, n_classes: int) -> Floats:
    """Coefficients (K - 1, P) of each later class against the first as one vector."""
    return np.asarray(to_contrasts(later, contrasts(n_classes)).T.ravel())


def later_of(flat: Floats, n_classes: int) -> Floats:
    """The inverse of `flat_of`."""
    return to_reference(flat.reshape(-1, n_classes - 1).T, contrasts(n_classes))


def class_log_odds(block: Block, design: Design, coefs: Floats, n_classes: int) -> Floats:
    """Log-odds (rows, K - 1) against the first class, of each row by the coefficients of its fold.

    Rows are as they were ordered before; `coefs` has shape (folds, P (K - 1)).
    """
    basis = contrasts(n_classes)
    result = np.empty((len(block.y), n_classes - 1))
    for f, coef in enumerate(coefs):
        parts = _parts(design, coef, basis)
        for rows in block.chunks(f):
            scores = _scores(block, design, parts, rows)
            result[block.order[rows]] = (scores[1:] - scores[0]).T
    return result


def class_sums(block: Block, design: Design, coef: Floats, n_classes: int, *, gram: bool) -> Sums:
    """Loss, gradient (folds, P (K - 1)) and, if asked for, Gram matrices of each fold's rows.

    The Gram matrices are those of the pairs of classes, (folds, pairs, P, P); see `class_hessian`.
    """
    basis, n_folds = contrasts(n_classes), block.n_folds
    parts = _parts(design, coef, basis)
    loss, constant = np.zeros(n_folds), np.zeros((n_folds, n_classes))
    counts = [np.zeros((n_folds, *part.shape)) for part in parts[1:]]
    first, second = np.triu_indices(n_classes, 1)
    grams = np.zeros((n_folds, len(first), design.size, design.size)) if gram else None
    expand = Expansion(block, design) if gram else None
    scaled = np.empty_like(expand.buffer) if expand is not None else None
    for f in range(n_folds):
        for rows in block.chunks(f):
            label, weight = block.y[rows].astype(np.intp), block.weight[rows]
            scores, place = _scores(block, design, parts, rows), np.arange(len(weight))
            own, top = scores[label, place], scores.max(axis=0)
            shares = np.exp(scores - top)
            total = shares.sum(axis=0)
            loss[f] += weight @ (top + np.log(total) - own)
            shares /= total
            residual, spread = shares * weight, weight
            residual[label, place] -= weight
            if block.factor is not None:
                residual *= block.factor[rows]
                spread = weight * block.factor[rows] ** 2
            constant[f] += residual.sum(axis=1)
            for k, counted in zip(design.covariates, counts, strict=True):
                code = block.codes[k][rows].astype(np.intp)
                for one, of_class in zip(residual, counted[f], strict=True):
                    of_class += np.bincount(code, one, len(of_class))
            if grams is not None and expand is not None and scaled is not None:
                filled, out = expand.filled(rows), scaled[:, : len(weight)]
                for pair, (a, b) in enumerate(zip(first, second, strict=True)):
                    np.multiply(filled, np.sqrt(spread * shares[a] * shares[b]), out=out)
                    grams[f, pair] += out @ out.T
    of_levels = [own @ table for own, table in zip(counts, design.tables, strict=True)]
    gradient = np.concatenate([constant[:, :, None], *of_levels], axis=2)
    in_contrasts = (basis.T @ gradient).transpose(0, 2, 1).reshape(n_folds, -1)
    return Sums(loss, in_contrasts, grams)


def class_hessian(pairs: Floats, n_classes: int) -> Floats:
    """Hessian (folds, P (K - 1), P (K - 1)) of the Gram matrices of the pairs of classes."""
    basis = contrasts(n_classes)
    first, second = np.triu_indices(n_classes, 1)
    difference = basis[first] - basis[second]
    of_pair = difference[:, :, None] * difference[:, None]
    size = pairs.shape[2] * (n_classes - 1)
    hessian = np.einsum("fqij,qab->fiajb", pairs, of_pair, optimize=True)
    return np.asarray(hessian.reshape(len(pairs), size, size))


def _parts(design: Design, coef: Floats, basis: Floats) -> list[Floats]:
    """Scores of each class: the intercepts (K,), then (K, levels) of each covariate."""
    of_classes = coef.reshape(-1, basis.shape[1]) @ basis.T
    return [of_classes[0], *(np.ascontiguousarray(own.T) for own in design.parts(of_classes))]


def _scores(block: Block, design: Design, parts: list[Floats], rows: slice) -> Floats:
    """Scores (K, rows)."""
    total = np.repeat(parts[0][:, None], rows.stop - rows.start, axis=1)
    for k, part in zip(design.covariates, parts[1:], strict=True):
        code = block.codes[k][rows].astype(np.intp)
        for own, of_class in zip(total, part, strict=True):
            own += of_class.take(code, mode="clip")
    if block.factor is not None:
        total *= block.factor[rows]
    return total


class TwoClasses(NamedTuple):
    """What a fit of two classes asks of the rows, and how it has its coefficients.

    `width` is how many coefficients there are for each column.
    """

    width: int = 1

    def flat(self, intercept: Any, coef: Floats) -> Floats:
        """Intercept and coefficients of a model as one vector."""
        return np.append(intercept, coef)

    def parted(self, flat: Floats) -> tuple[Any, Floats]:
        """The inverse of `flat`."""
        return float(flat[0]), flat[1:]

    def log_odds(self, block: Block, design: Design, coefs: Floats) -> Floats:
        """Log-odds of each row by the coefficients of its fold."""
        return log_odds(block, design, coefs)

    def sums(self, block: Block, design: Design, coef: Floats, gram: bool) -> Sums:
        """Sums over the rows of a block."""
        return sums(block, design, coef, gram=gram)

    def joined(self, found: Sums) -> Sums:
        """The sums over all rows with the Hessian as Gram matrix."""
        return found

    def functions(self, coef: Floats) -> Floats:
        """The functions whose variance by missing values counts, (functions, columns)."""
        return coef[None]

    def factor(self, block: Block, design: Design, coef: Floats, tables: Tables) -> Floats:
        """By what log-odds are multiplied that integrates missing values out."""
        (own,), (loading,) = tables
        variance = missing_variance(block, own, loading)
        plain = block._replace(factor=None, order=np.arange(len(block.y)))
        log_odds = self.log_odds(plain, design, np.repeat(coef[None], block.n_folds, axis=0))
        return shrink(log_odds, variance)


class SeveralClasses(NamedTuple):
    """The same for three or more classes, by contrasts."""

    width: int

    def flat(self, intercept: Any, coef: Floats) -> Floats:
        """Intercepts (K - 1,) and coefficients (K - 1, columns) of a model as one vector."""
        return flat_of(np.column_stack([intercept, coef]), self.width + 1)

    def parted(self, flat: Floats) -> tuple[Any, Floats]:
        """The inverse of `flat`."""
        later = later_of(flat, self.width + 1)
        return later[:, 0], later[:, 1:]

    def log_odds(self, block: Block, design: Design, coefs: Floats) -> Floats:
        """Log-odds of each row by the coefficients of its fold."""
        return class_log_odds(block, design, coefs, self.width + 1)

    def sums(self, block: Block, design: Design, coef: Floats, gram: bool) -> Sums:
        """Sums over the rows of a block, the Gram matrices those of pairs of classes."""
        return class_sums(block, design, coef, self.width + 1, gram=gram)

    def joined(self, found: Sums) -> Sums:
        """The sums over all rows with the Hessian as Gram matrix."""
        if found.gram is None:
            return found
        return found._replace(gram=class_hessian(found.gram, self.width + 1))

    def functions(self, coef: Floats) -> Floats:
        """The functions whose variance by missing values counts, (K, columns)."""
        return symmetric(coef)

    def factor(self, block: Block, design: Design, coef: Floats, tables: Tables) -> Floats:
        """By what log-odds are multiplied that integrates missing values out."""
        each = [missing_variance(block, *own) for own in zip(*tables, strict=True)]
        return pairwise_shrink(2.0 * np.sum(each, axis=0) / self.width)


def passes_of(n_classes: int) -> TwoClasses | SeveralClasses:
    """The passes of a fit of this number of classes."""
    return TwoClasses() if n_classes == 2 else SeveralClasses(n_classes - 1)
