"""All attacks and a minute of mixed good and hostile traffic: python -m tests.attack [seconds]

Prints one line an attack, the counts, and the memory of the service after each minute of the mixed
traffic (600 seconds make ten of them). Ends with an error if an attack got through, a good request
failed or memory grew. Loopback only; bounded by time.
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
from tests.attack.runner import SERVICES, attack, attacks, judge
from tests.service.running import Service, ask

# Attacks that take seconds each are left out of the mixed traffic.
QUICK = 2.0


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
    first, last = _tell_memory(samples, seconds)
    print(
        f"{seconds:.0f} s of mixed traffic: {counts['hostile']} hostile, {counts['good']} good "
        f"requests, {counts['failed']} of them failed, the slowest took {slowest:.2f} s; "
        f"memory {first:.0f} MiB after a tenth of the time, {last:.0f} MiB at the end"
    )
    return counts["failed"] + (last > 1.1 * first)


def _tell_memory(samples: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """Print the mean of each minute; means of the second and the last tenth of the time (MiB)."""

    def between(begin: float, end: float) -> float:
        inside = [memory for moment, memory in samples if begin <= moment < end]
        return sum(inside) / max(len(inside), 1)

    for minute in range(int(seconds // 60)):
        print(f"minute {minute + 1:2}: {between(60 * minute, 60 * (minute + 1)):.1f} MiB")
    return between(0.1 * seconds, 0.2 * seconds), between(0.9 * seconds, seconds)


def main(seconds: float = 60.0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = fitted(Path(folder))
        through, took = one_by_one(model)
        print(f"{len(took)} attacks, {through} got through")
        failed = mixed(model, took, seconds)
    sys.exit(1 if through or failed else 0)


if __name__ == "__main__":
    main(*(float(text) for text in sys.argv[1:2]))
