"""The text of a report as a reader sees it."""

from __future__ import annotations

import html
import re


def readable(text: str) -> str:
    text = re.sub(r"<style>.*?</style>|<(img|source) [^>]*>", "", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))
