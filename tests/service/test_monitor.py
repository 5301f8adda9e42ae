"""`adacos monitor` and what the summary says of the last weeks, on logs of a known history."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from typer.testing import CliRunner

from adacos.cli.app import app
from adacos.consultation import fingerprint
from adacos.service import case_chain, case_log
from adacos.service.app import create_app
from adacos.service.case_chain import Author
from adacos.service.case_log import Case, CaseLog
from adacos.service.case_tallies import Tally
from adacos.service.drift import watched
from adacos.service.promises import CertifiedRecall, Promises, promises_of
from adacos.service.recent import windows_of
from adacos.service.settings import Settings
from adacos.service.summary import summary
from tests.service.conftest import TestClient
from tests.service.databases import rows_of

FIRST = datetime(2026, 1, 5, tzinfo=UTC)
PROMISES = Promises(
    "0" * 16,
    ["well", "ill"],
    None,
    [[0.0, 10.0], [100.0, 0.0]],
    [CertifiedRecall(1, [1], 0.9)],
    ["a", "kind"],
    {"a": [-2.0, 2.0]},
)


def consultations(weeks: int, shift: float, seed: int = 0):
    """Thirty cases a week; from the middle on values of "a" are others."""
    rng = np.random.default_rng(seed)
    for number in range(30 * weeks):
        moment = (FIRST + timedelta(days=7 * number / 30)).isoformat()
        moved = shift if number >= 15 * weeks else 0.0
        reported = {"acquired": {"a": rng.normal() + moved}, "unavailable": []}
        if number % 3 == 0:
            reported["acquired"]["kind"] = "xyz"[rng.integers(3)]
        if number % 10 == 0:
            reported = {"acquired": {}, "unavailable": ["a"]}
        yield moment, int(rng.random() < 0.3), reported


def test_a_covariate_that_shifts_is_named_with_its_week() -> None:
    found = {one.what: one for one in watched(PROMISES, consultations(20, 1.5))}
    assert list(found) == ["a", "kind", "answer", "number of questions"]
    change = found["a"].change
    assert abs(datetime.fromisoformat(change.since) - FIRST.replace(tzinfo=None)).days in range(
        56, 85
    )
    assert change.after - change.before == pytest.approx(1.5, abs=0.4)
    assert found["a"].cases == 600
    assert found["a"].unavailable == 60
    assert found["a"].outside > 60
    assert all(found[name].change is None for name in list(found)[1:])
    assert all(one.change is None for one in watched(PROMISES, consultations(20, 0.0)))


def test_what_a_person_chose_and_dates_are_not_watched() -> None:
    reported = {"acquired": {"a": "2026-01-05", "kind": "x"}, "unavailable": [], "must": ["kind"]}
    found = {one.what: one for one in watched(PROMISES, [(FIRST.isoformat(), 0, reported)] * 5)}
    assert (found["a"].cases, found["a"].change) == (5, None)
    assert found["kind"].cases == 0
    assert watched(PROMISES, [])[0].cases == 0


def tally(label: int, outcome: int | None, cases: int, week: str, cost: float = 2.0) -> Tally:
    return Tally(label, outcome, "followed", cases, cost * cases, 12.0 * cases, week)


def test_means_of_the_last_weeks_represent_all_cases_of_an_answer() -> None:
    """Of 40 ill, 30 are found; outcomes are known of half the negatives and of all positives."""
    old, new = "2026-01-05", "2026-06-29"
    tallies = [
        *(tally(0, 0, 100, old), tally(1, 1, 10, old)),
        *(tally(1, 1, 30, new), tally(0, 1, 5, new), tally(0, 0, 45, new), tally(0, None, 50, new)),
    ]
    last, _, whole = windows_of(PROMISES, tallies)
    assert (last.weeks, last.since, last.cases, last.with_outcome) == (4, "2026-06-08", 130, 80)
    assert last.recalls["ill"].observed == pytest.approx(30 / 40)
    assert last.recalls["ill"].promised == 0.9
    assert last.total_cost.observed == pytest.approx(2.0 + 100 * 10 / 130)
    assert last.total_cost.promised == pytest.approx(12.0)
    assert (whole.weeks, whole.since, whole.cases) == (None, old, 240)
    unknown = windows_of(PROMISES, [tally(1, 1, 3, new), tally(0, None, 5, new)])[0]
    assert unknown.total_cost.observed is None
    assert unknown.recalls["ill"].observed is None
    assert windows_of(PROMISES, []) == []


def test_a_recall_that_falls_is_noticed_though_few_negatives_are_followed_up() -> None:
    """Counted as they come, 15 found and 1 missed a week look as promised."""
    weeks = [(FIRST + timedelta(weeks=k)).date().isoformat() for k in range(40)]
    tallies = [
        one
        for week in weeks
        for one in (
            *(tally(1, 1, 15, week), tally(0, 1, 1, week), tally(0, 0, 9, week)),
            tally(0, None, 40, week),
        )
    ]
    found = summary(PROMISES, tallies, 0).certified_recall
    assert found.observed > 0.9
    assert found.promise == "broken"
    assert found.change.observed == pytest.approx(15 / 20)
    full = [one for one in tallies if one.outcome is not None]
    assert summary(PROMISES, full, 0).certified_recall.change is None


@pytest.fixture
def log(pima, tmp_path, monkeypatch) -> str:
    """A log of half a year in which Age shifts, of the served model; every outcome is known."""
    url, policy = f"sqlite:///{tmp_path}/cases.db", pima[1]
    TestClient(create_app(policy, Settings(case_log=url)))
    opened, author, rng = CaseLog(url), Author("test", ""), np.random.default_rng(1)
    for number in range(400):
        moment = (FIRST + timedelta(hours=10 * number)).isoformat()
        for module in (case_log, case_chain):
            monkeypatch.setattr(module, "now", lambda moment=moment: moment)
        age = float(rng.uniform(21, 40) + (30 if number > 200 else 0))
        reported = {"known": {}, "acquired": {"Age": age}, "unavailable": []}
        ill = int(rng.random() < 0.1)
        case = Case(str(number), fingerprint(policy), "followed", reported, 0, 0.1, 1.0, 101.0)
        opened.record(case, author)
        opened.set_outcome(str(number), ill, author, None)
    opened.close()
    return url


def test_the_command_names_what_changed_and_ends_with_1(pima, log) -> None:
    done = CliRunner().invoke(app, ["monitor", log])
    assert done.exit_code == 1, done.output
    assert "400 cases, 400 with an outcome" in done.output
    assert "Outcomes are known of 100% of 0 by answer." in done.output
    assert "last 4 weeks, since 2026-05-25" in done.output
    assert "Age: 400 cases, 0 unavailable" in done.output
    (changed,) = [line for line in done.output.splitlines() if line.startswith("CHANGED")]
    assert changed.startswith("CHANGED Age: ")
    reported = json.loads(CliRunner().invoke(app, ["monitor", log, "--json"]).output)
    assert reported["summary"]["windows"][-1]["cases"] == 400
    assert [one["what"] for one in reported["watched"] if one["change"]] == ["Age"]
    looks = rows_of(log, "select request from adacos_audit where action = 'summary'")
    assert looks == [("adacos monitor",)] * 2
    wrong = CliRunner().invoke(app, ["monitor", log, "--model", "f" * 16])
    assert wrong.exit_code != 0
    assert "must be one of the log" in str(wrong.exception)


def test_summary_and_metrics_say_the_same_of_the_last_weeks(pima, log) -> None:
    client = TestClient(create_app(pima[1], Settings(case_log=log)))
    reported = client.get("/v1/cases/summary").json()
    found = summary(promises_of(pima[1]), *CaseLog(log).tallies(fingerprint(pima[1])))
    assert reported == json.loads(json.dumps(found.to_dict()))
    cost = found.windows[0].total_cost
    metrics = client.get("/metrics").text
    labels = 'weeks="4",what="total_cost",value="observed"'
    assert f"adacos_recent{{{labels}}} {cost.observed!r}" in metrics
    assert 'adacos_answers{answer="0",kind="with_outcome"} 400.0' in metrics
    assert 'adacos_changed{what="total_cost"} 0.0' in metrics
