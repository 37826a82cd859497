# SPDX-License-Identifier: GPL-3.0-or-later
"""Life cycle of a vPOD on a real OpenStack and the controller of a twin."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin, changed
from tests.integration.cli.cli_support import Cli
from tests.openstack.neutron_pod import Plan, run
from tests.openstack.secure_controller import ADMINISTRATOR, take_over, use_as_administrator
from tests.openstack.vpod_order import inventory_vars, partitions, roles, servers
from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def test_create_read_and_destroy(
    admin: Cloud, plan: Plan, twin: OwnTwin, order: dict[str, Any], play: Callable[..., Any], connect: Any
) -> None:
    name = order["vpod_name"]
    rejected = play("vpod_create.yml", check=False, vpod_name=plan.name).stdout
    assert "the POD has the same name. Set vpod_name to another name." in " ".join(rejected.split())
    team = {"ipus": 12, "project": "tenant-a"}
    rejected = play("vpod_create.yml", check=False, pod_teams={"a": team}).stdout
    assert f"'{name}' for 'tenant-a': other vPODs and orders of its team occupy 0 of 12" in " ".join(rejected.split())
    order["pod_teams"] = {"a": {**team, "ipus": 16}}
    play("vpod_create.yml", "--check")
    assert (partitions(twin), servers(admin, order)) == ({}, {})
    play("vpod_create.yml")
    rejected = play("vpod_create.yml", check=False, vpod_name=f"{name}2", vpod_ipus=1).stdout
    assert "its team occupy 16 of 16 IPUs, and this one occupies 4" in " ".join(rejected.split())
    assert partitions(twin) == {name: virmgrpc.PS_ACTIVE}
    found = servers(admin, order)
    assert {server: details.status for server, details in found.items()} == {
        f"{name}-poplar": "ACTIVE",
        f"{name}-controller": "ACTIVE",
    }
    poplar = found[f"{name}-poplar"]
    assert (poplar.project_id, poplar.hypervisor_hostname) == (admin.identity.find_project("tenant-a").id, HOSTS[0])
    user_data = yaml.safe_load(base64.b64decode(poplar.user_data))
    file = next(each for each in user_data["write_files"] if each["path"] == f"/etc/ipuof.conf.d/{name}.conf")
    assert name in base64.b64decode(file["content"]).decode()
    assert user_data["ssh_authorized_keys"] == ["ssh-ed25519 AAAA alice"]
    controller = found[f"{name}-controller"]
    assert controller.has_config_drive
    check_control_instance(admin, plan, name, controller)
    control = plan.ports(admin)[f"{name}-controller-control"].fixed_ips[0]["ip_address"]
    endpoint = next(file for file in user_data["write_files"] if file["path"] == "/etc/vipu/vipu-cli.hcl")
    assert endpoint["content"] == f'api-host="{control}"\napi-port="8090"\n'
    tenant = connect("tenant-a")
    visible = {net.name for net in tenant.network.networks() if net.name.startswith(plan.name)}
    assert visible == {f"{plan.name}-{network}" for network in ("data", "control", "storage")}
    data = next(port for port in tenant.network.ports() if port.name == f"{name}-poplar-data")
    assert (data.binding_vnic_type, data.device_id) == ("direct", poplar.id)
    # Bound by Open vSwitch, for its hardware offload. Sites with offload have no sriovnicswitch.
    assert plan.ports(admin)[data.name].binding_vif_type == "ovs"
    assert plan.ports(admin)[data.name].hardware_offload_type == "switchdev"
    assert roles(admin, "tenant-a") == []
    machines = plan.ports(admin)[f"{name}-controller-{plan.name}-bmc-gw"]
    assert sorted(fixed["ip_address"].rsplit(".", 2)[1] for fixed in machines.fixed_ips) == ["1", "2"]

    assert changed(play("vpod_create.yml")) == 0
    # The address is for new VMs.
    assert changed(play("vpod_create.yml", vpod_controller_address="10.4.0.77")) == 0
    output = play("vpod_info.yml").stdout
    for text in (name, f"{plan.name}-data", f"{name}-poplar", "ACTIVE"):
        assert text in output
    rejected = play("vpod_create.yml", check=False, vpod_name=f"{name}2", vpod_tenant="tenant-b").stdout
    assert "it is in use by tenant-a. Destroy their vPODs first, or add a data network" in " ".join(rejected.split())

    # A change of the POD keeps the objects of the vPOD.
    plan.machines = 3
    order.update(inventory_vars(plan))
    assert changed(play("openstack.yml")) == 1
    assert not [port for port in plan.ports(admin) if port.startswith("ipum04")]
    assert {net.name for net in tenant.network.networks() if net.name.startswith(plan.name)} == visible
    assert [port.id for port in tenant.network.ports() if port.name == data.name] == [data.id]
    assert plan.ports(admin)[machines.name].fixed_ips == machines.fixed_ips
    assert changed(play("vpod_create.yml")) == 0

    play("vpod_destroy.yml")
    assert (partitions(twin), servers(admin, order)) == ({}, {})
    assert not [net for net in tenant.network.networks() if net.name.startswith(plan.name)]
    assert not [port for port in admin.network.ports() if port.name.startswith(name)]
    assert changed(play("vpod_destroy.yml")) == 0


def check_control_instance(admin: Cloud, plan: Plan, name: str, controller: Any) -> None:
    """Check that Nova has the services of the controller VM, with the addresses of its ports."""
    stored = yaml.safe_load(base64.b64decode(controller.user_data))
    assert (stored["ssh_authorized_keys"], stored["hostname"]) == (["ssh-ed25519 AAAA operator"], "control")
    assert "haproxy" in stored["packages"]
    files = {
        each["path"]: gzip.decompress(base64.b64decode(each["content"])).decode() for each in stored["write_files"]
    }
    ports = plan.ports(admin)
    (control,) = ports[f"{name}-controller-control"].fixed_ips
    assert f"bind {control['ip_address']}:8090" in files["/etc/haproxy/haproxy.cfg"]
    # The address of server1 in the network of the IPU-Gateways. The VM does not reach the management network.
    assert "server controller 10.1.2.101:8090 " in files["/etc/haproxy/haproxy.cfg"]
    machines = ports[f"{name}-controller-{plan.name}-bmc-gw"]
    groups = {group.id: group.name for group in admin.network.security_groups()}
    assert sorted(groups[group] for group in machines.security_group_ids) == [
        f"{plan.name}-control-instance-bmc",
        f"{plan.name}-control-instance-gw",
    ]
    for fixed in machines.fixed_ips:
        assert f"add {machines.mac_address} {fixed['ip_address']}/" in files["/usr/local/sbin/openipu-addresses"]
        assert f'address="{fixed["ip_address"]}" port="514"' in files["/etc/rsyslog.d/60-openipu.conf"]
    assert f'"{name}-poplar.{plan.name}.example:9100"' in files["/etc/prometheus/targets/node.json"]
    # Four of the sixteen machines are in the allocation.
    assert len(json.loads(files["/etc/prometheus/targets/ipu-machine.json"])) == 4


def test_a_failed_order_is_completed_or_released(
    admin: Cloud, twin: OwnTwin, order: dict[str, Any], play: Callable[..., Any], flavor_without_host: str
) -> None:
    failed = play("vpod_create.yml", check=False, vpod_flavor=flavor_without_host)
    assert failed.returncode != 0
    assert f"Cannot create server '{order['vpod_name']}-poplar': it failed to start" in " ".join(failed.stdout.split())
    assert list(partitions(twin)) == [order["vpod_name"]]
    play("vpod_create.yml")
    assert len(servers(admin, order)) == 2
    # A killed run does not revoke its role.
    assert not run(task=OPENSTACK_POD_TENANT, pod=order["vpod_name"], project="tenant-a", roles=["admin"]).get("failed")
    assert len(roles(admin, "tenant-a")) == 1
    play("vpod_destroy.yml")
    assert roles(admin, "tenant-a") == []
    # More IPUs than available.
    failed = play("vpod_create.yml", check=False, vpod_ipus=128)
    assert failed.returncode != 0
    play("vpod_destroy.yml", vpod_ipus=128)
    assert (partitions(twin), servers(admin, order)) == ({}, {})


def test_a_user_of_a_secure_controller(
    admin: Cloud,
    order: dict[str, Any],
    play: Callable[..., Any],
    flavor_without_host: str,
    secure_cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_as_administrator(secure_cli, monkeypatch)
    play("vipu_objects.yml")
    take_over(secure_cli)
    name, folder = order["vpod_name"], secure_cli.home / "users"
    order["vipu_users_folder"] = str(folder)

    def users() -> dict[str, list[str]]:
        listed = secure_cli.json(f"{ADMINISTRATOR} list users")
        return {user["id"]: sorted(user["allocations"]) for user in listed if user["id"] != "admin"}

    # A new user. Destruction releases everything of a failed order.
    order["vpod_user"] = "bob"
    failed = play("vpod_create.yml", check=False, vpod_flavor=flavor_without_host)
    assert failed.returncode != 0
    assert users() == {"bob": [name]}
    file = folder / "bob.vipu-cli.hcl"
    assert file.stat().st_mode & 0o777 == 0o600
    bob_key = re.findall('api-access-key="(.+)"', file.read_text())[0]
    assert bob_key not in failed.stdout
    bob = Cli(secure_cli.home)
    assert [partition["id"] for partition in bob.json(f"vipu --config {file} list partitions")] == [name]
    play("vpod_destroy.yml")
    assert (users(), list(folder.iterdir())) == ({}, [])
    assert secure_cli.json(f"{ADMINISTRATOR} list allocations") == []
    assert changed(play("vpod_destroy.yml")) == 0

    # A user with other IPUs keeps them.
    secure_cli.out(f"{ADMINISTRATOR} create allocation other --cluster cl0 --size 2")
    secure_cli.out(f"{ADMINISTRATOR} create user alice --allocations other")
    order.update(vpod_user="alice", vpod_controller_vm=False)
    play("vpod_create.yml")
    assert users() == {"alice": sorted(["other", name])}
    assert list(servers(admin, order)) == [f"{name}-poplar"]
    assert changed(play("vpod_create.yml")) == 0
    play("vpod_destroy.yml")
    assert users() == {"alice": ["other"]}
    assert servers(admin, order) == {}

    # An allocation in pod.yml stays after its last vPOD is destroyed.
    tenant = {**order["pod_openstack_tenants"]["*"], "allocation": "other"}
    order.update(pod_openstack_tenants={"tenant-a": tenant}, vpod_ipus=8)
    order["vipu_pod_users"] = [{"id": "alice", "role": "user", "allocations": ["other"]}]
    play("vpod_create.yml")
    play("vpod_destroy.yml")
    assert users() == {"alice": ["other"]}
    # A user in pod.yml without allocations stays, and a missing one is not created.
    order["vipu_pod_users"][0]["allocations"] = []
    play("vpod_destroy.yml")
    assert users() == {"alice": []}
    order.update(vpod_user="carol", vipu_pod_users=[{"id": "carol", "role": "user", "allocations": []}])
    play("vpod_destroy.yml")
    assert users() == {"alice": []}
    # A user that existed before the order stays.
    order.update(vpod_user="alice", vipu_pod_users=[])
    play("vpod_create.yml")
    kept = " ".join(play("vpod_destroy.yml").stdout.split())
    assert "was kept without allocations: project" in kept  # names are in doubled quotes there
    assert users() == {"alice": []}
