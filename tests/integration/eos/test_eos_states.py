# SPDX-License-Identifier: GPL-3.0-or-later
"""States of eos_pod: merged, replaced, gathered and rendered; each change is made once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.task import EOS_POD
from hypothesis import assume, given, settings

from tests.integration.eos.eos_options import PORTS, canonical, configs
from tests.integration.eos.eos_runs import desired, new_switch, perform, run
from tests.integration.eos_switches import DATA, Rack, ServedSwitch, rack_of_switches

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


def reset(switch: ServedSwitch) -> None:
    """Reset the switch to its startup configuration plus unmanaged lines."""
    switch.do(setattr, switch.switch.sessions, "running", switch.switch.startup.copy())
    switch.node().config(FOREIGN)


def blocks(lines: list[str]) -> dict[str, list[str]]:
    """Group a configuration by head line; a line outside of blocks is its own head."""
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
def test_replaced_round_trip(one_switch: ServedSwitch, first: dict[str, Any], second: dict[str, Any]) -> None:
    """Any configuration can replace any other, and lines outside of named objects stay unchanged."""
    reset(one_switch)
    for config in (first, second):
        before = blocks(one_switch.config())
        result = run(one_switch, config, state="replaced", save=False)
        assert "failed" not in result and "warnings" not in result, result
        again = run(one_switch, config, state="replaced", save=False)
        assert (again["changed"], again["commands"]) == (False, []), again

        found = canonical(run(one_switch, state="gathered")["gathered"])
        desired = canonical(config)
        for name, value in desired.items():
            if name in ("vlans", "interfaces"):
                assert {key: found[name].get(key, {}) for key in value} == value
            else:
                assert found[name] == value
        assert {name for name in config if name not in desired} & set(found) == set()  # defaults

        after = blocks(one_switch.config())
        for head, lines in before.items():
            if head.startswith("interface ") and head not in named(config):
                assert after[head] == lines
        for line in ("username operator privilege 15 nopassword", "ip route 10.77.0.0/16 10.1.3.2"):
            assert line in after
        assert any(line.startswith("ntp server vrf mgmt 10.9.9.8") for line in after)


@settings(max_examples=15)
@given(config=configs)
def test_gathered_configuration_can_be_applied(one_switch: ServedSwitch, config: dict[str, Any]) -> None:
    config.pop("snmp_communities", None)  # secrets are not gathered
    reset(one_switch)
    run(one_switch, config, state="merged", save=False)
    source, gathered = one_switch.config(), run(one_switch, state="gathered")["gathered"]
    reset(one_switch)
    assert "failed" not in run(one_switch, gathered, save=False)
    assert one_switch.config() == source


@settings(max_examples=15)
@given(config=configs)
def test_rendered_commands_can_be_applied(one_switch: ServedSwitch, config: dict[str, Any]) -> None:
    config.pop("snmp_communities", None)  # secrets are not rendered
    rendered = perform(EOS_POD, {"state": "rendered", "model": DATA, "config": config})
    assert not rendered["changed"]
    assume("<hidden>" not in str(rendered["commands"]))  # of a text such as "secret 0"
    reset(one_switch)
    one_switch.node().config(rendered["commands"])
    again = run(one_switch, config, state="merged", save=False)
    assert (again["changed"], again["commands"]) == (False, [])


@pytest.mark.parametrize("name", ["tor1", "mgmt1"])
def test_rendered_from_the_pod_model(rack: Rack, name: str) -> None:
    switch, config = new_switch(rack, name), desired(name)
    rendered = perform(EOS_POD, {"state": "rendered", "model": switch.switch.model, "config": config})
    assert switch.requests == 0
    switch.node().config(rendered["commands"])
    assert not run(switch, config, state="replaced")["commands"]
    assert canonical(run(switch, state="gathered")["gathered"]) == canonical(config)


def test_merged_adds_and_removes_nothing(switch: ServedSwitch) -> None:
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
    removed = [line for line in before if line not in switch.config()]
    new = [line.strip() for line in switch.config() if line not in before]
    assert removed == ["   switchport trunk allowed vlan 20"]
    assert new == [
        "switchport trunk allowed vlan 11-12,20",
        "priority-flow-control priority 4 no-drop",
        "spanning-tree portfast",
        "ntp server 10.0.0.9",
    ]
    assert not run(switch, config)["commands"]


def test_replaced_resets_all_lines_of_a_named_port(switch: ServedSwitch) -> None:
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
def test_lldp_in_one_direction_is_changed(switch: ServedSwitch, line: str, lldp: bool) -> None:
    switch.node().config(["interface Ethernet9/1", line])
    assert run(switch, {"interfaces": [{"name": "Ethernet9/1", "lldp": lldp}]})["changed"]
    block = blocks(switch.config())["interface Ethernet9/1"]
    assert [each for each in block if "lldp" in each] == ([] if lldp else ["   no lldp transmit", "   no lldp receive"])


def test_unused_no_drop_priorities_are_removed(switch: ServedSwitch) -> None:
    """Priorities can remain in the configuration after flow control was turned off."""
    switch.node().config(["interface Ethernet9/1", "priority-flow-control priority 5 no-drop"])
    config = {"interfaces": [{"name": "Ethernet9/1", "no_drop": [3]}]}
    run(switch, config, state="replaced")
    assert run(switch, state="gathered")["gathered"]["interfaces"][0]["no_drop"] == [3]
    assert not run(switch, config, state="replaced")["commands"]


def test_vlan_1_and_default_names(switch: ServedSwitch) -> None:
    config = {"vlans": [{"id": 1, "name": "default"}, {"id": 30}, {"id": 31, "name": ""}]}
    assert run(switch, config)["vlans"]["created"] == [30, 31]
    assert not run(switch, config)["commands"]
    assert run(switch, {"vlans": [{"id": 1, "name": "first"}, {"id": 31, "name": "x"}]})["changed"]
    assert run(switch, config)["vlans"]["updated"] == [1, 31]
    assert [vlan["name"] for vlan in run(switch, state="gathered")["gathered"]["vlans"]] == ["VLAN0030", "VLAN0031"]


def test_secondary_addresses_stay_unchanged(switch: ServedSwitch) -> None:
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
