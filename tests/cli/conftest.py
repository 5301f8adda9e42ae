"""How the tests run a command."""

from __future__ import annotations

import sys

import pytest

from adacos.cli import app as cli


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process; returns exit code, output and errors."""

    def call(*arguments: object, answers: str = "") -> tuple[int, str, str]:
        lines = iter(answers.splitlines())

        def answer(prompt: str = "") -> str:
            try:
                return next(lines)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr("builtins.input", answer)
        monkeypatch.setattr(sys, "argv", ["adacos", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(stopped.value.code or 0), out, err

    return call
