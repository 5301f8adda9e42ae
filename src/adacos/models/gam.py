"""`LogisticGAM`: a logistic generalised additive model with penalised cubic B-splines.

    log-odds(x) = intercept + sum_i f_i(x_i)

with f_i a penalised spline for a numeric covariate, a slope for a two-valued one and one effect
per category for a categorical one (`adacos.models.additive`; very many rows as
`adacos.models.large_fits` holds them), and on request products of pairs of covariates
(`adacos.models.interactions`). With three or more classes every class has log-odds of its own,
which sum to zero over the classes: the multinomial model.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.families import family
from adacos.kernels.binned import BLOCK_ROWS
from adacos.kernels.class_risk import with_first
from adacos.kernels.multinomial import symmetric
from adacos.kernels.threads import one_blas_thread
from adacos.models.additive import FAMILIES, AdditiveFit, fit_additive
from adacos.models.basis import MOST_SPLINES, AdditiveBasis, fit_basis
from adacos.models.interactions import PairedBasis, asked_pairs, fit_paired, position
from adacos.models.large_fits import holds_codes, prepare_large, refuse_held
from adacos.models.monotone import directions_of
from adacos.tables.encoder import TableEncoder, covariate_names, validate_table
from adacos.tables.labels import check_labels, check_one_label_each
from adacos.tables.weights import check_folds, check_weights
from adacos.typing import Bools, Fields, Floats, Ints
from adacos.validation import choice, integer, real


class LogisticGAM(ClassifierMixin, BaseEstimator):
    """Logistic additive model; smoothness and ridge strengths by out-of-fold likelihood.

    The log-odds are an intercept plus one contribution of each covariate: a penalised cubic spline
    for a number, a slope for two values, one effect per category. The model is the mean of several
    candidate strengths with the weights of highest out-of-fold likelihood. On request products of
    pairs of covariates are added.

    Parameters
    ----------
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate. Knots are equally spaced; where a tail is
        heavy they are once the covariate is mapped, so that outliers do not take their room.
    smoothness : float, array-like of shape (n_features,) or None, default=None
        Strength of the second-difference penalty on the wiggly part of each covariate, half of it
        times the sum of squared differences; None to have it found.
    ridge : float, array-like of shape (n_features,) or None, default=None
        Strength of the ridge on each standardised linear part, and on each category's effect,
        likewise. Give both strengths or neither.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Candidates when the strengths are not given: a grid of one smoothness and one ridge for all
        covariates ("common"), strengths by restricted likelihood ("per_covariate"), or both.
    cv : int, splitter, iterable of (train, test) or None, default=10
        Folds behind the out-of-fold probabilities; every row must be held out once. None, when the
        strengths are given, means no out-of-fold probabilities (NaN).
    random_state : int, default=0
        Seed of the folds, when `cv` is a number.
    interactions : {"auto"}, list of pairs of covariates or None, default=None
        Products of standardised columns of two covariates, a category being a column, with a ridge:
        those of all pairs ("auto"), or of the pairs of names or positions given. Their strength is
        found as the others are, and they are left away unless they predict out-of-fold rows better
        by two standard errors. With `smoothness` and `ridge` given they stay, a pair with the
        geometric mean of its ridge strengths. None for an additive model.
    monotonic_cst : mapping of str to int, or array-like of shape (n_features,), default=None
        Covariates whose contribution only rises (1) or only falls (-1) with their value, by name or
        in the order of the columns; 0 for any. As in scikit-learn it holds for the probability of
        the positive class. It goes with two classes, without `interactions`, and with fewer than
        100,000 rows; a covariate of words has no order.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; of two the second is the positive one.
    intercept_ : float, or ndarray of shape (n_classes,)
        Log-odds of an average row: of the second of two classes, or of each of more, in sum zero.
    coef_ : ndarray of shape (n_columns,) or (n_classes, n_columns)
        Coefficients on the columns of `basis_`, likewise.
    basis_ : AdditiveBasis
        Splines, slopes and indicators of the covariates; a `PairedBasis`, with products as its last
        columns, where the model holds some.
    interactions_ : list of pairs of str
        Pairs of covariates of whose columns the model holds products.
    encoder_ : TableEncoder
        From a table to numbers.
    smoothness_ : ndarray of shape (n_features,)
        Strength of each covariate, averaged geometrically over the candidates; NaN where there is
        no wiggly part.
    ridge_ : ndarray of shape (n_features,)
        Likewise.
    out_of_fold_proba_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        For each training row P(class 1), or with three or more classes the probability of each, by
        a model fitted and tuned without it.
    out_of_fold_log_loss_ : float
        Their mean negative log-likelihood.

    Notes
    -----
    The paper fits such a model to every set of the sequence (section 4). How strengths are found,
    and why candidates are blended instead of picked, is on the page about theory. From 100,000
    rows on they are held as codes and strengths are those of highest restricted likelihood, see the
    page about many rows; there can be no products then. Otherwise there can be
    1,000 of them with two classes, and as many divided by the classes less one with more.

    Examples
    --------
    >>> from adacos import LogisticGAM, load_pima
    >>> X, y, *_ = load_pima()
    >>> gam = LogisticGAM().fit(X, y)
    >>> gam.predict_proba(X).shape
    (768, 2)
    """

    # What a model file holds besides parameters, by type.
    saved_fields: ClassVar[Fields] = {
        "n_features_in_": int,
        "feature_names_in_": NDArray[Any] | None,
        "classes_": NDArray[Any],
        "encoder_": TableEncoder,
        "basis_": AdditiveBasis | PairedBasis,
        "intercept_": float | Floats,
        "coef_": Floats,
        "ridge_": Floats,
        "smoothness_": Floats,
        "interactions_": list[tuple[str, str]] | None,  # not in older model files
        "out_of_fold_proba_": Floats,
        "out_of_fold_log_loss_": float,
    }
    interactions: Any = None  # not in older model files
    monotonic_cst: Any = None  # likewise

    def __init__(
        self,
        *,
        n_splines: int = 10,
        smoothness: float | ArrayLike | None = None,
        ridge: float | ArrayLike | None = None,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        interactions: Any = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.n_splines = n_splines
        self.smoothness = smoothness
        self.ridge = ridge
        self.strengths = strengths
        self.cv = cv
        self.random_state = random_state
        self.interactions = interactions
        self.monotonic_cst = monotonic_cst

    @one_blas_thread
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on a complete table and two classes or more.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Numbers, booleans or categories without missing values, in a table of numpy, pandas,
            polars or pyarrow.
        y : array-like of shape (n_samples,)
            Classes, of which there must be two at least.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row; a row of weight 0 is ignored.

        Returns
        -------
        LogisticGAM
            Itself, fitted.

        Raises
        ------
        InvalidInputError
            If a parameter, the table or the classes break a rule; it names which.
        """
        integer("n_splines", self.n_splines, at_least=4, at_most=MOST_SPLINES)
        integer("random_state", self.random_state, at_least=0)
        choice("strengths", self.strengths, tuple(FAMILIES))
        table = validate_table(self, X, reset=True)
        self.classes_, labels = check_labels(y, many=True)
        check_one_label_each(table, labels)
        weight = check_weights(sample_weight, labels)
        kept = weight > 0
        rows = table[kept] if isinstance(table, np.ndarray) else table.filter(kept.tolist())
        self.encoder_ = TableEncoder.fit(rows, covariate_names(self))
        encoded = _complete(self.encoder_.transform(table))
        fold = self._folds(encoded, labels, kept)
        encoded, labels, weight = encoded[kept], labels[kept], weight[kept]
        fitted = self._fit_rows(encoded, labels, weight, fold)
        self._take(fitted, kept)
        self.out_of_fold_log_loss_ = fitted.out_of_fold_loss / float(weight.sum())
        return self

    def _fit_rows(
        self, encoded: Floats, labels: Floats, weight: Floats, fold: Ints | None
    ) -> AdditiveFit:
        """The basis and the model; very many rows are held as codes."""
        every, families = np.arange(self.n_features_in_), FAMILIES[self.strengths]
        given = self.smoothness is not None or self.ridge is not None
        asked = asked_pairs(self.interactions, self.encoder_.names, len(labels))
        directions = directions_of(self)
        if directions is not None and asked is not None:
            raise InvalidInputError(
                "interactions",
                "must be None with monotonic_cst: products have no direction",
                self.interactions,
                "Leave one of them out.",
            )
        if holds_codes(len(labels)) and not given:
            refuse_held(directions, len(labels))
            assert fold is not None
            fits = prepare_large(
                encoded,
                labels,
                self.encoder_,
                n_splines=self.n_splines,
                families=families,
                fold=fold,
                seed=self.random_state,
                weight=weight,
                n_classes=len(self.classes_),
            )
            self.basis_ = fits.basis
            return fits.fit(every, None)
        self.basis_, columns = fit_basis(
            encoded, weight, self.encoder_.source, self.encoder_.kinds, self.n_splines
        )
        rows = labels, weight, fold
        how: dict[str, Any] = {"families": families, "strengths": self._given_strengths()}
        how["n_classes"] = len(self.classes_)
        if asked is None:
            how["directions"] = directions
            return fit_additive(columns, self.basis_, every, *rows, **how)
        self.basis_, fitted = fit_paired(encoded, columns, self.basis_, asked, *rows, **how)
        return fitted

    def _take(self, fitted: AdditiveFit, kept: Bools) -> None:
        """The fitted attributes; `kept` says which of the rows had a weight."""
        self.intercept_, self.coef_ = fitted.intercept, fitted.coef
        self.ridge_ = np.full(self.n_features_in_, np.nan)
        self.smoothness_ = np.full(self.n_features_in_, np.nan)
        linear, covariate_of = self.basis_.linear, self.basis_.term_group
        own = linear & (covariate_of < self.n_features_in_)
        self.ridge_[covariate_of[own]] = fitted.strengths[own]
        self.smoothness_[covariate_of[~linear]] = fitted.strengths[~linear]
        pairs = self.basis_.pairs.tolist() if isinstance(self.basis_, PairedBasis) else []
        names = self.encoder_.names
        self.interactions_ = [(names[i], names[j]) for i, j in pairs]
        out_of_fold = family(len(self.classes_)).probability(fitted.out_of_fold_log_odds)
        self.out_of_fold_proba_ = np.full((len(kept), *out_of_fold.shape[1:]), np.nan)
        self.out_of_fold_proba_[kept] = out_of_fold
        if out_of_fold.ndim == 2:
            self.intercept_, self.coef_ = symmetric(fitted.intercept), symmetric(fitted.coef)

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, or of each class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows without missing values.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The log-odds; with three or more classes they sum to zero in each row.
        """
        encoded = self._encoded(X)
        pieces = [
            encoded[first : first + BLOCK_ROWS] for first in range(0, len(encoded), BLOCK_ROWS)
        ]
        return np.concatenate(
            [self.basis_.transform(rows) @ self.coef_.T + self.intercept_ for rows in pieces]
        )

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows without missing values.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One column per class, in the order of `classes_`.
        """
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Choose the most probable class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows without missing values.

        Returns
        -------
        ndarray of shape (n_samples,)
            The classes.
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def _scores(self, X: Any) -> Floats:
        """Log-odds of every class; with two classes against the first."""
        log_odds = self.decision_function(X)
        return log_odds if log_odds.ndim == 2 else with_first(log_odds[:, None])

    def contributions(self, X: Any) -> Floats:
        """Contribution of each covariate, and each pair, to the log-odds of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows without missing values.

        Returns
        -------
        ndarray of shape (n_samples, n_parts) or (n_samples, n_parts, n_classes)
            f_i(x_i) of each covariate, then the products of each pair of `interactions_`; with the
            intercept they sum to the log-odds.
        """
        columns, own = self.basis_.transform(self._encoded(X)), self.basis_.group
        groups = range(self.basis_.n_groups)
        parts = [columns[:, own == i] @ self.coef_[..., own == i].T for i in groups]
        return np.stack(parts, axis=1)

    def shape_function(
        self, covariate: str | int, points: int = 200
    ) -> tuple[NDArray[Any], Floats]:
        """Contribution of one covariate as a function of its value, its products aside.

        Parameters
        ----------
        covariate : str or int
            Its name or position.
        points : int, default=200
            Number of values over the training range; categories are all given.

        Returns
        -------
        values : ndarray
            Values of the covariate, or its categories.
        contribution : ndarray
            The contribution to the log-odds at each of them; with three or more classes one column
            for each.
        """
        check_is_fitted(self)
        i = position("covariate", covariate, self.encoder_.names)
        own = np.flatnonzero(self.encoder_.source == i)
        if self.encoder_.categories[i]:
            values: NDArray[Any] = np.array(self.encoder_.categories[i])
            encoded = np.eye(len(values))
        else:
            values = self.basis_.grid(int(own[0]), points)
            encoded = values[:, None]
        return values, self.basis_.block(encoded, i) @ self.coef_[..., self.basis_.group == i].T

    def plot_shape_functions(self, columns: int = 4) -> Any:
        """Draw the contribution of every covariate to the log-odds (extra `plot`).

        Parameters
        ----------
        columns : int, default=4
            Number of panels side by side.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each covariate.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("matplotlib", "plot") from error
        names = self.encoder_.names
        rows = -(-len(names) // columns)
        figure = Figure(figsize=(3.1 * columns, 2.5 * rows), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns, sharey=True)).ravel()
        for i, name in enumerate(names):
            values, effect = self.shape_function(i)
            if effect.ndim == 2:
                lines = axes[i].plot(
                    values, effect, marker="." if self.encoder_.categories[i] else ""
                )
                figure.legend(lines, self.classes_.tolist()) if i == 0 else None
            elif self.encoder_.categories[i]:
                axes[i].bar(values, effect, color="#0072B2")
            else:
                axes[i].plot(values, effect, color="#0072B2")
            axes[i].axhline(0.0, color="0.7", linewidth=0.8)
            axes[i].set_title(name, fontsize=10)
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        figure.supylabel("contribution to the log-odds")
        return figure

    def _encoded(self, X: Any) -> Floats:
        check_is_fitted(self)
        table = validate_table(self, X, reset=False)
        return _complete(self.encoder_.transform(table))

    def _folds(self, encoded: Floats, labels: Floats, kept: NDArray[np.bool_]) -> Ints | None:
        """Fold of each kept row: dealt out, or as the given splits hold rows out."""
        if self.cv is None and self.smoothness is not None:
            return None
        return check_folds(self.cv, encoded, labels, kept, self.random_state)

    def _given_strengths(self) -> Floats | None:
        if self.smoothness is None and self.ridge is None:
            return None
        if self.smoothness is None or self.ridge is None:
            raise InvalidInputError(
                "smoothness, ridge",
                "must be given both or neither",
                (self.smoothness, self.ridge),
                "Give the other one too, or None for both.",
            )
        per_covariate = {}
        for name, value in (("smoothness", self.smoothness), ("ridge", self.ridge)):
            try:
                values = np.broadcast_to(np.asarray(value, dtype=np.float64), self.n_features_in_)
            except (TypeError, ValueError):
                raise InvalidInputError(
                    name,
                    f"must be a number or one per covariate ({self.n_features_in_})",
                    value,
                    "Give one number for all covariates, or as many as there are columns.",
                ) from None
            for item in values:
                real(name, float(item), at_least=0)
            per_covariate[name] = values
        return np.where(
            self.basis_.linear,
            per_covariate["ridge"][self.basis_.term_group],
            per_covariate["smoothness"][self.basis_.term_group],
        )


def _complete(encoded: Floats) -> Floats:
    if np.isnan(encoded).any():
        raise InvalidInputError(
            "X",
            "must not contain NaN",
            "missing values",
            "LogisticGAM needs complete rows: put a GaussianImputer before it in a Pipeline.",
        )
    return encoded
