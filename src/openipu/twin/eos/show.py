# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing what a switch is, and the services on it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from openipu.twin.eos.commands import Commands, Output, table
from openipu.twin.eos.switch import Switch

if TYPE_CHECKING:
    from openipu.twin.eos.cli import Cli

COMMANDS = Commands()


def mac(digits: str, offset: int = 0) -> str:
    """A MAC address with colons, so many after this one."""
    text = f"{int(digits, 16) + offset:012x}"
    return ":".join(text[n : n + 2] for n in range(0, 12, 2))


def dotted(address: str) -> str:
    """A MAC address as EOS prints it in tables: `001c.7300.0001`."""
    digits = address.replace(":", "").replace(".", "").lower()
    return ".".join(digits[n : n + 4] for n in (0, 4, 8))


def ago(seconds: float) -> str:
    """A span of time as EOS prints it: `1 day, 2:03:04`."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} day{'s' if days > 1 else ''}, {clock}" if days else clock


def _uptime(switch: Switch) -> str:
    seconds = int(switch.clock() - switch.booted)
    parts = [
        (seconds // 604800, "week"),
        (seconds // 86400 % 7, "day"),
        (seconds // 3600 % 24, "hour"),
        (seconds // 60 % 60, "minute"),
    ]
    said = [f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number]
    return ", ".join(said[:-1]) + (" and " if len(said) > 1 else "") + (said[-1] if said else "0 minutes")


@COMMANDS.add("show version [detail]", privileged=False)
def _version(cli: Cli, _: tuple[str, ...]) -> Output:
    switch, hardware = cli.switch, cli.switch.hardware
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
def _hostname(cli: Cli, _: tuple[str, ...]) -> Output:
    name = cli.switch.hostname
    domain = cli.switch.running.root.value("dns", "domain")
    fqdn = f"{name}.{domain}" if domain else name
    return Output(f"Hostname: {name}\nFQDN:     {fqdn}", {"hostname": name, "fqdn": fqdn})


@COMMANDS.add("show clock", privileged=False)
def _clock(cli: Cli, _: tuple[str, ...]) -> Output:
    now = cli.switch.clock()
    zone = cli.switch.running.root.value("clock", "timezone") or "UTC"
    source = "NTP server" if cli.switch.running.root.all("ntp", "server") else "local"
    text = f"{time.strftime('%a %b %e %H:%M:%S %Y', time.gmtime(now))}\nTimezone: {zone}\nClock source: {source}"
    return Output(text, {"utcTime": now, "timezone": zone, "clockSource": {"local": source == "local"}})


@COMMANDS.add("show uptime", privileged=False)
def _up(cli: Cli, _: tuple[str, ...]) -> Output:
    seconds = cli.switch.clock() - cli.switch.booted
    now = time.strftime("%H:%M:%S", time.gmtime(cli.switch.clock()))
    text = f" {now} up {_uptime(cli.switch)},  0 users,  load average: 0.10, 0.12, 0.09"
    return Output(
        text, {"upTime": seconds, "users": 0, "loadAvg": [0.10, 0.12, 0.09], "currentTime": cli.switch.clock()}
    )


def _ntp_servers(switch: Switch) -> list[str]:
    lines = (line.split()[2:] for line in switch.running.root.all("ntp", "server"))
    return [words[2] if words[0] == "vrf" else words[0] for words in lines]


@COMMANDS.add("show ntp status", privileged=False)
def _ntp_status(cli: Cli, _: tuple[str, ...]) -> Output:
    servers = _ntp_servers(cli.switch)
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
def _ntp_associations(cli: Cli, _: tuple[str, ...]) -> Output:
    servers = _ntp_servers(cli.switch)
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
def _logging(cli: Cli, _: tuple[str, ...]) -> Output:
    hosts = [line.split() for line in cli.switch.running.root.all("logging", "host")]
    state = "disabled" if cli.switch.running.root.get("logging", "on") else "enabled"
    lines = [f"Syslog logging: {state}"]
    lines += [
        f"    Logging to '{words[2]}' port {words[3] if words[3:4] else 514} in VRF default via udp" for words in hosts
    ]
    return Output("\n".join(lines))


@COMMANDS.add("show snmp", "show snmp location", "show snmp contact", privileged=False)
def _snmp(cli: Cli, _: tuple[str, ...]) -> Output:
    root = cli.switch.running.root
    location, contact = root.value("snmp-server", "location") or "", root.value("snmp-server", "contact") or ""
    enabled = bool(root.all("snmp-server", "community") or root.all("snmp-server", "user"))
    text = f"Chassis: {cli.switch.hardware.serial}\nContact: {contact}\nLocation: {location}\n"
    text += f"SNMP agent {'en' if enabled else 'dis'}abled"
    return Output(
        text,
        {
            "enabled": enabled,
            "chassisId": cli.switch.hardware.serial,
            "location": {"location": location},
            "contact": {"contact": contact},
        },
    )


@COMMANDS.add("show management api http-commands", privileged=False)
def _http_commands(cli: Cli, _: tuple[str, ...]) -> Output:
    service = cli.switch.running.root.block("management", "api", "http-commands")
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
