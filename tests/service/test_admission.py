"""Who is let in: hosts, sites, keys and roles, addresses; and what every answer carries."""

from __future__ import annotations

import hashlib
import json
import logging
import signal

import pytest

from adacos.service.app import create_app
from adacos.service.guard import Guard
from adacos.service.keys import read_keys
from adacos.service.logs import JsonLines
from adacos.service.places import Places
from adacos.service.rate import network_of
from adacos.service.settings import Settings
from tests.service.conftest import TestClient
from tests.service.running import ask, running, until
from tests.service.starting import start

WARD, WATCH = "ward-key-0123456789", "watch-key-0123456789"


@pytest.fixture
def keyring(tmp_path):
    path = tmp_path / "keys.toml"
    write_keys(path, {"ward-3": (WARD, ["ask", "record"]), "watch": (WATCH, ["metrics"])})
    return path


def write_keys(path, keys) -> None:
    path.write_text(
        "".join(
            f'[{name}]\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"\n'
            f"roles = {json.dumps(roles)}\n"
            for name, (key, roles) in keys.items()
        )
    )
    path.chmod(0o600)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_roles(pima, keyring, tmp_path):
    settings = Settings(keys=read_keys(keyring), case_log=f"sqlite:///{tmp_path}/cases.db")
    client = TestClient(create_app(pima[1], settings))
    case = {"stop": True, "id": "c"}
    for key, method, path, body, status in (
        (WARD, "GET", "/v1/model", None, 200),
        (WARD, "GET", "/openapi.json", None, 200),
        (WARD, "POST", "/v1/step", {}, 200),
        (WARD, "POST", "/v1/cases", case, 201),
        (WARD, "POST", "/v1/cases/c/outcome", {"outcome": 1}, 200),
        (WARD, "GET", "/v1/cases/summary", None, 403),
        (WARD, "GET", "/metrics", None, 403),
        (WATCH, "GET", "/metrics", None, 200),
        (WATCH, "GET", "/v1/model", None, 403),
        (WATCH, "POST", "/v1/cases", case, 403),
        ("no-such-key-0123456789", "GET", "/v1/model", None, 401),
    ):
        answer = client.request(method, path, json=body, headers=bearer(key))
        assert answer.status_code == status, (path, key)
    for path in ("/", "/app.js", "/style.css", "/v1/health", "/v1/ready"):
        assert client.get(path).status_code == 200


def test_keys_are_changed_without_a_restart(model, keyring):
    process, reported = start(model, "--keys", str(keyring))
    url = reported["url"].rstrip("/")
    try:
        assert ask(url, "/v1/model", headers=bearer(WARD))[0] == 200
        write_keys(keyring, {"ward-4": ("another-key-0123456789", ["ask"])})
        process.send_signal(signal.SIGHUP)
        assert until(lambda: ask(url, "/v1/model", headers=bearer(WARD))[0] == 401)
        assert ask(url, "/v1/model", headers=bearer("another-key-0123456789"))[0] == 200
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "ward",
        '[ward]\nsha256 = "abc"\nroles = ["ask"]',
        f'[ward]\nsha256 = "{"0" * 64}"\nroles = ["everything"]',
        f'[ward]\nsha256 = "{"0" * 64}"\nroles = []',
        f'[ward]\nsha256 = "{"0" * 64}"',
        f'["a b"]\nsha256 = "{"0" * 64}"\nroles = ["ask"]',
        '[ward]\nkey = "hush-0123456789abcdef"\nroles = ["ask"]',
    ],
)
def test_wrong_key_files(tmp_path, content):
    path = tmp_path / "keys.toml"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ValueError, match="keys") as refused:
        read_keys(path)
    assert "hush" not in str(refused.value)


def test_a_key_file_that_others_can_write_is_refused(keyring):
    keyring.chmod(0o622)
    with pytest.raises(ValueError, match="chmod go-w"):
        read_keys(keyring)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("10.1.2.3", 200),
        ("adacos.example.org", 200),
        ("attacker.example", 421),
        ("localhost.attacker.example", 421),
        ("127.0.0.1.attacker.example", 421),
        ("", 421),
    ],
)
def test_hosts(pima, host, status):
    client = TestClient(create_app(pima[1], Settings(hosts=("adacos.example.org",))))
    assert client.get("/v1/model", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "https://localhost", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_sites(client, headers, status):
    assert client.post("/v1/step", json={}, headers=headers).status_code == status
    # Following a link to the page is no attack.
    assert client.get("/", headers=headers).status_code == 200


def test_every_answer_has_an_id(client):
    assert client.get("/v1/health", headers={"X-Request-Id": "a.b-c_1"}).headers[
        "x-request-id"
    ] == ("a.b-c_1")
    for given in ("a b", "x" * 65, '"', ""):
        own = client.get("/nothing", headers={"X-Request-Id": given}).headers["x-request-id"]
        assert len(own) == 32
        assert own != given


def test_head(client):
    for path in ("/", "/v1/health", "/v1/ready", "/v1/model", "/openapi.json"):
        got, headed = client.get(path), client.head(path)
        assert headed.status_code == 200
        assert headed.content == b""
        assert headed.headers["content-length"] == got.headers["content-length"]


def test_ready(client, logged):
    assert client.get("/v1/ready").json()["case_log"] == "absent"
    reported = logged.get("/v1/ready")
    assert (reported.status_code, reported.json()["status"]) == (200, "ready")


def test_log_lines_are_json_without_messages_of_errors():
    try:
        raise ValueError("patient is 61.25")
    except ValueError as error:
        record = logging.LogRecord("x", 40, "", 0, "failed", None, (type(error), error, None))
    line = json.loads(JsonLines().format(record))
    assert (line["event"], line["error"], line["level"]) == ("failed", "ValueError", "error")
    assert "61.25" not in str(line)


def test_what_is_one_client():
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("x" * 1000) == network_of("") == b""


@pytest.mark.parametrize(("proxies", "refused"), [([], True), (["127.0.0.1"], False)])
def test_forwarded_addresses_are_believed_from_named_proxies_only(model, proxies, refused):
    with running(model, rate_limit=5, proxies=proxies) as service:
        statuses = [
            ask(service.url, "/v1/health", headers={"X-Forwarded-For": f"10.0.0.{number}"})[0]
            for number in range(30)
        ]
    assert (429 in statuses) == refused


def places_of(client) -> Places:
    guard = client.app.middleware_stack
    while not isinstance(guard, Guard):
        guard = guard.app
    return guard._places


def test_too_many_at_a_time(pima):
    client = TestClient(create_app(pima[1], Settings(max_requests=1)))
    assert client.post("/v1/step", json={}).status_code == 200
    places = places_of(client)
    assert places.take("another client")
    answer = client.post("/v1/step", json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    # Probes and the page are answered all the same.
    for path in ("/v1/health", "/v1/ready", "/"):
        assert client.get(path).status_code == 200
    places.give_back("another client")
    for path in ("/v1/step", "/nosuch"):
        assert client.post(path, json={}).status_code in (200, 404)


def test_too_many_of_one_client_leave_places_for_others():
    places = Places(most=3, each=2)
    assert [places.take("a") for _ in range(3)] == [True, True, False]
    assert [places.take("b") for _ in range(2)] == [True, False]
    places.give_back("a")
    assert places.take("b")
    assert not places.take("a")
