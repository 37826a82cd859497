# SPDX-License-Identifier: GPL-3.0-or-later
"""A port of a server of a real Nova: unchanged while in use, and corrected after the server is removed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from openstack.connection import Connection

from tests.openstack.neutron_pod import AccessLog, Plan, result_keys, run
from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def test_bound_ports_are_unchanged_until_their_server_is_removed(admin: Connection, plan: Plan, log: AccessLog) -> None:
    options = plan.options()
    server_port = {
        "name": "vm1-data",
        "network": f"{plan.name}-data",
        "addresses": ["10.1.5.200"],
        "dns_name": "vm1",
        "vnic_type": "direct",
    }
    options["config"]["ports"].append(server_port)
    assert not run(**options).get("failed")
    port = plan.ports(admin)["vm1-data"]
    with ExitStack() as cleanup:
        image = admin.create_image(f"{plan.name}-image", data=b"\0" * 1024, disk_format="raw", wait=True)
        cleanup.callback(admin.image.delete_image, image)
        flavor = admin.compute.create_flavor(name=f"{plan.name}-flavor", vcpus=1, ram=64, disk=1)
        admin.compute.create_flavor_extra_specs(flavor, {"hw:cpu_policy": "dedicated"})
        cleanup.callback(admin.compute.delete_flavor, flavor)
        server = admin.compute.create_server(
            name="vm1",
            image_id=image.id,
            flavor_id=flavor.id,
            networks=[{"port": port.id}],
            availability_zone=f"nova:{HOSTS[0]}",
        )
        cleanup.callback(admin.delete_server, server.id, wait=True)
        admin.compute.wait_for_server(server, wait=120)
        bound = admin.network.get_port(port.id)
        assert (bound.binding_host_id, bound.device_id) == (HOSTS[0], server.id)

        for prune in (False, True):
            with log.requests() as requests:
                result = run(prune=prune, **options)
            assert not result.get("failed"), result
            assert result["ports"]["updated"] == []
            assert not [line for line in requests if port.id in line and not line.startswith("GET ")]
        after = admin.network.get_port(port.id)
        assert (after.binding_profile, after.device_id) == (bound.binding_profile, server.id)

        server_port["addresses"] = ["10.1.5.201"]
        result = run(**options)
        assert result["msg"] == (
            "Cannot change addresses of port 'vm1-data': it is in use by compute:nova. Detach it first."
        )
        result = run(pod=plan.name, state="absent")
        assert "Cannot remove port 'vm1-data': it is in use by compute:nova. Detach it first." in result["msg"]
        assert not result["changed"]
    # Nova resets the DNS name.
    assert admin.network.get_port(port.id).dns_name == ""
    result = run(**options)
    assert result_keys(result)["ports"]["updated"] == ["vm1-data"]
    freed = admin.network.get_port(port.id)
    assert (freed.dns_name, [fixed["ip_address"] for fixed in freed.fixed_ips]) == ("vm1", ["10.1.5.201"])
