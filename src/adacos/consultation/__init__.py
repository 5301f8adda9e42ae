"""Consultation: rows asked about step by step, by any policy, with the reasons.

Steps and their explanations, the reasons a set sequence can give, and `Consultation` itself.
"""

from adacos.consultation.consultation import Consultation
from adacos.consultation.fingerprint import fingerprint
from adacos.consultation.values import check_value

__all__ = ["Consultation", "check_value", "fingerprint"]
