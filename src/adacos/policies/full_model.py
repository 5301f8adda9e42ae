"""Full Model: acquire every covariate, then classify by Bayes' rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adacos.costs import ROUNDING
from adacos.engine import Decision
from adacos.exceptions import InvalidInputError
from adacos.models.outlook import WalkState
from adacos.models.sequence_model import SequenceModel
from adacos.policies.one_set import go_on_to
from adacos.policies.sequence_policy import SequencePolicy


class FullModelClassifier(SequencePolicy):
    """Every covariate for every row, then the label of least expected cost.

    The logistic GAM on all covariates; what the others are measured against.

    Parameters
    ----------
    costs : Costs, default=None
        Covariate and misclassification costs, of more than two classes as a matrix. None makes
        every covariate free and every error cost 1.
    sequence : {"group_lasso", "forward", "both"}, default="group_lasso"
        How the sets are found: by order of entry into a cost-weighted group lasso, greedily by
        leave-out total cost (which needs both misclassification costs), or the one with which this
        policy has the lower nested leave-out cost, see `adacos.policies.leave_out`.
    n_splines : int, default=10
        Number of cubic B-splines per numeric covariate; fewer, but four at least, where there
        would be more than 256 columns and more columns than rows, or with more than 40 numeric
        covariates fewer than four rows to a column.
    strengths : {"auto", "common", "per_covariate"}, default="auto"
        Penalties to choose from, see `LogisticGAM`.
    cv : int, splitter or iterable of (train, test), default=10
        Folds behind the leave-out probabilities: their number, or splits that hold out every row
        once.
    random_state : int, default=0
        Seed of the folds and of the calibration split.
    budget : float, default=None
        What a row may pay for covariates at most; None for any amount. One that does not pay for
        all covariates is refused.
    mean_budget : float, default=None
        The same on average.
    target_recall : float or mapping of class to float, default=None
        Least share of positive rows to be answered positive, in place of a false-negative cost.
        That cost then follows from the leave-out probabilities: it is the least one for which the
        target is met wherever the policy stops.
        It may name the positive class, {"sick": 0.95}, and means the same.
        With more than two classes a recall for each of those that are to be protected, by name:
        the costs stay, and errors about these classes are surcharged as far as it takes.
    recall_confidence : float, default=None
        Confidence with which the target recall is to hold for new rows. `fit` then sets
        `calibration_fraction` of each class aside, learns from the rest and calls `calibrate`.
    calibration_fraction : float, default=0.5
        Share of the rows set aside for that.
    on_uncertifiable : {"error", "largest", "always_positive"}, default="error"
        What to do when the calibration rows do not prove the target recall: raise; certify the
        largest recall that they do prove, in the same attempt; or answer positive for every row
        and acquire nothing.
    n_jobs : int, default=None
        Fits of one step of forward selection that run at the same time.
    verbose : int, default=0
        Whether `fit` prints where it is: which step of forward selection, which set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; of two the second is the positive one.
    model_ : SequenceModel
        Sets, additive models and densities, shared by policies built with `from_model`.
    sequence_ : str
        How the sets were found, "group_lasso" or "forward".
    sets_ : list of tuple of str
        Covariate names of each set, in order of acquisition.
    expected_cost_ : ndarray of shape (n_sets,)
        Mean total cost of always stopping at each set, by leave-out probabilities. Its least value
        flatters: the order was found with the same labels. See `leave_out_cost`.
    cost_table_ : CostTable
        The costs as given, bound to the columns.
    rule_ : DecisionRule
        How log-odds become a label, and the costs by which acquisitions are weighed.
    threshold_ : float
        With a target recall, the probability from which on a row is answered positive.
    false_negative_cost_ : float
        The cost of a false negative that the threshold stands for.
    surcharges_ : dict of class to float
        With target recalls of more than two classes, by how much more than was stated an error
        about each costs.
    recall_estimate_ : float or dict of class to float
        Share of positive training rows whose leave-out probability reaches the threshold at every
        set at which the policy may stop, and by class the share that is answered with it; after
        `calibrate`, the recall on the calibration rows.
    training_rows_ : RowDigests
        Salted digests of the training rows, by which `calibrate` knows them again.
    certificate_ : RecallCertificate or ClassRecallCertificate
        What was proved, after `calibrate`.
    always_positive_ : bool
        Whether every row is answered positive for want of a certificate.

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

    def _keep_mean_budget(self, X: Any) -> None:
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

    def _answers_left_out(self, rows: NDArray[np.intp]) -> Callable[[], NDArray[np.intp]]:
        return lambda: self.rule_.label(self.model_.leave_out_log_odds[rows, -1])

    def _may_stop_at(self) -> NDArray[np.intp]:
        return np.array([len(self.model_.sequence) - 1])

    def _decide(self, state: WalkState) -> Decision:
        last = 0 if self.rule_.always_positive else len(state.model.sequence) - 1
        return go_on_to(state, last, self.cost_table_)
