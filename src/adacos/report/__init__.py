"""A page about one fitted policy on evaluation rows."""

from adacos.report.page import write_report

__all__ = ["write_report"]
