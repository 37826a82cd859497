# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenStack for tests: clients can create the objects of a rack, and policies reject all others."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection
from openstack.exceptions import ForbiddenException

from tests.waiting import until
from tools.openstack.site import CACHE, HOSTS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

VLAN = 2901  # outside the VLANs of tenants and racks


def unique_name(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def wait_until(read: Callable[[], Any], is_done: Callable[[Any], bool], seconds: float = 30) -> Any:
    (value,) = until(lambda: (found,) if is_done(found := read()) else None, seconds)
    return value


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def network(admin: Connection, cleanup: ExitStack) -> Any:
    """Provider network such as IPU data, with one subnet."""
    name = unique_name("ipu-data")
    created = admin.network.create_network(
        name=name,
        provider_network_type="vlan",
        provider_physical_network="physnet100g",
        provider_segmentation_id=VLAN,
        mtu=9000,
        dns_domain="ipupod.example.",
    )
    cleanup.callback(admin.network.delete_network, created)
    admin.network.create_subnet(name=name, network_id=created.id, ip_version=4, cidr="10.5.0.0/22")
    return created


def test_all_services_respond(admin: Connection) -> None:
    names = {service.name for service in admin.identity.services()}
    assert names - {"ironic"} == {"keystone", "neutron", "glance", "placement", "nova", "cinder", "manila"}
    list(admin.image.images())
    agents = {(agent.agent_type, agent.host, agent.is_alive) for agent in admin.network.agents()}
    assert agents == {(kind, host, True) for kind in ("Open vSwitch agent", "NIC Switch agent") for host in HOSTS}
    hypervisors = {(item.name, item.state) for item in admin.compute.hypervisors()}
    assert hypervisors == {(host, "up") for host in HOSTS}
    volume_services = {(item.binary, item.state) for item in admin.block_storage.services()}
    assert volume_services == {("cinder-scheduler", "up"), ("cinder-volume", "up")}


def test_bulk_ports_have_addresses_names_and_no_port_security(
    admin: Connection, network: Any, cleanup: ExitStack
) -> None:
    bodies = [
        {
            "network_id": network.id,
            "name": f"ipum{number}-rnic",
            "mac_address": f"04:3f:72:0a:00:{number:02x}",
            "fixed_ips": [{"ip_address": f"10.5.1.{number}"}],
            "dns_name": f"ipum{number}",
            "is_port_security_enabled": False,
        }
        for number in range(1, 4)
    ]
    ports = list(admin.network.create_ports(bodies))
    for port in ports:
        cleanup.callback(admin.network.delete_port, port)
    found = {port.mac_address: port for port in admin.network.ports(network_id=network.id)}
    for body in bodies:
        port = found[body["mac_address"]]
        assert port.fixed_ips[0]["ip_address"] == body["fixed_ips"][0]["ip_address"]
        assert port.dns_assignment[0]["fqdn"] == f"{body['dns_name']}.ipupod.example."
        assert port.is_port_security_enabled is False


def test_tenants_list_only_networks_shared_with_them(
    admin: Connection, connect: Callable[[str], Connection], network: Any, cleanup: ExitStack
) -> None:
    tenant_a, tenant_b = connect("tenant-a"), connect("tenant-b")
    assert network.id not in {net.id for net in tenant_a.network.networks()}
    project = admin.identity.find_project("tenant-a")
    share = admin.network.create_rbac_policy(
        object_type="network", object_id=network.id, action="access_as_shared", target_project_id=project.id
    )
    cleanup.callback(admin.network.delete_rbac_policy, share)
    assert network.id in {net.id for net in tenant_a.network.networks()}
    assert network.id not in {net.id for net in tenant_b.network.networks()}
    port = tenant_a.network.create_port(network_id=network.id, binding_vnic_type="direct")
    cleanup.callback(admin.network.delete_port, port.id)
    with pytest.raises(ForbiddenException):
        tenant_a.network.create_network(
            provider_network_type="vlan", provider_physical_network="physnet100g", provider_segmentation_id=13
        )


def test_a_router_has_a_gateway_with_source_nat(admin: Connection, network: Any, cleanup: ExitStack) -> None:
    external = admin.network.create_network(
        name=unique_name("external"),
        provider_network_type="vlan",
        provider_physical_network="physnet1g",
        provider_segmentation_id=VLAN,
        is_router_external=True,
    )
    cleanup.callback(admin.network.delete_network, external)
    admin.network.create_subnet(network_id=external.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False)
    router = admin.network.create_router(
        name=unique_name("ipu-data"), external_gateway_info={"network_id": external.id, "enable_snat": True}
    )
    cleanup.callback(admin.network.delete_router, router)
    subnet = next(iter(admin.network.subnets(network_id=network.id)))
    admin.network.add_interface_to_router(router, subnet_id=subnet.id)
    cleanup.callback(admin.network.remove_interface_from_router, router, subnet_id=subnet.id)
    gateway = admin.network.get_router(router.id).external_gateway_info
    assert gateway["enable_snat"] is True
    assert gateway["external_fixed_ips"][0]["ip_address"].startswith("192.0.2.")


def test_a_server_gets_a_virtual_function_dedicated_processors_and_a_volume(
    admin: Connection, network: Any, cleanup: ExitStack
) -> None:
    image = admin.create_image(
        unique_name("image"), data=b"\0" * 1024, container_format="bare", disk_format="raw", wait=True
    )
    cleanup.callback(admin.image.delete_image, image)
    flavor = admin.compute.create_flavor(name=unique_name("poplar"), vcpus=16, ram=32 * 1024, disk=10)
    cleanup.callback(admin.compute.delete_flavor, flavor)
    specs = {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "1GB", "hw:numa_nodes": "1"}
    admin.compute.create_flavor_extra_specs(flavor, specs)
    volume = admin.create_volume(size=1, name=unique_name("scratch"), wait=True, timeout=60)
    cleanup.callback(admin.delete_volume, volume.id, wait=True)
    port = admin.network.create_port(
        network_id=network.id, binding_vnic_type="direct", dns_name="vm1", is_port_security_enabled=False
    )
    cleanup.callback(admin.network.delete_port, port)
    server = admin.compute.create_server(
        name="vm1",
        image_id=image.id,
        flavor_id=flavor.id,
        networks=[{"port": port.id}],
        availability_zone=f"nova:{HOSTS[1]}",
    )
    cleanup.callback(admin.delete_server, server.id, wait=True)
    admin.compute.wait_for_server(server, wait=120)

    bound = wait_until(lambda: admin.network.get_port(port.id), lambda current: current.status == "ACTIVE")
    assert (bound.binding_host_id, bound.binding_vif_type) == (HOSTS[1], "hw_veb")
    assert bound.binding_vif_details["vlan"] == str(VLAN)
    assert bound.binding_profile["physical_network"] == "physnet100g"
    assert bound.binding_profile["pci_slot"].startswith("0000:41:")

    host = next(provider for provider in admin.placement.resource_providers(name=HOSTS[1]))
    usage = admin.placement.get(f"/resource_providers/{host.id}/usages").json()["usages"]
    assert (usage["PCPU"], usage["VCPU"], usage["MEMORY_MB"]) == (16, 0, 32 * 1024)

    admin.compute.create_volume_attachment(server, volume_id=volume.id)
    admin.block_storage.wait_for_status(volume, "in-use", failures=["error"], wait=60)


def test_a_volume_moves_between_servers_and_starts_one(admin: Connection, network: Any, cleanup: ExitStack) -> None:
    """Volumes as tenants use them: detach, attach to another server, take a snapshot, start a server from one."""
    image = admin.create_image(
        unique_name("image"), data=b"\0" * 1024, container_format="bare", disk_format="raw", wait=True
    )
    cleanup.callback(admin.image.delete_image, image)
    flavor = admin.compute.create_flavor(name=unique_name("small"), vcpus=1, ram=512, disk=1)
    cleanup.callback(admin.compute.delete_flavor, flavor)

    def server(**boot: Any) -> Any:
        created = admin.create_server(
            unique_name("vm"), flavor=flavor.id, network=network.id, wait=True, timeout=120, **boot
        )
        cleanup.callback(admin.delete_server, created.id, wait=True)
        return created

    def attached(volume: Any) -> list[str]:
        return [each["server_id"] for each in admin.block_storage.get_volume(volume.id).attachments]

    volume = admin.create_volume(size=1, name=unique_name("data"), wait=True, timeout=60)
    cleanup.callback(admin.delete_volume, volume.id, wait=True)
    first, second = server(image=image.id), server(image=image.id)
    admin.attach_volume(first, volume, wait=True, timeout=60)
    assert attached(volume) == [first.id]
    admin.detach_volume(first, volume, wait=True, timeout=60)
    assert attached(volume) == []
    admin.attach_volume(second, admin.get_volume(volume.id), wait=True, timeout=60)
    assert attached(volume) == [second.id]
    snapshot = admin.create_volume_snapshot(volume.id, force=True, wait=True, timeout=60)
    cleanup.callback(admin.delete_volume_snapshot, snapshot.id, wait=True)
    assert (snapshot.volume_id, snapshot.status) == (volume.id, "available")
    admin.detach_volume(second, volume, wait=True, timeout=60)

    # The driver of the volumes copies no images.
    root = admin.create_volume(size=1, name=unique_name("root"), wait=True, timeout=60)
    cleanup.callback(admin.delete_volume, root.id, wait=True)
    admin.set_volume_bootable(root.id)
    started = server(boot_volume=root.id)
    assert attached(root) == [started.id]


def test_the_command_line_creates_and_lists_networks(cloud: Path, cleanup: ExitStack) -> None:
    def openstack(*arguments: str) -> Any:
        line = [str(CACHE / "venv" / "bin" / "openstack"), *arguments]
        result = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout) if result.stdout else None

    name = unique_name("by-hand")
    created = openstack("network", "create", name, "-f", "json")
    cleanup.callback(openstack, "network", "delete", created["id"])
    assert 2000 <= created["provider:segmentation_id"] < 2200
    assert name in {row["Name"] for row in openstack("network", "list", "-f", "json")}
    assert {row["Name"] for row in openstack("project", "list", "-f", "json")} >= {"tenant-a", "tenant-b"}
