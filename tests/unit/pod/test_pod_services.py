# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases, names and zones of a POD, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.openipu.pod.plugins.filter.served_by import served_by
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.services import network_services
from ansible_collections.openipu.pod.plugins.module_utils.pod.serving import reverse_zones, serve

ROOT = Path(__file__).resolve().parents[3]
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


def problem(services, **wanted):
    (sentence,) = served(services, **wanted)["problems"]
    return sentence


def test_all_48_macs_get_a_lease_and_a_name(pod64):
    plan = served(pod64)
    assert plan["problems"] == []
    assert len(plan["leases"]) == len({lease["mac"] for lease in plan["leases"]}) == 48
    assert plan["leases"][0] == {"mac": "0c:42:a1:00:01:01", "address": "10.1.1.1", "name": "ipum01-bmc"}
    assert plan["leases"][-1] == {"mac": "0c:42:a1:00:05:10", "address": "10.1.5.16", "name": "ipum16-rnic"}


def test_everything_with_an_address_has_names(pod64):
    names = {row["address"]: row["names"] for row in served(pod64)["names"]}
    assert names["10.1.2.1"] == ["ipum01-gw", "ipum01"]  # what Ansible calls it is where Ansible reaches it
    assert names["10.1.1.1"] == ["ipum01-bmc"]
    assert names["10.1.3.104"] == ["server4-p2", "server4"]
    assert names["10.1.3.204"] == ["server4-idrac"]
    assert names["10.1.3.111"] == ["tor1-management", "tor1"]
    assert names["10.1.1.101"] == ["server1-bmc"]  # its own, which no file of the POD tells
    assert len(names) == 48 + 4 * 4 + 2 + 2 + 1


def test_networks_have_what_openstack_would_tell_them(pod64):
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


def test_what_is_not_served_gets_names_and_no_leases(pod64):
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
    assert services["hosts"][0]["name"] == "m1-1-bmc"  # a name in the POD may have dots, a label may not


def test_servers_switches_and_pdus_whose_mac_is_known_get_leases(pod):
    tail = (
        ", servers: [{name: s1, macs: {p1: '02:aa:00:00:00:01', idrac: '02:aa:00:00:00:02'}}, "
        "{name: s2, macs: {p2: '02:aa:00:00:00:03'}}], "
        "switches: [{name: tor, kind: data, mac: '02:aa:00:00:00:04'}], pdus: [{name: pdu, mac: '02:aa:00:00:00:05'}]"
    )
    facts = {"interfaces": ["e"], "e": {"device": "e", "ipv4": {"address": "10.3.1.101"}}}
    plan = served(
        network_services(pod.load(rack_tail=tail)), networks={"management": {"interface": "e"}}, facts=facts, host="s1"
    )
    # s1 is the server itself, and an iDRAC has an address only when one is given.
    assert [lease["name"] for lease in plan["leases"]] == ["s2-p2", "tor-management", "pdu-management"]
    assert plan["problems"] == []


@pytest.mark.parametrize(
    ("networks", "sentence"),
    [
        (
            {"storage": {"interface": "eno1"}},
            "unknown network 'storage': known are bmc, data, gw, management with a subnet; "
            "give it one in pod.yml, or do not serve it",
        ),
        (
            {"bmc": {"interface": "eno7"}},
            "network 'bmc' is to be served on interface 'eno7', which server1 does not have: "
            "it has bond0.11, eno1, eno2, eno3, lo",
        ),
        (
            {"bmc": {"interface": "eno2"}},
            "network 'bmc' is to be served on interface 'eno2' of server1, which has no address in 10.1.1.0/24 "
            "(it has 10.1.3.101): give it one such as 10.1.1.101",
        ),
        (
            {"bmc": {"interface": "eno3"}},
            "network 'bmc' is to be served on interface 'eno3' of server1, which has no address in 10.1.1.0/24 "
            "(it has none at all): give it one such as 10.1.1.101",
        ),
        (
            {"gw": {"interface": "eno1", "gateway": "10.1.3.1"}},
            "gateway 10.1.3.1 of network 'gw' is outside its subnet 10.1.2.0/24: correct one of them",
        ),
        (
            {"gw": {"interface": "eno1", "ntp_servers": ["10.1.2.9", "clock"]}},
            "'clock' in ntp_servers of network 'gw' is not an IPv4 address",
        ),
    ],
)
def test_networks_that_cannot_be_served(pod64, networks, sentence):
    assert problem(pod64, networks=networks) == sentence


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.1"},
            "address 10.1.2.1 is given to both 'ipum01-gw' (10.1.2.1) and 'nas' (10.1.2.1): give each its own",
        ),
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.90", "mac": "0C-42-A1-00-05-01"},
            "MAC 0c:42:a1:00:05:01 is given to both 'ipum01-rnic' (10.1.5.1) and 'nas' (10.1.2.90): give each its own",
        ),
        (
            {"name": "ipum01", "network": "gw", "address": "10.1.2.90"},
            "name ipum01 is given to both 'ipum01-gw' (10.1.2.1) and 'ipum01' (10.1.2.90): give each its own",
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
            "'nas.example' is no host name: lower case letters, digits and '-', without a dot",
        ),
        (
            {"name": "nas", "network": "gw", "address": "10.1.2.90", "mac": "ff:ff:ff:ff:ff:ff"},
            "'ff:ff:ff:ff:ff:ff' of host 'nas' is not a MAC such as 0c:42:a1:00:00:01",
        ),
    ],
)
def test_hosts_beside_those_of_the_pod(pod64, row, sentence):
    assert problem(pod64, more=[row]) == sentence


def test_hosts_beside_those_of_the_pod_are_served(pod64):
    row = {"name": "nas", "aliases": ["files"], "network": "data", "address": "10.1.5.90", "mac": "0C-42-A1-00-09-01"}
    plan = served(pod64, more=[row])
    assert plan["problems"] == []
    assert plan["leases"][-1] == {"mac": "0c:42:a1:00:09:01", "address": "10.1.5.90", "name": "nas"}
    assert plan["names"][-1] == {"address": "10.1.5.90", "names": ["nas", "files"]}


def test_two_devices_of_one_label_and_a_bad_domain_are_both_told(pod):
    rows = [
        "name,rack,unit,bmc_mac,gw_mac,rnic_mac",
        "m_1,rack1,1,02:01:00:00:00:01,02:01:00:00:00:02,02:01:00:00:00:03",
        "m.1,rack1,2,02:01:00:00:00:04,02:01:00:00:00:05,02:01:00:00:00:06",
    ]
    plan = served(network_services(pod.load(rows=rows)), networks={}, domain="-nothing-")
    assert plan["problems"][0] == "'-nothing-' is no DNS domain such as pod64.example: give another"
    assert plan["problems"][1] == (
        "name m-1-bmc is given to both 'm-1-bmc' (10.1.1.1) and 'm-1-bmc' (10.1.1.2): give each its own"
    )


def test_an_address_of_the_server_that_is_a_machines(pod64):
    facts = {"interfaces": ["eno1"], "eno1": {"device": "eno1", "ipv4": {"address": "10.1.1.1"}}}
    assert problem(pod64, networks={"bmc": {"interface": "eno1"}}, facts=facts) == (
        "address 10.1.1.1 is given to both 'ipum01-bmc' (10.1.1.1) and 'server1-bmc' (10.1.1.1): give each its own"
    )


def test_the_filter_takes_what_the_inventory_tells(pod64):
    told = served_by(pod64, "server1", facts=FACTS, networks=NETWORKS, domain="lab.example")
    assert (told["problems"], told["domain"], len(told["leases"])) == ([], "lab.example", 48)
    with pytest.raises(AnsibleFilterError, match="takes the variable pod_services"):
        served_by([], "server1", facts=FACTS, networks=NETWORKS)
