"""The paper's policies, on one shared `SequenceModel`, and a target recall for any other."""

from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.branching import BranchingClassifier
from adacos.policies.cos import COSClassifier
from adacos.policies.full_model import FullModelClassifier
from adacos.policies.target_recall import TargetRecallClassifier

__all__ = [
    "AdaCOSClassifier",
    "BranchingClassifier",
    "COSClassifier",
    "FullModelClassifier",
    "TargetRecallClassifier",
]
