"""The names that adacos offers, each with its module: the one list of them.

Type checkers read it as it is; `adacos/__init__.py` imports a name from here on first use.
"""

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
from adacos.deciders.sequence import SequenceDecider as SequenceDecider
from adacos.decision import STOP as STOP
from adacos.decision import Decider as Decider
from adacos.decision import Decision as Decision
from adacos.decision import DecisionRule as DecisionRule
from adacos.decision import ObservedDecider as ObservedDecider
from adacos.decision import ObservedState as ObservedState
from adacos.decision import Rows as Rows
from adacos.decision import Terms as Terms
from adacos.engine import AcquisitionResult as AcquisitionResult
from adacos.exceptions import InvalidInputError as InvalidInputError
from adacos.exports import export as export
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
from adacos.policies import ProtocolClassifier as ProtocolClassifier
from adacos.policies import TargetRecallClassifier as TargetRecallClassifier
from adacos.policies.auditing import audit as audit
from adacos.policies.base import BasePolicy as BasePolicy
from adacos.policies.certificate import ClassRecallCertificate as ClassRecallCertificate
from adacos.policies.certificate import RecallCertificate as RecallCertificate
from adacos.policies.comparing import compare as compare
from adacos.policies.costed import CostedClassifier as CostedClassifier
from adacos.policies.partitions import score_partitions as score_partitions
from adacos.policies.recalibration import Recalibration as Recalibration
from adacos.policies.restriction import Restriction as Restriction
from adacos.policies.sensitivity import sensitivity as sensitivity
from adacos.policies.sequence_policy import SequencePolicy as SequencePolicy
from adacos.policies.trade_off import trade_off as trade_off
from adacos.policies.worth import covariate_worth as covariate_worth
from adacos.policies.worth import new_test_worth as new_test_worth
from adacos.policies.written import protocol_of as protocol_of
from adacos.protocols import DecisionProtocol as DecisionProtocol
from adacos.providers import Provider as Provider
from adacos.reasons import Reasons as Reasons
from adacos.report.audit_display import AuditDisplay as AuditDisplay
from adacos.report.display import AcquisitionDisplay as AcquisitionDisplay
from adacos.report.display import CostCurveDisplay as CostCurveDisplay
from adacos.report.display import TradeOffDisplay as TradeOffDisplay
from adacos.report.tree_display import TreeDisplay as TreeDisplay
from adacos.tables.description import describe as describe
from adacos.tables.imputer import GaussianImputer as GaussianImputer
from adacos.tables.parquet_table import ParquetTable as ParquetTable
from adacos.tables.weights import prevalence_weights as prevalence_weights

__version__: str
