# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of invalid input: each error has file, line, cause and remedy."""

from __future__ import annotations

import json

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from hypothesis import given, settings
from hypothesis import strategies as st

HEADER = "name,rack,unit,bmc_mac,gw_mac,rnic_mac,gw_address"


def row(unit, name=None, rack="rack1", mac=None, address=""):
    macs = ",".join(f"02:{network}:00:00:01:{unit:02x}" for network in ("01", "02"))
    return f"{name or f'm{unit}'},{rack},{unit},{macs},{mac or f'02:05:00:00:01:{unit:02x}'},{address}"


ROWS = [
    (
        "the MAC of another machine",
        [HEADER, row(1), row(2, mac="02:05:00:00:01:01")],
        3,
        "MAC 02:05:00:00:01:01 is used by both rnic of 'm1' (line 2) and rnic of 'm2': use different values",
    ),
    (
        "the same MAC written otherwise",
        [HEADER, row(1), row(2, mac="0205.0000.0101")],
        3,
        "is used by both rnic of 'm1'",
    ),
    ("the same name", [HEADER, row(1), row(2, name="m1")], 3, "name m1 is used by both"),
    ("the same unit", [HEADER, row(1), row(1, name="x", mac="02:09:00:00:00:01")], 3, "unit 1 of rack 'rack1'"),
    (
        "the same address",
        [HEADER, row(1), row(2, address="10.2.1.1")],
        3,
        "address 10.2.1.1 is used by both gw of 'm1'",
    ),
    (
        "an address of another network",
        [HEADER, row(1, address="10.5.1.1")],
        2,
        "address 10.5.1.1 (gw of 'm1') is outside subnet 10.2.0.0/16 of network 'gw'",
    ),
    ("the subnet's own address", [HEADER, row(1, address="10.2.0.0")], 2, "is outside subnet"),
    ("no address", [HEADER, row(1, address="10.2.1")], 2, "'10.2.1' (gw of 'm1') is not an IPv4 address"),
    ("an IPv6 address", [HEADER, row(1, address="::1")], 2, "is not an IPv4 address"),
    ("no MAC", [HEADER, row(1, mac="02:05:00:00:01")], 2, "'02:05:00:00:01' (rnic of 'm1') is not a MAC"),
    ("a multicast MAC", [HEADER, row(1, mac="03:05:00:00:01:01")], 2, "is not the address of a single device"),
    ("a unit beyond the rack", [HEADER, row(33)], 2, "machine 'm33': the unit must be 1 (the lowest) to 32, not 33"),
    ("a unit that is not a number", [HEADER, row(1).replace(",1,", ",one,")], 2, "argument 'unit'"),
    ("an unknown rack", [HEADER, row(1, rack="rak1")], 2, "unknown rack 'rak1': did you mean 'rack1'?"),
    ("a value too many", [HEADER, row(1) + ",9"], 2, "the line has 8 values and the header 7"),
    ("an empty required value", [HEADER, row(1, name=" ").replace("m1", " ")], 2, "missing required arguments: name"),
    ("a name with a slash", [HEADER, row(1, name="../m")], 2, "machine: invalid name '../m': use 1 to 63 letters"),
    (
        "a template as the serial",
        [HEADER + ",serial", row(1) + ",{{ 7 * 7 }}"],
        2,
        "machine 'm1': invalid serial '{{ 7 * 7 }}': use 1 to 128 letters",
    ),
    ("a template as the agent", [HEADER + ",agent", row(1) + ",{{ x }}"], 2, "machine 'm1': invalid agent '{{ x }}'"),
    ("a line break in the serial", [HEADER + ",serial", row(1) + ',"a\nb"'], 3, "invalid serial 'a\\nb'"),
    (
        "a long serial",
        [HEADER + ",serial", row(1) + "," + "x" * 10_000],
        2,
        "invalid serial '%s…': use 1 to 128 letters" % ("x" * 40),
    ),
    (
        "an unknown column",
        [HEADER.replace("bmc_mac", "bmc-mac"), row(1)],
        1,
        "unknown column 'bmc-mac': did you mean 'bmc_mac'?",
    ),
    ("a missing column", ["name,unit,bmc_mac,gw_mac", "m,1,a,b"], 1, "the header has no column 'rnic_mac': add it"),
    ("a column twice", [HEADER + ",unit", row(1) + ",1"], 1, "the column 'unit' is used twice"),
    ("an open quote", [HEADER, '"m1,rack1'], 2, "is not CSV"),
    ("a comment and an empty line before", ["# racks", "", HEADER, row(1), "", row(1, name="x")], 6, "unit 1 of rack"),
]


@pytest.mark.parametrize(("rows", "line", "message"), [case[1:] for case in ROWS], ids=[case[0] for case in ROWS])
def test_error_in_machines_csv_has_its_line(pod, rows, line, message):
    path = pod.write(rows=rows)
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(pod.machines_csv), line)
    assert str(caught.value).startswith(f"{pod.machines_csv}, line {line}: ")


ALLOCATIONS = "allocations:\n  - {id: a, cluster: cl, size: 2}\n"

TAILS = [
    (
        "a misspelt key",
        "partitons: []\n",
        9,
        "unknown key 'partitons': did you mean 'partitions'?",
    ),
    ("a key twice", "name: again\n", 9, "the key 'name' is used twice in one mapping"),
    (
        "an allocation in an unknown cluster",
        "allocations:\n  - {id: a, cluster: c1, size: 1}\n",
        10,
        "unknown cluster 'c1': known are cl",
    ),
    (
        "an allocation that is too large",
        "allocations:\n  - {id: a, cluster: cl, size: 5}\n",
        10,
        "needs 5 machines, but cluster 'cl' has 4",
    ),
    (
        "allocations that are too large together",
        ALLOCATIONS + "  - {id: b, cluster: cl, size: 3}\n",
        11,
        "needs 3 machines, but cluster 'cl' has 4 and other allocations leave 2",
    ),
    (
        "an empty allocation",
        "allocations:\n  - {id: a, cluster: cl, size: 0}\n",
        10,
        "allocation 'a' has no machines: set at least one",
    ),
    (
        "size and machines",
        "allocations:\n  - {id: a, cluster: cl, size: 1, machines: [m1.1]}\n",
        10,
        "mutually exclusive",
    ),
    ("neither size nor machines", "allocations:\n  - {id: a, cluster: cl}\n", 10, "one of the following is required"),
    (
        "machines that are not consecutive",
        "allocations:\n  - id: a\n    cluster: cl\n    machines:\n    - m1.1\n    - m1.3\n",
        14,
        "'m1.3' does not follow 'm1.1' in cluster 'cl'",
    ),
    (
        "a machine in two allocations",
        "allocations:\n  - {id: a, cluster: cl, machines: [m1.1]}\n  - {id: b, cluster: cl, machines: [m1.1]}\n",
        11,
        "machine m1.1 is used by both allocation 'a' (line 10) and allocation 'b'",
    ),
    (
        "the same id",
        ALLOCATIONS + "  - {id: a, cluster: cl, size: 1}\n",
        11,
        "allocation 'a' is used twice, in line 10 and line 11: use different names",
    ),
    (
        "a partition of the same id",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 1}\n  - {id: p, allocation: a, size: 2}\n",
        13,
        "partition 'p' is used twice, in line 12 and line 13: use different names",
    ),
    (
        "a misspelt required key",
        ALLOCATIONS + "partitions:\n  - {id: p, allocatoin: a}\n",
        12,
        "partition 'p': unknown key 'allocatoin': did you mean 'allocation'? (missing: size)",
    ),
    (
        "an unknown role for hosts",
        "deploy:\n  controllers: [vipu_sever]\n",
        10,
        "Got no match for: vipu_sever",
    ),
    ("a group without roles", "deploy:\n  switches: [common]\n", 10, "unknown key 'switches'"),
    (
        "a size that is not a power of two",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 6}\n",
        12,
        "the size must be a power of two (1, 2, 4, 8, …), not 6",
    ),
    (
        "a negative size",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: -4}\n",
        12,
        "the size must be a power of two",
    ),
    (
        "a partition larger than its allocation",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 16}\n",
        12,
        "needs 16 IPUs, but allocation 'a' has 8",
    ),
    (
        "partitions that are too large together",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 8}\n  - {id: q, allocation: a, size: 1}\n",
        13,
        "other partitions leave 0",
    ),
    (
        "a partition in an unknown allocation",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: aa, size: 1}\n",
        12,
        "unknown allocation 'aa': did you mean 'a'?",
    ),
    (
        "an unknown option of a partition",
        ALLOCATIONS + "partitions:\n  - id: p\n    allocation: a\n    size: 1\n    reconfigurabel: true\n",
        15,
        "partition 'p': unknown key 'reconfigurabel': did you mean 'reconfigurable'?",
    ),
    (
        "a wrong type",
        ALLOCATIONS + "partitions:\n  - id: p\n    allocation: a\n    size: many\n",
        14,
        "partition 'p': argument 'size'",
    ),
    (
        "an unknown routing",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 1, routing: x}\n",
        12,
        "value of routing must be one of",
    ),
    (
        "GCDs that do not divide",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 4, num_gcds: 3}\n",
        12,
        "4 IPUs cannot be divided evenly by num_gcds 3",
    ),
    (
        "another number of IPUs",
        ALLOCATIONS + "partitions:\n  - {id: p, allocation: a, size: 4, ipus: [{topology_id: 0}]}\n",
        12,
        "lists 1 IPUs but has size 4",
    ),
    (
        "a user of an unknown allocation",
        ALLOCATIONS + "users:\n  - {id: u, allocations: [b]}\n",
        12,
        "unknown allocation 'b'",
    ),
    ("text instead of a list", "allocations: a\n", 9, "'allocations' must be a list"),
    ("an item that is not a mapping", "allocations: [a]\n", 9, "'allocations' must be a list of mappings"),
    ("invalid YAML", "allocations: [\n", 10, "is not YAML"),
    ("an unknown tag", "users: !vault x\n", 9, "is not YAML"),
]


@pytest.mark.parametrize(("tail", "line", "message"), [case[1:] for case in TAILS], ids=[case[0] for case in TAILS])
def test_error_in_pod_yml_has_its_line(pod, tail, line, message):
    path = pod.write(tail=tail)
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(path), line)


INJECTED = "{{ lookup('pipe', 'id') }}"
# Every text of pod.yml, by the change that puts it there. Other tests cover machines.csv.
TEXTS = {
    "name": ("name: test", "name: %s"),
    "machines": ("name: test", "name: test\nmachines: %s"),
    "host": ("{host: 10.3.1.101}", "{host: %s}"),
    "server": ("{host: 10.3.1.101}", "{server: %s}"),
    "rack": ("name: rack1", "name: %s"),
    "subnet": ("{subnet: 10.2.0.0/16}", "{subnet: %s}"),
    "switch": ("number: 1", "number: 1, switches: [{name: %s, kind: data}]"),
    "model of a switch": ("number: 1", "number: 1, switches: [{name: s, kind: data, model: %s}]"),
    "address of a switch": ("number: 1", "number: 1, switches: [{name: s, kind: data, address: %s}]"),
    "mac of a switch": ("number: 1", "number: 1, switches: [{name: s, kind: data, mac: %s}]"),
    "uplinks": ("number: 1", "number: 1, switches: [{name: s, kind: data, model: x, uplinks: [Ethernet1, %s]}]"),
    "model of a PDU": ("number: 1", "number: 1, pdus: [{name: p, model: %s}]"),
    "server of a rack": ("number: 1", "number: 1, servers: [{name: %s}]"),
    "address of a server": ("number: 1", "number: 1, servers: [{name: s, addresses: {p1: %s}}]"),
    "port": (
        "number: 1",
        "number: 1, switches: [{name: s, kind: data, model: x}],"
        " cables: [{device: m1.1, connector: rnic, switch: s, port: %s}]",
    ),
    "cluster": ("id: cl", "id: %s"),
    "racks of a cluster": ("racks: [rack1]}", "racks: [%s]}"),
    "user": ("", "users: [{id: %s}]"),
    "project": ("", "openstack: {tenants: [{project: %s}]}"),
    "physical network": ("", "openstack: {physical_networks: {data: %s}}"),
    "external network": ("", "openstack: {external_network: %s}"),
    "DNS domain": ("", "openstack: {dns_domain: %s}"),
    "NFS server": ("", "openstack: {nfs_servers: [%s]}"),
}


INVALID = [INJECTED, "{% x %}", "a\nb", "$(id)", "`id`", "a;b", "a'b", 'a"b', "--help", "a" * 300]


@pytest.mark.parametrize("text", INVALID)
@pytest.mark.parametrize("place", TEXTS)
def test_no_text_can_be_more_than_a_name(pod, place, text):
    path = pod.write()
    before, after = TEXTS[place]
    content = path.read_text()
    changed = content.replace(before, after % json.dumps(text), 1) if before else content + after % json.dumps(text)
    assert changed != content
    path.write_text(changed)
    with pytest.raises(PodError, match="line ") as caught:
        load(str(path))
    assert "invalid" in caught.value.message


NETWORKS = [
    ("networks: {gww: {vlan: 1}}", "unknown key 'gww': did you mean 'gw'?"),
    ("networks: {gw: {vlan: 4095}}", "invalid VLAN 4095 of network 'gw': use 1 to 4094"),
    ("networks: {gw: {subnet: 10.2.0.0}}", "use the form 10.1.0.0/16"),
    ("networks: {gw: {subnet: 10.2.0.0/33}}", "use the form 10.1.0.0/16"),
    ("networks: {gw: {subnet: 10.2.1.0/16}}", "has host bits set: did you mean 10.2.0.0/16?"),
    ("networks: {gw: {subnet: 10.2.0.0/30}}", "has no address number"),
    ("networks: {gw: {subnet: 10.1.0.0/16}}", "is used by both"),
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
    ("one twice", {1: range(1, 5)}, "machines: [m1.1, m1.1]", "machine m1.1 is used by both"),
    ("over two racks", {1: [1], 2: [1]}, "racks: [rack1, rack2]", "IPU-Links do not leave a rack: set num_ilds"),
    (
        "an uneven domain",
        {1: range(1, 5)},
        "racks: [rack1], num_ilds: 3",
        "4 machines of cluster 'cl' cannot be divided evenly into 3",
    ),
    ("no domain", {1: range(1, 5)}, "racks: [rack1], num_ilds: 0", "cannot be divided evenly"),
    ("no such machine", {1: [1]}, "machines: [m1.2]", "unknown machine 'm1.2': did you mean 'm1.1'?"),
    (
        "an unknown topology",
        {1: [1]},
        "racks: [rack1], topology: ring",
        "value of topology must be one of: mesh, torus",
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
]


@pytest.mark.parametrize(("cable", "message"), [case[1:] for case in CABLES], ids=[case[0] for case in CABLES])
def test_cables_are_checked(pod, cable, message):
    tail = f", switches: [{{name: tor, kind: data}}], cables: [{cable}]"
    with pytest.raises(PodError) as caught:
        pod.load(rack_tail=tail)
    assert message in caught.value.message
    assert caught.value.line == 6


def test_a_cable_may_move_to_a_free_port(pod):
    cable = "{device: m1.1, connector: rnic, switch: tor, port: Ethernet1/1}"
    found = pod.load(rack_tail=f", switches: [{{name: tor, kind: data}}], cables: [{cable}]")
    assert [c.port for c in found.cables] == ["Ethernet1/1", "Ethernet10/1", "Ethernet11/1", "Ethernet12/1"]


def test_a_small_subnet_holds_one_rack(pod):
    networks = "networks: {gw: {subnet: 10.2.1.0/24}}"
    with pytest.raises(PodError, match=r"address 10\.2\.1\.1 is used by both"):
        pod.load(racks={1: [1], 2: [1]}, cluster=None, networks=networks)


def test_racks_and_the_controller_are_checked(pod):
    pod.write(cluster=None)
    text = pod.pod_yml.read_text()
    for before, after, message in [
        ("number: 1", "number: 256", "the logical rack number must be 0 to 255"),
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


def test_unreadable_files_are_named(pod, tmp_path):
    with pytest.raises(PodError, match=r"nowhere\.yml: the file does not exist: create it, or set another path"):
        load(str(tmp_path / "nowhere.yml"))
    path = pod.write()
    pod.machines_csv.unlink()
    with pytest.raises(PodError, match=r"machines\.csv: the file does not exist"):
        load(str(path))
    pod.machines_csv.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PodError, match="is not UTF-8 text"):
        load(str(path))
    pod.machines_csv.write_text("")
    with pytest.raises(PodError, match="is empty: start it with the header line"):
        load(str(path))
    path.write_text("- a\n")
    with pytest.raises(PodError, match="line 1: is not a mapping: start the file with"):
        load(str(path))
    path.write_text("")
    with pytest.raises(PodError, match="is not a mapping: start the file with"):
        load(str(path))


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["name", "racks", "number", "id", "size", "cluster", "subnet", "gw", "vlan", "x"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(
        ["networks", "racks", "clusters", "allocations", "partitions", "users", "controller", "name", "machines"]
    ),
)
def test_any_value_is_accepted_or_rejected(tmp_path_factory, value, key):
    folder = tmp_path_factory.mktemp("any")
    document = {
        "name": "p",
        "controller": {"host": "c"},
        "racks": [{"name": "r", "number": 1}],
        "clusters": [{"id": "cl", "racks": ["r"]}],
        "allocations": [{"id": "a", "cluster": "cl", "size": 1}],
    }
    document[key] = value
    (folder / "pod.yml").write_text(json.dumps(document))
    (folder / "machines.csv").write_text(
        "name,unit,bmc_mac,gw_mac,rnic_mac\nm,1,02:00:00:00:00:01,02:00:00:00:00:02,02:00:00:00:00:03\n"
    )
    try:
        load(str(folder / "pod.yml"))
    except PodError as error:
        assert error.message


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_rejected(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("text")
    (folder / "pod.yml").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(PodError):
        load(str(folder / "pod.yml"))
    (folder / "pod.yml").write_text("name: p\ncontroller: {host: c}\nracks: [{name: r, number: 1}]\n")
    (folder / "machines.csv").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(PodError):
        load(str(folder / "pod.yml"))
