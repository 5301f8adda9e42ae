"""A page that holds consultations by itself: policy, evaluator and style in one HTML file.

Nothing is loaded and nothing is sent: the page allows itself its own script and style, by their
digests, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files


def page_of(title: str, content: str) -> str:
    """The page of a policy, given as JSON text."""
    script = f"\n{_part('evaluator.js')}\n{_part('page.js')}"
    style = _part("page.css")
    parts = {
        "policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_digest(script)}; style-src {_digest(style)}",
        "title": html.escape(title),
        "style": style,
        # Nothing in the text can end the element that holds it.
        "content": content.replace("<", "\\u003c"),
        "script": script,
    }
    # In one pass, so that what was filled in is not read as a place.
    return re.sub(r"\{(\w+)\}", lambda place: parts[place[1]], _part("page.html"))


def _part(name: str) -> str:
    return (files("adacos.exports") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest by which a content security policy allows one script or style."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
