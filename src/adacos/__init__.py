"""adacos: which covariate to acquire next, and when to stop and classify.

Names are imported on first use, so that `import adacos` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from adacos.registry import public_names

__version__ = "0.1.0"

_HOME = {
    **public_names(),
    "Acquire": "adacos.consultation.steps",
    "AcquisitionDisplay": "adacos.report.display",
    "AcquisitionResult": "adacos.engine",
    "BasePolicy": "adacos.policies.base",
    "ClassRecallCertificate": "adacos.policies.class_certifying",
    "Classify": "adacos.consultation.steps",
    "Consultation": "adacos.consultation",
    "CostCurveDisplay": "adacos.report.display",
    "CostedClassifier": "adacos.policies.costed",
    "Costs": "adacos.costs",
    "Decider": "adacos.decision",
    "Decision": "adacos.decision",
    "InvalidInputError": "adacos.exceptions",
    "NextSteps": "adacos.consultation.next_steps",
    "ObservedDecider": "adacos.decision",
    "ObservedState": "adacos.decision",
    "ParquetTable": "adacos.tables.parquet_table",
    "Provider": "adacos.providers",
    "RecallCertificate": "adacos.policies.recall",
    "STOP": "adacos.decision",
    "Terms": "adacos.decision",
    "TradeOffDisplay": "adacos.report.display",
    "acquire": "adacos.pipelines",
    "describe": "adacos.tables.description",
    "load": "adacos.persistence",
    "paper_folds": "adacos.datasets",
    "save": "adacos.persistence",
    "score_partitions": "adacos.policies.partitions",
    "trade_off": "adacos.policies.trade_off",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from adacos.consultation import Consultation as Consultation
    from adacos.consultation.next_steps import NextSteps as NextSteps
    from adacos.consultation.steps import Acquire as Acquire
    from adacos.consultation.steps import Classify as Classify
    from adacos.costs import Costs as Costs
    from adacos.datasets import load_heart as load_heart
    from adacos.datasets import load_physionet2012 as load_physionet2012
    from adacos.datasets import load_pima as load_pima
    from adacos.datasets import load_wisconsin as load_wisconsin
    from adacos.datasets import paper_folds as paper_folds
    from adacos.decision import STOP as STOP
    from adacos.decision import Decider as Decider
    from adacos.decision import Decision as Decision
    from adacos.decision import ObservedDecider as ObservedDecider
    from adacos.decision import ObservedState as ObservedState
    from adacos.decision import Terms as Terms
    from adacos.engine import AcquisitionResult as AcquisitionResult
    from adacos.exceptions import InvalidInputError as InvalidInputError
    from adacos.models.gam import LogisticGAM as LogisticGAM
    from adacos.persistence import load as load
    from adacos.persistence import save as save
    from adacos.pipelines import acquire as acquire
    from adacos.policies import AdaCOSClassifier as AdaCOSClassifier
    from adacos.policies import AutoPolicyClassifier as AutoPolicyClassifier
    from adacos.policies import BranchingClassifier as BranchingClassifier
    from adacos.policies import COSClassifier as COSClassifier
    from adacos.policies import FullModelClassifier as FullModelClassifier
    from adacos.policies import PlanningClassifier as PlanningClassifier
    from adacos.policies import TargetRecallClassifier as TargetRecallClassifier
    from adacos.policies.base import BasePolicy as BasePolicy
    from adacos.policies.class_certifying import ClassRecallCertificate as ClassRecallCertificate
    from adacos.policies.costed import CostedClassifier as CostedClassifier
    from adacos.policies.partitions import score_partitions as score_partitions
    from adacos.policies.recall import RecallCertificate as RecallCertificate
    from adacos.policies.trade_off import trade_off as trade_off
    from adacos.providers import Provider as Provider
    from adacos.report.display import AcquisitionDisplay as AcquisitionDisplay
    from adacos.report.display import CostCurveDisplay as CostCurveDisplay
    from adacos.report.display import TradeOffDisplay as TradeOffDisplay
    from adacos.tables.description import describe as describe
    from adacos.tables.imputer import GaussianImputer as GaussianImputer
    from adacos.tables.parquet_table import ParquetTable as ParquetTable


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'adacos' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
