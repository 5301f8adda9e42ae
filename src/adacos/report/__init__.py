"""A page about one fitted policy on held-out rows."""

from adacos.report.page import write_report

__all__ = ["write_report"]
