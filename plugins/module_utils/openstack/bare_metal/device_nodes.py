# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bare-metal nodes of devices, with the settings of their BMCs from the variables of their hosts. No I/O.

Templates in variables are evaluated when a rule reads the variable. So a job without the vault of the inventory can
run, as long as no rule reads a variable that needs the vault.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible.module_utils.parsing.convert_bool import boolean

from ...reconcile import UserError

Node = dict[str, t.Any]
Settings = t.Mapping[str, t.Any]

# Variables of hosts.
BMC = "openstack_bmc"
MACHINE_BMC = "openstack_machine_bmc"
SERVER_BMC = "openstack_server_bmc"
SERVER_STATE = "openstack_server_state"
AGENT = "pod_agent_id"

STATE_OF_INVENTORY = "inventory"  # answer of the survey: each server has the state in its own variable
_DEFAULT_STATE = "manageable"
# Settings that differ between the devices of a group. They complete the settings for the whole group.
_OWN_SETTINGS = ("address", "system_id", "ca_path", "validate_certs")


class Variables(t.Protocol):
    """Variables of a host."""

    def value(self, name: str, keys: t.Sequence[str] | None = None) -> t.Any:
        """Return the value of a variable, None if it is not set. ``keys``: evaluate only these of a dictionary."""

    def undefined(self, name: str, keys: t.Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Return the undefined variables that a variable refers to, each with its use, ``name`` or ``name.key``."""


@dataclass(frozen=True)
class Device:
    """A device with its host. Other devices than IPU-Machines are Poplar servers."""

    host: str
    name: str
    is_machine: bool
    variables: Variables

    @property
    def group_bmc(self) -> str:
        """Variable with the settings for all devices of its kind."""
        return MACHINE_BMC if self.is_machine else SERVER_BMC

    def settings(self, name: str, keys: t.Sequence[str] | None = None) -> Settings | None:
        """Return a variable with the settings of a BMC, None if it is not set. Raises UserError."""
        value = self.variables.value(name, keys)
        if value == "":
            return {}
        if value is not None and not isinstance(value, t.Mapping):
            raise UserError(
                "Cannot read the BMC of host '%s': %s is not a dictionary. Set username, password and others in it."
                % (self.host, name)
            )
        return value


def undefined_variables(devices: t.Iterable[Device], server_state: str) -> list[str]:
    """Return the undefined variables that nodes need, each with its use and its hosts. Raises UserError."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for device in devices:
        found = _undefined_settings(device)
        if _has_own_state(device, server_state) and (found or bmc_settings(device) is not None):
            found += device.variables.undefined(SERVER_STATE)
        for use in dict.fromkeys(found):
            hosts.setdefault(use, []).append(device.host)
    return ["%s (used in %s of %s)" % (*use, ", ".join(names)) for use, names in hosts.items()]


def _undefined_settings(device: Device) -> list[tuple[str, str]]:
    """Return undefined variables that the settings of a BMC need. Settings that are replaced need none."""
    found = device.variables.undefined(device.group_bmc)
    if found:
        return found
    group = device.settings(device.group_bmc)
    if group is None:
        return device.variables.undefined(BMC)
    return device.variables.undefined(BMC, _OWN_SETTINGS) if _has_user(group) else []


def bmc_settings(device: Device) -> Settings | None:
    """Return the settings of the BMC of a device. None for a device to skip. Raises UserError."""
    group = device.settings(device.group_bmc)
    if group is None:
        if device.variables.value(BMC) == "":
            raise UserError(
                "Cannot register host '%s': %s is empty. Set username and password in it. To skip the host, remove "
                "%s; for a BMC without authentication, set it to {}." % (device.host, BMC, BMC)
            )
        return device.settings(BMC)
    if not _has_user(group):
        return None
    own = device.settings(BMC, _OWN_SETTINGS) or {}
    return complete(group, {key: own[key] for key in _OWN_SETTINGS if key in own})


def _has_user(group: Settings) -> bool:
    return bool(group.get("username", "") != "")


def complete(group: Settings, own: Settings) -> Settings:
    """Return settings for all devices of a group with those of one device.

    Empty settings of the group count as omitted. A device whose certificate is not verified needs no CA.
    """
    verifies = boolean(own.get("validate_certs", True), strict=False)
    given = {key: value for key, value in group.items() if value != "" and (verifies or key != "ca_path")}
    return {**own, **given}


def skipped(devices: t.Iterable[Device]) -> list[str]:
    """Return the hosts of the devices without settings of a BMC. Raises UserError."""
    return [device.host for device in devices if bmc_settings(device) is None]


def nodes(
    devices: t.Iterable[Device], pod_nodes: t.Mapping[str, Node], power_off: t.Container[str], server_state: str
) -> list[Node]:
    """Return the nodes of the devices with settings of a BMC. Raises UserError.

    ``pod_nodes``: nodes of the description of the POD by name. ``power_off``: machines that Ironic may switch off.
    ``server_state``: state of Poplar servers, or STATE_OF_INVENTORY.
    """
    found = []
    for device in devices:
        bmc = bmc_settings(device)
        if bmc is None:
            continue
        node = pod_nodes[device.name]
        if device.is_machine:
            changes: Node = {"disable_power_off": device.name not in power_off}
        elif _has_own_state(device, server_state):
            state = device.variables.value(SERVER_STATE)
            changes = {"state": _DEFAULT_STATE if state is None else state}
        else:
            changes = {"state": server_state}
        found.append({**node, **changes, "bmc": {**node["bmc"], **bmc}})
    return found


def _has_own_state(device: Device, server_state: str) -> bool:
    return not device.is_machine and server_state == STATE_OF_INVENTORY


def busy_machines(
    devices: t.Iterable[Device], power_off: t.Container[str], partitions: t.Mapping[str, t.Sequence[str]]
) -> list[str]:
    """Return the machines of ``power_off`` with partitions, each with their names. Raises UserError.

    ``partitions``: by agent.
    """
    found = []
    for device in devices:
        used = partitions.get(_agent(device)) if device.name in power_off else None
        if used:
            found.append("%s (%s)" % (device.name, ", ".join(used)))
    return found


def _agent(machine: Device) -> str:
    agent: str | None = machine.variables.value(AGENT)
    if agent is None:
        raise UserError(
            "Cannot check the partitions of host '%s': it has no variable %s. Set %s, or remove the host from the "
            "group machines." % (machine.host, AGENT, AGENT)
        )
    return agent
