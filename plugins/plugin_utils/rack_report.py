# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a rack report, from what it is to show to HTML. On the control node, where Jinja2 is."""

from __future__ import annotations

import base64
import hashlib
import typing as t
from pathlib import Path

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_FOLDER = Path(__file__).parent
_NAME = "rack_report"


def render(pod: model.Pod | None, info: t.Any, run: t.Any) -> str:
    """The whole page; every name in it is escaped, and no script but its own would run."""
    # Not Ansible's own templating: that does not escape, and knows variables that a page has no use for.
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    script = (_FOLDER / f"{_NAME}.js").read_text(encoding="utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(f"{_NAME}.html.j2")
    # The one text that is not escaped: a file of our own.
    own = {"script": Markup(script), "script_hash": f"sha256-{digest}"}  # noqa: S704
    text = page.render(view(pod, info, run), **own) + "\n"
    return text.encode("utf-8", "replace").decode()  # JSON can hold halves of characters
