"""All attacks and a minute of mixed good and hostile traffic: python -m tests.attack [seconds]

First single attacks, then those by many connections at once while another client asks, then the
mixed traffic. Prints one line an attack, the counts, and the memory of the service after each
minute of the mixed traffic (600 seconds make ten of them). Ends with an error if an attack got
through, a good request failed or memory grew. Loopback only; bounded by time.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import adacos
from adacos import AdaCOSClassifier, Costs
from tests.attack.outages import MOST_MEMORY, OUTAGES, suffer
from tests.attack.runner import SERVICES, attack, attacks, judge
from tests.service.running import Service, ask

# Attacks that take seconds each are left out of the mixed traffic.
QUICK = 2.0
# How long each attack by many connections goes on (seconds).
LASTING = 35.0


def fitted(folder: Path) -> Path:
    data = adacos.load_pima()
    costs = Costs(data.prices, false_positive=100, false_negative=1000)
    path = folder / "pima.adacos"
    adacos.save(AdaCOSClassifier(costs, strengths="common").fit(data.X, data.y), path)
    return path


def one_by_one(model: Path) -> tuple[int, dict[str, float]]:
    """Run every attack; how many got through, and how long each took."""
    services, through, took = {}, 0, {}
    for name, described in attacks().items():
        kind = described.get("service", "open")
        if kind not in services:
            services[kind] = Service(model, **SERVICES[kind])
            services[kind].wait_ready()
        outcome = attack(services[kind], described)
        wrong = judge(services[kind], described, outcome)
        through += bool(wrong)
        took[name] = outcome.seconds
        answered = ", ".join(f"{status} x {n}" for status, n in Counter(outcome.statuses).items())
        print(f"{'THROUGH' if wrong else 'refused':8} {name}: {answered} {'; '.join(wrong)}")
    for service in services.values():
        service.stop()
    return through, took


def outages(model: Path) -> int:
    """Attacks by many connections, each on a service of its own; how many got through."""
    through = 0
    for attacker in OUTAGES:
        service = Service(model, rate_limit=0)
        service.wait_ready()
        noticed = suffer(service, attacker, LASTING)
        service.stop()
        wrong = noticed.wrong()
        through += bool(wrong)
        gaps = ", ".join(f"{path} {gap:.1f} s" for path, gap in noticed.gaps.items())
        print(
            f"{'THROUGH' if wrong else 'refused':8} {attacker.__name__}: another client was "
            f"answered {noticed.good} times and refused {noticed.refused} times; longest silence "
            f"{gaps}; memory {noticed.memory:.0f} MiB {'; '.join(wrong)}"
        )
    print(f"{len(OUTAGES)} attacks by many connections, {through} got through")
    return through


def mixed(model: Path, took: dict[str, float], seconds: float) -> int:
    """Good and hostile requests side by side; how many good ones failed or were slow."""
    service = Service(model, rate_limit=0, workers=2)
    service.wait_ready()
    hostile = [
        described
        for name, described in attacks().items()
        if took[name] < QUICK and described.get("service", "open") == "open"
    ]
    began = time.monotonic()
    end, counts, slowest, samples = began + seconds, Counter(), 0.0, []

    def attacker() -> None:
        while time.monotonic() < end:
            attack(service, hostile[counts["hostile"] % len(hostile)])
            counts["hostile"] += 1

    attackers = [threading.Thread(target=attacker) for _ in range(2)]
    for one in attackers:
        one.start()
    while (now := time.monotonic()) < end:
        status, _ = ask(service.url, "/v1/step", {"known": {"Age": 20 + counts["good"] % 50}})
        slowest = max(slowest, time.monotonic() - now)
        counts["good"] += 1
        counts["failed"] += status != 200
        if counts["good"] % 20 == 0:
            samples.append((now - began, service.memory()))
        time.sleep(0.01)
    for one in attackers:
        one.join()
    service.stop()
    first, last = _print_memory(samples, seconds)
    print(
        f"{seconds:.0f} s of mixed traffic: {counts['hostile']} hostile, {counts['good']} good "
        f"requests, {counts['failed']} of them failed, the slowest took {slowest:.2f} s; "
        f"memory {first:.0f} MiB in the second quarter of the time, {last:.0f} MiB in the last"
    )
    return counts["failed"] + (last > 1.1 * first) + (last > MOST_MEMORY)


def _print_memory(samples: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """Print the mean of each minute; means of the second and the last quarter of the time (MiB)."""

    def between(begin: float, end: float) -> float:
        inside = [memory for moment, memory in samples if begin <= moment < end]
        return sum(inside) / max(len(inside), 1)

    for minute in range(int(seconds // 60)):
        print(f"minute {minute + 1:2}: {between(60 * minute, 60 * (minute + 1)):.1f} MiB")
    return between(0.25 * seconds, 0.5 * seconds), between(0.75 * seconds, seconds)


def main(seconds: float = 60.0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = fitted(Path(folder))
        through, took = one_by_one(model)
        print(f"{len(took)} attacks, {through} got through")
        through += outages(model)
        failed = mixed(model, took, seconds)
    sys.exit(1 if through or failed else 0)


if __name__ == "__main__":
    main(*(float(text) for text in sys.argv[1:2]))
