"""The pages about the service hold: their requests are answered, and as the pages show."""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adacos import load
from adacos.cli.app import app
from adacos.service.app import create_app
from adacos.service.settings import Settings
from tests.service.conftest import TestClient

DOCS = Path(__file__).parents[2] / "docs"
# The tutorial, then what corrects its case; last the page that shows how a request is refused.
PAGES = ("tutorial-operator.md", "howto-monitor.md", "http.md")
PAGE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(language, text.replace("\\\n", " ")) for language, text in FENCE.findall(PAGE)]


def lines(program: str) -> list[list[str]]:
    """Commands of the page that call a program, each as its words."""
    shell = [line for language, text in BLOCKS if not language for line in text.splitlines()]
    return [shlex.split(line, comments=True) for line in shell if line.startswith(program + " ")]


def shown(start: str) -> dict[str, Any]:
    """The JSON that the pages show, by how it begins."""
    (text,) = [text for language, text in BLOCKS if language == "json" and text.startswith(start)]
    return dict(json.loads(text))


def agrees(shown: Any, answer: Any) -> bool:
    """Whether an answer holds all that is shown of it, numbers to the places that are shown."""
    if isinstance(shown, dict):
        return all(key in answer and agrees(value, answer[key]) for key, value in shown.items())
    if isinstance(shown, list):
        return len(shown) == len(answer) and all(map(agrees, shown, answer))
    if isinstance(shown, float):
        places = len(repr(shown).partition(".")[2])
        return abs(shown - answer) <= 0.51 * 10.0**-places
    return bool(shown == answer)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The service of the tutorial: its model, fitted by its commands, and its case log."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in lines("adacos"):
            if words[1] in ("datasets", "fit"):
                done = CliRunner().invoke(app, words[1:])
                assert done.exit_code == 0, (words, done.output)
    settings = Settings(case_log=f"sqlite:///{folder}/cases.db", rate_limit=0)
    return TestClient(create_app(load(folder / "model.adacos"), settings))


def test_a_number_agrees_to_the_places_shown() -> None:
    assert agrees({"a": [0.43]}, {"a": [0.4331], "b": 1})
    assert not agrees({"a": [0.43]}, {"a": [0.4381]})
    assert not agrees({"b": 1}, {"a": 1})


def test_requests_are_answered_as_shown(client) -> None:
    """The block after a request is the answer, or a part of it."""
    compared = 0
    for (language, text), (following, answered) in pairwise([*BLOCKS, ("", "")]):
        if language or not text.startswith("curl "):
            continue
        words = shlex.split(text)
        path = words[1].removeprefix("http://127.0.0.1:8000")
        if "-d" in words:
            pairs = [words[k + 1].split(": ", 1) for k, word in enumerate(words) if word == "-H"]
            body = words[words.index("-d") + 1]
            answer = client.post(path, content=body, headers=dict(pairs))
        else:
            answer = client.get(path)
        assert answer.is_success, (path, answer.text)
        assert path != "/v1/cases" or answer.status_code == 201
        if following == "json" and answered.startswith("{"):
            assert agrees(json.loads(answered), answer.json()), answer.text
            compared += 1
    assert compared == 5


def test_the_certificate_that_is_explained_is_that_of_the_model(client) -> None:
    page = (DOCS / "certificate.md").read_text(encoding="utf-8")
    ((_, text),) = FENCE.findall(page)
    certificate = client.get("/v1/model").json()["certificate"]
    assert text.split() == certificate["text"].split()


def test_a_wrong_request_is_refused_as_shown(client) -> None:
    answer = client.post("/v1/step", json={"known": {"Age": "thirty"}})
    assert answer.status_code == 422
    assert agrees(shown('{"detail"'), answer.json()), answer.text
