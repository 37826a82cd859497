# SPDX-License-Identifier: GPL-3.0-or-later
"""A port that a server of a real Nova has is left to it, and set right again when the server is gone."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from neutron_pod import AccessLog, Plan, done, run
from openstack.connection import Connection

from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def test_a_port_that_nova_has_bound(admin: Connection, plan: Plan, log: AccessLog) -> None:
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
    with ExitStack() as undo:
        image = admin.create_image(f"{plan.name}-image", data=b"\0" * 1024, disk_format="raw", wait=True)
        undo.callback(admin.image.delete_image, image)
        flavor = admin.compute.create_flavor(name=f"{plan.name}-flavor", vcpus=1, ram=64, disk=1)
        admin.compute.create_flavor_extra_specs(flavor, {"hw:cpu_policy": "dedicated"})
        undo.callback(admin.compute.delete_flavor, flavor)
        server = admin.compute.create_server(
            name="vm1",
            image_id=image.id,
            flavor_id=flavor.id,
            networks=[{"port": port.id}],
            availability_zone=f"nova:{HOSTS[0]}",
        )
        undo.callback(admin.delete_server, server.id, wait=True)
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
            "Port 'vm1-data' is in use by compute:nova, so its addresses cannot be changed: detach it first."
        )
        result = run(pod=plan.name, state="absent")
        assert "'vm1-data' is in use by compute:nova, so it cannot be removed: detach it first." in result["msg"]
        assert not result["changed"]
    # Nova takes the name along.
    assert admin.network.get_port(port.id).dns_name == ""
    result = run(**options)
    assert done(result)["ports"]["updated"] == ["vm1-data"]
    freed = admin.network.get_port(port.id)
    assert (freed.dns_name, [fixed["ip_address"] for fixed in freed.fixed_ips]) == ("vm1", ["10.1.5.201"])
