"""The policies and the data sets there are: one table of each, read by everything else.

Persistence, the command line, the harness, figures and tests take their lists from here. A policy
of one's own, or a data set, is its own file and one call:

    register_policy("mine", MyClassifier, title="Mine")
    register_dataset("clinic", load_clinic, title="Our clinic")

Classes and loaders are named by module, so that the tables load nothing heavy; a class or a
function itself serves as well. How a row is tested is the same for all data sets: `paper_folds`.
"""

from adacos.registry import rows as _rows  # noqa: F401  (fills the tables)
from adacos.registry.tables import (
    DATASETS,
    ESTIMATORS,
    METHODS,
    POLICIES,
    Method,
    Policy,
    Source,
    Variant,
    forgetting,
    register_dataset,
    register_method,
    register_policy,
    resolve,
    saved_classes,
)

__all__ = [
    "DATASETS",
    "ESTIMATORS",
    "METHODS",
    "POLICIES",
    "Method",
    "Policy",
    "Source",
    "Variant",
    "forgetting",
    "register_dataset",
    "register_method",
    "register_policy",
    "resolve",
    "saved_classes",
]
