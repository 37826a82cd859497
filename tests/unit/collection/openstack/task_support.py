# SPDX-License-Identifier: GPL-3.0-or-later
"""Support code of tests that call OpenStack tasks: responses, options, and the call."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run, Task

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import network, port, subnet

MAC = "0c:42:a1:00:05:01"
NETWORKS = {
    "GET /networks": {"networks": [network("data")]},
    "GET /subnets": {"subnets": [subnet("data", "data", "10.5.0.0/16")]},
    "GET /security-groups": {"security_groups": []},
    "GET /routers": {"routers": []},
    "GET /rbac-policies": {"rbac_policies": []},
    "GET /ports": {"ports": []},
}
SERVER = {
    "id": "s1",
    "name": "vm",
    "status": "ACTIVE",
    "tags": ["openipu.pod=pod"],
    "flavor": {"original_name": "small"},
    "image": {"id": "i1"},
    "addresses": {"data": [{"addr": "10.5.0.1"}]},
}
NOVA = {
    "GET /images": {"images": [{"id": "i1", "status": "active", "visibility": "public", "owner": "p0"}]},
    "GET /flavors/detail": {"flavors": [{"name": "small", "id": "f1", "vcpus": 4, "ram": 2048}]},
}
OPTIONS = {
    "pod": "pod",
    "servers": [{"name": "vm", "image": "ubuntu", "flavor": "small", "networks": [{"network": "data"}]}],
}
ATTACHED = port("vm-data", MAC, device_id="s1", device_owner="compute:nova")
"""Port of the server."""


def run(task: Task[Any], cloud: FakeCloud, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(options)
    assert not checked.error_messages, checked.error_messages
    return task.run(Run(checked.validated_parameters, check_mode, True, cloud))
