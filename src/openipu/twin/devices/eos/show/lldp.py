# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about LLDP."""

from __future__ import annotations

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.ports import short
from openipu.twin.devices.eos.show.context import ShowContext, selected
from openipu.twin.devices.eos.show.formats import ago, dotted

COMMANDS = Commands[ShowContext]()
_TTL = 120  # time to live of a neighbour in seconds


def _capabilities(_: Neighbour) -> dict[str, bool]:
    return {"bridge": True, "router": True}


@COMMANDS.add("show lldp neighbors", "show lldp neighbors INTFS", privileged=False)
def _neighbours(context: ShowContext, values: tuple[str, ...]) -> Output:
    found = _discovered(context, values)
    rows = [[short(port.name), other.name, other.port, str(_TTL)] for port, other in found]
    widths = (13, 24, 22, 3)
    age = ago(context.switch.clock() - context.switch.booted)
    text = "\n".join(
        [
            f"Last table change time   : {age} ago",
            f"Number of table inserts  : {len(found)}",
            "Number of table deletes  : 0",
            "Number of table drops    : 0",
            "Number of table age-outs : 0",
            "",
            table(
                ("Port", "Neighbor Device ID", "Neighbor Port ID", "TTL"),
                [["-" * 10, "-" * widths[1], "-" * widths[2], "---"], *rows],
                widths,
            ),
        ]
    )
    return Output(
        text,
        {
            "tablesLastChangeTime": context.switch.booted,
            "tablesInserts": len(found),
            "tablesDeletes": 0,
            "tablesDrops": 0,
            "tablesAgeOuts": 0,
            "lldpNeighbors": [
                {"port": port.name, "neighborDevice": other.name, "neighborPort": other.port, "ttl": _TTL}
                for port, other in found
            ],
        },
    )


def _discovered(context: ShowContext, values: tuple[str, ...]) -> list[tuple[Interface, Neighbour]]:
    if context.switch.running.root.get("lldp", "run"):
        raise CliError(1000, "LLDP is not enabled")
    forwarding = context.switch.forwarding
    names = {one.name for one in selected(forwarding, values)}
    return [(port, other) for port, other in forwarding.neighbours if port.name in names]


@COMMANDS.add("show lldp neighbors detail", "show lldp neighbors INTFS detail", privileged=False)
def _neighbours_detail(context: ShowContext, values: tuple[str, ...]) -> Output:
    by_port: dict[str, list[Neighbour]] = {}
    for port, other in _discovered(context, values):
        by_port.setdefault(port.name, []).append(other)
    switch = context.switch
    ports = [one.name for one in selected(switch.forwarding, values) if one.name in switch.ports.physical]
    age = ago(switch.clock() - switch.booted)
    lines: list[str] = []
    for name in ports:
        found = by_port.get(name, [])
        lines += [f"Interface {name} detected {len(found)} LLDP neighbors:", ""]
        for other in found:
            lines += [
                f'  Neighbor {dotted(other.chassis)}/"{other.port}", age 12 seconds',
                f"  Discovered {age} ago; Last changed {age} ago",
                "  - Chassis ID type: MAC address (4)",
                f"    Chassis ID     : {dotted(other.chassis)}",
                "  - Port ID type: Interface name (5)",
                f'    Port ID     : "{other.port}"',
                f"  - Time To Live: {_TTL} seconds",
                f'  - System Name: "{other.name}"',
                f'  - System Description: "{other.description}"',
                "  - System Capabilities : Bridge, Router",
                "    Enabled Capabilities: Bridge, Router",
                "",
            ]
    tree = {
        name: {
            "lldpNeighborInfo": [
                {
                    "chassisIdType": "macAddress",
                    "chassisId": dotted(other.chassis),
                    "systemName": other.name,
                    "systemDescription": other.description,
                    "systemCapabilities": _capabilities(other),
                    "enabledCapabilities": _capabilities(other),
                    "neighborDiscoveryTime": switch.booted,
                    "neighborLastChangeTime": switch.booted,
                    "lastContactTime": switch.clock(),
                    "ttl": _TTL,
                    "neighborInterfaceInfo": {
                        "interfaceIdType": "interfaceName",
                        "interfaceId": f'"{other.port}"',
                        "interfaceId_v2": other.port,
                        "interfaceDescription": "",
                    },
                    "managementAddresses": [],
                }
                for other in by_port.get(name, [])
            ]
        }
        for name in ports
    }
    return Output("\n".join(lines), {"lldpNeighbors": tree})


@COMMANDS.add("show lldp", privileged=False)
def _lldp(context: ShowContext, _: tuple[str, ...]) -> Output:
    root = context.switch.running.root
    timer, hold = root.value("lldp", "timer") or "30", root.value("lldp", "hold-time") or "120"
    enabled = not root.get("lldp", "run")
    if not enabled:
        return Output("% LLDP is not enabled", {"lldpEnabled": False})
    lines = [
        "LLDP transmit interval      : " + f"{timer} seconds",
        "LLDP transmit holdtime      : " + f"{hold} seconds",
        "LLDP reinitialization delay : 2 seconds",
        "",
        "Enabled optional TLVs:",
        "  Port Description",
        "  System Name",
        "  System Description",
        "  System Capabilities",
        "",
    ]
    ports: dict[str, dict[str, bool]] = {}
    rows = []
    for name, block in context.switch.running.interfaces().items():
        if name in context.switch.ports.physical:
            transmit, receive = not block.get("lldp", "transmit"), not block.get("lldp", "receive")
            ports[name] = {"txEnabled": transmit, "rxEnabled": receive}
            rows.append([short(name), "Yes" if transmit else "No", "Yes" if receive else "No"])
    lines.append(table(("Port", "Tx Enabled", "Rx Enabled"), rows, (10, 12, 12)))
    return Output(
        "\n".join(lines),
        {
            "lldpEnabled": True,
            "transmitInterval": int(timer),
            "transmitHoldtime": int(hold),
            "reinitDelay": 2,
            "lldpInterfaces": ports,
        },
    )
