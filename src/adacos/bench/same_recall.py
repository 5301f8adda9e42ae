"""Methods without a target recall, shown at the recall that AdaCOS reached.

This is the paper's way to make them comparable: thresholds learned on validation rows fell short of
the target on test rows. The threshold is set on the test rows themselves, which favours the method;
what it acquires is what it acquires when a false negative costs ten false positives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from adacos.bench.names import ADACOS
from adacos.bench.settings import Setting
from adacos.bench.units import Outcome
from adacos.metrics import recall


def at_same_recall(outcomes: Iterable[Outcome], settings: Iterable[Setting]) -> list[Outcome]:
    """Outcomes in the target-recall settings for methods that have none of their own."""
    listed = list(outcomes)
    targets = [setting for setting in settings if setting.target_recall is not None]
    native = {o.method for o in listed if o.setting.target_recall is not None}
    reached = {
        (o.dataset, o.split, o.fold, o.setting.key): recall(o, o.y)
        for o in listed
        if o.method == ADACOS and o.setting.target_recall is not None
    }
    made = []
    for outcome in listed:
        usable = (
            outcome.method not in native
            and outcome.setting.name == "asymmetric"
            and bool(np.all(np.isfinite(outcome.probability)))
        )
        for setting in targets if usable else ():
            place = outcome.dataset, outcome.split, outcome.fold, setting.key
            same_cost = setting.false_positive == outcome.setting.false_positive
            if same_cost and place in reached:
                made.append(_at_recall(outcome, setting, reached[place]))
    return made


def _at_recall(outcome: Outcome, setting: Setting, least: float) -> Outcome:
    """The same acquisitions, labelled 1 from the highest threshold with at least this recall."""
    positive = np.sort(outcome.probability[outcome.y == 1])[::-1]
    needed = max(1, int(np.ceil(least * len(positive) - 1e-9)))
    label = (outcome.probability >= positive[needed - 1]).astype(np.int64)
    return replace(outcome, setting=setting, label=label)
