# SPDX-License-Identifier: GPL-3.0-or-later
"""Habits of users, such as ranges and short names of ports: the message says what to write."""

from __future__ import annotations

import pytest

from .test_pod_mistakes import SWITCHES, mistakes

CABLE = ", cables: [{device: m1.1, connector: %s, switch: %s, port: %s}]"
SPACE = "a character that looks like a space (no-break space, U+00A0): replace it with a space"


@pytest.mark.parametrize("text", ["m1.2-m1.4", "m1.2..m1.4", "'m1.2 - m1.4'", "m1.2:m1.4"])
def test_a_range_of_machines_is_written_out(pod, text):
    ((line, message),) = mistakes(pod.write(cluster=f"machines: [{text}]"))
    plain = text.strip("'")
    assert (line, message) == (
        8,
        f"cluster 'cl': unknown machine '{plain}': ranges are not expanded: list each name: m1.2, m1.3, m1.4",
    )


@pytest.mark.parametrize("text", ["m08-12", "m08-m12"])
def test_the_end_of_a_range_may_be_a_number(pod, text):
    pod.write(racks={1: range(8, 13)})
    rows = [row.replace("m1.8", "m08").replace("m1.9", "m09") for row in pod.machines_csv.read_text().splitlines()]
    rows = [row.replace("m1.1", "m1") for row in rows]
    ((_line, message),) = mistakes(pod.write(rows=rows, cluster=f"machines: [{text}]"))
    assert message.endswith("ranges are not expanded: list each name: m08, m09, m10, m11, m12")


def test_a_pattern_of_ansible_is_a_range(pod):
    ((_line, message),) = mistakes(pod.write(cluster="machines: ['m[01:12]']"))
    assert message == "cluster 'cl': invalid machines 'm[01:12]': ranges are not expanded: list each name"


@pytest.mark.parametrize(
    ("connector", "switch", "port", "full"),
    [
        ("rnic", "tor", "Et29", "Ethernet29/1"),
        ("rnic", "tor", "et29/2", "Ethernet29/2"),
        ("rnic", "tor", "29", "Ethernet29/1"),
        ("rnic", "tor", "Ethernet29", "Ethernet29/1"),
        ("rnic", "tor", "Ethernet 29", "Ethernet29/1"),
        ("mgmt", "mgmt", "Et29", "Ethernet29"),
        ("mgmt", "mgmt", "eth29", "Ethernet29"),
        ("mgmt", "mgmt", "Ma1", "Management1"),
    ],
)
def test_a_short_name_of_a_port_suggests_the_full_one(pod, connector, switch, port, full):
    found = [each for _line, each in mistakes(pod.write(rack_tail=SWITCHES + CABLE % (connector, switch, port)))]
    assert found[0].endswith(f" '{port}': did you mean '{full}'?") or " " in port
    assert len(found) == 1


@pytest.mark.parametrize("value", ["[{name: m1, unit: 1}]", "{m1: {unit: 1}}"])
def test_machines_belong_into_the_table(pod, value):
    path = pod.write()
    path.write_text(path.read_text().replace("name: test\n", f"name: test\nmachines: {value}\n"))
    ((line, message),) = mistakes(path)
    assert line == 3
    assert message == (
        "pod 'test': 'machines' must be a single value: it is the name of a table. Write the machines into "
        "machines.csv, one per line"
    )


@pytest.mark.parametrize(
    ("rack_tail", "tail", "message"),
    [
        (
            ", machines: [{name: m1}]",
            "",
            "rack 'rack1': unknown key 'machines': write the machines into machines.csv, with the name of the rack in "
            "the column 'rack'",
        ),
        (
            "",
            "servers: [{name: s1}]\n",
            "pod 'test': unknown key 'servers': it is a key of 'kubernetes' or 'racks': move it there",
        ),
        (", servers: [{name:s1}]", "", "server: unknown key 'name:s1': write a space after the colon of 'name'"),
        (", servers: [{name:\u00a0s1}]", "", f"server: unknown key 'name:\u00a0s1': it contains {SPACE}"),
        ("", "users:\n  id: a\n", "pod 'test': 'users' must be a list: write '- ' before each item"),
        ("", "users: {id: a}\n", "pod 'test': 'users' must be a list: write '[' before it and ']' after it"),
        ("", "kubernetes: {servers: s1 s2}\n", "kubernetes: 'servers' must be a list: write [s1, s2]"),
        ("", "kubernetes: [{label: a=b}]\n", "pod 'test': 'kubernetes' must be a mapping: remove '- ' before its keys"),
        ("", "users: [alice]\n", "pod 'test': 'users' must be a list of mappings: write {id: alice}"),
        (
            "",
            "users: [{id: \u201ca\u201d}]\n",
            "user: invalid id '\u201ca\u201d': remove the typographic quotation marks",
        ),
        (
            "",
            "allocations: [{id: a, cluster: cl, size: 16}]\n",
            "allocation 'a' needs 16 machines, but cluster 'cl' has 4: reduce 'size' (IPU-Machines)",
        ),
        (
            ", pdus: [{name: p, address: 10.3.1.140/24}]",
            "",
            "'10.3.1.140/24' (management of 'p') is not an IPv4 address: remove '/24'",
        ),
        (
            ", pdus: [{name: p, address: p.example}]",
            "",
            "'p.example' (management of 'p') is not an IPv4 address: use the form 10.1.0.1",
        ),
        (
            ", switches: [{name: tor, kind: data, uplinks: [Ethernet1/1-4/1]}]",
            "",
            "switch 'tor': unknown port of a DCS-7060CX-32S-F 'Ethernet1/1-4/1': ranges are not expanded: list each",
        ),
        ("", "kubernetes: {label: {{ x }}}\n", "kubernetes: invalid label: templates are not rendered here: write the"),
        ("", "kubernetes: {servers: [{{ x }}]}\n", "kubernetes: invalid servers: templates are not rendered here"),
    ],
)
def test_the_message_names_the_right_form_or_place(pod, rack_tail, tail, message):
    found = [each for _line, each in mistakes(pod.write(rack_tail=rack_tail, tail=tail))]
    assert [each for each in found if each.startswith(message)] == found[:1]


@pytest.mark.parametrize(
    ("rack_tail", "tail", "remedy"),
    [
        (", switches: tor1", "", "its items are mappings, as in 'switches: [{name: tor1, kind: …}]'"),
        (", switches: tor1 mgmt1", "", "its items are mappings, as in 'switches: [{name: …, kind: …}]'"),
        (", switches: 2", "", "its items are mappings, as in 'switches: [{name: …, kind: …}]'"),
        (", switches: {tor1: {kind: data}}", "", "its items are mappings, as in 'switches: [{name: tor1, kind: …}]'"),
        (", pdus: {'p 1': {}}", "", "its items are mappings, as in 'pdus: [{name: …}]'"),
        (
            ", cables: {s1: {port: a}}",
            "",
            "its items are mappings, as in 'cables: [{device: s1, connector: …, switch: …, port: …}]'",
        ),
        ("", "users:\n  alice:\n    role: user\n", "its items are mappings, as in 'users: [{id: alice}]'"),
        ("", "users: {}\n", "its items are mappings, as in 'users: [{id: …}]'"),
        ("", "kubernetes: {servers: {s1: 1, s2: }}\n", "write [s1, s2]"),
        ("", "kubernetes: {servers: 5}\n", "write [5]"),
        ("", "kubernetes: {servers: {}}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: a b c d e f}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: {'{': 1}}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: true}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: {~: a}}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: {no: a}}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: 'a: b'}\n", "write [VALUE, VALUE]"),
        ("", "kubernetes: {servers: a:b}\n", "write [a:b]"),
        ("", "deploy: {machines: 5}\n", "write [VALUE, VALUE]"),
        ("", "deploy: {machines: common virm_agent}\n", "write [common, virm_agent]"),
        ("", "deploy: {machines: {common: , pod: }}\n", "write [VALUE, VALUE]"),
    ],
)
def test_the_form_of_a_list_is_shown(pod, rack_tail, tail, remedy):
    found = [each for _line, each in mistakes(pod.write(rack_tail=rack_tail, tail=tail))]
    assert [each for each in found if each.endswith(f"must be a list: {remedy}")] == found[:1]


def test_the_form_of_racks_is_shown(pod):
    path = pod.write()
    path.write_text(path.read_text().replace("racks:\n  - {name: rack1, ", "racks:\n  rack1: {"))
    assert mistakes(path) == [
        (6, "pod 'test': 'racks' must be a list: its items are mappings, as in 'racks: [{name: rack1, number: …}]'")
    ]


def test_the_form_of_several_controllers_is_shown(pod):
    ((_line, message),) = mistakes(
        pod.write(drop="controller", tail="controller: {host: {c1: 10.3.1.1, c2: 10.3.1.2}}\n")
    )
    assert message == "controller: 'host' must be a single value or a list: write [c1, c2]"


@pytest.mark.parametrize("value", ["[a, b]", "[13]", "[]"])
def test_a_list_in_the_place_of_a_mapping_has_no_remedy(pod, value):
    found = [each for _line, each in mistakes(pod.write(tail=f"kubernetes: {value}\n"))]
    assert [each for each in found if each.endswith("'kubernetes' must be a mapping")] == found[:1]


@pytest.mark.parametrize("port", ["Et9-Et10", "Et29-32", "et29/1-et32/1", "Ethernet1/1-Ethernet40/1"])
def test_a_range_of_short_names_of_ports_is_a_range(pod, port):
    tail = f", switches: [{{name: tor, kind: data, uplinks: [{port}]}}]"
    found = [each for _line, each in mistakes(pod.write(rack_tail=tail))]
    assert found[0].endswith(f"'{port}': ranges are not expanded: list each name")


@pytest.mark.parametrize(
    ("text", "is_range"), [("m1.1-m1.99", True), ("m1.1-99", True), ("m1.1-tor", False), ("m1.1-x99", False)]
)
def test_a_range_with_an_unknown_end_is_a_range(pod, text, is_range):
    ((_line, message),) = mistakes(pod.write(cluster=f"machines: [{text}]"))
    assert message.endswith(f"'{text}': ranges are not expanded: list each name") == is_range


def test_a_comma_at_the_end_of_each_line_is_a_column_without_a_name(pod):
    pod.write()
    rows = [row + "," for row in pod.machines_csv.read_text().splitlines()]
    ((line, message),) = mistakes(pod.write(rows=rows))
    assert line == 1
    assert message == "the header has a column without a name: name it, or remove the last comma of each line"


def test_a_table_with_another_name_is_the_option_machines(pod):
    path = pod.write()
    path.write_text(path.read_text().replace("name: test\n", "name: test\nmachines: 16\n"))
    ((_line, message),) = mistakes(path)
    assert message == "the file does not exist: create it, or set another path (option 'machines' in pod.yml)"
