"""What the operator of the service chooses."""

from __future__ import annotations

from dataclasses import dataclass

from adacos.exceptions import InvalidInputError
from adacos.validation import integer, real


@dataclass(frozen=True)
class Settings:
    """Choices of the operator.

    Attributes
    ----------
    case_log : SQLAlchemy URL of the log of finished consultations; None keeps none.
    api_key : what clients must send as bearer token; None lets everyone in.
    max_body_bytes : longest request body that is read.
    max_rows : most rows in one call of score.
    rate_limit : requests per second and client address, in each worker; 0 for no limit.
    """

    case_log: str | None = None
    api_key: str | None = None
    max_body_bytes: int = 1 << 20
    max_rows: int = 10_000
    rate_limit: float = 2000.0

    def __post_init__(self) -> None:
        integer("max_body_bytes", self.max_body_bytes, at_least=1)
        integer("max_rows", self.max_rows, at_least=1)
        real("rate_limit", self.rate_limit, at_least=0)
        if self.api_key is not None and not (self.api_key.strip() and self.api_key.isascii()):
            # The key itself is told to nobody.
            raise InvalidInputError(
                "api_key",
                "must be ASCII text that is not blank",
                "other characters" if self.api_key.strip() else "an empty or blank one",
                "Choose a long one, for example with openssl rand -hex 32, or leave it out.",
            )
