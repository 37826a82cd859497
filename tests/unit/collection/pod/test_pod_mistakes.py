# SPDX-License-Identifier: GPL-3.0-or-later
"""All mistakes of pod.yml and machines.csv in one error, without those that follow from another one."""

from __future__ import annotations

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
        ["not the address of a single", "unit must be", "7 values", "PDU", "name", "value of roles"],
        strict=False,
    ):
        assert part in message


def test_one_mapping_shows_all_its_mistakes(pod):
    found = mistakes(pod.write(cluster="racks: [rack1], topology: ring, num_ilds: many"))
    assert len(found) == 2
    assert "value of topology must be one of: mesh, torus" in found[0][1] + found[1][1]
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
    assert [message.partition(":")[0] for _line, message in found] == [
        "unknown rack 'rack2'",
        "unknown cluster 'other'",
        "unknown allocation 'c'",
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


ABSURD = [
    ("overlapping subnets", {"networks": NETWORKS % "data: {subnet: 10.3.1.0/24}"}, "10.3.1.0/24 of network 'data' ov"),
    (
        "a shared VLAN",
        {"networks": NETWORKS % "data: {subnet: 10.5.0.0/16, vlan: 12}"},
        "networks 'data' and 'storage' share VLAN 12: use different VLANs",
    ),
    ("an IPv6 subnet", {"networks": NETWORKS % "data: {subnet: 'fd00::/64'}"}, "has IPv4 addresses"),
    ("a wrong type", {"networks": NETWORKS % "data: {vlan: x}"}, "network 'data': argument 'vlan' is"),
    (
        "a server without cables",
        {"rack_tail": f", servers: [{', '.join(f'{{name: s{n}}}' for n in range(5))}]" + SWITCHES},
        "server 's4' has no cable",
    ),
]


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
        ("users:\n  - id: a\n    role: user\n   allocations: []\n", "Indent all"),
        ("users:\n\t- id: a\n", "Indent with spaces"),
    ],
)
def test_errors_of_yaml_have_a_remedy(pod, tail, remedy):
    ((_line, message),) = mistakes(pod.write(tail=tail))
    assert remedy in message


def test_a_small_subnet_is_one_mistake(pod):
    found = mistakes(pod.write(networks=NETWORKS % "data: {subnet: 10.5.0.0/29}", racks={1: range(1, 17)}))
    assert [line for line, _message in found] == [8]
    assert found[0][1].startswith("subnet 10.5.0.0/29 of network 'data' is too small: it has no address number 7 for ")


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
    assert [(each.line, each.column) for each in caught.value.mistakes] == [(14, 1)]
    with pytest.raises(PodError) as caught:
        load(str(pod.write(tail=tail.removesuffix("name: b\n"))))
    assert [(each.line, each.column) for each in caught.value.mistakes] == [(12, 5), (13, 17), (13, 31)]


def test_all_repeated_keys_are_reported(pod):
    found = mistakes(pod.write(tail="name: b\nusers: [{id: u, id: v}]\n"))
    assert [line for line, _message in found] == [9, 10]
