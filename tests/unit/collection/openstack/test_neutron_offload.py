# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports with hardware offload, and options that need an extension of Neutron."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network import request_bodies
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.cloud_limits import CloudLimits
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.limits import check_limits
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.offload import EXTENSION, supported_ports
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import PROJECT, NoLimits, changes, network, plan, port, state

MAC = "0c:42:a1:00:00:01"
TYPE = "hardware_offload_type"


def step(offload: bool | None, **actual: Any) -> Any:
    desired = {"name": "vm-data", "network": "data", "vnic_type": "direct", "hardware_offload": offload}
    ports = [port("vm-data", MAC, **{"binding:vnic_type": "direct", **actual})] if actual else []
    (found,) = plan({"ports": [desired]}, state(network=[network("data")], port=ports))
    return found


def test_only_a_new_port_with_offload_has_the_type() -> None:
    assert request_bodies.creation_body(step(True), lambda family, name: name)[TYPE] == "switchdev"
    for offload in (False, None):
        assert TYPE not in request_bodies.creation_body(step(offload), lambda family, name: name)


def test_equal_and_omitted_values_are_no_change() -> None:
    for offload, actual in ((True, "switchdev"), (False, None), (None, "switchdev"), (None, None)):
        assert changes([step(offload, **{TYPE: actual})]) == []
    assert changes([step(True, description="")]) == []  # a Neutron without the extension reports no type


def test_an_unused_port_is_recreated_and_one_in_use_is_not() -> None:
    assert changes([step(True, **{TYPE: None})]) == [("port", "vm-data", "recreate")]
    with pytest.raises(UserError, match="Cannot change hardware_offload of port 'vm-data': it is in use by comp"):
        step(True, **{TYPE: None, "device_owner": "compute:nova"})


def test_a_neutron_without_the_extension_rejects_new_ports() -> None:
    extension = "GET /extensions"
    others = [{"alias": "dns-integration"}]

    def check(cloud: FakeCloud, *steps: Any) -> None:
        check_limits(steps, CloudLimits(cloud, PROJECT), PROJECT)

    found = [*others, {"alias": "port-hardware-offload-type"}]
    check(FakeCloud({extension: {"extensions": found}}), step(True))
    with pytest.raises(UserError, match="Cannot set hardware_offload of port 'vm-data': this Neutron has no API"):
        check(FakeCloud({extension: {"extensions": others}}), step(True))
    with pytest.raises(CloudError, match="unavailable"):
        check(FakeCloud({extension: CloudError("unavailable", 503)}), step(True))
    # The extension is not read for ports without offload, and for those that already have it.
    cloud = FakeCloud({})
    check(cloud, step(False), step(None), step(True, **{TYPE: "switchdev"}))
    assert extension not in [key for key, _query in cloud.reads]


@pytest.mark.parametrize(
    ("alias", "microversion", "kept"),
    [
        (EXTENSION, (2, 95), True),
        (EXTENSION, (2, 96), True),
        ("dns-integration", (2, 96), False),  # Nova 2024.1 takes the mode from the card
        ("dns-integration", (2, 95), True),  # rejected by check_limits
        ("dns-integration", None, True),
    ],
)
def test_newer_nova_needs_no_offload_type(alias: str, microversion: tuple[int, int] | None, kept: bool) -> None:
    cloud = FakeCloud({"GET /extensions": {"extensions": [{"alias": alias}]}})
    cloud.microversion = microversion
    ports = [{"name": "a", "hardware_offload": True}, {"name": "b"}]
    found = supported_ports(ports, cloud, CloudLimits(cloud, PROJECT))
    assert found == (ports if kept else [{"name": "a"}, {"name": "b"}])


def test_ports_without_offload_need_no_request() -> None:
    cloud = FakeCloud({})
    ports = [{"name": "a", "hardware_offload": False}, {"name": "b"}]
    assert supported_ports(ports, cloud, CloudLimits(cloud, PROJECT)) == ports
    assert cloud.reads == []


@pytest.mark.parametrize(
    ("config", "alias", "message"),
    [
        ({"ports": [{"name": "p", "network": "data", "dns_name": "p"}]}, "dns-integration", "dns_name of port 'p'"),
        ({"networks": [{"name": "n", "dns_domain": "a."}]}, "dns-integration", "dns_domain of network 'n'"),
        ({"networks": [{"name": "n", "port_security": True}]}, "port-security", "port_security of network 'n'"),
        ({"shares": [{"kind": "network", "name": "data", "project": "t"}]}, "rbac-policies", "project of share"),
    ],
)
def test_missing_extensions_are_reported_before_any_request(config: Any, alias: str, message: str) -> None:
    class Without(NoLimits):
        def has_extension(self, name: str) -> bool:
            return name != alias

    actual = state(network=[network("data")])
    assert changes(plan(config, actual))
    with pytest.raises(UserError, match=f"Cannot set {message}.*: this Neutron has no API extension '{alias}'"):
        plan(config, actual, limits=Without())
