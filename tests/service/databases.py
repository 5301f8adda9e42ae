"""Databases for tests: PostgreSQL as Debian has it, in a folder of its own, on loopback, not as
root; and a file system that is soon full.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

_CONNECTIONS = "select pid from pg_stat_activity where datname like 'cases%' order by pid"


def _programs() -> Path | None:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return None if initdb is None else Path(initdb).resolve().parent


def _free_port() -> int:
    """A free port that no outgoing connection takes while a killed server is away."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port between 20000 and 32000")


class Postgres:
    """A server that can be frozen and thawed, killed and started again."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="adacos-postgres-", dir="/tmp"))
        # The server refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
        self.port = _free_port()
        self._data = self._folder / "data"
        trusted = ("-U", "adacos", "-A", "trust", "-E", "UTF8", "--no-sync")
        self._run("initdb", "-D", self._data, *trusted)
        self._start()

    def _start(self) -> None:
        self._server = subprocess.Popen(
            [
                *(self.programs / "postgres", "-D", self._data, "-p", str(self.port)),
                *("-k", self._folder, "-c", "listen_addresses=127.0.0.1"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=self._user,
            start_new_session=True,
        )
        # After a crash it first writes every file of its folder to a disk that may be busy.
        until = time.monotonic() + 120
        while self._run("pg_isready", "-h", "127.0.0.1", "-p", self.port, check=False):
            assert self._server.poll() is None, "the server ended by itself"
            assert time.monotonic() < until
            time.sleep(0.1)

    def database(self, name: str, folder: Path | None = None) -> str:
        """URL of a new, empty database; its tables in a folder if one is given."""
        inside: tuple[str, ...] = ()
        if folder is not None:
            if self._user is not None:
                shutil.chown(folder, self._user)
            self.client("psql", "-c", f"create tablespace {name} location '{folder}'", "postgres")
            inside = ("-D", name)
        self.client("createdb", *inside, name)
        return f"postgresql+psycopg://adacos@127.0.0.1:{self.port}/{name}"

    def drop(self, name: str) -> None:
        """Give up a database that has a folder of its own."""
        self.client("dropdb", "--force", name)
        self.client("psql", "-c", f"drop tablespace {name}", "postgres")

    def kill(self) -> None:
        """End all processes at once, as a crash would, and start the server again."""
        # Standing still it begins no process that is missing in the list: one that lives on holds
        # the memory of the old server, and the new one refuses to start.
        self._server.send_signal(signal.SIGSTOP)
        killed = self._processes()
        for process in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._server.wait()
        until = time.monotonic() + 30
        while any(Path(f"/proc/{process}").exists() for process in killed):
            assert time.monotonic() < until
            time.sleep(0.05)
        self._start()

    def freeze(self, *, thaw: bool = False) -> None:
        """Stop all processes of the server where they are, or let them go on."""
        for process in self._processes():
            os.kill(process, signal.SIGCONT if thaw else signal.SIGSTOP)

    def kill_connection(self) -> None:
        """End the process of one connection; the server then drops the others and recovers."""
        reported = self.client("psql", "-Atc", _CONNECTIONS, "postgres").stdout.split()
        os.kill(int(reported[0]), signal.SIGKILL)

    def client(self, program: str, *arguments: object, **options: object):
        """Run one of the server's clients against it."""
        connection = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "adacos"]
        command = [str(self.programs / program), *connection, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True, **options)

    def stop(self) -> None:
        self.freeze(thaw=True)
        self._server.send_signal(signal.SIGINT)
        try:
            self._server.wait(20)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _processes(self) -> list[int]:
        listing = Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children")
        return [self._server.pid, *map(int, listing.read_text().split())]

    def _run(self, program: str, *arguments: object, check: bool = True) -> int:
        command = [str(self.programs / program), *map(str, arguments)]
        return subprocess.run(
            command,
            check=check,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=self._user,
        ).returncode


@pytest.fixture(scope="session")
def postgres():
    """The server, or a skip that says why there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    server = Postgres(programs)
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def log_url(request, tmp_path) -> str:
    """An empty case log, once in a file and once on a server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/cases.db"
    server = request.getfixturevalue("postgres")
    return server.database(f"cases_{time.monotonic_ns()}")


class SmallDisk:
    """A file system of its own that can be filled to the last byte, and emptied again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 10, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def empty(self) -> None:
        self._filler.unlink()


@pytest.fixture
def small_disk():
    folder = Path(tempfile.mkdtemp(prefix="adacos-disk-", dir="/tmp"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("file systems can be mounted by root only")
    yield SmallDisk(folder)
    # Lazily, so that a test that failed leaves nothing behind.
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def rows_of(url: str, statement: str) -> list[tuple]:
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            found = connection.execute(sa.text(statement))
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        engine.dispose()
