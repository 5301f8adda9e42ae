"""The examples in deploy/: nginx in front of the service for real, the others as far as parsed."""

from __future__ import annotations

import configparser
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from adacos.cli.app import app
from adacos.service.app import create_app
from adacos.service.settings import Settings
from tests.service.conftest import TestClient
from tests.service.running import running, until

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "adacos.example.org"


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    return found or pytest.skip(f"{name} is not installed")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def certificate(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*command, "-subj", f"/CN={NAME}"], check=True, capture_output=True)


def through(port: int, source: str = "127.0.0.1") -> ssl.SSLSocket:
    """A connection through TLS, under the name of the example."""
    context = ssl._create_unverified_context()
    plain = socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))
    return context.wrap_socket(plain, server_hostname=NAME)


class Server:
    """nginx with the example, on other ports and with a certificate of the test."""

    def __init__(self, folder: Path, upstream: int) -> None:
        nginx, self.port = program("nginx"), free_port()
        certificate(folder)
        text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
        text = text.replace("listen 443", f"listen 127.0.0.1:{self.port}")
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
        text = text.replace("/etc/ssl/adacos/", f"{folder}/")
        paths = "".join(
            f"{kind}_temp_path {folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        whole = folder / "whole.conf"
        whole.write_text(
            f"pid {folder}/pid;\ndaemon off;\nmaster_process off;\nerror_log {folder}/errors;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{paths}{text}\n}}\n"
        )
        subprocess.run([nginx, "-t", "-c", whole], check=True, capture_output=True)
        self._process = subprocess.Popen([nginx, "-c", whole])
        assert until(self._listens)

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, path: str, headers: dict[str, str]) -> int:
        """The status of an answer."""
        with through(self.port) as one:
            sent = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n{sent}\r\n".encode())
            return int(one.recv(4096).split()[1])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


def test_nginx_before_the_service(model, tmp_path):
    with running(model, hosts=[NAME], proxies=["127.0.0.1"]) as service:
        nginx = Server(tmp_path, service.port)
        try:
            assert nginx.ask("/v1/model", {}) == 200
            assert nginx.ask("/v1/model", {"Origin": f"https://{NAME}"}) == 200
            assert nginx.ask("/v1/model", {"Origin": "https://attacker.example"}) == 403
            assert nginx.ask("/metrics", {}) == 403
            assert nginx.ask("/v1/health", {"X": "a" * 40_000}) == 400
        finally:
            nginx.stop()


def step(port: int, body: bytes, source: str) -> ssl.SSLSocket:
    """A request for a step of which so much of the body is sent."""
    one = through(port, source)
    head = f"POST /v1/step HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n"
    one.sendall(head.encode() + b"Content-Length: 2\r\n\r\n" + body)
    return one


def others_are_answered(port: int, copies: int) -> None:
    """Bodies of which the end does not come keep nobody else from an answer."""
    held = [step(port, b"{", "127.0.0.1") for _ in range(copies)]
    try:
        with step(port, b"{}", "127.0.0.2") as one:
            assert b" 200 " in one.recv(4096)[:20]
        with through(port, "127.0.0.2") as one:
            one.sendall(f"GET /v1/health HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            assert b" 200 " in one.recv(4096)[:20]
    finally:
        for one in held:
            one.close()


def test_a_backend_that_is_listed_is_not_counted_as_one_client(model, tmp_path, monkeypatch):
    listed = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    listed = listed.replace("# 192.0.2.10 1;", "127.0.0.1 1;")
    (tmp_path / "nginx.conf").write_text(listed, encoding="utf-8")
    monkeypatch.setattr("tests.service.test_deploy.DEPLOY", tmp_path)
    with running(model, hosts=[NAME], proxies=["127.0.0.1"]) as service:
        nginx = Server(tmp_path, service.port)
        try:
            held = [step(nginx.port, b"{", "127.0.0.1") for _ in range(24)]
            with step(nginx.port, b"{}", "127.0.0.1") as one:
                assert b" 200 " in one.recv(4096)[:20]
            for one in held:
                one.close()
        finally:
            nginx.stop()


def test_the_unit_of_the_documentation_can_be_enabled():
    page = DEPLOY.parent / "docs" / "howto-secure.md"
    (shown,) = re.findall(r"```ini\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert shown == (DEPLOY / "adacos.service").read_text(encoding="utf-8")
    sections = configparser.ConfigParser(strict=False)
    sections.read_string(shown)
    assert sections["Install"]["WantedBy"] == "multi-user.target"
    assert sections["Service"]["Restart"] == "always"


UNITS = ("adacos.service", "adacos-monitor.service", "adacos-monitor.timer")


def test_the_units_are_valid(tmp_path):
    """As systemd reads them, with a program that is there; what they call are commands of ours."""
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        for called in re.findall(r"^ExecStart=/opt/adacos/bin/adacos (.*)$", text, re.MULTILINE):
            command, *words = called.split()
            get_command(app).commands[command].make_context(command, words)
        (tmp_path / name).write_text(text.replace("/opt/adacos/bin/adacos", "/bin/true"))
    command = [program("systemd-analyze"), "verify", *(str(tmp_path / name) for name in UNITS)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_alerts_ask_for_what_the_metrics_have(pima, tmp_path):
    yaml = pytest.importorskip("yaml")
    settings = Settings(case_log=f"sqlite:///{tmp_path}/cases.db")
    client = TestClient(create_app(pima[1], settings))
    client.post("/v1/cases", json={"known": dict(pima[0].X.iloc[0]), "id": "d"})
    assert client.post("/v1/cases/d/outcome", json={"outcome": 0}).status_code == 200
    names, labels = set(), set()
    for line in client.get("/metrics").text.splitlines():
        name, _, rest = line.partition(" ")[0].partition("{")
        names.add(name)
        labels |= {(name, pair) for pair in re.findall(r'\w+="[^"]*"', rest)}
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) == 8
    for rule in group["rules"]:
        assert rule["annotations"]["summary"].endswith(".")
        expression = rule["expr"]
        assert expression.count("(") == expression.count(")")
        for name, inside in re.findall(r"\b(adacos_\w+)(?:{([^}]*)})?", expression):
            assert name in names
            assert all((name, pair) in labels for pair in inside.split(",") if pair)


def test_the_image_is_restarted_by_health_and_not_by_readiness():
    (check,) = re.findall(r"HEALTHCHECK.*\n.*", (DEPLOY / "Dockerfile").read_text())
    assert "/v1/health" in check
    assert "/v1/ready" not in check


def test_slow_bodies_through_nginx(model, tmp_path):
    with running(model, hosts=[NAME], proxies=["127.0.0.1"]) as service:
        nginx = Server(tmp_path, service.port)
        try:
            others_are_answered(nginx.port, 15)
            # More than the example allows one address are told so, in JSON.
            held = [step(nginx.port, b"{", "127.0.0.1") for _ in range(21)]
            assert b" 429 " in held[-1].recv(4096)[:20]
            for one in held:
                one.close()
        finally:
            nginx.stop()


def test_slow_bodies_through_caddy(model, tmp_path):
    caddy, port = program("caddy"), free_port()
    certificate(tmp_path)
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    options = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port {port}\n"
    text = text.replace("{\n", options, 1)
    files = f"{tmp_path}/fullchain.pem {tmp_path}/privkey.pem"
    text = text.replace(f"{NAME} {{\n", f"{NAME}:{port} {{\n\ttls {files}\n", 1)
    with running(model, hosts=[NAME, f"{NAME}:{port}"], proxies=["127.0.0.1"]) as service:
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
        (tmp_path / "Caddyfile").write_text(text)
        command = [caddy, "run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"]
        started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:

            def listens() -> bool:
                with socket.socket() as one:
                    return one.connect_ex(("127.0.0.1", port)) == 0

            assert until(listens, 20)
            others_are_answered(port, 140)
        finally:
            started.terminate()
            started.wait(10)


def test_the_caddyfile_is_valid():
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config"]
    subprocess.run([*command, str(DEPLOY / "Caddyfile")], check=True, capture_output=True)


def test_the_container_is_not_root_and_names_its_base():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.M)
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", bases[0])
    # Every package is checked by its hash, or comes from the source.
    installs = re.findall(r"pip install (.*?)(?: \\|$)", text, re.M)
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)
    last = text[text.rindex("\nFROM ") :]
    assert re.search(r"^USER [1-9]\d*$", last, re.M)
    assert "HEALTHCHECK" in last
    assert last.index("USER") < last.index("ENTRYPOINT")
    # What it copies is there.
    root = DEPLOY.parent
    for sources in re.findall(r"^COPY ((?!--from).*) \S+$", text, re.M):
        assert all((root / source).exists() for source in sources.split())
