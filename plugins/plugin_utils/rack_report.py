# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a rack report, from what it is to show to HTML. On the control node, where Jinja2 is."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.report.view import view
from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(pod: model.Pod | None, info: t.Any, run: t.Any) -> str:
    """The whole page; every name in it is escaped."""
    # Not Ansible's own templating: that does not escape, and knows variables that a page has no use for.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("rack_report.html.j2").render(view(pod, info, run)) + "\n"
