# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of a vPOD as bridges in a network namespace, with hosts in further namespaces."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.openstack.network_namespace import NetworkNamespace
from tests.waiting import until

SECONDS = 3000  # life of the namespaces; longer than the tests on a busy machine
CONTROL, MACHINES = "control", "machines"  # the control network of the tenant, and that of BMCs and IPU-Gateways
DATA, STORAGE = "data", "storage"  # the data and storage networks of the tenant

_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))"
_FETCH = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"
_SEND = (
    "import socket, sys; "
    "socket.socket(type=socket.SOCK_DGRAM).sendto(sys.argv[3].encode(), (sys.argv[1], int(sys.argv[2])))"
)
REFUSED_SECONDS = 3.0  # a firewall drops packets, so a blocked connection only ends by its timeout

Port = dict[str, Any]  # with ``mac`` and ``addresses``


def _subnet(address: str) -> str:
    return str(ipaddress.ip_interface(f"{address}/24").network.network_address)


class Host(NetworkNamespace):
    """Host with addresses in the networks."""

    def reaches(self, address: str, port: int, seconds: float = REFUSED_SECONDS) -> bool:
        """Return whether a TCP connection works."""
        line = self.command(sys.executable, "-c", _CONNECT, address, str(port), str(seconds))
        return subprocess.run(line, capture_output=True, timeout=60, check=False).returncode == 0

    def get(self, url: str) -> str:
        """Return the body of a response over HTTP."""
        return self.run(sys.executable, "-c", _FETCH, url)

    def get_json(self, url: str) -> Any:
        return json.loads(self.get(url))

    def send(self, address: str, port: int, text: str) -> None:
        """Send a UDP packet."""
        self.run(sys.executable, "-c", _SEND, address, str(port), text)


class Lan:
    """Networks with their hosts and processes."""

    def __init__(self, folder: Path, networks: Sequence[str] = (CONTROL, MACHINES)) -> None:
        self.folder = folder
        self.switch = NetworkNamespace(SECONDS)
        self.hosts: list[Host] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        for bridge in networks:
            self.switch.run("ip", "link", "add", bridge, "type", "bridge")
            self.switch.run("ip", "link", "set", bridge, "up")

    def tap(self, bridge: str) -> str:
        """Return the name of a new TAP device in a network."""
        name = f"tap-{bridge}"
        self.switch.run("ip", "tuntap", "add", "dev", name, "mode", "tap")
        self.switch.run("ip", "link", "set", name, "master", bridge, "up")
        return name

    def host(self, **addresses: list[str]) -> Host:
        """Return a new host with these addresses by network."""
        host = Host(SECONDS)
        for bridge, own in addresses.items():
            end = f"{bridge}{len(self.hosts)}"
            pid = str(host.process.pid)
            self.switch.run("ip", "link", "add", end, "type", "veth", "peer", "name", bridge, "netns", pid)
            self.switch.run("ip", "link", "set", end, "master", bridge, "up")
            host.run("ip", "link", "set", bridge, "up")
            for address in own:
                host.run("ip", "address", "add", address, "dev", bridge)
        self.hosts.append(host)
        return host

    def start(self, place: NetworkNamespace, name: str, *line: str | Path) -> subprocess.Popen[bytes]:
        """Start a process in a namespace. Its output is in ``name.log``."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(place.command(*map(str, line)), stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def wait_port(self, process: subprocess.Popen[bytes], host: Host, address: str, port: int) -> None:
        """Wait until a process of a host accepts connections."""

        def ready() -> bool:
            assert process.poll() is None, f"{process.args} has ended"
            return host.reaches(address, port)

        until(ready, 60, f"{address}:{port}")

    def start_dhcp(self, agent: Host, ports: Mapping[str, Port], *options: str) -> None:
        """Start the DHCP and DNS server of Neutron for a port in each network. ``options`` are those of dnsmasq."""
        pools = {(network, _subnet(address)) for network, port in ports.items() for address in port["addresses"]}
        hosts = [f"{port['mac']},{address}" for port in ports.values() for address in port["addresses"]]
        self.start(
            agent,
            "dhcp",
            *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--no-resolv", "--no-hosts"),
            *("--pid-file=", f"--dhcp-leasefile={self.folder}/leases", "--domain=pod64.example", "--log-dhcp"),
            *(f"--dhcp-range=set:{network},{subnet},static,255.255.255.0" for network, subnet in sorted(pools)),
            *(f"--dhcp-host={host}" for host in hosts),
            *options,
        )

    def close(self) -> None:
        """Stop all processes and remove the namespaces."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)
        for host in (*self.hosts, self.switch):
            host.close()
