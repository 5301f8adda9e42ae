"""DIME (Gadgil, Covert, Lee 2024): acquire the most information about the class for its cost.

A network estimates the conditional mutual information of the class and each covariate given what
was acquired, by regression on how much the loss of a classifier fell.
"""

from __future__ import annotations

from adacos.rivals.greedy_networks import GreedyNetworkClassifier


class DIMEClassifier(GreedyNetworkClassifier):
    """Discriminative estimates of conditional mutual information per cost (torch).

    A classifier f reads any set of acquired covariates. A second network v regresses how much the
    log-loss of f falls by each next covariate, which is in expectation its conditional mutual
    information with the class. The covariate of largest v_i / c_i is acquired.

    The original stops at a budget, at a confidence, or where no v_i / c_i exceeds a penalty.
    The penalty is taken here, together with a largest number of covariates: both are those of least
    total cost on held-out rows. The label is the Bayes decision under the misclassification matrix.
    Members of a panel are compared at what they cost next.

    Parameters
    ----------
    n_updates : int, default=2000
        Most updates of both networks.

    References
    ----------
    S. Gadgil, I. Covert and S.-I. Lee, "Estimating conditional mutual information for dynamic
    feature selection", ICLR 2024.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import DIMEClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = DIMEClassifier(costs).fit(X[:300], y[:300])  # doctest: +SKIP
    >>> policy.acquire(X[300:]).acquired.shape  # doctest: +SKIP
    (468, 8)
    """

    by_information = True
