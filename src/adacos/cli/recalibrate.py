"""`adacos recalibrate`: a model for a place where classes occur with other shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    pairs,
    plain_console,
    print_json,
    say,
)
from adacos.exceptions import InvalidInputError
from adacos.tables.writing import check_output, refuse_same_file
from adacos.validation import choices

if TYPE_CHECKING:
    from adacos.policies.base import BasePolicy


def recalibrate(
    model: Model,
    out: Annotated[Path, typer.Option(help="Model file to write.")],
    prevalence: Annotated[
        list[str] | None,
        typer.Option(
            help="Share of the positive class among the rows to come, such as 0.02; with three or "
            "more classes CLASS=SHARE for each."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Local rows with their classes instead, CSV or Parquet.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column of these with the class.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Adapt a model to another prevalence.

    Or to the outcomes of local rows. Nothing is fitted again, and the model itself stays as it is.
    A recall certificate does not pass on to the new model.

    Example:

        adacos recalibrate model.adacos --prevalence 0.02 --out here.adacos
    """
    from adacos.card import model_card
    from adacos.cli.held_out import read_held_out
    from adacos.cli.info import show
    from adacos.persistence import file_sha256, save

    if (prevalence is None) == (data is None):
        raise InvalidInputError(
            "--prevalence",
            "must be given, or --data with --target, and not both",
            " ".join(prevalence or ()),
            "For example --prevalence 0.02.",
        )
    if (data is None) != (target is None):
        rule = "must be given with --data, and not without"
        raise InvalidInputError("--target", rule, target, "It is the column with the class.")
    check_output(out, "--out")
    refuse_same_file(out, [model] if data is None else [model, data])
    policy = load_policy(model, expect_sha256)
    if data is None:
        assert prevalence is not None
        moved = policy.recalibrate(prevalence=_shares(policy, prevalence))
    else:
        assert target is not None
        given = data, target, positive, skip_malformed, encoding, decimal, as_json
        table, y, _ = read_held_out(policy, *given)
        moved = policy.recalibrate(table, y)
    save(moved, out)
    if policy.certificate_ is not None:
        say("The certificate of the model does not hold for the new one, which has none.", err=True)
    if as_json:
        card, digest = model_card(moved), file_sha256(out)
        print_json({"model": str(out), "sha256": digest, "card": card})
        return
    show(moved, plain_console())
    say(f"{out} written\nSHA-256 {file_sha256(out)}")


def _shares(policy: BasePolicy, given: list[str]) -> float | dict[Any, float]:
    """The share of the positive class, or of each class by name."""
    if len(given) == 1 and "=" not in given[0]:
        return _number(given[0])
    known = {str(label): label for label in policy.classes_.tolist()}
    example = ",".join(f"{name}=0.1" for name in known)
    named = pairs(given, list(known), "--prevalence", example)
    if unknown := set(named) - set(known):
        remedy = choices(unknown, list(known), "The classes are")
        raise InvalidInputError("--prevalence", "must name classes", " ".join(unknown), remedy)
    return {known[name]: _number(share) for name, share in named.items()}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        rule, remedy = "must be a share between 0 and 1", "For example --prevalence 0.02."
        if text.endswith("%") and text[:-1].replace(".", "", 1).isdigit():
            remedy = f"Did you mean {float(text[:-1]) / 100:g}?"
        raise InvalidInputError("--prevalence", rule, text, remedy) from None
