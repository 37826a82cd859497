# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command lines do not tell of a partition: it is looked for, and warned of, but never passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu import tasks
from recorded import Recorded

LISTED = """\
 Partition   | Cluster  | ILDs | GW Routing | ILD Routing | Size | GCDs | State
---------------------------------------------------------------------------------
 p1          | cl0      | 1    | DEFAULT    | DNC         | 4    | 1    | ACTIVE
 p2          | cl0      | 1    | DEFAULT    | DNC         | 4    | 1    | ACTIVE
---------------------------------------------------------------------------------
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Commands that know two partitions."""
    recorded = Recorded(tmp_path / "bin")
    recorded.prints("list partitions", LISTED)
    return recorded


def perform(recorded: Recorded, task: Any, **options: Any) -> dict[str, Any]:
    """Perform a task over the recorded commands."""
    paths = {"vipu_path": recorded.vipu, "vipu_admin_path": recorded.vipu_admin}
    given = {"transport": "cli", **paths, **options}
    spec = {name: option.get("default") for name, option in task.argument_spec.items()}
    outcome: dict[str, Any] = task.perform({**spec, **given}, False, True)
    return outcome


def test_what_nobody_tells_is_warned_of(recorded: Recorded) -> None:
    asked = {"id": "p1", "cluster": "cl0", "size": 4}
    silent = perform(recorded, tasks.VIPU_PARTITION, **asked)
    assert (silent["changed"], "warnings" in silent) == (False, False)
    done = perform(recorded, tasks.VIPU_PARTITION, **asked, reconfigurable=True, sync_type="c2-compatible")
    assert done["changed"] is False
    assert done["warnings"] == [
        "Not compared, because the controller does not tell it this way: sync_type, reconfigurable of partition 'p1'."
    ]


def test_what_is_told_of_one_partition_is_compared(recorded: Recorded) -> None:
    recorded.prints("get partition p1", "Partition: p1\nSync Type: C2_COMPATIBLE\nReconfigurable: yes\nReplicas: 2\n")
    asked = {"id": "p1", "cluster": "cl0", "size": 4, "sync_type": "c2-compatible"}
    same = perform(recorded, tasks.VIPU_PARTITION, **asked, reconfigurable=True, num_replicas=2)
    assert (same["changed"], "warnings" in same) == (False, False)
    other = perform(recorded, tasks.VIPU_PARTITION, **asked, reconfigurable=False)
    assert "Partition 'p1' has reconfigurable true and cannot be changed to false" in other["msg"]


def test_partitions_of_a_pod_share_a_warning(recorded: Recorded) -> None:
    partitions = [{"id": f"p{n}", "cluster": "cl0", "size": 4, "num_replicas": 2} for n in (1, 2)]
    done = perform(recorded, tasks.VIPU_POD, partitions=[*partitions, {"id": "p3", "size": 1}], wait=False)
    assert done["failed"]  # no command makes p3 here; what is warned of is told all the same
    assert done["warnings"] == [
        "Not compared, because the controller does not tell it this way: num_replicas of partition 'p1', 'p2'."
    ]


def test_an_error_whose_reason_the_command_does_not_tell(recorded: Recorded) -> None:
    recorded.prints("list partitions", LISTED.replace("ACTIVE", "ERROR"))
    asked = {"id": "p1", "cluster": "cl0", "size": 4}
    silent = perform(recorded, tasks.VIPU_PARTITION, **asked)
    assert silent["msg"] == (
        "Partition 'p1' is in ERROR: the command that was asked does not tell the reason; look at 'vipu get "
        "partition p1' and at the log of the controller. Mend the cause and use state reset."
    )
    recorded.prints("get partition p1", "Partition: p1\nOperation: FAILED\nErrors: Agent 'ag01' is down.\n")
    told = perform(recorded, tasks.VIPU_PARTITION, **asked)
    assert told["msg"] == "Partition 'p1' is in ERROR: Agent 'ag01' is down. Mend the cause and use state reset."
