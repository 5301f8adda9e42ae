"""How an older case log becomes one of the present version.

Alembic was looked at: it wants a folder of scripts, a configuration and two more packages, for
what is one list of functions here. A step is never changed once released; a new one is appended.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError
from adacos.service.case_chain import begin_chain
from adacos.service.case_tables import (
    AUDIT,
    CASES,
    HEAD,
    METADATA,
    MODELS,
    OUTCOMES,
    PROBE,
    SCHEMA,
    TALLIES,
)
from adacos.service.case_tallies import count_again


def _outcomes_get_a_history(connection: sa.Connection) -> None:
    """1 to 2: outcomes are kept in a table of their own; models, audit and version appear."""
    METADATA.create_all(connection, tables=[OUTCOMES, MODELS, AUDIT, SCHEMA])
    known = sa.select(
        CASES.c.id, CASES.c.outcome, CASES.c.outcome_recorded, sa.literal("before version 2")
    ).where(CASES.c.outcome.is_not(None))
    columns = ["case_id", "outcome", "recorded", "who"]
    connection.execute(sa.insert(OUTCOMES).from_select(columns, known))


def _history_is_chained(connection: sa.Connection) -> None:
    """2 to 3: cases count their outcomes, and each row of the audit holds the digest of the last.

    What is there by then is taken as it is.
    """
    METADATA.create_all(connection, tables=[HEAD, PROBE])
    _add_columns(connection, CASES, AUDIT, MODELS)
    recorded = (
        sa.select(sa.func.count())
        .where(OUTCOMES.c.case_id == CASES.c.id)
        .correlate(CASES)
        .scalar_subquery()
    )
    connection.execute(sa.update(CASES).values(version=recorded))
    begin_chain(connection)


def _cases_are_counted(connection: sa.Connection) -> None:
    """3 to 4: cases are counted by week and kind."""
    METADATA.create_all(connection, tables=[TALLIES])
    count_again(connection)


def _models_keep_promises(connection: sa.Connection) -> None:
    """4 to 5: what a model promises is kept from its next start on."""
    _add_columns(connection, MODELS)


def _add_columns(connection: sa.Connection, *tables: sa.Table) -> None:
    """Add to tables what they do not have yet."""
    for table in tables:
        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in there:
                added = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {added}")


# Step k leads from version k + 1 to version k + 2.
_STEPS: list[Callable[[sa.Connection], None]] = [
    _outcomes_get_a_history,
    _history_is_chained,
    _cases_are_counted,
    _models_keep_promises,
]
VERSION = len(_STEPS) + 1
# Columns of CASES that a version brought.
_BROUGHT = {3: {"version", "salt"}}


def require_present_version(connection: sa.Connection, shown: str) -> None:
    """Refuse a log that is not there or of another version."""
    version = _version(connection)
    if version != VERSION:
        raise InvalidInputError(
            "case_log",
            f"must be a log of version {VERSION}",
            f"{shown}, version {version}" if version else f"{shown}, which is none",
            "Start the service on it once, with this adacos.",
        )


def _version(connection: sa.Connection) -> int | None:
    """The version that is written in the log, None if there is none."""
    if not sa.inspect(connection).has_table(SCHEMA.name):
        return None
    return int(connection.execute(sa.select(SCHEMA.c.version)).scalar_one())


def bring_up_to_date(connection: sa.Connection, shown: str) -> None:
    """Create the tables or migrate them, within the connection's transaction.

    `shown` is how the log is named in errors.
    """
    there = set(sa.inspect(connection).get_table_names())
    if CASES.name not in there:
        METADATA.create_all(connection)
        connection.execute(sa.insert(SCHEMA), {"version": VERSION})
        begin_chain(connection)
        return
    version = _version(connection) or 1
    columns = {column["name"] for column in sa.inspect(connection).get_columns(CASES.name)}
    later = [names for number, names in _BROUGHT.items() if number > version]
    if not 1 <= version <= VERSION or columns != set(CASES.columns.keys()).difference(*later):
        raise InvalidInputError(
            "case_log",
            f"its table {CASES.name} must be of version {VERSION} or before",
            f"{shown}, version {version}",
            "Use the adacos that wrote it, or name another database; this one stays as it is.",
        )
    for step in _STEPS[version - 1 :]:
        step(connection)
    if version < VERSION:
        connection.execute(sa.delete(SCHEMA))
        connection.execute(sa.insert(SCHEMA), {"version": VERSION})
