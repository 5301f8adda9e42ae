"""What each target recall would cost, to choose one of them: a table and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adacos.costs import Costs
from adacos.deciders.mixing import run_mixed
from adacos.exceptions import MissingExtraError
from adacos.kernels.threads import one_blas_thread
from adacos.metrics import operation_costs
from adacos.policies.certificate import RecallCertificate
from adacos.policies.recall import RecallAim, percent

if TYPE_CHECKING:
    from adacos.policies.target_recall import TargetRecallClassifier


@dataclass(frozen=True)
class RecallChoice:
    """What one target recall costs.

    Parameters
    ----------
    certificate : RecallCertificate
        Of that recall, or of answering positive for every row where it is out of reach.
    cost : float
        Mean operation cost.
    cost_error : float
        Its standard error.
    """

    certificate: RecallCertificate
    cost: float
    cost_error: float


@one_blas_thread
def recall_choices(
    policy: TargetRecallClassifier,
    X: Any,
    y: ArrayLike,
    recalls: Sequence[float],
    confidence: float = 0.9,
    groups: Any = None,
) -> list[RecallChoice]:
    """Mean operation cost of a fitted policy at several certified recalls, to choose one of them.

    A recall chosen by looking at these rows must be certified on others: `calibrate` on the same
    rows promises too much. To use them all the same, call both with the confidence
    1 - (1 - wanted) / len(recalls).

    Parameters
    ----------
    policy : TargetRecallClassifier
        A fitted policy.
    X : table of shape (n_samples, n_features)
        Rows that took part in nothing before.
    y : array-like of shape (n_samples,)
        Their classes.
    recalls : sequence of float
        Target recalls to try.
    confidence : float, default=0.9
        Of each certificate.
    groups : array-like of shape (n_samples,), default=None
        The group of each row, see `TargetRecallClassifier.calibrate`.

    Returns
    -------
    list of RecallChoice
        One for each recall.

    See Also
    --------
    plot_recall_choices : Draw them.
    """
    choices, encoded = [], policy._encode(X)
    for recall in recalls:
        aim = RecallAim(recall, "stop", confidence, on_uncertifiable="always_positive")
        reached = policy._certified(X, y, aim, groups=groups)
        result = run_mixed(policy.decider_.with_rule(reached.rule), encoded)
        labelled = replace(result, label=policy.classes_[result.label])
        costs = operation_costs(labelled, y, policy.costs or Costs())
        error = float(costs.std(ddof=1) / np.sqrt(len(costs)))
        choices.append(RecallChoice(reached.certificate, float(costs.mean()), error))
    return choices


def plot_recall_choices(choices: Sequence[RecallChoice]) -> Any:
    """Draw the mean operation cost against the certified recall (extra `plot`).

    Parameters
    ----------
    choices : sequence of RecallChoice
        What `recall_choices` gave.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    figure = Figure(figsize=(6.2, 4.0), layout="constrained")
    axes = figure.subplots()
    groups = {
        "certified": [c for c in choices if not c.certificate.always_positive],
        "not certifiable: every row answered positive": [
            c for c in choices if c.certificate.always_positive
        ],
    }
    for (label, members), color, face in zip(
        groups.items(), ("#0072B2", "#D55E00"), ("#0072B2", "white"), strict=True
    ):
        if members:
            axes.errorbar(
                [100 * c.certificate.recall for c in members],
                [c.cost for c in members],
                yerr=[c.cost_error for c in members],
                color=color,
                marker="o",
                markerfacecolor=face,
                linestyle="-" if face == color else "none",
                capsize=3,
                label=label,
            )
    certificate = choices[0].certificate
    axes.set_xlabel(
        f"certified recall in %, at {percent(certificate.confidence)} confidence "
        f"({certificate.n_positives} positives)"
    )
    axes.set_ylabel("mean operation cost per row ± standard error")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    return figure
