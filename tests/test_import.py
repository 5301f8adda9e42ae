"""`import adacos` is light, and everything it offers is there."""

from __future__ import annotations

import json

import pytest

import adacos
from adacos.registry import DATASETS, POLICIES, resolve
from tests.interpreter import fresh

HEAVY = ["sklearn", "pandas", "polars", "pyarrow", "matplotlib", "torch", "lightgbm", "scipy"]


def test_importing_loads_nothing_heavy() -> None:
    loaded = json.loads(fresh("import sys, json, adacos; print(json.dumps(sorted(sys.modules)))"))
    assert "adacos" in loaded
    assert not set(HEAVY) & {name.partition(".")[0] for name in loaded}


def test_fitting_loads_no_optional_package() -> None:
    code = """
import sys, json, numpy
from adacos import AdaCOSClassifier, Costs
X = numpy.random.default_rng(0).normal(size=(40, 2))
AdaCOSClassifier(Costs([1.0, 2.0]), cv=2).fit(X, X[:, 0] > 0).predict(X)
print(json.dumps(sorted(sys.modules)))
"""
    loaded = {name.partition(".")[0] for name in json.loads(fresh(code))}
    assert not {"matplotlib", "torch", "lightgbm", "polars", "fastapi", "dask"} & loaded


def test_every_public_name_is_there() -> None:
    assert adacos.__version__
    assert len(set(adacos.__all__)) == len(adacos.__all__)
    for name in adacos.__all__:
        assert name in dir(adacos)
        if name not in ("__version__", "STOP"):
            assert getattr(adacos, name).__name__ == name
    names = fresh("from adacos import *; print(sorted(k for k in globals() if k[0] != '_'))")
    for name in adacos.__all__:
        assert name.startswith("_") or f"'{name}'" in names


def test_what_the_registry_brings_is_offered() -> None:
    """Each policy of our own, and each loader of a data set."""
    homes = [p.home for p in POLICIES.values() if not p.rival]
    homes += [source.loader for source in DATASETS.values()]
    for home in homes:
        assert resolve(home) is getattr(adacos, str(home).partition(":")[2])


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AdaCos'"):
        _ = adacos.AdaCos
    with pytest.raises(ImportError):
        from adacos import AdaCos  # noqa: F401


def test_what_a_caller_meets_can_be_imported() -> None:
    """Steps, results and errors are caught or tested for by class."""
    offered = {"Acquire", "Classify", "AcquisitionResult", "InvalidInputError", "acquire"}
    assert offered <= set(adacos.__all__)
