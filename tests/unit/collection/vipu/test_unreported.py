# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of fields of partitions that the command lines do not report: they cause a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.partition_task import VIPU_PARTITION
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.pod_task import VIPU_POD

from tests.unit.collection.vipu.recorded import Recorded

LISTED = """\
 Partition   | Cluster  | ILDs | GW Routing | ILD Routing | Size | GCDs | State
---------------------------------------------------------------------------------
 p1          | cl0      | 1    | DEFAULT    | DNC         | 4    | 1    | ACTIVE
 p2          | cl0      | 1    | DEFAULT    | DNC         | 4    | 1    | ACTIVE
---------------------------------------------------------------------------------
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Return commands with two partitions."""
    recorded = Recorded(tmp_path / "bin")
    recorded.prints("list partitions", LISTED)
    return recorded


def perform(recorded: Recorded, task: Any, **options: Any) -> dict[str, Any]:
    """Run a task over the recorded commands."""
    paths = {"vipu_path": recorded.vipu, "vipu_admin_path": recorded.vipu_admin}
    given = {"transport": "cli", **paths, **options}
    spec = {name: option.get("default") for name, option in task.argument_spec.items()}
    outcome: dict[str, Any] = task.perform({**spec, **given}, False, True)
    return outcome


def test_unreported_field_causes_a_warning(recorded: Recorded) -> None:
    options = {"id": "p1", "cluster": "cl0", "size": 4}
    silent = perform(recorded, VIPU_PARTITION, **options)
    assert (silent["changed"], "warnings" in silent) == (False, False)
    done = perform(recorded, VIPU_PARTITION, **options, reconfigurable=True, sync_type="c2-compatible")
    assert done["changed"] is False
    assert done["warnings"] == [
        "Cannot compare sync_type, reconfigurable of partition 'p1': the controller does not report it over this "
        "transport. Check it on the controller."
    ]


def test_details_of_a_partition_are_compared(recorded: Recorded) -> None:
    recorded.prints("get partition p1", "Partition: p1\nSync Type: C2_COMPATIBLE\nReconfigurable: yes\nReplicas: 2\n")
    options = {"id": "p1", "cluster": "cl0", "size": 4, "sync_type": "c2-compatible"}
    same = perform(recorded, VIPU_PARTITION, **options, reconfigurable=True, num_replicas=2)
    assert (same["changed"], "warnings" in same) == (False, False)
    other = perform(recorded, VIPU_PARTITION, **options, reconfigurable=False)
    assert "Cannot change reconfigurable of partition 'p1' from true to false" in other["msg"]


def test_partitions_share_a_warning(recorded: Recorded) -> None:
    partitions = [{"id": f"p{n}", "cluster": "cl0", "size": 4, "num_replicas": 2} for n in (1, 2)]
    done = perform(recorded, VIPU_POD, partitions=[*partitions, {"id": "p3", "size": 1}], wait=False)
    assert done["failed"]  # no recording creates p3; the warning is returned anyway
    assert done["warnings"] == [
        "Cannot compare num_replicas of partition 'p1', 'p2': the controller does not report it over this transport. "
        "Check it on the controller."
    ]


def test_partition_in_error_without_reported_cause(recorded: Recorded) -> None:
    recorded.prints("list partitions", LISTED.replace("ACTIVE", "ERROR"))
    options = {"id": "p1", "cluster": "cl0", "size": 4}
    silent = perform(recorded, VIPU_PARTITION, **options)
    assert silent["msg"] == (
        "Cannot activate partition 'p1': it is in state ERROR: the command line does not report the cause; "
        "check 'vipu get partition p1' and the log of the controller. Fix the cause and use state reset."
    )
    recorded.prints("get partition p1", "Partition: p1\nOperation: FAILED\nErrors: Agent 'ag01' is down.\n")
    reported = perform(recorded, VIPU_PARTITION, **options)
    assert reported["msg"] == (
        "Cannot activate partition 'p1': it is in state ERROR: Agent 'ag01' is down. Fix the cause and use state reset."
    )
