# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for is what is there afterwards, is told back in the same words, and is not asked for again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.tasks import EOS_POD
from eos_options import PORTS, configs, told
from eos_runs import delivered, perform, run, wanted
from eos_switches import DATA, Rack, ServedSwitch, rack_of_switches
from hypothesis import given, settings

FOREIGN = [
    *(
        "username operator privilege 15 nopassword",
        "ip name-server vrf default 10.9.9.9",
        "ntp server vrf mgmt 10.9.9.8",
    ),
    *("vlan 900", "name foreign", "trunk group mlag"),
    *("interface Ethernet17/1", "description not ours", "storm-control broadcast level 1", "speed 40g"),
    *(
        "interface Ethernet18/1",
        "switchport mode trunk",
        "switchport trunk allowed vlan 900",
        "channel-group 9 mode on",
    ),
    *("interface Port-Channel9", "lacp system-id 0000.0000.0001"),
    *("ip route 10.77.0.0/16 10.1.3.2",),
]


@pytest.fixture(scope="module")
def one_switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSwitch]:
    with rack_of_switches(tmp_path_factory.mktemp("states")) as rack:
        yield rack.switch()


def begin_anew(switch: ServedSwitch) -> None:
    """As it was delivered, with what is there and not ours."""
    switch.do(setattr, switch.switch.sessions, "running", switch.switch.startup.copy())
    switch.node().config(FOREIGN)


def blocks(lines: list[str]) -> dict[str, list[str]]:
    """The configuration by the heads of its blocks; a line outside of blocks is its own."""
    found: dict[str, list[str]] = {}
    head = ""
    for line in lines:
        if not line.startswith(" "):
            head = line
        found.setdefault(head, []).append(line)
    return found


def named(config: dict[str, Any]) -> set[str]:
    return {f"interface {item['name']}" for item in config.get("interfaces") or ()}


@settings(max_examples=40)
@given(first=configs, second=configs)
def test_there_and_back(one_switch: ServedSwitch, first: dict[str, Any], second: dict[str, Any]) -> None:
    """From any configuration to any other, and not a line of what nobody named is touched."""
    begin_anew(one_switch)
    for config in (first, second):
        before = blocks(one_switch.config())
        done = run(one_switch, config, state="replaced", save=False)
        assert "failed" not in done and "warnings" not in done, done
        again = run(one_switch, config, state="replaced", save=False)
        assert (again["changed"], again["commands"]) == (False, []), again

        found = told(run(one_switch, state="gathered")["gathered"])
        desired = told(config)
        for name, value in desired.items():
            if name in ("vlans", "interfaces"):
                there = {key: found[name].get(key, {}) for key in value}
                assert there == value
            else:
                assert found[name] == value
        assert {name for name in config if name not in desired} & set(found) == set()  # it is as it is by itself

        after = blocks(one_switch.config())
        for head, lines in before.items():
            if head.startswith("interface ") and head not in named(config):
                assert after[head] == lines
        for line in ("username operator privilege 15 nopassword", "ip route 10.77.0.0/16 10.1.3.2"):
            assert line in after
        assert any(line.startswith("ntp server vrf mgmt 10.9.9.8") for line in after)


@settings(max_examples=15)
@given(config=configs)
def test_what_was_gathered_makes_another_switch_the_same(one_switch: ServedSwitch, config: dict[str, Any]) -> None:
    config.pop("snmp_communities", None)  # these are told nobody
    begin_anew(one_switch)
    run(one_switch, config, state="merged", save=False)
    source, gathered = one_switch.config(), run(one_switch, state="gathered")["gathered"]
    begin_anew(one_switch)
    assert "failed" not in run(one_switch, gathered, save=False)
    assert one_switch.config() == source


@settings(max_examples=15)
@given(config=configs)
def test_what_was_rendered_can_be_typed_in(one_switch: ServedSwitch, config: dict[str, Any]) -> None:
    config.pop("snmp_communities", None)  # they are not printed
    rendered = perform(EOS_POD, {"state": "rendered", "model": DATA, "config": config})
    assert not rendered["changed"]
    begin_anew(one_switch)
    one_switch.node().config(rendered["commands"])
    again = run(one_switch, config, state="merged", save=False)
    assert (again["changed"], again["commands"]) == (False, [])


@pytest.mark.parametrize("name", ["tor1", "mgmt1"])
def test_rendered_by_the_pod_model(rack: Rack, name: str) -> None:
    switch, config = delivered(rack, name), wanted(name)
    rendered = perform(EOS_POD, {"state": "rendered", "model": switch.switch.model, "config": config})
    assert switch.requests == 0
    switch.node().config(rendered["commands"])
    assert not run(switch, config, state="replaced")["commands"]
    assert told(run(switch, state="gathered")["gathered"]) == told(config)


def test_merged_adds_and_takes_nothing_away(switch: ServedSwitch) -> None:
    switch.node().config(
        [
            *("interface Ethernet9/1", "description before", "mtu 9000", "storm-control broadcast level 1"),
            *("switchport mode trunk", "switchport trunk allowed vlan 20", "priority-flow-control on"),
            *("priority-flow-control priority 3 no-drop", "ntp server 10.0.0.1", "logging host 10.0.0.2"),
        ]
    )
    before = switch.config()
    config = {
        "interfaces": [{"name": "Ethernet9/1", "trunk_vlans": [11, 12], "no_drop": [4], "edge": True}],
        "ntp_servers": ["10.0.0.9"],
    }
    assert run(switch, config)["changed"]
    gone = [line for line in before if line not in switch.config()]
    new = [line.strip() for line in switch.config() if line not in before]
    assert gone == ["   switchport trunk allowed vlan 20"]
    assert new == [
        "switchport trunk allowed vlan 11-12,20",
        "priority-flow-control priority 4 no-drop",
        "spanning-tree portfast",
        "ntp server 10.0.0.9",
    ]
    assert not run(switch, config)["commands"]


def test_replaced_leaves_no_line_of_a_port_that_it_names(switch: ServedSwitch) -> None:
    fresh = switch.config()
    lines = ["description x", "mtu 9000", "shutdown", "no lldp transmit", "storm-control broadcast level 1"]
    lines += [
        "speed 40g",
        "switchport mode trunk",
        "priority-flow-control priority 3 no-drop",
        "channel-group 3 mode on",
    ]
    lines += ["uc-tx-queue 3", "random-detect ecn minimum-threshold 1 kbytes maximum-threshold 9 kbytes", "exit"]
    lines += ["uc-tx-queue 4", "shape rate 1000", "exit", "lacp timer fast", "no switchport"]
    switch.node().config([f"interface {PORTS[0]}", *lines, f"interface {PORTS[1]}", *lines])
    config = {"interfaces": [{"name": PORTS[0]}]}
    assert run(switch, config, state="replaced")["changed"]
    assert not run(switch, config, state="replaced")["commands"]
    found = blocks(switch.config())
    assert found[f"interface {PORTS[0]}"] == blocks(fresh)[f"interface {PORTS[0]}"]
    assert len(found[f"interface {PORTS[1]}"]) >= len(lines) - 2


@pytest.mark.parametrize("line", ["no lldp transmit", "no lldp receive"])
@pytest.mark.parametrize("lldp", [True, False])
def test_half_of_lldp_is_neither_on_nor_off(switch: ServedSwitch, line: str, lldp: bool) -> None:
    switch.node().config(["interface Ethernet9/1", line])
    assert run(switch, {"interfaces": [{"name": "Ethernet9/1", "lldp": lldp}]})["changed"]
    block = blocks(switch.config())["interface Ethernet9/1"]
    assert [each for each in block if "lldp" in each] == ([] if lldp else ["   no lldp transmit", "   no lldp receive"])


def test_what_paused_nothing_pauses_nothing_because_of_us(switch: ServedSwitch) -> None:
    """Priorities that somebody left behind when he turned flow control off."""
    switch.node().config(["interface Ethernet9/1", "priority-flow-control priority 5 no-drop"])
    config = {"interfaces": [{"name": "Ethernet9/1", "no_drop": [3]}]}
    run(switch, config, state="replaced")
    assert run(switch, state="gathered")["gathered"]["interfaces"][0]["no_drop"] == [3]
    assert not run(switch, config, state="replaced")["commands"]


def test_vlan_1_and_names_by_default(switch: ServedSwitch) -> None:
    config = {"vlans": [{"id": 1, "name": "default"}, {"id": 30}, {"id": 31, "name": ""}]}
    assert run(switch, config)["vlans"]["created"] == [30, 31]
    assert not run(switch, config)["commands"]
    assert run(switch, {"vlans": [{"id": 1, "name": "first"}, {"id": 31, "name": "x"}]})["changed"]
    assert run(switch, config)["vlans"]["updated"] == [1, 31]
    assert [vlan["name"] for vlan in run(switch, state="gathered")["gathered"]["vlans"]] == ["VLAN0030", "VLAN0031"]


def test_addresses_besides_the_first_are_left_alone(switch: ServedSwitch) -> None:
    switch.node().config(["interface Vlan11", "ip address 10.5.0.1/24", "ip address 10.6.0.1/24 secondary"])
    config = {"interfaces": [{"name": "Vlan11", "address": "10.5.0.1/24"}]}
    assert not run(switch, config)["commands"]
    assert "   ip address 10.6.0.1/24 secondary" in switch.config()


def test_every_pair_of_modes(switch: ServedSwitch) -> None:
    modes = ["access", "trunk", "routed"]
    for before, after in itertools.permutations(modes, 2):
        for mode in (before, after):
            config = {"interfaces": [{"name": "Ethernet9/1", "mode": mode}]}
            run(switch, config, save=False)
            assert not run(switch, config)["commands"], (before, after)
