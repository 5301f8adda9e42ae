"""Refuse words that the vocabulary bans, in the documentation and in the texts of the package.

    python tools/check_words.py           # exit status 1 if a clean file has a banned word
    python tools/check_words.py --list    # every place, also in files that are not yet clean
    python tools/check_words.py --update  # write the list of files that are not yet clean

Looked at are pages in Markdown without their code, the page of the service, and strings and
docstrings of the package. Files in tools/words_not_yet_clean.txt are passed over; the list is to
get shorter.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "words_not_yet_clean.txt"

# What is banned, and what is said instead.
BANNED = {
    r"\bgo(es|ing)? on\b": "continue",
    r"\bwalks? on\b": "continue",
    r"\b(left out|leave-out|leaves? out of the model)\b": "cross-validated, out-of-fold",
    r"\b(held back|set aside)\b": "calibration rows",
    r"\bevaluation rows\b": "held-out rows",
    r"\bnot to be had\b": "unavailable",
    r"\bcannot be had\b": "is unavailable",
    r"\b(holes?|lacking)\b": "missing",
    r"\bmore than two classes\b": "three or more classes",
    r"\brivals?\b": "baseline",
    r"\bdear(er|est)?\b": "expensive, most expensive",
    r"\bbeside\b": "compared with, next to",
    r"\banew\b": "again, from scratch",
    r"\bmend(s|ed)?\b": "fix",
    r"\bso (many|much)\b": "the number, or the name",
    r"\b(tells?|told) (nobody )?apart\b": "discriminate",
    r"\bfindings?\b": "value",
    r"\b(hold|holds) in store\b": "lookahead",
    r"\blabel now\b": "label if you stop now",
    r"\d[ \u00a0]%": "16.7%, without a space",
}
CODE = re.compile(
    r"^```.*?^```$|^:::.*?$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the line that it begins on."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.STRING:
                yield token.start[0], re.sub(r"`[^`\n]*`", "", token.string)
    elif path.suffix == ".md":
        yield 1, CODE.sub(lambda found: re.sub(r"[^\n]", "", found[0]), content)
    else:
        yield 1, content


def places(path: Path) -> list[str]:
    """Where a file has a banned word, and what is said instead."""
    found = []
    for line, text in texts(path):
        for pattern, instead in BANNED.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                at = line + text.count("\n", 0, match.start())
                name = path.relative_to(ROOT)
                found.append(f"{name}:{at}: {match[0]!r}; say {instead}")
    return found


def files() -> list[Path]:
    """The files that are looked at."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    static = ROOT / "src" / "adacos" / "service" / "static"
    sources = (ROOT / "src" / "adacos").rglob("*.py")
    return sorted([*pages, *static.glob("*.js"), *static.glob("*.html"), *sources])


def main(arguments: list[str]) -> int:
    """Exit status: 0 if no clean file has a banned word."""
    found = {path.relative_to(ROOT).as_posix(): places(path) for path in files()}
    if "--update" in arguments:
        names = [name for name, own in found.items() if own]
        LIST.write_text("\n".join(names) + "\n", encoding="utf-8")
        return 0
    not_yet = set() if "--list" in arguments else set(LIST.read_text(encoding="utf-8").split())
    wrong = [place for name, own in found.items() if name not in not_yet for place in own]
    print("\n".join(wrong or [f"{len(found) - len(not_yet)} of {len(found)} files checked"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
