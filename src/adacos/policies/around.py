"""A policy around another one, and what it says of that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adacos.costs import Costs
from adacos.policies.base import BasePolicy

if TYPE_CHECKING:
    from adacos.policies.auto import Compared


class PolicyAround(BasePolicy):
    """Base of a policy around another: it has its costs, and what fitting it found.

    Attributes
    ----------
    policy : the other policy, unfitted.
    policy_ : the fitted one.
    """

    policy: BasePolicy
    policy_: BasePolicy

    @property
    def costs(self) -> Costs | None:  # type: ignore[override]
        """Costs of the wrapped policy."""
        return self.policy.costs

    @property
    def takes_many_classes(self) -> bool:  # type: ignore[override]
        """Whether there may be three or more classes: if the wrapped policy takes them."""
        return getattr(self.policy, "takes_many_classes", False)

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether fitting compares several policies: if the wrapped policy does."""
        return self.policy.chooses

    def _streams_from(self, X: Any) -> bool:
        streamed: bool = self.policy._streams_from(X)
        return streamed

    @property
    def choice_(self) -> str | None:  # type: ignore[override]
        """Which policy the wrapped one chose, if it compares several."""
        return self.policy_.choice_ if hasattr(self, "policy_") else None

    @property
    def compared_(self) -> tuple[Compared, ...]:  # type: ignore[override]
        """What the wrapped policy compared."""
        return self.policy_.compared_ if hasattr(self, "policy_") else ()

    def reason(self, money: Callable[[float], str] = "{:.2f}".format) -> str:
        """Say why the wrapped policy was chosen; nothing where none was.

        Parameters
        ----------
        money : function, default="{:.2f}".format
            Puts an amount into words.

        Returns
        -------
        str
            The sentences.
        """
        return self.policy_.reason(money) if hasattr(self, "policy_") else ""

    @property
    def mean_spent_(self) -> float | None:  # type: ignore[override]
        """What training rows pay on average, with a mean budget of the wrapped policy."""
        return self.policy_.mean_spent_ if hasattr(self, "policy_") else None

    @property
    def mean_spent_complete_(self) -> float | None:  # type: ignore[override]
        """What complete rows pay then, where values are missing in training."""
        return self.policy_.mean_spent_complete_ if hasattr(self, "policy_") else None
