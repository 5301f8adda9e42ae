"""Keys of clients: named, with roles, kept as digests.

A key file names each key, gives the SHA-256 of it, and what it may do:

    [ward-3]
    sha256 = "9f86d0…"
    roles = ["ask", "record"]
"""

from __future__ import annotations

import hashlib
import hmac
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adacos.exceptions import InvalidInputError
from adacos.validation import refuse_pipe

# What a key may be good for: steps, scores and the model card; cases and outcomes; their summary;
# numbers for Prometheus.
ROLES = ("ask", "record", "read", "metrics")
SHORTEST = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EXAMPLE = '[ward-3], sha256 = "…" (of the key), roles = ["ask", "record"].'


@dataclass(frozen=True)
class Key:
    """A key by its digest."""

    name: str
    digest: bytes
    roles: frozenset[str]


def sole_key(text: str) -> Key:
    """The one key of a service without a key file: it may do everything."""
    text = text.strip()
    if len(text) < SHORTEST or not text.isascii() or not text.isprintable():
        given = "other characters" if len(text) >= SHORTEST else f"{len(text)} characters"
        # The key itself is told to nobody.
        raise InvalidInputError(
            "api_key",
            f"must be at least {SHORTEST} printable ASCII characters",
            given if text else "an empty or blank one",
            "Make one with openssl rand -hex 32, or unset ADACOS_API_KEY.",
        )
    return Key("api-key", hashlib.sha256(text.encode("ascii")).digest(), frozenset(ROLES))


def read_keys(path: Path) -> tuple[Key, ...]:
    """The keys of a TOML file; see the module."""
    refuse_pipe("keys", path)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o022:
            raise _wrong(path, "can be written by others than its owner", f"chmod go-w {path}.")
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, type(error).__name__, f"Write for example {_EXAMPLE}") from error
    if not content:
        raise _wrong(path, "holds no key", f"Write for example {_EXAMPLE}")
    return tuple(_key(path, name, entries) for name, entries in content.items())


def _key(path: Path, name: str, entries: Any) -> Key:
    right = (
        _NAME.fullmatch(name)
        and isinstance(entries, dict)
        and set(entries) == {"sha256", "roles"}
        and isinstance(entries["sha256"], str)
        and _DIGEST.fullmatch(entries["sha256"].lower())
        and isinstance(entries["roles"], list)
        and entries["roles"]
        and all(role in ROLES for role in entries["roles"])
    )
    if not right:
        # What is written there may be a key by mistake.
        raise _wrong(
            path, f"the entry of {name[:64]!r}", f"Roles are {', '.join(ROLES)}; {_EXAMPLE}"
        )
    return Key(name, bytes.fromhex(entries["sha256"]), frozenset(entries["roles"]))


def _wrong(path: Path, what: str, remedy: str) -> InvalidInputError:
    return InvalidInputError("keys", "must be a TOML file of keys", f"{path}: {what}", remedy)


def find_key(keys: Sequence[Key], authorization: bytes) -> Key | None:
    """The key that a request's Authorization header holds."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    given = hashlib.sha256(token.strip()).digest()
    match = None
    for key in keys:
        # All are compared, so that the time tells nothing.
        if hmac.compare_digest(given, key.digest):
            match = key
    return match
