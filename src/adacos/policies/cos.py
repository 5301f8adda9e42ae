"""COS: one fixed set for every row, the one with the least expected total cost."""

from __future__ import annotations

from adacos.deciders.sequence import CheapestSetDecider
from adacos.decision import Terms
from adacos.policies.budgets import warn_of_unspent
from adacos.policies.sequence_policy import SequencePolicy


class COSClassifier(SequencePolicy):
    """One fixed set of covariates for every row: the one with the lowest total cost.

    The set is chosen by out-of-fold probabilities on the training rows. The values of a row do not
    change what is acquired.

    Parameters
    ----------
    mean_budget : float, default=None
        What rows may pay for covariates on average. As one set serves all rows, the set may not
        cost more.

    Attributes
    ----------
    stage_ : int
        Number of the selected set, the argmin of `expected_cost_by_set_`.

    See Also
    --------
    AdaCOSClassifier : Stops row by row.
    FullModelClassifier : Every covariate for every row.

    References
    ----------
    D. Andrade and Y. Okajima, Adaptive Covariate Acquisition for Minimizing Total Cost of
    Classification, section 3.

    Examples
    --------
    >>> from adacos import COSClassifier, Costs, load_pima
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = COSClassifier(costs).fit(X, y)
    >>> policy.acquire(X[:3]).covariates(0)
    ('Age', 'BMI')
    """

    takes_many_classes = True
    decider_: CheapestSetDecider

    def make_decider(self, terms: Terms) -> CheapestSetDecider:
        """Give the decider that decides by what was learned."""
        return CheapestSetDecider.cheapest(terms, self.model_)

    @property
    def stage_(self) -> int:
        """Number of the set."""
        return self.decider_.stage

    @property
    def expected_cost_(self) -> float:
        """Mean total cost of the selected set, by out-of-fold probabilities."""
        return float(self.expected_cost_by_set_[self.stage_])

    def _keep_mean_budget(self) -> None:
        """Warn where no set is within the budget; every row pays for the selected one, which is."""
        warn_of_unspent(self, "mean_budget")
