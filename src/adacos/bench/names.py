"""The names under which the paper's own methods stand in its tables and in the registry."""

from __future__ import annotations

ADACOS, ADACOS_FORWARD = "AdaCOS (group lasso)", "AdaCOS (forward)"
COS, COS_FORWARD = "COS (group lasso)", "COS (forward)"
FULL_MODEL = "Full Model"
OWN_METHODS = (ADACOS, COS, FULL_MODEL, ADACOS_FORWARD, COS_FORWARD)
