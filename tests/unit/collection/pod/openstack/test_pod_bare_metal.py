# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the bare-metal nodes of a POD: IPU-Machines, and the servers that pod.yml selects."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.bare_metal import nodes
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError
from ansible_collections.openipu.pod.plugins.plugin_utils.pod_data import describe

SWITCHES = (
    ", switches: [{name: tor1, kind: data, mac: '44:4c:a8:00:00:01'}, {name: mgmt1, kind: management}]"
    ", servers: [{name: s1, bare_metal: %s, addresses: {%s}, "
    "macs: {p2: '02:00:00:00:00:02', data: '02:00:00:00:00:03'}}, {name: s2}]"
)
CLOUD = "openstack: {physical_networks: {data: fast}}\n"


def load_nodes(pod, bare_metal="true", addresses="idrac: 10.3.1.201"):
    model = pod.load(rack_tail=SWITCHES % (bare_metal, addresses), tail=CLOUD)
    return nodes(model, model.cloud)


def test_machines_stay_manageable_and_cannot_be_switched_off(pod):
    machine = load_nodes(pod)["m1.2"]
    assert machine == {
        "name": "m1.2",
        "resource_class": "ipu-machine",
        "disable_power_off": True,
        "automated_clean": False,
        "interfaces": {"network": "noop"},
        "properties": {
            "pod": "test",
            "rack": "rack1",
            "unit": 2,
            "agent": "m1.2",
            "bmc_mac": "02:01:00:00:01:02",
        },
        "traits": ["CUSTOM_IPU_MACHINE"],
        "bmc": {"address": "10.1.1.2"},
        "ports": [
            # The MAC of switch mgmt1 is unknown.
            {"mac": "02:02:00:00:01:02", "pxe_enabled": False, "physical_network": "physnet1g"},
            {
                "mac": "02:05:00:00:01:02",
                "pxe_enabled": False,
                "physical_network": "fast",
                "local_link": {"switch_id": "44:4c:a8:00:00:01", "port_id": "Ethernet10/1", "switch_info": "tor1"},
            },
        ],
        "state": "manageable",
    }


def test_only_selected_servers_are_nodes(pod):
    found = load_nodes(pod)
    assert sorted(found) == ["m1.1", "m1.2", "m1.3", "m1.4", "s1"]
    assert found["s1"]["bmc"] == {"address": "10.3.1.201"}
    assert [(port["mac"], port["physical_network"]) for port in found["s1"]["ports"]] == [
        ("02:00:00:00:00:02", "physnet1g"),
        ("02:00:00:00:00:03", "fast"),
    ]
    assert "disable_power_off" not in found["s1"]
    assert "s1" not in load_nodes(pod, bare_metal="false")


def test_a_selected_server_needs_a_bmc(pod):
    with pytest.raises(PodError, match="server 's1' is a bare-metal node without a BMC: set 'idrac' in 'addresses'"):
        load_nodes(pod, addresses="p1: 10.2.1.101")


def test_a_pod_without_openstack_has_no_nodes(pod):
    assert "openstack_nodes" not in describe(pod.load())
    assert len(describe(pod.load(tail="openstack: {}\n"))["openstack_nodes"]) == 4
