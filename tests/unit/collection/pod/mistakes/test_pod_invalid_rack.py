# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid networks, racks, clusters and cables of pod.yml: each error has line, cause and remedy."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

NETWORKS = [
    ("networks: {gww: {vlan: 1}}", "unknown key 'gww': did you mean 'gw'?"),
    ("networks: {gw: {vlan: 4095}}", "network 'gw': invalid vlan 4095: use 1 to 4094"),
    ("networks: {gw: {subnet: 10.2.0.0}}", "use the form 10.1.0.0/16"),
    ("networks: {gw: {subnet: 10.2.0.0/33}}", "use the form 10.1.0.0/16"),
    ("networks: {gw: {subnet: 10.2.1.0/16}}", "has host bits set: did you mean 10.2.0.0/16?"),
    ("networks: {gw: {subnet: 10.2.0.0/30}}", "it lacks 2 addresses, such as number 3 for gw of 'm1.3'"),
    ("networks: {gw: {subnet: 10.1.0.0/16}}", "networks 'bmc' and 'gw' share addresses of subnet 10.1.0.0/16"),
    ("networks: {gw: {sub: 1}}", "unknown key 'sub'"),
    ("networks: gw", "'networks' must be a mapping"),
]


@pytest.mark.parametrize(("networks", "message"), NETWORKS, ids=[case[0] for case in NETWORKS])
def test_networks_are_checked(pod, networks, message):
    with pytest.raises(PodError, match="line ") as caught:
        load(str(pod.write(networks=networks)))
    assert message in str(caught.value)


CLUSTERS = [
    ("a gap", {1: [1, 2, 4]}, "racks: [rack1]", "unit 3 of rack 'rack1' is missing between 'm1.2' and 'm1.4': add it"),
    (
        "one left out",
        {1: range(1, 5)},
        "machines: [m1.1, m1.3]",
        "unit 2 of rack 'rack1' is missing between 'm1.1' and 'm1.3': list 'm1.2' there",
    ),
    ("from the top", {1: range(1, 5)}, "machines: [m1.2, m1.1]", "list machines from the lowest unit up"),
    ("one twice", {1: range(1, 5)}, "machines: [m1.1, m1.1]", "cluster 'cl' lists machine 'm1.1' twice"),
    (
        "over two racks",
        {1: [1, 2], 2: [1, 2]},
        "racks: [rack1, rack2]",
        "cluster 'cl': the IPU-Link domain has 4 machines, but IPU-Links do not leave a rack, and the cluster has "
        "2 in rack 'rack1', 2 in rack 'rack2': set num_ilds to 2",
    ),
    (
        "racks of different sizes",
        {1: range(1, 17), 2: range(1, 9)},
        "racks: [rack1, rack2], num_ilds: 2",
        "cluster 'cl': the 2 IPU-Link domains have 12 machines each, but IPU-Links do not leave a rack, and the "
        "cluster has 16 in rack 'rack1', 8 in rack 'rack2': use racks with the same number of machines, or one "
        "cluster for each rack",
    ),
    (
        "an odd number of machines in two racks",
        {1: range(1, 3), 2: [1]},
        "racks: [rack1, rack2], num_ilds: 2",
        "2 IPU-Link domains: use racks with the same number of machines, or one cluster for each rack",
    ),
    (
        "an uneven domain",
        {1: range(1, 5)},
        "racks: [rack1], num_ilds: 3",
        "4 machines of cluster 'cl' cannot be divided evenly into 3",
    ),
    ("no domain", {1: range(1, 5)}, "racks: [rack1], num_ilds: 0", "cluster 'cl': invalid num_ilds 0: use 1 or more"),
    ("no such machine", {1: [1]}, "machines: [m1.2]", "unknown machine 'm1.2': did you mean 'm1.1'?"),
    (
        "an unknown topology",
        {1: [1]},
        "racks: [rack1], topology: ring",
        "unknown value of topology 'ring': known are mesh, torus",
    ),
    ("no machines", {1: [1]}, "machines: []", "cluster 'cl' has no machines"),
]


@pytest.mark.parametrize(
    ("racks", "cluster", "message"), [case[1:] for case in CLUSTERS], ids=[case[0] for case in CLUSTERS]
)
def test_machines_of_a_cluster_are_checked(pod, racks, cluster, message):
    with pytest.raises(PodError) as caught:
        pod.load(racks=racks, cluster=cluster)
    assert message in caught.value.message


CABLES = [
    (
        "two cables in one port",
        "{device: m1.1, connector: rnic, switch: tor, port: Ethernet10/1}",
        "port Ethernet10/1 of tor is used by both rnic of m1.1 (line 6) and rnic of m1.2",
    ),
    (
        "an unknown VLAN",
        "{device: m1.1, connector: rnic, switch: tor, port: Ethernet1/1, vlans: [77]}",
        "VLAN 77 belongs to no network: use one of",
    ),
    (
        "an unknown port",
        "{device: m1.1, connector: rnic, switch: tor, port: Ethernet99}",
        "unknown port of a DCS-7060CX-32S-F 'Ethernet99'",
    ),
    ("an unknown connector", "{device: m1.1, connector: rnik, switch: tor, port: Ethernet1/1}", "did you mean 'rnic'?"),
    ("an unknown device", "{device: m9, connector: rnic, switch: tor, port: Ethernet1/1}", "unknown device 'm9'"),
    (
        "a machine instead of a switch",
        "{device: m1.1, connector: rnic, switch: m1.2, port: Ethernet1/1}",
        "'m1.2' is not a switch",
    ),
    (
        "a management connector in a data switch",
        "{device: m1.1, connector: mgmt, switch: tor, port: Ethernet1/1}",
        "mgmt of 'm1.1' has VLAN 13 of a management network, and 'tor' is a data switch: name a management switch",
    ),
    (
        "a data connector in a management switch",
        "{device: m1.1, connector: rnic, switch: mgmt, port: Ethernet30}",
        "rnic of 'm1.1' has VLAN 11 of a data network, and 'mgmt' is a management switch: name a data switch",
    ),
    (
        "a data VLAN on a management switch",
        "{device: m1.1, connector: mgmt, switch: mgmt, port: Ethernet30, vlans: [13, 11]}",
        "mgmt of 'm1.1' has VLAN 11 of a data network, and 'mgmt' is a management switch: correct 'vlans'",
    ),
]


@pytest.mark.parametrize(("cable", "message"), [case[1:] for case in CABLES], ids=[case[0] for case in CABLES])
def test_cables_are_checked(pod, cable, message):
    tail = f", switches: [{{name: tor, kind: data}}, {{name: mgmt, kind: management}}], cables: [{cable}]"
    with pytest.raises(PodError) as caught:
        pod.load(rack_tail=tail)
    assert message in caught.value.message
    assert caught.value.line == 6


def test_a_cable_may_move_to_a_free_port(pod):
    cable = "{device: m1.1, connector: rnic, switch: tor, port: Ethernet1/1}"
    found = pod.load(
        rack_tail=f", switches: [{{name: tor, kind: data}}, {{name: mgmt, kind: management}}], cables: [{cable}]"
    )
    assert [c.port for c in found.cables if c.switch == "tor"] == [
        "Ethernet1/1",
        "Ethernet10/1",
        "Ethernet11/1",
        "Ethernet12/1",
    ]


def test_racks_and_the_controller_are_checked(pod):
    pod.write(cluster=None)
    text = pod.pod_yml.read_text()
    for before, after, message in [
        ("number: 1", "number: 256", "rack 'rack1': invalid number 256: use 0 to 255"),
        ("controller: {host: 10.3.1.101}", "controller: {server: s}", "unknown server 's'"),
        ("controller: {host: 10.3.1.101}", "", "the address of the controller is unknown"),
        ("controller: {host: 10.3.1.101}", "controller: {host: c, port: 0}", "invalid port 0: use 1 to 65535"),
        ("  - {name: rack1, number: 1}", "  []", "add at least one rack"),
        ("name: test", "nam: test", "unknown key 'nam'"),
    ]:
        assert before in text
        pod.pod_yml.write_text(text.replace(before, after))
        with pytest.raises(PodError) as caught:
            load(str(pod.pod_yml))
        assert message in caught.value.message
        assert caught.value.line is not None
