"""The case log: finished consultations and their later outcomes, in any SQLAlchemy database.

A case is acknowledged after its transaction is on disk, and its identifier is the primary key: one
that was acknowledged is there after a crash, and none is there twice. The log holds the values of
patients; a SQLite file is therefore made readable to its owner only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError
from adacos.service.schemas import Course

_METADATA = sa.MetaData()
_CASES = sa.Table(
    "adacos_cases",
    _METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("recorded", sa.String(32), nullable=False),
    sa.Column("model", sa.String(16), nullable=False, index=True),
    sa.Column("consultation", sa.Text, nullable=False),
    # "followed", "departed" or "stopped".
    sa.Column("course", sa.String(16), nullable=False),
    # Label and outcome are 0 or 1: positions among the classes of the model.
    sa.Column("label", sa.Integer, nullable=False),
    sa.Column("probability", sa.Double, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("expected_cost", sa.Double, nullable=False),
    sa.Column("outcome", sa.Integer),
    sa.Column("outcome_recorded", sa.String(32)),
)


@dataclass(frozen=True)
class Case:
    """A finished consultation; label and outcome are positions among the classes."""

    id: str
    model: str
    course: Course
    consultation: Mapping[str, Any]
    label: int
    probability: float
    cost: float
    expected_cost: float
    recorded: str = ""
    outcome: int | None = None


@dataclass(frozen=True)
class Tally:
    """Cases of one model with the same label, the same outcome and the same course."""

    label: int
    outcome: int | None
    course: Course
    cases: int
    cost: float
    squared_cost: float
    expected_cost: float


class CaseLog:
    """The log behind a SQLAlchemy URL; creates its table if there is none."""

    def __init__(self, url: str) -> None:
        try:
            self._engine = sa.create_engine(url, hide_parameters=True)
            if self._engine.dialect.name == "sqlite":
                _prepare_sqlite(self._engine)
            _METADATA.create_all(self._engine)
            found = {column["name"] for column in sa.inspect(self._engine).get_columns(_CASES.name)}
        except (sa.exc.SQLAlchemyError, ImportError, OSError) as error:
            given = f"{_without_password(url)} ({type(error).__name__})"
            remedy = "For example sqlite:///cases.db; other databases need their driver installed."
            if "://" not in url and "@" not in url:
                given, remedy = url, f"For a SQLite file write sqlite:///{url}."
            raise InvalidInputError(
                "case_log",
                "must be the SQLAlchemy URL of a database that can be written",
                given,
                remedy,
            ) from error
        if found != set(_CASES.columns.keys()):
            raise InvalidInputError(
                "case_log",
                f"its table {_CASES.name} must be of this version",
                _without_password(url),
                "Name another database; the old one stays as it is.",
            )

    def close(self) -> None:
        """Give up all connections."""
        self._engine.dispose()

    def record(self, case: Case) -> tuple[Case, bool]:
        """Record a case unless its id is there; the recorded one, and whether it is new."""
        row = {
            "id": case.id,
            "recorded": _now(),
            "model": case.model,
            "consultation": json.dumps(case.consultation),
            "course": case.course,
            "label": case.label,
            "probability": case.probability,
            "cost": case.cost,
            "expected_cost": case.expected_cost,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(_CASES), row)
        except sa.exc.IntegrityError:
            found = self.find(case.id)
            if found is None:
                raise
            return found, False
        return _case({**row, "outcome": None}), True

    def find(self, case_id: str) -> Case | None:
        """The case with this id."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(_CASES).where(_CASES.c.id == case_id)).one_or_none()
        return None if row is None else _case(row._mapping)

    def set_outcome(self, case_id: str, outcome: int) -> None:
        """Record what the class turned out to be, or correct it."""
        with self._engine.begin() as connection:
            connection.execute(
                sa.update(_CASES)
                .where(_CASES.c.id == case_id)
                .values(outcome=outcome, outcome_recorded=_now())
            )

    def tallies(self, model: str) -> tuple[list[Tally], int]:
        """Cases of one model counted by label and outcome, and the number of other cases."""
        kinds = _CASES.c.label, _CASES.c.outcome, _CASES.c.course
        of_model = (
            sa.select(
                *kinds,
                sa.func.count(),
                sa.func.sum(_CASES.c.cost),
                sa.func.sum(_CASES.c.cost * _CASES.c.cost),
                sa.func.sum(_CASES.c.expected_cost),
            )
            .where(_CASES.c.model == model)
            .group_by(*kinds)
        )
        others = sa.select(sa.func.count()).select_from(_CASES).where(_CASES.c.model != model)
        with self._engine.connect() as connection:
            tallies = [_tally(row) for row in connection.execute(of_model)]
            return tallies, int(connection.execute(others).scalar_one())


def _without_password(url: str) -> str:
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        _, sign, after = url.rpartition("@")
        return f"…@{after}" if sign else url


def _prepare_sqlite(engine: sa.Engine) -> None:
    path = engine.url.database
    if not path or path == ":memory:":
        raise InvalidInputError(
            "case_log", "must be a file", "a database in memory", "Write sqlite:///cases.db."
        )
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: Any) -> None:
        for setting in ("busy_timeout=10000", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}").close()


def _case(row: Mapping[Any, Any]) -> Case:
    return Case(
        id=row["id"],
        model=row["model"],
        course=row["course"],
        consultation=json.loads(row["consultation"]),
        label=row["label"],
        probability=row["probability"],
        cost=row["cost"],
        expected_cost=row["expected_cost"],
        recorded=row["recorded"],
        outcome=row["outcome"],
    )


def _tally(row: Sequence[Any]) -> Tally:
    label, outcome, course, cases, cost, squared, expected = row
    return Tally(label, outcome, course, int(cases), float(cost), float(squared), float(expected))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
