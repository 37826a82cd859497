# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about the services of a switch: NTP, logging, SNMP, name resolution and eAPI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.show.addresses import addresses
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.switch import Switch

COMMANDS = Commands[ShowContext]()
_SNMP_COUNTERS = (
    *("inVersionErrs", "inBadCommunityNames", "inBadCommunityUses", "inParseErrs"),
    *("inGetPdus", "inGetNextPdus", "inSetPdus"),
    *("outTooBigErrs", "outNoSuchNameErrs", "outBadValueErrs", "outGeneralErrs"),
    *("outGetResponsePdus", "outTrapPdus"),
)


def _ntp_servers(switch: Switch) -> list[str]:
    lines = (line.split()[2:] for line in switch.running.root.all("ntp", "server"))
    return [words[2] if words[0] == "vrf" else words[0] for words in lines]


@COMMANDS.add("show ntp status", privileged=False)
def _ntp_status(context: ShowContext, _: tuple[str, ...]) -> Output:
    servers = _ntp_servers(context.switch)
    if not servers:
        return Output("NTP is disabled.", {"status": "disabled"})
    text = f"synchronised to NTP server ({servers[0]}) at stratum 3\n"
    text += "   time correct to within 10 ms\n   polling server every 64 s"
    return Output(
        text,
        {
            "status": "synchronized",
            "peerIpAddr": servers[0],
            "stratum": 3,
            "maxEstimatedError": 0.01,
            "pollingInterval": 64,
        },
    )


@COMMANDS.add("show ntp associations", privileged=False)
def _ntp_associations(context: ShowContext, _: tuple[str, ...]) -> Output:
    servers = _ntp_servers(context.switch)
    rows = [
        [("*" if n == 0 else "+") + server, ".GPS.", "2", "u", "12", "64", "377", "0.412", "0.021", "0.006"]
        for n, server in enumerate(servers)
    ]
    heads = ("     remote", "refid", "st", "t", "when", "poll", "reach", "delay", "offset", "jitter")
    head, *lines = table(heads, rows, (16, 15, 2, 1, 4, 4, 5, 7, 7, 7)).splitlines()
    text = "\n".join([head, "=" * 78, *lines])
    peers = {
        server: {
            "condition": "sys.peer" if n == 0 else "candidate",
            "peerIpAddr": server,
            "refid": ".GPS.",
            "stratumLevel": 2,
        }
        for n, server in enumerate(servers)
    }
    return Output(text, {"peers": peers})


@COMMANDS.add("show logging")
def _logging(context: ShowContext, _: tuple[str, ...]) -> Output:
    root = context.switch.running.root
    state = "disabled" if root.get("logging", "on") else "enabled"
    lines = [f"Syslog logging: {state}"]
    for vrf, words in _of_vrfs(root.all("logging")):
        match words:
            case ["source-interface", name]:
                lines += [
                    f"    Logging source-interface '{name}', IP Address {item['primaryIp']['address']} in VRF {vrf}"
                    for one in context.switch.forwarding.interfaces.values()
                    if one.name == name
                    for item in addresses(one)
                ]
            case ["host", host, *options]:
                port = options[0] if options[:1] and options[0].isdigit() else 514
                protocol = "tcp" if "tcp" in options else "udp"
                lines.append(f"    Logging to '{host}' port {port} in VRF {vrf} via {protocol}")
    return Output("\n".join(lines))


def _of_vrfs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield VRF and words of each line, without its first word and without ``vrf NAME``."""
    for line in lines:
        words = line.split()[1:]
        yield (words[1], words[2:]) if words[:1] == ["vrf"] else ("default", words)


@COMMANDS.add("show snmp", privileged=False)
def _snmp(context: ShowContext, _: tuple[str, ...]) -> Output:
    root = context.switch.running.root
    location, contact = root.value("snmp-server", "location") or "", root.value("snmp-server", "contact") or ""
    enabled = bool(root.all("snmp-server", "community") or root.all("snmp-server", "user"))
    hosts = {words[2]: _trap_host(words[3:]) for words in (line.split() for line in root.all("snmp-server", "host"))}
    names = ("local-interface", "source-interface")
    sources = {vrf: words[1] for vrf, words in _of_vrfs(root.all("snmp-server")) if words[0] in names}
    text = f"Chassis: {context.switch.hardware.serial}\nContact: {contact}\nLocation: {location}\n"
    text += f"SNMP logging: {'en' if hosts else 'dis'}abled\n"
    text += "".join(f"    Logging to {host}.{each['port']}\n" for host, each in hosts.items())
    text += f"SNMP agent {'en' if enabled else 'dis'}abled"
    return Output(
        text,
        {
            "enabled": enabled,
            "counters": _snmp_counters(context.switch),
            "logging": {"loggingEnabled": bool(hosts), "hosts": hosts},
            "srcIntf": {"sourceInterfaces": sources},
            "vrfs": {"snmpVrfs": ["default"] if enabled else []},
            "chassisId": context.switch.hardware.serial,
            "location": {"location": location},
            "contact": {"contact": contact},
        },
    )


def _snmp_counters(switch: Switch) -> dict[str, int]:
    """Return the counters of the agent. The twin counts accepted requests; EOS has no counter of GetBulk."""
    requests = switch.snmp_requests
    return dict.fromkeys(_SNMP_COUNTERS, 0) | {
        "inGetPdus": requests["get"],
        "inGetNextPdus": requests["get_next"],
        "inSetPdus": requests["set"],
        "outGetResponsePdus": requests.total(),
    }


def _trap_host(options: list[str]) -> dict[str, Any]:
    """Return the JSON form of a host that receives traps."""
    port, vrf = (options[options.index(word) + 1] if word in options else "" for word in ("udp-port", "vrf"))
    return {"port": int(port or 162), "vrf": vrf}


@COMMANDS.add("show snmp location", "show snmp v2-mib location", privileged=False)
def _snmp_location(context: ShowContext, _: tuple[str, ...]) -> Output:
    location = context.switch.running.root.value("snmp-server", "location") or ""
    return Output(f"Location: {location}", {"location": location})


@COMMANDS.add("show snmp contact", "show snmp v2-mib contact", privileged=False)
def _snmp_contact(context: ShowContext, _: tuple[str, ...]) -> Output:
    contact = context.switch.running.root.value("snmp-server", "contact") or ""
    return Output(f"Contact: {contact}", {"contact": contact})


@COMMANDS.add("show snmp chassis", "show snmp v2-mib chassis", privileged=False)
def _snmp_chassis(context: ShowContext, _: tuple[str, ...]) -> Output:
    chassis = context.switch.running.root.value("snmp-server", "chassis-id") or context.switch.hardware.serial
    return Output(f"Chassis: {chassis}", {"chassisId": chassis})


@COMMANDS.add("show ip name-server", privileged=False)
def _name_servers(context: ShowContext, _: tuple[str, ...]) -> Output:
    servers = [line.split()[3:5] for line in context.switch.running.root.all("ip", "name-server", "vrf")]
    tree = [{"ipAddr": address, "vrf": vrf, "priority": 0} for vrf, address in servers]
    lines = [f"{len(servers)} IP name servers configured:"]
    lines += [f"Name server: {address}, VRF: {vrf}, Priority: 0" for vrf, address in servers]
    return Output("\n".join(lines), {"nameServerConfigs": tree})
