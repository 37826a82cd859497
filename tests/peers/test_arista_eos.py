# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of `arista.eos` against the EOS twin: each applies its changes, and the second run changes nothing.

The modules are written for real switches. They verify the twin, because they run here unmodified.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.twin.cables.switch_cabling import Neighbour
from tests.integration.eos_switches import Cables, Rack, ServedSwitch, rack_of_switches
from tests.peers.peers import Task, play

pytestmark = pytest.mark.peers
VLANS = [{"vlan_id": 11, "name": "data", "state": "active"}, {"vlan_id": 12, "name": "storage", "state": "active"}]
INTERFACES = [
    {"name": "Ethernet9/1", "description": "b-ipum1 eth1", "enabled": True, "mtu": 9214},
    {"name": "Ethernet10/1", "description": "spare", "enabled": False},
]
# EOS does not print defaults, so `mode: access` cannot be read back and is omitted.
L2 = [
    {"name": "Ethernet9/1", "access": {"vlan": 11}},
    {"name": "Ethernet1/1", "mode": "trunk", "trunk": {"native_vlan": 11, "trunk_allowed_vlans": ["11-12"]}},
]
LAGS = [{"name": "Port-Channel5", "members": [{"member": "Ethernet7/1", "mode": "active"}]}]
RESOURCES = {
    "arista.eos.eos_vlans": VLANS,
    "arista.eos.eos_interfaces": INTERFACES,
    "arista.eos.eos_l2_interfaces": L2,
    "arista.eos.eos_lag_interfaces": LAGS,
}
# Modules for services of a switch. Each is applied twice.
SERVICES: dict[str, dict[str, Any]] = {
    "arista.eos.eos_hostname": {"config": {"hostname": "tor7"}},
    "arista.eos.eos_system": {"domain_name": "example.org", "name_servers": ["10.0.0.8"]},
    "arista.eos.eos_lacp": {"config": {"system": {"priority": 100}}},
    "arista.eos.eos_lacp_interfaces": {"config": [{"name": "Ethernet7/1", "port_priority": 30, "timer": "fast"}]},
    "arista.eos.eos_lldp_global": {
        "config": {"holdtime": 100, "timer": 20, "reinit": 3, "tlv_select": {"system_description": False}}
    },
    "arista.eos.eos_lldp_interfaces": {"config": [{"name": "Ethernet9/1", "transmit": False}]},
    "arista.eos.eos_logging_global": {
        "config": {"hosts": [{"name": "10.0.0.9"}], "source_interface": "Management1"},
    },
    "arista.eos.eos_ntp_global": {"config": {"servers": [{"server": "10.1.3.9"}], "local_interface": "Management1"}},
    "arista.eos.eos_snmp_server": {
        "config": {"contact": "me", "location": "here", "communities": [{"name": "public", "ro": True}]}
    },
    "arista.eos.eos_eapi": {"local_http": True, "socket": True},
    "arista.eos.eos_vrf": {"name": "MGMT"},
    "arista.eos.eos_vrf_global": {"config": [{"name": "MGMT", "description": "management"}]},
    "arista.eos.eos_l3_interfaces": {"config": [{"name": "Vlan11", "ipv4": [{"address": "10.5.0.1/24"}]}]},
    "arista.eos.eos_static_routes": {
        "config": [
            {
                "address_families": [
                    {
                        "afi": "ipv4",
                        "routes": [
                            {"dest": "10.9.0.0/16", "next_hops": [{"forward_router_address": "10.1.3.1"}]},
                        ],
                    }
                ]
            }
        ]
    },
    "arista.eos.eos_acls": {
        "config": [
            {
                "afi": "ipv4",
                "acls": [
                    {
                        "name": "mgmt",
                        "aces": [
                            {
                                "sequence": 10,
                                "grant": "permit",
                                "protocol": "ip",
                                "source": {"any": True},
                                "destination": {"any": True},
                            }
                        ],
                    }
                ],
            }
        ]
    },
}
# Modules for functions that a leaf of layer 2 does not have.
REJECTED: dict[str, dict[str, Any]] = {
    "arista.eos.eos_prefix_lists": {
        "config": [
            {
                "afi": "ipv4",
                "prefix_lists": [
                    {"name": "p", "entries": [{"sequence": 5, "action": "deny", "address": "10.9.0.0/16"}]},
                ],
            }
        ]
    },
    "arista.eos.eos_route_maps": {"config": [{"route_map": "m", "entries": [{"action": "permit", "sequence": 10}]}]},
    "arista.eos.eos_ospf_interfaces": {
        "config": [{"name": "Vlan1", "address_family": [{"afi": "ipv4", "cost": 100}]}],
    },
    "arista.eos.eos_ospfv3": {
        "config": {"processes": [{"vrf": "default", "address_family": [{"afi": "ipv4", "router_id": "10.1.1.1"}]}]}
    },
}
CABLES = Cables({"Ethernet9/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1")})


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with rack_of_switches(tmp_path) as rack:
        yield rack


@pytest.fixture
def switch(rack: Rack) -> ServedSwitch:
    return rack.switch(cabling=CABLES)


def task(module: str, **options: Any) -> Task:
    return {"name": f"Use {module}", module: options}


@pytest.mark.parametrize("state", ["merged", "replaced", "overridden"])
@pytest.mark.parametrize("module", RESOURCES)
def test_a_resource_module(switch: ServedSwitch, tmp_path: Path, module: str, state: str) -> None:
    desired = RESOURCES[module]
    apply = task(module, config=desired, state=state)
    if module.endswith("l2_interfaces"):
        switch.node().config(["vlan 11-12"])
    before = switch.config()
    (checked,) = play(tmp_path, switch, [apply], "--check")
    assert checked["changed"]
    assert (switch.config(), switch.sessions()) == (before, {})
    first, second, gathered = play(tmp_path, switch, [apply, apply, task(module, state="gathered")])
    assert first["changed"] and first["commands"]
    assert not second["changed"] and not second["commands"]
    for item in desired:
        assert any(item.items() <= found.items() for found in gathered["gathered"]), gathered["gathered"]
    assert switch.config() != before


@pytest.mark.parametrize("module", RESOURCES)
def test_deletion_of_a_resource(switch: ServedSwitch, tmp_path: Path, module: str) -> None:
    before = switch.config()
    desired = RESOURCES[module]
    play(tmp_path, switch, [task(module, config=desired), task(module, config=desired, state="deleted")])
    # EOS creates port channels and VLANs that ports refer to, and keeps them.
    remaining = [line for line in switch.config() if line not in before]
    assert remaining in ([], ["vlan 11-12"]), remaining


def test_lines_of_configuration(switch: ServedSwitch, tmp_path: Path) -> None:
    lines = task(
        "arista.eos.eos_config",
        lines=["description b-ipum1 eth1", "switchport access vlan 11", "mtu 9214"],
        parents=["interface Ethernet9/1"],
    )
    first, second, saved = play(
        tmp_path, switch, [lines, lines, task("arista.eos.eos_config", save_when="modified")], "--diff"
    )
    assert first["changed"] and not second["changed"] and saved["changed"]
    assert "+   description b-ipum1 eth1" in first["diff"]["prepared"]
    assert switch.saved() == switch.config()


def test_services(switch: ServedSwitch, tmp_path: Path) -> None:
    switch.node().config(["vlan 11", "interface Vlan11"])
    results = play(
        tmp_path, switch, [task(module, **options) for module, options in SERVICES.items() for _ in range(2)]
    )
    changes = {
        module: (first["changed"], second["changed"])
        for module, first, second in zip(SERVICES, results[::2], results[1::2], strict=True)
    }
    assert changes == dict.fromkeys(SERVICES, (True, False))


@pytest.mark.parametrize("module", REJECTED)
def test_functions_of_routers_are_rejected(switch: ServedSwitch, tmp_path: Path, module: str) -> None:
    before = switch.config()
    with pytest.raises(AssertionError, match="Invalid input"):
        play(tmp_path, switch, [task(module, **REJECTED[module])])
    assert (switch.config(), switch.sessions()) == (before, {})


def test_a_whole_configuration(rack: Rack, tmp_path: Path) -> None:
    """Replace the whole configuration with a file."""
    source, target = rack.switch("tor1"), rack.switch("tor2")
    source.node().config(["vlan 11", "name data", "interface Ethernet9/1", "switchport access vlan 11"])
    (tmp_path / "whole.cfg").write_text("\n".join([*source.config(), "end", ""]))
    replacement = task("arista.eos.eos_config", src="whole.cfg", replace="config")
    first, second = play(tmp_path, target, [replacement, replacement])
    assert first["changed"] and not second["changed"]
    assert target.config() == source.config()


def test_users(switch: ServedSwitch, tmp_path: Path) -> None:
    """The module changes one option of a user per line: a switch merges them into one user."""
    users = [
        {"name": "bob", "configured_password": "s3cret-of-bob", "privilege": 15, "role": "network-admin"},
        {"name": "carol", "nopassword": True},
    ]
    create = task("arista.eos.eos_user", aggregate=users, update_password="on_create")
    demote = task("arista.eos.eos_user", name="bob", configured_password="x", privilege=1, update_password="on_create")
    first, second, demoted = play(tmp_path, switch, [create, create, demote])
    assert first["changed"] and not second["changed"], second
    assert demoted["commands"][-1] == "username bob privilege 1"
    lines = [line for line in switch.config() if line.startswith("username")]
    assert lines[0].startswith("username bob role network-admin secret sha512 $6$")
    assert lines[1:] == ["username carol nopassword"]
    assert "s3cret-of-bob" not in "".join(switch.config())
    (removed,) = play(tmp_path, switch, [task("arista.eos.eos_user", name="carol", state="absent")])
    assert removed["changed"]
    assert [line for line in switch.config() if line.startswith("username")] == lines[:1]


def test_a_key_of_a_user(switch: ServedSwitch, tmp_path: Path) -> None:
    """The module reads the release of EOS with `grep` and a quoted pattern."""
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKeyOfDave dave@pod"
    create = task("arista.eos.eos_user", name="dave", sshkey=key, state="present")
    first, second = play(tmp_path, switch, [create, create])
    assert first["changed"] and not second["changed"], second
    assert f"username dave ssh-key {key}" in switch.config()


def test_a_banner(switch: ServedSwitch, tmp_path: Path) -> None:
    apply = task("arista.eos.eos_banner", banner="login", text="For users\nof the POD\n", state="present")
    first, second = play(tmp_path, switch, [apply, apply])
    assert first["changed"] and not second["changed"], second
    assert switch.config().count("of the POD") == 1
    (removed,) = play(tmp_path, switch, [task("arista.eos.eos_banner", banner="login", state="absent")])
    assert removed["changed"] and "of the POD" not in switch.config()


def test_commands(switch: ServedSwitch, tmp_path: Path) -> None:
    (result,) = play(
        tmp_path,
        switch,
        [
            task(
                "arista.eos.eos_command",
                commands=["show version | json", "show hostname", {"command": "show vlan", "output": "json"}],
                wait_for=["result[0].modelName contains 7060"],
            )
        ],
    )
    assert result["stdout"][1].startswith("Hostname: tor1")
    assert result["stdout"][2]["vlans"]["1"]["name"] == "default"


def test_facts(switch: ServedSwitch, tmp_path: Path) -> None:
    (result,) = play(
        tmp_path, switch, [task("arista.eos.eos_facts", gather_subset=["all"], gather_network_resources=["all"])]
    )
    facts = result["ansible_facts"]
    assert facts["ansible_net_hostname"] == "tor1"
    assert facts["ansible_net_model"] == "DCS-7060CX-32S-F"
    assert facts["ansible_net_serialnum"] == switch.switch.hardware.serial
    assert facts["ansible_net_interfaces"]["Ethernet9/1"]["operstatus"] == "connected"
    assert facts["ansible_net_interfaces"]["Management1"]["ipv4"] == {"address": "10.1.3.111", "masklen": 24}
    assert facts["ansible_net_neighbors"]["Ethernet9/1"] == [{"host": "b-ipum1", "port": "eth1"}]
    assert "hostname tor1" in facts["ansible_net_config"]
    assert facts["ansible_net_filesystems"]


def test_a_switch_rejects_unknown_commands(switch: ServedSwitch, tmp_path: Path) -> None:
    invalid = task("arista.eos.eos_config", lines=["no such command"])
    with pytest.raises(AssertionError, match="Invalid input"):
        play(tmp_path, switch, [invalid])
    assert switch.sessions() == {}


MODEL = {
    "vlans": [{"id": 11, "name": "data"}, {"id": 12, "name": "storage"}],
    "interfaces": [
        {"name": "Ethernet9/1", "description": "b-ipum1 eth1", "mode": "access", "access_vlan": 11, "mtu": 9214},
        {"name": "Ethernet1/1", "mode": "trunk", "native_vlan": 11, "trunk_vlans": [11, 12], "description": "uplink"},
        {"name": "Port-Channel5", "mode": "trunk", "trunk_vlans": [12]},
        {"name": "Ethernet7/1", "port_channel": {"id": 5, "lacp": "active"}, "description": "poplar1 eno1"},
        {"name": "Ethernet10/1", "enabled": False},
    ],
    "ntp_servers": ["10.1.3.9"],
}


def test_arista_eos_reads_the_configuration_of_eos_pod(switch: ServedSwitch, tmp_path: Path) -> None:
    apply = {
        "name": "Use openipu.pod.eos_pod",
        "openipu.pod.eos_pod": switch.options(config=MODEL, state="replaced"),
        "vars": {"ansible_connection": "local", "ansible_become": False},
    }
    gathered = [task(module, state="gathered") for module in RESOURCES]
    first, *results, second = play(tmp_path, switch, [apply, *gathered, apply])
    assert first["changed"] and not second["changed"]
    vlans, interfaces, l2, lags = (
        {item.get("vlan_id") or item["name"]: item for item in result["gathered"]} for result in results
    )
    assert {number: vlans[number]["name"] for number in (11, 12)} == {11: "data", 12: "storage"}
    assert interfaces["Ethernet9/1"] == {
        "name": "Ethernet9/1",
        "description": "b-ipum1 eth1",
        "enabled": True,
        "mtu": 9214,
    }
    assert interfaces["Ethernet10/1"]["enabled"] is False
    assert l2["Ethernet9/1"]["access"] == {"vlan": 11}
    assert l2["Ethernet1/1"] == {
        "name": "Ethernet1/1",
        "mode": "trunk",
        "trunk": {"native_vlan": 11, "trunk_allowed_vlans": ["11-12"]},
    }
    assert l2["Port-Channel5"]["trunk"] == {"trunk_allowed_vlans": ["12"]}
    assert lags["Port-Channel5"]["members"] == [{"member": "Ethernet7/1", "mode": "active"}]


def test_eos_pod_reproduces_the_configuration_of_arista_eos(rack: Rack, tmp_path: Path) -> None:
    source, target = rack.switch("tor1"), rack.switch("tor1")
    play(tmp_path, source, [task(module, config=config) for module, config in RESOURCES.items()])
    gather = {
        "name": "Use openipu.pod.eos_pod",
        "openipu.pod.eos_pod": source.options(state="gathered"),
        "vars": {"ansible_connection": "local", "ansible_become": False},
    }
    gathered = play(tmp_path, source, [gather])[0]["gathered"]
    apply = {**gather, "openipu.pod.eos_pod": target.options(state="replaced", config=gathered)}
    play(tmp_path, target, [apply])
    assert target.config() == source.config()
