"""Model files, altered, and what a model says."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from adacos import (
    GaussianImputer,
    LogisticGAM,
)
from tests.policy_checks import FIELDS


def answer(model: Any, X: Any) -> dict[str, Any]:
    """Everything a model says about rows, as arrays."""
    if isinstance(model, GaussianImputer):
        return {"filled": model.transform(X)}
    if isinstance(model, LogisticGAM):
        return {
            "proba": model.predict_proba(X),
            "label": model.predict(X).astype(str),
            "out_of_fold": model.out_of_fold_proba_,
        }
    result = model.acquire(X)
    return {field: getattr(result, field) for field in FIELDS} | {
        "label": result.label.astype(str),
        "names": np.array(result.names),
        "expected": np.array(model.expected_cost_, dtype=float),
    }


def rewritten(source: Path, target: Path, change: Any, *, honest: bool) -> Path:
    """A copy whose members were changed; `honest` copies carry the right checksums."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if honest:
        manifest = json.loads(members["manifest.json"])
        manifest["sha256"] = {
            name: hashlib.sha256(data).hexdigest()
            for name, data in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


def manifest(text: bytes) -> Any:
    return lambda members: members.update({"manifest.json": text})
