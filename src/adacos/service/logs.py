"""The service's log: one JSON object a line, without messages or traces of errors.

Both may hold values of a patient; an error is named by its type and place, a database error by its
kind as well.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("adacos.service")
# Identifier of the request that is being answered; set by the guard.
REQUEST_ID: ContextVar[str] = ContextVar("adacos_request_id", default="")

_ORDINARY = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Records as JSON: time, level, event, request and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip(),
        }
        if request := REQUEST_ID.get():
            content["request"] = request
        content |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        if record.exc_info and record.exc_info[1] is not None:
            content |= error_kind(record.exc_info[1])
        return json.dumps(content, default=str)


def set_up() -> None:
    """Send everything that is logged to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # A client's bad HTTP is counted, not logged: it would fill the disk.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def error_kind(error: BaseException) -> dict[str, str]:
    """Type and place of an error; of a database error also what the driver calls it."""
    entry = {"error": type(error).__name__}
    if error.__traceback__ is not None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        entry["place"] = f"{place.name}:{place.lineno}"
    driver = getattr(error, "orig", None)
    if driver is not None:
        entry["driver_error"] = type(driver).__name__
        code = getattr(driver, "sqlstate", None) or getattr(driver, "sqlite_errorname", None)
        if code:
            entry["code"] = str(code)
    return entry
