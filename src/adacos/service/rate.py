"""How many requests a second one client may send.

A client is an IPv4 address or an IPv6 network of 64 bits, which is what one customer is given.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

_CLIENTS_REMEMBERED = 10_000


class Buckets:
    """One token bucket per client: `rate` tokens a second, at most a second's worth.

    Those who came last are remembered; one that is forgotten begins again with a full bucket.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(rate, 1.0)
        self._levels: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Take a token if there is one."""
        client, now = network_of(address), self._clock()
        level, then = self._levels.pop(client, (self._most, now))
        level = min(level + (now - then) * self._rate, self._most)
        allowed = level >= 1.0
        self._levels[client] = (level - 1.0 if allowed else level), now
        if len(self._levels) > _CLIENTS_REMEMBERED:
            self._levels.popitem(last=False)
        return allowed


def network_of(address: str) -> bytes:
    """What is counted as one client; everything that is no address is the same one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return b""
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.packed
    return parsed.ipv4_mapped.packed if parsed.ipv4_mapped else parsed.packed[:8]
