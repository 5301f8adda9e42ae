"""The examples in deploy/: nginx in front of the service for real, the others as far as parsed."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

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
        """The status of an answer through TLS, under the name of the example."""
        context = ssl._create_unverified_context()
        sent = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        plain = socket.create_connection(("127.0.0.1", self.port), 10)
        with context.wrap_socket(plain, server_hostname=NAME) as one:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n{sent}\r\n".encode())
            return int(one.recv(4096).split()[1])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


def test_nginx_in_front_of_the_service(model, tmp_path):
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


def test_the_caddyfile_is_valid():
    command = [program("caddy"), "validate", "--adapter", "caddyfile", "--config"]
    subprocess.run([*command, str(DEPLOY / "Caddyfile")], check=True, capture_output=True)


def test_the_container_is_not_root_and_names_its_base():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.M)
    assert all(":" in base and not base.endswith(":latest") for base in bases)
    last = text[text.rindex("\nFROM ") :]
    assert re.search(r"^USER [1-9]\d*$", last, re.M)
    assert "HEALTHCHECK" in last
    assert last.index("USER") < last.index("ENTRYPOINT")
    # What it copies is there.
    root = DEPLOY.parent
    for sources in re.findall(r"^COPY ((?!--from).*) \S+$", text, re.M):
        assert all((root / source).exists() for source in sources.split())
