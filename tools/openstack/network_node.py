# SPDX-License-Identifier: GPL-3.0-or-later
"""Network node that forwards packets of the provider networks.

It consists of Open vSwitch in user space, which needs no kernel module, and the Open vSwitch, DHCP and L3
agents of Neutron. Open vSwitch has a bridge for each physical network. An interface that is added to a bridge
with a VLAN tag is in that network. It gets a lease from Neutron, resolves names and reaches routed networks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import psutil

from openipu.process.background import ProcessError

from .component import Component, Process, base_environment
from .daemons import Daemons
from .probes import accepts_connections
from .rest import is_registered
from .site import Site

HOST = "network1"
BRIDGES = {"physnet100g": "br-100g", "physnet1g": "br-1g", "external": "br-ex"}
INTEGRATION = "br-int"
DATAPATH = "ovs-netdev"
OVSDB_PORT = 6640
OPENFLOW_PORT = 6633
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
NAMESPACES = "namespaces"  # name of the process that holds the network namespaces of the agents
_KILL_SECONDS = 10.0  # from SIGKILL until the end of a process
_POLL_SECONDS = 0.05
_VSWITCHD_SECONDS = 30  # timeout for the creation of a bridge


def start(site: Site, daemons: Daemons) -> None:
    """Start missing processes and wait until the agents are alive. Raises ProcessError."""
    component = _component(site)
    component.write(site)
    # Another user could not read the leases, which are in the folder of the cloud.
    _dnsmasq_file(site).write_text("user=root\n")
    switch, agents = component.processes[:3], component.processes[3:]
    if not {process.name for process in switch} <= set(daemons.running()):
        # Start all again: agents do not reconnect ports and namespaces of a previous switch.
        daemons.stop({process.name for process in component.processes})
        clean(site)
        _new_database(site)
    daemons.start(switch)
    _run("ovs-vsctl", f"--db={_database(site)}", f"--timeout={_VSWITCHD_SECONDS}", *_bridge_arguments())
    # The namespaces of the agents end with the process that holds them, even if the agents were killed.
    enter = ["nsenter", "--mount", "--target", str(daemons.pid(NAMESPACES))]
    daemons.start([replace(agent, command=[*enter, *agent.command]) for agent in agents])


def clean(site: Site) -> None:
    """Stop the dnsmasq processes and remove the interfaces. Call it after all other processes have ended."""
    deadline = time.monotonic() + _KILL_SECONDS
    while processes := _dnsmasq_processes(site):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > deadline:
            raise ProcessError(f"Cannot stop process {processes[0].pid} (dnsmasq): it survives SIGKILL.")
        time.sleep(_POLL_SECONDS)
    if _database_file(site).exists():
        for interface in _existing_interfaces():
            _run("ip", "link", "delete", interface)


def _dnsmasq_processes(site: Site) -> list[psutil.Process]:
    """Return the name servers of the networks of this cloud. They are not child processes of their agent."""
    folder = str(_data(site))
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() == "dnsmasq" and any(folder in argument for argument in process.cmdline()):
                found.append(process)
    return found


def check_requirements() -> None:
    """Raise ProcessError when the user is not root or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError(
            "Cannot start the network node: interfaces and namespaces need root. Run the same command as root."
        )
    needed = {"ovs-vswitchd": "openvswitch-switch", "dnsmasq": "dnsmasq-base"}
    needed.update({"ip": "iproute2", "iptables": "iptables"})
    missing = {
        package for program, package in needed.items() if not shutil.which(program, path=base_environment()["PATH"])
    }
    if missing:
        names = " ".join(sorted(missing))
        raise ProcessError(
            f"Cannot start the network node: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )


def _new_database(site: Site) -> None:
    path = _database_file(site)
    for interface in _existing_interfaces():
        raise ProcessError(f"Cannot create interface '{interface}': it exists. Stop the Open vSwitch that uses it.")
    path.unlink(missing_ok=True)
    _run("ovsdb-tool", "create", str(path), SCHEMA)


def _existing_interfaces() -> list[str]:
    """Return the existing interfaces of an Open vSwitch in user space."""
    return sorted({name for _, name in socket.if_nameindex()} & {DATAPATH, INTEGRATION, *BRIDGES.values()})


def _bridge_arguments() -> list[str]:
    """Return the arguments of ovs-vsctl that create all bridges."""
    return [
        argument
        for name in BRIDGES.values()
        for argument in ("--", "--may-exist", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev")
    ]


def _database(site: Site) -> str:
    return f"tcp:{site.address}:{OVSDB_PORT}"


def _database_file(site: Site) -> Path:
    return _data(site) / "switch" / "conf.db"


def _data(site: Site) -> Path:
    return site.data / "network-node"


def _dnsmasq_file(site: Site) -> Path:
    return site.etc / "network-node" / "dnsmasq.conf"


def _component(site: Site) -> Component:
    """Return the component of the network node. It has no entry in the service catalogue."""
    data = _data(site)
    switch = data / "switch"
    config = site.etc / "network-node" / "agent.conf"
    # ovs-vsctl, which Neutron calls, finds its database by OVS_RUNDIR.
    environment = {"OVS_RUNDIR": str(switch), "PATH": f"{site.venv / 'bin'}:{base_environment()['PATH']}"}

    def agent(program: str, kind: str) -> Process:
        alive = is_registered(site, "neutron", "/v2.0/agents", "agents", agent_type=kind, host=HOST, alive=True)
        return Process(program, [site.program(program), "--config-file", str(config)], environment, ready=alive)

    ovsdb = ["ovsdb-server", str(_database_file(site)), f"--remote=punix:{switch / 'db.sock'}"]
    ovsdb += [f"--remote=ptcp:{OVSDB_PORT}:{site.address}", f"--unixctl={switch / 'ovsdb.ctl'}", "-vconsole:warn"]
    holder = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    holder += ["mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && exec sleep infinity"]
    vswitchd = ["ovs-vswitchd", _database(site), f"--unixctl={switch / 'vswitchd.ctl'}", "-vconsole:warn"]
    return Component(
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
                    "transport_url": site.queue_url,
                    "state_path": str(data),
                    "interface_driver": "openvswitch",
                    "dnsmasq_config_file": str(_dnsmasq_file(site)),
                    "dhcp_confs": str(data / "dhcp"),
                    "dns_domain": "ipupod.example",
                    "enable_isolated_metadata": False,
                    "enable_metadata_network": False,
                    "enable_metadata_proxy": False,
                },
                # `env` runs commands unchanged: the agents already run as root.
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
            Process(NAMESPACES, holder),
            Process("ovsdb-server", ovsdb, {}, [OVSDB_PORT], accepts_connections(site.address, OVSDB_PORT)),
            Process("ovs-vswitchd", vswitchd, environment),
            agent("neutron-openvswitch-agent", "Open vSwitch agent"),
            agent("neutron-dhcp-agent", "DHCP agent"),
            agent("neutron-l3-agent", "L3 agent"),
        ],
    )


def _run(*command: str) -> str:
    """Run a command of the system and return its output. Raises ProcessError when it fails."""
    done = subprocess.run(command, env=base_environment(), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ProcessError(f"Cannot run {' '.join(command[:2])}: {last}")
    return done.stdout
