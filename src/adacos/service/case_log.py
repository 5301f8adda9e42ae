"""The case log: finished consultations and their later outcomes, in any SQLAlchemy database.

A case is acknowledged after its transaction is on disk, and its identifier is the primary key: one
that was acknowledged is there after a crash, and none is there twice. Outcomes are only added, the
last one stands. The log holds the values of patients; a SQLite file is therefore made readable to
its owner only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError
from adacos.service.case_tables import AUDIT, CASES, MODELS, OUTCOMES, bring_up_to_date
from adacos.service.database import check_integrity, open_engine, without_secrets
from adacos.service.schemas import Course


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
    expected_cost: float


@dataclass(frozen=True)
class Author:
    """Who acts: the name of the key, and the identifier of the request."""

    who: str
    request: str


class CaseLog:
    """The log behind a SQLAlchemy URL; made or brought up to date by `prepare`."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._engine, self._file = open_engine(url)
        except (sa.exc.SQLAlchemyError, ImportError, OSError) as error:
            raise self._refused(error) from error

    def prepare(self, models: Mapping[str, Sequence[Any]]) -> None:
        """Check the log, bring its tables up to date, and note the classes of these models.

        Leaves no connection open, so that processes may be forked afterwards.
        """
        try:
            check_integrity(self._engine)
            with self._engine.begin() as connection:
                bring_up_to_date(connection, without_secrets(self._url))
                known = set(connection.execute(sa.select(MODELS.c.model)).scalars())
                for model, classes in models.items():
                    if model not in known:
                        row = {"model": model, "classes": json.dumps(classes), "recorded": _now()}
                        connection.execute(sa.insert(MODELS), row)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise self._refused(error) from error
        finally:
            self.close()

    def close(self) -> None:
        """Give up all connections."""
        self._engine.dispose()

    def check(self) -> None:
        """Raise if the log cannot be reached or is not the one that was opened."""
        with self._engine.connect() as connection:
            connection.execute(sa.select(CASES.c.id).limit(1)).all()
            self._check_file()

    def record(self, case: Case, author: Author) -> tuple[Case, bool]:
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
                connection.execute(sa.insert(CASES), row)
                _note(connection, author, "case", case.id)
        except sa.exc.IntegrityError:
            earlier = self.find(case.id)
            if earlier is None:
                raise
            self._check_file()
            return earlier, False
        self._check_file()
        return _case({**row, "outcome": None}), True

    def find(self, case_id: str) -> Case | None:
        """The case with this id."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(CASES).where(CASES.c.id == case_id)).one_or_none()
        return None if row is None else _case(row._mapping)

    def classes_of(self, model: str) -> list[Any] | None:
        """The classes of a model that was served on this log."""
        with self._engine.connect() as connection:
            row = connection.execute(
                sa.select(MODELS.c.classes).where(MODELS.c.model == model)
            ).scalar_one_or_none()
        return None if row is None else list(json.loads(row))

    def set_outcome(self, case_id: str, outcome: int, author: Author) -> None:
        """Record what the class turned out to be, or correct it; what was there stays on record."""
        now = _now()
        row = {"case_id": case_id, "outcome": outcome, "recorded": now, "who": author.who}
        with self._engine.begin() as connection:
            connection.execute(sa.insert(OUTCOMES), row)
            connection.execute(
                sa.update(CASES)
                .where(CASES.c.id == case_id)
                .values(outcome=outcome, outcome_recorded=now)
            )
            _note(connection, author, "outcome", case_id)
        self._check_file()

    def tallies(self, model: str, author: Author | None = None) -> tuple[list[Tally], int]:
        """Cases of one model counted by label and outcome, and the number of other cases.

        An author's look at them is noted; the service's own is not.
        """
        kinds = CASES.c.label, CASES.c.outcome, CASES.c.course
        of_model = (
            sa.select(
                *kinds,
                sa.func.count(),
                sa.func.sum(CASES.c.cost),
                sa.func.sum(CASES.c.expected_cost),
            )
            .where(CASES.c.model == model)
            .group_by(*kinds)
        )
        others = sa.select(sa.func.count()).select_from(CASES).where(CASES.c.model != model)
        with self._engine.begin() as connection:
            tallies = [_tally(row) for row in connection.execute(of_model)]
            of_others = int(connection.execute(others).scalar_one())
            if author is not None:
                _note(connection, author, "summary", None)
        return tallies, of_others

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _refused(self, error: Exception) -> InvalidInputError:
        shown = without_secrets(self._url)
        given = f"{shown} ({type(error).__name__})"
        remedy = "For example sqlite:///cases.db; other databases need their driver installed."
        if "://" not in self._url and "@" not in self._url:
            given, remedy = shown, f"For a SQLite file write sqlite:///{shown}."
        rule = "must be the SQLAlchemy URL of a database that can be written"
        return InvalidInputError("case_log", rule, given, remedy)


def _note(
    connection: sa.Connection,
    author: Author,
    action: Literal["case", "outcome", "summary"],
    case_id: str | None,
) -> None:
    row = {"recorded": _now(), "who": author.who, "request": author.request}
    connection.execute(sa.insert(AUDIT), {**row, "action": action, "case_id": case_id})


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
    label, outcome, course, cases, cost, expected = row
    return Tally(label, outcome, course, int(cases), float(cost), float(expected))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
