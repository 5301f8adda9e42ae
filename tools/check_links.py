"""Check that every local link and picture of a built site leads somewhere.

    python tools/check_links.py build/docs

Anchors are checked too. Addresses of other sites are not visited: a build must not depend on them.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Anchors of a page, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note identifiers, links and pictures."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value and tag in ("a", "img", "link", "script"):
                self.targets.add(value)


def broken(site: Path) -> list[str]:
    """One text for each link that leads nowhere."""
    pages: dict[Path, Page] = {}
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.parts:  # templates of the theme
            continue
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    found = []
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            goal = goal / "index.html" if goal.is_dir() else goal
            lost = not goal.exists()
            if not lost and parts.fragment and goal in pages:
                lost = unquote(parts.fragment) not in pages[goal].anchors
            if lost:
                found.append(f"{path.relative_to(site.resolve())}: {target}")
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    lost = broken(folder)
    print(*lost, sep="\n")
    print(f"{len(list(folder.rglob('*.html')))} pages, {len(lost)} broken links")
    sys.exit(bool(lost))
