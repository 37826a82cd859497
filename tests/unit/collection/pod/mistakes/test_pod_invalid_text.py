# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that cannot be read, and invalid text in them."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod import source
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load
from ansible_collections.openipu.pod.plugins.module_utils.pod.mistakes import Mistakes
from ansible_collections.openipu.pod.plugins.module_utils.pod.source import check_syntax_and_size, read_yaml
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


NESTED = {
    "lists": ("[x]", "[%s]", "*v{n}"),
    "merged mappings": ("{x: 1}", "{{<<: [%s]}}", "*v{n}"),
    "mappings": ("{x: 1}", "{{%s}}", "k{i}: *v{n}"),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("use", ["", "name: *v6\n", "? *v6\n: 1\n", "racks: *v6\n"])
def test_nested_aliases_that_expand_to_a_huge_file_are_rejected(pod, kind, use):
    first, form, item = NESTED[kind]
    lines = [f"v0: &v0 {first}"]
    for number in range(6):
        items = ", ".join(item.format(n=number, i=each) for each in range(9))
        lines.append(f"v{number + 1}: &v{number + 1} " + form.format() % items)
    path = pod.write()
    path.write_text("\n".join(lines) + f"\n{use}{path.read_text()}")
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert caught.value.line in (6, 7)
    message = "holds more than 500000 values and keys, those of aliases included: remove nested aliases"
    assert caught.value.message == message


def test_a_file_of_the_maximum_size_is_read(pod, monkeypatch):
    path = pod.write()
    path.write_text("a: &a [1, 2]\nb: {c: *a}\n")  # 11 nodes
    monkeypatch.setattr(source, "_MAX_NODES", 11)
    assert read_yaml(str(path)) == {"a": [1, 2], "b": {"c": [1, 2]}}
    monkeypatch.setattr(source, "_MAX_NODES", 10)
    with pytest.raises(PodError, match="line 1: holds more than 10 values and keys"):
        read_yaml(str(path))


def test_syntax_and_size_are_checked_without_converting_values(pod, monkeypatch):
    monkeypatch.setattr(source._Tree, "value", None)
    path = pod.write()
    check_syntax_and_size(str(path))
    monkeypatch.setattr(source, "_MAX_NODES", 10)
    with pytest.raises(PodError, match="holds more than 10 values and keys"):
        check_syntax_and_size(str(path))
    path.write_text("a: [1\n")
    with pytest.raises(PodError, match="is not YAML"):
        check_syntax_and_size(str(path))


@pytest.mark.parametrize("parser", [source._PARSER, yaml.SafeLoader])
@pytest.mark.parametrize("character", ["\0", "\a", "\x7f", "\x80", "\ufffe"])
def test_a_character_that_yaml_does_not_allow_has_its_place(pod, monkeypatch, character, parser):
    monkeypatch.setattr(source, "_PARSER", parser)
    path = pod.write()
    text = "# Zürich\n" * 300 + path.read_text() + f"# Zürich {character}\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PodError) as caught:
        load(str(path))
    code = f"U+{ord(character):04X}"
    place = (text.count("\n"), 10)
    assert (caught.value.line, caught.value.column) == place
    message = f"the character {code} is not allowed in YAML: remove it, or save the file as UTF-8 text"
    assert caught.value.message == message


@pytest.mark.parametrize("value", ["2026-13-45", "!vault text", "!!bool maybe", "!!timestamp x", "!!int +"])
@pytest.mark.parametrize("form", ["%s", "[a, %s]"])
def test_an_invalid_value_hides_no_other_mistake(pod, value, form):
    path = pod.write(rack_tail=", pdus: [{nam: p}]", tail=f"name: {form % value}\n")
    path.write_text(path.read_text().replace("name: test\n", "", 1))
    with pytest.raises(PodError) as caught:
        load(str(path))
    pdu, invalid = caught.value.mistakes
    assert (pdu.line, pdu.message.partition(":")[0]) == (5, "PDU")
    assert (invalid.line, invalid.column) == (8, 7 if form == "%s" else 11)
    assert invalid.message.startswith(f"invalid value '{value.rpartition(' ')[2]}': ")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("!foo {a: 1}", "mapping"),
        ("!foo [a]", "list"),
        ("!foo {a: 2026-13-45}", "mapping"),
        ("!!str [a]", "list"),
        ("!!set {a}", "mapping"),
        ("{<<: !foo {a: 1}}", "mapping"),
        ("{<<: [!foo {a: 1}]}", "mapping"),
    ],
)
def test_a_tag_of_a_mapping_or_list_is_rejected(pod, value, kind):
    path = pod.write()
    path.write_text(path.read_text() + f"\nzone: {value}\n")
    mistakes = Mistakes()
    read_yaml(str(path), mistakes)
    with pytest.raises(PodError) as caught:
        mistakes.check()
    tagged = caught.value.mistakes[0]
    tag = next(word for word in re.findall(r"!+\w+", value)).replace("!!", "tag:yaml.org,2002:")
    assert tagged.message == f"invalid {kind}: could not determine a constructor for the tag '{tag}'. Remove the tag"
    assert tagged.line == path.read_text().count("\n")
    assert len(caught.value.mistakes) == 1 + ("2026-13-45" in value)


def test_the_tag_of_an_aliased_list_is_one_mistake(pod):
    path = pod.write(tail="users: &users !foo []\nallocations: *users\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert len(caught.value.mistakes) == 1


def test_tags_of_the_own_type_are_accepted(pod):
    path = pod.write(tail="users: !!seq []\n")
    expected = load(str(pod.write()))
    path.write_text("!!map\n" + path.read_text())
    assert load(str(path)).name == expected.name


def test_the_tag_of_the_whole_file_is_rejected(pod):
    path = pod.write()
    path.write_text("!foo\n" + path.read_text())
    with pytest.raises(PodError, match=r"line 1: invalid mapping: .* '!foo'. Remove the tag"):
        load(str(path))


def test_nothing_follows_from_an_invalid_value(pod):
    path = pod.write()
    path.write_text(path.read_text().replace("number: 1}", "number: 2026-13-45}"))
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert [each.message for each in caught.value.mistakes] == ["invalid value '2026-13-45': month must be in 1..12"]


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
