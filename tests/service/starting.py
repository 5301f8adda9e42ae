"""The command `serve` as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def start(model: Path, *options: str, **environment: str):
    command = [sys.executable, "-m", "adacos.cli.app", "serve", str(model), "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    line = process.stdout.readline()
    return process, json.loads(line) if line else {}
