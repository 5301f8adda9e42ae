"""`save` and `load` fitted models without executing anything from the file.

A model file is a zip archive: `model.json` describes the objects, `arrays/<n>.npy` hold the arrays
(never pickled), and `manifest.json` the format number, the adacos version and the SHA-256 of every
other member. Objects are rebuilt only from the closed list in `_CLASSES`, attribute by attribute;
a file can therefore hold values, but no behaviour. Floats survive bit for bit.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from adacos import __version__
from adacos.exceptions import InvalidInputError, ModelFileError
from adacos.tables.writing import write_whole

FORMAT = 1

# Every class a model file may hold, by the name written into the file.
_CLASSES = {
    "AdaCOSClassifier": "adacos.policies.adacos",
    "AdaptGbrtClassifier": "adacos.rivals.adapt_gbrt",
    "AdditiveBasis": "adacos.models.basis",
    "CEGBClassifier": "adacos.rivals.cegb",
    "COSClassifier": "adacos.policies.cos",
    "Codes": "adacos.rivals.codes",
    "ConditionalDensity": "adacos.models.density",
    "CostTable": "adacos.costs",
    "Costs": "adacos.costs",
    "DWSMClassifier": "adacos.rivals.dwsm",
    "DecisionRule": "adacos.engine",
    "DiscreteProblem": "adacos.datasets._discrete",
    "Forest": "adacos.rivals.trees",
    "FullModelClassifier": "adacos.policies.full_model",
    "GaussianImputer": "adacos.tables.imputer",
    "GreedyMiserClassifier": "adacos.rivals.greedy_miser",
    "HiddenStates": "adacos.rivals.pomdp",
    "LinearScores": "adacos.rivals.dwsm",
    "LogisticGAM": "adacos.models.gam",
    "OptimalPolicyClassifier": "adacos.rivals.optimal",
    "OptimalTable": "adacos.rivals.optimal",
    "POMDPClassifier": "adacos.rivals.pomdp",
    "RecallCertificate": "adacos.policies.recall",
    "SequenceModel": "adacos.models.sequence_model",
    "SetSequence": "adacos.models.sequences",
    "Shim2018Classifier": "adacos.rivals.shim2018",
    "TargetRecallClassifier": "adacos.policies.target_recall",
    "TableEncoder": "adacos.tables.encoder",
}
# Training rows that a policy keeps in memory only.
_TRANSIENT = {"_set_fits"}
# What damaged or foreign bytes make zipfile raise.
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    ValueError,
    OverflowError,
    RuntimeError,  # encrypted, or packed in a way that zipfile does not know
)
# zip members carry a date; a fixed one makes equal models equal files.
_DATE = (2020, 1, 1, 0, 0, 0)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, wholly or not at all.

    Parameters
    ----------
    model : estimator
        A fitted model of this library: a policy, a rival, `LogisticGAM` or `GaussianImputer`.
    path : str or path-like
        The file to write; what stands there is replaced once the new file is complete.

    Raises
    ------
    InvalidInputError
        If the model is of another library or not fitted.

    See Also
    --------
    load : Read the file again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from adacos import LogisticGAM, load, load_pima, save
    >>> X, y, *_ = load_pima()
    >>> gam = LogisticGAM(strengths="common").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "gam.adacos"
    ...     save(gam, path)
    ...     again = load(path)
    >>> bool((again.decision_function(X) == gam.decision_function(X)).all())
    True
    """
    if type(model).__name__ not in _CLASSES or not hasattr(model, "get_params"):
        models = [name for name in _CLASSES if name.endswith(("Classifier", "GAM", "Imputer"))]
        raise InvalidInputError(
            "model",
            "must be a model of this library",
            type(model).__name__,
            f"Models that can be saved: {', '.join(sorted(models))}.",
        )
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(model)):
        raise InvalidInputError("model", "must be fitted", "an unfitted model", "Call fit first.")
    arrays: list[np.ndarray[Any, Any]] = []
    members = {"model.json": json.dumps(_describe(model, arrays), allow_nan=False).encode()}
    for number, array in enumerate(arrays):
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        members[f"arrays/{number}.npy"] = buffer.getvalue()
    manifest = {
        "application": "adacos",
        "format": FORMAT,
        "version": __version__,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    members["manifest.json"] = json.dumps(manifest, indent=1).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    write_whole(path, packed.getvalue())


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`, without executing anything from the file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator
        The model, which answers as the one saved does, bit for bit.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, of another kind or of a newer format.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    save : Write such a file.

    Examples
    --------
    >>> from adacos import load
    >>> load("nowhere.adacos")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.adacos'
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except FileNotFoundError:
        raise
    except _UNREADABLE as error:
        raise ModelFileError(
            f"{path} is not a readable adacos model: it is truncated or of another kind ({error})."
        ) from error
    try:
        manifest = json.loads(members.pop("manifest.json"))
        application, number = manifest["application"], manifest["format"]
        digests = manifest["sha256"]
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} is not an adacos model: it has no valid manifest.") from error
    if application != "adacos" or not isinstance(number, int):
        raise ModelFileError(f"{path} is not an adacos model: its manifest is of something else.")
    if number > FORMAT:
        raise ModelFileError(
            f"{path} has format {number}, this version reads up to {FORMAT}. Upgrade adacos."
        )
    found = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    if found != digests:
        raise ModelFileError(f"{path} was altered or damaged: its contents fail their checksums.")
    try:
        model = _rebuild(json.loads(members["model.json"]), members)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} does not describe a model of this version.") from error
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{path} holds no model, but something of another kind.")
    return model


def _describe(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """JSON description of a value; arrays are set aside and referred to by number."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"objects": [_describe(item, arrays) for item in value.tolist()]}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_describe(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_describe(k, arrays), _describe(v, arrays)] for k, v in value.items()]}
    name = type(value).__name__
    if _CLASSES.get(name) != type(value).__module__:
        raise InvalidInputError(
            "model",
            "may hold plain values, arrays and this library's objects only",
            name,
            "Replace the parameter by a plain value.",
        )
    state = {k: v for k, v in vars(value).items() if k not in _TRANSIENT}
    return {"object": name, "state": {k: _describe(v, arrays) for k, v in state.items()}}


def _rebuild(node: Any, members: dict[str, bytes]) -> Any:
    if not isinstance(node, dict):
        return node
    if "object" in node:
        cls = getattr(importlib.import_module(_CLASSES[node["object"]]), node["object"])
        instance = cls.__new__(cls)
        state = {name: _rebuild(item, members) for name, item in node["state"].items()}
        instance.__dict__.update(state)
        return instance
    ((kind, content),) = node.items()
    if kind == "array":
        return np.load(io.BytesIO(members[f"arrays/{int(content)}.npy"]), allow_pickle=False)
    if kind == "float":
        return float(content)
    if kind == "dict":
        return {_rebuild(k, members): _rebuild(v, members) for k, v in content}
    items = [_rebuild(item, members) for item in content]
    if kind == "objects":
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array
    return {"list": list, "tuple": tuple}[kind](items)
