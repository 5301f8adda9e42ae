"""`adacos export`: a policy that decides without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import ExpectSha256, Model, load_policy, say
from adacos.exceptions import InvalidInputError
from adacos.exports import export as write


def export(
    model: Model,
    out: Annotated[
        Path, typer.Option(help="File to write: .json for programs, .html for people.")
    ] = Path("policy.html"),
    expect_sha256: ExpectSha256 = None,
) -> None:
    """Write a policy that decides without Python.

    A page that holds consultations offline, or JSON for the evaluator in
    JavaScript. AdaCOS of two classes; COS, Full Model and protocols of any.

    Example:

        adacos export model.adacos --out policy.html
    """
    policy = load_policy(model, expect_sha256)
    try:
        write(policy, out)
    except InvalidInputError as error:
        names = {"path": "--out", "policy": "model"}
        raise InvalidInputError(
            names.get(error.parameter, error.parameter), error.rule, error.value, error.remedy
        ) from None
    say(f"{out} written: {out.stat().st_size / 1000:,.0f} kB")
