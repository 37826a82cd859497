# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the firewall rules of each kind of host."""

from __future__ import annotations

import re

import jinja2
import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.firewall import KINDS, firewall

from tests import ROOT

TEMPLATE = ROOT / "roles/common/templates/firewall.nft.j2"
NETWORKS = {
    "bmc": {"subnet": "10.1.1.0/24"},
    "gw": {"subnet": "10.1.2.0/24"},
    "management": {"subnet": "10.1.3.0/24"},
    "data": {"subnet": "10.1.5.0/24"},
    "storage": {"subnet": None},
}
INTERFACES = {"bmc": "eno1", "gw": "eno1", "data": "bond0.11", "storage": "bond0.12"}
PEERS = {
    "dns_servers": ["10.1.2.53"],
    "management_servers": ["192.0.2.1"],
    "nfs_servers": ["10.9.0.1"],
    "agent_port": 8080,
    "controller_port": 8090,
}


def rules(*kinds: str, **more: object) -> dict[str, list[str]]:
    given = {"networks": NETWORKS, "interfaces": INTERFACES, "peers": PEERS, **more}
    return firewall(list(kinds), **given)  # type: ignore[arg-type]


def ports(lines: list[str], network: str) -> set[str]:
    """Return the accepted protocols and ports of a network."""
    accepted = [line for line in lines if f'comment "{network}' in line and " accept " in line]
    return {" ".join(found) for line in accepted for found in re.findall(r"(tcp|udp) dport (\d+)", line)}


def test_a_controller_reaches_machines_and_serves_the_management_server() -> None:
    made = rules("controller")
    assert ports(made["output"], "bmc") == {"tcp 22", "tcp 443", "udp 623", "udp 53", "tcp 53"}
    assert ports(made["output"], "gw") == {"tcp 22", "tcp 2112", "tcp 8080", "udp 53", "tcp 53"}
    assert ports(made["input"], "bmc") == {"udp 514", "tcp 514"}
    served = {"tcp 22", "tcp 9100", "tcp 3000", "tcp 9090"}
    assert ports(made["input"], "gw") == {"udp 514", "tcp 514", "udp 8091", *served}
    assert ports(made["input"], "management") == {"tcp 8090", *served}
    assert all("ip saddr 192.0.2.1/32" in line for line in made["input"] if "dport 3000" in line)
    ends = [line for line in made["output"] if " reject " in line and "ipv6" not in line]
    assert [re.search(r'comment "(\w+): reject the rest"', line)[1] for line in ends] == ["bmc", "gw"]


def test_a_control_instance_connects_to_no_machine() -> None:
    made = rules("control_instance")
    for network in ("bmc", "gw"):
        assert ports(made["output"], network) == {"udp 53", "tcp 53"}
        assert any(f'comment "{network}: reject the rest"' in line for line in made["output"])
    assert ports(made["input"], "bmc") == {"udp 514", "tcp 514"}
    served = {"tcp 22", "tcp 9100", "tcp 3000", "tcp 9090"}
    assert ports(made["input"], "gw") == {"udp 514", "tcp 514", *served}
    assert ports(made["input"], "management") == {"tcp 8090", *served}
    accepted = [line for line in made["input"] + made["output"] if " accept " in line]
    assert not [line for line in accepted if "igmp" in line or "icmp" in line]


def test_networks_on_one_interface_are_matched_by_subnet() -> None:
    logs = [line for line in rules("controller")["input"] if "udp dport 514" in line]
    assert logs == [
        'iifname "eno1" ip daddr 10.1.1.0/24 ip saddr 10.1.1.0/24 udp dport 514 accept comment "bmc: logs"',
        'iifname "eno1" ip daddr 10.1.2.0/24 ip saddr 10.1.2.0/24 udp dport 514 accept comment "gw: logs"',
    ]


def test_a_poplar_server_takes_nothing_from_storage_and_filters_no_data() -> None:
    made = rules("poplar")
    assert ports(made["input"], "management") == {"tcp 22", "tcp 9100"}
    assert ports(made["output"], "storage") == {"tcp 2049", "tcp 111"}
    assert not ports(made["input"], "storage")
    assert 'iifname "bond0.11" ip daddr 10.1.5.0/24 accept comment "data: not filtered"' in made["input"]
    assert 'oifname "bond0.12" reject with icmpx admin-prohibited comment "storage: reject the rest"' in made["output"]


def test_storage_is_not_restricted_without_known_servers() -> None:
    made = rules("poplar", peers={**PEERS, "nfs_servers": []})
    assert not [line for line in made["output"] if "bond0.12" in line]
    assert not [line for line in made["input"] if "bond0.12" in line]


def test_restricted_interfaces_do_not_send_ipv6() -> None:
    rejected = 'oifname "eno1" meta nfproto ipv6 reject with icmpx admin-prohibited'
    assert rules("controller")["output"].count(rejected) == 1
    shared = {**INTERFACES, "management": "eno1"}  # without restrictions of outgoing traffic
    assert rejected not in rules("controller", interfaces=shared)["output"]


def test_dhcp_requests_are_broadcasts() -> None:
    leases = [line for line in rules("management")["input"] if "dport 67" in line]
    assert 'iifname "eno1" udp dport 67 accept comment "bmc: leases"' in leases
    assert not any("ip daddr" in line for line in leases)
    # Also on networks that are not filtered otherwise.
    assert 'iifname "bond0.11" udp dport 67 accept comment "data: leases"' in rules("poplar", "management")["input"]


def test_multicast_of_agents_is_accepted() -> None:
    made = rules("controller")
    assert 'iifname "eno1" ip saddr 10.1.2.0/24 udp dport 8091 accept comment "gw: presence of agents"' in made["input"]
    accept_rule = 'oifname "eno1" meta l4proto igmp accept comment "gw: multicast"'
    assert accept_rule in made["output"]
    rejected = [number for number, line in enumerate(made["output"]) if " reject " in line]
    assert made["output"].index(accept_rule) < rejected[0]


def test_a_host_whose_only_network_is_that_of_agents_reaches_mirrors_and_time() -> None:
    made = rules("agent", networks={"gw": NETWORKS["gw"]}, interfaces={})
    assert made["output"] == ['ip saddr 10.1.2.0/24 accept comment "gw"']


def test_host_of_two_kinds_has_the_rules_of_both() -> None:
    both = rules("controller", "management")
    for kind in ("controller", "management"):
        assert set(rules(kind)["input"]) <= set(both["input"])
    assert not [line for line in both["output"] if " reject " in line]


def test_agents_accept_what_controllers_send() -> None:
    sent = ports(rules("controller")["output"], "gw") - {"udp 53", "tcp 53"}
    assert sent <= ports(rules("agent")["input"], "gw")


@pytest.mark.parametrize(
    ("kind", "network"),
    [("controller", "management"), ("poplar", "management"), ("management", "management"), ("agent", "gw")],
)
def test_host_without_management_access_is_rejected(kind: str, network: str) -> None:
    others = {name: settings for name, settings in NETWORKS.items() if name != network}
    message = f"network '{network}', on which hosts of kind '{kind}' are managed, has neither a subnet nor an interface"
    with pytest.raises(ValueError, match=re.escape(message)):
        rules(kind, networks=others, interfaces={})
    assert rules(kind, networks=others, interfaces={network: "eno2"})["input"]


def test_additional_rules() -> None:
    allow = [
        {"ports": [9093, 9094], "network": "management", "sources": ["10.1.3.0/24"], "comment": "Alertmanager"},
        {"ports": [53], "protocol": "udp"},
        {"ports": [123], "protocol": "udp", "direction": "out", "network": "gw", "destinations": ["10.1.2.7"]},
    ]
    made = rules("controller", allow=allow)
    assert made["input"][-2:] == [
        'ip daddr 10.1.3.0/24 ip saddr 10.1.3.0/24 tcp dport { 9093, 9094 } accept comment "Alertmanager"',
        'udp dport { 53 } accept comment "additional rule"',
    ]
    out = 'oifname "eno1" ip saddr 10.1.2.0/24 ip daddr 10.1.2.7/32 udp dport { 123 } accept comment "additional rule"'
    rejected = next(number for number, line in enumerate(made["output"]) if " reject " in line)
    assert made["output"].index(out) < rejected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": ["controler"]}, "unknown kind of host 'controler': did you mean 'controller'?"),
        ({"interfaces": {"gw": 'eth0" accept'}}, "invalid interface name 'eth0\" accept' of network"),
        ({"networks": {"gw": {"subnet": "10.2.0.1/16"}}}, "network 'gw': '10.2.0.1/16' is not an address or a subnet"),
        ({"forward": ['br0" accept']}, "invalid interface name 'br0\" accept' in forward_interfaces: correct it"),
        ({"forward": ["*"]}, "invalid interface name '*' in forward_interfaces"),
        ({"allow": [{"ports": [0]}]}, "rule 1 of allow: ports must have at least one number from 1 to 65535"),
        ({"allow": [{"ports": [1], "direction": "outt"}]}, "unknown direction 'outt': did you mean 'out'?"),
        (
            {"allow": [{"ports": [1], "direction": "out", "sources": ["10.1.1.1"]}]},
            "rule 1 of allow: direction out has destinations, not sources: correct it",
        ),
        ({"allow": [{"ports": [1], "network": "gws"}]}, "unknown network 'gws': did you mean 'gw'?"),
        ({"allow": [{"ports": [1], "sources": ["here"]}]}, "'here' is not an address or a subnet such as"),
        ({"allow": [{"ports": [1], "comment": 'a"b'}]}, "comment must have at most 60 characters"),
        ({"allow": [{"ports": [1], "network": "storage"}], "interfaces": {}}, "neither a subnet nor an interface"),
    ],
)
def test_errors_are_reported(given: dict[str, object], message: str) -> None:
    kinds = given.pop("kinds", list(KINDS))
    with pytest.raises(ValueError, match=re.escape(message)):
        rules(*kinds, **given)  # type: ignore[misc]


def test_management_servers_may_connect_to_the_controller() -> None:
    template = jinja2.Environment(trim_blocks=True, autoescape=False).from_string(TEMPLATE.read_text())
    known = {
        "common_ansible_sources": ["10.9.0.5", "fd00::5"],
        "common_ssh_connection": {},
        "common_controller_port": 8090,
        "common_admin_port": 8092,
        "common_rules": {"input": [], "output": [], "forward": []},
    }
    on_controller = template.render(known, common_kinds=["controller"])
    assert 'ip saddr 10.9.0.5 tcp dport { 8090, 8092 } accept comment "V-IPU from Ansible"' in on_controller
    assert 'ip6 saddr fd00::5 tcp dport { 8090, 8092 } accept comment "V-IPU from Ansible"' in on_controller
    on_poplar = template.render(known, common_kinds=["poplar"])
    assert 'ip saddr 10.9.0.5 tcp dport 22 accept comment "Ansible"' in on_poplar
    assert "8090" not in on_poplar


def test_a_controller_limits_the_connections_of_each_address() -> None:
    template = jinja2.Environment(trim_blocks=True, autoescape=False).from_string(TEMPLATE.read_text())
    known = {
        "common_ansible_sources": ["10.9.0.5"],
        "common_ssh_connection": {},
        "common_controller_port": 8090,
        "common_admin_port": 8090,
        "common_rules": {"input": ['tcp dport 8090 accept comment "rule of the table"'], "output": [], "forward": []},
        "common_connections_per_address": 1024,
        "common_new_connections_per_second": 100,
        "common_limited_ports": [8090, 8090, 2112],
    }
    text = template.render(known, common_kinds=["controller"])
    limits = 'tcp dport { 8090, 2112 } jump limits comment "limits of each address"'
    order = ['"V-IPU from Ansible"', limits, '"rule of the table"']
    assert sorted(order, key=text.index) == order
    assert "add @connections4 { ip saddr ct count over 1024 } counter reject with tcp reset" in text
    assert "update @attempts4 { ip saddr limit rate over 100/second burst 1000 packets } counter drop" in text
    for more in ({"common_kinds": ["poplar"]}, {"common_kinds": ["controller"], "common_limited_ports": []}):
        assert "limits" not in template.render({**known, **more})


def test_only_listed_interfaces_are_forwarded() -> None:
    template = jinja2.Environment(trim_blocks=True, autoescape=False).from_string(TEMPLATE.read_text())
    made = rules("controller", forward=["docker0", "br-*"])
    text = template.render(common_rules=made, common_kinds=["controller"])
    (chain,) = re.findall(r"chain forward \{\n(.*?)\n\t\}", text, re.DOTALL)
    assert [line.strip() for line in chain.splitlines()] == [
        "type filter hook forward priority filter; policy drop;",
        "ct state established,related accept",
        'iifname "docker0" accept',
        'iifname "br-*" accept',
    ]
    assert rules("controller")["forward"] == []
