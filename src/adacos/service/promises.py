"""What a model promises of its cases, in plain values that the case log keeps.

They are all that a summary needs of a model, so that the results of one that was replaced are
readable without its file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adacos.consultation import fingerprint
from adacos.policies.base import BasePolicy
from adacos.policies.recall import protecting_of
from adacos.tables.kinds import NUMERIC


@dataclass(frozen=True)
class CertifiedRecall:
    """At least `bound` of the cases of a class get one of some labels; all as positions."""

    of_class: int
    labels: list[int]
    bound: float


@dataclass(frozen=True)
class Promises:
    """What is promised of the cases of one model.

    Attributes
    ----------
    model : fingerprint of the model.
    classes : the classes.
    decisions : the decisions in place of labels; None where there are none.
    costs : cost of each label or decision, in columns, for each class.
    certified : the recalls that a certificate holds.
    covariates : names of the covariates.
    ranges : least and greatest training value of each numeric covariate, by name.
    """

    model: str
    classes: list[Any]
    decisions: list[Any] | None
    costs: list[list[float]]
    certified: list[CertifiedRecall]
    covariates: list[str]
    ranges: dict[str, list[float]]

    @property
    def names(self) -> list[Any]:
        """What labels and outcomes stand for: classes, and decisions if there are any."""
        return self.classes if self.decisions is None else [self.classes, self.decisions]

    def to_json(self) -> str:
        """All of it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Promises:
        """What `to_json` wrote."""
        values = json.loads(text)
        certified = [CertifiedRecall(**each) for each in values.pop("certified")]
        return cls(**values, certified=certified)


def promises_of(policy: BasePolicy) -> Promises:
    """What a fitted policy promises."""
    classes: list[Any] = policy.classes_.tolist()
    named, encoder = policy.cost_table_.decisions is not None, policy.encoder_
    return Promises(
        fingerprint(policy),
        classes,
        policy.decisions_.tolist() if named else None,
        policy.rule_.matrix.tolist(),
        _certified(policy, classes, named=named),
        list(encoder.names),
        {
            name: [float(encoder.low[k]), float(encoder.high[k])]
            for k, name in enumerate(encoder.names)
            if encoder.kinds[k] == NUMERIC
        },
    )


def _certified(policy: BasePolicy, classes: list[Any], *, named: bool) -> list[CertifiedRecall]:
    certificate = policy.certificate_
    if certificate is None:
        return []
    if len(classes) == 2 and not named:
        return [CertifiedRecall(1, [1], float(certificate.bound))]
    protects, found = protecting_of(policy), []
    for name, bound in zip(certificate.classes, certificate.bounds, strict=True):
        number = classes.index(name)
        labels = [number] if protects is None else np.flatnonzero(protects[number]).tolist()
        found.append(CertifiedRecall(number, labels, float(bound)))
    return found
