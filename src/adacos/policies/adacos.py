"""AdaCOS: acquire along the sequence as long as going on is expected to pay for itself.

At S_i a row stops when F(S_j \\ S_i) >= F(empty) for every j > i, where F(S) is what acquiring S is
expected to lead to plus the cost of S. The expectation is over the log-odds after S_j, normal with
the standard deviation of z, the contribution of S_j \\ S_i to model j, and a mean that keeps the
probability or, as published, that of z (`outlook="paper"`). What S_j leads to is the Bayes risk
there, or what is best from there on (`outlook="dynamic"`, `adacos.models.dynamic`), by default
corrected by what came of going on (`outlook="realised"`, `adacos.models.realised`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adacos.costs import Costs, CostTable
from adacos.engine import STOP, Decision, Rows
from adacos.kernels.bayes_risk import bayes_risk
from adacos.kernels.class_risk import class_bayes_risk, probabilities
from adacos.kernels.namespace import is_tensor, namespace
from adacos.models.class_outlook import ClassOutlook, look_ahead_classes
from adacos.models.class_values import class_values
from adacos.models.dynamic import FINE, Accuracy, stage_values
from adacos.models.forecasts import FORECASTS
from adacos.models.outlook import (
    Outlook,
    WalkState,
    advance,
    begin,
    log_odds_now,
    look_ahead,
)
from adacos.policies.one_set import go_on_to
from adacos.policies.rounds import Walks, advance_groups, ordered, together
from adacos.policies.sequence_policy import SequencePolicy
from adacos.validation import Constraints, one_of

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


# Rows × sets up to which all future costs are evaluated together.
_FEW_CELLS = 256


# The outlooks that count the freedom to stop at any later set, the second as rows left out show.
FREE = DYNAMIC, REALISED = "dynamic", "realised"


class AdaCOSClassifier(SequencePolicy):
    """Adaptive acquisition: each row is asked as long as some later set is expected to pay.

    Covariates are ordered once; the values seen decide, row by row, when to stop. At a set the row
    stops when no later set is expected to save more misclassification cost than it costs.

    Parameters
    ----------
    costs : Costs, default=None
        Covariate and misclassification costs, of more than two classes as a matrix. None makes
        every covariate free and every error cost 1.
    outlook : {"realised", "dynamic", "coherent", "paper"}, default="realised"
        How what comes after an acquisition is foreseen. "coherent": the probability expected then
        is the probability now, so that information is never expected to do harm. "dynamic":
        likewise, and what going on is worth counts that one may stop at any later set as the values
        turn out, by dynamic programming along the sequence. "realised": likewise, corrected where
        going on has cost training rows, left out of the models, more or less than that by more
        than chance would explain. Of more than two classes both are the same as "coherent", and
        where waiting costs something "realised" is "dynamic". "paper": by the regression alone, as
        published.
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
        What a row may pay for covariates at most; None for any amount. Panels count, and sets
        beyond it are not weighed. Covariates that can be paid together are asked first.
    mean_budget : float, default=None
        What rows may pay for covariates on average. Covariate costs then count 1 + `multiplier_`
        times, so that training rows left out of the models keep it.
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
    multiplier_ : float
        By how much more than once covariate costs count, for a mean budget; 0 where it does not
        bind.
    mean_spent_ : float
        With a mean budget, what training rows left out of the models pay on average.
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
    COSClassifier : One set for every row.
    FullModelClassifier : Every covariate for every row.
    TargetRecallClassifier : A target recall for any other policy.

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

    constraints: ClassVar[Constraints] = {
        **SequencePolicy.constraints,
        "outlook": one_of(*FORECASTS),
    }

    def __init__(
        self,
        costs: Costs | None = None,
        *,
        outlook: str = "realised",
        sequence: str = "group_lasso",
        n_splines: int = 10,
        strengths: str = "auto",
        cv: Any = 10,
        random_state: int = 0,
        budget: float | None = None,
        mean_budget: float | None = None,
        target_recall: float | Mapping[Any, float] | None = None,
        recall_confidence: float | None = None,
        calibration_fraction: float = 0.5,
        on_uncertifiable: str = "error",
        n_jobs: int | None = None,
        verbose: int = 0,
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
            target_recall=target_recall,
            recall_confidence=recall_confidence,
            calibration_fraction=calibration_fraction,
            on_uncertifiable=on_uncertifiable,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.outlook = outlook

    @property
    def _walks_tensors(self) -> bool:
        return super()._walks_tensors and self.outlook in FREE

    def _begin(self, rows: Rows) -> Any:
        state = begin(self.model_, rows.encoded, rows.available, rows.have, rows.known)
        n_rows = len(rows.encoded)
        if self.cost_table_.immediate is None or n_rows == 1:
            return state
        return Walks(n_rows, ((np.arange(n_rows), state),))

    def _left_out(self, state: Any, rows: Ints) -> Any:
        judge = super()._left_out
        if not isinstance(state, Walks):
            return judge(state, rows)
        groups = tuple((own, judge(walk, rows[own])) for own, walk in state.groups)
        return state._replace(groups=groups)

    def _advance(self, state: Any, going: Bools, covariates: Ints) -> Any:
        if isinstance(state, Walks):
            return advance_groups(state, going, covariates)
        return advance(state, going, int((covariates[0] != STOP).sum()))

    def _decide(self, state: Any) -> Decision:
        if isinstance(state, Walks):
            groups = [(rows, self._decide_together(walk)) for rows, walk in state.groups]
            return together(groups, state.n_rows)
        if self.cost_table_.immediate is not None:
            return self._decide_together(state)
        if self.rule_.always_positive:
            return go_on_to(state, 0, self.cost_table_)
        shown = self.cost_table_ if self.outlook == REALISED else None
        go_on, outlook = weigh(
            state, self.weighed_costs, self.rule_.matrix, self.outlook, realised=shown
        )
        upcoming = state.upcoming[0] if len(state.upcoming) else STOP
        covariates = namespace(go_on).where(go_on, int(upcoming), STOP)
        return Decision(covariates, outlook.log_odds, state.original_stage, outlook)

    def _decide_together(self, state: WalkState) -> Decision:
        """What rows at one set order, where waiting costs something.

        Whether a batch is to be ordered at once depends on what may be ordered after it: whatever
        the outlook, that is counted.
        """
        if self.rule_.always_positive:
            return go_on_to(state, 0, self.cost_table_)
        costs, matrix = self.weighed_costs, self.rule_.matrix
        go_on: Bools
        outlook: Outlook | ClassOutlook
        if state.model.many_classes:
            go_on, outlook = _weigh_batches(state, look_ahead_classes(state, costs), costs, matrix)
        else:
            go_on, outlook = _weigh_freely(state, look_ahead(state, costs), costs, matrix)
        batch = ordered(state, go_on, outlook, self.cost_table_)
        return Decision(batch, outlook.log_odds, state.original_stage, outlook)


def weigh(
    state: WalkState,
    costs: CostTable,
    matrix: Floats,
    outlook: str,
    accuracy: Accuracy = FINE,
    *,
    realised: CostTable | None = None,
) -> tuple[Bools, Outlook | ClassOutlook]:
    """Whether each row goes on, and what that was decided by.

    A row goes on if the future cost of some later set is below the Bayes risk now. For a few rows
    all future costs are evaluated, and come back with the outlook. `accuracy` is that of dynamic
    programming, `realised` the costs at which rows left out correct it.
    """
    if state.model.many_classes:
        return _weigh_classes(look_ahead_classes(state, costs, FORECASTS[outlook]), matrix)
    forecast, free = FORECASTS[outlook], outlook in FREE
    if free and not _shows_plans(state, costs) and state.left is None:
        now, nothing = log_odds_now(state), state.part[:, :0]
        pays = namespace(now).zeros_like(now, dtype=namespace(now).bool)
        if len(state.upcoming):
            values = stage_values(state.model, costs, matrix, accuracy=accuracy, realised=realised)
            pays = values.gain_at(state.stage, now) > 0
        return pays, Outlook(now, nothing, nothing, nothing, forecast)
    ahead = look_ahead(state, costs, forecast)
    if free:
        return _weigh_freely(state, ahead, costs, matrix, accuracy, realised=realised)
    if ahead.mean.size > _FEW_CELLS:
        return ahead.some_pays(matrix), ahead
    risk = bayes_risk(ahead.log_odds, matrix)
    every = slice(0, ahead.mean.shape[1])
    future = ahead.cost + ahead.expected_risk(np.arange(len(risk)), every, matrix)
    gain = np.asarray((future < risk[:, None]).any(axis=1))
    return gain, ahead._replace(future=future)


def _weigh_classes(ahead: ClassOutlook, matrix: Floats) -> tuple[Bools, ClassOutlook]:
    """The same of more than two classes; of a single row all future costs come back."""
    if len(ahead.log_odds) > 1:
        return ahead.some_pays(matrix), ahead
    ahead = ahead.weighed(matrix)
    assert ahead.future is not None
    risk = class_bayes_risk(ahead.log_odds, matrix)
    return np.asarray((ahead.future < risk[:, None]).any(axis=1)), ahead


def _weigh_batches(
    state: WalkState, ahead: ClassOutlook, costs: CostTable, matrix: Floats
) -> tuple[Bools, ClassOutlook]:
    """The same of more than two classes, where one may order more after a batch."""
    ahead = ahead.weighed(matrix)
    assert ahead.future is not None
    future = ahead.future
    if future.shape[1]:
        values = class_values(state.model, costs, matrix)
        future = future + values.after_batch(state.stage, ahead.log_odds)
        # At least what is paid and what right answers cost, wherever it was interpolated.
        right = probabilities(ahead.log_odds) @ np.diag(matrix)
        future = np.maximum(future, ahead.cost + right[:, None])
    risk = class_bayes_risk(ahead.log_odds, matrix)
    go_on = np.asarray((future < risk[:, None]).any(axis=1))
    return go_on, ahead._replace(future=future)


def _shows_plans(state: WalkState, costs: CostTable) -> bool:
    """Whether the cost of each later set matters by itself.

    Of a single row the plans are shown; many rows that lack nothing, and tensors, need no more than
    their gain.
    """
    one = len(state.part) == 1 and not is_tensor(state.part)
    return one or state.available is not None or costs.immediate is not None


def _weigh_freely(
    state: WalkState,
    ahead: Outlook,
    costs: CostTable,
    matrix: Floats,
    accuracy: Accuracy = FINE,
    *,
    realised: CostTable | None = None,
) -> tuple[Bools, Outlook]:
    """The same where one may stop at any later set that can be paid.

    What going on did for rows left out says nothing of rows that cannot go on as they did.
    """
    plans, now = _shows_plans(state, costs), ahead.log_odds
    go_on, shown = np.zeros(len(now), dtype=np.bool_), np.zeros(len(now))
    future = np.full(ahead.mean.shape, np.inf)
    within = np.broadcast_to(np.isfinite(ahead.cost).sum(axis=1), len(now))
    for count in np.unique(within[within > 0]).tolist():
        rows, sets = np.flatnonzero(within == count), slice(0, count)
        values = stage_values(
            state.model, costs, matrix, state.stage + count, accuracy, realised=realised
        )
        if state.available is None:
            go_on[rows] = values.gain_at(state.stage, now[rows]) > 0
        if plans:
            sd = ahead.sd[rows, sets]
            if state.available is None:
                sd = np.broadcast_to(values.sd[state.stage], sd.shape)
            price = np.broadcast_to(ahead.cost, future.shape)[rows, sets]
            shown[rows] = values.shown_at(state.stage, now[rows])
            if state.available is not None:
                like_them = state.available[np.ix_(rows, state.upcoming[sets])].all(axis=1)
                shown[rows[~like_them]] = 0.0
            after = values.after(now[rows, None], sd, state.stage, matrix)
            future[rows, sets] = price + after - shown[rows, None]
    if state.available is not None:
        go_on = np.asarray(future.min(axis=1, initial=np.inf) < bayes_risk(now, matrix))
    return go_on, ahead._replace(future=future, shown=shown) if plans else ahead
