"""Hostile model files: each case changes a good file, checksums and all, or is bytes of its own.

Add a case to `MEMBERS` (a change of the members, after which the checksums are made right again) or
to `ARCHIVES` (bytes made from the good file's). Each must end in a `ModelFileError` that names the
file, in bounded memory; nothing may be loaded that fails later for want of an attribute.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adacos import AdaCOSClassifier, Costs, GaussianImputer, LogisticGAM, load, save
from adacos.exceptions import ModelFileError
from adacos.persistence import file_sha256
from tests.model_files import rewritten
from tests.policies.tables import mixed

MEBIBYTE = 1 << 20
PRICES = {"age": 1.0, "smokes": 1.0, "town": 2.0, "planet": 0.5, "zero": 0.0, "dose": 4.0}
Members = dict[str, bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory: Any) -> Path:
    X, y = mixed(60, 0)
    costs = Costs(PRICES, false_positive=30, false_negative=70)
    path = tmp_path_factory.mktemp("models") / "good.adacos"
    save(AdaCOSClassifier(costs, n_splines=5, cv=2, strengths="common").fit(X, y), path)
    return path


def described(change: Callable[[dict[str, Any]], Any]) -> Callable[[Members], None]:
    """A change of the state of the model."""

    def apply(members: Members) -> None:
        model = json.loads(members["model.json"])
        change(model["state"])
        members["model.json"] = json.dumps(model).encode()

    return apply


def array(data: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, data, **options)
    return buffer.getvalue()


def header(text: str) -> bytes:
    """An array file with this header and no data."""
    content = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content


def first_array(data: bytes) -> Callable[[Members], None]:
    return lambda members: members.update({"arrays/0.npy": data})


def encoder(**changes: Any) -> Callable[[Members], None]:
    return described(lambda state: state["encoder_"]["state"].update(changes))


def basis(**changes: Any) -> Callable[[Members], None]:
    return described(
        lambda state: state["model_"]["state"]["basis"]["state"].update(changes),
    )


def set_state(**changes: Any) -> Callable[[Members], None]:
    return described(lambda state: state.update(changes))


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"

MEMBERS: dict[str, Callable[[Members], Any]] = {
    "no encoder": described(lambda state: state.pop("encoder_")),
    "no classes": described(lambda state: state.pop("classes_")),
    "no parameter": described(lambda state: state.pop("n_splines")),
    "an attribute in place of a method": set_state(predict_proba="no"),
    "an attribute of nobody": set_state(surprise=1),
    "text for the costs": set_state(cost_table_="dear"),
    "one class": set_state(classes_={"list": [0]}),
    "more covariates than columns": set_state(n_features_in_=10**9),
    "a billion splines": basis(n_splines=10**9),
    "splines without number": basis(n_splines=True),
    "twenty thousand categories": encoder(
        categories={"tuple": [{"tuple": [str(k) for k in range(20_000)]}] * 6}
    ),
    "kinds that are none": encoder(kinds={"tuple": ["numeric"] * 5 + ["luck"]}),
    "too few kinds": encoder(kinds={"tuple": ["numeric"]}),
    "names that are numbers": encoder(names={"tuple": [1, 2, 3, 4, 5, 6]}),
    "one array for two": described(
        lambda state: state["encoder_"]["state"].update(low=state["encoder_"]["state"]["high"])
    ),
    "one array a thousand times": set_state(sets_={"list": [{"array": 0}] * 1000}),
    "an array that nobody refers to": lambda m: m.update({"arrays/9999.npy": array([1.0])}),
    "a member beside": lambda members: members.update({"virus.exe": b"MZ"}),
    "an array of a terabyte in its header": first_array(header(HUGE)),
    "an array of nothing, without end": first_array(header(HUGE.replace("<f8", "<U0"))),
    "a negative shape": first_array(header(HUGE.replace("1000000000000", "-1"))),
    "an array of objects": first_array(array(np.array([{}]), allow_pickle=True)),
    "an array of records": first_array(array(np.zeros(2, dtype=[("a", "f8")]))),
    "an array of complex numbers": first_array(array(np.zeros(2, dtype=complex))),
    "an array with code in its header": first_array(header("__import__('os').abort()")),
    "a header without end": first_array(header("(" * 60_000)),
    "a text of numbers": lambda m: m.update({"model.json": b"[" + b"0," * 9_000_000 + b"0]"}),
    "a number of a million digits": lambda m: m.update({"model.json": b"9" * 1_000_000}),
    "nested without end": lambda m: m.update({"model.json": b"[" * 1_000_000}),
    "nested objects": lambda m: m.update(
        {"model.json": b'{"tuple":[' * 5000 + b"1" + b"]}" * 5000}
    ),
    "not UTF-8": lambda members: members.update({"model.json": b'{"list": ["\xff"]}'}),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_changed_members(case: str, good: Path, tmp_path: Path) -> None:
    refused(rewritten(good, tmp_path / "bad.adacos", MEMBERS[case], honest=True))


def refused(path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=path.name) as caught:
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * MEBIBYTE
    assert len(str(caught.value)) < 1000


def packed(members: Members, method: int, more: Callable[[zipfile.ZipFile], Any] | None) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # a name that stands twice
        for name, data in members.items():
            archive.writestr(name, data)
        if more is not None:
            more(archive)
    return buffer.getvalue()


def bomb(archive: zipfile.ZipFile) -> None:
    with archive.open("arrays/bomb.npy", "w", force_zip64=False) as member:
        for _ in range(100):
            member.write(bytes(MEBIBYTE))


def overlong(members: Members) -> bytes:
    """One member's stream goes on with 300 MB of zeros behind its declared length.

    The checksum is that of the declared part.
    """
    name = "arrays/0.npy"
    data = members[name]
    more = data + bytes(300 * MEBIBYTE)
    archive = packed({**members, name: more}, DEFLATED, None)
    for wrong, declared in ((zlib.crc32(more), zlib.crc32(data)), (len(more), len(data))):
        archive = archive.replace(struct.pack("<I", wrong), struct.pack("<I", declared))
    return archive


def many_values(member: str, values: bytes) -> Callable[[Members], bytes]:
    """A short file whose text holds very many values."""

    def build(members: Members) -> bytes:
        text = b"[" + values * (15 * MEBIBYTE // len(values)) + b"0]"
        members = {**members, member: text}
        manifest = json.loads(members["manifest.json"]) if member != "manifest.json" else {}
        if manifest:
            manifest["sha256"][member] = hashlib.sha256(text).hexdigest()
            members["manifest.json"] = json.dumps(manifest).encode()
        return packed(members, DEFLATED, None)

    return build


def many(archive: zipfile.ZipFile) -> None:
    for k in range(21_000):
        archive.writestr(f"arrays/x{k}.npy", b"")


def replaced(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


DEFLATED, LZMA, BZIP2 = zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2

ARCHIVES: dict[str, Callable[[Members], bytes]] = {
    "LZMA": lambda members: packed(members, LZMA, None),
    "bzip2": lambda members: packed(members, BZIP2, None),
    "a bomb of 100 MB": lambda members: packed(members, DEFLATED, bomb),
    "a stream longer than declared": overlong,
    "empty lists in the model": many_values("model.json", b"[],"),
    "short mappings in the model": many_values("model.json", b'{"":1},'),
    "short texts in the manifest": many_values("manifest.json", b'"ab",'),
    "21,000 members": lambda members: packed(members, DEFLATED, many),
    "a name twice": lambda members: packed(
        members, DEFLATED, lambda archive: archive.writestr("model.json", b"{}")
    ),
    "a comment": lambda members: packed(
        members, DEFLATED, lambda archive: setattr(archive, "comment", b"hello")
    ),
    "bytes behind": lambda members: packed(members, DEFLATED, None) + b"behind",
    "a directory of 4 GB": lambda members: replaced(
        (data := packed(members, DEFLATED, None)), len(data) - 10, b"\xff\xff\xff\xff"
    ),
    "a second end": lambda members: replaced(
        (data := packed(members, DEFLATED, lambda a: a.writestr("x" * 90, b""))),
        len(data) - 42,
        b"PK\6\7",
    ),
    "encrypted members": lambda members: encrypted(packed(members, DEFLATED, None)),
    "a deep manifest": lambda members: packed(
        {**members, "manifest.json": b"[" * 500_000}, DEFLATED, None
    ),
    "a manifest of another program": lambda members: packed(
        {**members, "manifest.json": b'{"application": "x", "format": 1, "sha256": {}}'},
        DEFLATED,
        None,
    ),
    "checksums that are none": lambda members: packed(
        {**members, "manifest.json": b'{"application": "adacos", "format": 1, "sha256": 3}'},
        DEFLATED,
        None,
    ),
    "the first half": lambda members: packed(members, DEFLATED, None)[:5000],
    "nothing": lambda members: b"",
    "a pickle": lambda members: b"\x80\x04cos\nsystem\n.",
    "random bytes": lambda members: np.random.default_rng(0).bytes(100_000),
}


def encrypted(data: bytes) -> bytes:
    """The same archive with the flag of encryption set in its directory."""
    content, at = bytearray(data), 0
    while (at := content.find(b"PK\1\2", at)) >= 0:
        content[at + 8] |= 1
        at += 4
    return bytes(content)


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(case: str, good: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    path = tmp_path / "bad.adacos"
    path.write_bytes(ARCHIVES[case](members))
    refused(path)


def test_pipes_and_devices_are_no_models(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(ModelFileError, match="not a plain file"):
            load(path)


def states(node: Any) -> Iterator[dict[str, Any]]:
    """The state of every object in a description."""
    if isinstance(node, dict):
        if "object" in node:
            yield node["state"]
        for item in node.values():
            yield from states(item)
    elif isinstance(node, list):
        for item in node:
            yield from states(item)


def survives(path: Path, X: Any) -> bool:
    """Whether the file is loaded, and then answers."""
    try:
        model = load(path)
    except ModelFileError:
        return False
    assert np.isfinite(model.predict_proba(X)).all()
    model.consultation({"town": "rome"}).unavailable("age").next()
    return True


def test_whatever_is_missing_is_noticed_before_use(good: Path, tmp_path: Path) -> None:
    """Every attribute of every object in turn: without it the file is refused, or not needed."""
    X, _ = mixed(20, 1)
    with zipfile.ZipFile(good) as archive:
        text = archive.read("model.json")
    count = sum(len(state) for state in states(json.loads(text)))
    loaded = 0
    for number in range(0, count, 2):

        def without(members: Members, number: int = number) -> None:
            model = json.loads(text)
            pairs = [(state, name) for state in states(model) for name in state]
            state, name = pairs[number]
            del state[name]
            kept = set(json.dumps(model).split('"array": ')[1:])
            numbers = {int(part.split("}")[0]) for part in kept}
            for member in [m for m in members if m.startswith("arrays/")]:
                if int(member[7:-4]) not in numbers:
                    del members[member]
            members["model.json"] = json.dumps(model).encode()

        loaded += survives(rewritten(good, tmp_path / "m.adacos", without, honest=True), X)
    assert loaded < 0.25 * count / 2


def test_arrays_of_other_shapes_are_noticed_before_use(good: Path, tmp_path: Path) -> None:
    X, _ = mixed(20, 1)
    with zipfile.ZipFile(good) as archive:
        names = [name for name in archive.namelist() if name.startswith("arrays/")]
    changes: list[Callable[[Any], Any]] = [lambda a: a[:-1], lambda a: a[None], lambda a: a[:0]]
    for number, name in enumerate(names):

        def reshaped(members: Members, name: str = name, number: int = number) -> None:
            data = np.load(io.BytesIO(members[name]))
            members[name] = array(changes[number % 3](data) if data.ndim else data[None])

        survives(rewritten(good, tmp_path / "m.adacos", reshaped, honest=True), X)


def test_an_exchanged_file_is_refused_by_its_digest(good: Path, tmp_path: Path) -> None:
    digest = file_sha256(good)
    assert load(good, sha256=digest).n_features_in_ == 6
    assert load(good, sha256=f" {digest.upper()}\n").n_features_in_ == 6
    other = rewritten(good, tmp_path / "other.adacos", lambda members: None, honest=True)
    assert load(other).n_features_in_ == 6
    with pytest.raises(ModelFileError, match=r"other\.adacos is not the file that was expected"):
        load(other, sha256=digest)


def test_files_near_the_limits_are_written_so_that_they_can_be_read(tmp_path: Path) -> None:
    """Eighty megabytes of zeros deflate beyond the ratio that is read: they are stored."""
    imputer = GaussianImputer().fit(np.eye(4))
    imputer.mean_ = np.zeros(3200)
    imputer.covariance_ = np.zeros((3200, 3200))
    imputer.n_features_in_ = 3200
    save(imputer, tmp_path / "zeros.adacos")
    assert (tmp_path / "zeros.adacos").stat().st_size > 64 * MEBIBYTE
    assert load(tmp_path / "zeros.adacos").covariance_.shape == (3200, 3200)


def test_other_models_are_looked_at_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    save(LogisticGAM(cv=2).fit(X, X[:, 0] > 0), tmp_path / "gam.adacos")
    save(GaussianImputer().fit(X), tmp_path / "imputer.adacos")
    cases = {
        "gam.adacos": described(lambda state: state.pop("coef_")),
        "imputer.adacos": described(lambda state: state.update(n_features_in_=10**9)),
    }
    for name, change in cases.items():
        refused(rewritten(tmp_path / name, tmp_path / f"bad-{name}", change, honest=True))
