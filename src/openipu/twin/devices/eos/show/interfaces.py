# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about interfaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.forwarding import EVERY_VLAN, GIGABIT, Forwarding, Interface
from openipu.twin.devices.eos.ports import kind_of, short, vlan_text
from openipu.twin.devices.eos.show import counters
from openipu.twin.devices.eos.show.addresses import BROADCAST, addresses
from openipu.twin.devices.eos.show.context import ShowContext, selected
from openipu.twin.devices.eos.show.formats import dotted, mac

COMMANDS = Commands[ShowContext]()
_HARDWARE = {
    "Ethernet": "ethernet",
    "Management": "ethernet",
    "Port-Channel": "portChannel",
    "Vlan": "vlan",
    "Loopback": "loopback",
}


def speed(bandwidth: int) -> str:
    """Return bits per second in the form of EOS tables: `100G`, `1G`, `100M`."""
    return f"{bandwidth // GIGABIT}G" if bandwidth >= GIGABIT else f"{bandwidth // 10**6}M"


def _physical(interface: Interface) -> bool:
    return kind_of(interface.name) in {"Ethernet", "Management"}


def _media(interface: Interface) -> str:
    if kind_of(interface.name) == "Port-Channel":
        return "N/A"
    if kind_of(interface.name) == "Management" or interface.bandwidth <= GIGABIT:
        return "10/100/1000" if kind_of(interface.name) == "Management" else "1000BASE-T"
    return (
        f"{speed(interface.bandwidth)}BASE-CR{'4' if interface.bandwidth >= 40 * GIGABIT else ''}"
        if interface.neighbour
        else "Not Present"
    )


def protocol(interface: Interface) -> str:
    """Return the state of the line protocol: `up`, `down`, `notPresent` or `lowerLayerDown`."""
    if interface.up:
        return "up"
    if not _physical(interface):
        return "lowerLayerDown"
    return "down" if interface.neighbour else "notPresent"


def _forwarding_model(interface: Interface) -> str:
    return "dataLink" if interface.group[0] else "routed" if interface.vlans.mode == "routed" else "bridged"


def _vlan_information(interface: Interface) -> dict[str, Any]:
    model = _forwarding_model(interface)
    if interface.group[0]:
        return {"vlanExplanation": f"in {short(interface.group[0])}", "interfaceForwardingModel": model}
    vlans = interface.vlans
    if vlans.mode == "access":
        return {"interfaceMode": model, "vlanId": vlans.access, "interfaceForwardingModel": model}
    return {"interfaceMode": vlans.mode, "vlanExplanation": vlans.mode, "interfaceForwardingModel": model}


@COMMANDS.add("show interfaces status", "show interfaces INTFS status", privileged=False)
def _status(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = [
        one
        for one in selected(context.switch.forwarding, values)
        if kind_of(one.name) in {"Ethernet", "Management", "Port-Channel"}
    ]
    tree = {
        one.name: {
            "vlanInformation": _vlan_information(one),
            "bandwidth": one.bandwidth,
            "interfaceType": _media(one),
            "description": one.description,
            "autoNegotiateActive": kind_of(one.name) == "Management",
            "duplex": "duplexFull",
            "autoNegotigateActive": kind_of(one.name) == "Management",
            "linkStatus": one.link,
            "lineProtocolStatus": protocol(one),
        }
        for one in found
    }
    rows = []
    for one in found:
        auto = "a-" if kind_of(one.name) == "Management" else ""
        vlan = _vlan_information(one)
        shown = str(vlan.get("vlanId", vlan.get("vlanExplanation", "")))
        rows.append(
            [short(one.name), one.description, one.link, shown, f"{auto}full", auto + speed(one.bandwidth), _media(one)]
        )
    heads = ("Port", "Name", "Status", "Vlan", "Duplex", "Speed", "Type            Flags Encapsulation")
    return Output(table(heads, rows, (10, 4, 12, 8, 6, 6, 15)), {"interfaceStatuses": tree})


@COMMANDS.add("show interfaces status errdisabled", "show interfaces INTFS status errdisabled", privileged=False)
def _errdisabled(context: ShowContext, _: tuple[str, ...]) -> Output:
    # Nothing in the twin disables a port because of errors.
    return Output("", {"interfaceStatuses": {}})


@COMMANDS.add("show interfaces description", "show interfaces INTFS description", privileged=False)
def _description(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = selected(context.switch.forwarding, values)
    rows = [[short(one.name), status_word(one), protocol(one).lower(), one.description] for one in found]
    tree = {
        one.name: {
            "description": one.description,
            "interfaceStatus": status_word(one).replace("admin down", "adminDown"),
            "lineProtocolStatus": protocol(one),
        }
        for one in found
    }
    heads = ("Interface", "Status", "Protocol", "Description")
    return Output(table(heads, rows, (30, 14, 18, 0)), {"interfaceDescriptions": tree})


def status_word(interface: Interface) -> str:
    """Return the state in the form of `show interfaces description`."""
    return "up" if interface.up else "admin down" if interface.link == "disabled" else "down"


def hardware_address(context: ShowContext, interface: Interface) -> str:
    """Return the MAC address of an interface; virtual ones have that of the switch."""
    ports = context.switch.ports.physical
    offset = ports.index(interface.name) + 1 if interface.name in ports else 0
    return mac(context.switch.hardware.mac, offset)


@COMMANDS.add("show interfaces", "show interfaces INTFS", privileged=False)
def _interfaces(context: ShowContext, values: tuple[str, ...]) -> Output:
    context.switch.counters.settle()
    forwarding = context.switch.forwarding
    found = selected(forwarding, values)
    return Output(
        "\n".join(line for one in found for line in _printed(context, forwarding, one)),
        {"interfaces": {one.name: _tree(context, forwarding, one) for one in found}},
    )


def _tree(context: ShowContext, forwarding: Forwarding, one: Interface) -> dict[str, Any]:
    kind = kind_of(one.name)
    tree: dict[str, Any] = {
        "name": one.name,
        "forwardingModel": _forwarding_model(one),
        "lineProtocolStatus": protocol(one),
        "interfaceStatus": one.link,
        "hardware": _HARDWARE[kind],
        "interfaceAddress": addresses(one),
        "description": one.description,
        "bandwidth": one.bandwidth,
        "mtu": one.mtu,
        "l3MtuConfigured": bool(one.block.get("mtu")),
        "l2Mru": 0,
        "lastStatusChangeTimestamp": context.switch.counters.of(one.name).changed,
    }
    if kind != "Loopback":
        tree["physicalAddress"] = tree["burnedInAddress"] = hardware_address(context, one)
    if _physical(one):
        tree |= {"duplex": "duplexFull", "autoNegotiate": "off", "loopbackMode": "loopbackNone", "lanes": 0}
    if _physical(one) or kind == "Port-Channel":
        tree["interfaceCounters"] = counters.detail(context, one)
    if kind == "Port-Channel":
        tree["memberInterfaces"] = {
            port.name: {"bandwidth": port.bandwidth, "duplex": "duplexFull"}
            for port in forwarding.members(one.name)
            if port.bundled
        }
        tree["fallbackEnabled"] = bool(one.block.all("port-channel", "lacp", "fallback"))
    return tree


def _printed(context: ShowContext, forwarding: Forwarding, one: Interface) -> Iterable[str]:
    kind = kind_of(one.name)
    state = {"connected": "up", "notconnect": "down", "disabled": "administratively down"}[one.link]
    yield f"{one.name} is {state}, line protocol is {protocol(one).lower()} ({one.link})"
    address = dotted(hardware_address(context, one))
    named = {"Ethernet": "Ethernet", "Management": "Ethernet"}.get(kind, kind)
    yield f"  Hardware is {named}" + ("" if kind == "Loopback" else f", address is {address} (bia {address})")
    if one.description:
        yield f"  Description: {one.description}"
    if one.group[0]:
        yield f"  Member of {one.group[0]}"
    for item in addresses(one):
        yield f"  Internet address is {item['primaryIp']['address']}/{item['primaryIp']['maskLen']}"
        yield f"  Broadcast address is {BROADCAST}"
    model = "IP MTU" if _forwarding_model(one) == "routed" else "Ethernet MTU"
    width = f" , BW {one.bandwidth // 1000} kbit" if one.bandwidth else ""
    yield f"  {model} {one.mtu} bytes{width}"
    if _physical(one):
        rate = f"{one.bandwidth // GIGABIT}Gb/s" if one.bandwidth >= GIGABIT else f"{one.bandwidth // 10**6}Mb/s"
        yield f"  Full-duplex, {rate}, auto negotiation: off, uni-link: n/a"
    if kind == "Port-Channel":
        bundled = [port for port in forwarding.members(one.name) if port.bundled]
        yield f"  Active members in this channel: {len(bundled)}"
        for port in bundled:
            yield f"  ... {port.name} , Full-duplex, {speed(port.bandwidth)}b/s"
    if _physical(one) or kind == "Port-Channel":
        counted = counters.detail(context, one)
        for way, word in (("in", "input"), ("out", "output")):
            yield f"     {counted[f'{way}TotalPkts']} packets {word}, {counted[f'{way}Octets']} bytes"
            yield (
                f"     Received 0 broadcasts, {counted['inMulticastPkts']} multicast"
                if way == "in"
                else (f"     Sent 0 broadcasts, {counted['outMulticastPkts']} multicast")
            )


@COMMANDS.add("show interfaces switchport", "show interfaces INTFS switchport", privileged=False)
def _switchport(context: ShowContext, values: tuple[str, ...]) -> Output:
    names = {number: block.value("name") for number, block in context.switch.running.vlans().items()}
    found = [
        one
        for one in selected(context.switch.forwarding, values)
        if kind_of(one.name) in {"Ethernet", "Port-Channel"} and one.vlans.mode != "routed"
    ]
    tree, text = {}, []
    for one in found:
        vlans = one.vlans
        native = vlans.native or 0
        allowed = "ALL" if vlans.allowed == EVERY_VLAN else vlan_text(vlans.allowed) or "NONE"
        tree[one.name] = {
            "enabled": True,
            "switchportInfo": {
                "mode": vlans.mode,
                "accessVlanId": vlans.access,
                "accessVlanName": _vlan_name(names, vlans.access),
                "trunkingNativeVlanId": native,
                "trunkingNativeVlanName": _vlan_name(names, native),
                "trunkAllowedVlans": allowed,
                "macLearning": True,
                "tpid": "0x8100",
                "tpidStatus": True,
                "dot1qVlanTagRequired": vlans.native is None,
                "dynamicAllowedVlans": {},
                "staticTrunkGroups": [],
                "dynamicTrunkGroups": [],
                "sourceportFilterMode": "enabled",
            },
        }
        mode = {"access": "static access"}.get(vlans.mode, vlans.mode)
        text += [
            f"Name: {short(one.name)}",
            "Switchport: Enabled",
            f"Administrative Mode: {mode}",
            f"Operational Mode: {mode}",
            "MAC Address Learning: enabled",
            "Dot1q ethertype/TPID: 0x8100 (active)",
            "Dot1q VLAN Tag: Allowed",
            f"Access Mode VLAN: {vlans.access} ({_vlan_name(names, vlans.access)})",
            f"Trunking Native Mode VLAN: {native} ({_vlan_name(names, native)})",
            "Administrative Native VLAN tagging: " + ("enabled" if vlans.native is None else "disabled"),
            f"Trunking VLANs Enabled: {allowed}",
            "Static Trunk Groups:",
            "Dynamic Trunk Groups:",
            "Source interface filtering: enabled",
            "",
        ]
    return Output("\n".join(text), {"switchports": tree})


def _vlan_name(names: dict[int, str | None], vlan: int) -> str:
    if vlan == 0:
        return "tag"
    if vlan not in names:
        return "inactive"
    return names[vlan] or ("default" if vlan == 1 else f"VLAN{vlan:04d}")


@COMMANDS.add("show interfaces trunk", "show interfaces INTFS trunk", privileged=False)
def _trunk(context: ShowContext, values: tuple[str, ...]) -> Output:
    existing = frozenset(context.switch.running.vlans())
    found = [
        one
        for one in selected(context.switch.forwarding, values)
        if one.vlans.mode == "trunk" and one.up and not one.group[0]
    ]

    def part(heads: tuple[str, ...], rows: list[list[str]]) -> str:
        return table(heads, rows, (15, 15, 15, 0)[: len(heads)])

    def allowed(one: Interface) -> str:
        return "All" if one.vlans.allowed == EVERY_VLAN else vlan_text(one.vlans.allowed) or "None"

    active = [[short(one.name), vlan_text(one.vlans.allowed & existing) or "None"] for one in found]
    text = "\n\n".join(
        [
            part(
                ("Port", "Mode", "Status", "Native vlan"),
                [[short(one.name), "trunk", "trunking", str(one.vlans.native or "tag")] for one in found],
            ),
            part(("Port", "Vlans allowed"), [[short(one.name), allowed(one)] for one in found]),
            part(("Port", "Vlans allowed and active in management domain"), active),
            part(("Port", "Vlans in spanning tree forwarding state"), active),
        ]
    )
    tree = {
        one.name: {
            "portMode": "trunk",
            "status": "trunking",
            "nativeVlan": one.vlans.native or 0,
            "allowedVlans": {"vlanIds": sorted(one.vlans.allowed)},
            "activeVlans": {"vlanIds": sorted(one.vlans.allowed & existing)},
            "forwardingVlans": {"vlanIds": sorted(one.vlans.allowed & existing)},
        }
        for one in found
    }
    return Output(text, {"trunks": tree})
