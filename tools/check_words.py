"""Refuse banned words in names and texts, and long sentences in the documentation.

    python tools/check_words.py              # exit status 1 if there is any
    python tools/check_words.py --sentences  # length of the sentences of every page

Texts are pages in Markdown without their code, the page of the service, strings and docstrings of
the package, and the examples with their comments, which are the pages of the gallery. Names are
those of all code, that of tests and of pages included. Sentences are measured on the pages alone.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
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
# What names may have nevertheless: a package, results of the benchmark, a deprecated parameter, and
# a method of files.
ALLOWED_IN_NAMES = re.compile(r"\b(rivals?|findings?|outlook|tell)\b")
# Names that need a comment, by what is said instead.
BANNED_NAMES = {
    r"purse": "budget",
    r"asked recall": "resolved_target_recall",
    r"front": "compact_left",
    r"leaves? out": "out_of_fold, excluded",
    r"in danger": "may_be_missed",
    r"in money": "unweighted",
    r"kinship": "sibling_weight",
    r"left of": "remaining_budget",
    r"pictured": "has_tree",
    r"some pays": "any_worthwhile",
    r"stand|standing": "current, state",
}
CODE = re.compile(
    r"^```.*?^```$|^:::.*?$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL
)
# What a text in Python quotes or describes, and a string that is a name, not a text.
QUOTED = re.compile(r"`[^`\n]*`|\badacos(\.\w+)+|\{[^{}]*\}|^ *\w+(, \w+)* : ", re.MULTILINE)
NAME = re.compile(r"""[a-z]*(["'])[\w.-]*\1""")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BETWEEN_WORDS = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])")

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


def _across_lines(pattern: str) -> str:
    """A pattern whose words may be parted by the end of a line."""
    return re.sub(r"(?<!\[) ", r"\\s+", pattern)


def places(path: Path) -> list[str]:
    """Where a file has a banned word, and what is said instead."""
    found = []
    for line, text in texts(path):
        for pattern, instead in BANNED.items():
            for match in re.finditer(_across_lines(pattern), text, re.IGNORECASE):
                at = line + text.count("\n", 0, match.start())
                name = path.relative_to(ROOT)
                found.append(f"{name}:{at}: {match[0]!r}; say {instead}")
    return found


def name_places(path: Path) -> list[str]:
    """Where a name in the code of a file has a banned word, and what is said instead."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blocks = [
            (content.count("\n", 0, block.start(1)), block[1])
            for block in PYTHON_BLOCK.finditer(content)
        ]
    else:
        blocks = [(0, content)]
    return [
        f"{path.relative_to(ROOT)}:{first + line}: {name!r}; say {instead(name)}"
        for first, code in blocks
        for name, line in _names(code).items()
    ]


@cache
def instead(name: str) -> str:
    """What is said instead of a banned word of a name, nothing where it has none."""
    words = ALLOWED_IN_NAMES.sub("", BETWEEN_WORDS.sub(" ", name).lower())
    found = [said for pattern, said in BANNED.items() if re.search(pattern, words)]
    found += [said for own, said in BANNED_NAMES.items() if re.search(rf"\b({own})\b", words)]
    return "; ".join(found)


def _names(code: str) -> dict[str, int]:
    """Each name in code that has a banned word, with its first line."""
    if not any(map(instead, set(re.findall(r"[A-Za-z_]\w*", code)))):
        return {}
    lines: dict[str, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.NAME and instead(token.string):
            lines.setdefault(token.string, token.start[0])
    return lines


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


def sources() -> list[Path]:
    """The files whose names are looked at."""
    folders = ("src", "tests", "benchmarks", "tools", "examples")
    return sorted([*pages(), *(path for name in folders for path in (ROOT / name).rglob("*.py"))])


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
    wrong += [place for path in sources() for place in name_places(path)]
    wrong += [place for page in pages() for place in long_places(page)]
    print("\n".join(wrong or [f"{len(files())} files, sentences of {len(pages())} pages"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
