"""Files and folders that are whole or absent: an interrupted writing leaves what was there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from adacos.exceptions import InvalidInputError


@contextmanager
def whole_or_absent(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    Whatever interrupts the block, Ctrl-C included, leaves `path` as it was.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidInputError(
            "output", "its folder must exist", str(path), "Create the folder first."
        )
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InvalidInputError(
            "output", "must be a plain file", str(path), "A pipe or device cannot be replaced."
        )
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        _usual_mode(temporary, 0o666)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_new_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that is there: to replace it would be to delete what may be in it."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidInputError(
            "output", "its folder must exist", str(path), "Create the folder first."
        )
    if os.path.lexists(path):
        raise InvalidInputError(
            "output", "must not exist yet", str(path), "Choose another name, or remove it first."
        )


@contextmanager
def whole_folder_or_absent(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place if the block ends without an error."""
    check_new_folder(path)
    path = Path(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        # As an ordinary folder has it: others, such as workers of a cluster, may write into it.
        _usual_mode(temporary, 0o777)
        yield temporary
        os.rename(temporary, path)
    except BaseException:
        # Under another name nobody who still writes finds it, so that it is empty in the end.
        shutil.rmtree(temporary.rename(f"{temporary}.removed"), ignore_errors=True)
        raise


def _usual_mode(path: Path, mode: int) -> None:
    """The permissions that a new file or folder has, in place of a temporary one's."""
    current = os.umask(0)
    os.umask(current)
    os.chmod(path, mode & ~current)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, wholly or not at all."""
    with whole_or_absent(path) as temporary:
        temporary.write_bytes(content)


def refuse_same_file(
    output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]
) -> None:
    """An output must not be one of the files that are read, by whatever path or link."""
    for path in inputs:
        same = os.path.realpath(output) == os.path.realpath(path)
        if same or (
            os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path)
        ):
            raise InvalidInputError(
                "output", "must not be a file that is read", str(output), "Choose another name."
            )
