"""`save` and `load` fitted models without executing anything from the file.

A model file is a zip archive: `model.json` describes the objects, `arrays/<n>.npy` hold the arrays
(never pickled), and `manifest.json` the format number, the adacos version and the SHA-256 of every
other member. Objects are rebuilt field by field, and only of classes that the registry names or
that the fields of one of these are of, see `adacos.model_fields`; a file can therefore hold values,
but no behaviour. Floats survive bit for bit. Files of older formats are read too.

The checksums inside protect against accident only: who can write the file can write them too.
Against a file that was exchanged, `load(path, sha256=...)` compares the whole file with a digest
that was kept elsewhere. What a file may make `load` unpack is bounded (`adacos.tables.archive`),
its objects must have the fields of their classes, each of its type, columns, classes and costs must
fit each other, the model must answer before it is handed over, and it must decide as the one that
was saved, and state the same: the manifest holds the digest of its decider and that of what the
card states, each with the number of the way it was made.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adacos import __version__
from adacos.card import model_card
from adacos.decision import DIGEST_SCHEME
from adacos.exceptions import InvalidInputError, MissingExtraError, ModelFileError
from adacos.model_fields import (
    STATEMENT_SCHEME,
    check_state,
    made_of,
    state_of,
    statements,
    stored_by,
    upgraded,
)
from adacos.registry import resolve, saved_classes
from adacos.tables.archive import (
    UNREADABLE,
    Archive,
    array_bytes,
    array_from,
    pack,
    values_of,
)
from adacos.tables.columns import ColumnTable
from adacos.tables.writing import write_whole
from adacos.validation import listed, near_file

FORMAT = 4

# A consultation that tries a model out asks for the next step about so often.
_STEPS_TRIED = 20
_ROWS_TRIED = 20
# What a value by itself may hold.
_NOTHING: Mapping[str, type] = {}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, wholly or not at all.

    Parameters
    ----------
    model : estimator
        A fitted model of this library: a policy, a baseline, `LogisticGAM` or `GaussianImputer`.
    path : str or path-like
        The file to write; what is there is replaced once the new file is complete.

    Raises
    ------
    InvalidInputError
        If the model is of another library or not fitted, or if parameters were changed since by
        which the file would decide otherwise.

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
    if _known_class(type(model).__name__, _NOTHING)[0] is not type(model):
        raise InvalidInputError(
            "model",
            "must be a model of this library",
            type(model).__name__,
            _not_saved(model) or "Fitted policies, LogisticGAM and GaussianImputer can be saved.",
        )
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(model)):
        raise InvalidInputError("model", "must be fitted", "an unfitted model", "Call fit first.")
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(path))
    if changed := getattr(model, "changed_parameters", []):
        raise _other_parameters(model, listed(changed))
    model = getattr(model, "as_fitted", model)
    arrays: list[np.ndarray[Any, Any]] = []
    members = {"model.json": json.dumps(_describe(model, arrays), allow_nan=False).encode()}
    members |= {f"arrays/{number}.npy": array_bytes(array) for number, array in enumerate(arrays)}
    manifest = {
        "application": "adacos",
        "format": FORMAT,
        "version": __version__,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    if hasattr(model, "decider_"):
        manifest["decisions"] = {"scheme": DIGEST_SCHEME, "digest": _decisions(model)}
        manifest["statements"] = {"scheme": STATEMENT_SCHEME, "digest": statements(model)}
    members["manifest.json"] = json.dumps(manifest, indent=1).encode()
    write_whole(path, pack(members))


def load(path: str | os.PathLike[str], *, sha256: str | None = None) -> Any:
    """Read a model written by `save`, without executing anything from the file.

    Parameters
    ----------
    path : str or path-like
        The file.
    sha256 : str, default=None
        Digest of the whole file as hexadecimal digits, if it is known from elsewhere: a file with
        another one is refused.

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
    if not os.path.exists(path):
        near = near_file(Path(path)).rstrip()
        text = os.strerror(errno.ENOENT) + (f". {near}" if near else "")
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(path))
    if not os.path.isfile(path):
        raise ModelFileError(f"{path} is not a readable adacos model: it is not a plain file.")
    with open(path, "rb") as file:
        if sha256 is not None:
            _check_digest(file, path, sha256)
        members, said = _members(file, path)
    try:
        model = _Reader(members, said.format).value(values_of(members.pop("model.json")))
        if members:
            raise ValueError(f"arrays that nothing refers to: {sorted(members)[:3]}")
        if not hasattr(model, "get_params"):
            raise ModelFileError(f"{path} holds no model, but something of another kind.")
        _try_out(model)
        if said.decisions is not None and model.decider_.digest != said.decisions:
            raise ModelFileError(
                f"{path} was altered or damaged: the model in it decides otherwise than the one "
                "that was saved."
            )
        if said.statements is not None and statements(model) != said.statements:
            raise ModelFileError(
                f"{path} was altered or damaged: the model in it states other costs, recalls or "
                "words than the one that was saved."
            )
    except ModelFileError:
        raise
    except _UnknownPartError as error:
        raise ModelFileError(
            f"{path} holds a {str(error)[:80]!r}, which adacos {__version__} does not know; it was "
            f"written by adacos {said.version}, perhaps a newer state of it. Upgrade adacos, or "
            "fit the model again with this one. A policy of your own has to be registered: import "
            "the module that calls register_policy before load."
        ) from error
    except Exception as error:
        # A file may hold any values, and so lead any part of the library into any error.
        raise ModelFileError(
            f"{path} does not describe a model of this version ({type(error).__name__}: "
            f"{str(error)[:200]})."
            + f" It was written by adacos {said.version!r}."
            * (said.version != __version__)
        ) from error
    return model


def _decisions(model: Any) -> str:
    """Digest of the decider of a model, which must be the one that its fields give."""
    digest: str = model.decider_.digest
    try:
        again = made_of(type(model), state_of(model)).decider_.digest
    except ValueError as error:
        again = str(error)
    if again != digest:
        raise _other_parameters(model, type(model).__name__)
    return digest


def _other_parameters(model: Any, received: str) -> InvalidInputError:
    """That a model no longer has the parameters of its fit."""
    return InvalidInputError(
        "model",
        "must have the parameters that it was fitted with: a file would decide otherwise, or say "
        "so",
        received,
        "Call fit again, or set costs, budgets and the others back to what they were.",
    )


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a model file, as `load` compares it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_digest(file: BufferedReader, path: str | os.PathLike[str], expected: str) -> None:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected.strip().lower():
        raise ModelFileError(f"{path} is not the file that was expected: its SHA-256 is {digest}.")


class _Manifest(NamedTuple):
    """What a manifest says.

    Attributes
    ----------
    format : number of the format.
    version : version of adacos that wrote the file.
    sha256 : digest of each other member.
    decisions, statements : digests of the decider, and of what the card states; None where there is
        none that can be compared.
    """

    format: int
    version: str
    sha256: dict[str, str]
    decisions: str | None
    statements: str | None


def _manifest(archive: Archive, path: str | os.PathLike[str]) -> _Manifest:
    """The manifest of a file that this version reads."""
    try:
        text = values_of(archive.read("manifest.json"))
        application, number = text["application"], text["format"]
        digests, version = dict(text["sha256"]), str(text["version"])[:40]
        compared = []
        for name, scheme in (("decisions", DIGEST_SCHEME), ("statements", STATEMENT_SCHEME)):
            said = text.get(name) or {}
            alike = type(number) is int and number >= 2 and said.get("scheme") == scheme
            compared.append(said.get("digest") if alike else None)
    except (*UNREADABLE, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not an adacos model: it has no valid manifest.") from error
    if application != "adacos" or type(number) is not int:
        raise ModelFileError(f"{path} is not an adacos model: its manifest is of something else.")
    if number > FORMAT:
        raise ModelFileError(
            f"{path} has format {number}, this version reads up to {FORMAT}. Upgrade adacos."
        )
    return _Manifest(number, version, digests, *compared)


def _members(
    file: BufferedReader, path: str | os.PathLike[str]
) -> tuple[dict[str, bytes], _Manifest]:
    """The checked members of a model file, and what its manifest says."""
    try:
        archive = Archive(file)
    except UNREADABLE as error:
        file.seek(0)
        if not file.read(4).startswith(b"PK"):
            text = f"{path} is not an adacos model; create one with `adacos fit`."
            raise ModelFileError(text) from error
        raise ModelFileError(
            f"{path} is not a readable adacos model: it is truncated or of another kind ({error})."
        ) from error
    manifest = _manifest(archive, path)
    names = [name for name in archive.names if name != "manifest.json"]
    damaged = f"{path} was altered or damaged: its contents fail their checksums."
    if set(names) != set(manifest.sha256):
        raise ModelFileError(damaged)
    members = {}
    for name in names:
        try:
            members[name] = archive.read(name)
        except UNREADABLE as error:
            raise ModelFileError(f"{path} is not a readable adacos model ({error}).") from error
        if hashlib.sha256(members[name]).hexdigest() != manifest.sha256[name]:
            raise ModelFileError(damaged)
    return members, manifest


def _try_out(model: Any) -> None:
    """Let the model answer rows of its own range, with and without missing values, hold a
    consultation and make its card: it must not fail later because an attribute is missing."""
    encoder = getattr(model, "encoder_", None)
    if encoder is None:
        n = model.n_features_in_
        if model.mean_.shape != (n,) or model.covariance_.shape != (n, n):
            raise ValueError("mean and covariance do not fit each other")
        return
    if model.n_features_in_ != len(encoder.names) or len(model.classes_) < 2:
        raise ValueError("covariates or classes do not fit the model")
    rng = np.random.default_rng(0)
    rows: dict[str, np.ndarray[Any, Any]] = {}
    for k, (name, seen) in enumerate(zip(encoder.names, encoder.categories, strict=True)):
        ends = np.array([seen[0], seen[-1]] if seen else [encoder.low[k], encoder.high[k]])
        values = np.resize(ends, _ROWS_TRIED)
        # The first two rows are complete.
        gone = (rng.random(_ROWS_TRIED) < 0.3) & (np.arange(_ROWS_TRIED) > 1)
        rows[name] = np.where(gone, "" if seen else np.nan, values)
    # The additive model alone takes no missing values.
    asks = hasattr(model, "consultation")
    table = ColumnTable(rows) if asks else ColumnTable(rows)[:2]
    try:
        probability = model.predict_proba(table)
        if asks:
            order = getattr(model, "sets_", [encoder.names])[-1]
            known = model.consultation({order[-1]: rows[order[-1]][0].item()})
            if len(model.classes_) == 2:
                # With many classes this takes a second: other rows begin with other sets.
                known.next()
            consultation = model.consultation()
            for number, name in enumerate(order):
                if number % (1 + len(order) // _STEPS_TRIED) == 0:
                    consultation.next()
                consultation.observe({name: rows[name][number % 2].item()})
            model_card(model)
    except MissingExtraError:
        return  # told when the model is used
    if probability.shape != (len(table), len(model.classes_)) or not np.isfinite(probability).all():
        raise ValueError("its probabilities are not finite")


def _not_saved(value: Any) -> str:
    """Why a file cannot hold a policy of this library, or what is around one, with the remedy."""
    held, name, rows = value, "pipeline", "X"
    if hasattr(value, "best_estimator_"):
        held, name = value.best_estimator_, "search.best_estimator_"
    while hasattr(held, "steps"):
        rows = f"{name}[:-1].transform({rows})" if len(held.steps) > 1 else rows
        held, name = held.steps[-1][1], f"{name}[-1]"
    if held is value or _known_class(type(held).__name__, _NOTHING)[0] is not type(held):
        return str(getattr(type(held), "not_saved", ""))
    text = f"Save the policy in it: save({name}, path)."
    return (
        text if rows == "X" else f"{text} It takes rows as the steps before it make them, {rows}."
    )


def _describe(
    value: Any, arrays: list[np.ndarray[Any, Any]], stored: Mapping[str, type] = _NOTHING
) -> Any:
    """JSON description of a value; arrays are stored apart and referred to by number.

    `stored` are the classes of values that the object around it may hold.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"objects": [_describe(item, arrays, stored) for item in value.tolist()]}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_describe(item, arrays, stored) for item in value]}
    if isinstance(value, dict):
        pairs = [[_describe(part, arrays, stored) for part in pair] for pair in value.items()]
        return {"dict": pairs}
    name = type(value).__name__
    cls, stored = _known_class(name, stored)
    if cls is not type(value):
        raise InvalidInputError(
            "model",
            "may hold plain values, arrays and this library's objects only",
            name,
            _not_saved(value) or "Replace the parameter by a plain value.",
        )
    state = {k: _describe(item, arrays, stored) for k, item in state_of(value).items()}
    return {"object": name, "state": state}


class _UnknownPartError(LookupError):
    """A model holds an object of a class that this version does not know."""


def _known_class(name: str, stored: Mapping[str, type]) -> tuple[Any, Mapping[str, type]]:
    """The class that a name means, None for no class at all, and what its objects may hold."""
    home = saved_classes().get(name)
    if home is None:
        return stored.get(name), stored
    cls = resolve(home)
    return cls, stored_by(cls)


@dataclass(frozen=True)
class _Reader:
    """Makes values of their descriptions.

    Attributes
    ----------
    arrays : members that are not used yet.
    format : number of the format that the file has.
    """

    arrays: dict[str, bytes]
    format: int

    def value(self, node: Any, stored: Mapping[str, type] = _NOTHING) -> Any:
        """The value that a description means; each array is used once."""
        if not isinstance(node, dict):
            return node
        if "object" in node:
            return self._object(node["object"], node["state"], stored)
        ((kind, content),) = node.items()
        if kind == "array":
            return array_from(self.arrays.pop(f"arrays/{int(content)}.npy"))
        if kind == "float":
            return float(content)
        if kind == "dict":
            return {self.value(k, stored): self.value(v, stored) for k, v in content}
        items = [self.value(item, stored) for item in content]
        if kind == "objects":
            array = np.empty(len(items), dtype=object)
            array[:] = items
            return array
        return {"list": list, "tuple": tuple}[kind](items)

    def _object(self, name: str, content: Any, stored: Mapping[str, type]) -> Any:
        cls, stored = _known_class(name, stored)
        if cls is None:
            raise _UnknownPartError(name)
        state = {name: self.value(item, stored) for name, item in content.items()}
        if self.format < FORMAT:
            state = upgraded(cls, state, self.format)
        check_state(cls, state)
        return made_of(cls, state)
