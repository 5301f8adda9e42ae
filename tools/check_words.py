"""Refuse banned words and long sentences in the documentation and in the texts of the package.

    python tools/check_words.py              # exit status 1 if there is any
    python tools/check_words.py --sentences  # length of the sentences of every page

Looked at are pages in Markdown without their code, the page of the service, strings and docstrings
of the package, and the examples with their comments, which are the pages of the gallery. Sentences
are measured on the pages alone.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Words in the mean sentence of a page, and in its longest.
MEAN_WORDS = 18
MOST_WORDS = 25

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
    r"\bworlds?\b": "problem, simulated problem",
    r"\b(can|could) be had\b": "is available",
    r"\b(put together|of an earlier run|measured before)\b": "what one command wrote",
    r"\bpositive from\b[^.]*\bon\b": "positive at or above",
    r"\bforeseen\b": "the model of the log-odds after an acquisition",
    r"\bhard to tell\b": "unclear",
    r"\d[ \u00a0]%": "16.7%, without a space",
    r"\bstands\b": "is kept, remains, is, means",
    r"\b(tells?|told)\b": "reports, says",
    r"\black(s|ed)?\b": "is missing, has no",
    r"\boutlook\b": "lookahead",
    r"\b(buys?|buying|bought)\b": "acquire, pay for",
}
CODE = re.compile(
    r"^```.*?^```$|^:::.*?$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL
)
# What a text in Python quotes or describes, and a string that is a name, not a text.
QUOTED = re.compile(r"`[^`\n]*`|\badacos(\.\w+)+|\{[^{}]*\}|^ *\w+(, \w+)* : ", re.MULTILINE)
NAME = re.compile(r"""[a-z]*(["'])[\w.-]*\1""")


# From Python 3.12 the text between the fields of an f-string is a token of its own.
FSTRING_PARTS = {getattr(tokenize, "FSTRING_MIDDLE", None)} - {None}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the line that it begins on."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _texts_in_python(content, is_example=path.parent.name == "examples")
    elif path.suffix == ".md":
        yield 1, CODE.sub(lambda found: re.sub(r"[^\n]", "", found[0]), content)
    else:
        yield 1, content


def _texts_in_python(content: str, is_example: bool) -> Iterator[tuple[int, str]]:
    """Strings and docstrings; of an example also its comments, neighbouring lines together."""
    comment = (0, "")
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT and is_example:
            comment = (comment[0] or token.start[0], f"{comment[1]}{token.string[1:]}\n")
        elif token.type in {tokenize.STRING} | FSTRING_PARTS and not NAME.fullmatch(token.string):
            yield token.start[0], QUOTED.sub("", token.string)
        if token.type not in (tokenize.COMMENT, tokenize.NL) and comment[0]:
            yield comment
            comment = (0, "")


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


def sentences(path: Path) -> list[tuple[int, str]]:
    """The sentences of a page, each with the line on which its paragraph or its item begins.

    Code, tables, headings and directives have none; code or a formula within a line is one word.
    """
    content = path.read_text(encoding="utf-8")
    content = re.sub(
        r"^---\n.*?^---$|^( *)(```|\$\$).*?^\1(```|\$\$)$|^\$\$.*?\$\$$|<!--.*?-->",
        lambda found: "\n" * found[0].count("\n"),
        content,
        flags=re.MULTILINE | re.DOTALL,
    )
    content = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", content)
    content = re.sub(
        r"`[^`]*`|\$[^$]+\$", lambda found: "Code" + "\n" * found[0].count("\n"), content
    )
    content = re.sub(r"\badacos\b", "Adacos", content)
    found = []
    blocks, start = [""], [1]
    for number, line in enumerate(content.splitlines(), 1):
        begins = re.match(r"\s*([-*]|\d+\.)\s|\s*$|[#|:<]|    ", line)
        if begins:
            blocks.append("")
            start.append(number)
        if not re.match(r"[#|:<]|    (?! *[-*\d])", line):
            blocks[-1] += " " + re.sub(r"^\s*([-*]|\d+\.)\s", "", line)
    for line_number, block in zip(start, blocks, strict=True):
        for sentence in re.split(r"(?<=[.!?])[)*\"]*\s+(?=[^a-z\s])", block):
            if sentence.strip():
                found.append((line_number, sentence.strip()))
    return found


def n_words(sentence: str) -> int:
    """Words of a sentence: what is between blanks and has a letter or a digit."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def long_places(path: Path) -> list[str]:
    """Sentences of a page that are too long, or their mean."""
    name, all_of_them = path.relative_to(ROOT), sentences(path)
    lengths = [n_words(sentence) for _, sentence in all_of_them]
    found = [
        f"{name}:{line}: {length} words, at most {MOST_WORDS}: {sentence[:90]}"
        for length, (line, sentence) in zip(lengths, all_of_them, strict=True)
        if length > MOST_WORDS
    ]
    mean = sum(lengths) / max(len(lengths), 1)
    if mean > MEAN_WORDS:
        found.append(f"{name}: {mean:.1f} words in the mean sentence, at most {MEAN_WORDS}")
    return found


def pages() -> list[Path]:
    """The pages in Markdown."""
    others = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"]
    return [*(ROOT / name for name in others), *sorted(ROOT.glob("docs/*.md"))]


def files() -> list[Path]:
    """The files that are looked at."""
    static = ROOT / "src" / "adacos" / "service" / "static"
    sources = (ROOT / "src" / "adacos").rglob("*.py")
    examples = (ROOT / "examples").glob("*.py")
    return sorted([*pages(), *examples, *static.glob("*.js"), *static.glob("*.html"), *sources])


def main(arguments: list[str]) -> int:
    """Exit status: 0 if no file has a banned word and no page a long sentence."""
    if "--sentences" in arguments:
        for page in pages():
            lengths = [n_words(sentence) for _, sentence in sentences(page)]
            mean = sum(lengths) / max(len(lengths), 1)
            name = page.relative_to(ROOT).as_posix()
            print(
                f"{name}: {len(lengths)} sentences, mean {mean:.1f}, most {max(lengths, default=0)}"
            )
        return 0
    wrong = [place for path in files() for place in places(path)]
    wrong += [place for page in pages() for place in long_places(page)]
    print("\n".join(wrong or [f"{len(files())} files, sentences of {len(pages())} pages"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
