"""The paper's policies on one shared `SequenceModel`, their successors, and a target recall."""

from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.auto import AutoPolicyClassifier
from adacos.policies.branching import BranchingClassifier
from adacos.policies.cos import COSClassifier
from adacos.policies.costed import CostedClassifier
from adacos.policies.full_model import FullModelClassifier
from adacos.policies.planning import PlanningClassifier
from adacos.policies.protocol import ProtocolClassifier
from adacos.policies.target_recall import TargetRecallClassifier

__all__ = [
    "AdaCOSClassifier",
    "AutoPolicyClassifier",
    "BranchingClassifier",
    "COSClassifier",
    "CostedClassifier",
    "FullModelClassifier",
    "PlanningClassifier",
    "ProtocolClassifier",
    "TargetRecallClassifier",
]
