"""Costs from the command line: a TOML or CSV price list, NAME=COST pairs, panels."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from adacos.cli.common import pairs, say
from adacos.costs import Costs
from adacos.exceptions import InvalidInputError
from adacos.policies.base import BasePolicy
from adacos.tables.cells import csv_rows, delimiter_of, number
from adacos.validation import choices, listed, near_file, real

_EXAMPLE = "For example [prices] with lines Glucose = 17.61, or --prices Glucose=17.61."
# 17.61 is a number wherever it stands, 1.234 may be more than a thousand.
_WITH_POINT = re.compile(r"\d+\.\d+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_PANEL = "For example --panel blood=2.10:Glucose,Insulin."


class PriceList(NamedTuple):
    """Covariate costs, panels, and what a price file says about errors and uncertain costs."""

    prices: dict[str, float]
    panels: dict[str, tuple[float, list[str]] | dict[str, float]]
    errors: dict[str, Any]
    uncertain: dict[str, Any]


def read_prices(
    items: Sequence[str],
    panels: Sequence[str],
    columns: Sequence[str],
    decimal: str = ".",
    others: Sequence[str] = (),
    target: str | None = None,
) -> PriceList:
    """Prices of these columns from files and pairs, a later one replacing an earlier one.

    `decimal` is the decimal sign of CSV files and pairs. Those of `others`, which the table has
    too, are not used: a price list need not follow what is dropped. It has no cost of `target`.
    """
    prices = PriceList({}, {}, {}, {})
    for item in items:
        if "=" in item and not Path(item).is_file():
            example = f"--prices {quote(f'{columns[0]}=17.61')}"
            given = pairs([item], [*columns, *others], "--prices", example)
            prices.prices.update(
                {name: _cost(text, name, decimal=decimal) for name, text in given.items()}
            )
        elif not Path(item).is_file():
            remedy = near_file(Path(item)) or "Check the path."
            raise InvalidInputError("--prices", "must be a file or NAME=COST", item, remedy)
        elif Path(item).suffix.lower() == ".toml":
            _add_toml(Path(item), prices)
        else:
            prices.prices.update(_read_csv(Path(item), decimal))
    for text in panels:
        title, sign, content = text.partition("=")
        amount, colon, members = content.partition(":")
        if not (title and sign and colon):
            raise InvalidInputError("--panel", "must be NAME=SHARED:MEMBER,MEMBER", text, _PANEL)
        prices.panels[title] = _cost(amount, title, _PANEL, decimal), _members(members, columns)
    if target in prices.prices:
        raise InvalidInputError(
            "--target",
            "must be the class, but this column has a cost in the price list, as covariates have",
            target,
            "Name another column, or remove its cost from the price list.",
        )
    unused = [name for name in others if prices.prices.pop(name, None) is not None]
    if unused:
        say(f"{listed(unused)}: not a covariate here; its cost is not used", err=True)
    _check_names("--prices", "every price must be that of a covariate", prices.prices, columns)
    for title, panel in prices.panels.items():
        named = panel if isinstance(panel, dict) else panel[1]
        _check_names(f"panel {title!r}", "its members must be covariates", named, columns)
    return prices


def costs_given(
    listed_prices: PriceList,
    covariates: list[str],
    default_price: float | None,
    given: dict[str, float | None],
    without: str | None,
    rounds: tuple[float, list[str]] = (0.0, []),
) -> Costs:
    """Costs of covariates and of errors, none of which is guessed; an option beats the file.

    `without` says what helps where nobody knows the false-negative cost; None if a target recall
    takes its place.
    """
    prices, panels, errors, _ = listed_prices
    unpriced = [name for name in covariates if name not in prices]
    if default_price is not None:
        prices |= dict.fromkeys(unpriced, default_price)
    elif unpriced:
        raise InvalidInputError(
            "--prices",
            f"every column needs a covariate cost: there is none for {listed(unpriced)}",
            "",
            "Add the costs, set one for all with --default-price (0 if they are free), or leave "
            "columns out with --drop.",
        )
    for name, cost in given.items():
        if cost is not None:
            errors[name] = real(f"--{name.replace('_', '-')}", cost, above=0)
    if without is None and "false_negative" in errors:
        say(
            f"The false-negative cost of {errors.pop('false_negative'):g} is not used: "
            "--target-recall replaces it by the one that the recall implies.",
            err=True,
        )
    wanted = ["false_positive"] + ["false_negative"] * (without is not None)
    wanted = [] if "misclassification" in errors else wanted
    absent = [name for name in wanted if name not in errors]
    if absent:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in absent)
        remedy = f"Give {options}, or {' and '.join(absent)} under [errors] in a TOML price list."
        if "false_negative" in absent:
            remedy += (
                f" {without} For three or more classes write the matrix misclassification under "
                "[errors]."
            )
        rule = "what a wrong answer costs must be given, in the unit of the covariate costs"
        raise InvalidInputError(options, rule, "", remedy)
    round_cost, immediate = rounds
    _check_names("--immediate", "must name covariates", immediate, covariates)
    return Costs(
        prices,
        **errors,
        panels=panels or None,
        round_cost=round_cost,
        immediate=immediate,
    )


def stated_uncertain(
    policy: BasePolicy, items: Sequence[str] | None, decimal: str
) -> dict[str, Any] | None:
    """Uncertain costs from price lists and NAME=LOW:HIGH pairs; None where there are none."""
    # By these names commas in a list of pairs are read.
    names = [*policy.encoder_.names, "false_positive", "false_negative"]
    found: dict[str, Any] = {}
    for item in items or ():
        if "=" in item and not Path(item).is_file():
            example = f"--uncertain {quote(f'{names[0]}=10:25')}"
            for name, text in pairs([item], names, "--uncertain", example).items():
                amounts = text.split(":")
                remedy = f"For example {example}."
                found[name] = [_cost(amount, name, remedy, decimal) for amount in amounts]
        elif not Path(item).is_file():
            raise InvalidInputError(
                "--uncertain", "must be a TOML file or NAME=LOW:HIGH", item, "Check the path."
            )
        else:
            content = PriceList({}, {}, {}, {})
            _add_toml(Path(item), content)
            if not content.uncertain:
                raise InvalidInputError(
                    Path(item).name,
                    "must have a table [uncertain]",
                    "",
                    "For example [uncertain] with lines Glucose = [10, 25].",
                )
            found.update(content.uncertain)
    return found or None


def _members(text: str, columns: Sequence[str]) -> list[str]:
    """Names separated by commas, which a name may hold itself."""
    prices = []
    while text := text.strip():
        named = [c for c in columns if re.match(rf"{re.escape(c)}\s*(,|$)", text)]
        name = max(named, key=len, default=text.partition(",")[0])
        prices.append(name.strip())
        text = text[len(name) :].lstrip().removeprefix(",")
    return prices


def _check_names(parameter: str, rule: str, given: Iterable[str], columns: Sequence[str]) -> None:
    there = set(columns)
    unknown = [name for name in given if name not in there]
    if unknown:
        raise InvalidInputError(
            parameter, rule, listed(unknown), choices(unknown, columns, "The columns are")
        )


def _add_toml(path: Path, price_list: PriceList) -> None:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(path.name, "must be TOML", str(error), _EXAMPLE) from error
    unknown = sorted(set(content) - {"prices", "panels", "errors", "uncertain"})
    tables = [content.get(name, {}) for name in ("prices", "panels", "errors", "uncertain")]
    if unknown or not content or not all(isinstance(table, dict) for table in tables):
        raise InvalidInputError(
            path.name,
            "must have tables [prices], [panels.NAME], [errors] or [uncertain], and no others",
            unknown or list(content),
            _EXAMPLE,
        )
    prices, panels, errors, uncertain = tables
    price_list.uncertain.update(uncertain)
    price_list.prices.update({name: _cost(cost, name) for name, cost in prices.items()})
    for title, panel in panels.items():
        price_list.panels[title] = _panel(panel, title, f"{path.name} [panels.{title}]")
    errors = dict(errors)
    if "misclassification" in errors:
        # Checked with the other costs.
        price_list.errors["misclassification"] = errors.pop("misclassification")
    for name in ("decisions", "protects"):
        if name in errors:
            price_list.errors[name] = errors.pop(name)
    unknown = sorted(set(errors) - {"false_positive", "false_negative"})
    if unknown:
        raise InvalidInputError(
            f"{path.name} [errors]",
            "may hold false_positive and false_negative, or misclassification, with which may come "
            "decisions and protects",
            unknown,
            "Remove the others.",
        )
    price_list.errors.update({name: _cost(cost, name) for name, cost in errors.items()})


def _panel(panel: Any, title: str, parameter: str) -> tuple[float, list[str]] | dict[str, float]:
    """Shared cost and members, or members with what each costs after another."""
    keys = set(panel) if isinstance(panel, dict) else set()
    if keys == {"discounted"} and isinstance(panel["discounted"], dict):
        return {name: _cost(cost, name) for name, cost in panel["discounted"].items()}
    if (
        keys != {"shared", "members"}
        or not isinstance(panel["members"], list)
        or not all(isinstance(member, str) for member in panel["members"])
    ):
        raise InvalidInputError(
            parameter,
            "must hold shared and members, or discounted",
            panel,
            'For example shared = 2.10 and members = ["Glucose", "Insulin"], or discounted = '
            "{Glucose = 15.51, Insulin = 20.68}, the costs once another member has been paid.",
        )
    return _cost(panel["shared"], title), panel["members"]


def _read_csv(path: Path, decimal: str) -> dict[str, float]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(path.name, "must be UTF-8 text", str(error), _EXAMPLE) from error
    prices: dict[str, float] = {}
    lines = text.splitlines(keepends=True)
    delimiter = delimiter_of(lines[0] if lines else "", decimal)
    for cells, line, fault in csv_rows(lines, path.name, delimiter):
        cost = _amount(cells[1], decimal) if len(cells) == 2 else None
        if cost is None or isnan(cost) or cells[0].strip() in prices:
            if line == 1 and not fault:
                continue
            raise InvalidInputError(
                path.name,
                f"line {line} must hold a covariate and its cost, each covariate once",
                fault or cells,
                "For example Glucose,17.61.",
            )
        prices[cells[0].strip()] = cost
    return prices


def _amount(value: Any, decimal: str) -> float | None:
    """A cost; with decimal commas in the table one with a point too, if it means no thousands."""
    text = str(value).strip()
    if _WITH_POINT.fullmatch(text) and not _THOUSANDS.fullmatch(text):
        decimal = "."
    return number(value, decimal)


def _cost(value: Any, name: str, example: str = _EXAMPLE, decimal: str = ".") -> float:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    cost = _amount(value, decimal) if plain else None
    if cost is None or isnan(cost):
        raise InvalidInputError(f"cost of {name!r}", "must be a number", value, example)
    return cost
