"""A chain of digests through the audit of the case log, so that a later change shows.

Each row of the audit holds a digest of what was recorded with it, and a digest of itself and of
the row before. Whoever changes a case, an outcome or a row of the audit must change the last digest
too: who has kept that elsewhere can see it. Digests are SHA-256 of JSON.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal

import sqlalchemy as sa

from adacos.service.case_tables import AUDIT, CASES, HEAD, MODELS, OUTCOMES
from adacos.service.case_tallies import are_right
from adacos.tables.description import Description

Action = Literal["case", "outcome", "summary", "look", "model", "serving", "deleted"]
# What a case is from the beginning; its outcomes are recorded on their own.
_CASE = ("id", "recorded", "model", "consultation", "course", "label", "probability", "cost")
_CASE_FIELDS = (*_CASE, "expected_cost", "salt")
_LINK_FIELDS = ("number", "recorded", "who", "request", "action", "case_id", "content")
_OUTCOME = tuple(column.name for column in OUTCOMES.c)
_AT_A_TIME = 1000


@dataclass(frozen=True)
class Author:
    """Who acts: the name of the key, and the identifier of the request."""

    who: str
    request: str


@dataclass(frozen=True)
class Verdict:
    """What came of checking the chain.

    `changed` names what is not as it was recorded; `missing` are cases that were recorded, are not
    there and were not deleted by `adacos cases delete`. `head` is the number and the digest of the
    last row.
    """

    rows: int
    cases: int
    deleted: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    head: str


def new_salt() -> str:
    """Random digits for a new case."""
    return secrets.token_hex(16)


def now() -> str:
    """The present moment, as it is written everywhere in the log."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def case_digest(row: Mapping[str, Any]) -> str:
    """The digest of a row of CASES."""
    return _digest([row[name] for name in _CASE_FIELDS])


def outcome_digest(salt: str, row: Mapping[str, Any]) -> str:
    """The digest of a row of OUTCOMES, for a case with this salt."""
    return _digest([salt, row["case_id"], row["outcome"], row["recorded"], row["who"]])


def model_digest(row: Mapping[str, Any]) -> str:
    """The digest of a row of MODELS."""
    promises = [] if row["promises"] is None else [row["promises"]]
    return _digest([row["model"], row["classes"], row["recorded"], *promises])


def is_as_noted(connection: sa.Connection, row: Mapping[str, Any]) -> bool:
    """Whether a row of MODELS is what the audit noted of the model last."""
    own = (AUDIT.c.action == "model") & (AUDIT.c.case_id == row["model"])
    noted = sa.select(AUDIT.c.content).where(own).order_by(AUDIT.c.number.desc()).limit(1)
    return bool(connection.execute(noted).scalar_one_or_none() == model_digest(row))


def description_digest(description: Description) -> str:
    """The digest of what a model is presented with: units, names of codes and classes, ranges."""
    return _digest([asdict(description)])


def append(
    connection: sa.Connection,
    author: Author,
    action: Action,
    case_id: str | None = None,
    content: str | None = None,
) -> None:
    """Add a row to the audit; the last thing of a transaction, because it waits for others."""
    _append_all(connection, author, action, [(case_id, content)])


def _append_all(
    connection: sa.Connection,
    author: Author,
    action: Action,
    entries: Iterable[tuple[str | None, str | None]],
) -> None:
    number, digest = connection.execute(sa.select(HEAD).with_for_update()).one()
    before, rows = number, []
    for case_id, content in entries:
        number += 1
        row = {
            **{"number": number, "recorded": now(), "who": author.who, "request": author.request},
            **{"action": action, "case_id": case_id, "content": content},
        }
        digest = _link(digest, row)
        rows.append({**row, "digest": digest})
    if rows:
        connection.execute(sa.insert(AUDIT), rows)
        head = sa.update(HEAD).where(HEAD.c.number == before)
        connection.execute(head.values(number=number, digest=digest))


def begin_chain(connection: sa.Connection) -> None:
    """Chain what is in the tables already; what is there is taken as it is."""
    number, digest = 0, ""
    for row in list(_rows(connection, sa.select(AUDIT).order_by(AUDIT.c.number))):
        number, digest = row["number"], _link(digest, row)
        own = AUDIT.c.number == number
        connection.execute(sa.update(AUDIT).where(own).values(digest=digest))
    connection.execute(sa.insert(HEAD), {"number": number, "digest": digest})
    salts = {}
    for (case_id,) in connection.execute(sa.select(CASES.c.id)).all():
        salts[case_id] = new_salt()
        own = CASES.c.id == case_id
        connection.execute(sa.update(CASES).where(own).values(salt=salts[case_id]))
    author = Author("the service", "")
    cases = [(row["id"], case_digest(row)) for row in _rows(connection, sa.select(CASES))]
    outcomes = [
        (row["case_id"], outcome_digest(salts[row["case_id"]], row))
        for row in _rows(connection, sa.select(OUTCOMES).order_by(OUTCOMES.c.number))
        if row["case_id"] in salts
    ]
    models = [(row["model"], model_digest(row)) for row in _rows(connection, sa.select(MODELS))]
    _append_all(connection, author, "case", cases)
    _append_all(connection, author, "outcome", outcomes)
    _append_all(connection, author, "model", models)


def delete_cases(connection: sa.Connection, ids: Sequence[str], author: Author) -> None:
    """Delete cases with their outcomes; that they were there, and who deleted them, is noted."""
    for first in range(0, len(ids), _AT_A_TIME):
        some = ids[first : first + _AT_A_TIME]
        connection.execute(sa.delete(OUTCOMES).where(OUTCOMES.c.case_id.in_(some)))
        connection.execute(sa.delete(CASES).where(CASES.c.id.in_(some)))
    _append_all(connection, author, "deleted", [(case_id, None) for case_id in ids])


def verify(connection: sa.Connection, kept_head: str | None = None) -> Verdict:
    """Compute all digests again; `kept_head` is the `head` of an earlier verdict."""
    changed, digest, number, rows = [], "", 0, 0
    recorded: dict[str, dict[str, list[bytes]]] = {"case": {}, "outcome": {}, "model": {}}
    deleted: set[str] = set()
    is_kept = kept_head is None
    for row in _rows(connection, sa.select(AUDIT).order_by(AUDIT.c.number)):
        rows, number = rows + 1, row["number"]
        digest, before = row["digest"], digest
        if digest != _link(before, row):
            changed.append(f"row {number} of the audit")
        is_kept = is_kept or kept_head == f"{number}:{digest}"
        case_id = row["case_id"]
        if row["content"] is not None and row["action"] in recorded:
            recorded[row["action"]].setdefault(case_id, []).append(row["content"].encode())
        if row["action"] == "deleted":
            deleted.add(case_id)
            for of_action in recorded.values():
                of_action.pop(case_id, None)
    head = connection.execute(sa.select(HEAD)).one_or_none()
    if head is None or tuple(head) != (number, digest):
        changed.append("the end of the audit")
    if not is_kept:
        changed.append("the audit before the head that was kept")
    cases = _check_cases(connection, recorded["case"], recorded["outcome"], changed)
    for row in _rows(connection, sa.select(MODELS)):
        if recorded["model"].get(row["model"], [])[-1:] != [model_digest(row).encode()]:
            changed.append(f"model {row['model']}")
    missing = tuple(sorted(recorded["case"]))
    if not changed and not missing and not are_right(connection):
        changed.append("the counts of cases")
    return Verdict(rows, cases, len(deleted), tuple(changed), missing, f"{number}:{digest}")


def _check_cases(
    connection: sa.Connection,
    recorded: dict[str, list[bytes]],
    outcomes: Mapping[str, list[bytes]],
    changed: list[str],
) -> int:
    """Check all cases with their outcomes; how many there are. Leaves what is missing."""
    columns = [column.label(f"of_outcome_{column.name}") for column in OUTCOMES.c]
    with_outcomes = (
        sa.select(*CASES.c, *columns)
        .join(OUTCOMES, OUTCOMES.c.case_id == CASES.c.id, isouter=True)
        .order_by(CASES.c.id, OUTCOMES.c.number)
    )
    cases = 0
    for case_id, group in groupby(_rows(connection, with_outcomes), lambda row: row["id"]):
        cases, rows = cases + 1, list(group)
        case = rows[0]
        found = [
            {name: row[f"of_outcome_{name}"] for name in _OUTCOME}
            for row in rows
            if row["of_outcome_number"] is not None
        ]
        if recorded.pop(case_id, []) != [case_digest(case).encode()]:
            changed.append(f"case {case_id}")
        current = (None, None)
        if found:
            current = found[-1]["outcome"], found[-1]["recorded"]
        if (
            [outcome_digest(case["salt"], row).encode() for row in found]
            != outcomes.get(case_id, [])
            or len(found) != case["version"]
            or current != (case["outcome"], case["outcome_recorded"])
        ):
            changed.append(f"outcomes of case {case_id}")
    lost = (
        sa.select(OUTCOMES.c.case_id)
        .distinct()
        .where(OUTCOMES.c.case_id.not_in(sa.select(CASES.c.id)))
    )
    changed += [
        f"outcomes of case {case_id}, which is not there"
        for (case_id,) in connection.execute(lost)
        if case_id not in recorded
    ]
    return cases


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[dict[str, Any]]:
    """Rows, some at a time."""
    result = connection.execute(query, execution_options={"yield_per": _AT_A_TIME})
    for row in result.mappings():
        yield dict(row)


def _link(before: str, row: Mapping[str, Any]) -> str:
    return _digest([before, *(row[name] for name in _LINK_FIELDS)])


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode("ascii")).hexdigest()
