"""`adacos restrict`: a model that always asks some covariates, and never others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import (
    ExpectSha256,
    Json,
    Model,
    load_policy,
    plain_console,
    print_json,
    say,
)
from adacos.cli.table_columns import split_names
from adacos.exceptions import InvalidInputError
from adacos.tables.writing import check_output, refuse_same_file


def restrict(
    model: Model,
    out: Annotated[Path, typer.Option(help="Model file to write.")],
    must: Annotated[
        list[str] | None, typer.Option(help="Ask these covariates first, of every row: a,b.")
    ] = None,
    never: Annotated[
        list[str] | None, typer.Option(help="Ask these covariates of no row: a,b.")
    ] = None,
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Ask some covariates always, and others never.

    Nothing is fitted again, and the model itself stays as it is. A recall certificate does not pass
    on to the new model. `adacos ask` takes the same lists for one case.

    Example:

        adacos restrict model.adacos --must Age --never Insulin --out here.adacos
    """
    from adacos.card import model_card
    from adacos.cli.info import show
    from adacos.persistence import file_sha256, save

    if must is None and never is None:
        example = "For example --never Insulin."
        raise InvalidInputError("--must or --never", "must be given", None, example)
    check_output(out, "--out")
    refuse_same_file(out, [model])
    policy = load_policy(model, expect_sha256)
    names = policy.encoder_.names
    asked, excluded = (split_names(given or (), names) for given in (must, never))
    found = policy.restrict(must=asked, never=excluded)
    save(found, out)
    if policy.certificate_ is not None:
        say("The certificate of the model does not hold for the new one, which has none.", err=True)
    if as_json:
        card, digest = model_card(found), file_sha256(out)
        print_json({"model": str(out), "sha256": digest, "card": card})
        return
    show(found, plain_console())
    say(f"{out} written\nSHA-256 {file_sha256(out)}")
