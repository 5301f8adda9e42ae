"""A report as a list of blocks, written as one self-contained HTML page and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from adacos.document.style import Picture


@dataclass(frozen=True)
class Heading:
    """A heading of level 1, 2 or 3."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of short lines."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts; `marks` gives a cell (row, column) the class "good", "bad" or "soft"."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    marks: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True)
class Plain:
    """Text whose lines and spaces stay."""

    text: str


Block = Heading | Text | Items | Grid | Plain | Picture

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1b1b1b;
  background: #fff; max-width: 66rem; margin: 0 auto; padding: 1.5rem 1.2rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.4rem 0 0.8rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 0.6rem; border-top: 1px solid #d8d8d8;
  padding-top: 1.2rem; }
h3 { font-size: 1.08rem; margin: 1.8rem 0 0.4rem; }
nav { font-size: 0.92rem; margin: 0.8rem 0 0; display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; }
a { color: #00558c; }
/* A shadow at the edge beyond which the table continues. */
.scroll { overflow-x: auto; margin: 0.8rem 0 1.4rem; background:
  linear-gradient(to right, #fff 30%, #fff0) left / 2.5rem 100% no-repeat local,
  linear-gradient(to left, #fff 30%, #fff0) right / 2.5rem 100% no-repeat local,
  linear-gradient(to right, #0004, #0000) left / 0.8rem 100% no-repeat scroll,
  linear-gradient(to left, #0004, #0000) right / 0.8rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; caption-side: top; color: #4a4a4a; padding-bottom: 0.35rem; }
th, td { padding: 0.28rem 0.5rem; border-bottom: 1px solid #e2e2e2; text-align: right;
  vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.words th, .words td { text-align: left; }
thead th, thead td { border-bottom: 2px solid #9a9a9a; white-space: nowrap;
  vertical-align: bottom; }
td, th { white-space: nowrap; } .words td { white-space: normal; }
td.good { color: #00553c; font-weight: 600; } td.bad { color: #9a3c00; font-weight: 600; }
td.soft { color: #5f5f5f; }
figure { margin: 1rem 0 1.6rem; } figure img { width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #4a4a4a; }
@media (max-width: 560px) { body { padding: 1rem 0.8rem 3rem; } h1 { font-size: 1.5rem; }
  th, td { padding: 0.28rem 0.35rem; } caption { max-width: calc(100vw - 1.6rem); }
  ul { padding-left: 1.2rem; } }
code { background: #f3f3f3; padding: 0.05rem 0.25rem; border-radius: 3px; }
@media print { body { max-width: none; } h2 { break-after: avoid; } }
"""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """One page that needs no other file."""
    sections = [b for b in blocks if isinstance(b, Heading) and b.level == 2]
    links = "".join(
        f'<a href="#s{number}">{escape(s.text)}</a>' for number, s in enumerate(sections)
    )
    body = [f"<h1>{escape(title)}</h1>", f"<nav>{links}</nav>"]
    number = 0
    for block in blocks:
        if isinstance(block, Heading) and block.level == 2:
            body.append(f'<h2 id="s{number}">{escape(block.text)}</h2>')
            number += 1
        else:
            body.append(_html(block))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        "<body><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


def fragment(blocks: Sequence[Block]) -> str:
    """Blocks as HTML for a notebook, which has a style of its own."""
    return "".join(_html(block) for block in blocks)


def plain_text(grid: Grid) -> str:
    """A table for a terminal: its caption, then columns that are padded with spaces."""
    lines = [grid.header, *grid.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    described = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*([grid.caption] if grid.caption else []), *described])


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """The same report as Markdown, its figures linked as PNG files under figures/."""
    return "\n\n".join([f"# {title}", *(_markdown(block) for block in blocks)]) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
        case Text():
            return f"<p>{_inline(block.text)}</p>"
        case Items():
            return "<ul>" + "".join(f"<li>{_inline(line)}</li>" for line in block.lines) + "</ul>"
        case Grid():
            return _html_grid(block)
        case Plain():
            return f"<pre>{escape(block.text)}</pre>"
        case Picture():
            name, caption = escape(block.name), escape(block.caption)
            image = f'<img src="{block.data_uri}" alt="{caption}">'
            if block.narrow_uri is not None:
                source = f'<source media="(max-width: 560px)" srcset="{block.narrow_uri}">'
                image = f"<picture>{source}{image}</picture>"
            return f'<figure id="{name}">{image}<figcaption>{caption}</figcaption></figure>'


def _html_grid(grid: Grid) -> str:
    marked = {(row, column): mark for row, column, mark in grid.marks}
    # A corner without words is no header.
    head = "".join(f"<th>{_inline(cell)}</th>" if cell else "<td></td>" for cell in grid.header)
    lines = []
    for i, row in enumerate(grid.rows):
        cells = []
        for j, cell in enumerate(row):
            mark = f' class="{marked[i, j]}"' if (i, j) in marked else ""
            cells.append(f"<td{mark}>{_inline(cell)}</td>")
        lines.append("<tr>" + "".join(cells) + "</tr>")
    caption = f"<caption>{_inline(grid.caption)}</caption>" if grid.caption else ""
    # Long cells are sentences, which read badly when set flush right.
    words = any(len(cell) > 40 for row in grid.rows for cell in row)
    # What scrolls is reached by the keyboard, and has a name.
    name = escape(grid.caption or ", ".join(filter(None, grid.header)))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table{' class=words' if words else ''}>{caption}"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {block.text}"
        case Text():
            return block.text
        case Items():
            return "\n".join(f"- {line}" for line in block.lines)
        case Plain():
            return f"```\n{block.text}\n```"
        case Grid():
            lines = [
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                for row in (block.header, ("---",) * len(block.header), *block.rows)
            ]
            return (f"{block.caption}\n\n" if block.caption else "") + "\n".join(lines)
        case Picture():
            return f"![{block.caption}](figures/{block.name}.png)\n\n*{block.caption}*"


def _inline(text: str) -> str:
    """Escaped text in which `backticks` mark code."""
    parts = escape(text, quote=False).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
