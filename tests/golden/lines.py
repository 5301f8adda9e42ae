"""The file of hashes: one line for each policy, table, setting and field."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from adacos.registry import POLICIES
from tests.golden.problems import SETTINGS, TABLES
from tests.golden.record import record
from tests.policy_cases import VARIANTS, Case

FILE = Path(__file__).with_name("decisions.json")
# Not recorded: training takes minutes, and its numbers depend on the build of torch.
SLOW = frozenset({"dime", "gdfs", "shim2018"})
# Other variants of a policy, and cases that fit many models, in these settings only.
_VARIANTS = ("complete", "missing", "known")
_FEWER = {"auto": ("complete",), "adacos-both": ("complete",)}
# A table whose states take gigabytes and minutes.
_TOO_LARGE = frozenset({("optimal", "heart")})


def golden_cases() -> list[Case]:
    """Every registered policy that is installed, in each of its variants."""
    return [
        Case(policy, given)
        for policy in POLICIES.values()
        if policy.name not in SLOW
        and (policy.requires is None or find_spec(policy.requires[0]) is not None)
        for given in VARIANTS.get(policy.name, [{}])
    ]


def lines_of(case: Case, tables: tuple[str, ...] = tuple(TABLES)) -> dict[str, str]:
    """All lines of a policy on some tables."""
    first = VARIANTS.get(case.policy.name, [{}])[0]
    every = tuple(SETTINGS) if case.parameters == first else _VARIANTS
    settings = _FEWER.get(case.name, every)
    return {
        f"{case.name} | {table} | {setting} | {field}": value
        for table, setting in product(tables, settings)
        if (case.policy.name, table) not in _TOO_LARGE
        for field, value in record(case, table, setting).items()
    }


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Lines that are not as expected, with both values."""
    return [
        f"{line}: {expected.get(line)} -> {found.get(line)}"
        for line in sorted({*expected, *found})
        if expected.get(line) != found.get(line)
    ]


def read() -> dict[str, str]:
    """The lines of the file."""
    lines: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return lines


def write(lines: dict[str, str]) -> None:
    """Write them, sorted."""
    text = json.dumps(dict(sorted(lines.items())), indent=0, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
