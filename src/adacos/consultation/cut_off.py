"""The cut-off of a rule: the probability at or above which it gives the positive class."""

from __future__ import annotations

from scipy.special import expit

from adacos.decision import DecisionRule
from adacos.kernels.bayes_risk import decision_threshold


def cut_off_of(rule: DecisionRule) -> float:
    """Give the cut-off of a rule for two classes; 0 if everyone is called positive."""
    if rule.threshold is not None:
        return float(rule.threshold)
    return float(expit(decision_threshold(rule.matrix)))


def percent(share: float) -> str:
    """Write a share in per cent, small ones with two digits."""
    return f"{100 * share:.1f}%" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"
