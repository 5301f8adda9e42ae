"""The tables of the case log, their version, and how an older log becomes one of this version.

Alembic was looked at: it wants a folder of scripts, a configuration and two more packages, for
what is one list of functions here. A step is never changed once released; a new one is appended.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError

METADATA = sa.MetaData()
CASES = sa.Table(
    "adacos_cases",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("recorded", sa.String(32), nullable=False),
    sa.Column("model", sa.String(16), nullable=False, index=True),
    sa.Column("consultation", sa.Text, nullable=False),
    # "followed", "departed" or "stopped".
    sa.Column("course", sa.String(16), nullable=False),
    # Label and outcome are 0, 1, …: positions among the classes of the model.
    sa.Column("label", sa.Integer, nullable=False),
    sa.Column("probability", sa.Double, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("expected_cost", sa.Double, nullable=False),
    # The outcome that stands: the last row of OUTCOMES.
    sa.Column("outcome", sa.Integer),
    sa.Column("outcome_recorded", sa.String(32)),
)
# Every outcome ever recorded; rows are only added.
OUTCOMES = sa.Table(
    "adacos_outcomes",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("case_id", sa.String(64), nullable=False, index=True),
    sa.Column("outcome", sa.Integer, nullable=False),
    sa.Column("recorded", sa.String(32), nullable=False),
    sa.Column("who", sa.String(64), nullable=False),
)
# The models that were served on this log, with their classes as JSON.
MODELS = sa.Table(
    "adacos_models",
    METADATA,
    sa.Column("model", sa.String(16), primary_key=True),
    sa.Column("classes", sa.Text, nullable=False),
    sa.Column("recorded", sa.String(32), nullable=False),
)
# Who did what to the log, and when; rows are only added.
AUDIT = sa.Table(
    "adacos_audit",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("recorded", sa.String(32), nullable=False),
    sa.Column("who", sa.String(64), nullable=False),
    sa.Column("request", sa.String(64), nullable=False),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("case_id", sa.String(64)),
)
SCHEMA = sa.Table("adacos_schema", METADATA, sa.Column("version", sa.Integer, primary_key=True))


def _outcomes_get_a_history(connection: sa.Connection) -> None:
    """1 to 2: outcomes are kept in a table of their own; models, audit and version appear."""
    METADATA.create_all(connection, tables=[OUTCOMES, MODELS, AUDIT, SCHEMA])
    known = sa.select(
        CASES.c.id, CASES.c.outcome, CASES.c.outcome_recorded, sa.literal("before version 2")
    ).where(CASES.c.outcome.is_not(None))
    columns = ["case_id", "outcome", "recorded", "who"]
    connection.execute(sa.insert(OUTCOMES).from_select(columns, known))


# Step k leads from version k + 1 to version k + 2.
_STEPS: list[Callable[[sa.Connection], None]] = [_outcomes_get_a_history]
VERSION = len(_STEPS) + 1


def bring_up_to_date(connection: sa.Connection, shown: str) -> None:
    """Create the tables or migrate them, within the connection's transaction.

    `shown` is how the log is named in errors.
    """
    there = set(sa.inspect(connection).get_table_names())
    if CASES.name not in there:
        METADATA.create_all(connection)
        connection.execute(sa.insert(SCHEMA), {"version": VERSION})
        return
    version = 1
    if SCHEMA.name in there:
        version = connection.execute(sa.select(SCHEMA.c.version)).scalar_one()
    columns = {column["name"] for column in sa.inspect(connection).get_columns(CASES.name)}
    if not 1 <= version <= VERSION or columns != set(CASES.columns.keys()):
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
