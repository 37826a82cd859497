# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML page of a rack report. Runs on the control node, where Jinja2 is installed."""

from __future__ import annotations

import base64
import functools
import hashlib
import typing as t
from pathlib import Path

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

_FOLDER = Path(__file__).parent
_NAME = "rack_report"


def render(pod: model.Pod | None, info: t.Any, run: t.Any) -> str:
    """Return the page. All names are escaped; the content security policy allows only the script of the page."""
    script = (_FOLDER / f"{_NAME}.js").read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The script is a file of the collection; everything else is escaped.
    own = {"script": Markup(script), "script_hash": f"sha256-{digest}"}  # noqa: S704
    text = _page().render(view(pod, info, run), **own) + "\n"
    return text.encode("utf-8", "replace").decode()  # JSON can hold unpaired surrogates


@functools.cache
def _page() -> Template:
    # Ansible's templating does not escape HTML.
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(f"{_NAME}.html.j2")
