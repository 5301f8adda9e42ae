"""The paper's policies: Full Model, COS and AdaCOS, on one shared `SequenceModel`."""

from adacos.policies.adacos import AdaCOSClassifier
from adacos.policies.cos import COSClassifier
from adacos.policies.full_model import FullModelClassifier

__all__ = ["AdaCOSClassifier", "COSClassifier", "FullModelClassifier"]
