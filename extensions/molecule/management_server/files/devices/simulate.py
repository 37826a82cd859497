# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate devices of a POD, one after the other, each on a cable to a bridge of this host.

Reads a JSON list of {"bridge": …, "mac": …}, each with the optional keys "as" (address) and "run" (list of commands).
Without an address the device requests a lease with a real DHCP client. Prints a JSON list of {"lease": values of the
lease or null, "printed": output of each command}. Commands run only when the device has an address.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

NAMESPACE = "device"  # network namespace of all simulated devices
REQUESTED = [option for name in ("mtu", "ntpsrv", "search") for option in ("-O", name)]
DHCP = ["udhcpc", "-i", "port", "-f", "-q", "-n", "-t", "2", "-T", "1", *REQUESTED]


def run(*command: str, namespace: str | None = None) -> str:
    """Run a command, in a network namespace if given, and return its output."""
    prefix = ["ip", "netns", "exec", namespace] if namespace else []
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*prefix, *command], **output, text=True, timeout=60, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}")
    return done.stdout.strip()


def lease() -> dict[str, str] | None:
    """Return the values of a DHCP lease, or None without a reply."""
    script = Path(__file__).with_name("lease.sh")
    command = ["ip", "netns", "exec", NAMESPACE, *DHCP, "-s", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    values = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return values if values.get("ip") else None


def simulate(device: dict) -> dict:
    """Plug in one device, run its commands, and return its lease and their output."""
    run("ip", "link", "add", "plug", "type", "veth", "peer", "name", "port", "netns", NAMESPACE)
    try:
        run("ip", "link", "set", "plug", "master", device["bridge"], "up")
        run("ip", "link", "set", "port", "address", device["mac"], "up", namespace=NAMESPACE)
        received = None if device.get("as") else lease()
        address = device.get("as") or (received and f"{received['ip']}/{received['mask']}")
        if address:
            run("ip", "address", "add", address, "dev", "port", namespace=NAMESPACE)
        commands = device.get("run", []) if address else []
        return {"lease": received, "printed": [run(*command, namespace=NAMESPACE) for command in commands]}
    finally:
        run("ip", "link", "delete", "plug")


def main() -> None:
    """Simulate the devices from standard input."""
    run("ip", "netns", "add", NAMESPACE)
    try:
        print(json.dumps([simulate(device) for device in json.load(sys.stdin)]))
    finally:
        run("ip", "netns", "delete", NAMESPACE)


if __name__ == "__main__":
    main()
