# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps carried out some at a time: each fails on its own, all are waited for, and what is not ready is told."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.attempts import Awaiting
from ansible_collections.openipu.pod.plugins.module_utils.openstack.carrying import carried_out, carry_out, telling
from ansible_collections.openipu.pod.plugins.module_utils.openstack.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.options import Run
from ansible_collections.openipu.pod.plugins.module_utils.openstack.resources import NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, ItemError, SentenceError, Step
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError


class Writer(Awaiting):
    """Each step does what its object says."""

    def __init__(self) -> None:
        super().__init__(Cloud({}, 4), "network")

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        self.each(steps, self.work)
        return self.errors

    def work(self, step: Step) -> None:
        does = (step.wanted or {}).get("does")
        if does:
            raise does
        self.wrote = True

    def ready(self, step: Step) -> None:
        self.work(step)


def steps(*does: Exception | None, action: Action = Action.CREATE, under_way: bool = False) -> list[Step]:
    before = {"under_way": under_way}
    return [
        Step(NETWORK, f"n{n}", action, before=before, wanted={"name": f"n{n}", "does": what})
        for n, what in enumerate(does)
    ]


def run(check_mode: bool = False) -> Run:
    return Run({}, check_mode, False, Cloud({}, 1))


@pytest.mark.parametrize("error", [SentenceError("two have this name."), CloudError("Neutron says: no.", 409)])
def test_what_is_refused_fails_alone(error: SentenceError) -> None:
    report = carried_out(run(), steps(error, None), Writer())
    assert [(e.key, e.sentence) for e in report.errors] == [("n0", f"Cannot create network 'n0': {error.sentence}")]
    assert (report.changed, report.done["networks"]["created"]) == (True, ["n1"])


def test_nobody_there_ends_it() -> None:
    report = carried_out(run(), steps(*[CloudError("Neutron does not answer.")] * 9), Writer())
    assert {e.sentence for e in report.errors} == {"Neutron does not answer."}


def test_all_have_ended_when_the_first_error_is_raised() -> None:
    go, ended = threading.Event(), threading.Event()

    def work(number: int) -> None:
        if number == 0:
            threading.Timer(0.2, go.set).start()
            raise SentenceError("no.")
        go.wait(5)
        ended.set()

    with pytest.raises(SentenceError):
        Cloud({}, 2).together(work, [0, 1])
    assert ended.is_set()


def test_what_is_as_it_should_be_and_not_ready_is_waited_for() -> None:
    late = CloudError("it took longer than 1 seconds: look at it, and run again.", 408)
    waiting = steps(late, None, action=Action.NONE, under_way=True)
    with pytest.raises(TaskError) as told:
        carry_out(run(), waiting, Writer(), [NETWORK])
    assert told.value.sentence == f"Cannot use network 'n0': {late.sentence}"
    assert told.value.result["networks"]["unchanged"] == ["n1"]
    # Not in check mode, and not what is ready.
    assert not carried_out(run(check_mode=True), waiting, Writer()).failed
    assert not carried_out(run(), steps(late, action=Action.NONE), Writer()).failed


def test_what_was_done_is_told_whatever_goes_wrong_after_it() -> None:
    result: dict[str, Any] = {"changed": True}
    with pytest.raises(TaskError) as told, telling(result):
        raise CloudError("Nova does not answer.")
    assert (told.value.sentence, told.value.result) == ("Nova does not answer.", result)
