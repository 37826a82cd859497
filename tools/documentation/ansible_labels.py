# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx extension: links to Ansible's documentation, without downloading its list of labels."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_ANSIBLE = "https://docs.ansible.com/ansible/devel/"
_CONFIGURATION = "reference_appendices/config.html"
_PLUGIN = re.compile(r"ansible_collections\.(\w+)\.(\w+)\.(\w+_(?:module|lookup|filter|inventory|callback))")
# The labels that antsibull-docs uses in the pages of a collection.
_LABELS = {
    "action_plugins": "plugins/action.html",
    "callback_plugins": "plugins/callback.html",
    "ansible_configuration_settings": _CONFIGURATION,
    "common_return_values": "reference_appendices/common_return_values.html",
}


def _resolve(
    app: Sphinx, environment: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    target = str(node.get("reftarget", ""))
    if node.get("reftype") == "ref" and target in _LABELS:
        page = _LABELS[target]
    elif node.get("reftype") == "ref" and (plugin := _PLUGIN.fullmatch(target)):
        page = f"collections/{plugin[1]}/{plugin[2]}/{plugin[3]}.html"
    elif node.get("reftype") == "envvar" and target.startswith("ANSIBLE_"):
        page = f"{_CONFIGURATION}#envvar-{target}"
    else:
        return None
    return nodes.reference("", "", content, internal=False, refuri=_ANSIBLE + page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the resolver."""
    app.connect("missing-reference", _resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
