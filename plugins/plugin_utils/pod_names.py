# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the groups and hosts of a POD, in an inventory that may have other PODs."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleParserError


class PodNames:
    """Names of the groups and hosts of one POD. ``shared`` inventories have other PODs.

    All errors are AnsibleParserError. A group with the variable ``pod_file`` identifies a POD.
    """

    def __init__(
        self, inventory: t.Any, name: str, file: str, shared: bool, sanitize: t.Callable[[str], str] = str
    ) -> None:
        """Choose the group of the POD. ``sanitize`` makes valid names of groups.

        Raises an error if the inventory has another POD, unless both share it and have different groups.
        """
        self._inventory = inventory
        self._name = name
        self._file = file
        self._shared = shared
        self._sanitize = sanitize
        self.pod_group = sanitize(f"pod_{name}")
        # The group with the variables of all hosts of the POD.
        self.owner = self.pod_group if shared else "all"
        self._reject_other_pods()

    def _reject_other_pods(self) -> None:
        for group in self._inventory.groups.values():
            if not self._is_other_pod(group):
                continue
            file = group.vars["pod_file"]
            start = f"Cannot add POD '{self._name}' to the inventory"
            if not self._shared or group.name == "all":
                raise AnsibleParserError(
                    f"{start}: it already has the POD of {file}. Set shared_inventory to true in both files."
                )
            if group.name == self.pod_group:
                raise AnsibleParserError(
                    f"{start}: it already has the POD of {file} in the group '{group.name}'. Rename one POD."
                )

    def _is_other_pod(self, group: t.Any) -> bool:
        return bool(group.vars.get("pod_file", self._file) != self._file)

    def _has_other_pod(self, host: t.Any) -> bool:
        return any(self._is_other_pod(group) for group in host.groups)

    def host(self, device: str) -> str:
        """Return the name of the host of a device. Raises an error if it is a host of another POD."""
        name = f"{self._name}-{device}" if self._shared else device
        host = self._inventory.hosts.get(name)
        if host and self._has_other_pod(host):
            raise AnsibleParserError(
                f"Cannot add device '{device}' of POD '{self._name}': another POD has the host '{name}'. "
                "Rename the device."
            )
        return name

    def rack(self, rack: str) -> str:
        """Return the name of the group of a rack. Raises an error if it is a group of another POD."""
        name = self._sanitize(f"{self._name}_{rack}" if self._shared else rack)
        group = self._inventory.groups.get(name)
        if group and any(self._has_other_pod(host) for host in group.hosts):
            raise AnsibleParserError(
                f"Cannot create the group of rack '{rack}': the name '{name}' is reserved. Rename the rack."
            )
        return name
