# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPU-Machine that is plugged into the data network gets what Neutron knows of it, from Neutron's own agents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from apart import Apart
from neutron_pod import Plan

from tools.openstack.network_node import BRIDGES
from tools.openstack.site import ADMIN_CLOUD, CHECKOUT

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

VLAN = 97
MANAGEMENT, DATA = VLAN + 1, VLAN + 2
MACHINE = {"name": "ipum01-rnic", "mac": Plan.mac(1, "rnic"), "address": "10.1.5.1"}
OTHER = {"name": "ipum02-rnic", "address": "10.1.5.2"}
SERVER, OUTSIDE = "10.1.3.120", "192.0.2.10"  # on the management network; of the router
DOMAIN = "ipupod.example."
LEASE = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
ip route add default via "$router"
echo "ip=$ip" "mask=$mask" "hostname=$hostname" "domain=$domain" "mtu=$mtu" "dns=$dns" "router=$router"
"""


@pytest.fixture
def node(apart: Apart, tmp_path: Path) -> Iterator[Path]:
    """A cloud with a network node: the data network with two machines, routed to management and outside."""
    state = tmp_path / "cloud"
    arguments = ["up", "--network-only", "--network-node", "--state-dir", str(state)]
    try:
        done = apart.tool(*arguments)
        assert done.returncode == 0, done.stderr
        show = done.stdout.splitlines()[-1].partition(": ")[2].split()
        make_networks(apart, state / "clouds.yaml", tmp_path)
        again = apart.tool(*arguments)
        assert again.returncode == 0, again.stderr
        wait_for_agents(apart, show)
        yield state
    finally:
        done = apart.tool("down", "--state-dir", str(state))
    assert done.returncode == 0, done.stderr
    interfaces = {link["ifname"] for link in json.loads(apart.run("ip", "-json", "link"))}
    assert interfaces == {"lo"}
    left = subprocess.run(["pgrep", "--full", str(state)], capture_output=True, text=True, check=False).stdout
    assert left == ""


def wait_for_agents(apart: Apart, show: list[str]) -> None:
    """Until each network has its DHCP server, and the router is there."""
    deadline = time.monotonic() + 60
    while True:
        kinds = sorted(line.partition("-")[0] for line in apart.run(*show).splitlines())
        if kinds == [*4 * ["qdhcp"], "qrouter"]:
            return
        assert time.monotonic() < deadline, kinds
        time.sleep(0.5)


def make_networks(apart: Apart, clouds: Path, folder: Path) -> None:
    """By the module, as `openstack.yml` does."""
    config = Plan(folder, VLAN, "external", machines=2, tenants=[]).options()["config"]
    # There are no servers of names but Neutron's own, and this is what they answer for.
    for network in config["networks"]:
        network["dns_domain"] = DOMAIN
    for subnet in config["subnets"]:
        del subnet["dns_servers"]
    outside = {"name": "external", "network_type": "flat", "physical_network": "external", "external": True}
    config["networks"].append(outside)
    subnet = {"network": "external", "cidr": "192.0.2.0/24", "dhcp": False, "pools": [f"{OUTSIDE}-{OUTSIDE}"]}
    config["subnets"].append({"name": "external", **subnet})
    environment = {"OS_CLIENT_CONFIG_FILE": clouds, "ANSIBLE_CONFIG": CHECKOUT / "ansible.cfg"}
    program = ["env", *(f"{name}={value}" for name, value in environment.items())]
    program += [str(Path(sys.executable).with_name("ansible")), "localhost", "-i", "localhost,", "-c", "local"]
    program += ["-e", f"ansible_python_interpreter={sys.executable}", "-m", "openipu.pod.openstack_pod_network"]
    apart.run(*program, "-a", json.dumps({"cloud": ADMIN_CLOUD, "pod": "pod", "config": config}))


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
    assert (lease["mask"], lease["hostname"], lease["domain"]) == ("24", MACHINE["name"], DOMAIN.rstrip("."))
    assert (lease["mtu"], lease["router"]) == ("9000", "10.1.5.254")

    query = ["dig", "+short", "+time=2", "+tries=5", f"@{lease['dns']}"]
    assert apart.run(*machine, *query, f"{OTHER['name']}.{DOMAIN}", "A").strip() == OTHER["address"]
    assert apart.run(*machine, *query, "-x", OTHER["address"]).strip() == f"{OTHER['name']}.{DOMAIN}"

    server = bench.plug("server", BRIDGES["physnet1g"], f"tag={MANAGEMENT}")
    apart.run(*server, "ip", "link", "set", "eth0", "up")
    apart.run(*server, "ip", "addr", "add", f"{SERVER}/24", "dev", "eth0")
    apart.run(*server, "ip", "route", "add", "default", "via", "10.1.3.254")
    assert caller(apart, machine, server, SERVER) == MACHINE["address"]

    outside = bench.plug("outside", BRIDGES["external"])
    apart.run(*outside, "ip", "link", "set", "eth0", "up")
    apart.run(*outside, "ip", "addr", "add", "192.0.2.200/24", "dev", "eth0")
    assert caller(apart, machine, outside, "192.0.2.200") == OUTSIDE


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
