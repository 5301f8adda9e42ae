"""The database behind the case log: opened with timeouts, checked, named without its secrets."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError

# Connections of one worker; as many requests may wait for the database at a time.
CONNECTIONS = 8
# How long (seconds) a statement, a lock, or a new connection may take. A request that waits for
# the log gives up a little later, see `access.py`.
_PATIENCE = 3


class LogLostError(Exception):
    """The file of the log is not the one that was opened."""


class SqliteFile:
    """The file of a SQLite log, by its identity at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = self._look()

    def check(self) -> None:
        """Raise if the file, or the journal that commits go to, was taken away or replaced.

        SQLite itself continues writing to a file that has been deleted.
        """
        if self._look() != self._identity or not Path(f"{self._path}-wal").exists():
            raise LogLostError

    def _look(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def open_engine(url: str, *, create: bool) -> tuple[sa.Engine, SqliteFile | None]:
    """An engine with timeouts, and the file if it is one of SQLite; `create` makes the file."""
    parsed = sa.make_url(url)
    in_file = parsed.get_backend_name() == "sqlite"
    if in_file and parsed.database in (None, "", ":memory:"):
        raise InvalidInputError(
            "case_log", "must be a file", "a database in memory", "Write sqlite:///cases.db."
        )
    engine = sa.create_engine(
        parsed,
        hide_parameters=True,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=_PATIENCE,
        pool_pre_ping=True,
        connect_args=_timeouts(parsed),
    )
    if not in_file:
        return engine, None
    path = Path(str(parsed.database))
    if not create and not path.exists():
        raise InvalidInputError("case_log", "must be there", url, "Give the URL of the service.")
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    # A copy that was put in its place may be open to others.
    path.chmod(0o600)
    sa.event.listen(engine, "connect", _configure_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine, SqliteFile(path)


def changing(engine: sa.Engine) -> AbstractContextManager[sa.Connection]:
    """A transaction that changes something.

    On SQLite it takes the lock for writing at once: one that has read before it writes is refused
    where another has written meanwhile, however long it would wait.
    """
    return engine.execution_options(adacos_changing=True).begin()


def empty_journal(engine: sa.Engine) -> bool:
    """Move what is in SQLite's journal to the file and empty it; False if others hold it."""
    if engine.dialect.name != "sqlite":
        return True
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    return not busy


def check_integrity(engine: sa.Engine) -> None:
    """Refuse a damaged SQLite file; other databases see to their own."""
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        verdict = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if verdict != "ok":
        raise InvalidInputError(
            "case_log",
            "must not be damaged",
            without_secrets(str(engine.url)),
            "Restore it from a backup; `sqlite3 FILE .recover` saves what can be read.",
        )


def without_secrets(url: str) -> str:
    """The URL as it may be shown: neither its password nor the values after its question mark."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        _, sign, after = url.rpartition("@")
        return f"…@{after.partition('?')[0]}" if sign else url.partition("?")[0]
    # A password with an @ in it is cut at the wrong place, and its end taken for the host.
    host = parsed.host and parsed.host.rpartition("@")[2]
    hidden = parsed.set(host=host, query=dict.fromkeys(parsed.query, "…"))
    return hidden.render_as_string(hide_password=True).replace("%E2%80%A6", "…")


def has_secret(url: str) -> bool:
    """Whether there is a password in the URL."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        return "@" in url
    return parsed.password is not None or any("pass" in name.lower() for name in parsed.query)


def _timeouts(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": _PATIENCE}
    if url.get_backend_name() != "postgresql":
        return {}
    wanted = {
        "connect_timeout": _PATIENCE,
        "options": f"-c statement_timeout={_PATIENCE}s -c lock_timeout={_PATIENCE}s",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 1000 * _PATIENCE,
    }
    return {name: value for name, value in wanted.items() if name not in url.query}


def _begin_sqlite(connection: sa.Connection) -> None:
    # The driver would begin only before the first change, and leave table definitions outside.
    immediate = connection.get_execution_options().get("adacos_changing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _configure_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {setting}").close()
