# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx extension: the directive ``mermaid``, which draws a diagram as SVG in the page.

The drawing is made at build time, so that diagrams need neither a network nor a script. The sources are Mermaid,
because code-hosting sites draw it too. The style sheet of the site sets the colours, because the renderer ignores
themes.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, ClassVar

import mmdr
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

_WIDE = 700  # pixels, from which on a drawing scrolls on narrow screens
_SMALLEST = 0.56  # of the width of a drawing: its texts of 16 pixels then have 9


def drawing(source: str) -> str:
    """Return a diagram as SVG with identifiers of its own.

    Raises:
        ValueError: the source is not valid Mermaid; the message of the renderer has the line.
    """
    svg = str(mmdr.render(source).svg())
    return _named(svg, f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:10]}")


def _named(svg: str, name: str) -> str:
    """Return a drawing whose identifiers start with a name, because a page can have several drawings."""
    svg = svg.replace("merman", name)
    others = [found for found in set(re.findall(r'\bid="([^"]+)"', svg)) if not found.startswith(name)]
    for each in others:
        svg = svg.replace(f'id="{each}"', f'id="{name}-{each}"')
        svg = re.sub(rf"#{re.escape(each)}(?=[)\"'\s,{{])", f"#{name}-{each}", svg)
    return svg


class Mermaid(Directive):  # type: ignore[misc]  # docutils has no types
    """Diagram, as SVG inside of the page."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the drawing; an invalid source ends the build."""
        try:
            svg = drawing("\n".join(self.content))
        except Exception as error:
            raise self.error(f"Cannot draw the diagram: {error}") from error
        return [nodes.raw("", f'<div class="diagram"{_least(_width(svg))}>{svg}</div>', format="html")]


def _least(width: float) -> str:
    """Return the attribute with the least width of a drawing; a wider drawing than its box scrolls."""
    return f' style="--least-width: {max(_WIDE, width * _SMALLEST):.0f}px"' if width > _WIDE else ""


def _width(svg: str) -> float:
    """Return the width of a drawing in pixels; 0 if it has none."""
    found = re.search(r'viewBox="\S+ \S+ (\S+) ', svg)
    return float(found[1]) if found else 0.0


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("mermaid", Mermaid)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
