# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module poplar_network: configure a bond with VLANs, with automatic rollback."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ..atomic_files import write_private
from ..reconcile import Action, ItemError, Object, Step, UserError, converge, format_value, plan
from ..runner import Run, Task
from . import rollback
from .backends import BACKENDS, Backend
from .commands import HOST, Host, format_cause
from .links import bond_object, check_members, fetch_links, mellanox_ports, read_value, vlan_objects
from .network import BOND, FILE, SERVICE, VLAN, Bond, desired_bond

_POLL_SECONDS = 0.3
_DELETION_SECONDS = 10  # time for the service to notice that an interface was deleted
_ACTIVATION_SECONDS = 10  # time for interfaces to come up after the reload, before each is activated


def _poplar_network(run: Run[Host]) -> Object:
    if run.params["state"] == "confirmed":
        return {"changed": rollback.confirm(run.transport, run.check_mode)}
    host, backend = run.transport, BACKENDS[run.params["backend"]]
    confirms = rollback.settle(host, run.check_mode)  # a rollback changes what is compared below
    links = fetch_links(host)
    members = run.params["members"] or _two_ports(mellanox_ports(links))
    bond = desired_bond(run.params, members)
    check_members(host, links, bond.name, members)
    steps = _file_steps(backend, bond)
    steps += plan(SERVICE, [{"name": backend.service, "enabled": True, "active": True}], backend.service_objects(host))
    steps += _link_steps(host, bond)
    writer = _Writer(host, backend, bond, run.params["wait_timeout"], run.params["rollback_timeout"])
    result = converge(steps, writer, run.check_mode, run.diff).result()
    partner = _partner(bond)
    if bond.mode == "802.3ad" and not partner and not run.check_mode and not result.get("failed"):
        run.warnings.append(
            "Bond '%s' has no LACP partner yet. Configure a port-channel with LACP on the switch for the ports %s."
            % (bond.name, ", ".join(members))
        )
    result["changed"] = result["changed"] or confirms
    return {**result, "name": bond.name, "members": list(members), "partner": partner}


def _two_ports(found: list[str]) -> list[str]:
    if len(found) != 2:
        raise UserError(
            "Cannot select the two ports of a ConnectX card: this host has %s. Set members."
            % (", ".join(found) or "no such port")
        )
    return found


def _file_steps(backend: Backend, bond: Bond) -> list[Step]:
    actual = [{"path": str(path), "content": path.read_text()} for path in backend.existing_files(bond.name)]
    return plan(FILE, backend.files(bond), actual, prune=lambda item: True)


def _link_steps(host: Host, bond: Bond) -> list[Step]:
    links = fetch_links(host)
    desired, desired_vlans = bond.objects()
    actual_vlans = vlan_objects(links, bond.name)
    return plan(BOND, [desired], bond_object(links, bond.name)) + plan(VLAN, desired_vlans, actual_vlans)


def _partner(bond: Bond) -> str:
    """Return the MAC address of the LACP partner, empty without one."""
    mac = read_value(Path("/sys/class/net/%s/bonding/ad_partner_mac" % bond.name))
    return "" if set(mac) <= set("0:") else mac


class _Writer:
    """Writer of the configuration: writes and applies the files, verifies the interfaces, and rolls back on failure.

    Both timeouts are in seconds.
    """

    def __init__(self, host: Host, backend: Backend, bond: Bond, wait_timeout: int, rollback_timeout: int) -> None:
        self._host, self._backend, self._bond = host, backend, bond
        self._wait_timeout, self._rollback_timeout = wait_timeout, rollback_timeout

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        files = [step for step in steps if step.family is FILE]
        paths = [step.key for step in files]
        existing = [str(path) for path in self._backend.existing_files(self._bond.name)]
        after = [("touch", *existing)] if existing else []
        after += [self._backend.reload, *map(self._backend.activate, self._interfaces())]
        created = self._bond.interfaces
        known = self._backend.deletion_pending_commands(created)
        rollback.schedule(self._host, paths, created, known, after, self._rollback_timeout)
        try:
            self._write(files)
            self._apply(steps)
            self._verify()
        except (OSError, UserError) as error:
            message = "Cannot configure bond '%s': %s %s" % (self._bond.name, format_cause(error), self._roll_back())
            code = error.error_code if isinstance(error, UserError) else UserError.error_code
            return [ItemError.of(step, message, error_code=code) for step in steps]
        return []

    def _roll_back(self) -> str:
        """Restore the previous configuration and return the outcome as a sentence."""
        try:
            rollback.run_now(self._host)
        except UserError as error:
            return "Cannot restore the previous configuration: %s See journalctl -u %s." % (
                format_cause(error),
                rollback.UNIT,
            )
        return "The previous configuration was restored."

    def _write(self, files: list[Step]) -> None:
        for step in files:
            if step.action is Action.DELETE:
                Path(step.key).unlink()
            else:
                write_private(Path(step.key), step.full_object["content"], self._backend.mode)

    def _apply(self, steps: list[Step]) -> None:
        deleted = self._interfaces_to_delete(steps)
        for name in deleted:
            self._host.succeeds("ip", "link", "delete", name)
        self._wait_until_removed(deleted)
        if any(step.family is SERVICE for step in steps):
            self._host.run("systemctl", "enable", "--now", self._backend.service)
        self._reload(all_files=bool(deleted))

    def _reload(self, all_files: bool) -> None:
        for path in self._backend.existing_files(self._bond.name) if all_files else ():
            path.touch()
        self._host.run(*self._backend.reload)

    def _wait_until_removed(self, interfaces: list[str]) -> None:
        """Wait until the service has noticed the deletion of these interfaces, at most a few seconds."""
        deadline = time.monotonic() + _DELETION_SECONDS
        for command in self._backend.deletion_pending_commands(interfaces):
            while self._host.succeeds(*command) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)

    def _interfaces(self) -> list[str]:
        return [*self._bond.members, *self._bond.interfaces]

    def _interfaces_to_delete(self, steps: list[Step]) -> list[str]:
        """Return the interfaces to delete before the reload: those whose fixed fields change, and removed VLANs.

        The backends neither change these fields nor delete interfaces.
        """
        vlans = [vlan["name"] for vlan in vlan_objects(fetch_links(self._host), self._bond.name)]
        deleted = []
        for step in steps:
            if step.family is BOND and step.before and _differs(step, ("mode", "lacp_rate", "hash_policy")):
                deleted.append(step.key)
            if step.family is VLAN and step.before and _differs(step, ("id",)):
                deleted.append(step.key)
            if step.family is FILE and step.action is Action.DELETE:
                deleted += [name for name in vlans if name not in self._bond.interfaces and "%s." % name in step.key]
        return list(dict.fromkeys(deleted))

    def _verify(self) -> None:
        """Wait for the desired state, and apply the files again at growing intervals until it is reached."""
        deadline, interval = time.monotonic() + self._wait_timeout, _ACTIVATION_SECONDS
        differences = self._differences_at(min(deadline, time.monotonic() + interval))
        while differences and time.monotonic() < deadline:
            self._reload(all_files=True)
            for interface in self._interfaces():
                self._host.succeeds(*self._backend.activate(interface))
            interval *= 2  # an activation interrupts what is coming up
            differences = self._differences_at(min(deadline, time.monotonic() + interval))
        if differences:
            raise UserError(
                "After %d s these interfaces differ from the desired state: %s. See journalctl -u %s."
                % (self._wait_timeout, "; ".join(map(describe, differences)), self._backend.service)
            )

    def _differences_at(self, deadline: float) -> list[Step]:
        """Return the remaining changes of interfaces at this monotonic time; empty as soon as there are none."""
        while True:
            remaining = _changes(_link_steps(self._host, self._bond))
            if not remaining or time.monotonic() > deadline:
                return remaining
            time.sleep(_POLL_SECONDS)


def _changes(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.action is not Action.NONE]


def _differs(step: Step, names: tuple[str, ...]) -> bool:
    return any(field.name in names for field in step.changed_fields)


def describe(step: Step) -> str:
    """Return an interface that differs from the desired state, with the differences."""
    if step.before is None or step.desired is None:
        return "%s does not exist" % step.key
    before, desired = step.before, step.desired
    fields = [
        "%s is %s instead of %s" % (f.name, format_value(before[f.name]), format_value(desired[f.name]))
        for f in step.changed_fields
    ]
    return "%s (%s)" % (step.key, ", ".join(fields))


_VLAN_OPTIONS = {
    "id": {"type": "int", "required": True},
    "addresses": {"type": "list", "elements": "str", "default": []},
}

POPLAR_NETWORK: Task[t.Any] = Task(
    HOST,
    {
        "name": {"type": "str", "default": "bond0"},
        "members": {"type": "list", "elements": "str", "default": []},
        "mode": {"type": "str", "choices": ["802.3ad", "active-backup", "balance-xor"], "default": "802.3ad"},
        "lacp_rate": {"type": "str", "choices": ["slow", "fast"], "default": "fast"},
        "hash_policy": {"type": "str", "choices": ["layer2", "layer2+3", "layer3+4"], "default": "layer3+4"},
        "mii_monitor": {"type": "int", "default": 100},
        "mtu": {"type": "int", "default": 9000},
        "vlans": {"type": "list", "elements": "dict", "options": _VLAN_OPTIONS, "default": []},
        "backend": {"type": "str", "choices": sorted(BACKENDS), "default": "networkd"},
        "state": {"type": "str", "choices": ["present", "confirmed"], "default": "present"},
        "wait_timeout": {"type": "int", "default": 60},
        "rollback_timeout": {"type": "int", "default": 120},
    },
    _poplar_network,
)
