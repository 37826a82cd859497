# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that cannot be read, and invalid text in them."""

from __future__ import annotations

import json

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from hypothesis import given, settings
from hypothesis import strategies as st

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
    assert any("invalid" in each.message for each in caught.value.mistakes)


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
