"""`adacos serve`: a model behind HTTP, with a web page."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adacos.cli.common import ExpectSha256, Json, Model, load_policy
from adacos.cli.start import hold_hangup, reloads
from adacos.exceptions import InvalidInputError, MissingExtraError
from adacos.tables.description import describe

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy
    from adacos.service.settings import Settings


Host = Annotated[str, typer.Option(help="Address to listen on; by default this machine only.")]
Port = Annotated[int, typer.Option(help="Port; 0 for any free one.", min=0, max=65535)]
Workers = Annotated[int, typer.Option(help="Processes that answer.", min=1)]
CaseLogUrl = Annotated[
    str | None,
    typer.Option(
        envvar="ADACOS_CASE_LOG",
        help="Record finished consultations in this database, such as sqlite:///cases.db. "
        "A URL with a password belongs in the environment.",
        show_envvar=True,
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        envvar="ADACOS_API_KEY",
        help="Key that clients must send; better set in the environment.",
        show_envvar=True,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="TOML file of named keys with roles; read again on SIGHUP."),
]
WithoutKey = Annotated[
    bool,
    typer.Option(
        "--without-key", help="Serve other machines without a key (a proxy checks access)."
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(help="Name under which clients reach the service; may be repeated."),
]
TrustProxy = Annotated[
    list[str] | None,
    typer.Option(help="Address of a proxy whose X-Forwarded-For is believed; may be repeated."),
]
Earlier = Annotated[
    list[Path] | None,
    typer.Option(help="Model served before, whose consultations continue; may be repeated."),
]
DescriptionFile = Annotated[
    Path | None,
    typer.Option("--describe", help="Description in place of the model's own (TOML)."),
]
MaxBody = Annotated[int, typer.Option(help="Longest request in bytes.", min=1)]
MaxRows = Annotated[int, typer.Option(help="Most rows in one score request.", min=1)]
RateLimit = Annotated[
    float, typer.Option(help="Requests per second and client address; 0 for no limit.", min=0)
]


def serve(
    context: typer.Context,
    model: Model,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    workers: Workers = 1,
    case_log: CaseLogUrl = None,
    api_key: ApiKey = None,
    keys: KeyFile = None,
    without_key: WithoutKey = False,
    allow_host: AllowHost = None,
    trust_proxy: TrustProxy = None,
    description: DescriptionFile = None,
    earlier: Earlier = None,
    max_body: MaxBody = 1 << 20,
    max_rows: MaxRows = 10_000,
    rate_limit: RateLimit = 2000.0,
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Serve a model over HTTP and as a web page.

    Example: adacos serve model.adacos --case-log sqlite:///cases.db
    """
    reloading = reloads()
    if reloading:
        hold_hangup()
    need_service()
    from adacos.service.keys import read_keys
    from adacos.service.server import is_loopback, serve
    from adacos.service.settings import Settings

    _check_key()
    if case_log is not None:
        check_case_log(context, "case_log", case_log)
    if not is_loopback(host) and api_key is None and keys is None and not without_key:
        raise InvalidInputError(
            "host",
            "a key is needed where other machines can reach the service",
            host,
            "Set ADACOS_API_KEY or give --keys, or pass --without-key if a proxy in front checks "
            "access.",
        )

    def chosen() -> tuple[BasePolicy, Settings]:
        policy = load_policy(model, expect_sha256)
        if description is not None:
            describe(policy, description)
        settings = Settings(
            case_log=case_log,
            api_key=api_key,
            keys=() if keys is None else read_keys(keys),
            hosts=(host, *(allow_host or ())),
            proxies=tuple(trust_proxy or ()),
            max_body_bytes=max_body,
            max_rows=max_rows,
            rate_limit=rate_limit,
        )
        return policy, settings

    def ready(url: str) -> None:
        if as_json:
            typer.echo(json.dumps({"url": url, "workers": workers}))
        else:
            typer.echo(f"adacos answers at {url} (Ctrl-C ends it)")

    reload = chosen if reloading else None
    code = serve(
        *chosen(),
        host=host,
        port=port,
        workers=workers,
        ready=ready,
        reload=reload,
        earlier=[load_policy(path) for path in earlier or ()],
    )
    # The process is ending: a second Ctrl-C has nothing left to interrupt.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code:
        raise typer.Exit(code)


def need_service() -> None:
    """Say which extra is needed where the parts of the service are not installed."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "service") from error


def _check_key() -> None:
    if os.environ.get("ADACOS_API_KEY", "set").strip() == "":
        raise InvalidInputError(
            "ADACOS_API_KEY",
            "must hold a key if it is set",
            "an empty or blank one",
            'Set it with export ADACOS_API_KEY="$(openssl rand -hex 32)", or unset it.',
        )


def check_case_log(context: typer.Context, parameter: str, case_log: str) -> None:
    """Refuse a password where every user of the machine can read it."""
    from adacos.service.database import has_secret

    source = context.get_parameter_source(parameter)
    if source is not None and source.name == "COMMANDLINE" and has_secret(case_log):
        raise InvalidInputError(
            parameter,
            "must not hold a password on the command line, where other users can read it",
            "a URL with a password",
            "Set ADACOS_CASE_LOG in the environment instead.",
        )
