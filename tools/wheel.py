# SPDX-License-Identifier: GPL-3.0-or-later
"""Build hook: the wheel carries the collection's shared modules along.

An editable install must not: there the checkout itself is linked in as the collection, and
uninstalling would follow the link and delete the sources.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedModules(BuildHookInterface):  # type: ignore[type-arg]
    """Adds plugins/module_utils to a standard wheel, at the path where Ansible would put it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before the build."""
        if version == "standard":
            target = "ansible_collections/openipu/pod/plugins/module_utils"
            build_data["force_include"]["plugins/module_utils"] = target
