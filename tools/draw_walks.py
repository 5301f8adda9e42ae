"""Draw how `acquire`, `next()` and `POST /v1/step` reach the kernels, into docs/architecture.md.

    python tools/draw_walks.py           # rewrite the drawing
    python tools/draw_walks.py --check   # only say whether it is up to date

The calls are recorded while they run on the Pima data, so the page shows what happens and not what
somebody remembers. Shown is every way from the public call down to a function of `kernels`, but for
`namespace`, which only says whose functions are called.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import adacos
from adacos import AdaCOSClassifier, Costs, load_pima

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = str(Path(adacos.__file__).resolve().parent)
SKIPPED = str(Path(PACKAGE, "kernels", "namespace.py"))
BEGIN, END = "<!-- walks: python tools/draw_walks.py -->", "<!-- end of walks -->"

# From a public call to a kernel.
MOST_HOPS = 8

Call = tuple[str, str]


class Recorder:
    """The ways by which functions of the package reached a kernel while it was listening."""

    def __init__(self) -> None:
        self.stacks: dict[int, list[Call]] = {}
        self.ways: dict[tuple[Call, ...], None] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Keep a stack of our own functions in each thread."""
        place = frame.f_code.co_filename
        ours = place.startswith(PACKAGE) and place != SKIPPED
        if not ours or event not in ("call", "return"):
            return
        stack = self.stacks.setdefault(threading.get_ident(), [])
        if event == "return":
            if stack:
                stack.pop()
            return
        file = Path(place).relative_to(PACKAGE).as_posix()
        inside = stack and stack[-1][0].startswith("kernels/")
        name = frame.f_code.co_qualname.rpartition("<locals>.")[2]
        stack.append((file, name))
        if file.startswith("kernels/") and not inside and "<" not in name:
            self.ways[tuple(stack)] = None


def recorded(call: Callable[[], Any], first: str) -> list[tuple[Call, ...]]:
    """The ways from the function named `first` to a kernel, in the order they were gone."""
    recorder = Recorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    ways = []
    for way in recorder.ways:
        names = [name for _, name in way]
        if first in names:
            ways.append(way[names.index(first) :])
    return ways


def tree(title: str, ways: list[tuple[Call, ...]], up_to: str = "") -> str:
    """The ways as an indented list, a shared beginning written once; each line with its hops.

    What follows the function named `up_to` is counted and not written.
    """
    most = max(len(way) - 1 for way in ways)
    if most > MOST_HOPS:
        longest = " > ".join(name for _, name in max(ways, key=len))
        raise SystemExit(f"{title}: {most} hops, at most {MOST_HOPS} are allowed: {longest}")
    calls: dict[Call, Any] = {}
    for way in ways:
        names = [name for _, name in way]
        if up_to in names:
            way = way[: names.index(up_to) + 1]
        below = calls
        for call in way:
            below = below.setdefault(call, {})
    return "\n".join([f"{title}   (at most {most} hops)", *written(calls, 0)])


def written(calls: dict[Call, Any], hops: int) -> Iterator[str]:
    """One line for each call, what it leads to below it."""
    for (file, name), below in calls.items():
        yield f"{hops:3}  {'  ' * hops}{name}  [{file}]"
        yield from written(below, hops + 1)


def drawing() -> str:
    """All walks."""
    from fastapi.testclient import TestClient

    from adacos.service.app import create_app
    from adacos.service.settings import Settings

    X, y, prices, *_ = load_pima()
    costs = Costs(prices, false_positive=200, false_negative=600)
    policy = AdaCOSClassifier(costs, strengths="common").fit(X, y)
    # The fit has run it on its rows: without what it has found then, everything is drawn.
    policy.decider_ = replace(policy.decider_)
    consultation = policy.consultation(known={"Age": 33})

    def ask() -> None:
        with TestClient(
            create_app(policy, Settings(rate_limit=0)), base_url="http://127.0.0.1"
        ) as client:
            answer = client.post("/v1/step", json={"known": {"Age": 33}})
            assert answer.status_code == 200, answer.text

    acquire = recorded(lambda: policy.acquire(X), "BasePolicy.acquire")
    asked = recorded(consultation.next, "Consultation.next")
    over_http = recorded(ask, "Answers._compute_step")
    incomplete = X.head(50).copy()
    incomplete.iloc[::2, 0] = np.nan
    with_missing = recorded(lambda: policy.acquire(incomplete), "BasePolicy.acquire")
    return "\n\n".join(
        [
            tree("AdaCOSClassifier.acquire(X)", acquire),
            tree("Consultation.next()", asked),
            tree("POST /v1/step, from next() on as above", over_http, "Consultation.next"),
            tree("AdaCOSClassifier.acquire(X) where values are missing", with_missing),
        ]
    )


def redrawn(text: str) -> str:
    """The page with the drawing between its markers."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"the page has no {BEGIN} … {END}")
    return f"{head}{BEGIN}\n```text\n{drawing()}\n```\n{END}{tail}"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = redrawn(before)
    if "--check" not in sys.argv:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        raise SystemExit("docs/architecture.md: run python tools/draw_walks.py")
