# SPDX-License-Identifier: GPL-3.0-or-later
"""A network node: where packets of the provider networks really flow, as Linux namespaces see them.

Open vSwitch in user space, so that no kernel module is needed, with a bridge for each physical network,
and Neutron's own Open vSwitch and DHCP agents on top. What is plugged into a bridge with a VLAN tag is
on that network: gets its lease from Neutron, and resolves names there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from openipu.twin.processes import ProcessError

from .daemons import Daemons
from .part import Part, Process, everywhere
from .probes import accepts
from .rest import registered
from .site import Site

HOST = "network1"
BRIDGES = {"physnet100g": "br-100g", "physnet1g": "br-1g"}
INTEGRATION = "br-int"
DATAPATH = "ovs-netdev"
OVSDB_PORT = 6640
OPENFLOW_PORT = 6633
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
NAMESPACE = "qdhcp-"  # Neutron names those of its DHCP agent so, and then by network
_VSWITCHD_SECONDS = 30  # that it has for making a bridge


def start(site: Site, daemons: Daemons) -> None:
    """Start what does not run, and wait until both agents are alive. Raises ProcessError."""
    part = _declare(site)
    part.write(site)
    # As somebody else it could not read the leases again, which are in the cloud's own folder.
    _dnsmasq_file(site).write_text("user=root\n")
    switch, agents = part.processes[:2], part.processes[2:]
    if not any(name in daemons.running() for name in ("ovsdb-server", "ovs-vswitchd")):
        _new_database(site)
    daemons.start(switch)
    _run("ovs-vsctl", f"--db={_database(site)}", f"--timeout={_VSWITCHD_SECONDS}", *_bridges())
    daemons.start(agents)


def clean(site: Site) -> None:
    """Remove the namespaces of this cloud's networks, whose processes are no children of the agent, and interfaces.

    Those of Open vSwitch in user space outlive it.
    """
    for network in sorted((site.data / "network-node" / "dhcp").glob("*")):
        namespace = f"{NAMESPACE}{network.name}"
        if not Path("/run/netns", namespace).exists():
            continue
        for pid in _run("ip", "netns", "pids", namespace).split():
            _run("kill", "-KILL", pid)
        _run("ip", "netns", "delete", namespace)
    if _database_file(site).exists():
        for interface in _interfaces():
            _run("ip", "link", "delete", interface)


def check_possible() -> None:
    """Raise ProcessError when who runs this may not, or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError("A network node makes interfaces and namespaces: run the same command as root.")
    needed = {"ovs-vswitchd": "openvswitch-switch", "dnsmasq": "dnsmasq-base", "ip": "iproute2"}
    missing = {package for program, package in needed.items() if not shutil.which(program, path=everywhere()["PATH"])}
    if missing:
        names = " ".join(sorted(missing))
        raise ProcessError(f"Not installed: {names}. Install with: apt install --no-install-recommends {names}")


def _new_database(site: Site) -> None:
    """After an Open vSwitch of this cloud that has died, everything begins anew."""
    path = _database_file(site)
    clean(site)
    for interface in _interfaces():
        raise ProcessError(f"Interface {interface} is there already: another Open vSwitch has it; end that first.")
    path.unlink(missing_ok=True)
    _run("ovsdb-tool", "create", str(path), SCHEMA)


def _interfaces() -> list[str]:
    """Those of an Open vSwitch in user space that are there."""
    return sorted({name for _, name in socket.if_nameindex()} & {DATAPATH, INTEGRATION, *BRIDGES.values()})


def _bridges() -> list[str]:
    """The arguments that make all bridges with ovs-vsctl."""
    return [
        argument
        for name in BRIDGES.values()
        for argument in ("--", "--may-exist", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev")
    ]


def _database(site: Site) -> str:
    return f"tcp:{site.address}:{OVSDB_PORT}"


def _database_file(site: Site) -> Path:
    return site.data / "network-node" / "switch" / "conf.db"


def _dnsmasq_file(site: Site) -> Path:
    return site.etc / "network-node" / "dnsmasq.conf"


def _declare(site: Site) -> Part:
    """Not a service of the catalogue, but written and started like one."""
    data = site.data / "network-node"
    switch = data / "switch"
    config = site.etc / "network-node" / "agent.conf"
    # Neutron calls ovs-vsctl, which finds its database by this.
    environment = {"OVS_RUNDIR": str(switch), "PATH": f"{site.venv / 'bin'}:{everywhere()['PATH']}"}

    def agent(program: str, kind: str) -> Process:
        alive = registered(site, "neutron", "/v2.0/agents", "agents", agent_type=kind, host=HOST, alive=True)
        return Process(program, [site.program(program), "--config-file", str(config)], environment, ready=alive)

    ovsdb = ["ovsdb-server", str(_database_file(site)), f"--remote=punix:{switch / 'db.sock'}"]
    ovsdb += [f"--remote=ptcp:{OVSDB_PORT}:{site.address}", f"--unixctl={switch / 'ovsdb.ctl'}", "-vconsole:warn"]
    vswitchd = ["ovs-vswitchd", _database(site), f"--unixctl={switch / 'vswitchd.ctl'}", "-vconsole:warn"]
    return Part(
        name="network-node",
        type="",
        path="",
        databases=[],
        migrations=[],
        folders=["switch", "dhcp", "lock"],
        config={
            config.name: {
                "DEFAULT": {
                    "host": HOST,
                    "transport_url": site.queue,
                    "state_path": str(data),
                    "interface_driver": "openvswitch",
                    "dnsmasq_config_file": str(_dnsmasq_file(site)),
                    "dhcp_confs": str(data / "dhcp"),
                    "dns_domain": "ipupod.example",
                    "enable_isolated_metadata": False,
                    "enable_metadata_network": False,
                },
                # A command that runs others as they are: there is no other user to become.
                "AGENT": {"root_helper": "env", "tunnel_types": ""},
                "ovs": {
                    "ovsdb_connection": _database(site),
                    "datapath_type": "netdev",
                    "bridge_mappings": ",".join(f"{network}:{bridge}" for network, bridge in BRIDGES.items()),
                    "of_listen_address": site.address,
                    "of_listen_port": OPENFLOW_PORT,
                },
                "securitygroup": {"firewall_driver": "noop"},
                "oslo_concurrency": {"lock_path": str(data / "lock")},
            }
        },
        processes=[
            Process("ovsdb-server", ovsdb, {}, [OVSDB_PORT], accepts(site.address, OVSDB_PORT)),
            Process("ovs-vswitchd", vswitchd, environment),
            agent("neutron-openvswitch-agent", "Open vSwitch agent"),
            agent("neutron-dhcp-agent", "DHCP agent"),
        ],
    )


def _run(*command: str) -> str:
    """What a command of the system printed. Raises ProcessError when it fails."""
    done = subprocess.run(command, env=everywhere(), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ProcessError(f"{' '.join(command[:2])} failed: {last}")
    return done.stdout
