# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the groups and hosts of a POD in the Ansible inventory, and the check of names in pod.yml against them."""

from __future__ import annotations

import re
import typing as t

from . import spec
from .mistakes import Mistakes
from .source import Block

DEPLOYED = "deploy_%s"  # group of the hosts with a role
UNMANAGED = "unmanaged_%s"  # group of the devices that would be in another one
GROUPS = (
    *("machines", "poplar_servers", "controllers", "switches", "data_switches", "management_switches", "pdus"),
    *(DEPLOYED % role for role in spec.HOST_ROLES),
)
BUILT_IN = ("all", "ungrouped")  # groups of Ansible
LOCALHOST = "localhost"  # host of Ansible that is in no group
_FILES = (".pod.yml", ".pod.yaml")  # ends of the names of inventory files
_INVALID = re.compile(r"^[\d\W]|[^\w]")  # characters that Ansible replaces in names of groups


def is_pod_file(name: str) -> bool:
    """Return whether the inventory plugin reads files of this name."""
    return ("." + name).endswith(_FILES)


def group_name(name: str) -> str:
    """Return the valid name of a group, as Ansible does."""
    return _INVALID.sub("_", name)


class InventoryNames:
    """Check of the names of racks and devices of one POD."""

    def __init__(self, top: Block, mistakes: Mistakes) -> None:
        """``top`` is pod.yml. In an inventory with other PODs, its names start with the name of the POD."""
        self._mistakes = mistakes
        name = top["name"] or ""
        shared = top["shared_inventory"] and name
        self._rack_prefix, self._host_prefix = (name + "_", name + "-") if shared else ("", "")
        groups = (*GROUPS, *(UNMANAGED % group for group in GROUPS), *BUILT_IN)
        self._reserved = {*groups, group_name("pod_" + name)}
        self._racks: dict[str, str] = {}  # by group

    def check_racks(self, racks: t.Iterable[Block]) -> None:
        """Record racks whose group has a reserved name."""
        for rack in racks:
            name = group_name(self._rack_prefix + rack["name"])
            self._racks[name] = rack["name"]
            if name in self._reserved:
                message = "Cannot create the group of rack '%s': the name '%s' is reserved. Rename the rack."
                self._mistakes.add(rack.error(message % (rack["name"], name), "name"))

    def check_device(self, device: Block, kind: str) -> None:
        """Record a device whose host has a reserved name or the name of the group of a rack."""
        name = self._host_prefix + device["name"]
        conflict = None
        if name in self._reserved or name == LOCALHOST:
            conflict = "is reserved"
        elif name in self._racks:
            conflict = "is the group of rack '%s'" % self._racks[name]
        if conflict:
            message = "Cannot create the host of %s '%s': the name '%s' %s. Rename the %s."
            self._mistakes.add(device.error(message % (kind, device["name"], name, conflict, kind), "name"))
