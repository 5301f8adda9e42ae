"""What every policy can be asked about itself: by the card, the report, commands and the service.

A policy without a capability answers None or False; nothing has to be probed for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adacos.consultation import Consultation
from adacos.consultation.steps import Classify
from adacos.decision import AnyDecider, DecisionRule, Mixture
from adacos.models.shifted import class_shares
from adacos.policies.recalibration import (
    Recalibration,
    refuse,
    refuse_walked,
    without_promises,
)
from adacos.policies.recall import RecallAim
from adacos.policies.restriction import Restriction

if TYPE_CHECKING:
    from adacos.kernels.prior_shift import LogOddsChange
    from adacos.models.sequence_model import SequenceModel
    from adacos.policies.auto import Compared
    from adacos.tables.description import Description
    from adacos.tables.row_digests import RowDigests
    from adacos.typing import Floats, Ints


class PolicyFace:
    """The capabilities of a policy, those of one that has none of them.

    The parameters are those that many policies have, for their docstrings to inherit.

    Parameters
    ----------
    costs : Costs, default=None
        Covariate and misclassification costs, with three or more classes as a matrix. None makes
        every covariate free and every error cost 1.
    budget : float, default=None
        What a row may pay for covariates at most; None for any amount. What it cannot pay counts as
        not available.
    cv : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds.
    verbose : int, default=0
        Whether `fit` prints where it is.
    """

    # Whether there may be more than two classes.
    takes_many_classes: ClassVar[bool] = False
    # Whether there may be other decisions than the classes.
    takes_decisions: ClassVar[bool] = True
    # Whether a table in files is read a piece at a time.
    streams: ClassVar[bool] = False
    # Whether rows stop by the rule that answers them, so that a target recall may take the place of
    # a false-negative cost, see `TargetRecallClassifier`, which says here what it asks for.
    stops_by_rule: ClassVar[bool] = False
    _recall: RecallAim | None = None
    # Whether fitting compares several policies.
    chooses: ClassVar[bool] = False

    # Whether only fits without some of the rows tell what the policy costs.
    needs_nested_fits: ClassVar[bool] = True

    # Why a model file cannot hold it, with the remedy; empty where it can.
    not_saved: ClassVar[str] = ""

    # What a row may pay at most, and on average; a policy that has the parameters stores them.
    budget: float | None = None
    mean_budget: float | None = None
    random_state: int
    # How a set sequence is found; a policy that has one stores it, and which was taken.
    sequence: str | None = None
    sequence_: str | None = None
    decider_: AnyDecider
    consultation: Callable[..., Consultation]
    # What a fit finds if it is asked for; every policy has each of them, None where it was not.
    certificate_: Any = None
    threshold_: float | None = None
    false_negative_cost_: float | None = None
    surcharges_: dict[Any, float] | None = None
    recall_estimate_: Any = None
    mean_spent_: float | None = None
    mean_spent_complete_: float | None = None
    training_rows_: RowDigests | None = None
    cost_estimates_: tuple[Any, ...] | None = None
    # Cost of each training row by fits without it, NaN where there was none, and its label.
    _out_of_fold: tuple[Floats, Floats] | None = None
    misfit_: tuple[Any, ...] | None = None
    misfit_states_: tuple[Any, ...] = ()
    description_: Description | None = None
    # How a policy was recalibrated after it was fitted, and whether outcomes may ask for a slope.
    recalibration_: Recalibration | None = None
    _takes_slope: bool = True
    # What is asked of every row first, and of none.
    restriction_: Restriction | None = None
    choice_: str | None = None
    compared_: tuple[Compared, ...] = ()

    def keep_rows(self, most: int) -> None:
        """Keep what is known of about this many training rows, for a small file.

        Parameters
        ----------
        most : int
            How many.
        """

    def reason(self, money: Callable[[float], str] = "{:.2f}".format) -> str:
        """Say why the policy was chosen; nothing where none was.

        Parameters
        ----------
        money : function, default="{:.2f}".format
            Puts an amount into words.

        Returns
        -------
        str
            The sentences.
        """
        return ""

    def _check_recalibrates(self) -> None:
        """Refuse where there is no set sequence, or where training rows would be needed."""
        inside = vars(self).get("policy_")
        if vars(self).get("prior_") is not None:
            refuse(self, "policy", "must stop by the recall", type(inside).__name__)
        if inside is not None:
            inside._check_recalibrates()
        elif self.sequence_model is None:
            refuse(self, "policy", "must have a set sequence or a plan", "")
        else:
            refuse_walked(self)

    def _training_shares(self) -> Floats:
        """Share of each class among the training rows, by their weights."""
        assert self.sequence_model is not None
        return class_shares(self.sequence_model)

    def _changed(self, change: LogOddsChange) -> Self:
        """A copy with log-odds and weights of rows after a change."""
        moved = without_promises(self)
        moved._change(change)
        return moved

    def _change(self, change: LogOddsChange) -> None:
        """Decide by what was learned after a change from now on."""
        raise NotImplementedError

    @property
    def recall_aim(self) -> RecallAim:
        """What is asked of the recall, in place of a cost or beyond it."""
        return RecallAim()

    @property
    def sequence_model(self) -> SequenceModel | None:
        """Sets, models and densities; None for a policy without a set sequence."""
        return None

    @property
    def resolved_lookahead(self) -> str | None:
        """Model of the log-odds after an acquisition; None for a policy that has none."""
        return None

    @property
    def in_one_order(self) -> bool:
        """Whether every row is asked along the sets of `sequence_model`."""
        return False

    @property
    def has_tree(self) -> bool:
        """Whether what is asked depends on the values, and a tree shows how."""
        return False

    @property
    def held_fixed(self) -> str:
        """What was learned by costs and stays where the policy decides at others, in a sentence."""
        kept = []
        if self.sequence_ is not None:
            by = "the covariate costs" if self.sequence_ == "group_lasso" else "all costs"
            kept.append(f"the order of the covariates, which depends on {by} of the fit")
        kept += ["the branches"] * self.has_tree
        kept += ["the multiplier of the mean budget"] * (self.mean_budget is not None)
        kept += ["the cut-off of the target recall"] * (self.threshold_ is not None)
        kept += ["the surcharges of the target recalls"] * (self.surcharges_ is not None)
        if self.sequence_ is None:
            return (
                "; ".join(["Held fixed: all that was learned, by the costs of the fit", *kept])
                + "."
            )
        return f"Models do not depend on costs. Held fixed: {'; '.join(kept)}."

    @property
    def expected_cost_(self) -> float | None:
        """What a row is expected to cost of which nothing is known; None if it is not weighed."""
        if self.decider_.lists[0].any():
            # What is asked whatever it is worth is not weighed.
            return None
        step = self.consultation().next()
        plan = step.explanation.best_plan
        if isinstance(step, Classify):
            return step.explanation.stop_now
        return None if plan is None else plan.expected_total_cost

    @property
    def multiplier_(self) -> float:
        """By how much more than once covariate costs count, for a mean budget."""
        return self.decider_.multiplier

    @property
    def always_positive_(self) -> bool:
        """Whether every row is answered positive for want of a certificate."""
        return self.rule_.always_positive

    @property
    def mixture_(self) -> Mixture | None:
        """Which rows walk with a lower multiplier, for a mean budget."""
        return self.decider_.terms.mixture

    @property
    def decisions_(self) -> NDArray[Any]:
        """What `predict` may give: the classes, or the decisions of `Costs` that can be best."""
        return self.decider_.decisions

    def numbers_of(self, labels: ArrayLike) -> Ints:
        """Give the numbers of labels that the policy gave.

        Parameters
        ----------
        labels : array-like of shape (n_rows,)
            Labels, each one of `decisions_`.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            Their places among `decisions_`.
        """
        order = np.argsort(self.decisions_, kind="stable")
        return np.asarray(order[np.searchsorted(self.decisions_, labels, sorter=order)])

    @property
    def rule_(self) -> DecisionRule:
        """How log-odds become a label, and the misclassification costs in force."""
        return self.decider_.rule
