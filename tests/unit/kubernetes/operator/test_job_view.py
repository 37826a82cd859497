# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a job that do not count any more, and the counts of its status."""

from __future__ import annotations

from typing import Any

from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.operator.job_view import JobView
from tests.unit.kubernetes.domain.ipujobs import second_form
from tests.unit.kubernetes.domain.objects import deleted, worker

JOB = jobs.read(second_form(jobInstances=2))


def pod(instance: int, attempt: int = 0) -> dict[str, Any]:
    """Return a worker as the API server has it."""
    found = worker(JOB, instance, attempt=attempt)
    found["metadata"]["uid"] = f"{instance}-{attempt}"
    return found


def view(*pods: dict[str, Any], attempt: int = 0) -> JobView:
    found = JobView(second_form(jobInstances=2), JOB, {"restartCount": attempt}, list(pods))
    found.compare()
    return found


def test_pods_that_end_leave_their_instance() -> None:
    assert view(pod(0), pod(1)).leaving == set()
    assert view(pod(0), deleted(pod(1))).leaving == {1}
    assert view(pod(0), pod(1, attempt=1), attempt=1).leaving == {0}  # of the former attempt
    assert view().leaving == set()


def test_counts() -> None:
    found = view(pod(0), pod(1)).counted(lambda instance: instance == 0)
    assert (found["desiredReplicas"], found["currentReplicas"], found["iPUPartitionCreated"]) == (2, 2, False)
    assert view(pod(0)).counted(lambda instance: True)["currentReplicas"] == 1
    empty = JobView(second_form(jobInstances=0), jobs.read(second_form(jobInstances=0)), {}, [])
    assert empty.counted(lambda instance: True)["iPUPartitionCreated"] is False
