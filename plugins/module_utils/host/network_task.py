# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module poplar_network does."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ..files import write_private
from ..reconcile import Action, ItemError, Object, SentenceError, Step, converge, plan
from ..runner import Run, Task
from . import returning
from .backends import BACKENDS, Backend
from .commands import HOST, Host
from .links import bond_object, check_members, ports, read, vlan_objects, word
from .network import BOND, FILE, SERVICE, VLAN, Bond, wanted

_POLL_SECONDS = 0.3
_BY_ITSELF_SECONDS = 10  # that interfaces have for coming up before each is told to


def _network(run: Run[Host]) -> Object:
    if run.params["state"] == "kept":
        return _keep(run)
    host, backend = run.transport, BACKENDS[run.params["backend"]]
    links = read(host)
    members = run.params["members"] or _two_ports(ports(links))
    bond = wanted(run.params, members)
    check_members(host, links, bond.name, members)
    steps = _file_steps(backend, bond)
    steps += plan(SERVICE, [{"name": backend.service, "enabled": True, "active": True}], backend.service_objects(host))
    steps += _link_steps(host, bond)
    writer = _Writer(host, backend, bond, run.params["wait_timeout"], run.params["return_timeout"])
    result = converge(steps, writer, run.check_mode, run.diff).result()
    partner = _partner(bond)
    if bond.mode == "802.3ad" and not partner and not run.check_mode and not result.get("failed"):
        run.warnings.append(
            "Nobody at the other end of %s speaks LACP yet: bundle the ports of %s in a port-channel of the switch."
            % (bond.name, ", ".join(members))
        )
    return {**result, "name": bond.name, "members": list(members), "partner": partner}


def _keep(run: Run[Host]) -> Object:
    armed = returning.armed()
    if armed and not run.check_mode:
        returning.disarm(run.transport)
    return {"changed": armed}


def _two_ports(found: list[str]) -> list[str]:
    if len(found) != 2:
        told = ", ".join(found) or "none"
        raise SentenceError("A bond is made of the two ports of a ConnectX, and this host has %s: name members." % told)
    return found


def _file_steps(backend: Backend, bond: Bond) -> list[Step]:
    there = [{"path": str(path), "content": path.read_text()} for path in backend.present(bond.name)]
    return plan(FILE, backend.files(bond), there, prune=lambda item: True)


def _link_steps(host: Host, bond: Bond) -> list[Step]:
    links = read(host)
    wanted_bond, wanted_vlans = bond.objects()
    actual = vlan_objects(links, bond.name)
    return plan(BOND, [wanted_bond], bond_object(links, bond.name)) + plan(VLAN, wanted_vlans, actual)


def _partner(bond: Bond) -> str:
    """The address of the switch that the ports are bundled with, empty without one."""
    mac = word(Path("/sys/class/net/%s/bonding/ad_partner_mac" % bond.name))
    return "" if set(mac) <= set("0:") else mac


class _Writer:
    """Writes the files, has them carried out, waits until all is as it is wanted, and goes back if that fails."""

    def __init__(self, host: Host, backend: Backend, bond: Bond, wait: int, back: int) -> None:
        self._host, self._backend, self._bond, self._wait, self._back = host, backend, bond, wait, back

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        files = [step for step in steps if step.family is FILE]
        paths = [step.key for step in files]
        there = [str(path) for path in self._backend.present(self._bond.name)]
        after = [("touch", *there)] if there else []
        after += [self._backend.reload, *map(self._backend.settle, self._interfaces())]
        returning.arm(self._host, paths, self._bond.made, after, self._back)
        try:
            self._write(files)
            self._apply(steps)
            self._await()
        except (OSError, SentenceError) as error:
            returning.now(self._host)
            why = error.sentence if isinstance(error, SentenceError) else str(error)
            sentence = "%s did not come up and everything is as it was: %s" % (self._bond.name, why)
            return [ItemError.of(step, sentence) for step in steps]
        return []

    def _write(self, files: list[Step]) -> None:
        for step in files:
            if step.action is Action.DELETE:
                Path(step.key).unlink()
            else:
                write_private(Path(step.key), step.whole["content"], self._backend.mode)

    def _apply(self, steps: list[Step]) -> None:
        gone = self._to_be_made_anew(steps)
        for name in gone:
            self._host.succeeds("ip", "link", "delete", name)
        for path in self._backend.present(self._bond.name) if gone else ():
            path.touch()
        if any(step.family is SERVICE for step in steps):
            self._host.run("systemctl", "enable", "--now", self._backend.service)
        self._host.run(*self._backend.reload)
        if self._differs_after(min(self._wait, _BY_ITSELF_SECONDS)):
            for interface in self._interfaces():
                self._host.succeeds(*self._backend.settle(interface))

    def _interfaces(self) -> list[str]:
        return [*self._bond.members, *self._bond.made]

    def _to_be_made_anew(self, steps: list[Step]) -> list[str]:
        """What a bond or a VLAN is cannot be changed while it is there; nor does one go by itself."""
        links = read(self._host)
        kinds = {vlan["name"]: vlan["id"] for vlan in vlan_objects(links, self._bond.name)}
        gone = []
        for step in steps:
            if step.family is BOND and step.before and _differs(step, ("mode", "lacp_rate", "hash_policy")):
                gone.append(step.key)
            if step.family is VLAN and step.before and _differs(step, ("id",)):
                gone.append(step.key)
            if step.family is FILE and step.action is Action.DELETE:
                gone += [name for name in kinds if name not in self._bond.made and "%s." % name in step.key]
        return list(dict.fromkeys(gone))

    def _await(self) -> None:
        left = self._differs_after(self._wait)
        if left:
            raise SentenceError(
                "after %d s these are not as wanted: %s. Look into journalctl -u %s."
                % (self._wait, ", ".join(step.key for step in left), self._backend.service)
            )

    def _differs_after(self, seconds: float) -> list[Step]:
        """What is not as it is wanted after so long; nothing as soon as all is."""
        deadline = time.monotonic() + seconds
        while True:
            left = _changes(_link_steps(self._host, self._bond))
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(_POLL_SECONDS)


def _changes(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.action is not Action.NONE]


def _differs(step: Step, names: tuple[str, ...]) -> bool:
    before, wanted_object = step.before or {}, step.wanted or {}
    return any(field.differs(wanted_object, before) for field in step.family.fields if field.name in names)


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
        "state": {"type": "str", "choices": ["present", "kept"], "default": "present"},
        "wait_timeout": {"type": "int", "default": 60},
        "return_timeout": {"type": "int", "default": 120},
    },
    _network,
)
