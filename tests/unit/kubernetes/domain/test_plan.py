# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of pods with the specification of their job."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.domain import plan
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.progress import Stage
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers
from tests.unit.kubernetes.domain.objects import deleted, ended, launcher, worker

JOB = jobs.read(first_form())


def names(pods: Any) -> list[str]:
    """Return the names of pods."""
    return [each["metadata"]["name"] for each in pods]


def service(instances: int, image: str = "resnet:1", strategy: str = "Recreate") -> jobs.Job:
    """Return a job without launcher."""
    spec = workers(container={"image": image}) | {"strategy": strategy}
    return jobs.read(second_form(jobInstances=instances, workers=spec))


def test_the_launcher_is_created_first() -> None:
    found = plan.make(JOB, [], 0)
    assert [(each.number, each.missing) for each in found.instances] == [(0, ["sample-launcher", "sample-worker-0"])]
    assert found.outdated == []


def test_pods_of_earlier_attempts_are_outdated() -> None:
    old, new = worker(JOB, attempt=0), worker(JOB, attempt=1)
    found = plan.make(JOB, [deleted(launcher(JOB, attempt=0)), old], 1)
    assert found.outdated == [old]
    assert found.instances[0].missing == ["sample-launcher", "sample-worker-0"]
    assert plan.make(JOB, [launcher(JOB, attempt=1), new], 1).outdated == []


def test_a_pod_that_is_being_deleted_keeps_its_name() -> None:
    found = plan.make(service(1), [deleted(worker(service(1)))], 0)
    assert found.instances[0].missing == []
    assert found.instances[0].pods == []


def test_instances_that_have_ended_miss_no_pods() -> None:
    found = plan.make(JOB, [launcher(JOB, **ended(0))], 0)
    assert (found.instances[0].progress.stage, found.instances[0].missing) == (Stage.SUCCEEDED, [])


def test_surplus_instances_are_outdated() -> None:
    pods = [worker(service(3), instance) for instance in range(3)]
    found = plan.make(service(1), pods, 0)
    assert names(found.outdated) == ["sample-worker-1", "sample-worker-2"]
    assert plan.make(service(0), pods, 0).instances == []


@pytest.mark.parametrize(
    ("strategy", "states", "outdated"),
    [
        ("Recreate", [{}, {}], ["sample-worker-0", "sample-worker-1"]),
        ("RollingUpdate", [{}, {}], ["sample-worker-0"]),
        ("RollingUpdate", [{}, {"phase": "Pending"}], ["sample-worker-1"]),  # nothing is lost
    ],
)
def test_a_changed_template(strategy: str, states: list[dict[str, Any]], outdated: list[str]) -> None:
    old = service(2, "resnet:1", strategy)
    pods = [worker(old, instance, **status) for instance, status in enumerate(states)]
    assert names(plan.make(service(2, "resnet:2", strategy), pods, 0).outdated) == outdated


def test_a_rolling_update_waits_for_the_replaced_instance() -> None:
    old, new = (service(2, image, "RollingUpdate") for image in ("resnet:1", "resnet:2"))
    starting = [worker(new, 0, phase="Pending"), worker(old, 1)]
    assert plan.make(new, starting, 0).outdated == []
    assert names(plan.make(new, [worker(new, 0), worker(old, 1)], 0).outdated) == ["sample-worker-1"]


def two_workers(image: str) -> jobs.Job:
    """Return a job whose instance has two workers and no launcher."""
    return jobs.read(second_form(workersPerJobInstance="2", workers=workers(container={"image": image})))


def test_new_pods_stay_while_former_ones_end() -> None:
    old, new = two_workers("resnet:1"), two_workers("resnet:2")
    found = plan.make(new, [deleted(worker(old, index=1)), worker(new, index=0)], 0)
    assert (found.outdated, found.instances[0].missing) == ([], [])
    assert names(plan.make(new, [worker(old, index=1), worker(new, index=0)], 0).outdated) == [
        "sample-worker-1",
        "sample-worker-0",
    ]


def test_a_changed_size_replaces_all_pods_of_the_instance() -> None:
    old, new = (jobs.read(first_form(workers=workers(number))) for number in (1, 2))
    pods = [launcher(old), worker(old)]
    assert plan.make(old, pods, 0).outdated == []
    assert plan.make(new, pods, 0).outdated == pods
    for each in pods:  # of an earlier release
        del each["metadata"]["labels"]["graphcore.ai/shape"]
    assert plan.make(old, pods, 0).outdated == []


def test_a_changed_number_of_workers_replaces_all_instances_at_once() -> None:
    """The second worker of the first instance then has the name of a former worker of the second instance."""
    old, new = (
        jobs.read(first_form(jobInstances=2, workers=workers(number) | {"strategy": "RollingUpdate"}))
        for number in (1, 2)
    )
    pods = [make(old, instance) for instance in range(2) for make in (launcher, worker)]
    assert plan.make(new, pods, 0).outdated == pods
    assert plan.make(new, [*map(deleted, pods)], 0).outdated == []


def test_pods_of_lost_nodes() -> None:
    pod, end = deleted(worker(JOB)), statuses.seconds("2021-03-22T10:10:31Z")
    assert [plan.is_stuck(pod, end + seconds) for seconds in (0, 30, 31)] == [False, False, True]
    assert not plan.is_stuck(worker(JOB), end + 1000)
