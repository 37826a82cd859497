# SPDX-License-Identifier: GPL-3.0-or-later
"""A network node: where packets of the provider networks really flow, as Linux namespaces see them.

Open vSwitch in user space, so that no kernel module is needed, with a bridge for each physical network,
and Neutron's own agents on top: Open vSwitch, DHCP, L3. What is plugged into a bridge with a VLAN tag is
on that network: it gets its lease from Neutron, resolves names there, and reaches what a router leads to.
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

from openipu.twin.processes import ProcessError

from .daemons import Daemons
from .part import Part, Process, everywhere
from .probes import accepts
from .rest import registered
from .site import Site

HOST = "network1"
BRIDGES = {"physnet100g": "br-100g", "physnet1g": "br-1g", "external": "br-ex"}
INTEGRATION = "br-int"
DATAPATH = "ovs-netdev"
OVSDB_PORT = 6640
OPENFLOW_PORT = 6633
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
NAMESPACES = "namespaces"  # the process that keeps those of the agents
_KILL_SECONDS = 10.0  # that the system has for ending a process that was killed
_POLL_SECONDS = 0.05
_VSWITCHD_SECONDS = 30  # that it has for making a bridge


def start(site: Site, daemons: Daemons) -> None:
    """Start what does not run, and wait until the agents are alive. Raises ProcessError."""
    part = _declare(site)
    part.write(site)
    # As somebody else it could not read the leases again, which are in the cloud's own folder.
    _dnsmasq_file(site).write_text("user=root\n")
    beneath, agents = part.processes[:3], part.processes[3:]
    if not {process.name for process in beneath} <= set(daemons.running()):
        # Half of it is no use: ports and namespaces that have lost their switch are not taken up again.
        daemons.stop({process.name for process in part.processes})
        clean(site)
        _new_database(site)
    daemons.start(beneath)
    _run("ovs-vsctl", f"--db={_database(site)}", f"--timeout={_VSWITCHD_SECONDS}", *_bridges())
    # The agents' namespaces go with the process that keeps them, whatever becomes of the agents.
    enter = ["nsenter", "--mount", "--target", str(daemons.pid(NAMESPACES))]
    daemons.start([replace(agent, command=[*enter, *agent.command]) for agent in agents])


def clean(site: Site) -> None:
    """End what the agents have left to itself, and remove the interfaces; once all others have ended."""
    deadline = time.monotonic() + _KILL_SECONDS
    while serving := _serving(site):
        for process in serving:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > deadline:
            raise ProcessError(f"Process {serving[0].pid} (dnsmasq) cannot be ended.")
        time.sleep(_POLL_SECONDS)
    if _database_file(site).exists():
        for interface in _interfaces():
            _run("ip", "link", "delete", interface)


def _serving(site: Site) -> list[psutil.Process]:
    """The name servers of this cloud's networks, which are no children of their agent."""
    folder = str(_data(site))
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() == "dnsmasq" and any(folder in argument for argument in process.cmdline()):
                found.append(process)
    return found


def check_possible() -> None:
    """Raise ProcessError when who runs this may not, or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError("A network node makes interfaces and namespaces: run the same command as root.")
    needed = {"ovs-vswitchd": "openvswitch-switch", "dnsmasq": "dnsmasq-base"}
    needed.update({"ip": "iproute2", "iptables": "iptables"})
    missing = {package for program, package in needed.items() if not shutil.which(program, path=everywhere()["PATH"])}
    if missing:
        names = " ".join(sorted(missing))
        raise ProcessError(f"Not installed: {names}. Install with: apt install --no-install-recommends {names}")


def _new_database(site: Site) -> None:
    path = _database_file(site)
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
    return _data(site) / "switch" / "conf.db"


def _data(site: Site) -> Path:
    return site.data / "network-node"


def _dnsmasq_file(site: Site) -> Path:
    return site.etc / "network-node" / "dnsmasq.conf"


def _declare(site: Site) -> Part:
    """Not a service of the catalogue, but written and started like one."""
    data = _data(site)
    switch = data / "switch"
    config = site.etc / "network-node" / "agent.conf"
    # Neutron calls ovs-vsctl, which finds its database by this.
    environment = {"OVS_RUNDIR": str(switch), "PATH": f"{site.venv / 'bin'}:{everywhere()['PATH']}"}

    def agent(program: str, kind: str) -> Process:
        alive = registered(site, "neutron", "/v2.0/agents", "agents", agent_type=kind, host=HOST, alive=True)
        return Process(program, [site.program(program), "--config-file", str(config)], environment, ready=alive)

    ovsdb = ["ovsdb-server", str(_database_file(site)), f"--remote=punix:{switch / 'db.sock'}"]
    ovsdb += [f"--remote=ptcp:{OVSDB_PORT}:{site.address}", f"--unixctl={switch / 'ovsdb.ctl'}", "-vconsole:warn"]
    keeper = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    keeper += ["mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && exec sleep infinity"]
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
                    "enable_metadata_proxy": False,
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
            Process(NAMESPACES, keeper),
            Process("ovsdb-server", ovsdb, {}, [OVSDB_PORT], accepts(site.address, OVSDB_PORT)),
            Process("ovs-vswitchd", vswitchd, environment),
            agent("neutron-openvswitch-agent", "Open vSwitch agent"),
            agent("neutron-dhcp-agent", "DHCP agent"),
            agent("neutron-l3-agent", "L3 agent"),
        ],
    )


def _run(*command: str) -> str:
    """What a command of the system printed. Raises ProcessError when it fails."""
    done = subprocess.run(command, env=everywhere(), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ProcessError(f"{' '.join(command[:2])} failed: {last}")
    return done.stdout
