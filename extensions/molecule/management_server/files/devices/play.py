# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a POD, one after the other, on the far end of a cable to one of the bridges of this host.

Reads a list of {"bridge": …, "mac": …} and perhaps "as", its address, and "run", a list of commands, as JSON. Without
an address the device asks for a lease, with a real DHCP client. Prints a list of {"lease": null or what DHCP told,
"printed": what each command printed}. Commands run only with an address.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SPACE = "device"  # the network namespace that plays all of them
ASKED = [option for name in ("mtu", "ntpsrv", "search") for option in ("-O", name)]
DHCP = ["udhcpc", "-i", "port", "-f", "-q", "-n", "-t", "2", "-T", "1", *ASKED]


def run(*command: str, space: str | None = None) -> str:
    inside = ["ip", "netns", "exec", space] if space else []
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*inside, *command], **both, text=True, timeout=60, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}")
    return done.stdout.strip()


def lease() -> dict[str, str] | None:
    """What a DHCP server tells, or None when none answers."""
    script = Path(__file__).with_name("lease.sh")
    command = ["ip", "netns", "exec", SPACE, *DHCP, "-s", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return told if told.get("ip") else None


def play(device: dict) -> dict:
    """One device, plugged in anew."""
    run("ip", "link", "add", "plug", "type", "veth", "peer", "name", "port", "netns", SPACE)
    try:
        run("ip", "link", "set", "plug", "master", device["bridge"], "up")
        run("ip", "link", "set", "port", "address", device["mac"], "up", space=SPACE)
        told = None if device.get("as") else lease()
        address = device.get("as") or (told and f"{told['ip']}/{told['mask']}")
        if address:
            run("ip", "address", "add", address, "dev", "port", space=SPACE)
        commands = device.get("run", []) if address else []
        return {"lease": told, "printed": [run(*command, space=SPACE) for command in commands]}
    finally:
        run("ip", "link", "delete", "plug")


def main() -> None:
    run("ip", "netns", "add", SPACE)
    try:
        print(json.dumps([play(device) for device in json.load(sys.stdin)]))
    finally:
        run("ip", "netns", "delete", SPACE)


if __name__ == "__main__":
    main()
