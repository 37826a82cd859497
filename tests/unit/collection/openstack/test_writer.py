# SPDX-License-Identifier: GPL-3.0-or-later
"""Writers and application of plans: each step fails alone, all are waited for, and one result reports everything."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.apply_plan import apply_plans
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import (
    OVER_QUOTA,
    Cloud,
    CloudError,
    RejectedError,
)
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.options import Run
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.writer import MissingError, WaitingWriter
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.families import NETWORK, SUBNET
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import (
    Action,
    Family,
    ItemError,
    Step,
    UserError,
)
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError


class Writer(WaitingWriter):
    """Writer whose steps raise the error in their object."""

    def __init__(self) -> None:
        super().__init__(Cloud({}, 4), "network")

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        self.for_each(steps, self.work)
        return self.errors

    def work(self, step: Step) -> None:
        error = (step.desired or {}).get("error")
        if error:
            raise error
        self.wrote = True

    def wait_ready(self, step: Step) -> None:
        self.work(step)


def steps(
    *errors: Exception | None, action: Action = Action.CREATE, under_way: bool = False, family: Family = NETWORK
) -> list[Step]:
    before = {"under_way": under_way}
    return [
        Step(family, f"n{n}", action, before=before, desired={"name": f"n{n}", "error": error})
        for n, error in enumerate(errors)
    ]


def apply(*plans: list[Step], check_mode: bool = False, details: Any = None) -> dict[str, Any]:
    run = Run({}, check_mode, False, Cloud({}, 1))
    return apply_plans(run, lambda: [(plan, Writer()) for plan in plans], [NETWORK, SUBNET], details)


def failure(*plans: list[Step], **options: Any) -> tuple[str, dict[str, Any]]:
    with pytest.raises(TaskError) as raised:
        apply(*plans, **options)
    return raised.value.message, raised.value.result


@pytest.mark.parametrize("error", [UserError("two have this name."), CloudError("Neutron returned an error: no.", 409)])
def test_a_rejected_step_fails_alone(error: UserError) -> None:
    message, result = failure(steps(error, None))
    assert message == f"Cannot create network 'n0': {error.message}"
    code = error.error_code
    assert result["errors"] == [{"kind": "network", "id": "n0", "msg": message, "error_code": code}]
    assert result["error_code"] == code
    assert (result["changed"], result["networks"]["created"]) == (True, ["n1"])


def test_an_unreachable_cloud_ends_all_steps() -> None:
    message, result = failure(steps(*[CloudError("Cannot connect to Neutron.")] * 9))
    assert message == "Cannot connect to Neutron."
    assert {error["msg"] for error in result["errors"]} == {message}
    assert len(result["errors"]) == 9


def test_all_have_ended_when_the_first_error_is_raised() -> None:
    go, ended = threading.Event(), threading.Event()

    def work(number: int) -> None:
        if number == 0:
            threading.Timer(0.2, go.set).start()
            raise UserError("no.")
        go.wait(5)
        ended.set()

    with pytest.raises(UserError):
        Cloud({}, 2).map(work, [0, 1])
    assert ended.is_set()


class CountingCloud(Cloud):
    """Cloud that counts an object twice until its request ends, as Neutron does with the reservation of the request.

    The first requests end after one was rejected.
    """

    def __init__(self, quota: int) -> None:
        super().__init__({}, 3)
        self._quota = quota
        self._lock = threading.Lock()
        self._rejected = threading.Event()
        self.used = self._reserved = 0

    def request(self, service: str, method: str, path: str, **options: Any) -> None:
        with self._lock:
            if self.used + self._reserved + 1 > self._quota:
                self._rejected.set()
                raise RejectedError("Neutron returned an error: Quota exceeded.", 409, OVER_QUOTA)
            self.used += 1
            self._reserved += 1
        assert self._rejected.wait(5)
        with self._lock:
            self._reserved -= 1


class PostingWriter(Writer):
    """Writer that sends a request for each step."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self.cloud = cloud

    def work(self, step: Step) -> None:
        self.write("POST", "/routers")


@pytest.mark.parametrize(("quota", "failed"), [(3, 0), (2, 1)])
def test_reservations_of_concurrent_requests_do_not_exceed_a_quota(quota: int, failed: int) -> None:
    cloud = CountingCloud(quota)
    errors = PostingWriter(cloud)(steps(None, None, None))
    assert (cloud.used, len(errors)) == (quota, failed)
    assert all("Quota exceeded" in error.message for error in errors)


def test_a_full_quota_is_tried_alone_once() -> None:
    class FullCloud(Cloud):
        requests = 0

        def request(self, service: str, method: str, path: str, **options: Any) -> None:
            self.requests += 1
            raise RejectedError("Neutron returned an error: Quota exceeded.", 409, OVER_QUOTA)

    cloud = FullCloud({}, 1)
    assert len(PostingWriter(cloud)(steps(*[None] * 5))) == 5
    assert cloud.requests == 6


@pytest.mark.parametrize(
    ("action", "remedy"),
    [(Action.DELETE, "Run the task again."), (Action.CREATE, "See the other errors, or create it first.")],
)
def test_the_remedy_for_a_missing_object_depends_on_the_action(action: Action, remedy: str) -> None:
    message, _result = failure(steps(MissingError(NETWORK, "n1"), action=action))
    assert message.endswith(f"network 'n1' does not exist. {remedy}")


def test_unchanged_objects_that_are_not_ready_are_waited_for() -> None:
    late = CloudError("timeout after 1 seconds. Check its state, and run the task again.", 408)
    waiting = steps(late, None, action=Action.NONE, under_way=True)
    message, result = failure(waiting)
    assert message == f"Cannot use network 'n0': {late.message}"
    assert result["networks"]["unchanged"] == ["n1"]
    # Neither in check mode nor for objects that are ready.
    assert apply(waiting, check_mode=True)["networks"]["unchanged"] == ["n0", "n1"]
    assert apply(steps(late, action=Action.NONE))["networks"]["unchanged"] == ["n0"]


def test_the_first_failed_plan_ends_the_run_and_one_result_has_all_plans() -> None:
    both = apply(steps(None), steps(None, None, family=SUBNET))
    assert (both["changed"], both["networks"]["created"], both["subnets"]["created"]) == (True, ["n0"], ["n0", "n1"])
    message, result = failure(steps(UserError("no."), None), steps(None, family=SUBNET))
    assert message == "Cannot create network 'n0': no."
    assert (result["changed"], result["networks"]["created"]) == (True, ["n1"])
    assert result["subnets"]["created"] == []
    message, result = failure(steps(None), steps(UserError("no."), family=SUBNET))
    assert (message, result["changed"]) == ("Cannot create subnet 'n0': no.", True)
    assert result["networks"]["created"] == ["n0"]


def test_an_error_after_the_plans_keeps_their_result() -> None:
    def details() -> dict[str, Any]:
        raise CloudError("Cannot connect to Nova.")

    message, result = failure(steps(None), details=details)
    assert (message, result["changed"], result["networks"]["created"]) == ("Cannot connect to Nova.", True, ["n0"])
    assert apply(steps(None), details=lambda: {"details": 1})["details"] == 1


class RemovingWriter(Writer):
    """Writer whose objects are removed first, unless they have an error ``before``."""

    def work(self, step: Step) -> None:
        error = (step.before or {}).get("error")
        if error:
            raise error
        self.removed.add(("network", step.key))
        super().work(step)
        if step.action is Action.RECREATE:
            self.created_ids["network", step.key] = "new"


@pytest.mark.parametrize("action", [Action.RECREATE, Action.DELETE])
@pytest.mark.parametrize("error", [UserError("in use."), CloudError("Cannot connect to Neutron.")])
def test_an_object_that_could_not_be_removed_keeps_its_id(action: Action, error: UserError) -> None:
    plan = [Step(NETWORK, "kept", action, before={"uuid": "old", "error": error}, desired={})]
    with pytest.raises(TaskError) as raised:
        apply_plans(Run({}, False, False, Cloud({}, 1)), lambda: [(plan, RemovingWriter())], [NETWORK])
    assert raised.value.result["ids"] == {"networks": {"kept": "old"}}


def test_a_removed_object_has_no_id() -> None:
    gone = {"uuid": "gone"}
    plan = [
        Step(NETWORK, "half-done", Action.RECREATE, before=gone, desired={"error": UserError("no.")}),
        Step(NETWORK, "recreated", Action.RECREATE, before=gone, desired={}),
        Step(NETWORK, "deleted", Action.DELETE, before=gone),
    ]
    with pytest.raises(TaskError) as raised:
        apply_plans(Run({}, False, False, Cloud({}, 1)), lambda: [(plan, RemovingWriter())], [NETWORK])
    assert raised.value.result["ids"] == {"networks": {"recreated": "new"}}
