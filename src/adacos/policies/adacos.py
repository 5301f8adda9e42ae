"""AdaCOS: acquire along the sequence as long as continuing is expected to pay for itself.

At S_i a row stops when F(S_j \\ S_i) >= F(empty) for every j > i, where F(S) is what acquiring S is
expected to lead to plus the cost of S. The expectation is over the log-odds after S_j, normal with
the standard deviation of z, the contribution of S_j \\ S_i to model j, and a mean that keeps the
probability or, as published, that of z (`lookahead="paper"`). What S_j leads to is the Bayes risk
there, or what is best from there on (`lookahead="dynamic"`, `adacos.models.dynamic`), by default
corrected by what continuing cost past rows (`lookahead="realised"`, `adacos.models.realised`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adacos.costs import Costs
from adacos.deciders.out_of_fold import AnyFoldedDecider
from adacos.deciders.rounds import RoundsDecider
from adacos.deciders.sequence import AdaCOSDecider
from adacos.decision import Terms
from adacos.models.forecasts import FORECASTS
from adacos.models.large_fits import PreparedRows
from adacos.policies.sequence_policy import SequencePolicy
from adacos.typing import Floats
from adacos.validation import DEPRECATED, Constraints, check_renamed, given_parameter, one_of


class AdaCOSClassifier(SequencePolicy):
    """Adaptive acquisition: each row is asked as long as some later set is expected to pay.

    Covariates are ordered once; the values seen decide, row by row, when to stop. At a set the row
    stops when no later set is expected to save more misclassification cost than it costs.

    Parameters
    ----------
    lookahead : {"realised", "dynamic", "coherent", "paper"}, default="realised"
        Model of the log-odds after an acquisition. "coherent": the probability expected then
        is the probability now, so that information is never expected to do harm. "dynamic":
        likewise, and what continuing is worth counts that one may stop at any later set as the
        values turn out, by dynamic programming along the sequence. "realised": likewise, corrected
        where continuing has cost training rows, cross-validated, more or less than that by more
        than chance would explain. Where waiting costs something "realised" is "dynamic". "paper":
        by the regression alone, as published.
    mean_budget : float, default=None
        What rows may pay for covariates on average. Covariate costs then count 1 + `multiplier_`
        times, so that training rows, cross-validated, keep it.

    outlook : str, default="deprecated"
        The old name of `lookahead`, for one release.

    Attributes
    ----------
    multiplier_ : float
        By how much more than once covariate costs count, for a mean budget; 0 where it does not
        bind.
    mean_spent_complete_ : float
        With a mean budget, and values missing in training, what complete rows pay.
    mean_spent_ : float
        With a mean budget, what new rows are expected to pay on average, by cross-validation on
        the training rows.
    mixture_ : Mixture or None
        Which rows walk with a lower multiplier, where this spends a mean budget that one multiplier
        does not; `acquire` and `consultation` distinguish rows by their keys.

    See Also
    --------
    COSClassifier : One set for every row.
    FullModelClassifier : Every covariate for every row.
    TargetRecallClassifier : A target recall in place of a false-negative cost.

    References
    ----------
    D. Andrade and Y. Okajima, Adaptive Covariate Acquisition for Minimizing Total Cost of
    Classification, section 4.

    Examples
    --------
    >>> from adacos import AdaCOSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = AdaCOSClassifier(costs).fit(X, y)
    >>> policy.acquire(X[:3]).covariates(0)
    ('Age', 'BMI')
    """

    takes_many_classes = True
    renamed_parameters: ClassVar[Mapping[str, str]] = {"outlook": "lookahead"}
    lookahead: str
    outlook: str = DEPRECATED
    # Whether `_set_fits` are kept, for a tree to grow from.
    _keeps_fits: bool = False

    constraints: ClassVar[Constraints] = {
        **SequencePolicy.constraints,
        "lookahead": one_of(*FORECASTS),
        "outlook": one_of(*FORECASTS, DEPRECATED),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        lookahead: str = "realised",
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        monotonic_cst: Any = None,
        outlook: str = DEPRECATED,
        target_recall: Any = DEPRECATED,
        recall_at: str = DEPRECATED,
        recall_confidence: Any = DEPRECATED,
        calibration_fraction: Any = DEPRECATED,
        on_uncertifiable: str = DEPRECATED,
    ) -> None:
        super().__init__(
            costs,
            sequence=sequence,
            n_splines=n_splines,
            strengths=strengths,
            cv=cv,
            random_state=random_state,
            budget=budget,
            mean_budget=mean_budget,
            n_jobs=n_jobs,
            verbose=verbose,
            monotonic_cst=monotonic_cst,
            target_recall=target_recall,
            recall_at=recall_at,
            recall_confidence=recall_confidence,
            calibration_fraction=calibration_fraction,
            on_uncertifiable=on_uncertifiable,
        )
        self.lookahead = lookahead
        self.outlook = outlook

    @property
    def resolved_lookahead(self) -> str:
        """Model of the log-odds after an acquisition, by whichever name it was given."""
        return str(given_parameter(self, "lookahead"))

    def _check_combinations(self) -> None:
        super()._check_combinations()
        check_renamed(self)

    def _complete_fit(self, fits: PreparedRows, unlabeled: Floats | None) -> None:
        super()._complete_fit(fits, unlabeled)
        if self._keeps_fits:
            self._set_fits = fits

    def make_decider(self, terms: Terms) -> AnyFoldedDecider:
        """Give the decider that decides by what was learned."""
        if terms.costs.immediate is not None:
            return RoundsDecider(terms, self.model_)
        return AdaCOSDecider(terms, self.model_, self.resolved_lookahead)
