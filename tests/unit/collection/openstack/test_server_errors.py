# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers with the status ERROR. Only those that never ran have no data on their disks."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.task_support import ATTACHED, NETWORKS, NOVA, OPTIONS, SERVER, run

FAILED = {**SERVER, "status": "ERROR", "fault": {"message": "Migration failed."}}
LAUNCHED = "OS-SRV-USG:launched_at"


def cloud(failed: dict[str, Any]) -> FakeCloud:
    return FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /ports": {"ports": [ATTACHED]},
            "GET /servers/detail": {"servers": [failed]},
            "GET /servers/s1": {"server": failed},
            "POST /servers": {"server": {"id": "s2"}},
            "GET /servers/s2": {"server": {**SERVER, "id": "s2"}},
        }
    )


def test_a_server_that_ran_before_is_not_recreated() -> None:
    fake = cloud({**FAILED, LAUNCHED: "2026-11-01T10:00:00.000000"})
    predicted = run(OPENSTACK_POD_SERVER, fake, True, **OPTIONS)
    assert (predicted["servers"]["unchanged"], predicted["details"]["vm"]["status"]) == (["vm"], "ERROR")
    with pytest.raises(TaskError) as failure:
        run(OPENSTACK_POD_SERVER, fake, **OPTIONS)
    assert failure.value.message == (
        "Cannot use server 'vm': it ran before, and now has the status ERROR: Migration failed. Its disks may contain "
        "data. Repair it (openstack server reboot --hard s1), or set recreate to replace it."
    )
    assert fake.writes == []


@pytest.mark.parametrize(
    ("launched", "recreate"),
    [({LAUNCHED: None}, False), ({}, False), ({LAUNCHED: "2026-11-01T10:00:00.000000"}, True)],
)
def test_a_server_that_never_ran_is_recreated_and_others_on_request(launched: dict[str, Any], recreate: bool) -> None:
    fake = cloud({**FAILED, **launched})
    predicted = run(OPENSTACK_POD_SERVER, fake, True, recreate=recreate, **OPTIONS)
    assert predicted["servers"]["recreated"] == ["vm"]
    fake.responses["GET /servers/s1"] = None  # removed
    assert run(OPENSTACK_POD_SERVER, fake, recreate=recreate, **OPTIONS)["servers"]["recreated"] == ["vm"]
    assert [key for key, _body in fake.writes] == ["DELETE /servers/s1", "POST /servers"]
