# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of a whole cloud: one message with the remedy, before and during the writes."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError

from tests.unit.collection.openstack.cloud_server import CloudServer, connect
from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.task_support import NETWORKS, run

PORTS = {"ports": [{"name": f"m{n}", "network": "data", "addresses": [f"10.5.0.{n}"]} for n in range(1, 41)]}


def read(server: CloudServer, status: int, body: Any, region: str = "one") -> Any:
    with closing(connect(server, status, body, region)) as cloud:
        return cloud.request("network", "GET", "/networks")


@pytest.mark.parametrize(
    ("status", "body", "region", "message", "remedy"),
    [
        (
            200,
            {"networks": []},
            "nowhere",
            "Cannot find Neutron in the service catalog: ",
            "Check region_name and inter",
        ),
        (
            503,
            {"error": {"message": "no database"}},
            "one",
            "Neutron is unavailable: no database.",
            "Run the task again",
        ),
        (
            *(403, {"NeutronError": {"type": "PolicyNotAuthorized", "message": "rule:create"}}, "one"),
            *("Cannot use Neutron with these credentials: rule:create.", "Use those of an administrator of the cloud."),
        ),
        (
            *(403, {"error": {"message": "You are not authorized to perform the requested action."}}, "one"),
            *("Cannot use Neutron with these credentials: You are not", "Use those of an administrator of the cloud."),
        ),
    ],
)
def test_errors_of_the_whole_cloud_have_a_remedy(
    services: CloudServer, status: int, body: Any, region: str, message: str, remedy: str
) -> None:
    with pytest.raises(CloudError) as failure:
        read(services, status, body, region)
    assert failure.value.message.startswith(message)
    assert remedy in failure.value.message
    assert failure.value.fatal


@pytest.mark.parametrize("newest", ["2.95", "2.96"])
def test_the_newest_microversion_is_read_from_the_service(services: CloudServer, newest: str) -> None:
    with closing(connect(services, 200, newest)) as cloud:
        assert cloud.max_microversion("compute") == tuple(map(int, newest.split(".")))


def test_an_exceeded_quota_is_no_missing_permission(services: CloudServer) -> None:
    with pytest.raises(CloudError, match="Quota exceeded for cores") as failure:
        read(services, 403, {"forbidden": {"message": "Quota exceeded for cores: Requested 4."}})
    assert not failure.value.fatal


@pytest.mark.parametrize(
    "error",
    [
        CloudError("Neutron is unavailable: no database. Run the task again later.", 503),
        CloudError("Cannot use Neutron with these credentials: no. Use others.", 403, "PolicyNotAuthorized"),
        CloudError("Cannot connect to Neutron: no route. Check auth_url."),
    ],
)
def test_an_error_of_the_whole_cloud_is_one_message(error: CloudError) -> None:
    cloud = FakeCloud({**NETWORKS, "POST /ports": error})
    with pytest.raises(TaskError) as failure:
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=PORTS)
    assert failure.value.message == error.message
    assert len(cloud.writes) <= 4  # those that had already started
