# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of leases, names and zones of a POD."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.openipu.pod.plugins.filter.served_by import served_by
from ansible_collections.openipu.pod.plugins.module_utils.pod.dhcp_dns import reverse_zones, serve
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.network_services import network_services

from tests import ROOT

NETWORKS = {
    "bmc": {"interface": "eno1"},
    "gw": {"interface": "eno1"},
    "management": {"interface": "eno2"},
    "data": {"interface": "bond0.11"},
}
FACTS = {
    "interfaces": ["lo", "eno1", "eno2", "bond0.11", "eno3"],
    "eno1": {"device": "eno1", "ipv4": {"address": "10.1.2.101"}, "ipv4_secondaries": [{"address": "10.1.1.101"}]},
    "eno2": {"device": "eno2", "ipv4": {"address": "10.1.3.101"}},
    "bond0_11": {"device": "bond0.11", "ipv4": {"address": "10.1.5.101"}},
    "eno3": {"device": "eno3"},
    "default_ipv4": {"address": "10.1.3.101"},
}


@pytest.fixture(scope="module")
def pod64():
    return network_services(load(str(ROOT / "inventory/pod64/pod.yml")))


def served(services, *, networks=NETWORKS, facts=FACTS, more=(), domain=None, host="server1"):
    return serve(services, host, facts, networks, more, domain or services["domain"])


def problem(services, **settings):
    (message,) = served(services, **settings)["problems"]
    return message


def test_all_48_macs_get_a_lease_and_a_name(pod64):
    plan = served(pod64)
    assert plan["problems"] == []
    assert len(plan["leases"]) == len({lease["mac"] for lease in plan["leases"]}) == 48
    assert plan["leases"][0] == {"mac": "0c:42:a1:00:01:01", "address": "10.1.1.1", "name": "ipum01-bmc"}
    assert plan["leases"][-1] == {"mac": "0c:42:a1:00:05:10", "address": "10.1.5.16", "name": "ipum16-rnic"}


def test_everything_with_an_address_has_names(pod64):
    names = {row["address"]: row["names"] for row in served(pod64)["names"]}
    assert names["10.1.2.1"] == ["ipum01-gw", "ipum01"]  # the inventory name has the management address
    assert names["10.1.1.1"] == ["ipum01-bmc"]
    assert names["10.1.3.104"] == ["server4-p2", "server4"]
    assert names["10.1.3.204"] == ["server4-idrac"]
    assert names["10.1.3.111"] == ["tor1-management", "tor1"]
    assert names["10.1.1.101"] == ["server1-bmc"]  # an address of the host that is not in the POD
    assert len(names) == 48 + 4 * 4 + 2 + 2 + 1


def test_networks_have_the_values_of_openstack(pod64):
    networks = {network["name"]: network for network in served(pod64)["networks"]}
    assert networks["management"] == {
        "name": "management",
        "interface": "eno2",
        "subnet": "10.1.3.0/24",
        "start": "10.1.3.0",
        "netmask": "255.255.255.0",
        "address": "10.1.3.101",
        "gateway": "10.1.3.1",
        "mtu": None,
        "dns_servers": ["10.1.3.101"],
        "ntp_servers": ["10.1.3.101"],
    }
    assert (networks["data"]["mtu"], networks["data"]["gateway"]) == (9000, None)
    assert [networks[name]["address"] for name in ("bmc", "gw")] == ["10.1.1.101", "10.1.2.101"]


def test_networks_not_served_have_names_but_no_leases(pod64):
    plan = served(pod64, networks={"gw": {"interface": "eno1", "mtu": 1400, "dns_servers": ["10.1.2.2"]}})
    assert {lease["name"].partition("-")[2] for lease in plan["leases"]} == {"gw"}
    assert (plan["networks"][0]["mtu"], plan["networks"][0]["dns_servers"]) == (1400, ["10.1.2.2"])
    assert ["ipum01-rnic"] in [row["names"] for row in plan["names"]]


def test_zones_are_those_of_the_subnets(pod64):
    assert served(pod64)["zones"] == [
        "pod64.example",
        "1.1.10.in-addr.arpa",
        "2.1.10.in-addr.arpa",
        "3.1.10.in-addr.arpa",
        "5.1.10.in-addr.arpa",
        "6.1.10.in-addr.arpa",
    ]


@pytest.mark.parametrize(
    ("subnet", "zones"),
    [
        ("10.0.0.0/8", ["10.in-addr.arpa"]),
        ("10.1.0.0/16", ["1.10.in-addr.arpa"]),
        ("10.1.4.0/23", ["4.1.10.in-addr.arpa", "5.1.10.in-addr.arpa"]),
        ("10.1.4.128/31", ["128.4.1.10.in-addr.arpa", "129.4.1.10.in-addr.arpa"]),
        ("10.1.4.9/32", ["9.4.1.10.in-addr.arpa"]),
    ],
)
def test_reverse_zones(subnet, zones):
    assert reverse_zones(subnet) == zones


def test_a_pod_without_openstack(pod):
    services = network_services(pod.load())
    assert services["domain"] == "test.internal"
    assert services["networks"] == {
        "bmc": {"subnet": "10.1.0.0/16"},
        "gw": {"subnet": "10.2.0.0/16"},
        "management": {"subnet": "10.3.0.0/16"},
        "data": {"subnet": "10.5.0.0/16", "mtu": 9000},
    }
    assert services["hosts"][0]["name"] == "m1-1-bmc"  # names in the POD may contain dots, DNS labels may not


def test_servers_switches_and_pdus_whose_mac_is_known_get_leases(pod):
    tail = (
        ", servers: [{name: s1, macs: {p1: '02:aa:00:00:00:01', idrac: '02:aa:00:00:00:02'}}, "
        "{name: s2, macs: {p2: '02:aa:00:00:00:03'}}], "
        "switches: [{name: tor, kind: data, mac: '02:aa:00:00:00:04'}, {name: mgmt, kind: management}], "
        "pdus: [{name: pdu, mac: '02:aa:00:00:00:05'}]"
    )
    facts = {"interfaces": ["e"], "e": {"device": "e", "ipv4": {"address": "10.3.1.101"}}}
    plan = served(
        network_services(pod.load(rack_tail=tail)), networks={"management": {"interface": "e"}}, facts=facts, host="s1"
    )
    # s1 is the server itself, and an iDRAC has an address only when one is given.
    assert [lease["name"] for lease in plan["leases"]] == ["s2-p2", "tor-management", "pdu-management"]
    assert plan["problems"] == []


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        (
            {"backup": {"interface": "eno1"}},
            "unknown network 'backup': known are bmc, data, gw, management, storage with a subnet; "
            "set its subnet in pod.yml, or remove the network",
        ),
        (
            {"bmc": {"interface": "eno7"}},
            "network 'bmc' uses interface 'eno7', which server1 does not have: "
            "choose from bond0.11, eno1, eno2, eno3, lo",
        ),
        (
            {"bmc": {"interface": "eno2"}},
            "network 'bmc' uses interface 'eno2' of server1, which has no address in 10.1.1.0/24 "
            "(it has 10.1.3.101): add one such as 10.1.1.101",
        ),
        (
            {"bmc": {"interface": "eno3"}},
            "network 'bmc' uses interface 'eno3' of server1, which has no address in 10.1.1.0/24 "
            "(it has none): add one such as 10.1.1.101",
        ),
        (
            {"gw": {"interface": "eno1", "gateway": "10.1.3.1"}},
            "gateway 10.1.3.1 of network 'gw' is outside its subnet 10.1.2.0/24: correct one of them",
        ),
        (
            {"gw": {"interface": "eno1", "ntp_servers": ["10.1.2.9", "clock"]}},
            "'clock' in ntp_servers of network 'gw' is not an IPv4 address: correct it",
        ),
    ],
)
def test_networks_that_cannot_be_served(pod64, networks, message):
    assert problem(pod64, networks=networks) == message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.1"},
            "address 10.1.2.1 is used by both 'ipum01-gw' (10.1.2.1) and 'nas' (10.1.2.1): use different values",
        ),
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.90", "mac": "0C-42-A1-00-05-01"},
            "MAC 0c:42:a1:00:05:01 is used by both 'ipum01-rnic' (10.1.5.1) and 'nas' (10.1.2.90): use "
            "different values",
        ),
        (
            {"name": "ipum01", "network": "gw", "address": "10.1.2.90"},
            "name ipum01 is used by both 'ipum01-gw' (10.1.2.1) and 'ipum01' (10.1.2.90): use different values",
        ),
        (
            {"name": "nas", "network": "gw", "address": "10.1.3.90"},
            "address 10.1.3.90 of host 'nas' is outside subnet 10.1.2.0/24 of network 'gw': correct one of them",
        ),
        (
            {"name": "nas", "network": "dta", "address": "10.1.2.90"},
            "host 'nas': unknown network 'dta': did you mean 'data'?",
        ),
        (
            {"name": "nas.example", "network": "gw", "address": "10.1.2.90"},
            "'nas.example' is not a host name: use lower case letters, digits and '-', without a dot",
        ),
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.90", "mac": "ff:ff:ff:ff:ff:ff"},
            "'ff:ff:ff:ff:ff:ff' of host 'nas' is not a MAC: use the form 0c:42:a1:00:00:01",
        ),
    ],
)
def test_further_hosts_are_checked(pod64, row, message):
    assert problem(pod64, more=[row]) == message


def test_further_hosts_are_served(pod64):
    row = {"name": "nas", "aliases": ["files"], "network": "data", "address": "10.1.5.90", "mac": "0C-42-A1-00-09-01"}
    plan = served(pod64, more=[row])
    assert plan["problems"] == []
    assert plan["leases"][-1] == {"mac": "0c:42:a1:00:09:01", "address": "10.1.5.90", "name": "nas"}
    assert plan["names"][-1] == {"address": "10.1.5.90", "names": ["nas", "files"]}


def test_all_problems_are_reported(pod):
    rows = [
        "name,rack,unit,bmc_mac,gw_mac,rnic_mac",
        "m_1,rack1,1,02:01:00:00:00:01,02:01:00:00:00:02,02:01:00:00:00:03",
        "m.1,rack1,2,02:01:00:00:00:04,02:01:00:00:00:05,02:01:00:00:00:06",
    ]
    plan = served(network_services(pod.load(rows=rows)), networks={}, domain="-nothing-")
    assert plan["problems"][0] == "'-nothing-' is not a DNS domain such as pod64.example: correct it"
    assert plan["problems"][1] == (
        "name m-1-bmc is used by both 'm-1-bmc' (10.1.1.1) and 'm-1-bmc' (10.1.1.2): use different values"
    )


def test_server_with_the_address_of_a_machine(pod64):
    facts = {"interfaces": ["eno1"], "eno1": {"device": "eno1", "ipv4": {"address": "10.1.1.1"}}}
    assert problem(pod64, networks={"bmc": {"interface": "eno1"}}, facts=facts) == (
        "address 10.1.1.1 is used by both 'ipum01-bmc' (10.1.1.1) and 'server1-bmc' (10.1.1.1): use different values"
    )


def test_filter_served_by(pod64):
    result = served_by(pod64, "server1", facts=FACTS, networks=NETWORKS, domain="lab.example")
    assert (result["problems"], result["domain"], len(result["leases"])) == ([], "lab.example", 48)
    with pytest.raises(AnsibleFilterError, match="Pass the variable pod_services"):
        served_by([], "server1", facts=FACTS, networks=NETWORKS)
