# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of an instance, as its pods show it."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.domain import progress
from openipu.kubernetes.domain.progress import KILLED, Progress, Stage
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers
from tests.unit.kubernetes.domain.objects import ended, launcher, worker

JOB = jobs.read(first_form(workers=workers(2)))
SERVICE = jobs.read(second_form(workersPerJobInstance="2"))
SESSION = jobs.read(first_form(launcher=None, interactive={"ttl": 60}))


def test_the_launcher_decides() -> None:
    assert progress.of_instance(JOB, []).stage is Stage.STARTING
    both = [worker(JOB, index=0), worker(JOB, index=1)]
    assert progress.of_instance(JOB, [launcher(JOB, phase="Pending"), *both]).stage is Stage.STARTING
    assert progress.of_instance(JOB, [launcher(JOB), *both]).stage is Stage.RUNNING
    assert progress.of_instance(JOB, [launcher(JOB, **ended(0)), *both]).stage is Stage.SUCCEEDED
    assert progress.of_instance(JOB, [launcher(JOB, **ended(7)), *both]) == Progress(
        Stage.FAILED, 7, "container resnet of pod sample-launcher ended with exit code 7."
    )


def test_a_failed_init_container_says_why() -> None:
    status = {"terminated": {"exitCode": 1, "message": "Partition p is in state ERROR.\n"}}
    pod = launcher(JOB, phase="Failed", initContainerStatuses=[{"name": "ipujob-init", "state": status}])
    assert progress.of_instance(JOB, [pod]) == Progress(
        Stage.FAILED,
        1,
        "container ipujob-init of pod sample-launcher ended with exit code 1: Partition p is in state ERROR.",
    )


def test_evicted_pods_count_as_killed() -> None:
    pod = launcher(JOB, phase="Failed", reason="Evicted", message="The node was low on memory.")
    found = progress.of_instance(JOB, [pod])
    assert (found.exit_code, found.cause) == (
        KILLED,
        "pod sample-launcher failed: Evicted: The node was low on memory.",
    )


def test_a_deleted_launcher_is_a_failure() -> None:
    found = progress.of_instance(JOB, [worker(JOB)])
    assert (found.stage, found.exit_code, found.cause) == (Stage.FAILED, KILLED, "the launcher was deleted.")


@pytest.mark.parametrize(
    ("job", "phase", "stage"),
    [
        (JOB, "Pending", Stage.FAILED),  # it would wait for ever
        (JOB, "Running", Stage.RUNNING),  # mpirun notices it
        (SESSION, "Running", Stage.FAILED),
    ],
)
def test_a_failed_worker(job: Any, phase: str, stage: Stage) -> None:
    assert progress.of_instance(job, [launcher(job, phase=phase), worker(job, **ended(127))]).stage is stage


@pytest.mark.parametrize(
    ("states", "stage"),
    [
        ([{}], Stage.STARTING),
        ([{}, {"phase": "Pending"}], Stage.STARTING),
        ([{}, {}], Stage.RUNNING),
        ([ended(0), {}], Stage.RUNNING),
        ([ended(0), ended(0)], Stage.SUCCEEDED),
        ([ended(0), ended(3)], Stage.FAILED),
    ],
)
def test_without_a_launcher_the_workers_decide(states: list[dict[str, Any]], stage: Stage) -> None:
    pods = [worker(SERVICE, index=index, **status) for index, status in enumerate(states)]
    assert progress.of_instance(SERVICE, pods).stage is stage


def test_counts_of_workers() -> None:
    pods = [launcher(JOB), worker(JOB), worker(JOB, **ended(1)), worker(JOB, phase="Pending")]
    assert progress.worker_counts(pods) == {"active": 1, "failed": 1}


def test_obstacles() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}
    waiting = {"name": "resnet", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    creating = {"name": "resnet", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert progress.obstacle([launcher(JOB, conditions=[scheduled])]) == (
        "Pod sample-launcher has no node: 0/1 nodes are available."
    )
    assert progress.obstacle(
        [launcher(JOB, containerStatuses=[creating]), worker(JOB, containerStatuses=[waiting])]
    ) == ("Container resnet of pod sample-worker-0 does not start: ErrImagePull: not found")
    assert progress.obstacle([launcher(JOB)]) == ""
