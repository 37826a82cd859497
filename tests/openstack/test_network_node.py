# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPU-Machine that is plugged into the data network gets what Neutron knows of it, from Neutron's own agents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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
VLAN = 11
DHCP = "data/network-node/dhcp/*"  # a folder for each network that the agent serves
LEASE = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
echo "ip=$ip" "mask=$mask" "hostname=$hostname" "domain=$domain" "mtu=$mtu" "dns=$dns"
"""


@pytest.fixture
def node(apart: Apart, tmp_path: Path) -> Iterator[Path]:
    """A cloud with a network node, and the data network with two machines."""
    state = tmp_path / "cloud"
    arguments = ["up", "--network-only", "--network-node", "--state-dir", str(state)]
    try:
        done = apart.tool(*arguments)
        assert done.returncode == 0, done.stderr
        environment = {"OS_CLIENT_CONFIG_FILE": str(state / "clouds.yaml"), "OS_CLOUD": "openipu"}
        program = ["env", *(f"{name}={value}" for name, value in environment.items())]
        program.append(str(CACHE / "venv" / "bin" / "openstack"))

        def openstack(*line: str) -> None:
            apart.run(*program, *line)

        provider = ["--provider-network-type", "vlan", "--provider-physical-network", "physnet100g"]
        provider += ["--provider-segment", str(VLAN), "--mtu", "9000", "--dns-domain", "ipupod.example."]
        openstack("network", "create", *provider, "ipu-data")
        openstack("subnet", "create", "--network", "ipu-data", "--subnet-range", "10.5.0.0/22", "ipu-data")
        for machine in (MACHINE, OTHER):
            port = ["--mac-address", machine["mac"], "--fixed-ip", f"ip-address={machine['address']}"]
            port += ["--dns-name", machine["name"], "--disable-port-security", "--no-security-group"]
            openstack("port", "create", "--network", "ipu-data", *port, machine["name"])
        again = apart.tool(*arguments)
        assert again.returncode == 0, again.stderr
        yield state
    finally:
        namespaces = [Path("/run/netns", f"qdhcp-{network.name}") for network in state.glob(DHCP)]
        done = apart.tool("down", "--state-dir", str(state))
    assert done.returncode == 0, done.stderr
    interfaces = {link["ifname"] for link in json.loads(apart.run("ip", "-json", "link"))}
    assert not interfaces & {"br-int", *BRIDGES.values()}
    left = subprocess.run(["pgrep", "--full", str(state)], capture_output=True, text=True, check=False).stdout
    assert left == ""
    assert namespaces
    assert not [namespace for namespace in namespaces if namespace.exists()]


@pytest.fixture
def plugged(apart: Apart, node: Path, tmp_path: Path) -> Iterator[str]:
    """The name of a namespace with the machine's interface, in a port of the switch with the network's VLAN."""
    name = f"ipum-{os.getpid()}"
    script = tmp_path / "lease"
    script.write_text(LEASE)
    script.chmod(0o755)
    with ExitStack() as undo:
        apart.run("ip", "netns", "add", name)
        undo.callback(apart.run, "ip", "netns", "delete", name)
        apart.run("ip", "link", "add", "machine1", "type", "veth", "peer", "name", "eth0", "netns", name)
        apart.run("ip", "link", "set", "machine1", "up")
        inside = ["ip", "netns", "exec", name]
        # Open vSwitch in user space hands packets on as they are, without the checksum that a veth leaves out.
        apart.run(*inside, "ethtool", "-K", "eth0", "tx", "off")
        apart.run(*inside, "ip", "link", "set", "eth0", "address", MACHINE["mac"], "up")
        bridge = BRIDGES["physnet100g"]
        apart.run("ovs-vsctl", "--db=tcp:127.6.0.1:6640", "add-port", bridge, "machine1", f"tag={VLAN}")
        yield name


def test_a_machine_gets_its_address_its_name_and_resolves_another(apart: Apart, plugged: str, tmp_path: Path) -> None:
    inside = ["ip", "netns", "exec", plugged]
    ask = ["udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "20", "-T", "1", "-s", str(tmp_path / "lease")]
    ask += ["-O", "mtu", "-O", "hostname", "-O", "domain", "-O", "dns"]
    lease = dict(item.split("=", 1) for item in apart.run(*inside, *ask).split() if "=" in item)
    assert lease["ip"] == MACHINE["address"]
    assert (lease["mask"], lease["hostname"], lease["domain"]) == ("22", MACHINE["name"], "ipupod.example")
    assert lease["mtu"] == "9000"
    query = ["dig", "+short", "+time=2", "+tries=5", f"@{lease['dns']}"]
    assert apart.run(*inside, *query, f"{OTHER['name']}.ipupod.example", "A").strip() == OTHER["address"]
    assert apart.run(*inside, *query, "-x", OTHER["address"]).strip() == f"{OTHER['name']}.ipupod.example."
