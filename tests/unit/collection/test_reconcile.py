# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the engine: planning, writing, reporting."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import (
    Action,
    Failure,
    Family,
    Field,
    ItemError,
    Mode,
    PlanError,
    Step,
    converge,
    format_value,
    plan,
)
from hypothesis import given
from hypothesis import strategies as st

FAMILY = Family(
    "lamp",
    (
        Field("socket", immutable=True),
        Field("brightness"),
        Field("colours", Mode.SET),
        Field("watts", Mode.SERVER_DEFAULTED),
        Field("code", Mode.WRITE_ONLY),
        Field("shade", view=lambda value: str(value).lower()),
    ),
)


def lamp(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, **fields}


def unexpected_write(steps: list[Step]) -> list[ItemError]:
    raise AssertionError("the writer was called")


@pytest.mark.parametrize(
    ("desired", "actual", "action"),
    [
        ({"brightness": 3}, None, Action.CREATE),
        ({"brightness": 3}, {"brightness": 3}, Action.NONE),
        ({"brightness": 3}, {"brightness": 4}, Action.CHANGE),
        ({"brightness": 0}, {"brightness": 4}, Action.CHANGE),
        ({"brightness": None}, {"brightness": 4}, Action.NONE),
        ({"brightness": 3}, {}, Action.NONE),  # the brightness is not reported
        ({"colours": ["r", "g"]}, {"colours": ["g", "r"]}, Action.NONE),
        ({"colours": []}, {"colours": ["g"]}, Action.CHANGE),
        ({"watts": 0}, {"watts": 60}, Action.NONE),
        ({"watts": 40}, {"watts": 60}, Action.CHANGE),
        ({"code": "x"}, {"code": None}, Action.NONE),
        ({"shade": "Red"}, {"shade": "rEd"}, Action.NONE),
        ({"socket": "E27"}, {"socket": "E27"}, Action.NONE),
    ],
)
def test_comparison(desired: dict[str, Any], actual: dict[str, Any] | None, action: Action) -> None:
    existing = [] if actual is None else [lamp("a", **actual)]
    assert plan(FAMILY, [lamp("a", **desired)], existing)[0].action is action


def test_change_of_an_immutable_field_requires_recreate() -> None:
    desired, actual = [lamp("a", socket="E14")], [lamp("a", socket="E27")]
    with pytest.raises(PlanError) as rejection:
        plan(FAMILY, desired, actual)
    message = str(rejection.value)
    assert message == (
        "Cannot change socket of lamp 'a' from E27 to E14: the field is immutable. Set recreate to remove the object "
        "and create it again, or remove it first."
    )
    assert rejection.value.message == message
    assert plan(FAMILY, desired, actual, recreate=True)[0].action is Action.RECREATE


def test_duplicate_key_is_rejected_with_both_indexes() -> None:
    with pytest.raises(PlanError) as rejection:
        plan(FAMILY, [lamp("a"), lamp("b"), lamp("a")], [])
    assert str(rejection.value) == (
        "Cannot plan lamp 'a': it is listed twice, at lamps[0] and lamps[2]. Remove one of them."
    )


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (9000, "9000"), (["a", 2], "[a, 2]"), (None, "None")]
)
def test_values_in_messages(value: Any, text: str) -> None:
    assert format_value(value) == text


def test_unreported_fields_are_those_that_the_actual_object_lacks() -> None:
    desired = lamp("a", brightness=3, colours=["r"], watts=0, code="x", shade=None)
    assert FAMILY.unreported(desired, lamp("a", colours=["r"])) == ["brightness"]
    assert FAMILY.unreported(desired, lamp("a", brightness=3, colours=[])) == []


def test_changed_fields_of_a_step() -> None:
    desired, actual = lamp("a", brightness=3, socket="E27", shade="red"), lamp("a", brightness=4, socket="E27")
    assert [field.name for field in plan(FAMILY, [desired], [actual])[0].changed_fields] == ["brightness"]
    assert plan(FAMILY, [desired], [])[0].changed_fields == []
    assert plan(FAMILY, [], [actual], absent=["a"])[0].changed_fields == []


def test_prune_deletes_only_selected_objects() -> None:
    actual = [lamp("mine", owner="me"), lamp("theirs", owner="them"), lamp("desired", owner="me")]
    steps = plan(FAMILY, [lamp("desired")], actual, prune=lambda item: item["owner"] == "me")
    assert [(step.key, step.action) for step in steps] == [("desired", Action.NONE), ("mine", Action.DELETE)]


def test_writer_is_called_once_and_only_with_changes() -> None:
    batches: list[list[str]] = []

    def writer(steps: list[Step]) -> list[ItemError]:
        batches.append([step.key for step in steps])
        return []

    steps = plan(FAMILY, [lamp("a"), lamp("b")], [lamp("b"), lamp("c")], absent=["c", "d"])
    report = converge(steps, writer, check_mode=False, diff=False)
    assert batches == [["a", "c"]]
    assert report.result() == {
        "changed": True,
        "lamps": {"created": ["a"], "updated": [], "recreated": [], "removed": ["c"], "unchanged": ["b"]},
    }
    converge(plan(FAMILY, [lamp("b")], [lamp("b")]), unexpected_write, check_mode=False, diff=False)


def test_check_mode_reports_the_same_and_writes_nothing() -> None:
    steps = plan(FAMILY, [lamp("a", brightness=1)], [lamp("a", brightness=2)], absent=["c"])
    predicted = converge(steps, unexpected_write, check_mode=True, diff=True).result()
    assert predicted == converge(steps, lambda steps: [], check_mode=False, diff=True).result()


def test_diff_has_changed_objects_without_secrets() -> None:
    steps = plan(
        FAMILY,
        [lamp("new", brightness=1, code="secret"), lamp("old", brightness=2), lamp("same", brightness=3)],
        [lamp("old", brightness=1, colours=["r"]), lamp("same", brightness=3), lamp("gone", brightness=9)],
        absent=["gone"],
    )
    assert converge(steps, unexpected_write, check_mode=True, diff=True).diff == {
        "before": {"lamps": {"gone": lamp("gone", brightness=9), "old": lamp("old", brightness=1, colours=["r"])}},
        "after": {"lamps": {"new": lamp("new", brightness=1), "old": lamp("old", brightness=2, colours=["r"])}},
    }


def test_failed_step_is_not_reported_as_done() -> None:
    steps = plan(FAMILY, [lamp("a"), lamp("b")], [])
    report = converge(steps, lambda steps: [ItemError("lamp", "b", "No socket.")], check_mode=False, diff=True)
    result = report.result()
    assert (result["failed"], result["msg"], result["lamps"]["created"]) == (True, "No socket.", ["a"])
    assert list(result["diff"]["after"]["lamps"]) == ["a"]
    assert result["errors"] == [{"kind": "lamp", "id": "b", "msg": "No socket.", "error_code": "OPU100"}]


def test_step_not_tried_is_neither_success_nor_cause() -> None:
    steps = plan(FAMILY, [lamp("a"), lamp("b")], [])
    errors = [ItemError.of(steps[0], "No socket."), ItemError.of(steps[1], "Not tried.", Failure.NOT_TRIED)]
    report = converge(steps, lambda steps: errors, check_mode=False, diff=False)
    assert (report.changed, report.message) == (False, "No socket.")
    assert [error["id"] for error in report.result()["errors"]] == ["a", "b"]


@pytest.mark.parametrize("message", ["No socket.", "Cannot create lamp 'a': No socket."])
def test_half_done_step_counts_as_changed(message: str) -> None:
    steps = plan(FAMILY, [lamp("a", socket="E14")], [lamp("a", socket="E27")], recreate=True)
    error = ItemError.of(steps[0], message, Failure.HALF_DONE)
    report = converge(steps, lambda steps: [error], check_mode=False, diff=False)
    assert (report.changed, report.message) == (
        True,
        "Cannot recreate lamp 'a': it was removed and could not be created again: No socket.",
    )


def test_change_keeps_unset_fields() -> None:
    actual = [lamp("a", brightness=1, colours=["r"], lit=True)]
    step = plan(FAMILY, [lamp("a", brightness=2, colours=None, code="x")], actual)[0]
    assert step.full_object == lamp("a", brightness=2, colours=["r"], code="x")
    assert step.after == lamp("a", brightness=2, colours=["r"], lit=True)


def test_setting_a_field_drops_its_alternative() -> None:
    family = Family("shelf", (Field("size", replaces="books"), Field("books", replaces="size")))
    existing = [{"id": "a", "size": 2, "books": ["x", "y"]}]
    assert plan(family, [{"id": "a", "size": 3}], existing)[0].full_object == {"id": "a", "size": 3}
    assert plan(family, [{"id": "a", "books": ["x"]}], existing)[0].full_object == {"id": "a", "books": ["x"]}
    assert plan(family, [{"id": "a", "size": 1, "books": ["x"]}], existing)[0].full_object == {
        "id": "a",
        "size": 1,
        "books": ["x"],
    }


def test_diff_sorts_sets() -> None:
    steps = plan(FAMILY, [lamp("a", colours=["r", "g"])], [lamp("a", colours=["r", "b"])])
    diff = converge(steps, unexpected_write, check_mode=True, diff=True).diff
    assert diff is not None
    assert diff["before"]["lamps"]["a"]["colours"] == ["b", "r"]
    assert diff["after"]["lamps"]["a"]["colours"] == ["g", "r"]


@pytest.mark.parametrize(
    ("actual", "desired", "before", "after"),
    [
        (["a", "b", "c"], ["b", "d", "c"], ["a"], ["d"]),
        (["a"], [], ["a"], []),
        (["a"], None, [], []),  # unchanged
        (None, ["a"], None, ["a"]),
    ],
)
def test_diff_of_a_list_has_no_common_members(
    actual: list[str] | None, desired: list[str] | None, before: list[str] | None, after: list[str] | None
) -> None:
    family = Family("lamp", (Field("brightness"), Field("bulbs", member=lambda bulb: bulb["id"])))

    def having(ids: list[str] | None, brightness: int) -> dict[str, Any]:
        bulbs = {} if ids is None else {"bulbs": [{"id": each} for each in ids]}
        return lamp("x", brightness=brightness, **bulbs)

    diff = converge(
        plan(family, [having(desired, 1)], [having(actual, 2)]), unexpected_write, check_mode=True, diff=True
    )
    assert diff.diff == {"before": {"lamps": {"x": having(before, 2)}}, "after": {"lamps": {"x": having(after, 1)}}}


def test_diff_of_a_new_object_has_all_members_of_a_list() -> None:
    family = Family("lamp", (Field("bulbs", member=lambda bulb: bulb["id"]),))
    new = lamp("x", bulbs=[{"id": "a"}])
    diff = converge(plan(family, [new], []), unexpected_write, check_mode=True, diff=True)
    assert diff.diff == {"before": {}, "after": {"lamps": {"x": new}}}


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "socket": st.sampled_from(["E14", "E27", None]),
        "brightness": st.integers(0, 3) | st.none(),
        "colours": st.lists(st.sampled_from("rgb"), unique=True),
        "watts": st.integers(0, 2),
        "code": st.sampled_from(["x", "y"]),
    },
)
LAMPS = st.dictionaries(st.sampled_from("abcdef"), FIELDS).map(
    lambda found: [lamp(id, **fields) for id, fields in found.items()]
)


@given(desired=LAMPS, actual=LAMPS, absent=st.sets(st.sampled_from("abcdef")))
def test_plan_is_empty_after_it_was_applied(
    desired: list[dict[str, Any]], actual: list[dict[str, Any]], absent: set[str]
) -> None:
    objects = {item["id"]: item for item in actual}

    def writer(steps: list[Step]) -> list[ItemError]:
        for step in steps:
            if step.desired is None:
                del objects[step.key]
            else:  # a writer replaces; the code cannot be read back
                objects[step.key] = {name: value for name, value in step.full_object.items() if name != "code"}
        return []

    steps = plan(FAMILY, desired, actual, absent, recreate=True)
    predicted = converge(steps, unexpected_write, check_mode=True, diff=True).result()
    assert predicted == converge(steps, writer, check_mode=False, diff=True).result()
    again = plan(FAMILY, desired, list(objects.values()), absent, recreate=True)
    assert {step.action for step in again} <= {Action.NONE}
    keys = {item["id"] for item in desired}
    assert not (absent - keys) & objects.keys()
    assert keys <= objects.keys()


@given(desired=LAMPS, actual=LAMPS)
def test_change_keeps_every_unset_field(desired: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    existing = {item["id"]: item for item in actual}
    for step in plan(FAMILY, desired, actual, recreate=True):
        if step.action is Action.CHANGE:
            set_fields = {f.name for f in FAMILY.fields if f.is_set(step.desired or {})}
            for name, value in existing[step.key].items():
                assert name in set_fields or value is None or step.full_object[name] == value


@given(desired=LAMPS, actual=LAMPS, owned=st.sets(st.sampled_from("abcdef")))
def test_prune_deletes_owned_objects_that_are_not_desired(
    desired: list[dict[str, Any]], actual: list[dict[str, Any]], owned: set[str]
) -> None:
    steps = plan(FAMILY, desired, actual, prune=lambda item: item["id"] in owned, recreate=True)
    deleted = {step.key for step in steps if step.action is Action.DELETE}
    assert deleted == ({item["id"] for item in actual} & owned) - {item["id"] for item in desired}


@given(
    colours=st.lists(st.sampled_from("rgbcmyk"), unique=True).flatmap(
        lambda c: st.tuples(st.just(c), st.permutations(c))
    )
)
def test_order_of_a_set_is_ignored(colours: tuple[list[str], list[str]]) -> None:
    desired_colours, actual_colours = colours
    assert (
        plan(FAMILY, [lamp("a", colours=desired_colours)], [lamp("a", colours=actual_colours)])[0].action is Action.NONE
    )


@given(desired=LAMPS, actual=LAMPS)
def test_order_of_actual_objects_is_ignored(desired: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    assert plan(FAMILY, desired, actual, recreate=True) == plan(FAMILY, desired, actual[::-1], recreate=True)


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ({"a": "OPU608"}, "OPU608"),
        ({"a": "OPU608", "b": "OPU608"}, "OPU608"),
        ({"a": "OPU608", "b": "OPU605"}, "OPU102"),
    ],
)
def test_the_result_has_the_code_on_which_all_reported_errors_agree(codes: dict[str, str], code: str) -> None:
    def reject(steps: list[Step]) -> list[ItemError]:
        errors = [ItemError.of(step, "no.", error_code=codes[step.key]) for step in steps if step.key in codes]
        rest = [step for step in steps if step.key not in codes]
        return errors + [ItemError.of(step, "not tried.", Failure.NOT_TRIED) for step in rest]

    result = converge(plan(FAMILY, [lamp("a"), lamp("b"), lamp("c")], []), reject, False, False).result()
    assert result["error_code"] == code
    assert {error["id"]: error["error_code"] for error in result["errors"]} == {"b": "OPU100", "c": "OPU100", **codes}
