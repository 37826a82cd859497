# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of a job, as the published transcripts print it."""

from __future__ import annotations

import pytest

from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.status import DENIED, INVALID, UNSCHEDULABLE, State, Status
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form

JOB = ("default", "sample")
NOW = statuses.seconds("2021-03-22T10:10:31Z")


def through(*states: State, cause: str = "it failed.") -> Status:
    """Return the status after these states, one second apart."""
    status: Status = {}
    for second, state in enumerate(states):
        status = statuses.entered(status, state, JOB, NOW + second, cause)
    return status


def test_a_running_job_has_the_published_conditions() -> None:
    status = through(State.PENDING, State.RUNNING)
    assert status["conditions"] == [
        {
            "type": "Pending",
            "status": "False",
            "reason": "IPUJobPending",
            "message": "IPUJob default/sample is waiting for resources to be ready.",
            "lastUpdateTime": "2021-03-22T10:10:31Z",
            "lastTransitionTime": "2021-03-22T10:10:31Z",
        },
        {
            "type": "Running",
            "status": "True",
            "reason": "IPUJobRunning",
            "message": "IPUJob default/sample is running.",
            "lastUpdateTime": "2021-03-22T10:10:32Z",
            "lastTransitionTime": "2021-03-22T10:10:32Z",
        },
    ]
    assert status["launcherStatus"] == "Running"
    assert statuses.state(status) is State.RUNNING


def test_a_condition_occurs_once_and_last() -> None:
    status = through(State.PENDING, State.RUNNING, State.RESTARTING, State.RUNNING)
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("Pending", "False"),
        ("Restarting", "False"),
        ("Running", "True"),
    ]


@pytest.mark.parametrize(
    ("state", "finished"),
    [
        (State.PENDING, False),
        (State.RUNNING, False),
        (State.RESTARTING, False),
        (State.SUSPENDED, False),
        (State.SUCCEEDED, True),
        (State.FAILED, True),
    ],
)
def test_the_end_of_a_job(state: State, finished: bool) -> None:
    status = through(State.PENDING, state)
    assert statuses.is_finished(status) is finished
    assert ("completionTime" in status) is finished


def test_an_invalid_job_can_be_corrected() -> None:
    status = statuses.entered({}, State.FAILED, JOB, NOW, "it is too large.", INVALID)
    assert status["lastMessage"] == "IPUJob default/sample has failed: it is too large."
    assert not statuses.is_finished(status)
    assert "completionTime" not in statuses.entered(status, State.PENDING, JOB, NOW)


def test_a_new_job_has_no_state() -> None:
    assert statuses.state({}) is None
    assert statuses.condition({}, State.RUNNING) is None
    assert not statuses.is_finished({})


def test_pauses_before_restarts_grow() -> None:
    assert [statuses.back_off(number) for number in (1, 2, 3, 5, 6, 1000)] == [10, 20, 40, 160, 300, 300]


@pytest.mark.parametrize("reason", [UNSCHEDULABLE, DENIED])
def test_jobs_that_wait_for_ipus(reason: str) -> None:
    pending = through(State.PENDING)
    job = {**second_form(), "status": pending}
    assert statuses.waits(job)
    assert statuses.waits({**first_form(jobInstances=2), "status": pending})
    assert not statuses.waits({**job, "status": {**pending, "iPUPartitionCreated": True}})
    assert not statuses.waits({**job, "status": statuses.explained(pending, JOB, NOW, reason, "too large")})
    assert not statuses.waits({**job, "metadata": {**job["metadata"], "deletionTimestamp": "2021-03-22T10:10:31Z"}})
    assert not statuses.waits({**second_form(), "status": through(State.RUNNING)})
    assert not statuses.waits(second_form())


def test_jobs_without_instances_wait_for_no_ipus() -> None:
    assert not statuses.waits({**second_form(jobInstances=0), "status": through(State.PENDING)})
    assert not statuses.waits({**second_form(suspend=True), "status": through(State.PENDING)})
