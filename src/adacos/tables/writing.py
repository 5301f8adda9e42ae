"""Files and folders that are whole or absent: an interrupted writing leaves what was there."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from adacos.exceptions import InvalidInputError

# Ends the names of what is being written; whoever writes holds a lock on it.
_ENDING = ".part"


def check_output(path: str | os.PathLike[str], parameter: str = "output") -> Path:
    """Where a file will be written, its links followed; refused before any work if it cannot be."""
    real = Path(os.path.realpath(path))
    if not real.parent.is_dir():
        raise InvalidInputError(
            parameter, "its folder must exist", str(path), "Create the folder first."
        )
    if real.is_dir():
        raise InvalidInputError(
            parameter, "must be a file", f"the folder {path}", "Add the name of a file in it."
        )
    if real.exists() and not real.is_file():
        raise InvalidInputError(
            parameter, "must be a plain file", str(path), "A pipe or device cannot be replaced."
        )
    if not os.access(real.parent, os.W_OK | os.X_OK):
        raise InvalidInputError(
            parameter, "must be in a folder that can be written", str(path), "Choose another one."
        )
    return real


@contextmanager
def whole_or_absent(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path next to `path` that takes its place when the block ends without an error.

    Whatever interrupts the block, Ctrl-C included, leaves `path` as it was. A file that is there
    keeps its permissions, and a link leads to the new content.
    """
    path = check_output(path)
    handle, temporary = _begun(path, _new_file)
    try:
        yield temporary
        os.fsync(handle)
        if path.exists():
            _same_access(temporary, path)
        else:
            _usual_mode(temporary, 0o666)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


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
    """A temporary folder next to `path` that takes its place if the block ends without an error."""
    check_new_folder(path)
    path = Path(path)
    handle, temporary = _begun(path, tempfile.mkdtemp)
    try:
        # As an ordinary folder has it: others, such as workers of a cluster, may write into it.
        _usual_mode(temporary, 0o777)
        yield temporary
        os.rename(temporary, path)
    except BaseException:
        # Under another name nobody who still writes finds it, so that it is empty in the end.
        shutil.rmtree(temporary.rename(f"{temporary}.removed"), ignore_errors=True)
        raise
    finally:
        os.close(handle)


def _new_file(**names: Any) -> str:
    handle, name = tempfile.mkstemp(**names)
    os.close(handle)
    return str(name)


def _begun(path: Path, make: Callable[..., str]) -> tuple[int, Path]:
    """A new file or folder next to `path`, held by an open handle.

    What a killed process began there, which nobody holds any more, is removed.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????{_ENDING}"):
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _held(handle):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)
    while True:
        temporary = Path(make(prefix=f".{path.name}.", suffix=_ENDING, dir=path.parent))
        handle = os.open(temporary, os.O_RDONLY)
        _held(handle)
        if temporary.exists():  # else another process took it for one that was left
            return handle, temporary
        os.close(handle)


def _held(handle: int) -> bool:
    """Take the lock of an open file or folder; False if another has it, or there are none here."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _same_access(new: Path, old: Path) -> None:
    """Whoever may read and write the old file, and nobody else, may do so with the new one."""
    before = os.stat(old)
    mode = stat.S_IMODE(before.st_mode) & 0o777
    try:
        os.chown(new, before.st_uid, before.st_gid)
    except PermissionError:
        if os.stat(new).st_gid != before.st_gid:
            mode &= ~0o070
    os.chmod(new, mode)


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
