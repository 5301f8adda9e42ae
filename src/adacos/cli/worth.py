"""`adacos worth`: what each covariate is worth, and what a new test may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adacos.cli.common import (
    Decimal,
    Encoding,
    ExpectSha256,
    HeldOutGroups,
    Json,
    Model,
    SkipMalformed,
    load_policy,
    print_json,
    progress,
    say,
)
from adacos.exceptions import InvalidInputError
from adacos.tables.cells import number


def worth(
    model: Model,
    data: Annotated[Path, typer.Option(help="Held-out rows, CSV or Parquet.")],
    target: Annotated[str, typer.Option(help="Column with the class.")],
    new_test: Annotated[
        str | None,
        typer.Option(
            metavar="SENSITIVITY:SPECIFICITY",
            help="Show in place of the covariates what a new test of this accuracy may cost, such "
            "as 0.95:0.9. It is offered where the policy stops.",
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Positive class, as given to `adacos fit`.")
    ] = None,
    groups: HeldOutGroups = None,
    skip_malformed: SkipMalformed = False,
    encoding: Encoding = "utf-8-sig",
    decimal: Decimal = ".",
    expect_sha256: ExpectSha256 = None,
    as_json: Json = False,
) -> None:
    """Show what each covariate is worth.

    What it saves at its price, what dropping it costs, and the highest
    price at which it is acquired. The rows should not have been used for
    fitting.

    Example:

        adacos worth model.adacos --data held_out.csv --target diabetes
    """
    from adacos.cli.held_out import read_held_out
    from adacos.policies.worth import NewTest, Worth, covariate_worth, new_test_worth

    policy = load_policy(model, expect_sha256)
    accuracy = None if new_test is None else _accuracy(new_test, decimal)
    table, y, own = read_held_out(
        policy, data, target, positive, skip_malformed, encoding, decimal, as_json, groups
    )
    with progress("deciding without each covariate", as_json):
        if accuracy is None:
            found: Worth | NewTest = covariate_worth(policy, table, y, groups=own)
        else:
            sensitivity, specificity = accuracy
            found = new_test_worth(
                policy, table, y, sensitivity=sensitivity, specificity=specificity, groups=own
            )
    if as_json:
        print_json(found.to_dict())
    else:
        say(str(found))


def _accuracy(text: str, decimal: str) -> tuple[float, float]:
    """Sensitivity and specificity."""
    shares = [number(part, decimal) for part in text.split(":")]
    if len(shares) != 2 or shares[0] is None or shares[1] is None:
        rule = "must be SENSITIVITY:SPECIFICITY"
        raise InvalidInputError("--new-test", rule, text, "For example --new-test 0.95:0.9.")
    return shares[0], shares[1]
