# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated network agents of the hosts: network_agents.py NEUTRON_CONF HOST…

The program runs in the virtual environment of the cloud and uses the same messages as the agents of
Neutron. ML2 binds a port only on a host with a live agent. A bound port becomes ACTIVE when its agent
reports it as up. Nothing forwards packets.
"""

from __future__ import annotations

import sys
import time

from neutron.agent import rpc as agent_rpc
from neutron.common import config
from neutron.conf.agent import common as agent_config
from neutron_lib import constants, context
from neutron_lib.agent import topics
from neutron_lib.api.definitions import portbindings
from oslo_config import cfg
from oslo_messaging import MessagingTimeout, Target

REPORT_SECONDS = 30.0  # between two reports; Neutron considers an agent dead after 75 s
TIMEOUT_SECONDS = 3  # for the response to a report

BRIDGES = {"physnet100g": "br-100g", "physnet1g": "br-1g", "external": "br-ex"}
NICS = {"physnet100g": ["enp65s0f0"]}  # port of the ConnectX, whose virtual functions Nova assigns


def agents(host: str) -> list[dict[str, object]]:
    """Return the states of the agents of a host: Open vSwitch and SR-IOV."""
    return [
        {
            "agent_type": "Open vSwitch agent",
            "binary": "neutron-openvswitch-agent",
            "host": host,
            "topic": "N/A",
            "configurations": {
                "bridge_mappings": BRIDGES,
                "integration_bridge": "br-int",
                "datapath_type": "system",
                "ovs_capabilities": {"datapath_types": ["system"], "iface_types": []},
                "ovs_hybrid_plug": False,
                "tunnel_types": [],
                "tunneling_ip": None,
                "l2_population": False,
                "in_distributed_mode": False,
                "extensions": [],
            },
        },
        {
            "agent_type": "NIC Switch agent",
            "binary": "neutron-sriov-nic-agent",
            "host": host,
            "topic": "N/A",
            "configurations": {"device_mappings": NICS, "devices": 0, "extensions": []},
        },
    ]


class PortUpdates:
    """Receiver of port updates from Neutron. It reports ports on the simulated hosts as up."""

    target = Target(version="1.4")

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self.hosts = hosts
        self.plugin = agent_rpc.PluginApi(topics.PLUGIN)

    def port_update(self, _context: object, port: dict[str, object], **_segment: object) -> None:
        """Report a port as up, if it is on one of the hosts and not yet ACTIVE."""
        host = port.get(portbindings.HOST_ID)
        if host in self.hosts and port["status"] != constants.PORT_STATUS_ACTIVE:
            admin_context = context.get_admin_context_without_session()
            self.plugin.update_device_up(admin_context, port["id"], f"agent-{host}", host)


def main(config_file: str, *hosts: str) -> None:
    """Send reports without end. A report without a response is repeated at once."""
    config.register_common_config_options()
    agent_config.register_agent_state_opts_helper(cfg.CONF)
    config.init(["--config-file", config_file])
    agent_rpc.create_consumers([PortUpdates(hosts)], topics.AGENT, [[topics.PORT, topics.UPDATE]])
    reports = agent_rpc.PluginReportStateAPI(topics.REPORTS)
    reports.timeout = TIMEOUT_SECONDS
    start = {"start_flag": True}
    while True:
        try:
            for host in hosts:
                for state in agents(host):
                    reports.report_state(context.get_admin_context_without_session(), {**state, **start}, use_call=True)
        except MessagingTimeout:
            continue
        start = {}
        time.sleep(REPORT_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
