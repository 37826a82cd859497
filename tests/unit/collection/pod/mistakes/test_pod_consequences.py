# SPDX-License-Identifier: GPL-3.0-or-later
"""Two mistakes of a POD: independent ones are both reported, those that follow from another one are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

POD = """\
plugin: openipu.pod.pod
name: test
controller: {server: s1}
networks: {storage: {subnet: 10.6.0.0/16}}
openstack:
  dns_servers: [10.2.1.101]
  tenants:
    - {project: a, vlan: 21, allocation: a, storage: {vlan: 22, subnet: 10.7.1.0/24}}
    - {project: b, vlan: 23, allocation: b, storage: {vlan: 24, subnet: 10.8.1.0/24}}
kubernetes: {servers: [s1, s2], node_names: {s1: s1.example}}
racks:
  - name: rack1
    number: 1
    servers:
      - {name: s1, roles: [controller, poplar], macs: {p1: 02:09:00:00:00:01}}
    switches: [{name: tor1, kind: data, uplinks: [Ethernet1/1]}, {name: mgmt1, kind: management}]
    cables: [{device: s1, connector: p1, switch: mgmt1, port: Ethernet29, vlans: [13]}]
  - name: rack2
    number: 2
    servers: [{name: s2}]
    switches: [{name: tor2, kind: data}, {name: mgmt2, kind: management}]
clusters:
  - {id: c1, racks: [rack1], topology: mesh}
  - {id: c2, racks: [rack2]}
allocations:
  - {id: a, cluster: c1, machines: [m1.1]}
  - {id: b, cluster: c2, machines: [m2.1]}
teams:
  - {name: t, ipus: 4}
"""


def changed(pod, *changes: tuple[str, str]) -> Path:
    """Write the POD with these texts replaced in pod.yml or machines.csv, and return its path."""
    path = pod.write(racks={1: [1, 2], 2: [1, 2]})
    texts = {path: POD, pod.machines_csv: pod.machines_csv.read_text()}
    for old, new in changes:
        (file,) = (file for file, text in texts.items() if old in text)
        texts[file] = texts[file].replace(old, new, 1)
    for file, text in texts.items():
        file.write_text(text)
    return path


def mistakes(pod, *changes: tuple[str, str]) -> list[str]:
    """Return the messages of the changed POD."""
    with pytest.raises(PodError) as caught:
        load(str(changed(pod, *changes)))
    return [each.message for each in caught.value.mistakes]


def test_the_unchanged_pod_is_valid(pod):
    assert len(load(str(changed(pod))).machines) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("number: 2", "number: 1"), "rack number 1 is used by both rack 'rack1' (line 13) and rack 'rack2'"),
        (("name: rack2", "name: rack1"), "rack 'rack1' is used twice, in line 12 and line 18"),
        (("name: mgmt1", "name: tor1"), "name tor1 is used by both a switch (line 16) and another switch"),
        (("servers: [s1, s2]", "servers: [s0, s2]"), "kubernetes: unknown Poplar server 's0'"),
        (("id: c2", "id: c1"), "cluster 'c1' is used twice, in line 23 and line 24"),
        (("id: b, cluster: c2", "id: a, cluster: c2"), "allocation 'a' is used twice, in line 26 and line 27"),
        (
            ("{id: b, cluster: c2, machines: [m2.1]}", "{id: a, cluster: c1, machines: [m1.1]}"),
            "allocation 'a' is used twice, in line 26 and line 27",
        ),
        (("racks: [rack1],", "racks: [rack1], machines: [m1.1],"), "'racks' and 'machines' exclude each other"),
        (("server: s1", "server: s1, host: 10.3.1.1"), "controller: 'server' and 'host' exclude each other"),
        (("storage: {", "management: {subnet: 10.3.1.0/26}, storage: {"), "subnet 10.3.1.0/26 of network 'management'"),
        (("name: test", "name: !!python/object/apply:os.system [id]"), "'tag:yaml.org,2002:python/object/apply:os.sy"),
        (("name: test", "name: !!python/object:os.x {a: 1}"), "invalid mapping: could not determine a constructor for"),
    ],
)
def test_a_mistake_has_no_consequences(pod, change, message):
    (found,) = mistakes(pod, change)
    assert message in found


def test_a_table_without_machines_is_one_mistake(pod):
    path = changed(pod)
    pod.machines_csv.write_text(pod.machines_csv.read_text().partition("\n")[0])
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert str(caught.value) == f"{pod.machines_csv}: has no machines: add a line for each IPU-Machine"


@pytest.mark.parametrize(
    ("first", "second", "messages"),
    [
        (
            ("m1.2,rack1,2,", "m1.2,rack1,1,"),
            ("02:01:00:00:01:02", "zz"),
            ("unit 1 of rack 'rack1' is used by both", "'zz' (bmc of 'm1.2') is not a MAC"),
        ),
        (("m1.2,", "m/2,"), ("02:01:00:00:01:02", "zz"), ("machine: invalid name 'm/2'", "'zz' (bmc) is not a MAC")),
        (("m1.2,rack1", "m1.2,rack3"), ("02:01:00:00:01:02", "zz"), ("is not a MAC", "unknown rack 'rack3'")),
        (
            ("{name: s1", "{name: s/1"),
            ("02:09:00:00:00:01", "zz"),
            ("server: invalid name 's/1'", "'zz' (p1) is not a MAC"),
        ),
        (
            ("{name: s1", "{name: s/1"),
            ("racks: [rack2]", "racks: [rack3]"),
            ("server: invalid name 's/1'", "unknown rack 'rack3'"),
        ),
        (
            ("02:01:00:00:01:02", "zz"),
            ("ipus: 4", "ipus: 0"),
            ("is not a MAC", "team 't': the quota must be 1 to 16 IPUs, the IPUs of the POD, not 0"),
        ),
        (
            ("m1.2,rack1", "m1.2,rack3"),
            ("ipus: 4", "ipus: 0"),
            ("unknown rack 'rack3'", "team 't': the quota must be at least 1 IPU, not 0"),
        ),
        (
            ("allocation: b,", "allocation: d,"),
            ("vlan: 24", "vlan: 22"),
            ("tenant 'b': unknown allocation 'd'", "VLAN 22 is used by both storage of tenant 'a'"),
        ),
        (
            ("number: 2", "number: 2\n    number: 3"),
            ("ipus: 4", "ipus: 0"),
            ("the key 'number' is used twice in one mapping", "team 't': the quota must be"),
        ),
        (
            ("vlan: 24", "vlan: 22"),
            ("10.8.1.0/24", "10.7.1.0/25"),
            ("VLAN 22 is used by both storage", "storage subnet 10.7.1.0/25 overlaps with 10.7.1.0/24 of tenant 'a'"),
        ),
    ],
)
def test_two_mistakes_are_both_reported(pod, first, second, messages):
    found = mistakes(pod, first, second)
    assert len(found) == 2, found
    for message, part in zip(found, messages, strict=True):
        assert part in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[Ethernet1/1]", "[1]"), "switch 'tor1': unknown port of a DCS-7060CX-32S-F '1'"),
        (("[Ethernet1/1]", "[null]"), "switch 'tor1': 'uplinks' must be a list of single values"),
        (("[Ethernet1/1]", "['']"), "switch 'tor1': invalid uplinks ''"),
        (("[Ethernet1/1]", "[yes]"), "switch 'tor1': 'uplinks' contains a truth value of YAML: quote it"),
        (("vlans: [13]", "vlans: ['77']"), "VLAN 77 belongs to no network"),
        (("vlans: [13]", "vlans: [yes]"), "cable: 'vlans' contains a truth value of YAML: write a number"),
        (("servers: [s1, s2]", "servers: [1, s2]"), "kubernetes: unknown Poplar server '1'"),
        (("[10.2.1.101]", "[5]"), "'5' of dns_servers is not an address"),
        (("topology: mesh", "topology: {}"), "cluster 'c1': 'topology' must be a single value"),
    ],
)
def test_items_of_lists_have_their_type(pod, change, message):
    (found,) = mistakes(pod, change)
    assert found.startswith(message)


def test_numbers_in_quotes_are_numbers(pod):
    found = load(str(changed(pod, ("vlans: [13]", "vlans: ['13', 99]"))))
    assert [each.vlans for each in found.cables if each.port == "Ethernet29"] == [(13, 99)]


def test_an_alias_repeats_no_mistake_and_hides_none(pod):
    tor, aliases = (
        "{name: tor1, kind: data, uplinks: [Ethernet1/1]}",
        "&t {name: tor1, kind: data, uplinks: [[1]]}, *t, *t",
    )
    found = mistakes(pod, (tor, aliases), ("number: 1", "number: &n 1"), ("number: 2", "number: *n"))
    assert [message.partition(":")[0] for message in found] == [
        "switch 'tor1'",
        "name tor1 is used by both a switch (line 16) and another switch",
        "rack number 1 is used by both rack 'rack1' (line 13) and rack 'rack2'",
    ]
