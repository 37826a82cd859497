# SPDX-License-Identifier: GPL-3.0-or-later
"""Convergence while another client writes the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import (
    Action,
    Failure,
    Family,
    Field,
    ItemError,
    PlanError,
    Report,
    Step,
    UserError,
    build_report,
    plan,
)
from ansible_collections.openipu.pod.plugins.module_utils.replan import Attempt, converge_with_others

FAMILY = Family("host", (Field("size", immutable=True), Field("note")))
Objects = dict[str, dict[str, Any]]


class Service:
    """Service that rejects the creation of an existing object and the change or removal of a missing one."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.objects: Objects = {name: {"id": name, "size": 1, "note": "old"} for name in names}
        self.meanwhile: list[Callable[[Objects], object]] = []  # writes of other clients, one before each of ours
        self.failure: Failure | None = options.get("failure")  # of all our writes
        self.stops = options.get("stops", False)  # whether it stops at the first rejection
        self.losses: list[bool] = []  # whether the first writes without a response are made
        self.reads = 0

    def converge(self, *desired: dict[str, Any], absent: tuple[str, ...] = (), diff: bool = True) -> Report:
        def attempt() -> Attempt:
            self.reads += 1
            steps = plan(FAMILY, desired, [dict(item) for item in self.objects.values()], absent)
            return Attempt(steps, lambda: (steps, build_report(steps, self._write(steps), diff)))

        return converge_with_others(attempt, diff)[1]

    def _write(self, steps: list[Step]) -> list[ItemError]:
        if self.meanwhile:
            self.meanwhile.pop(0)(self.objects)
        work = [step for step in steps if step.action is not Action.NONE]
        if self.losses:
            if self.losses.pop(0):
                assert all(self._one(step) for step in work)
            return [ItemError.of(step, "No response.", Failure.FAILED, unknown=True) for step in work]
        if self.failure:
            return [ItemError.of(step, "No.", self.failure) for step in work]
        errors: list[ItemError] = []
        for step in work:
            if self.stops and errors:
                errors.append(ItemError.of(step, "Not tried.", Failure.NOT_TRIED))
            elif not self._one(step):
                errors.append(ItemError.of(step, f"Cannot write '{step.key}'."))
        return errors

    def _one(self, step: Step) -> bool:
        if (step.action is Action.CREATE) is (step.key in self.objects):
            return False
        if step.action is Action.DELETE:
            del self.objects[step.key]
        else:
            self.objects[step.key] = step.full_object
        return True


def host(id: str = "a", size: int = 1, note: str = "new") -> dict[str, Any]:
    return {"id": id, "size": size, "note": note}


def creates(**fields: Any) -> Callable[[Objects], object]:
    return lambda objects: objects.update({"a": host(**fields)})


def test_an_object_that_another_client_created_is_unchanged() -> None:
    service = Service()
    service.meanwhile = [creates()]
    result = service.converge(host()).result()
    assert (result["changed"], result["hosts"]["unchanged"], result["hosts"]["created"]) == (False, ["a"], [])
    assert (result["diff"], "msg" in result, service.reads) == ({"before": {}, "after": {}}, False, 2)


def test_an_object_that_another_client_created_is_changed() -> None:
    service = Service()
    service.meanwhile = [creates(note="theirs")]
    result = service.converge(host(), host("b")).result()
    assert (result["changed"], result["hosts"]["updated"], result["hosts"]["created"]) == (True, ["a"], ["b"])
    assert result["diff"]["before"] == {"hosts": {"a": host(note="theirs")}}
    assert result["diff"]["after"] == {"hosts": {"a": host(), "b": host("b")}}
    assert service.objects["a"] == host()


def test_a_different_object_of_another_client_is_an_error() -> None:
    service = Service()
    service.meanwhile = [creates(size=2)]
    report = service.converge(host(), host("b"))
    assert report.message.startswith("Cannot change size of host 'a' from 2 to 1: the field is immutable.")
    assert report.error_code == PlanError.error_code
    result = report.result()
    assert (result["failed"], result["changed"], result["hosts"]["created"]) == (True, True, ["b"])
    assert [error["msg"] for error in result["errors"]] == ["Cannot write 'a'."]


def test_an_object_that_another_client_removed() -> None:
    service = Service("a")
    service.meanwhile = [lambda objects: objects.clear()]
    result = service.converge(absent=("a",)).result()
    assert (result["changed"], "msg" in result) == (False, False)
    service = Service("a")
    service.meanwhile = [lambda objects: objects.clear()]
    result = service.converge(host()).result()
    assert (result["changed"], result["hosts"]["created"]) == (True, ["a"])


def test_a_removal_stays_in_the_result_of_a_later_plan() -> None:
    service = Service("b")
    service.meanwhile = [creates()]
    result = service.converge(host(), absent=("b",)).result()
    assert (result["changed"], result["hosts"]["removed"], result["hosts"]["unchanged"]) == (True, ["b"], ["a"])
    assert set(result["diff"]["before"]["hosts"]) == {"b"}


@pytest.mark.parametrize(("failure", "reads"), [(Failure.REJECTED, 2), (Failure.FAILED, 1), (Failure.NOT_TRIED, 1)])
def test_a_rejection_without_another_client_stays_an_error(failure: Failure, reads: int) -> None:
    service = Service(failure=failure)
    report = service.converge(host())
    assert (report.message, report.changed, service.reads) == ("No.", False, reads)


def test_an_object_that_this_task_removed_is_no_conflict() -> None:
    service = Service("a", failure=Failure.HALF_DONE)
    service.meanwhile = [lambda objects: objects.clear()]
    report = service.converge(host())
    assert (report.failed, report.changed, service.reads) == (True, True, 1)


def test_a_blocked_plan_is_made_again() -> None:
    service = Service(failure=Failure.BLOCKED)
    service.meanwhile = [lambda objects: None, lambda objects: setattr(service, "failure", None)]
    result = service.converge(host()).result()
    assert (result["hosts"]["created"], service.reads) == (["a"], 2)


@pytest.mark.parametrize("made", [True, False])
def test_a_change_without_a_response(made: bool) -> None:
    """Every change is in the result, whether it was made by the first or by the second call."""
    service = Service("b", "c")
    service.losses = [made]
    result = service.converge(host(), host("c"), absent=("b",)).result()
    verbs = {"created": ["a"], "updated": ["c"], "recreated": [], "removed": ["b"], "unchanged": []}
    assert (result["changed"], result["hosts"], "msg" in result) == (True, verbs, False)
    assert result["diff"]["after"] == {"hosts": {"a": host(), "c": host("c")}}
    assert service.reads == 2


def test_a_change_that_a_controller_makes_late() -> None:
    """The second plan is rejected, because the first call is made after it was read."""
    service = Service()
    service.losses = [False]
    service.meanwhile = [lambda objects: None, creates()]
    result = service.converge(host()).result()
    assert (result["changed"], result["hosts"]["created"], service.reads) == (True, ["a"], 3)


def test_changes_without_a_response_are_limited() -> None:
    service = Service()
    service.losses = [False] * 5
    report = service.converge(host())
    assert (report.failed, report.message, report.changed, service.reads) == (True, "No response.", False, 3)


def test_the_number_of_plans_is_limited() -> None:
    service = Service()
    service.meanwhile = [creates(), lambda objects: objects.clear()] * 3
    report = service.converge(host(note="mine"))
    assert (report.failed, service.reads) == (True, 3)


def test_plans_with_another_choice_are_not_limited() -> None:
    """Each plan chooses the first size that is free, and another client takes it before the write."""
    taken: list[int] = []

    def attempt() -> Attempt:
        size = next(size for size in range(10) if size not in taken)
        steps = plan(FAMILY, [host(size=size)], [])

        def apply() -> tuple[list[Step], Report]:
            lost = len(taken) < 6
            taken.append(size)
            return steps, build_report(steps, [ItemError.of(steps[0], "It is taken.")] if lost else [], True)

        return Attempt(steps, apply)

    _steps, report = converge_with_others(attempt, True)
    assert (report.failed, taken) == (False, [0, 1, 2, 3, 4, 5, 6])


def test_choices_that_alternate_are_limited() -> None:
    sizes: list[int] = []

    def attempt() -> Attempt:
        sizes.append(len(sizes) % 2)
        steps = plan(FAMILY, [host(size=sizes[-1])], [])
        return Attempt(steps, lambda: (steps, build_report(steps, [ItemError.of(steps[0], "It is taken.")], True)))

    _steps, report = converge_with_others(attempt, True)
    assert (report.message, sizes) == ("It is taken.", [0, 1, 0, 1])


def test_plans_that_make_progress_are_not_limited() -> None:
    names = "abcdefgh"
    service = Service(stops=True)
    service.meanwhile = [lambda objects, name=name: objects.update({name: host(name)}) for name in names]  # type: ignore[misc]
    result = service.converge(*map(host, names)).result()
    assert (result["changed"], result["hosts"]["unchanged"], service.reads) == (False, list(names), len(names) + 1)


def test_the_first_error_stays_when_the_state_cannot_be_read_again() -> None:
    def attempt() -> Attempt:
        if made:
            raise UserError("No response.")
        made.append(1)
        steps = plan(FAMILY, [host()], [])
        return Attempt(steps, lambda: (steps, build_report(steps, [ItemError.of(steps[0], "It exists.")], False)))

    made: list[int] = []
    assert converge_with_others(attempt, False)[1].message == "It exists."
