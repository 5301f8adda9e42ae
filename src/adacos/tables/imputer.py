"""`GaussianImputer`: missing values at their conditional mean under a joint normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from adacos.kernels.gaussian import conditional_mean, covariance_with_missing
from adacos.tables.encoder import covariate_names, refuse_empty
from adacos.typing import Fields, Floats


class GaussianImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing values by their conditional mean under a joint normal distribution.

    The covariance is estimated from all rows, incomplete ones included, by Lounici's estimator with
    a missing rate per column: with missing entries of the centred data set to zero, products of two
    columns are divided by both observed fractions and squares by one. It is unbiased when values
    are missing at random independently of each other.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the known values of each column.
    covariance_ : ndarray of shape (n_features, n_features)
        Estimated covariance, projected to positive definite.

    References
    ----------
    K. Lounici, "High-dimensional covariance matrix estimation with missing observations",
    Bernoulli 20(3), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from adacos import GaussianImputer
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> X = np.column_stack([x, 2.0 * x])
    >>> X[99, 1] = np.nan
    >>> float(GaussianImputer().fit_transform(X)[99, 1].round(1))
    2.0
    """

    # What a model file holds, by type.
    saved_fields: ClassVar[Fields] = {
        "n_features_in_": int,
        "feature_names_in_": NDArray[Any] | None,
        "mean_": Floats,
        "covariance_": Floats,
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate mean and covariance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN marks missing values.
        y : None, default=None
            Ignored.

        Returns
        -------
        GaussianImputer
            Itself, fitted.

        Raises
        ------
        InvalidInputError
            If a column has no known value.
        """
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
        for position in np.flatnonzero(np.all(np.isnan(X), axis=0)):
            refuse_empty(np.empty(0), covariate_names(self)[position])
        self.mean_, self.covariance_ = covariance_with_missing(X)
        return self

    def transform(self, X: Any) -> Floats:
        """Fill in the missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN marks missing values.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            X with every missing value replaced by its conditional mean given the row's others.
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            copy=True,
        )
        return conditional_mean(X, ~np.isnan(X), self.mean_, self.covariance_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
