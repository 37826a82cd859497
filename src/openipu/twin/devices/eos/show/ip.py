# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about IP interfaces and VRFs. The twin has no IPv6 addresses."""

from __future__ import annotations

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.show.addresses import BROADCAST, addresses
from openipu.twin.devices.eos.show.context import ShowContext, selected
from openipu.twin.devices.eos.show.interfaces import protocol, status_word

COMMANDS = Commands[ShowContext]()


@COMMANDS.add("show ip interface", "show ip interface INTFS", privileged=False)
def _ip(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = [(one, item) for one in selected(context.switch.forwarding, values) for item in addresses(one)]
    lines, tree = [], {}
    for one, item in found:
        primary = item["primaryIp"]
        lines += [
            f"{one.name} is {status_word(one).replace('admin', 'administratively')}, line protocol is "
            f"{protocol(one).lower()} ({one.link})",
            f"  Internet address is {primary['address']}/{primary['maskLen']}",
            *(
                f"  Secondary address is {each['address']}/{each['maskLen']}"
                for each in item["secondaryIpsOrderedList"]
            ),
            f"  Broadcast address is {BROADCAST}",
            "  IPv6 Interface Forwarding : None",
            "  Proxy-ARP is disabled",
            "  Local Proxy-ARP is disabled",
            "  Gratuitous ARP is ignored",
            f"  IP MTU {one.mtu} bytes",
        ]
        tree[one.name] = {
            "name": one.name,
            "description": one.description,
            "interfaceStatus": one.link,
            "lineProtocolStatus": protocol(one),
            "enabled": True,
            "interfaceAddress": item,
            "mtu": one.mtu,
            "vrf": one.block.value("vrf") or "default",
            "proxyArp": False,
            "localProxyArp": False,
            "gratuitousArp": False,
            "urpf": "disable",
            "addresslessForwarding": "isInvalid",
            "directedBroadcastEnabled": False,
        }
    return Output("\n".join(lines), {"interfaces": tree})


@COMMANDS.add("show ip interface brief", "show ip interface INTFS brief", privileged=False)
def _ip_brief(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = [(one, item) for one in selected(context.switch.forwarding, values) for item in addresses(one)]
    rows = [
        [
            one.name,
            f"{item['primaryIp']['address']}/{item['primaryIp']['maskLen']}",
            status_word(one),
            protocol(one).lower(),
            str(one.mtu),
        ]
        for one, item in found
    ]
    tree = {
        one.name: {
            "name": one.name,
            "interfaceStatus": one.link,
            "lineProtocolStatus": protocol(one),
            "mtu": one.mtu,
            "interfaceAddress": {"ipAddr": item["primaryIp"]},
            "ipv4Routable240": False,
        }
        for one, item in found
    }
    heads = ("Interface", "IP Address", "Status", "Protocol", "MTU")
    return Output(table(heads, rows, (17, 21, 12, 14, 8)), {"interfaces": tree})


@COMMANDS.add("show ipv6 interface [brief]", privileged=False)
def _ipv6(context: ShowContext, _: tuple[str, ...]) -> Output:
    if any(one.block.all("ipv6") for one in context.switch.forwarding.interfaces.values()):
        raise CliError(1000, "The twin does not support IPv6 addresses")
    raise CliError(1000, "No IPv6 configured interfaces")


@COMMANDS.add("show vrf", "show vrf WORD", privileged=False)
def _vrf(context: ShowContext, values: tuple[str, ...]) -> Output:
    root = context.switch.running.root
    distinguishers = {block.head.split()[2]: block.value("rd") or "" for block in root.blocks("vrf", "instance")}
    names = ["default", *sorted(distinguishers)]
    if values and values[0] not in names:
        raise CliError(1000, f"VRF {values[0]} does not exist")
    rows, tree = [], {}
    for name in [name for name in names if not values or name == values[0]]:
        members = [one.name for one in _members(context, name)]
        line = ("ip", "routing") if name == "default" else ("ip", "routing", "vrf", name)
        routing = bool(root.get(*line))
        state = "routing" if routing else "no routing"
        rows += [[name, "IPv4", state, ", ".join(members)], ["", "IPv6", "no routing", ""]]
        tree[name] = {
            "routeDistinguisher": distinguishers.get(name, ""),
            "vrfState": "up",
            "interfaces": members,
            "interfacesV4": members,
            "interfacesV6": [],
            "protocols": {
                "ipv4": {"supported": True, "protocolState": "up", "routingState": "up" if routing else "down"},
                "ipv6": {"supported": True, "protocolState": "up", "routingState": "down"},
            },
        }
    heads, widths = ("VRF", "Protocols", "State", "Interfaces"), (13, 13, 16, 0)
    text = table(heads, [["-" * 13, "-" * 13, "-" * 16, "-" * 12], *rows], widths)
    return Output(f"Maximum number of VRFs allowed: 1023\n{text}", {"vrfs": tree})


def _members(context: ShowContext, vrf: str) -> list[Interface]:
    """Return the routed interfaces with an address in a VRF."""
    return [
        one
        for one in context.switch.forwarding.interfaces.values()
        if addresses(one) and (one.block.value("vrf") or "default") == vrf
    ]
