"""The case log: finished consultations and their later outcomes, in any SQLAlchemy database.

A case is acknowledged after its transaction is on disk, and its identifier is the primary key: one
that was acknowledged is there after a crash, and none is there twice. Outcomes are only added, the
last one counts, and the audit chains digests of all of them. The log holds the values of patients;
a SQLite file is therefore made readable to its owner only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from adacos.exceptions import InvalidInputError
from adacos.service.case_chain import (
    Author,
    Verdict,
    append,
    case_digest,
    delete_cases,
    description_digest,
    is_as_noted,
    model_digest,
    new_salt,
    now,
    outcome_digest,
    verify,
)
from adacos.service.case_tables import AUDIT, CASES, HEAD, MODELS, OUTCOMES, PROBE
from adacos.service.case_tallies import Tally, count, count_again, tallies_of
from adacos.service.case_versions import bring_up_to_date, require_present_version
from adacos.service.database import (
    changing,
    check_integrity,
    empty_journal,
    open_engine,
    without_secrets,
)
from adacos.service.logs import LOG
from adacos.service.promises import Promises
from adacos.service.schemas import Course
from adacos.tables.description import Description

# More than a case takes (characters).
_PROBE = 1 << 15
# Cases that are read at once.
_AT_A_TIME = 1000
# Rows of the audit that take some seconds to check.
_CHECKED_AT_START = 200_000
_SERVICE = Author("the service", "")


class UnseenError(Exception):
    """There is an outcome that its author has not seen; `seen` is what was named instead."""

    def __init__(self, case: Case, seen: frozenset[int] | None) -> None:
        super().__init__()
        self.case, self.seen = case, seen


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
    version: int = 0


class CaseLog:
    """The log behind a SQLAlchemy URL; made or brought up to date by `prepare`.

    With `create=False` it must be there, of the present version.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._url = url
        try:
            self._engine, self._file = open_engine(url, create=create)
            if not create:
                with self._engine.connect() as connection:
                    require_present_version(connection, without_secrets(url))
        except (sa.exc.SQLAlchemyError, ImportError, OSError) as error:
            raise self._refused(error) from error

    def prepare(self, models: Sequence[Promises]) -> None:
        """Check the log, bring its tables up to date, and note what these models promise.

        Leaves no connection open, so that processes may be forked afterwards.
        """
        try:
            check_integrity(self._engine)
            with changing(self._engine) as connection:
                bring_up_to_date(connection, without_secrets(self._url))
                for promises in models:
                    _note_model(connection, promises)
            rows = self._rows()
            if self._file is not None and rows <= _CHECKED_AT_START:
                self._refuse_changed(self.verify())
            else:
                message = (
                    "the case log is not checked for changes at the start: too long, or no file"
                )
                LOG.warning(message, extra={"rows": rows, "remedy": "adacos cases verify"})
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise self._refused(error) from error
        finally:
            self.close()

    def note_serving(self, model: str, description: Description) -> None:
        """Note that a model is served from now on, with the words and units of a description."""
        try:
            with changing(self._engine) as connection:
                append(connection, _SERVICE, "serving", model, description_digest(description))
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise self._refused(error) from error
        finally:
            self.close()

    def close(self) -> None:
        """Give up all connections."""
        self._engine.dispose()

    def check(self) -> None:
        """Raise if no case could be recorded, or the log is not the one that was opened."""
        with changing(self._engine) as connection:
            connection.execute(sa.select(CASES.c.id).limit(1)).all()
            # Random, so that no database stores it in less.
            connection.execute(sa.insert(PROBE), {"filler": secrets.token_hex(_PROBE // 2)})
            connection.execute(sa.delete(PROBE))
        self._check_file()

    def verify(self, kept_head: str | None = None) -> Verdict:
        """Whether everything is as it was recorded; see `case_chain`."""
        with self._engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                # All that is compared is of one moment, also while cases are recorded.
                connection.execution_options(isolation_level="REPEATABLE READ")
            return verify(connection, kept_head)

    def delete(self, before: str, author: Author) -> tuple[int, bool]:
        """Delete the cases recorded before a moment: how many, and whether no copy of them is left.

        A copy is left where others read the journal of a SQLite file meanwhile.
        """
        with changing(self._engine) as connection:
            old = sa.select(CASES.c.id).where(CASES.c.recorded < before).order_by(CASES.c.id)
            ids = list(connection.execute(old.with_for_update()).scalars())
            delete_cases(connection, ids, author)
            count_again(connection)
        return len(ids), empty_journal(self._engine)

    def record(self, case: Case, author: Author) -> tuple[Case, bool]:
        """Record a case unless its id is there; the recorded one, and whether it is new."""
        row = {
            "id": case.id,
            "recorded": now(),
            "model": case.model,
            "consultation": json.dumps(case.consultation),
            "course": case.course,
            "label": case.label,
            "probability": case.probability,
            "cost": case.cost,
            "expected_cost": case.expected_cost,
            "salt": new_salt(),
        }
        try:
            with changing(self._engine) as connection:
                connection.execute(sa.insert(CASES), row)
                append(connection, author, "case", case.id, case_digest(row))
                count(connection, {**row, "outcome": None})
        except sa.exc.IntegrityError:
            earlier = self.find(case.id)
            if earlier is None:
                raise
            self._check_file()
            return earlier, False
        self._check_file()
        return _case({**row, "outcome": None, "version": 0}), True

    def find(self, case_id: str) -> Case | None:
        """The case with this id."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(CASES).where(CASES.c.id == case_id)).one_or_none()
        return None if row is None else _case(row._mapping)

    def consultations(self, model: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """When a model's cases were recorded, their labels and what was asked, in that order."""
        own = sa.select(CASES.c.recorded, CASES.c.label, CASES.c.consultation)
        query = own.where(CASES.c.model == model).order_by(CASES.c.recorded, CASES.c.id)
        with self._engine.connect() as connection:
            for moment, label, text in connection.execute(
                query, execution_options={"yield_per": _AT_A_TIME}
            ):
                yield moment, label, json.loads(text)

    def models(self) -> list[str]:
        """The models that were served on this log, the last one first."""
        last = sa.func.max(AUDIT.c.number).desc()
        served = sa.select(AUDIT.c.case_id).where(AUDIT.c.action == "serving")
        query = served.group_by(AUDIT.c.case_id).order_by(last)
        with self._engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def note_look(self, case_id: str, author: Author) -> None:
        """Note that somebody looked at a case."""
        with changing(self._engine) as connection:
            append(connection, author, "look", case_id)

    def classes_of(self, model: str) -> list[Any] | None:
        """The classes of a model that was served on this log."""
        text = self._of_model(MODELS.c.classes, model)
        return None if text is None else list(json.loads(text))

    def promises_of(self, model: str) -> Promises | None:
        """What a model promises that was served on this log, since it keeps that."""
        text = self._of_model(MODELS.c.promises, model)
        return None if text is None else Promises.from_json(text)

    def _of_model(self, column: sa.Column[Any], model: str) -> Any:
        with self._engine.connect() as connection:
            query = sa.select(column).where(MODELS.c.model == model)
            return connection.execute(query).scalar_one_or_none()

    def set_outcome(
        self, case_id: str, outcome: int, author: Author, seen: frozenset[int] | None
    ) -> Case:
        """Record what the class turned out to be, or correct it; what was there stays on record.

        `seen` are the versions of the case that the author knows, None if none was named. Whoever
        corrects an outcome must have seen it.
        """
        with changing(self._engine) as connection:
            # Whoever else corrects it waits here: the order of the rows is that of the times.
            query = sa.select(CASES).where(CASES.c.id == case_id).with_for_update()
            found = dict(connection.execute(query).mappings().one())
            case = _case(found)
            if case.outcome == outcome:
                return case
            if case.version not in (seen if seen is not None else {0}):
                raise UnseenError(case, seen)
            moment, version = now(), case.version + 1
            row = {"case_id": case_id, "outcome": outcome, "recorded": moment, "who": author.who}
            connection.execute(sa.insert(OUTCOMES), row)
            current = {"outcome": outcome, "outcome_recorded": moment, "version": version}
            connection.execute(sa.update(CASES).where(CASES.c.id == case_id).values(**current))
            append(connection, author, "outcome", case_id, outcome_digest(found["salt"], row))
            count(connection, found, times=-1)
            count(connection, {**found, "outcome": outcome})
        self._check_file()
        return replace(case, outcome=outcome, version=version)

    def tallies(self, model: str, author: Author | None = None) -> tuple[list[Tally], int]:
        """Cases of one model counted by week and kind, and the number of other cases.

        An author's look at them is noted; the service's own is not.
        """
        if author is not None:
            with changing(self._engine) as connection:
                append(connection, author, "summary")
        with self._engine.connect() as connection:
            return tallies_of(connection, model)

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _rows(self) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(sa.select(HEAD.c.number)).scalar_one())

    def _refuse_changed(self, verdict: Verdict) -> None:
        if verdict.missing:
            LOG.warning("cases were deleted without a trace", extra={"cases": len(verdict.missing)})
            with changing(self._engine) as connection:
                count_again(connection)
        if verdict.changed:
            more = f" and {len(verdict.changed) - 3} more" if len(verdict.changed) > 3 else ""
            raise InvalidInputError(
                "case_log",
                "must hold what was recorded",
                f"{without_secrets(self._url)}: changed are {', '.join(verdict.changed[:3])}{more}",
                "Restore it from a backup; adacos cases verify lists all that was changed.",
            )

    def _refused(self, error: Exception) -> InvalidInputError:
        shown = without_secrets(self._url)
        given = f"{shown} ({type(error).__name__})"
        remedy = "For example sqlite:///cases.db; other databases need their driver installed."
        if "://" not in self._url and "@" not in self._url:
            given, remedy = shown, f"For a SQLite file write sqlite:///{shown}."
        rule = "must be the SQLAlchemy URL of a database that can be written"
        return InvalidInputError("case_log", rule, given, remedy)


def _note_model(connection: sa.Connection, promises: Promises) -> None:
    """Note what a model promises, unless just that is there or what is there was changed."""
    text, own = promises.to_json(), MODELS.c.model == promises.model
    there = connection.execute(sa.select(MODELS).where(own)).mappings().one_or_none()
    if there is not None and (
        there["promises"] == text or not is_as_noted(connection, dict(there))
    ):
        return
    row = {
        "model": promises.model,
        "classes": json.dumps(promises.names),
        "recorded": now() if there is None else there["recorded"],
        "promises": text,
    }
    if there is None:
        connection.execute(sa.insert(MODELS), row)
    else:
        connection.execute(sa.update(MODELS).where(own).values(row))
    append(connection, _SERVICE, "model", promises.model, model_digest(row))


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
        version=row["version"],
    )
