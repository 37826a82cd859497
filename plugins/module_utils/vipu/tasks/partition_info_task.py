# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_partition_info: read the states of partitions."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task
from ..options import VIPU, Run


def _partition_info(run: Run) -> Object:
    id = run.params["id"]
    listed = {item["id"]: item for item in run.transport.read("partition") if id is None or item["id"] == id}
    details = {} if id is None else run.transport.partition_details(list(listed))  # may need one call for each
    statuses = run.transport.partition_statuses(list(listed))
    found = [{**item, **details.get(id, {}), **statuses[id]} for id, item in listed.items() if id in statuses]
    if run.params["ipuof"]:
        for item in found:
            item["ipuof"] = run.transport.ipuof_config(item["id"]) if item["state"] == "ACTIVE" else None
    return {"changed": False, "partitions": found}


VIPU_PARTITION_INFO = Task(VIPU, {"id": {"type": "str"}, "ipuof": {"type": "bool", "default": False}}, _partition_info)
