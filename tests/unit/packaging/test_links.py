# SPDX-License-Identifier: GPL-3.0-or-later
"""The link check of the documentation finds missing files and headings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import links


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("[a](missing.md)", [(1, "missing.md")], id="file"),
        pytest.param("[a](other.md#missing) [b](#missing)", [(1, "other.md#missing"), (1, "#missing")], id="headings"),
        pytest.param("[a](other.md) [b](other.md#first-heading) [c](#page)", [], id="valid"),
        pytest.param("Text [a\nb](missing.md).", [(2, "missing.md")], id="text on two lines"),
        pytest.param("Text [a](\nmissing.md).", [(2, "missing.md")], id="target on the next line"),
        pytest.param("* [a](\n  missing.md\n  ).", [(2, "missing.md")], id="parentheses on three lines"),
        pytest.param('[a](missing.md\n"b").', [(1, "missing.md")], id="title on the next line"),
        pytest.param("[![a](missing.svg)](other.md)", [(1, "missing.svg")], id="image in a link"),
        pytest.param("[![a](other.md)](missing.md)", [(1, "missing.md")], id="link of an image"),
        pytest.param("[a `b[0]`](missing.md)", [(1, "missing.md")], id="brackets in the text"),
        pytest.param("[a][b]\n\n[b]:\n  missing.md", [(4, "missing.md")], id="reference"),
        pytest.param("[a](https://example.org/b) [c](mailto:d@example.org)", [], id="other hosts"),
        pytest.param("```\n[a](missing.md)\n```\n`[a](missing.md)`", [], id="code"),
        pytest.param("[a](other.md#comment)", [(1, "other.md#comment")], id="comments in code are no headings"),
        pytest.param("[a](other.md#twice-1) [b](other.md#twice-2)", [(1, "other.md#twice-2")], id="repeated headings"),
    ],
)
def test_broken_links(text: str, found: list[tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# First *heading*\n\n```\n# Comment\n```\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n\n# Page\n")
    assert list(links.broken_links(page)) == found


def test_the_pages_have_no_broken_links() -> None:
    assert links.main() == 0
