# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about VLANs, MAC addresses and port-channels."""

from __future__ import annotations

from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.forwarding import Interface, MacEntry
from openipu.twin.devices.eos.ports import kind_of, numbers_of, short, vlan_set
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.show.formats import ago, dotted

COMMANDS = Commands[ShowContext]()
_FLAGS = """                 Flags
------------------------ ---------------------------- -------------------------
  a - LACP Active          p - LACP Passive           * - static fallback
  F - Fallback enabled     f - Fallback configured    ^ - individual fallback
  U - In Use               D - Down
  + - In-Sync              - - Out-of-Sync            i - incompatible with agg
  P - bundled in Po        s - suspended              G - Aggregable
  I - Individual           S - ShortTimeout           w - wait for agg
  E - Inactive. The number of configured port channels exceeds the config limit
   M - Exceeds maximum weight
"""


@COMMANDS.add("show vlan [brief]", "show vlan id VLANS", "show vlan VLANS", privileged=False)
def _vlans(context: ShowContext, values: tuple[str, ...]) -> Output:
    forwarding = context.switch.forwarding
    vlans = context.switch.running.vlans()
    if values:
        vlans = {vlan: block for vlan, block in vlans.items() if vlan in vlan_set(values[0])}
        if not vlans:
            raise CliError(1000, f"VLAN {values[0]} not found in current VLAN database")
    rows, tree = [], {}
    for vlan, block in vlans.items():
        # The switch itself is a member of a VLAN through its interface Vlan<n>.
        cpu = ["Cpu"] if f"Vlan{vlan}" in forwarding.interfaces else []
        ports = [*cpu, *forwarding.ports_in_vlan(vlan)]
        name = block.value("name") or ("default" if vlan == 1 else f"VLAN{vlan:04d}")
        status = {"suspend": "suspended"}.get(block.value("state") or "", "active")
        rows.append([str(vlan), name, status, ", ".join(map(short, ports))])
        tree[str(vlan)] = {
            "name": name,
            "dynamic": False,
            "status": status,
            "interfaces": {port: {"privatePromoted": False} for port in ports},
        }
    widths = (5, 32, 9, 31)
    text = table(("VLAN", "Name", "Status", "Ports"), [["-" * width for width in widths], *rows], (*widths[:3], 0))
    return Output(text, {"vlans": tree, "sourceDetail": ""})


@COMMANDS.add(
    "show mac address-table [dynamic|static]",
    "show mac address-table interface* INTFS",
    "show mac address-table vlan* VLAN",
    "show mac address-table address* MAC",
    privileged=False,
)
def _macs(context: ShowContext, values: tuple[str, ...]) -> Output:
    entries = [entry for entry in context.switch.forwarding.mac_table if not values or _matches(entry, values[0])]
    moved = context.switch.booted
    rows = [
        [
            f"{entry.vlan:>4}",
            dotted(entry.mac),
            "STATIC" if entry.static else "DYNAMIC",
            short(entry.interface),
            *([] if entry.static else ["1", f"{ago(context.switch.clock() - moved)} ago"]),
        ]
        for entry in entries
    ]
    heads = ["Vlan", "Mac Address", "Type", "Ports", "Moves", "Last Move"]
    rule = ["----", "-----------", "----", "-----", "-----", "---------"]
    widths = (7, 17, 11, 10, 7, 0)
    padded = [row + [""] * (len(heads) - len(row)) for row in rows]
    bar = "-" * 66
    text = "\n".join(
        [
            "          Mac Address Table",
            bar,
            "",
            table(heads, [rule, *padded], widths),
            f"Total Mac Addresses for this criterion: {len(rows)}",
            "",
            "          Multicast Mac Address Table",
            bar,
            "",
            table(heads[:4], [rule[:4]], widths[:4]),
            "Total Mac Addresses for this criterion: 0",
        ]
    )
    tree = [
        {"vlanId": entry.vlan, "macAddress": entry.mac, "entryType": "static", "interface": entry.interface}
        if entry.static
        else {
            "vlanId": entry.vlan,
            "macAddress": entry.mac,
            "entryType": "dynamic",
            "interface": entry.interface,
            "moves": 1,
            "lastMove": moved,
        }
        for entry in entries
    ]
    return Output(
        text,
        {
            "unicastTable": {"tableEntries": tree},
            "multicastTable": {"tableEntries": []},
            "disabledMacLearningVlans": [],
        },
    )


def _matches(entry: MacEntry, criterion: str) -> bool:
    if criterion in {"dynamic", "static"}:
        return entry.static == (criterion == "static")
    return criterion in {str(entry.vlan), dotted(entry.mac)} or entry.interface in criterion.split(",")


def _lags(context: ShowContext, values: tuple[str, ...]) -> list[Interface]:
    found = [one for one in context.switch.forwarding.interfaces.values() if kind_of(one.name) == "Port-Channel"]
    return [one for one in found if not values or numbers_of(one.name)[0] == int(values[0])]


@COMMANDS.add("show port-channel", "show port-channel <1-2000> [all-ports]", privileged=False)
def _port_channels(context: ShowContext, values: tuple[str, ...]) -> Output:
    forwarding = context.switch.forwarding
    lines: list[str] = []
    tree: dict[str, Any] = {}
    for lag in _lags(context, values):
        active = [port for port in forwarding.members(lag.name) if port.bundled]
        inactive = [port for port in forwarding.members(lag.name) if not port.bundled]
        lines += [f"Port Channel {lag.name}:", f"  {_active(active)}"]
        if inactive:
            lines += [
                "  Configured, but inactive ports:",
                "       Port           Time Became Inactive   Reason",
                "    -------------- ------------------------- --------------------",
                *(f"     {port.name:<16} Always                  {_reason(port)}" for port in inactive),
            ]
        tree[lag.name] = {
            "recircFeature": [],
            "fallbackState": "unconfigured",
            "minLinks": int(lag.block.value("port-channel", "min-links") or 0),
            "minSpeed": "0 gbps",
            "currWeight": len(active),
            "maxWeight": 16,
            "rxPorts": {},
            "activePorts": {
                port.name: {
                    "protocol": "static" if port.group[1] == "on" else "lacp",
                    "weight": 1,
                    "timeBecameActive": context.switch.booted,
                    **({} if port.group[1] == "on" else {"lacpMode": port.group[1]}),
                }
                for port in active
            },
            "inactivePorts": {
                port.name: {"timeBecameInactive": 0.0, "reasonUnconfigured": _reason(port)} for port in inactive
            },
            "inactiveLag": False,
        }
    return Output("\n".join(lines), {"portChannels": tree})


def _active(ports: list[Interface]) -> str:
    return f"Active Ports: {' '.join(port.name for port in ports)}" if ports else "No Active Ports"


def _reason(port: Interface) -> str:
    return (
        "waiting for LACP response"
        if port.up
        else "link down in LACP negotiation"
        if port.group[1] != "on"
        else "link down"
    )


@COMMANDS.add(
    "show port-channel dense|summary|brief", "show port-channel <1-2000> dense|summary|brief", privileged=False
)
def _port_channels_dense(context: ShowContext, values: tuple[str, ...]) -> Output:
    forwarding = context.switch.forwarding
    rows, tree, used = [], {}, 0
    for lag in _lags(context, values[:-1]):
        ports = forwarding.members(lag.name)
        mode = ports[0].group[1] if ports else "on"
        lacp = mode != "on"
        used += lag.up
        flag = {"active": "a", "passive": "p"}.get(mode, "")
        rows.append(
            [
                f"   {short(lag.name)}({'U' if lag.up else 'D'})",
                f"LACP({flag})" if lacp else "Static",
                " ".join(f"{short(port.name)}({_flags(port, lacp)})" for port in ports),
            ]
        )
        tree[lag.name] = {
            "protocol": "lacp" if lacp else "static",
            "lacpMode": mode,
            "linkState": "up" if lag.up else "down",
            "fallback": {"config": "unconfigured", "status": "disabled"},
            "ports": {
                port.name: {
                    "intfState": "bundled" if port.bundled else "unbundled",
                    "linkDown": not port.up,
                    "lacpMode": mode,
                }
                for port in ports
            },
        }
    widths = (18, 14, 9)
    rule = [["-" * width for width in widths]]
    text = "\n".join(
        [
            _FLAGS,
            f"Number of channels in use: {used}",
            f"Number of aggregators: {used}",
            "",
            table(("   Port-Channel", "   Protocol", "Ports"), rule + rows, widths),
        ]
    )
    return Output(text, {"portChannels": tree, "numberOfChannelsInUse": used, "numberOfAggregators": used})


def _flags(port: Interface, lacp: bool) -> str:
    if port.bundled:
        return "PG+" if lacp else "P"
    return "I" if port.up else "D"
