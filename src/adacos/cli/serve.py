"""`adacos serve`: a model behind HTTP, with a web page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import ExpectSha256, Json, Model, load_policy
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.description import describe


def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any free one.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1)] = 1,
    case_log: Annotated[
        str | None,
        typer.Option(
            help="Record finished consultations in this database, such as sqlite:///cases.db."
        ),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="ADACOS_API_KEY",
            help="Key that clients must send; better set in the environment.",
            show_envvar=True,
        ),
    ] = None,
    without_key: Annotated[
        bool,
        typer.Option(
            "--without-key", help="Serve other machines without a key (a proxy checks access)."
        ),
    ] = False,
    description: Annotated[
        Path | None,
        typer.Option("--describe", help="Description in place of the model's own (TOML)."),
    ] = None,
    max_body: Annotated[int, typer.Option(help="Longest request in bytes.", min=1)] = 1 << 20,
    max_rows: Annotated[int, typer.Option(help="Most rows in one score request.", min=1)] = 10_000,
    rate_limit: Annotated[
        float, typer.Option(help="Requests per second and client address; 0 for no limit.", min=0)
    ] = 2000.0,
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Serve a model over HTTP, with a web page for consultations.

    Example: adacos serve model.adacos --case-log sqlite:///cases.db
    """
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "service") from error
    from adacos.service.server import is_loopback, serve
    from adacos.service.settings import Settings

    if not is_loopback(host) and api_key is None and not without_key:
        raise InvalidInputError(
            "host",
            "a key is needed where other machines can reach the service",
            host,
            "Set ADACOS_API_KEY, or pass --without-key if a proxy in front checks access.",
        )
    policy = load_policy(model, expect_sha256)
    if description is not None:
        describe(policy, description)
    settings = Settings(
        case_log=case_log,
        api_key=api_key,
        max_body_bytes=max_body,
        max_rows=max_rows,
        rate_limit=rate_limit,
    )

    def ready(url: str) -> None:
        if as_json:
            typer.echo(json.dumps({"url": url, "workers": workers}))
        else:
            typer.echo(f"adacos answers at {url} (Ctrl-C ends it)")

    code = serve(policy, settings, host=host, port=port, workers=workers, ready=ready)
    if code:
        raise typer.Exit(code)
