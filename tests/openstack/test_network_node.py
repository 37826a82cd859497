# SPDX-License-Identifier: GPL-3.0-or-later
"""Network node: the agents of Neutron serve DHCP, DNS and routing to an IPU-Machine on the data network."""

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

from tests.openstack.network_namespace import NetworkNamespace
from tests.openstack.neutron_pod import Plan
from tests.waiting import until
from tools.openstack.network_node import BRIDGES
from tools.openstack.site import ADMIN_CLOUD, CHECKOUT

PACKAGES = {
    "ovs-vsctl": "openvswitch-switch",
    "dnsmasq": "dnsmasq-base",
    "iptables": "iptables",
    "udhcpc": "udhcpc",
    "ethtool": "ethtool",
    "dig": "bind9-dnsutils",
}
MISSING = {package for program, package in PACKAGES.items() if not shutil.which(program)}

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="creates interfaces, so it needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"apt install {' '.join(sorted(MISSING))}"),
]

VLAN = 97
DATA, CONTROL = VLAN + 2, VLAN + 4
MACHINE = {"name": "ipum01-rnic", "mac": Plan.mac(1, "rnic"), "address": "10.1.5.1"}
OTHER = {"name": "ipum02-rnic", "address": "10.1.5.2"}
SERVER = "10.4.0.120"  # on the control network of the tenant
OUTSIDE = ["192.0.2.10", "192.0.2.11"]  # addresses of the routers of the tenant and of the management network
DOMAIN = "ipupod.example."
LEASE = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
ip route add default via "$router"
echo "ip=$ip" "mask=$mask" "hostname=$hostname" "domain=$domain" "mtu=$mtu" "dns=$dns" "router=$router"
"""


@pytest.fixture
def node(namespace: NetworkNamespace, tmp_path: Path) -> Iterator[Path]:
    """Cloud with a network node: a data network with two machines, routed to the control and external networks."""
    state = tmp_path / "cloud"
    arguments = ["up", "--network-only", "--network-node", "--state-dir", str(state)]
    try:
        result = namespace.tool(*arguments)
        assert result.returncode == 0, result.stderr
        list_command = result.stdout.splitlines()[-1].partition(": ")[2].split()
        create_networks(namespace, state / "clouds.yaml", tmp_path)
        second = namespace.tool(*arguments)
        assert second.returncode == 0, second.stderr
        wait_for_agents(namespace, list_command)
        yield state
    finally:
        result = namespace.tool("down", "--state-dir", str(state))
    assert result.returncode == 0, result.stderr
    interfaces = {link["ifname"] for link in json.loads(namespace.run("ip", "-json", "link"))}
    assert interfaces == {"lo"}
    remaining = subprocess.run(["pgrep", "--full", str(state)], capture_output=True, text=True, check=False).stdout
    assert remaining == ""


def wait_for_agents(namespace: NetworkNamespace, list_command: list[str]) -> None:
    """Wait until each network has a DHCP server, and the routers exist."""

    def kinds() -> list[str]:
        return sorted(line.partition("-")[0] for line in namespace.run(*list_command).splitlines())

    until(lambda: kinds() == [*5 * ["qdhcp"], *2 * ["qrouter"]], 180, lambda: str(kinds()))


def create_networks(namespace: NetworkNamespace, clouds: Path, folder: Path) -> None:
    """Create the networks with the module, as `openstack.yml` does."""
    config = Plan(folder, VLAN, "external", machines=2, tenants=[]).options()["config"]
    # The only DNS servers are those of Neutron, which serve this domain.
    for network in config["networks"]:
        network["dns_domain"] = DOMAIN
        if network["name"].endswith("-control"):
            network |= {"vlan": CONTROL, "physical_network": "physnet1g"}
    for subnet in config["subnets"]:
        del subnet["dns_servers"]
    external = {"name": "external", "network_type": "flat", "physical_network": "external", "external": True}
    config["networks"].append(external)
    subnet = {"network": "external", "cidr": "192.0.2.0/24", "dhcp": False, "pools": ["-".join(OUTSIDE)]}
    config["subnets"].append({"name": "external", **subnet})
    environment = {"OS_CLIENT_CONFIG_FILE": clouds, "ANSIBLE_CONFIG": CHECKOUT / "ansible.cfg"}
    program = ["env", *(f"{name}={value}" for name, value in environment.items())]
    program += [str(Path(sys.executable).with_name("ansible")), "localhost", "-i", "localhost,", "-c", "local"]
    program += ["-e", f"ansible_python_interpreter={sys.executable}", "-m", "openipu.pod.openstack_pod_network"]
    namespace.run(*program, "-a", json.dumps({"cloud": ADMIN_CLOUD, "pod": "pod", "config": config}))


class Devices:
    """Devices on the switch of the network node, each in its own namespace."""

    def __init__(self, namespace: NetworkNamespace, cleanup: ExitStack) -> None:
        self.namespace, self.cleanup = namespace, cleanup

    def connect(self, name: str, bridge: str, *port: str) -> list[str]:
        """Connect a new device to a bridge and return the prefix of commands on it."""
        device_namespace = f"{name}-{os.getpid()}"
        run = self.namespace.run
        run("ip", "netns", "add", device_namespace)
        self.cleanup.callback(run, "ip", "netns", "delete", device_namespace)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", device_namespace)
        run("ip", "link", "set", name, "up")
        prefix = ["ip", "netns", "exec", device_namespace]
        # Open vSwitch in user space does not add the checksum that a veth omits.
        run(*prefix, "ethtool", "-K", "eth0", "tx", "off")
        run("ovs-vsctl", "--db=tcp:127.6.0.1:6640", "add-port", bridge, name, *port)
        return prefix


@pytest.fixture
def devices(namespace: NetworkNamespace, node: Path) -> Iterator[Devices]:
    with ExitStack() as cleanup:
        yield Devices(namespace, cleanup)


def test_dhcp_dns_and_routing_for_a_machine(namespace: NetworkNamespace, devices: Devices, tmp_path: Path) -> None:
    machine = devices.connect("machine", BRIDGES["physnet100g"], f"tag={DATA}")
    namespace.run(*machine, "ip", "link", "set", "eth0", "address", MACHINE["mac"], "up")
    script = tmp_path / "lease"
    script.write_text(LEASE)
    script.chmod(0o755)
    request = ["udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "20", "-T", "1", "-s", str(script)]
    request += ["-O", "mtu", "-O", "hostname", "-O", "domain", "-O", "dns"]
    lease = dict(item.split("=", 1) for item in namespace.run(*machine, *request).split() if "=" in item)
    assert lease["ip"] == MACHINE["address"]
    assert (lease["mask"], lease["hostname"], lease["domain"]) == ("24", MACHINE["name"], DOMAIN.rstrip("."))
    assert (lease["mtu"], lease["router"]) == ("9000", "10.1.5.254")

    query = ["dig", "+short", "+time=2", "+tries=5", f"@{lease['dns']}"]
    assert namespace.run(*machine, *query, f"{OTHER['name']}.{DOMAIN}", "A").strip() == OTHER["address"]
    assert namespace.run(*machine, *query, "-x", OTHER["address"]).strip() == f"{OTHER['name']}.{DOMAIN}"

    server = devices.connect("server", BRIDGES["physnet1g"], f"tag={CONTROL}")
    namespace.run(*server, "ip", "link", "set", "eth0", "up")
    namespace.run(*server, "ip", "addr", "add", f"{SERVER}/24", "dev", "eth0")
    namespace.run(*server, "ip", "route", "add", "default", "via", "10.4.0.254")
    assert source_address(namespace, machine, server, SERVER) == MACHINE["address"]

    external = devices.connect("outside", BRIDGES["external"])
    namespace.run(*external, "ip", "link", "set", "eth0", "up")
    namespace.run(*external, "ip", "addr", "add", "192.0.2.200/24", "dev", "eth0")
    assert source_address(namespace, machine, external, "192.0.2.200") in OUTSIDE


def source_address(namespace: NetworkNamespace, machine: list[str], server: list[str], address: str) -> str:
    """Return the source address that a server sees for a connection of the machine."""
    server_program = (
        f"import socket; s = socket.create_server(('{address}', 7777)); print(1, flush=True); print(s.accept()[1][0])"
    )
    with subprocess.Popen(
        namespace.command(*server, sys.executable, "-c", server_program), stdout=subprocess.PIPE, text=True
    ) as listener:
        assert listener.stdout is not None
        listener.stdout.readline()
        try:
            client_program = f"import socket; socket.create_connection(('{address}', 7777), timeout=20)"
            namespace.run(*machine, sys.executable, "-c", client_program)
            return listener.stdout.readline().strip()
        finally:
            listener.kill()
