"""The tables of the case log."""

from __future__ import annotations

import sqlalchemy as sa

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
    # The outcome that stands: the last row of OUTCOMES, and how many rows there are.
    sa.Column("outcome", sa.Integer),
    sa.Column("outcome_recorded", sa.String(32)),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("0")),
    # Random; part of the digests of the case, which say nothing once it is deleted.
    sa.Column("salt", sa.String(32), nullable=False, server_default=sa.text("''")),
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
    # What a summary needs of the model, as JSON; none where an earlier version recorded it.
    sa.Column("promises", sa.Text),
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
    # Digest of what was recorded; and that of this row and of the one before it: see `case_chain`.
    sa.Column("content", sa.String(64)),
    sa.Column("digest", sa.String(64), nullable=False, server_default=sa.text("''")),
)
# Cases counted by week and kind, so that a summary need not read all of them: see `case_tallies`.
TALLIES = sa.Table(
    "adacos_tallies",
    METADATA,
    sa.Column("model", sa.String(16), primary_key=True),
    # The Monday with which the week begins.
    sa.Column("week", sa.String(10), primary_key=True),
    sa.Column("course", sa.String(16), primary_key=True),
    sa.Column("label", sa.Integer, primary_key=True, autoincrement=False),
    # -1 where there is none yet.
    sa.Column("outcome", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("cases", sa.Integer, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("expected_cost", sa.Double, nullable=False),
)
# One row: the last of AUDIT. Whoever adds to AUDIT locks it.
HEAD = sa.Table(
    "adacos_head",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.String(64), nullable=False),
)
# Written and emptied to see whether there is room; it stays empty.
PROBE = sa.Table(
    "adacos_probe",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("filler", sa.Text, nullable=False),
)
SCHEMA = sa.Table("adacos_schema", METADATA, sa.Column("version", sa.Integer, primary_key=True))
