# SPDX-License-Identifier: GPL-3.0-or-later
"""`show` commands about the switch itself."""

from __future__ import annotations

import time

from openipu.twin.devices.eos.commands import Commands, Output
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.show.formats import dotted, mac
from openipu.twin.devices.eos.switch import Switch

COMMANDS = Commands[ShowContext]()
# Load of the processor: a switch that has nothing to do. Shares of time in percent, by the names of `top`.
_LOAD = [0.10, 0.12, 0.09]
_CPU = {"us": 4.2, "sy": 0.9, "ni": 0.0, "id": 94.7, "wa": 0.0, "hi": 0.1, "si": 0.1, "st": 0.0}
BUSY_PERCENT = 100.0 - _CPU["id"]


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


@COMMANDS.add("show version", privileged=False)
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
    text = f" {now} up {_uptime(context.switch)},  0 users,  load average: {', '.join(f'{each:.2f}' for each in _LOAD)}"
    return Output(text, {"upTime": seconds, "users": 0, "loadAvg": _LOAD, "currentTime": context.switch.clock()})


@COMMANDS.add("show zerotouch", privileged=False)
def _zerotouch(context: ShowContext, _: tuple[str, ...]) -> Output:
    # A switch with a startup configuration has left this mode.
    return Output("ZeroTouch Mode: Disabled", {"mode": "disabled"})


@COMMANDS.add("show processes top once")
def _processes(context: ShowContext, _: tuple[str, ...]) -> Output:
    """Return the head of the list: the load and the memory of the switch. The twin has no processes to list."""
    hardware = context.switch.hardware
    now = time.strftime("%H:%M:%S", time.gmtime(context.switch.clock()))
    total, free = hardware.memory / 1024, hardware.free / 1024
    load = ", ".join(f"{each:.2f}" for each in _LOAD)
    text = "\n".join(
        [
            f"top - {now} up {_uptime(context.switch)},  0 users,  load average: {load}",
            "Tasks:   0 total,   0 running,   0 sleeping,   0 stopped,   0 zombie",
            f"%Cpu(s): {', '.join(f'{share:4.1f} {kind}' for kind, share in _CPU.items())}",
            f"MiB Mem : {total:8.1f} total, {free:8.1f} free, {total - free:8.1f} used,      0.0 buff/cache",
        ]
    )
    names = ("user", "system", "nice", "idle", "ioWait", "hwIrq", "swIrq", "stolen")
    tree = {
        "timeInfo": {
            "currTime": now,
            "upTime": context.switch.clock() - context.switch.booted,
            "loadAvg": _LOAD,
            "users": 0,
        },
        "cpuInfo": {"%Cpu(s)": dict(zip(names, _CPU.values(), strict=True))},
        "memInfo": {"physicalMem": {"memTotal": hardware.memory, "memFree": hardware.free}},
        "processes": {},
    }
    return Output(text, tree)
