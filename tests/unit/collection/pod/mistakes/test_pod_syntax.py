# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in the syntax of pod.yml and machines.csv: the message names the line where they begin."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod import source
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load

TEXT = """\
plugin: openipu.pod.pod
name: pod1
networks:
  bmc: {vlan: 13, subnet: 10.1.0.0/16}
racks:
  - name: rack1
    number: 1
    servers:
      - {name: server1, roles: [controller]}
      - {name: server2, roles: [poplar]}
    pdus:
      - {name: pdu1}
      - {name: pdu2}
users:
  - {id: a}
  - {id: b}
"""
SPACE = "a character that looks like a space (no-break space, U+00A0): replace it with a space"
NO_DASH = "this item of a list has no dash: write '- ' before it"
DEEPER = "line 7 has a larger indentation than this line: write '- ' before the first key of a list item"
OPEN = "a text in quotes is not closed: add the closing quotation mark"
NO_VALUE = "this ',' follows no value: write one, or remove the comma"
# Old and new text, place and message of the mistake.
CASES = [
    ("- {name: server2", "  {name: server2", (10, 9), NO_DASH),
    ("- {name: server2", "{name: server2", (10, 7), NO_DASH),
    ("- {name: pdu1}", "{name: pdu1}", (12, 7), NO_DASH),
    ("  - name: rack1", "  name: rack1", (6, 3), DEEPER),
    ("    number: 1", "     number: 1", (7, 12), "Check the indentation"),
    ("- {name: server2", "-{name: server2", (10, 7), "write a space after '-'"),
    ("- name: rack1", "-name: rack1", (6, 3), "write a space after '-'"),
    ("      - {name: server2", "     \u00a0- {name: server2", (10, 6), SPACE),
    ("    number: 1", "\u00a0\u00a0  number: 1", (7, 1), SPACE),
    ("name: pod1", "name:\u00a0pod1", (2, 6), SPACE),
    ("name: pod1", 'name: "pod1', (2, 7), OPEN),
    ("{name: pdu1}", "{name: 'pdu1}", (12, 16), OPEN),
    ("name: pod1", 'name: "pod1 # ', (2, 7), OPEN),
    ("name: pod1", 'name: "pod1', (2, 7), "this text in quotes ends in line 15"),
    ("{name: pdu1}", "{name: pdu1", (12, 9), "this '{' is not closed: add '}'"),
    ("{id: b}", "{id: b", (16, 5), "this '{' is not closed: add '}'"),
    ("[controller]}", "[controller}", (9, 32), "this '[' is not closed: add ']'"),
    ("{id: b}", "{id: b}}", (16, 12), "this '}' has no '{': remove it"),
    ("racks:", "racks: [", (5, 8), "this '[' is not closed: remove it, because items with '- ' follow"),
    ("racks:", "racks: {", (5, 8), "this '{' is not closed: remove it, because items with '- ' follow"),
    ("users:\n  - {id: a}\n  - {id: b}\n", "users: [\n", (14, 8), "this '[' is not closed: add ']'"),
    ("users:\n  - {id: a}\n  - {id: b}\n", "users: {\n", (14, 8), "this '{' is not closed: add '}'"),
    ("users:\n  - {id: a}\n  - {id: b}\n", "users: [{id: 'a]'},\n", (14, 8), "this '[' is not closed: add ']'"),
    ("racks:", "racks: { # of the POD\n", (5, 8), "this '{' is not closed: remove it, because items with '- ' follow"),
    ("racks:", "racks: {\nrows:", (5, 8), "this '{' is not closed: add '}'"),
    ("racks:", "racks: [\nrows:", (5, 8), "this '[' is not closed: add ']'"),
    ("racks:", "racks: [a,", (5, 8), "this '[' is not closed: add ']'"),
    ("[controller]", "[- controller]", (9, 32), "items with '- ' follow this '[': remove it and its ']', or the"),
    ("[controller]", "[controller,, poplar]", (9, 44), NO_VALUE),
    ("[controller]", "[, controller]", (9, 33), NO_VALUE),
    ("vlan: 13, subnet", "vlan: 13,, subnet", (4, 18), NO_VALUE),
    ("vlan: 13, subnet", "vlan: 13 subnet", (4, 24), "Write a comma between values"),
    ("name: pod1", "name pod1", (2, 1), "Write a key, a colon and a space"),
    ("name: pod1", "name: @pod1", (2, 7), "Quote the value"),
    ("  - {id: a}", "  \u2013 {id: a}", (15, 3), "looks like '-' (en dash, U+2013): replace it with '-'"),
    ("name: pod1", "name\uff1a pod1", (2, 5), "looks like ':' (fullwidth colon, U+FF1A): replace it with ':'"),
    ("vlan: 13, subnet", "vlan: 13\uff0c subnet", (4, 17), "looks like ',' (fullwidth comma, U+FF0C): replace it"),
    ("name: pod1", "<<<<<<< HEAD\nname: pod1\n=======", (2, 1), "this is a conflict marker of Git: resolve the"),
    ("name: pod1", "name: *pod", (2, 7), "found undefined alias"),
    ("name: pod1", "name: '{{ a }}'\n b: 1", (3, 2), "Indent all keys of a mapping equally"),
    ("name: pod1", "name: {% if x %}a{% endif %}", (2, 8), "templates are not rendered here: write the value"),
    ("subnet: 10.1.0.0/16", "subnet: 10.{{ x }}.0.0/16", (4, 30), "templates are not rendered here: write the value"),
]


@pytest.mark.parametrize("parser", [source._PARSER, yaml.SafeLoader], ids=["fastest", "python"])
@pytest.mark.parametrize(("old", "new", "place", "message"), CASES, ids=[f"{each[1]}, {each[3]}" for each in CASES])
def test_the_place_is_the_begin_of_the_mistake(tmp_path, monkeypatch, parser, old, new, place, message):
    monkeypatch.setattr(source, "_PARSER", parser)
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    path = tmp_path / "pod.yml"
    path.write_text(text.replace("{id: a}", '{id: "a"}') if "ends in line" in message else text)
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert caught.value.message.startswith("is not YAML: ")
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_a_colon_without_a_space_before_a_bracket_has_a_remedy(pod):
    """PyYAML's own parser accepts it, libyaml does not."""
    path = pod.write(tail="users: [{id:}]\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert re.search("Write a space and a value after it|has no value", caught.value.message)


def test_a_comment_is_no_cause(tmp_path):
    path = tmp_path / "pod.yml"
    path.write_text("# it's {{ a }} \u00a0- \"comment\n" + TEXT.replace("  - {id: b}", "  {id: b}"))
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert caught.value.message == f"is not YAML: {NO_DASH}"
    assert caught.value.line == 17


def test_a_second_item_without_dash_repeats_the_keys(pod):
    path = pod.write(tail="users:\n  - id: a\n    role: user\n    id: b\n")
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert caught.value.message == (
        "the key 'id' is used twice in one mapping: remove one of them, or write '- ' before it to begin another item "
        "of a list"
    )


# Text, place and message of the mistake. The text above it is valid, although it may look like a mistake.
VALID_ABOVE = [
    ("networks:\n  bmc:\n    about: BMCs: rack 1\n", (3, 16), "quote a value that contains ': '"),
    ("networks:\n  bmc: &bmc\n    about: BMCs: rack 1\n", (3, 16), "quote a value that contains ': '"),
    ("networks:\n  bmc\n    about: BMCs\n", (3, 10), "quote a value that contains ': '"),
    ("name: \u5317\u4eac\uff0c\u4e00\u53f7\na:\n  b: 1\n   c: 2\n", (3, 3), "line 4 has a larger indentation"),
    ('about: "\u673a\u67b6\uff1a\u4e00"\nname: lab: one\n', (2, 10), "quote a value that contains ': '"),
    ("about: \u673a\u67b6\uff1a\u4e00: one\n", (1, 12), "quote a value that contains ': '"),
    ("about: |\n  \u2022 one\nname: lab: one\n", (3, 10), "quote a value that contains ': '"),
    ("about: one\n  \u2022 two\nname: lab: one\n", (3, 10), "quote a value that contains ': '"),
    ('{about: "\u673a\uff0c\u67b6"\uff0c name: a}\n', (1, 14), "looks like ','"),
    ("name\uff1a a\nabout\uff1a b\nusers: []\n", (1, 5), "looks like ':'"),
    ("a: [\n{b: 1}\n{c: 2}\n]\n", (3, 1), "Write a comma between values"),
    ("a: [b,\n  c # end\nd: 1\n", (1, 4), "this '[' is not closed: add ']'"),
    ("a: [b,\n  c\nd: 1\ne: 2\n", (1, 4), "this '[' is not closed: add ']'"),
    ("a: {b: 1\nc: {d: 1}\n", (1, 4), "this '{' is not closed: add '}'"),
    ("a:\n  - {b: 1,\n     c: 1\n     d: 1}\n", (4, 7), "Write a comma between values"),
    ("{a: 1 b: 2}\n", (1, 8), "Write a comma between values"),
    ("a: {\n  b: 1\n  c: 2\n}\n", (3, 4), "Write a comma between values"),
    ("a: '['\nb: \"{\" # {\nc: {d: 1 e: 2}\n", (3, 11), "Write a comma between values"),
    ("a: {\n  b: {c: 1}\n  d: {e: 1}\nf:\n  - g: 1\n", (1, 4), "this '{' is not closed: add '}'"),
    ("a: b [c\nd: [e, {f: 1 g: 2}]\n", (2, 15), "Write a comma between values"),
]


@pytest.mark.parametrize("parser", [source._PARSER, yaml.SafeLoader], ids=["fastest", "python"])
@pytest.mark.parametrize(("text", "place", "message"), VALID_ABOVE, ids=[each[0] for each in VALID_ABOVE])
def test_valid_text_above_is_no_cause(tmp_path, monkeypatch, parser, text, place, message):
    monkeypatch.setattr(source, "_PARSER", parser)
    path = tmp_path / "pod.yml"
    path.write_text(text)
    with pytest.raises(PodError) as caught:
        source.read_yaml(str(path))
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda rows: [rows[0], rows[1], '"' + rows[2], *rows[3:]], 3),
        (lambda rows: [*rows[:-1], '"' + rows[-1]], 5),
        (lambda rows: [rows[0], '"' + rows[1], rows[2], rows[3].replace(",", '",', 1), rows[4]], 2),
        (lambda rows: [rows[0], "", '"' + rows[1], rows[2], '"' + rows[3].replace(",", '",', 1), rows[4]], 3),
    ],
    ids=["first rows", "last row", "closed in a later row", "another quoted value"],
)
def test_an_open_quote_in_the_table_has_its_line(pod, change, line):
    pod.write()
    path = pod.write(rows=change(pod.machines_csv.read_text().splitlines()))
    with pytest.raises(PodError) as caught:
        load(str(path))
    assert caught.value.line == line
    assert caught.value.message.startswith("is not CSV: a value in quotes is not closed in its line: add or remove")
