# SPDX-License-Identifier: GPL-3.0-or-later
"""Merge of settings into the INI files of a site."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.openipu.pod.plugins.filter.ini_merged import ini_merged
from ansible_collections.openipu.pod.plugins.plugin_utils.ini_text import merge

SITE = """\
# Networks of the site.
[ml2]
path_mtu = 8950
extension_drivers: qos,
    port_security
{% if enable_extra | bool %}
mechanism_drivers = openvswitch
{% endif %}

[ml2_type_vlan]
network_vlan_ranges = physnet1:100:199
"""


def merged(text: str, inherited: tuple[str, ...] = (), **setting: Any) -> str:
    """Merge one setting of the option `name` in the section `a`."""
    return merge(text, [{"section": "a", "option": "name", **setting}], inherited)


def test_other_lines_of_the_site_are_kept() -> None:
    settings = [
        {"section": "ml2", "option": "extension_drivers", "items": ["port_security", "dns"]},
        {"section": "ml2", "option": "path_mtu", "default": 1500},
        {"section": "ml2", "option": "physical_network_mtus", "pairs": {"physnet1g": 1500}},
        {"section": "ml2_type_vlan", "option": "network_vlan_ranges", "items": ["physnet1g:13:13"]},
        {"section": "securitygroup", "option": "firewall_driver", "value": "openvswitch"},
    ]
    expected = """\
# Networks of the site.
[ml2]
path_mtu = 8950
extension_drivers = qos,port_security,dns
{% if enable_extra | bool %}
mechanism_drivers = openvswitch
{% endif %}
physical_network_mtus = physnet1g:1500

[ml2_type_vlan]
network_vlan_ranges = physnet1:100:199,physnet1g:13:13

[securitygroup]
firewall_driver = openvswitch
"""
    assert merge(SITE, settings) == expected
    assert merge(expected, settings) == expected


@pytest.mark.parametrize(
    ("text", "setting", "expected"),
    [
        ("", {"value": 5}, ["name = 5"]),
        ("[a]\nname = 1\nname = 2\n", {"value": 5}, ["name = 1", "name = 5"]),
        ("[b]\nname = 1\n", {"value": 5}, ["name = 5"]),
        ("[a]\nname = 1\n", {"default": 5}, ["name = 1"]),
        ("[a]\nname = 4\n", {"minimum": 5}, ["name = 5"]),
        ("[a]\nname = 6\n", {"minimum": 5}, ["name = 6"]),
        ("[a]\nname = {{ mtu }}\n", {"minimum": 5}, ["name = {{ mtu }}"]),
        ("", {"items": ["x", "y"], "initial": "z"}, ["name = z,x,y"]),
        ("", {"items": []}, []),
        # An item is not a part of another one.
        ("[a]\nname = net1:1:10,my-net1:1:1\n", {"items": ["net1:1:1"]}, ["name = net1:1:10,my-net1:1:1,net1:1:1"]),
        # A name in an expression is in the list.
        ('[a]\nname = {{ (b + ["x"]) }}\n', {"items": ["x", "y"]}, ['name = {{ (b + ["x"]) }},y']),
        ("[a]\nname = x,\n", {"items": ["y"]}, ["name = x,y"]),
        ("[a]\nname = n:1,m:2\n", {"pairs": {"m": 3, "o": 4}}, ["name = n:1,m:3,o:4"]),
        ("[a]\nname = n:1,m:2\n", {"pairs": {"m": 3, "o": 4}, "keep": True}, ["name = n:1,m:2,o:4"]),
        ('[a]\nname = {"i": 1}\n', {"objects": [{"i": 1}, {"i": 2}]}, ['name = {"i": 1}', 'name = {"i": 2}']),
        ("[a]\nname = text\n", {"objects": [{"i": 2}]}, ["name = text", 'name = {"i": 2}']),
    ],
)
def test_rules(text: str, setting: dict[str, Any], expected: list[str]) -> None:
    section = merged(text, **setting).partition("[a]")[2].splitlines()
    assert [line for line in section if line] == expected


def test_lists_of_overridden_files_are_extended() -> None:
    weak, strong = "[a]\nname = x\n", "[a]\nname = y\n"
    assert merged("", (weak, strong), items=["z"]) == "[a]\nname = y,z\n"
    assert merged("", (strong, ""), items=["z"]) == "[a]\nname = y,z\n"
    assert merged("", (strong,), items=["y"]) == ""
    assert merged("[a]\nname = own\n", (strong,), items=["z"]) == "[a]\nname = own,z\n"
    assert merged("", ('[a]\nname = {"i": 1}\n',), objects=[{"i": 2}]) == '[a]\nname = {"i": 1}\nname = {"i": 2}\n'


def test_a_setting_needs_a_rule() -> None:
    with pytest.raises(ValueError, match="a setting of 'name' has none of value, default"):
        merged("", keep=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The block has the next section.
        (
            "[a]\nx = 1\n{% if foo %}\n[b]\nname = 1\n{% endif %}\n",
            "[a]\nx = 1\nname = 5\n{% if foo %}\n[b]\nname = 1\n{% endif %}\n",
        ),
        (
            "[a]\nx = 1\n{%- if foo\n  and bar %}\ny = 1\n{% else %}\n[b]\n{% endif %}\n",
            "[a]\nx = 1\nname = 5\n{%- if foo\n  and bar %}\ny = 1\n{% else %}\n[b]\n{% endif %}\n",
        ),
        # The block ends before the next section.
        ("[a]\n{% if foo %}\ny = 1\n{% endif %}\n[b]\n", "[a]\n{% if foo %}\ny = 1\n{% endif %}\nname = 5\n[b]\n"),
        ("[a]\n{% if foo %}y = 1{% endif %}\n[b]\n", "[a]\n{% if foo %}y = 1{% endif %}\nname = 5\n[b]\n"),
        # These are no template statements.
        (
            "[a]\nx = {{ '{% if %}' }}\n{# {% if foo %} #}\n[b]\n",
            "[a]\nx = {{ '{% if %}' }}\n{# {% if foo %} #}\nname = 5\n[b]\n",
        ),
        ("[a]\nname = {% if foo %}1{% else %}2{% endif %}\n", "[a]\nname = 5\n"),
    ],
)
def test_new_options_are_outside_of_template_blocks(text: str, expected: str) -> None:
    assert merged(text, value=5) == expected
    assert merged(expected, value=5) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[a]\n{% if foo %}\nname = 1\n{% else %}\nname = 2\n{% endif %}\n", 3),
        ("[a]\n{% if foo %}other = 1{% else %}name = 2{% endif %}\n", 2),
        ("[a]\n{% raw %}\n{% for n in m %}\nname = {{ n }}\n{% endfor %}\n{% endraw %}\n", 4),
        ("[b]\n{% if foo %}\n[a]\nx = 1\n{% endif %}\n", 3),
        ("[b]\n{% if foo %}[a]{% endif %}\n", 2),
    ],
)
def test_conditional_options_are_rejected(text: str, line: int) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        ini_merged(text, [{"section": "a", "option": "name", "default": 5}])
    assert str(caught.value) == (
        f"ini_merged: Cannot set option 'name' of section [a]: line {line} of the file is inside a template statement, "
        "such as {% if %}. Move the option and its section out of it."
    )


def test_conditional_options_of_overridden_files_are_rejected() -> None:
    conditional = "[a]\n{% if foo %}\nname = x\n{% endif %}\n"
    with pytest.raises(ValueError, match="line 3 of an overridden file is inside a template statement"):
        merged("", (conditional,), items=["z"])
    assert merged("[a]\nname = own\n", (conditional,), items=["z"]) == "[a]\nname = own,z\n"
