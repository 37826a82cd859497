# SPDX-License-Identifier: GPL-3.0-or-later
"""Report the network agents of the hosts: network_agents.py NEUTRON_CONF ALIVE_FILE HOST…

Runs with the cloud's own Python and speaks Neutron's own messages, as the agents do: ML2 binds a port
only on a host whose agent is alive. Touches ALIVE_FILE once all were heard. Nothing forwards packets.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from neutron.agent import rpc as agent_rpc
from neutron.common import config
from neutron.conf.agent import common as agent_config
from neutron_lib import context
from neutron_lib.agent import topics
from oslo_config import cfg
from oslo_messaging import MessagingTimeout

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


def main(config_file: str, alive: str, *hosts: str) -> None:
    """Report for ever; while nobody takes the reports yet, again at once."""
    config.register_common_config_options()
    agent_config.register_agent_state_opts_helper(cfg.CONF)
    config.init(["--config-file", config_file])
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
        Path(alive).touch()
        time.sleep(PERIOD)


if __name__ == "__main__":
    main(*sys.argv[1:])
