"""GDFS (Covert et al. 2023): a network learns to select the next covariate greedily.

The selection is learned through a differentiable draw, so that the loss of the classifier after the
acquisition falls most: at the optimum it maximises conditional mutual information.
"""

from __future__ import annotations

from adacos.rivals.greedy_networks import GreedyNetworkClassifier


class GDFSClassifier(GreedyNetworkClassifier):
    """Greedy dynamic selection by a network of policies and a classifier (torch).

    A classifier f reads any set of acquired covariates. A second network gives the probability of
    selecting each covariate next. Both learn to lower the log-loss of f after the selection, one
    step ahead, with the selection relaxed to a Concrete distribution.

    The original counts covariates and has no costs. Here the most probable covariate is acquired,
    or the one of largest probability per cost, whichever is cheaper on held-out rows. A row stops
    at a threshold of the expected cost of its answer, or after a number of covariates. Both are
    those of least total cost on the held-out rows. The label is the Bayes decision under the
    misclassification matrix.

    Parameters
    ----------
    n_updates : int, default=2000
        Most updates of both networks.

    References
    ----------
    I. Covert, W. Qiu, M. Lu, N. Kim, N. White and S.-I. Lee, "Learning to maximize mutual
    information for dynamic feature selection", ICML 2023.

    Examples
    --------
    >>> from adacos import Costs, load_pima
    >>> from adacos.rivals import GDFSClassifier
    >>> X, y, prices, *_ = load_pima()
    >>> costs = Costs(prices, false_positive=100, false_negative=1000)
    >>> policy = GDFSClassifier(costs).fit(X[:300], y[:300])  # doctest: +SKIP
    >>> policy.acquire(X[300:]).acquired.shape  # doctest: +SKIP
    (468, 8)
    """

    by_information = False
