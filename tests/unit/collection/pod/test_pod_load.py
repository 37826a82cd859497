# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of loading pod.yml and machines.csv: addresses, cables and desired objects."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import cabling, model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import network_config, tenants
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.launch.generate import PodSize
from tests import ROOT


def test_twin_has_the_documented_addresses():
    pod = load(str(ROOT / "inventory/twin/pod.yml"))
    assert [machine.agent for machine in pod.machines] == [f"ag{number:02}" for number in range(1, 17)]
    for number, machine in enumerate(pod.machines, 1):
        assert machine.addresses == {"bmc": f"127.1.1.{number}", "gw": f"127.2.1.{number}", "rnic": f"127.5.1.{number}"}
    assert (pod.controller_host, pod.controller_port) == ("127.3.1.101", 8090)
    assert pod.desired()["agents"][15] == {"id": "ag16", "host": "127.2.1.16", "port": 8080}


def test_the_twin_has_the_objects_that_the_documentation_uses():
    pod = load(str(ROOT / "inventory/twin/pod.yml"))
    assert [(cluster.id, cluster.topology) for cluster in pod.clusters] == [("cl0", "torus")]
    assert any(p.size == 16 and p.options.get("reconfigurable") for p in pod.partitions)
    for allocation in pod.allocations:
        used = sum(p.size for p in pod.partitions if p.allocation == allocation.id)
        if allocation.size * 4 - used >= 16:
            break
    else:
        pytest.fail("no allocation leaves 16 IPUs free")


def test_a_real_rack_has_the_addresses_of_the_factory():
    pod = load(str(ROOT / "inventory/pod64/pod.yml"))
    assert pod.machines[6].addresses == {"bmc": "10.1.1.7", "gw": "10.1.2.7", "rnic": "10.1.5.7"}
    (rack,) = pod.racks
    assert [server.addresses["p2"] for server in rack.servers] == [f"10.1.3.{n}" for n in (101, 102, 103, 104)]
    assert rack.servers[0].addresses["idrac"] == "10.1.3.201"
    assert [pdu.addresses["management"] for pdu in rack.pdus] == ["10.1.3.131", "10.1.3.132"]
    assert pod.controller_host == "10.1.3.101"
    assert pod.desired()["allocations"][1]["agents"] == [f"ag{number:02}" for number in range(9, 17)]


def test_the_example_has_a_storage_network_for_shares_of_vpods():
    pod = load(str(ROOT / "inventory/pod64/pod.yml"))
    found = network_config(pod, pod.cloud)
    assert tenants(pod, pod.cloud)["*"]["storage"] == {
        "network": "pod64-storage",
        "subnet": "10.1.6.0/24",
        "security_group": "pod64-poplar-storage",
    }
    (group,) = (group for group in found["security_groups"] if group["name"] == "pod64-poplar-storage")
    assert {(rule["direction"], rule["port"], rule["remote"]) for rule in group["rules"]} == {
        ("egress", 111, "10.1.6.0/24"),
        ("egress", 2049, "10.1.6.0/24"),
    }


def test_default_networks_are_those_of_a_large_installation(pod):
    found = pod.load(drop="networks:", racks={3: range(1, 3)}, cluster=None)
    assert [machine.addresses["gw"] for machine in found.machines] == ["10.2.3.1", "10.2.3.2"]
    assert {name: network.vlan for name, network in found.networks.items()} == {
        "bmc": 13,
        "gw": 13,
        "management": 99,
        "data": 11,
        "storage": 12,
    }
    assert found.networks["storage"].subnet is None


def test_machines_are_ordered_by_unit(pod):
    found = pod.load(racks={1: [4, 2, 1, 3]})
    assert [machine.unit for machine in found.machines] == [1, 2, 3, 4]
    assert found.desired()["clusters"][0]["agents"] == ["m1.1", "m1.2", "m1.3", "m1.4"]


def test_the_agent_id_may_differ_from_the_name_and_addresses_may_be_given(pod):
    rows = [
        "name,unit,bmc_mac,gw_mac,rnic_mac,agent,gw_address",
        "m,1,02:00:00:00:00:01,02:00:00:00:00:02,02-00-00-00-00-03,agX,10.2.9.9",
    ]
    found = pod.load(rows=rows)
    assert found.desired()["agents"] == [{"id": "agX", "host": "10.2.9.9", "port": 8080}]
    assert found.machines[0].macs["rnic"] == "02:00:00:00:00:03"


def test_partition_options_are_passed_unchanged(pod):
    found = pod.load(
        tail="allocations:\n  - {id: a, cluster: cl, size: 4}\n"
        "partitions:\n"
        "  - {id: p, allocation: a, size: 4, num_gcds: 2, routing: dnc, sync_type: c2-compatible, relocatable: yes,\n"
        "     ipus: [{topology_id: 0}, {topology_id: 1}, {topology_id: 2}, {topology_id: 3, routing_id: 3}]}\n"
        "users:\n  - {id: alice, allocations: [a]}\n"
    )
    (partition,) = found.desired()["partitions"]
    assert partition["num_gcds"] == 2
    assert partition["relocatable"] is True
    assert "reconfigurable" not in partition
    assert partition["ipus"][3] == {"ild": 0, "topology_id": 3, "ild_routing_id": 0, "routing_id": 3}
    assert found.desired()["users"] == [{"id": "alice", "role": "user", "allocations": ["a"]}]


def test_two_ilds_are_two_racks(pod):
    found = pod.load(racks={1: range(1, 5), 2: range(1, 5)}, cluster="racks: [rack1, rack2], num_ilds: 2")
    (cluster,) = found.desired()["clusters"]
    assert cluster["num_ilds"] == 2
    assert cluster["agents"] == [f"m{rack}.{unit}" for rack in (1, 2) for unit in range(1, 5)]


def test_the_cables_of_the_example_differ_from_the_reference_port_map():
    pod = load(str(ROOT / "inventory/pod64/pod.yml"))
    [rack] = pod.racks
    found = {(cable.device, cable.connector): (cable.switch, cable.port) for cable in pod.cables}
    moved = {end: place for end, place in found.items() if cabling.reference(rack)[end] != place}
    assert moved == {("server1", "idrac"): ("mgmt1", "Ethernet29")}


def test_the_reference_port_map_gives_every_port_once():
    pod = load(str(ROOT / "inventory/pod64/pod.yml"))
    ends = {(cable.device, cable.connector): cable for cable in pod.cables}
    # 16 machines with two cables each, four servers with five, the ToR switch and two PDUs.
    assert len(ends) == len(pod.cables) == 16 * 2 + 4 * 5 + 1 + 2
    assert len({(cable.switch, cable.port) for cable in pod.cables}) == len(pod.cables)
    assert ends["ipum16", "rnic"].port == "Ethernet24/1"
    assert ends["ipum16", "rnic"].vlans == (11,)
    assert ends["ipum16", "mgmt"].vlans == (13,)
    assert ends["server4", "data2"].port == "Ethernet32/1"
    assert ends["server4", "data2"].vlans == (11, 12)
    uplinks = {f"Ethernet{port}/1" for port in range(1, 9)}
    assert not uplinks & {cable.port for cable in pod.cables if cable.switch == "tor1"}


def test_yaml_anchors_and_merge_keys(pod):
    found = pod.load(
        tail="allocations:\n  - &share {id: a, cluster: cl, size: 2}\n  - {<<: *share, id: b}\n"
        "  - {<<: *share, id: c, size: 0}\n".replace("  - {<<: *share, id: c, size: 0}\n", "")
    )
    assert [(a.id, a.size) for a in found.allocations] == [("a", 2), ("b", 2)]


@settings(max_examples=60, deadline=None)
@given(
    rack=st.integers(0, 255),
    unit=st.integers(1, 16),
    second=st.integers(0, 255),
)
def test_address_encodes_network_rack_and_unit(tmp_path_factory, rack, unit, second):
    folder = tmp_path_factory.mktemp("rule")
    (folder / "pod.yml").write_text(
        "plugin: openipu.pod.pod\n"
        f"name: p\nnetworks: {{gw: {{subnet: 10.{second}.0.0/16}}, bmc: {{subnet: 172.16.0.0/16}},"
        f" data: {{subnet: 172.17.0.0/16}},"
        f" management: {{subnet: 172.18.0.0/16}}}}\ncontroller: {{host: c}}\nracks: [{{name: r, number: {rack}}}]\n"
    )
    (folder / "machines.csv").write_text(
        f"name,unit,bmc_mac,gw_mac,rnic_mac\nm,{unit},02:00:00:00:00:01,02:00:00:00:00:02,02:00:00:00:00:03\n"
    )
    (machine,) = load(str(folder / "pod.yml")).machines
    assert machine.addresses["gw"] == f"10.{second}.{rack}.{unit}"


@settings(max_examples=25, deadline=None)
@given(
    racks=st.integers(1, 6),
    machines=st.integers(1, 16),
    partitions=st.integers(0, 8),
    offset=st.integers(0, 250),
)
def test_generated_pods_have_no_duplicates(tmp_path_factory, racks, machines, partitions, offset):
    size = PodSize(racks=racks, machines=machines, partitions=min(partitions, machines * 2), offset=offset)
    pod = load(str(size.write(tmp_path_factory.mktemp("pod"))))
    assert len(pod.machines) == racks * machines
    addresses = [address for device in pod.devices for address in device.addresses.values()]
    assert len(addresses) == len(set(addresses))
    for cluster in pod.clusters:
        assert [machine.unit for machine in cluster.machines] == list(range(1, machines + 1))
    desired = pod.desired()
    agents = {agent["id"] for agent in desired["agents"]}
    assert agents == {id for cluster in desired["clusters"] for id in cluster["agents"]}
    assert all(p["size"] & (p["size"] - 1) == 0 for p in desired["partitions"])


def test_sixty_four_racks_load(tmp_path):
    path = PodSize(racks=64, partitions=16).write(tmp_path)
    pod = load(str(path))
    assert len(pod.machines) == 1024
    assert len(pod.partitions) == 1024


def test_interfaces_are_found_by_name():
    machine = load(str(ROOT / "inventory/twin/pod.yml")).machines[0]
    assert machine.interface("gw").networks == (model.GW,)
    with pytest.raises(KeyError):
        machine.interface("eth0")


def test_a_cable_moves_that_of_a_device_in_an_earlier_rack(pod):
    path = pod.write(racks={1: [1], 2: [1]}, cluster=None)
    text = path.read_text()
    for number in (1, 2):
        devices = f"switches: [{{name: tor{number}, kind: data}}, {{name: mgmt{number}, kind: management}}]"
        text = text.replace(f"number: {number}}}", f"number: {number}, {devices}}}")
    moved = "cables: [{device: m1.1, connector: rnic, switch: tor2, port: Ethernet20/1}]"
    path.write_text(text.replace("number: 2,", f"number: 2, {moved},"))
    found = [
        (each.switch, each.port) for each in load(str(path)).cables if (each.device, each.connector) == ("m1.1", "rnic")
    ]
    assert found == [("tor2", "Ethernet20/1")]
