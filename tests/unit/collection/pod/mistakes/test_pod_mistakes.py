# SPDX-License-Identifier: GPL-3.0-or-later
"""All mistakes of pod.yml and machines.csv in one error, without those that follow from another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

NETWORKS = "networks: {bmc: {subnet: 10.1.0.0/16}, gw: {subnet: 10.2.0.0/16}, management: {subnet: 10.3.0.0/16}, %s}"
SWITCHES = ", switches: [{name: tor, kind: data}, {name: mgmt, kind: management}]"


def mistakes(path) -> list[tuple[int | None, str]]:
    """Return line and message of every mistake of a POD."""
    with pytest.raises(PodError) as caught:
        load(str(path))
    return [(each.line, each.message) for each in caught.value.mistakes]


def test_devices_and_machines_are_checked_together(pod):
    pod.write()
    header, first, second, third, fourth = pod.machines_csv.read_text().splitlines()
    rows = [header, first.replace("02:01", "03:01"), second.replace(",2,", ",44,"), third + ",more", fourth]
    path = pod.write(rows=rows, rack_tail=", servers: [{name: a b}, {name: s1, roles: [king]}], pdus: [{nam: p}]")
    found = mistakes(path)
    assert [line for line, _message in found] == [2, 3, 4, 6, 6, 6]
    for (_line, message), part in zip(
        found,
        [
            "not the address of a single",
            "invalid unit 44: use 1 to 32",
            "7 values",
            "PDU",
            "name",
            "value of roles 'king'",
        ],
        strict=False,
    ):
        assert part in message


def test_one_mapping_shows_all_its_mistakes(pod):
    found = mistakes(pod.write(cluster="racks: [rack1], topology: ring, num_ilds: many"))
    assert len(found) == 2
    assert "unknown value of topology 'ring': known are mesh, torus" in found[0][1] + found[1][1]
    assert "num_ilds" in found[0][1] + found[1][1]


def test_objects_that_refer_to_a_mistake_are_not_reported(pod):
    tail = """\
allocations:
  - {id: a, cluster: cl, size: 2}
  - {id: b, cluster: other, size: 2}
partitions:
  - {id: p, allocation: a, size: 4}
  - {id: q, allocation: c, size: 4}
users:
  - {id: u, allocations: [a, b, d]}
"""
    found = mistakes(pod.write(cluster="racks: [rack2]", tail=tail))
    assert [": ".join(message.split(": ")[:2]) for _line, message in found] == [
        "cluster 'cl': unknown rack 'rack2'",
        "allocation 'b': unknown cluster 'other'",
        "partition 'q': unknown allocation 'c'",
        "user 'u': unknown allocation 'd'",
    ]


def test_the_text_has_one_line_for_each_mistake(pod):
    with pytest.raises(PodError) as caught:
        load(str(pod.write(rack_tail=", pdus: [{nam: p}, {name: q q}]")))
    first, *lines = str(caught.value).splitlines()
    assert first == "2 mistakes:"
    assert [line.partition(": ")[0] for line in lines] == [f"{pod.pod_yml}, line 6"] * 2


def test_a_long_list_is_cut(pod):
    with pytest.raises(PodError) as caught:
        load(str(pod.write(rack_tail=f", pdus: [{', '.join(['{nam: p}'] * 60)}]")))
    assert len(caught.value.mistakes) == 60
    assert str(caught.value).splitlines()[-1] == "… and 10 more"


SEVERAL = """\
plugin: openipu.pod.pod
name: test
networks:
  data: {vlan: 5000}
  management: {subnet: 10.2.3.0/24}
controller: {server: s1}
openstack: {tenants: [{project: a, vlan: 21, allocation: a}]}
kubernetes: {servers: [s1]}
racks:
  - name: rack1
    number: two
    servers: [{name: s1, roles: [controller, poplar]}]
    switches:
      - {name: tor, kind: dta}
      - {name: mgmt, kind: management}
    cables:
      - {device: s1, connector: data1, switch: tor, port: Ethernet29/1, vlans: [5000]}
clusters:
  - {id: cl, racks: [rack1], topology: ring}
allocations:
  - {id: a, cluster: cl, machines: [m1.3, m1.4]}
  - {id: b, cluster: other, size: 2}
partitions:
  - {id: p, allocation: a, size: 4}
  - {id: q, allocation: b, size: 4}
teams:
  - {name: t, ipus: 16, project: a}
"""


def test_one_run_shows_independent_mistakes_of_all_parts(pod):
    path = pod.write()
    header, first, *others = pod.machines_csv.read_text().splitlines()
    path.write_text(SEVERAL)
    pod.machines_csv.write_text("\n".join([header, first.replace("02:01:", "02-01:"), *others]) + "\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert [(Path(each.file).name, each.line, each.message.partition(":")[0]) for each in caught.value.mistakes] == [
        ("machines.csv", 2, "'02-01"),
        ("pod.yml", 4, "network 'data'"),
        ("pod.yml", 5, "subnet 10.2.3.0/24 of network 'management' overlaps with 10.2.0.0/16 of network 'gw'"),
        ("pod.yml", 11, "rack 'rack1'"),
        ("pod.yml", 14, "switch 'tor'"),
        ("pod.yml", 19, "cluster 'cl'"),
        ("pod.yml", 22, "allocation 'b'"),
    ]
    vlan, number, kind, topology = (caught.value.mistakes[index].message for index in (1, 3, 4, 5))
    assert vlan.endswith("invalid vlan 5000: use 1 to 4094")
    assert number.endswith("'number' must be a number, not 'two'")
    assert "unknown value of kind " in kind
    assert "unknown value of topology " in topology


def test_a_subnet_that_overlaps_with_several_networks_names_them_all(pod):
    ((_line, message),) = mistakes(pod.write(networks="networks: {data: {subnet: 10.0.0.0/8}}"))
    assert message == (
        "subnet 10.0.0.0/8 of network 'data' overlaps with 10.1.0.0/16 of network 'bmc' and 10.2.0.0/16 of network 'gw'"
        " and 10.3.0.0/16 of network 'management': use separate subnets"
    )


def test_types_are_named_in_plain_words(pod):
    rack_tail = (
        ", servers: [{name: s, managed: perhaps}],"
        " switches: [{name: tor, kind: data}, {name: t, kind: management, uplink_channel: many}],"
        " cables: [{device: s, connector: p1, switch: t, port: Ethernet1, vlans: [13, x]}]"
    )
    networks = "networks: {gw: {vlan: ninety}, data: {vlan: 1.5}, storage: {vlan: [1]}}"
    rows = ["name,unit,bmc_mac,gw_mac,rnic_mac,rack_unit", "m,1,02:00:00:00:00:01,02:00:00:00:00:02,,high"]
    path = pod.write(rack_tail=rack_tail, networks=networks, cluster=None, rows=rows)
    assert [message for _line, message in mistakes(path)] == [
        "machine 'm': 'rnic_mac' is missing: add it",
        "machine 'm': 'rack_unit' must be a number, not 'high'",
        "network 'gw': 'vlan' must be a number, not 'ninety'",
        "network 'data': 'vlan' must be a whole number, not '1.5'",
        "network 'storage': 'vlan' must be a single value",
        "switch 't': 'uplink_channel' must be a number, not 'many'",
        "server 's': 'managed' must be true or false, not 'perhaps'",
        "cable: each value of 'vlans' must be a number, not 'x'",
    ]


ABSURD = [
    ("overlapping subnets", {"networks": NETWORKS % "data: {subnet: 10.3.1.0/24}"}, "10.3.1.0/24 of network 'data' ov"),
    (
        "a shared VLAN",
        {"networks": NETWORKS % "data: {subnet: 10.5.0.0/16, vlan: 12}"},
        "networks 'data' and 'storage' share VLAN 12: use different VLANs",
    ),
    ("an IPv6 subnet", {"networks": NETWORKS % "data: {subnet: 'fd00::/64'}"}, "has IPv4 addresses"),
    ("a wrong type", {"networks": NETWORKS % "data: {vlan: x}"}, "network 'data': 'vlan' must be a number, not 'x'"),
    (
        "a server without cables",
        {"rack_tail": f", servers: [{', '.join(f'{{name: s{n}}}' for n in range(5))}]" + SWITCHES},
        "server 's4' has no cable for p2, data1, because the reference port map has no port for it: set 'cables'",
    ),
    (
        "data on the VLAN of the BMCs",
        {"networks": "networks: {data: {vlan: 13}}"},
        "networks 'bmc', 'gw' and 'data' share VLAN 13: use different VLANs",
    ),
    (
        "data on the VLAN of the management network",
        {"networks": "networks: {data: {vlan: 99}}"},
        "networks 'management' and 'data' share VLAN 99",
    ),
    (
        "a tenant on the VLAN of the management network",
        {
            "cluster": "machines: [m1.1, m1.2]",
            "tail": "allocations: [{id: a, cluster: cl, machines: [m1.1]}]\n"
            "openstack: {tenants: [{project: t, vlan: 99, allocation: a}]}\n",
        },
        "VLAN 99 is used by both network 'management' (line 10) and tenant 't'",
    ),
    (
        "only a data switch",
        {"racks": {1: [1]}, "rack_tail": ", switches: [{name: tor, kind: data, managed: false}]"},
        "machine 'm1.1' has no cable for mgmt, because rack 'rack1' has no management switch: add it to 'switches'",
    ),
    (
        "only a management switch",
        {"racks": {1: [1]}, "rack_tail": ", switches: [{name: mgmt, kind: management}]"},
        "machine 'm1.1' has no cable for rnic, because rack 'rack1' has no data switch: add it to 'switches', or set",
    ),
    (
        "a unit beyond the ports of the switches",
        {"racks": {1: [1, 20]}, "cluster": None, "rack_tail": SWITCHES},
        "machine 'm1.20' has no cable for mgmt, rnic, because the reference port map has no port for it: set 'cables'",
    ),
    (
        "a server with a cable for its iDRAC only",
        {
            "rack_tail": ", servers: [{name: s0, roles: [controller]}, {name: s1}, {name: s2}, {name: s3}, {name: s4}]"
            + SWITCHES
            + ", cables: [{device: s4, connector: idrac, switch: mgmt, port: Ethernet30}]"
        },
        "server 's4' has no cable for p2, data1, because",
    ),
    (
        "more PDUs than ports",
        {"rack_tail": f", pdus: [{', '.join(f'{{name: p{n}}}' for n in range(9))}]" + SWITCHES},
        "PDU 'p8' has no cable for management",
    ),
]


@pytest.mark.parametrize("rack_unit", ["-4", "0", "400"])
def test_a_rack_unit_is_in_the_rack(pod, rack_unit):
    rows = ["name,unit,bmc_mac,gw_mac,rnic_mac,rack_unit"]
    rows.append(f"m,1,02:00:00:00:00:01,02:00:00:00:00:02,02:00:00:00:00:03,{rack_unit}")
    ((line, message),) = mistakes(pod.write(rows=rows))
    assert (line, message) == (2, f"machine 'm': invalid rack_unit {rack_unit}: use 1 to 60")


def test_a_second_pair_of_switches_has_ports_for_units_17_to_32(pod):
    tail = SWITCHES[:-1] + ", {name: tor2, kind: data}, {name: mgmt2, kind: management}]"
    found = pod.load(racks={1: [1, 32]}, cluster=None, rack_tail=tail)
    places = [(each.switch, each.port) for each in found.cables if each.device == "m1.32"]
    assert places == [("tor2", "Ethernet24/1"), ("mgmt2", "Ethernet16")]


def test_a_pod_without_switches_is_valid(pod):
    assert pod.load(rack_tail=", servers: [{name: s}], pdus: [{name: p}]").cables == ()


def test_unmanaged_devices_need_no_cables(pod):
    servers = ", ".join(f"{{name: s{n}, managed: {'true' if n < 4 else 'false'}}}" for n in range(6))
    assert len(pod.load(rack_tail=f", servers: [{servers}]" + SWITCHES).cables) == 8 + 4 * 5 + 1


def test_a_trunk_replaces_a_cable(pod):
    cables = "{device: s4, connector: p1, switch: mgmt, port: Ethernet30, vlans: [13, 99]}"
    servers = "{name: s0}, {name: s1}, {name: s2}, {name: s3}, {name: s4, roles: [controller]}"
    found = pod.load(rack_tail=f", servers: [{servers}]{SWITCHES}, cables: [{cables}]")
    assert [each.connector for each in found.cables if each.device == "s4"] == ["p1"]


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in ABSURD], ids=[case[0] for case in ABSURD])
def test_absurd_pods_are_rejected(pod, content, message):
    found = mistakes(pod.write(**content))
    assert len(found) == 1
    assert message in found[0][1]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("serial", ["A1", "A2", "A1", "A3"], "serial number A1 is used by both machine 'm1.1' (line 2)"),
        ("rack_unit", ["1", "2", "2", "3"], "rack unit U2 of rack 'rack1' is used by both machine 'm1.2' (line 3)"),
    ],
)
def test_serials_and_rack_units_are_unique(pod, column, values, message):
    pod.write()
    header, *lines = pod.machines_csv.read_text().splitlines()
    rows = [f"{header},{column}", *(f"{line},{value}" for line, value in zip(lines, values, strict=True))]
    found = mistakes(pod.write(rows=rows))
    assert [line for line, _message in found] == [4]
    assert found[0][1].startswith(message)


@pytest.mark.parametrize(("delimiter", "label"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_delimiter_is_named(pod, delimiter, label):
    pod.write()
    rows = pod.machines_csv.read_text().replace(",", delimiter).splitlines()
    found = mistakes(pod.write(rows=rows))
    assert found == [(1, f"the columns are separated by {label}: separate them with commas")]


def test_the_line_of_another_encoding_is_named(pod):
    path = pod.write()
    path.write_bytes(path.read_bytes() + "# Gerät\n".encode("latin-1"))
    assert mistakes(path) == [(path.read_bytes().count(b"\n"), "is not UTF-8 text: save it as UTF-8")]


@pytest.mark.parametrize(
    ("tail", "remedy"),
    [
        ("users:\n  - id: a\n     role: user\n", "Check the indentation"),
        ("users:\n  - id: a\n    role: user\n   allocations: []\n", "indent all items equally"),
        ("users:\n\t- id: a\n", "Indent with spaces"),
    ],
)
def test_errors_of_yaml_have_a_remedy(pod, tail, remedy):
    ((_line, message),) = mistakes(pod.write(tail=tail))
    assert remedy in message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("servers: [{name: a}, {name: a}]", "name a is used by both a server (line 6) and another server: use"),
        ("servers: [{name: a}], pdus: [{name: a}]", "name a is used by both a PDU (line 6) and a server: use"),
    ],
)
def test_the_devices_of_a_name_are_named(pod, names, message):
    ((line, found),) = mistakes(pod.write(rack_tail=f", {names}"))
    assert line == 6
    assert found.startswith(message)


def test_mistakes_have_columns(pod):
    tail = "partitions:\n  - id: p\n    allocation: a\n    sise: 4\nusers: [{id: u, role: king}, {id: v w}]\nname: b\n"
    with pytest.raises(PodError) as caught:
        load(str(pod.write(tail=tail)))
    places = [(11, 5), (12, 5), (13, 17), (13, 31), (14, 1)]
    assert [(each.line, each.column) for each in caught.value.mistakes] == places


def test_all_repeated_keys_are_reported(pod):
    found = mistakes(pod.write(tail="name: b\nusers: [{id: u, id: v}]\n"))
    assert [line for line, _message in found] == [9, 10]


def test_a_repeated_key_hides_no_other_mistake(pod):
    path = pod.write(cluster="racks: [rack1], topology: ring", tail="controller: {host: vipu9}\n")
    found = mistakes(path)
    assert [message for _line, message in found] == [
        "cluster 'cl': unknown value of topology 'ring': known are mesh, torus",
        "the key 'controller' is used twice in one mapping: remove one of them",
    ]


def test_nothing_follows_from_a_repeated_list_of_racks(pod):
    ((_line, message),) = mistakes(pod.write(tail="racks: [{name: other, number: 7}]\n"))
    assert message == "the key 'racks' is used twice in one mapping: remove one of them"


def test_an_unknown_column_hides_no_other_mistake(pod):
    rows = [
        "name,rack,unit,bmc_mac,gw_mac,rnic_mac,serail,colour",
        "m1,rack1,1,02:01:00:00:01:01,02:02:00:00:01:01,02:05:00:00:01:01,A1,red",
        "m2,rack1,33,02:01:00:00:01:02,02:02:00:00:01:02,02:05:00:00:01:02,A1,red",
        "m3,rack1,3,02:01:00:00:01:03,02:02:00:00:01:03,02:05:00:00:01:03,A1,red",
    ]
    assert [message.partition(":")[0] for _line, message in mistakes(pod.write(rows=rows))] == [
        "unknown column 'serail'",
        "unknown column 'colour'",
        "machine 'm2'",
        "serial number A1 is used by both machine 'm1' (line 2) and machine 'm2'",
        "serial number A1 is used by both machine 'm1' (line 2) and machine 'm3'",
    ]


def test_a_mistyped_required_column_is_one_mistake(pod):
    rows = [
        "name,rack,unti,bmc_mac,gw_mac,rnic_mac",
        "m1,rack1,1,02:01:00:00:01:01,02:02:00:00:01:01,02:05:00:00:01:01",
    ]
    ((_line, message),) = mistakes(pod.write(rows=rows))
    assert message == "unknown column 'unti': did you mean 'unit'?"
