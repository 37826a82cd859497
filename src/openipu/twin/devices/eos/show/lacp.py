# SPDX-License-Identifier: GPL-3.0-or-later
"""`show lacp` commands, in JSON."""

from __future__ import annotations

from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.ports import kind_of, numbers_of
from openipu.twin.devices.eos.show.context import ShowContext, selected
from openipu.twin.devices.eos.show.formats import mac

COMMANDS = Commands[ShowContext]()
_PRIORITY = 32768


def _members(context: ShowContext, values: tuple[str, ...]) -> dict[str, list[Interface]]:
    """Return port-channels and their ports that use LACP, of the named interfaces only."""
    forwarding = context.switch.forwarding
    names = {one.name for one in selected(forwarding, values)}
    found: dict[str, list[Interface]] = {}
    for port in forwarding.interfaces.values():
        if port.group[1] in {"active", "passive"} and names & {port.name, port.group[0]}:
            found.setdefault(port.group[0], []).append(port)
    return {name: found[name] for name in forwarding.interfaces if name in found and kind_of(name) == "Port-Channel"}


def _state(port: Interface, active: bool) -> dict[str, bool]:
    return {
        "activity": active,
        "timeout": port.block.value("lacp", "timer") == "fast",
        "aggregation": True,
        "synchronization": port.bundled,
        "collecting": port.bundled,
        "distributing": port.bundled,
        "defaulted": False,
        "expired": False,
    }


def _system(address: str) -> str:
    return f"{_PRIORITY:04X},{address.replace(':', '-')}"


def _port(context: ShowContext, port: Interface) -> dict[str, Any]:
    number, group = numbers_of(port.name)[0], numbers_of(port.group[0])[0]
    found: dict[str, Any] = {
        "actorPortStatus": "bundled" if port.bundled else "noAgg",
        "actorSystemId": _system(mac(context.switch.hardware.mac)),
        "actorPortId": number,
        "actorOperKey": f"0x{group:04x}",
        "actorPortPriority": int(port.block.value("lacp", "port-priority") or _PRIORITY),
        "actorPortState": _state(port, port.group[1] == "active"),
    }
    other = port.neighbour
    if port.bundled and other is not None:
        found |= {
            "partnerSystemId": _system(other.chassis.lower() or "00:00:00:00:00:00"),
            "partnerPortId": 1,
            "partnerOperKey": f"0x{group:04x}",
            "partnerPortPriority": _PRIORITY,
            "partnerPortState": _state(port, True),
            "details": {"actorChurnState": "noChurn", "partnerChurnState": "noChurn"},
        }
    return found


@COMMANDS.add("show lacp interface detailed", "show lacp interface INTFS detailed", privileged=False)
def _detailed(context: ShowContext, values: tuple[str, ...]) -> Output:
    members = _members(context, values)
    tree = {lag: {"interfaces": {port.name: _port(context, port) for port in ports}} for lag, ports in members.items()}
    return Output(None, {"portChannels": tree})


@COMMANDS.add("show lacp counters all-ports", privileged=False)
def _counters(context: ShowContext, _: tuple[str, ...]) -> Output:
    members = _members(context, ())
    tree = {lag: {"interfaces": {port.name: {"illegalRxCount": 0} for port in ports}} for lag, ports in members.items()}
    return Output(None, {"portChannels": tree})
