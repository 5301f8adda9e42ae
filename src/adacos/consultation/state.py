"""The state of a consultation as plain JSON values: what it may hold."""

from __future__ import annotations

from collections.abc import Mapping

from adacos.exceptions import InvalidInputError

FORMAT = 1
# Characters of a reason, and what of a state says what a person wanted.
MOST_REASON = 500
OF_PERSON = ("must", "never", "reasons")


def check_state(state: object) -> None:
    """Refuse what is no state."""
    remedy = "Pass what state() returned, unchanged."
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise InvalidInputError("state", f"must have format {FORMAT}", state, remedy)
    well_formed = (
        isinstance(state.get("model"), str)
        and isinstance(state.get("known"), Mapping)
        and isinstance(state.get("events"), list)
        and isinstance(state.get("key", 0), str | int)
        and all(
            isinstance(state.get(name, []), list)
            and all(isinstance(item, str) for item in state.get(name, []))
            for name in OF_PERSON
        )
        and all(
            isinstance(event, Mapping)
            and len(event) == 1
            and (
                isinstance(event.get("observe"), Mapping)
                or isinstance(event.get("order", event.get("unavailable")), list)
                or event.get("stop") is True
            )
            for event in state["events"]
        )
    )
    if not well_formed:
        raise InvalidInputError(
            "state", "must hold 'model', 'known' and 'events'", dict(state), remedy
        )
