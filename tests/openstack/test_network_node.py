# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPU-Machine that is plugged into the data network gets what Neutron knows of it, from Neutron's own agents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from apart import Apart

from tools.openstack.network_node import BRIDGES
from tools.openstack.site import CACHE

NEEDED = {
    "ovs-vsctl": "openvswitch-switch",
    "dnsmasq": "dnsmasq-base",
    "iptables": "iptables",
    "udhcpc": "udhcpc",
    "ethtool": "ethtool",
    "dig": "bind9-dnsutils",
}
MISSING = {package for program, package in NEEDED.items() if not shutil.which(program)}

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes interfaces, so it needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"apt install {' '.join(sorted(MISSING))}"),
]

MACHINE = {"name": "ipum1", "mac": "04:3f:72:0a:00:01", "address": "10.5.1.1"}
OTHER = {"name": "ipum2", "mac": "04:3f:72:0a:00:02", "address": "10.5.1.2"}
DATA, MANAGEMENT = 11, 99  # VLANs
LEASE = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
ip route add default via "$router"
echo "ip=$ip" "mask=$mask" "hostname=$hostname" "domain=$domain" "mtu=$mtu" "dns=$dns" "router=$router"
"""


@pytest.fixture
def node(apart: Apart, tmp_path: Path) -> Iterator[Path]:
    """A cloud with a network node: the data network with two machines, routed to management and, by SNAT, outside."""
    state = tmp_path / "cloud"
    arguments = ["up", "--network-only", "--network-node", "--state-dir", str(state)]
    try:
        done = apart.tool(*arguments)
        assert done.returncode == 0, done.stderr
        show = done.stdout.splitlines()[-1].partition(": ")[2].split()
        make_networks(apart, state / "clouds.yaml")
        again = apart.tool(*arguments)
        assert again.returncode == 0, again.stderr
        kinds = sorted(line.partition("-")[0] for line in apart.run(*show).splitlines())
        assert kinds == ["qdhcp", "qdhcp", "qrouter"]
        yield state
    finally:
        done = apart.tool("down", "--state-dir", str(state))
    assert done.returncode == 0, done.stderr
    interfaces = {link["ifname"] for link in json.loads(apart.run("ip", "-json", "link"))}
    assert interfaces == {"lo"}
    left = subprocess.run(["pgrep", "--full", str(state)], capture_output=True, text=True, check=False).stdout
    assert left == ""


def make_networks(apart: Apart, clouds: Path) -> None:
    """With the command line of OpenStack, which nobody here wrote."""
    program = ["env", f"OS_CLIENT_CONFIG_FILE={clouds}", "OS_CLOUD=openipu", str(CACHE / "venv" / "bin" / "openstack")]

    def openstack(*line: str) -> None:
        apart.run(*program, *line)

    def network(name: str, physical: str, vlan: int | None, subnet: str, *more: str) -> None:
        provider = ["--provider-physical-network", physical, "--provider-network-type", "vlan" if vlan else "flat"]
        provider += ["--provider-segment", str(vlan)] if vlan else []
        openstack("network", "create", *provider, *more, name)
        dhcp = [] if vlan else ["--no-dhcp"]
        openstack("subnet", "create", "--network", name, "--subnet-range", subnet, *dhcp, name)

    network("ipu-data", "physnet100g", DATA, "10.5.0.0/22", "--mtu", "9000", "--dns-domain", "ipupod.example.")
    network("management", "physnet1g", MANAGEMENT, "10.1.3.0/24")
    network("external", "external", None, "192.0.2.0/24", "--external")
    for machine in (MACHINE, OTHER):
        port = ["--mac-address", machine["mac"], "--fixed-ip", f"ip-address={machine['address']}"]
        port += ["--dns-name", machine["name"], "--disable-port-security", "--no-security-group"]
        openstack("port", "create", "--network", "ipu-data", *port, machine["name"])
    gateway = ["--external-gateway", "external", "--enable-snat", "--fixed-ip", "ip-address=192.0.2.10"]
    openstack("router", "create", *gateway, "ipu-data")
    for subnet in ("ipu-data", "management"):
        openstack("router", "add", "subnet", "ipu-data", subnet)


class Bench:
    """Where things are plugged into the switch of the network node: each in a namespace of its own."""

    def __init__(self, apart: Apart, undo: ExitStack) -> None:
        self.apart, self.undo = apart, undo

    def plug(self, name: str, bridge: str, *port: str) -> list[str]:
        """How a command is run on what was plugged in."""
        namespace = f"{name}-{os.getpid()}"
        run = self.apart.run
        run("ip", "netns", "add", namespace)
        self.undo.callback(run, "ip", "netns", "delete", namespace)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "link", "set", name, "up")
        inside = ["ip", "netns", "exec", namespace]
        # Open vSwitch in user space hands packets on as they are, without the checksum that a veth leaves out.
        run(*inside, "ethtool", "-K", "eth0", "tx", "off")
        run("ovs-vsctl", "--db=tcp:127.6.0.1:6640", "add-port", bridge, name, *port)
        return inside


@pytest.fixture
def bench(apart: Apart, node: Path) -> Iterator[Bench]:
    with ExitStack() as undo:
        yield Bench(apart, undo)


def test_a_machine_gets_its_address_resolves_another_and_is_routed(apart: Apart, bench: Bench, tmp_path: Path) -> None:
    machine = bench.plug("machine", BRIDGES["physnet100g"], f"tag={DATA}")
    apart.run(*machine, "ip", "link", "set", "eth0", "address", MACHINE["mac"], "up")
    script = tmp_path / "lease"
    script.write_text(LEASE)
    script.chmod(0o755)
    ask = ["udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "20", "-T", "1", "-s", str(script)]
    ask += ["-O", "mtu", "-O", "hostname", "-O", "domain", "-O", "dns"]
    lease = dict(item.split("=", 1) for item in apart.run(*machine, *ask).split() if "=" in item)
    assert lease["ip"] == MACHINE["address"]
    assert (lease["mask"], lease["hostname"], lease["domain"]) == ("22", MACHINE["name"], "ipupod.example")
    assert (lease["mtu"], lease["router"]) == ("9000", "10.5.0.1")

    query = ["dig", "+short", "+time=2", "+tries=5", f"@{lease['dns']}"]
    assert apart.run(*machine, *query, f"{OTHER['name']}.ipupod.example", "A").strip() == OTHER["address"]
    assert apart.run(*machine, *query, "-x", OTHER["address"]).strip() == f"{OTHER['name']}.ipupod.example."

    server = bench.plug("server", BRIDGES["physnet1g"], f"tag={MANAGEMENT}")
    apart.run(*server, "ip", "link", "set", "eth0", "up")
    apart.run(*server, "ip", "addr", "add", "10.1.3.200/24", "dev", "eth0")
    apart.run(*server, "ip", "route", "add", "default", "via", "10.1.3.1")
    assert caller(apart, machine, server, "10.1.3.200") == MACHINE["address"]

    outside = bench.plug("outside", BRIDGES["external"])
    apart.run(*outside, "ip", "link", "set", "eth0", "up")
    apart.run(*outside, "ip", "addr", "add", "192.0.2.200/24", "dev", "eth0")
    assert caller(apart, machine, outside, "192.0.2.200") == "192.0.2.10"


def caller(apart: Apart, machine: list[str], server: list[str], address: str) -> str:
    """Whom a server takes a machine for that connects to it."""
    listen = (
        f"import socket; s = socket.create_server(('{address}', 7777)); print(1, flush=True); print(s.accept()[1][0])"
    )
    with subprocess.Popen(
        apart.command(*server, sys.executable, "-c", listen), stdout=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        it.stdout.readline()
        try:
            dial = f"import socket; socket.create_connection(('{address}', 7777), timeout=20)"
            apart.run(*machine, sys.executable, "-c", dial)
            return it.stdout.readline().strip()
        finally:
            it.kill()
