"""Costs from the command line: a TOML or CSV price list, NAME=COST pairs, panels."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from adacos.cli.common import pairs
from adacos.exceptions import InvalidInputError
from adacos.tables.cells import csv_rows, number
from adacos.tables.reading import choices, listed

_EXAMPLE = "For example [prices] with lines Glucose = 17.61, or --prices Glucose=17.61."
_PANEL = "For example --panel blood=2.10:Glucose,Insulin."


class PriceList(NamedTuple):
    """Covariate costs, panels and what a price file says about errors."""

    prices: dict[str, float]
    panels: dict[str, tuple[float, list[str]]]
    errors: dict[str, float]


def read_prices(items: Sequence[str], panels: Sequence[str], columns: Sequence[str]) -> PriceList:
    """Prices of these columns from files and pairs, a later one replacing an earlier one."""
    found = PriceList({}, {}, {})
    for item in items:
        if "=" in item and not Path(item).is_file():
            example = f"--prices {quote(f'{columns[0]}=17.61')}"
            given = pairs([item], columns, "--prices", example)
            found.prices.update({name: _cost(text, name) for name, text in given.items()})
        elif not Path(item).is_file():
            raise InvalidInputError(
                "--prices", "must be a file or NAME=COST", item, "Check the path."
            )
        elif Path(item).suffix.lower() == ".toml":
            _add_toml(Path(item), found)
        else:
            found.prices.update(_read_csv(Path(item)))
    for text in panels:
        title, sign, content = text.partition("=")
        amount, colon, members = content.partition(":")
        if not (title and sign and colon):
            raise InvalidInputError("--panel", "must be NAME=SHARED:MEMBER,MEMBER", text, _PANEL)
        found.panels[title] = _cost(amount, title, _PANEL), _members(members, columns)
    _check_names("--prices", "every price must be that of a covariate", found.prices, columns)
    for title, (_, named) in found.panels.items():
        _check_names(f"panel {title!r}", "its members must be covariates", named, columns)
    return found


def _members(text: str, columns: Sequence[str]) -> list[str]:
    """Names separated by commas, which a name may hold itself."""
    found = []
    while text := text.strip():
        named = [c for c in columns if re.match(rf"{re.escape(c)}\s*(,|$)", text)]
        name = max(named, key=len, default=text.partition(",")[0])
        found.append(name.strip())
        text = text[len(name) :].lstrip().removeprefix(",")
    return found


def _check_names(parameter: str, rule: str, given: Iterable[str], columns: Sequence[str]) -> None:
    unknown = [name for name in given if name not in columns]
    if unknown:
        raise InvalidInputError(
            parameter, rule, listed(unknown), choices(unknown, columns, "They are")
        )


def _add_toml(path: Path, found: PriceList) -> None:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(path.name, "must be TOML", str(error), _EXAMPLE) from error
    unknown = sorted(set(content) - {"prices", "panels", "errors"})
    if unknown or not isinstance(content.get("prices"), dict):
        raise InvalidInputError(
            path.name,
            "must have a table [prices], and may have [panels.NAME] and [errors]",
            unknown or list(content),
            _EXAMPLE,
        )
    found.prices.update({name: _cost(cost, name) for name, cost in content["prices"].items()})
    for title, panel in content.get("panels", {}).items():
        if not isinstance(panel, dict) or set(panel) != {"shared", "members"}:
            raise InvalidInputError(
                f"{path.name} [panels.{title}]",
                "must hold shared and members",
                panel,
                'For example shared = 2.10 and members = ["Glucose", "Insulin"].',
            )
        found.panels[title] = _cost(panel["shared"], title), list(panel["members"])
    errors = content.get("errors", {})
    unknown = sorted(set(errors) - {"false_positive", "false_negative"})
    if unknown:
        raise InvalidInputError(
            f"{path.name} [errors]",
            "may hold false_positive and false_negative",
            unknown,
            "Remove the others.",
        )
    found.errors.update({name: _cost(cost, name) for name, cost in errors.items()})


def _read_csv(path: Path) -> dict[str, float]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(path.name, "must be UTF-8 text", str(error), _EXAMPLE) from error
    found: dict[str, float] = {}
    for cells, line, fault in csv_rows(text.splitlines(keepends=True), path.name):
        priced = len(cells) == 2 and _is_number(cells[1])
        if line == 1 and not priced and not fault:
            continue
        if not priced or cells[0].strip() in found:
            raise InvalidInputError(
                path.name,
                f"line {line} must hold a covariate and its cost, each covariate once",
                fault or cells,
                "For example Glucose,17.61.",
            )
        found[cells[0].strip()] = float(cells[1])
    return found


def _cost(value: Any, name: str, example: str = _EXAMPLE) -> float:
    if isinstance(value, bool) or not _is_number(value):
        raise InvalidInputError(f"cost of {name!r}", "must be a number", value, example)
    return float(value)


def _is_number(value: Any) -> bool:
    found = number(value) if isinstance(value, str | int | float) else None
    return found is not None and not isnan(found)
