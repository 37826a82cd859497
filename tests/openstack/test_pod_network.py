# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a POD in a real Neutron, read by the command line of OpenStack."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.neutron_pod import AccessLog, Plan, info, result_keys, run
from tools.openstack.site import CACHE

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def command_line(*arguments: str) -> Any:
    """Return the output of the command line `openstack` as data."""
    program = CACHE / "venv" / "bin" / "openstack"
    line = subprocess.run([program, *arguments, "-f", "json"], capture_output=True, text=True, check=True)
    return json.loads(line.stdout)


def test_creation_of_a_complete_pod_and_idempotence(admin: Connection, plan: Plan, log: AccessLog) -> None:
    options = plan.options()
    with log.no_writes():
        predicted = run(check=True, diff=True, **options)
    assert predicted["changed"]
    first = run(diff=True, **options)
    assert not first.get("failed"), first
    assert (result_keys(first), first["diff"]) == (result_keys(predicted), predicted["diff"])
    assert {name: len(verbs["created"]) for name, verbs in result_keys(first).items()} == {
        "networks": 5,
        "subnets": 6,
        "security_groups": 7,
        "ports": 12,
        "routers": 2,
        "router_interfaces": 3,
        "shares": 5,
    }
    for check in (False, True):
        with log.no_writes():
            second = run(check=check, diff=True, **options)
        assert not second["changed"]
        assert {verb for verbs in result_keys(second).values() for verb in verbs} == {"unchanged"}
        assert second["diff"] == {"before": {}, "after": {}}
        assert second["ids"] == first["ids"]
    assert predicted["ids"] == {}
    assert {name: len(ids) for name, ids in first["ids"].items()} == {
        name: len(verbs["created"]) for name, verbs in result_keys(first).items()
    }

    # The output of the command line.
    data = command_line("network", "show", f"{plan.name}-data")
    assert data["id"] == first["ids"]["networks"][data["name"]]
    assert (data["provider:segmentation_id"], data["mtu"], data["port_security_enabled"]) == (
        plan.vlan + 2,
        9000,
        False,
    )
    assert data["dns_domain"] == f"{plan.name}.example."
    subnet = command_line("subnet", "show", f"{plan.name}-management")
    assert subnet["allocation_pools"] == [{"start": "10.1.3.150", "end": "10.1.3.253"}]
    # No router leads to the DNS server, so Neutron's DHCP servers answer DNS requests.
    assert (subnet["gateway_ip"], subnet["dns_nameservers"]) == ("10.1.3.254", [])
    assert command_line("subnet", "show", f"{plan.name}-gw")["dns_nameservers"] == ["10.1.2.101"]
    for kind, address in (("bmc", "10.1.1.3"), ("gw", "10.1.2.3"), ("rnic", "10.1.5.3")):
        port = command_line("port", "show", f"ipum03-{kind}")
        assert port["id"] == first["ids"]["ports"][port["name"]]
        assert port["mac_address"] == plan.mac(3, kind)
        assert [fixed["ip_address"] for fixed in port["fixed_ips"]] == [address]
        assert port["dns_assignment"][0]["fqdn"].startswith(f"ipum03-{kind}.")
        assert (port["port_security_enabled"], port["tags"]) == (False, [f"openipu.pod={plan.name}"])
    name = f"{plan.name}-controller-bmc"
    rules = command_line("security", "group", "rule", "list", name, "--ethertype", "IPv4")
    (group,) = (group for group in options["config"]["security_groups"] if group["name"] == name)
    assert sorted(
        (rule["Direction"], rule["IP Protocol"], rule["Port Range"], rule["IP Range"]) for rule in rules
    ) == sorted(
        (rule["direction"], rule["protocol"], "{0}:{0}".format(rule["port"]) if "port" in rule else "", rule["remote"])
        for rule in group["rules"]
    )
    router = command_line("router", "show", plan.name)
    assert router["external_gateway_info"]["enable_snat"] is True
    assert {item["ip_address"] for item in router["interfaces_info"]} == {"10.4.0.254", "10.1.5.254"}
    interfaces = {id for key, id in first["ids"]["router_interfaces"].items() if key.startswith(f"{plan.name}/")}
    assert interfaces == {item["port_id"] for item in router["interfaces_info"]}


def test_only_drift_is_corrected(admin: Connection, plan: Plan, log: AccessLog) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    ports = plan.ports(admin)
    admin.network.update_port(ports["ipum01-rnic"], dns_name="other", description="kept")
    admin.network.update_subnet(admin.network.find_subnet(f"{plan.name}-data"), dns_nameservers=["192.0.2.1"])
    group = admin.network.find_security_group(f"{plan.name}-poplar-storage")
    admin.network.create_security_group_rule(security_group_id=group.id, direction="ingress", protocol="tcp")
    admin.network.delete_port(ports["ipum02-gw"])
    with log.requests() as requests:
        result = run(**options)
    assert not result.get("failed"), result
    changes = {
        name: {verb: keys for verb, keys in verbs.items() if verb != "unchanged"}
        for name, verbs in result_keys(result).items()
    }
    assert {name: verbs for name, verbs in changes.items() if verbs} == {
        "subnets": {"updated": [f"{plan.name}-data"]},
        "security_groups": {"updated": [f"{plan.name}-poplar-storage"]},
        "ports": {"created": ["ipum02-gw"], "updated": ["ipum01-rnic"]},
    }
    writes = sorted(re.sub(r"/v2.0/([a-z-]+).*", r"\1", line) for line in requests if not line.startswith("GET "))
    assert writes == ["DELETE security-group-rules", "POST ports", "PUT ports", "PUT subnets"]
    port = plan.ports(admin)["ipum01-rnic"]
    assert (port.dns_name, port.description) == ("ipum01-rnic", "kept")


def test_renamed_networks_get_their_names_back(admin: Connection, plan: Plan, log: AccessLog) -> None:
    """The data network has a VLAN. Neutron selected the segment of the control network."""
    options = plan.options()
    assert not run(**options).get("failed")
    before = {name: plan.network(admin, name).id for name in ("data", "control")}
    control_subnet = admin.network.find_subnet(f"{plan.name}-control", ignore_missing=False)
    for rename_subnet in (False, True):
        for name, id in before.items():
            admin.network.update_network(id, name=f"{plan.name}-renamed-{name}")
        if rename_subnet:
            admin.network.update_subnet(control_subnet, name=f"{plan.name}-renamed")
        result = run(prune=True, **options)
        assert not result.get("failed"), result
        changes = {
            name: {verb: sorted(keys) for verb, keys in verbs.items() if verb != "unchanged"}
            for name, verbs in result_keys(result).items()
        }
        assert {name: verbs for name, verbs in changes.items() if verbs} == {
            "networks": {"updated": [f"{plan.name}-control", f"{plan.name}-data"]},
            **({"subnets": {"updated": [f"{plan.name}-control"]}} if rename_subnet else {}),
        }
        assert {name: plan.network(admin, name).id for name in before} == before
        with log.no_writes():
            assert not run(**options)["changed"]


@pytest.mark.parametrize("shared", [True, False])
def test_a_renamed_network_without_a_router_gets_its_name_back(
    admin: Connection, plan: Plan, log: AccessLog, shared: bool
) -> None:
    options = plan.options()
    config = options["config"]
    del config["routers"]
    if not shared:
        config["shares"] = [share for share in config["shares"] if share["name"] != f"{plan.name}-control"]
    assert not run(**options).get("failed")
    before = plan.network(admin, "control").id
    subnet = admin.network.find_subnet(f"{plan.name}-control", ignore_missing=False)
    admin.network.update_network(before, name=f"{plan.name}-renamed")
    admin.network.update_subnet(subnet, name=f"{plan.name}-renamed")
    result = run(prune=True, **options)
    assert not result.get("failed"), result
    assert {name: verbs["updated"] for name, verbs in result_keys(result).items() if verbs.get("updated")} == {
        "networks": [f"{plan.name}-control"],
        "subnets": [f"{plan.name}-control"],
    }
    assert plan.network(admin, "control").id == before
    with log.no_writes():
        assert not run(**options)["changed"]


def test_ports_follow_their_macs(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    before = plan.ports(admin)
    ports = {port["name"]: port for port in options["config"]["ports"]}
    first, second, third = (ports[f"ipum0{n}-rnic"] for n in (1, 2, 3))
    first["mac"], second["mac"], third["mac"] = second["mac"], third["mac"], "0c:42:a1:00:09:09"
    result = run(prune=True, **options)
    assert not result.get("failed"), result
    after = plan.ports(admin)
    assert len(after) == len(before)
    for name in ("ipum01-rnic", "ipum02-rnic", "ipum03-rnic"):
        port = after[name]
        assert (port.mac_address, port.dns_name) == (ports[name]["mac"], name)
        assert [fixed["ip_address"] for fixed in port.fixed_ips] == ports[name]["addresses"]
    assert after["ipum01-rnic"].id == before["ipum02-rnic"].id
    assert after["ipum02-rnic"].id == before["ipum03-rnic"].id
    assert result["ids"]["ports"] == {name: port.id for name, port in after.items()}
    assert not run(prune=True, **options)["changed"]


def test_two_tenants_list_their_data_networks_but_neither_bmc_nor_gw(
    admin: Connection, plan: Plan, connect: Callable[[str], Connection]
) -> None:
    plan.tenants.append({"project": "tenant-b", "vlan": plan.vlan + 4, "allocation": "upper"})
    result = run(**plan.options())
    assert not result.get("failed"), result
    for tenant, networks in (
        ("tenant-a", ("data", "control", "storage")),
        ("tenant-b", ("data-tenant-b", "control-tenant-b")),
    ):
        names = {net.name for net in connect(tenant).network.networks() if net.name.startswith(plan.name)}
        assert names == {f"{plan.name}-{network}" for network in networks}
    ports = plan.ports(admin)
    for number, name in ((1, "data"), (2, "data"), (3, "data-tenant-b"), (4, "data-tenant-b")):
        assert ports[f"ipum0{number}-rnic"].network_id == plan.network(admin, name).id
    # A removed tenant loses its share, and only that.
    plan.tenants.pop()
    result = run(prune=True, **plan.options())
    assert not result.get("failed"), result
    assert not [net for net in connect("tenant-b").network.networks() if net.name.startswith(plan.name)]
    assert not admin.network.find_network(f"{plan.name}-data-tenant-b")
    assert plan.ports(admin)["ipum03-rnic"].network_id == plan.network(admin, "data").id


def test_replaced_objects_are_removed_after_their_references(admin: Connection, plan: Plan) -> None:
    """Change the addresses of a data network and the gateway of its router in one run."""
    options = plan.options()
    config = options["config"]
    external_name = f"{plan.name}-out"
    external = {"name": external_name, "vlan": plan.vlan + 5, "physical_network": "physnet1g", "external": True}
    networks, subnets = config["networks"], config["subnets"]
    config["networks"] = [*networks, external]
    config["subnets"] = [
        *subnets,
        {"name": external_name, "network": external_name, "cidr": "198.51.100.0/24", "dhcp": False},
    ]
    config["routers"][0]["external_network"] = external_name
    assert not run(**options).get("failed")
    before = plan.ports(admin)

    old, new = f"{plan.name}-data", f"{plan.name}-data-2"
    (data,) = (subnet for subnet in subnets if subnet["name"] == old)
    new_subnet = {"name": new, "network": data["network"], "cidr": "10.1.15.0/24", "gateway": "10.1.15.254"}
    config["networks"], config["subnets"] = networks, [sub for sub in subnets if sub is not data] + [new_subnet]
    config["routers"][0]["external_network"] = plan.external
    for interface in config["routers"][0]["interfaces"]:
        if interface["subnet"] == old:
            interface.update(subnet=new, address="10.1.15.254")
    for port in config["ports"]:
        port["addresses"] = [address.replace("10.1.5.", "10.1.15.") for address in port["addresses"]]
    result = run(prune=True, **options)
    assert not result.get("failed"), result
    assert result["networks"]["removed"] == [external_name]
    assert sorted(result["subnets"]["removed"]) == [old, external_name]
    after = plan.ports(admin)
    assert {name: port.id for name, port in after.items()} == {name: port.id for name, port in before.items()}
    assert after["ipum02-rnic"].fixed_ips[0]["ip_address"] == "10.1.15.2"
    assert not run(prune=True, **options)["changed"]


def test_rules_that_neutron_normalizes_are_idempotent(admin: Connection, plan: Plan) -> None:
    rules = [
        {"direction": "ingress", "protocol": "tcp", "port": 1, "port_max": 65535},
        {"direction": "ingress", "protocol": "UDP", "port": 53, "remote": "0.0.0.0/0"},
        {"direction": "egress", "protocol": "icmp", "ethertype": "IPv6"},
        {"direction": "ingress", "protocol": "1", "ethertype": "IPv6"},
    ]
    options = {"pod": plan.name, "config": {"security_groups": [{"name": f"{plan.name}-g", "rules": rules}]}}
    for changed in (True, False):
        result = run(**options)
        assert not result.get("failed"), result
        assert result["changed"] == changed


def test_an_owned_port_on_a_foreign_network(admin: Connection, plan: Plan) -> None:
    site = admin.network.create_network(name=f"site-{plan.name}")
    subnet = admin.network.create_subnet(name=site.name, network_id=site.id, ip_version=4, cidr="10.9.0.0/24")
    port = {"name": "gateway", "network": site.name, "mac": plan.mac(9, "rnic"), "addresses": ["10.9.0.9"]}
    try:
        assert not run(pod=plan.name, config={"ports": [port]}).get("failed")
        (port_info,) = info(pod=plan.name)["ports"]
        assert (port_info["name"], port_info["network"]) == ("gateway", site.name)
        deleted = run(pod=plan.name, state="absent")
        assert deleted["ports"]["removed"] == ["gateway"]
        assert not list(admin.network.ports(network_id=site.id, name="gateway"))
    finally:
        admin.network.delete_subnet(subnet)
        admin.network.delete_network(site)


def test_address_scope_and_subnet_pool(admin: Connection, plan: Plan) -> None:
    config = plan.options()["config"]
    name = plan.name
    config_subset = {
        "address_scopes": [{"name": name}],
        "subnet_pools": [{"name": name, "prefixes": ["10.1.4.0/24", "10.1.5.0/24"], "address_scope": name}],
        "networks": [net for net in config["networks"] if net["name"] == f"{name}-data"],
        "subnets": [{**sub, "subnet_pool": name} for sub in config["subnets"] if sub["name"] == f"{name}-data"],
    }
    assert not run(pod=name, config=config_subset).get("failed")
    assert not run(pod=name, config=config_subset)["changed"]
    scope = admin.network.find_address_scope(name)
    pool = admin.network.find_subnet_pool(name)
    assert (pool.address_scope_id, pool.prefixes) == (scope.id, ["10.1.4.0/23"])
    assert admin.network.find_subnet(f"{name}-data").subnet_pool_id == pool.id
    assert not run(pod=name, state="absent").get("failed")
    assert not admin.network.find_address_scope(name)
    # An address scope of a site is not owned; an owned one without pools is found by its name.
    site = admin.network.create_address_scope(name=f"site-{name}", ip_version=4)
    try:
        config_subset = {"subnet_pools": [{"name": name, "prefixes": ["10.1.4.0/23"], "address_scope": site.name}]}
        assert not run(pod=name, config={**config_subset, "address_scopes": [{"name": name}]}).get("failed")
        deleted = run(pod=name, state="absent")
        assert (deleted["subnet_pools"]["removed"], deleted["address_scopes"]["removed"]) == ([name], [name])
        assert admin.network.find_address_scope(site.id)
    finally:
        admin.network.delete_address_scope(site)
