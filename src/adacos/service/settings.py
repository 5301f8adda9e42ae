"""What the operator of the service chooses, and what is said about the covariates on the page."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adacos.exceptions import InvalidInputError
from adacos.service.keys import Key, sole_key
from adacos.service.limits import Limits
from adacos.validation import integer, real


@dataclass(frozen=True)
class Description:
    """How a covariate is presented: a title in place of its name, its unit, a word of help."""

    title: str | None = None
    unit: str | None = None
    help: str | None = None


@dataclass(frozen=True)
class Settings:
    """Choices of the operator.

    Attributes
    ----------
    case_log : SQLAlchemy URL of the log of finished consultations; None keeps none.
    api_key : what clients must send as bearer token, good for everything.
    keys : further keys, with their roles. Without any key everyone is let in.
    hosts : names under which clients reach the service, beside its addresses and localhost.
    proxies : addresses of proxies whose X-Forwarded-For is believed.
    max_body_bytes : longest request body that is read.
    max_rows : most rows in one call of score.
    max_requests : most requests that one worker has in hand at a time.
    rate_limit : requests per second and client, in each worker; 0 for no limit.
    descriptions : per covariate, how it is presented.
    limits : what a connection may take; see there.
    """

    case_log: str | None = None
    api_key: str | None = None
    keys: tuple[Key, ...] = ()
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    max_body_bytes: int = 1 << 20
    max_rows: int = 10_000
    max_requests: int = 128
    rate_limit: float = 2000.0
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        integer("max_body_bytes", self.max_body_bytes, at_least=1)
        integer("max_rows", self.max_rows, at_least=1)
        integer("max_requests", self.max_requests, at_least=1)
        real("rate_limit", self.rate_limit, at_least=0)
        if self.api_key is not None:
            sole_key(self.api_key)

    @property
    def all_keys(self) -> tuple[Key, ...]:
        """The keys that are let in."""
        return self.keys if self.api_key is None else (sole_key(self.api_key), *self.keys)


def read_descriptions(path: Path, names: Sequence[str]) -> dict[str, Description]:
    """Descriptions from a TOML file with one table per covariate of the model."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(
            "descriptions",
            "must be a readable TOML file",
            f"{path}: {error}",
            'Write for example [Age] and below it unit = "years".',
        ) from error
    found = {}
    for name, entries in content.items():
        if name not in names:
            raise InvalidInputError(
                "descriptions",
                "must name covariates of the model",
                name,
                f"They are {', '.join(names)}.",
            )
        allowed = Description.__dataclass_fields__
        if not isinstance(entries, dict) or not all(
            key in allowed and isinstance(text, str) for key, text in entries.items()
        ):
            raise InvalidInputError(
                f"descriptions[{name!r}]",
                f"may hold the texts {', '.join(allowed)}",
                entries,
                'Write for example unit = "years".',
            )
        found[name] = Description(**entries)
    return found
