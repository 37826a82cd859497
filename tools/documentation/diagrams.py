# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx extension: the directive ``mermaid``, which draws a diagram as SVG in the page, in light and dark colours.

The drawing is made at build time, so that diagrams need neither a network nor a script. The sources are Mermaid,
because code-hosting sites draw it too.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, ClassVar

import mmdr
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

_FONT = "Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_THEMES: dict[str, dict[str, str]] = {
    "light": {
        "background": "#ffffff",
        "primaryColor": "#eef2ff",
        "primaryTextColor": "#1f2333",
        "primaryBorderColor": "#5b6ee1",
        "lineColor": "#5a6072",
        "textColor": "#1f2333",
        "noteBkgColor": "#fff6d6",
        "noteTextColor": "#1f2333",
        "noteBorderColor": "#c9a227",
        "actorBkg": "#eef2ff",
        "actorBorder": "#5b6ee1",
        "signalColor": "#3b4152",
        "signalTextColor": "#1f2333",
        "clusterBkg": "#f7f8fc",
        "clusterBorder": "#b8bfd6",
        "edgeLabelBackground": "#ffffff",
    },
    "dark": {
        "darkMode": "true",
        "background": "#131416",
        "primaryColor": "#262b45",
        "primaryTextColor": "#e6e8f0",
        "primaryBorderColor": "#8b9cf9",
        "lineColor": "#a3a9bd",
        "textColor": "#e6e8f0",
        "noteBkgColor": "#4a4016",
        "noteTextColor": "#f3ecd2",
        "noteBorderColor": "#c9a227",
        "actorBkg": "#262b45",
        "actorBorder": "#8b9cf9",
        "signalColor": "#c3c8d8",
        "signalTextColor": "#e6e8f0",
        "clusterBkg": "#1b1d26",
        "clusterBorder": "#4b5168",
        "edgeLabelBackground": "#131416",
    },
}


def drawing(source: str, theme: str) -> str:
    """Return a diagram as SVG with identifiers of its own.

    Raises:
        ValueError: the source is not valid Mermaid; the message of the renderer has the line.
    """
    settings = {"theme": "base", "look": "classic", "fontFamily": _FONT, "themeVariables": _THEMES[theme]}
    svg = str(mmdr.render(f"%%{{init: {json.dumps(settings)}}}%%\n{source}").svg())
    return _named(svg, f"diagram-{theme}-{hashlib.sha256(source.encode()).hexdigest()[:10]}")


def _named(svg: str, name: str) -> str:
    """Return a drawing whose identifiers start with a name, because a page can have several drawings."""
    svg = svg.replace("merman", name)
    others = [found for found in set(re.findall(r'\bid="([^"]+)"', svg)) if not found.startswith(name)]
    for each in others:
        svg = svg.replace(f'id="{each}"', f'id="{name}-{each}"')
        svg = re.sub(rf"#{re.escape(each)}(?=[)\"'\s,{{])", f"#{name}-{each}", svg)
    return svg


class Mermaid(Directive):  # type: ignore[misc]  # docutils has no types
    """Diagram in two colour schemes, of which a style sheet shows one."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the drawings; an invalid source ends the build."""
        source = "\n".join(self.content)
        try:
            figures = [f'<div class="diagram only-{theme}">{drawing(source, theme)}</div>' for theme in _THEMES]
        except Exception as error:
            raise self.error(f"Cannot draw the diagram: {error}") from error
        return [nodes.raw("", f'<div class="diagrams">{"".join(figures)}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("mermaid", Mermaid)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
