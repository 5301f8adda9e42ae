"""Where the console script begins: before anything is imported that takes its time.

`systemctl reload` sends SIGHUP as soon as the process is there, and it would end the service while
that imports its libraries. Therefore the signal waits; the supervisor lets it through.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["serve"] and reloads():
        hold_hangup()
    from adacos.cli.app import main as run

    run()


def reloads() -> bool:
    """Whether SIGHUP asks for a reload; at a terminal it says that this was closed."""
    return hasattr(signal, "SIGHUP") and not (sys.stdin is not None and sys.stdin.isatty())


def hold_hangup() -> None:
    """Keep SIGHUP until somebody unblocks it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
