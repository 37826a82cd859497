# SPDX-License-Identifier: GPL-3.0-or-later
"""The network agents of the hosts, without a network: network_agents.py NEUTRON_CONF HOST…

Runs with the cloud's own Python and speaks Neutron's own messages, as the agents do. ML2 binds a port
only on a host whose agent is alive, and a port that is bound there becomes ACTIVE when its agent says
that it has been wired. Nothing forwards packets.
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

PERIOD = 30.0  # seconds; Neutron takes an agent for dead after 75
ANSWER_SECONDS = 3  # that Neutron has for taking one

BRIDGES = {"physnet100g": "br-100g", "physnet1g": "br-1g", "external": "br-ex"}
NICS = {"physnet100g": ["enp65s0f0"]}  # the port of the ConnectX whose virtual functions Nova hands out


def agents(host: str) -> list[dict[str, object]]:
    """The states of one host's agents: Open vSwitch, and SR-IOV."""
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


class Wiring:
    """Takes what Neutron tells all agents of ports, and says of those on our hosts that they are up."""

    target = Target(version="1.4")

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self.hosts = hosts
        self.plugin = agent_rpc.PluginApi(topics.PLUGIN)

    def port_update(self, _context: object, port: dict[str, object], **_segment: object) -> None:
        """A port was bound, or has changed."""
        host = port.get(portbindings.HOST_ID)
        if host in self.hosts and port["status"] != constants.PORT_STATUS_ACTIVE:
            unnamed = context.get_admin_context_without_session()
            self.plugin.update_device_up(unnamed, port["id"], f"agent-{host}", host)


def main(config_file: str, *hosts: str) -> None:
    """Report for ever; while nobody takes the reports yet, again at once."""
    config.register_common_config_options()
    agent_config.register_agent_state_opts_helper(cfg.CONF)
    config.init(["--config-file", config_file])
    agent_rpc.create_consumers([Wiring(hosts)], topics.AGENT, [[topics.PORT, topics.UPDATE]])
    reports = agent_rpc.PluginReportStateAPI(topics.REPORTS)
    reports.timeout = ANSWER_SECONDS
    start = {"start_flag": True}
    while True:
        try:
            for host in hosts:
                for state in agents(host):
                    reports.report_state(context.get_admin_context_without_session(), {**state, **start}, use_call=True)
        except MessagingTimeout:
            continue
        start = {}
        time.sleep(PERIOD)


if __name__ == "__main__":
    main(*sys.argv[1:])
