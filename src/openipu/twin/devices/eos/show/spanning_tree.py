# SPDX-License-Identifier: GPL-3.0-or-later
"""`show spanning-tree` commands. The switch is the root bridge of all instances: no other bridge is attached."""

from __future__ import annotations

from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.ports import numbers_of, short, vlan_set
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.show.formats import dotted, mac

COMMANDS = Commands[ShowContext]()
_INSTANCE = "MST0"  # instance of all VLANs, as no other is configured
_DISABLED = "Spanning tree is disabled."


def _enabled(context: ShowContext) -> bool:
    """Return whether spanning tree runs.

    Raises:
        CliError: in the modes whose output the twin does not know.
    """
    mode = context.switch.running.root.value("spanning-tree", "mode") or "mstp"
    if mode not in {"mstp", "none"}:
        raise CliError(1000, f"Spanning tree mode {mode} is not supported by this command")
    return mode == "mstp"


def _bridge(context: ShowContext) -> dict[str, Any]:
    root = context.switch.running.root
    return {
        "priority": int(root.value("spanning-tree", "priority") or 32768),
        "macAddress": mac(context.switch.hardware.mac),
    }


def _ports(context: ShowContext) -> list[Interface]:
    """Return the interfaces that take part: bridged, up, and not members of a port-channel."""
    return [
        one
        for one in context.switch.forwarding.interfaces.values()
        if one.up and one.vlans.mode != "routed" and not one.group[0]
    ]


def _is_edge(port: Interface) -> bool:
    return bool(port.block.get("spanning-tree", "portfast"))


def _port(port: Interface) -> dict[str, Any]:
    return {
        "role": "designated",
        "state": "forwarding",
        "cost": 2000,
        "priority": 128,
        "isEdgePort": _is_edge(port),
        "linkType": "p2p",
    }


@COMMANDS.add("show spanning-tree", privileged=False)
def _spanning_tree(context: ShowContext, _: tuple[str, ...]) -> Output:
    if not _enabled(context):
        return Output(_DISABLED, {"spanningTreeInstances": {}})
    text, tree = _instance(context, _ports(context))
    return Output(text, {"spanningTreeInstances": {_INSTANCE: tree}})


@COMMANDS.add("show spanning-tree vlan VLANS", privileged=False)
def _vlans(context: ShowContext, values: tuple[str, ...]) -> Output:
    if not _enabled(context):
        return Output(_DISABLED, {"spanningTreeVlanInstances": {}})
    existing = context.switch.running.vlans()
    parts, tree = [], {}
    for vlan in sorted(vlan_set(values[0]) & existing.keys()):
        text, instance = _instance(context, [port for port in _ports(context) if vlan in port.vlans.all_vlans])
        parts.append(f"Spanning tree instance for vlan {vlan}\n{text}")
        tree[str(vlan)] = {"spanningTreeVlanInstance": instance}
    if not tree:
        raise CliError(1000, f"Spanning tree instance for vlan {values[0]} not found")
    return Output("\n\n".join(parts), {"spanningTreeVlanInstances": tree})


def _instance(context: ShowContext, ports: list[Interface]) -> tuple[str, dict[str, Any]]:
    """Return text and JSON form of the instance with these ports."""
    bridge = _bridge(context)
    rows = [
        [
            short(port.name),
            "designated",
            "forwarding",
            "2000",
            f"128.{numbers_of(port.name)[0]}",
            "P2p Edge" if _is_edge(port) else "P2p",
        ]
        for port in ports
    ]
    priority, address = bridge["priority"], dotted(bridge["macAddress"])
    text = "\n".join(
        [
            _INSTANCE,
            "  Spanning tree enabled protocol mstp",
            f"  Root ID    Priority    {priority}",
            f"             Address     {address}",
            "             This bridge is the root",
            "",
            f"  Bridge ID  Priority    {priority}  (priority {priority} sys-id-ext 0)",
            f"             Address     {address}",
            "             Hello Time  2.000 sec  Max Age 20 sec  Forward Delay 15 sec",
            "",
            table(
                ("Interface", "Role", "State", "Cost", "Prio.Nbr", "Type"),
                [["-" * 16, "-" * 10, "-" * 10, "-" * 9, "-" * 8, "-" * 20], *rows],
                (16, 10, 10, 9, 8, 0),
            ),
        ]
    )
    return text, {
        "protocol": "mstp",
        "bridge": bridge,
        "rootBridge": bridge,
        "interfaces": {port.name: _port(port) for port in ports},
    }


@COMMANDS.add("show spanning-tree blockedports", privileged=False)
def _blocked(context: ShowContext, _: tuple[str, ...]) -> Output:
    _enabled(context)
    rule = [["-" * 10, "-" * 66]]
    text = table(("Name", "Blocked Ports"), rule, (10, 0)) + "\n\nNumber of blocked ports (segments) in the system : 0"
    return Output(text, {"spanningTreeInstances": {}})


@COMMANDS.add("show spanning-tree root detail", privileged=False)
def _root_detail(context: ShowContext, _: tuple[str, ...]) -> Output:
    return Output(None, _root(context, ()).tree)


@COMMANDS.add("show spanning-tree root", privileged=False)
def _root(context: ShowContext, _: tuple[str, ...]) -> Output:
    if not _enabled(context):
        return Output(_DISABLED, {"instances": {}})
    bridge = _bridge(context)
    rows = [[_INSTANCE, f"{bridge['priority']} {bridge['macAddress']}", "0", "2.0", "20", "15", ""]]
    heads = ("Instance", "Root ID", "Cost", "Hello Time", "Max Age", "Fwd Dly", "Root Port")
    widths = (10, 27, 6, 10, 7, 7, 0)
    root = {
        "priority": bridge["priority"],
        "systemIdExtension": 0,
        "macAddress": bridge["macAddress"],
        "helloTime": 2.0,
        "maxAge": 20,
        "forwardDelay": 15,
    }
    return Output(table(heads, rows, widths), {"instances": {_INSTANCE: {"rootBridge": root}}})


@COMMANDS.add("show spanning-tree topology vlan VLANS status [detail]", privileged=False)
def _topology(context: ShowContext, values: tuple[str, ...]) -> Output:
    wanted = vlan_set(values[0]) & context.switch.running.vlans().keys()
    return _topology_of(context, wanted)


@COMMANDS.add("show spanning-tree topology status [detail]", privileged=False)
def _all_topologies(context: ShowContext, _: tuple[str, ...]) -> Output:
    return _topology_of(context, frozenset(context.switch.running.vlans()))


def _topology_of(context: ShowContext, vlans: frozenset[int] | set[int]) -> Output:
    if not _enabled(context) or not vlans:
        return Output(None, {"topologies": {}})
    ports = [port for port in _ports(context) if vlans & port.vlans.all_vlans]
    changed = context.switch.booted
    interfaces = {port.name: {"state": "forwarding", "numChanges": 1, "lastChange": changed} for port in ports}
    return Output(None, {"topologies": {"Cist": {"vlans": sorted(vlans), "interfaces": interfaces}}})


@COMMANDS.add("show spanning-tree counters", privileged=False)
def _counters(context: ShowContext, _: tuple[str, ...]) -> Output:
    # A root bridge sends one message per hello time (2 s), and receives none.
    sent = int((context.switch.clock() - context.switch.booted) // 2) if _enabled(context) else 0
    ports = _ports(context)
    heads = ("Port", "Sent", "Received", "Tagged Error", "Other Error")
    widths = (17, 12, 12, 14, 0)
    rows = [["-" * 16, "-" * 11, "-" * 11, "-" * 13, "-" * 12]]
    rows += [[port.name, str(sent), "0", "0", "0"] for port in ports]
    tree = {
        port.name: {
            "bpduSent": sent,
            "bpduReceived": 0,
            "bpduTaggedError": 0,
            "bpduOtherError": 0,
            "bpduRateLimitCount": 0,
        }
        for port in ports
    }
    return Output(table(heads, rows, widths), {"interfaces": tree})
