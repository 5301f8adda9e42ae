"""Any scikit-learn classifier or fixed rule as a policy: it acquires one set, then answers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import get_tags

from adacos.costs import ROUNDING, Costs
from adacos.deciders.fixed_set import FixedSetDecider, columns_of
from adacos.decision import DecisionRule, Terms
from adacos.exceptions import InvalidInputError, OtherAnswerWarning
from adacos.kernels.folds import stratified_folds
from adacos.kernels.threads import one_blas_thread
from adacos.models.estimator_answers import Answering, EstimatorAnswers, learned
from adacos.policies.base import BasePolicy, TrainingTable
from adacos.policies.best_set import answered_shares, best_set, class_shares, out_of_fold
from adacos.typing import Floats, Ints
from adacos.validation import Constraints, amount, choices, listed, whole

BEST = "best"
_REMEDY = "For example CostedClassifier(LogisticRegression(), costs, covariates=['age', 'dose'])."


def _covariates(name: str, value: Any) -> None:
    """None, the word "best", or a collection of names or positions."""
    if value is None or (isinstance(value, str) and value == BEST):
        return
    listed_items = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    if not listed_items or np.ndim(value) != 1:
        remedy = f"Pass [{value!r}]." if isinstance(value, str) else "For example ['age', 'dose']."
        rule = f"must be None, {BEST!r} or a list of covariates, by name or position"
        raise InvalidInputError(name, rule, value, remedy)


class CostedClassifier(BasePolicy):
    """Any scikit-learn classifier or fixed rule on one set of covariates, scored by total cost.

    Every row acquires the same covariates and is then given the answer of least expected cost by
    the probabilities of the estimator. So a model that there is already, or a rule of thumb, is
    compared with policies that decide row by row.

    The estimator is given an array of floats with the chosen covariates as columns, in the order of
    `covariates`: numbers within the range of training, an indicator column for each category, NaN
    where a value is missing or unavailable. It sees the classes as they are in y.

    Parameters
    ----------
    estimator : classifier, rule or None, default=None
        A classifier, which is cloned and fitted, or a rule: a function of an array of rows that
        returns their classes, or True for the second of two; or an object without `fit` that has
        `predict`. None for a `HistGradientBoostingClassifier` of 100 trees with 6 leaves each, a
        learning rate of 0.05 and `l2_regularization=1`: with fewer than some thousand rows the
        probabilities of the larger trees of scikit-learn's default are too extreme.
        Without `predict_proba` the probabilities are assumed to be the shares of the classes among
        the training rows with the same answer, by cross-validation where it has `fit`. A rule for
        two classes then answers as it does; else the answer is the cheapest one at these shares,
        and `fit` warns where that is not the estimator's own.
    covariates : sequence of str or int, "best" or None, default=None
        What is acquired, by name or by position, in this order; an empty list for nothing. None for
        all covariates. "best" for the set of least cross-validated total cost along an order of
        forward selection.
    budget : float, default=None
        What the covariates may cost at most. Others are refused, and not compared for "best".
    cv : int, default=5
        Folds of the cross-validation.
    random_state : int, default=0
        Seed of the folds and of the boosting that None means.

    Attributes
    ----------
    covariates_ : tuple of str
        What every row acquires.
    estimator_ : object
        The fitted estimator, or the rule; None where nothing is acquired.
    class_shares_ : ndarray of shape (n_classes,)
        Share of each class among the training rows.
    answered_shares_ : ndarray of shape (n_classes, n_classes)
        Without `predict_proba`, share of each class (columns) by answer (rows).
    cv_cost_ : ndarray of shape (n_sets,)
        For "best", cross-validated total cost of each set of the order; infinite for sets that were
        not compared, as they cost more than another one with its errors. The least one is a little
        optimistic; `nested_cost` repeats the choice in each fold.

    See Also
    --------
    FullModelClassifier : The additive model of this library on all covariates.
    COSClassifier : That on the cheapest set.

    Notes
    -----
    "best" fits the estimator at most `cv` times for each of p + 1 sets of p covariates, on at most
    10,000 rows. Their order is found by additive models on at most 2,000 rows: by forward selection
    of least total cost, p (p + 1) / 2 models, and with more than 30 covariates by one group lasso.

    Model files hold no estimators of scikit-learn: keep a fitted object with `pickle`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from adacos import CostedClassifier, Costs, load_pima
    >>> from adacos.metrics import total_cost
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=50, false_negative=200)
    >>> known = ["Glucose", "BMI", "Age"]
    >>> model = CostedClassifier(LogisticRegression(max_iter=1000), costs, covariates=known)
    >>> result = model.fit(X[:500], y[:500]).acquire(X[500:])
    >>> result
    AcquisitionResult(268 rows, 3.00 of 8 covariates and 19.61 paid per row)
    >>> total_cost(result, y[500:], costs) < 60
    True

    A rule of thumb:

    >>> rule = CostedClassifier(lambda rows: rows[:, 0] > 126, costs, covariates=["Glucose"])
    >>> rule.fit(X[:500], y[:500]).predict(X[504:509])
    array([0, 0, 1, 1, 0])
    """

    takes_many_classes = True
    not_saved = (
        "Model files hold nothing that would have to be executed, and so no estimators of other "
        "libraries. Keep it with pickle or joblib, and open only files of your own."
    )

    constraints: ClassVar[Constraints] = {
        "covariates": _covariates,
        "budget": amount,
        "cv": whole(2),
        "random_state": whole(0),
    }

    def __init__(
        self,
        estimator: Answering | None = None,
        costs: Costs | None = None,
        *,
        covariates: Sequence[str | int] | str | None = None,
        budget: float | None = None,
        cv: int = 5,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.covariates = covariates
        self.budget = budget
        self.cv = cv
        self.random_state = random_state

    @one_blas_thread
    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Choose the covariates, if that is asked for, and fit the estimator on them.

        Parameters
        ----------
        groups : array-like of shape (n_rows,), default=None
            The patient, site or other group of each row: rows of one are in one fold.
        """
        _check_estimator(self.estimator)
        training = self.begin_fit(X, y, groups)
        labels = training.y.astype(np.intp)
        estimator = self._boosting() if self.estimator is None else self.estimator
        self._members = self._chosen(estimator, training, labels)
        self.covariates_ = tuple(self.encoder_.names[k] for k in self._members)
        self.class_shares_ = class_shares(labels, len(self.classes_))
        values = training.encoded[:, columns_of(self._members, self.encoder_.source)]
        self.estimator_, self._answers = None, None
        if len(self._members):
            given = estimator, values, labels
            shares = self._shares(*given, training)
            self.estimator_ = learned(*given, self.classes_, self.covariates_)
            says = self.estimator_, self.classes_, self.covariates_, shares
            self._answers = EstimatorAnswers(*says)
            # What it cannot answer is refused here, rather than at the first row.
            self._answers.probabilities(values[:1])
            return self.finish_fit(self._rule_of(estimator, shares))
        return self.finish_fit()

    def make_decider(self, terms: Terms) -> FixedSetDecider:
        """Give the decider that decides by what was learned."""
        return FixedSetDecider(terms, self._members, self.class_shares_, self._answers)

    def _boosting(self) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_leaf_nodes=6,
            l2_regularization=1.0,
            random_state=self.random_state,
        )

    def _chosen(self, estimator: Answering, training: TrainingTable, labels: Ints) -> Ints:
        """The covariates to acquire, in order."""
        if isinstance(self.covariates, str):
            members, self.cv_cost_ = best_set(
                estimator,
                training.encoded,
                labels,
                self.encoder_,
                self.cost_table_,
                self.classes_,
                folds=self.cv,
                seed=self.random_state,
                groups=training.groups,
                budget=self.budget,
            )
            return members
        members = _positions(self.covariates, self.encoder_.names)
        price = float(self.cost_table_.of_order(members))
        if self.budget is not None and price > self.budget * (1 + ROUNDING):
            raise InvalidInputError(
                "budget",
                f"must be at least {price:g}, what the covariates cost: each is acquired",
                self.budget,
                f"Take fewer covariates, or covariates={BEST!r}.",
            )
        return members

    def _shares(
        self, estimator: Answering, values: Floats, labels: Ints, training: TrainingTable
    ) -> Floats | None:
        """Share of each class by answer, where the estimator gives no probabilities."""
        if hasattr(estimator, "predict_proba"):
            return None
        n_classes = len(self.classes_)
        fold = stratified_folds(
            training.encoded, training.y, self.cv, self.random_state, training.groups
        )
        answer, _ = out_of_fold(estimator, values, labels, fold, self.classes_, self.covariates_)
        assert answer is not None
        self.answered_shares_ = answered_shares(answer, labels, n_classes)
        return self.answered_shares_

    def _rule_of(self, estimator: Answering, shares: Floats | None) -> DecisionRule | None:
        """What makes a rule for two classes answer as it does; else None, the cheapest answer."""
        if shares is None or self.cost_table_.decisions is not None:
            return None
        matrix = self.cost_table_.matrix
        if len(matrix) == 2 and not hasattr(estimator, "fit") and shares[0, 1] < shares[1, 1]:
            return DecisionRule(matrix, float(shares[:, 1].mean()))
        risk = shares @ matrix
        for k, cheapest in enumerate(risk.argmin(axis=1)):
            if risk[k, cheapest] < risk[k, k]:
                said, given = self.classes_[[k, cheapest]].tolist()
                warnings.warn(
                    f"Rows that {_kind(estimator)} answers {said!r} are answered {given!r}: at "
                    f"these costs {given!r} is expected to cost {risk[k, cheapest]:.4g} a row, "
                    f"{said!r} {risk[k, k]:.4g}.",
                    OtherAnswerWarning,
                    stacklevel=6,
                )
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def _kind(estimator: object) -> str:
    return str(getattr(estimator, "__name__", type(estimator).__name__))


def _check_estimator(estimator: object) -> None:
    """Refuse what is no classifier and no rule, by what it was taken for."""
    rule = "must be a classifier, an object with predict, or a function of rows"
    if isinstance(estimator, BasePolicy):
        raise InvalidInputError(
            "estimator",
            f"{rule}, and no policy",
            type(estimator).__name__,
            "A policy is scored as it is: total_cost(policy.acquire(X), y, costs).",
        )
    if isinstance(estimator, type):
        raise InvalidInputError("estimator", rule, estimator.__name__, "Pass an object: add ().")
    if isinstance(estimator, Costs):
        raise InvalidInputError("estimator", rule, "Costs", _REMEDY)
    knows = callable(estimator) or hasattr(estimator, "predict")
    has_tags = hasattr(estimator, "__sklearn_tags__")
    if estimator is not None and (not knows or (has_tags and is_regressor(estimator))):
        raise InvalidInputError("estimator", rule, type(estimator).__name__, _REMEDY)


def _positions(covariates: Any, names: tuple[str, ...]) -> Ints:
    """Positions of covariates that are given by name or position."""
    if covariates is None:
        return np.arange(len(names))
    given = np.asarray(covariates, dtype=object).tolist()
    numbers = {name: k for k, name in enumerate(names)} | {k: k for k in range(len(names))}
    unknown = [str(item) for item in given if isinstance(item, bool) or item not in numbers]
    if unknown:
        raise InvalidInputError(
            "covariates",
            "must be columns of the table, by name or position",
            listed(unknown),
            choices(unknown, names, "The columns are"),
        )
    members = np.array([numbers[item] for item in given], dtype=np.intp)
    if len(set(members.tolist())) < len(members):
        raise InvalidInputError(
            "covariates", "must be different from each other", listed(given), "Name each once."
        )
    return members
