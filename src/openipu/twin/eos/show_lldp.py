# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing what LLDP heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openipu.twin.eos.commands import Commands, Output, table
from openipu.twin.eos.forwarding import Interface
from openipu.twin.eos.grammar import CliError
from openipu.twin.eos.ports import short
from openipu.twin.eos.show import ago, dotted
from openipu.twin.eos.show_interfaces import chosen
from openipu.twin.eos.surroundings import Neighbour

if TYPE_CHECKING:
    from openipu.twin.eos.cli import Cli

COMMANDS = Commands()
_TTL = 120  # seconds that LLDP keeps a neighbour for


def _capabilities(_: Neighbour) -> dict[str, bool]:
    return {"bridge": True, "router": True}


@COMMANDS.add("show lldp neighbors", "show lldp neighbors INTFS", privileged=False)
def _neighbours(cli: Cli, values: tuple[str, ...]) -> Output:
    heard = _heard(cli, values)
    rows = [[short(port.name), other.name, other.port, str(_TTL)] for port, other in heard]
    widths = (13, 24, 22, 3)
    age = ago(cli.switch.clock() - cli.switch.booted)
    text = "\n".join(
        [
            f"Last table change time   : {age} ago",
            f"Number of table inserts  : {len(heard)}",
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
            "tablesLastChangeTime": cli.switch.booted,
            "tablesInserts": len(heard),
            "tablesDeletes": 0,
            "tablesDrops": 0,
            "tablesAgeOuts": 0,
            "lldpNeighbors": [
                {"port": port.name, "neighborDevice": other.name, "neighborPort": other.port, "ttl": _TTL}
                for port, other in heard
            ],
        },
    )


def _heard(cli: Cli, values: tuple[str, ...]) -> list[tuple[Interface, Neighbour]]:
    if cli.switch.running.root.get("lldp", "run"):
        raise CliError(1000, "LLDP is not enabled")
    forwarding = cli.switch.forwarding
    wanted = {one.name for one in chosen(forwarding, values)}
    return [(port, other) for port, other in forwarding.neighbours if port.name in wanted]


@COMMANDS.add("show lldp neighbors detail", "show lldp neighbors INTFS detail", privileged=False)
def _neighbours_detail(cli: Cli, values: tuple[str, ...]) -> Output:
    heard: dict[str, list[Neighbour]] = {}
    for port, other in _heard(cli, values):
        heard.setdefault(port.name, []).append(other)
    ports = [one.name for one in chosen(cli.switch.forwarding, values) if one.name in cli.switch.ports.physical]
    age = ago(cli.switch.clock() - cli.switch.booted)
    lines: list[str] = []
    for name in ports:
        found = heard.get(name, [])
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
                    "neighborDiscoveryTime": cli.switch.booted,
                    "neighborLastChangeTime": cli.switch.booted,
                    "lastContactTime": cli.switch.clock(),
                    "ttl": _TTL,
                    "neighborInterfaceInfo": {
                        "interfaceIdType": "interfaceName",
                        "interfaceId": f'"{other.port}"',
                        "interfaceId_v2": other.port,
                        "interfaceDescription": "",
                    },
                    "managementAddresses": [],
                }
                for other in heard.get(name, [])
            ]
        }
        for name in ports
    }
    return Output("\n".join(lines), {"lldpNeighbors": tree})


@COMMANDS.add("show lldp", privileged=False)
def _lldp(cli: Cli, _: tuple[str, ...]) -> Output:
    root = cli.switch.running.root
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
    for name, block in cli.switch.running.interfaces().items():
        if name in cli.switch.ports.physical:
            sends, hears = not block.get("lldp", "transmit"), not block.get("lldp", "receive")
            ports[name] = {"txEnabled": sends, "rxEnabled": hears}
            rows.append([short(name), "Yes" if sends else "No", "Yes" if hears else "No"])
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
