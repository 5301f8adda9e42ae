"""A fitted policy as one file that decides without Python: tables, an evaluator and a page."""

from adacos.exports.writing import export

__all__ = ["export"]
