"""Full Model: acquire every covariate, then classify by Bayes' rule."""

from __future__ import annotations

import numpy as np

from adacos.costs import ROUNDING
from adacos.deciders.sequence import OneSetDecider
from adacos.decision import Terms
from adacos.exceptions import InvalidInputError
from adacos.models.sequence_model import SequenceModel
from adacos.policies.sequence_policy import SequencePolicy
from adacos.typing import Ints


class FullModelClassifier(SequencePolicy):
    """Every covariate for every row, then the label of least expected cost.

    The logistic GAM on all covariates; what the others are measured against.

    Parameters
    ----------
    budget : float, default=None
        What a row may pay for covariates at most; None for any amount. One that does not pay for
        all covariates is refused.
    mean_budget : float, default=None
        The same on average.

    See Also
    --------
    AdaCOSClassifier : Stops row by row.
    COSClassifier : One set for every row.

    References
    ----------
    D. Andrade and Y. Okajima, Adaptive Covariate Acquisition for Minimizing Total Cost of
    Classification, section 7.

    Examples
    --------
    >>> from adacos import FullModelClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = FullModelClassifier(costs).fit(X, y)
    >>> len(policy.acquire(X[:3]).covariates(0))
    8
    """

    takes_many_classes = True

    def _keep_mean_budget(self) -> None:
        """Nothing to do: a budget that does not pay for everything was refused."""

    def _finish_fit(self, model: SequenceModel) -> None:
        super()._finish_fit(model)
        total = float(self.cost_table_.of_order(self.model_.sequence.order))
        for name in ("budget", "mean_budget"):
            given = getattr(self, name)
            if given is not None and total > given * (1 + ROUNDING):
                raise InvalidInputError(
                    name,
                    f"must be at least {total:g}, what all covariates cost: each is acquired",
                    given,
                    "AdaCOSClassifier and COSClassifier leave out what a budget does not pay.",
                )

    @property
    def expected_cost_(self) -> float:
        """Mean total cost with every covariate, by out-of-fold probabilities."""
        return float(self.expected_cost_by_set_[-1])

    def _may_stop_at(self) -> Ints:
        return np.array([len(self.model_.sequence) - 1])

    def make_decider(self, terms: Terms) -> OneSetDecider:
        """Give the decider that decides by what was learned."""
        return OneSetDecider(terms, self.model_, len(self.model_.sequence) - 1)
