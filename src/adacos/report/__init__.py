"""A page about one fitted policy on held-out rows."""

from adacos.report.importances import Importance, covariate_importances
from adacos.report.page import write_report

__all__ = ["Importance", "covariate_importances", "write_report"]
