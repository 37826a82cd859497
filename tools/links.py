#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fail when a Markdown page links to a missing file or heading of the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The text, the target and the title of a link can each be on another line. The text can be an image.
LINK = re.compile(
    r"""\]\(\s*<?(?P<inline>[^)\s>]+)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)"""
    r"|^ {0,3}\[[^\]]+\]:\s*<?(?P<reference>[^\s>]+)",
    re.MULTILINE,
)
FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1[`~]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)[^`]+\1")


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def without_code(text: str) -> str:
    """Return a page with blanks in the place of code, so that positions stay the same."""
    return _blank(SPAN, _blank(FENCED, text))


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, in the form that GitHub generates."""
    headings = re.findall(r"^#+\s+(.*)$", _blank(FENCED, text), flags=re.MULTILINE)
    found, seen = set(), Counter[str]()
    for heading in headings:
        anchor = re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def broken_links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and target of each link of a page to a file or heading that does not exist."""
    text = without_code(page.read_text())
    for link in LINK.finditer(text):
        target = link["inline"] or link["reference"]
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text())):
            yield text.count("\n", 0, link.start("inline" if link["inline"] else "reference")) + 1, target


def main() -> int:
    """Check all tracked and new pages; return 1 when a link is broken."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]
    broken = [f"{name}:{line}: {target}" for name in names for line, target in broken_links(ROOT / name)]
    if broken:
        print("Broken links:", *broken, sep="\n  ", file=sys.stderr)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
