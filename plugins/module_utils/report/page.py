# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML page of a rack report. It needs Jinja2, which hosts of modules may lack: only the control node renders it."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import typing as t
from pathlib import Path

from ..pod import model
from .pods import Source, overview, views

with contextlib.suppress(ImportError):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
    from markupsafe import Markup

_FOLDER = Path(__file__).parent
_NAME = "page"


def render(pod: model.Pod | None, info: t.Any, run: t.Any, pdus: t.Any = None) -> str:
    """Return the page of one POD; see ``render_pods``."""
    return render_pods([Source(pod, info, run, pdus)])


def render_pods(sources: t.Sequence[Source]) -> str:
    """Return the page of one or several PODs.

    All names are escaped; the content security policy allows only the script of the page.
    """
    script = (_FOLDER / f"{_NAME}.js").read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = views(sources)
    several = len(found) > 1
    own = {
        # The script is a file of the collection; everything else is escaped.
        "script": Markup(script),  # noqa: S704
        "script_hash": f"sha256-{digest}",
        "sign": {"passed": "✓", "failed": "✕", "skipped": "↷", "untested": "–"},
    }
    parts = [
        {
            "summary": _part("_summary", each, own),
            "content": _part(
                "_pod", each, own, level=3 if several else 2, of=f" of {each['title']}" if several else ""
            ),
        }
        for each in found
    ]
    page = {**found[0], "pods": [], **(overview(found) if several else {})}
    text = _template("").render(page, **own, parts=parts, summary=_part("_summary", page, own)) + "\n"
    return text.encode("utf-8", "replace").decode()  # JSON can hold unpaired surrogates


def _part(part: str, content: dict[str, t.Any], own: dict[str, t.Any], **more: t.Any) -> Markup:
    """Return a part of the page, which its template has escaped."""
    return Markup(_template(part).render(content, **own, **more).strip("\n"))  # noqa: S704


@functools.cache
def _template(part: str) -> Template:
    # Ansible's templating does not escape HTML.
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(f"{_NAME}{part}.html.j2")
