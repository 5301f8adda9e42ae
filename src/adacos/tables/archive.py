"""Zip archives of named members within limits, read so that no small file can become a large one.

An archive is a few JSON texts and arrays. What a reader may be led to unpack is bounded before
anything is unpacked: only stored and deflated members, limits on how many they are and, by the size
of the file, on their bytes. `pack` keeps to the same limits, so whatever it writes can be read.
"""

from __future__ import annotations

import copy
import io
import json
import os
import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MOST_MEMBERS = 20_000
MOST_TEXT_BYTES = 16 << 20
# Values in a text, counted by the signs before them: each may take 240 bytes of memory.
MOST_VALUES = 500_000
# A file of n bytes may hold _FREE_BYTES + _MOST_RATIO * n bytes.
_FREE_BYTES = 64 << 20
_MOST_RATIO = 100
_MOST_DIRECTORY_BYTES = MOST_MEMBERS * 200
# zip members carry a date; a fixed one makes equal contents equal files.
_DATE = (2020, 1, 1, 0, 0, 0)
# What locates a second, larger end (zip64), then the end: signature, size of the directory, length
# of a comment.
_END = struct.Struct("<4s16x4s8xI4xH")
_ARRAY_KINDS = "biufU"
# What damaged or foreign bytes make zipfile and this module raise.
UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    ValueError,
    OverflowError,
    RuntimeError,  # encrypted, or packed in a way that zipfile does not know
    MemoryError,
)


def pack(members: dict[str, bytes]) -> bytes:
    """The archive as bytes; equal members give equal bytes."""
    texts = [data for name, data in members.items() if _is_text(name)]
    _check_limits(len(members), max(map(len, texts)))
    for text in texts:
        _check_values(text)
    total = sum(map(len, members.values()))
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name, _DATE), data, method)
        if total <= _allowance(len(packed.getvalue())):
            break
    return packed.getvalue()


class Archive:
    """The members of an archive, each read when asked for.

    Whatever is wrong with the file ends in one of the errors in `UNREADABLE`.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - _END.size, 0))
        locator, signature, directory, comment = _END.unpack(file.read(_END.size))
        if signature != b"PK\5\6" or comment or locator == b"PK\6\7":
            raise zipfile.BadZipFile("the end of the archive is not as adacos writes it")
        # zipfile reads the whole directory at once: its size is looked at before.
        if directory > _MOST_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"its directory holds {directory:,} bytes")
        self._archive = zipfile.ZipFile(file)
        members = self._archive.infolist()
        self.names = [member.filename for member in members]
        if len(set(self.names)) < len(members):
            raise zipfile.BadZipFile("a name is there twice")
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
            raise zipfile.BadZipFile("members must be stored or deflated")
        texts = [member.file_size for member in members if _is_text(member.filename)]
        _check_limits(len(members), max(texts, default=0))
        total = sum(member.file_size for member in members)
        if total > _allowance(size):
            raise zipfile.BadZipFile(f"{total:,} bytes are packed into {size:,}")

    def read(self, name: str) -> bytes:
        """One member, which must be as long as the directory says: a stream that continues is not
        followed."""
        member = copy.copy(self._archive.getinfo(name))
        length = member.file_size
        # zipfile hands over no more than this, and then looks neither at the rest nor at its sum.
        member.file_size += 1
        with self._archive.open(member) as stream:
            data = stream.read(length + 1)
        if len(data) != length:
            raise zipfile.BadZipFile(f"{name} is not of the {length:,} bytes that are declared")
        return data


def values_of(text: bytes) -> Any:
    """The values of a JSON text, if they are few enough to make room for."""
    _check_values(text)
    return json.loads(text)


def array_bytes(array: NDArray[Any]) -> bytes:
    """An array as a member."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def array_from(data: bytes) -> NDArray[Any]:
    """The array of a member; its header must say how many bytes follow before room is made."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = read[version](file)
    count = 1
    for length in shape:
        count *= length
    if (
        dtype.kind not in _ARRAY_KINDS
        or dtype.itemsize == 0
        or min(shape, default=0) < 0
        or count * dtype.itemsize != len(data) - file.tell()
    ):
        raise ValueError(f"an array of {dtype} and shape {shape} in {len(data):,} bytes")
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array


def _is_text(name: str) -> bool:
    return name.endswith(".json")


def _allowance(size: int) -> int:
    return _FREE_BYTES + _MOST_RATIO * size


def _check_values(text: bytes) -> None:
    count = sum(map(text.count, (b"[", b"{", b",")))
    if count > MOST_VALUES:
        raise ValueError(f"a text of {count:,} values; at most {MOST_VALUES:,}")


def _check_limits(members: int, text_bytes: int) -> None:
    if members > MOST_MEMBERS or text_bytes > MOST_TEXT_BYTES:
        raise ValueError(
            f"{members:,} members, the longest text {text_bytes:,} bytes; "
            f"at most {MOST_MEMBERS:,} and {MOST_TEXT_BYTES:,}"
        )
