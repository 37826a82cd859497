# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx extension for line breaks.

Long names in code, links and titles can wrap after punctuation, so that they fit their box. A number in a table stays
on one line with its unit. Options of commands do not wrap at their hyphens.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_WORD = re.compile(r'(?<=<span class="pre">)[^<]{12,}(?=</span>)')
_LINK = re.compile(r'(?<=">)[A-Z]\w{15,}(?=</(?:a|span)>)')
_TITLE = re.compile(r"(?<=<h1>)[^<]+")
_OPTION = re.compile(r'<span class="pre">(?=-[\w-]{1,18}</span>)')  # of a length that fits a column on a phone
_CELL = re.compile(r"(?<=<td><p>)[^<]+")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|×|[mµ]?s|min|h|[kMGT]i?B|[mk]?W)(?!\w))")
_BREAK = re.compile(r"(?<=[\w}])([_./:=]+)(?=\w)|(?<=[a-z])(?=[A-Z])")


def with_breaks(page: str) -> str:
    """Return the HTML of a page in which long words of inline code, long linked names and its title can wrap.

    Numbers in its tables do not wrap before their unit. Options do not wrap at their hyphens.
    """
    for pattern in (_WORD, _LINK, _TITLE):
        page = pattern.sub(_broken, page)
    page = _OPTION.sub('<span class="pre option">', page)
    return _CELL.sub(lambda text: _UNIT.sub("&#160;", text[0]), page)


def _broken(text: re.Match[str]) -> str:
    return _BREAK.sub(lambda found: f"{found[0]}<wbr>", text[0])


def _change(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the change of finished pages."""
    app.connect("html-page-context", _change)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
