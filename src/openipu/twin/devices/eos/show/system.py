# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about the switch itself and its services."""

from __future__ import annotations

import time

from openipu.twin.devices.eos.commands import Commands, Output, table
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.show.formats import dotted, mac
from openipu.twin.devices.eos.switch import Switch

COMMANDS = Commands[ShowContext]()


def _uptime(switch: Switch) -> str:
    seconds = int(switch.clock() - switch.booted)
    parts = [
        (seconds // 604800, "week"),
        (seconds // 86400 % 7, "day"),
        (seconds // 3600 % 24, "hour"),
        (seconds // 60 % 60, "minute"),
    ]
    shown = [f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number]
    return ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + (shown[-1] if shown else "0 minutes")


@COMMANDS.add("show version [detail]", privileged=False)
def _version(context: ShowContext, _: tuple[str, ...]) -> Output:
    switch, hardware = context.switch, context.switch.hardware
    build = f"{switch.version}-{int(hardware.mac, 16) % 10**8:08d}"
    text = f"""Arista {switch.model}
Hardware version: {hardware.revision}
Serial number: {hardware.serial}
Hardware MAC address: {dotted(hardware.mac)}
System MAC address: {dotted(hardware.mac)}

Software image version: {switch.version}
Architecture: i686
Internal build version: {build}
Internal build ID: {switch.build}
Image format version: 1.0
Image optimization: {hardware.image}

Uptime: {_uptime(switch)}
Total memory: {hardware.memory} kB
Free memory: {hardware.free} kB
"""
    return Output(
        text,
        {
            "mfgName": "Arista",
            "modelName": switch.model,
            "hardwareRevision": hardware.revision,
            "serialNumber": hardware.serial,
            "systemMacAddress": mac(hardware.mac),
            "hwMacAddress": mac(hardware.mac),
            "configMacAddress": "00:00:00:00:00:00",
            "version": switch.version,
            "architecture": "i686",
            "internalVersion": build,
            "internalBuildId": switch.build,
            "imageFormatVersion": "1.0",
            "imageOptimization": hardware.image,
            "bootupTimestamp": switch.booted,
            "uptime": switch.clock() - switch.booted,
            "memTotal": hardware.memory,
            "memFree": hardware.free,
            "isIntlVersion": False,
        },
    )


@COMMANDS.add("show hostname", privileged=False)
def _hostname(context: ShowContext, _: tuple[str, ...]) -> Output:
    name = context.switch.hostname
    domain = context.switch.running.root.value("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return Output(f"Hostname: {name}\nFQDN:     {fqdn}", {"hostname": name, "fqdn": fqdn})


@COMMANDS.add("show clock", privileged=False)
def _clock(context: ShowContext, _: tuple[str, ...]) -> Output:
    now = context.switch.clock()
    zone = context.switch.running.root.value("clock", "timezone") or "UTC"
    source = "NTP server" if context.switch.running.root.all("ntp", "server") else "local"
    text = f"{time.strftime('%a %b %e %H:%M:%S %Y', time.gmtime(now))}\nTimezone: {zone}\nClock source: {source}"
    return Output(text, {"utcTime": now, "timezone": zone, "clockSource": {"local": source == "local"}})


@COMMANDS.add("show uptime", privileged=False)
def _up(context: ShowContext, _: tuple[str, ...]) -> Output:
    seconds = context.switch.clock() - context.switch.booted
    now = time.strftime("%H:%M:%S", time.gmtime(context.switch.clock()))
    text = f" {now} up {_uptime(context.switch)},  0 users,  load average: 0.10, 0.12, 0.09"
    return Output(
        text, {"upTime": seconds, "users": 0, "loadAvg": [0.10, 0.12, 0.09], "currentTime": context.switch.clock()}
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
    text = table(heads, rows, (16, 15, 2, 1, 4, 4, 5, 7, 7, 7))
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


@COMMANDS.add("show logging", "show logging LINE")
def _logging(context: ShowContext, _: tuple[str, ...]) -> Output:
    hosts = [line.split() for line in context.switch.running.root.all("logging", "host")]
    state = "disabled" if context.switch.running.root.get("logging", "on") else "enabled"
    lines = [f"Syslog logging: {state}"]
    lines += [
        f"    Logging to '{words[2]}' port {words[3] if words[3:4] else 514} in VRF default via udp" for words in hosts
    ]
    return Output("\n".join(lines))


@COMMANDS.add("show snmp", "show snmp location", "show snmp contact", privileged=False)
def _snmp(context: ShowContext, _: tuple[str, ...]) -> Output:
    root = context.switch.running.root
    location, contact = root.value("snmp-server", "location") or "", root.value("snmp-server", "contact") or ""
    enabled = bool(root.all("snmp-server", "community") or root.all("snmp-server", "user"))
    text = f"Chassis: {context.switch.hardware.serial}\nContact: {contact}\nLocation: {location}\n"
    text += f"SNMP agent {'en' if enabled else 'dis'}abled"
    return Output(
        text,
        {
            "enabled": enabled,
            "chassisId": context.switch.hardware.serial,
            "location": {"location": location},
            "contact": {"contact": contact},
        },
    )


@COMMANDS.add("show management api http-commands", privileged=False)
def _http_commands(context: ShowContext, _: tuple[str, ...]) -> Output:
    service = context.switch.running.root.block("management", "api", "http-commands")
    lines = service.all("protocol") if service else []
    enabled = service is not None and service.get("shutdown") == "no shutdown"
    https = not any(line.startswith("no protocol https") for line in lines)
    http = any(line.startswith("protocol http") and not line.startswith("protocol https") for line in lines)
    word = {True: "running", False: "shutdown"}
    text = "\n".join(
        [
            f"Enabled:            {'Yes' if enabled else 'No'}",
            f"HTTPS server:       {word[https and enabled]}, set to use port 443",
            f"HTTP server:        {word[http and enabled]}, set to use port 80",
            "Local HTTP server:  shutdown, no authentication, set to use port 8080",
            "Unix Socket server: shutdown, no authentication",
        ]
    )
    return Output(
        text,
        {
            "enabled": enabled,
            "httpsServer": {"configured": https, "running": https and enabled, "port": 443},
            "httpServer": {"configured": http, "running": http and enabled, "port": 80},
            "localHttpServer": {"configured": False, "running": False, "port": 8080},
            "unixSocketServer": {"configured": False, "running": False},
        },
    )
