# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine: what it plans, what it writes, what it tells."""

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


def never(steps: list[Step]) -> list[ItemError]:
    raise AssertionError("the writer was called")


@pytest.mark.parametrize(
    ("wanted", "actual", "action"),
    [
        ({"brightness": 3}, None, Action.CREATE),
        ({"brightness": 3}, {"brightness": 3}, Action.NONE),
        ({"brightness": 3}, {"brightness": 4}, Action.CHANGE),
        ({"brightness": 0}, {"brightness": 4}, Action.CHANGE),
        ({"brightness": None}, {"brightness": 4}, Action.NONE),
        ({"brightness": 3}, {}, Action.NONE),  # nobody can tell how bright it is
        ({"colours": ["r", "g"]}, {"colours": ["g", "r"]}, Action.NONE),
        ({"colours": []}, {"colours": ["g"]}, Action.CHANGE),
        ({"watts": 0}, {"watts": 60}, Action.NONE),
        ({"watts": 40}, {"watts": 60}, Action.CHANGE),
        ({"code": "x"}, {"code": None}, Action.NONE),
        ({"shade": "Red"}, {"shade": "rEd"}, Action.NONE),
        ({"socket": "E27"}, {"socket": "E27"}, Action.NONE),
    ],
)
def test_comparison(wanted: dict[str, Any], actual: dict[str, Any] | None, action: Action) -> None:
    there = [] if actual is None else [lamp("a", **actual)]
    assert plan(FAMILY, [lamp("a", **wanted)], there)[0].action is action


def test_an_immutable_field_needs_leave_to_recreate() -> None:
    wanted, actual = [lamp("a", socket="E14")], [lamp("a", socket="E27")]
    with pytest.raises(PlanError, match="Lamp 'a' has socket E27 and cannot be changed to E14: set recreate"):
        plan(FAMILY, wanted, actual)
    assert plan(FAMILY, wanted, actual, recreate=True)[0].action is Action.RECREATE


def test_a_key_wanted_twice_is_refused_with_both_places() -> None:
    with pytest.raises(PlanError, match=r"Lamp 'a' stands twice, at lamps\[0\] and lamps\[2\]"):
        plan(FAMILY, [lamp("a"), lamp("b"), lamp("a")], [])


def test_prune_takes_only_what_it_may() -> None:
    actual = [lamp("mine", owner="me"), lamp("theirs", owner="them"), lamp("wanted", owner="me")]
    steps = plan(FAMILY, [lamp("wanted")], actual, prune=lambda item: item["owner"] == "me")
    assert [(step.key, step.action) for step in steps] == [("wanted", Action.NONE), ("mine", Action.DELETE)]


def test_the_writer_is_called_once_and_only_with_work() -> None:
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
    converge(plan(FAMILY, [lamp("b")], [lamp("b")]), never, check_mode=False, diff=False)


def test_check_mode_tells_the_same_and_writes_nothing() -> None:
    steps = plan(FAMILY, [lamp("a", brightness=1)], [lamp("a", brightness=2)], absent=["c"])
    told = converge(steps, never, check_mode=True, diff=True).result()
    assert told == converge(steps, lambda steps: [], check_mode=False, diff=True).result()


def test_the_diff_shows_what_changes_and_no_secret() -> None:
    steps = plan(
        FAMILY,
        [lamp("new", brightness=1, code="secret"), lamp("old", brightness=2), lamp("same", brightness=3)],
        [lamp("old", brightness=1, colours=["r"]), lamp("same", brightness=3), lamp("gone", brightness=9)],
        absent=["gone"],
    )
    assert converge(steps, never, check_mode=True, diff=True).diff == {
        "before": {"lamps": {"gone": lamp("gone", brightness=9), "old": lamp("old", brightness=1, colours=["r"])}},
        "after": {"lamps": {"new": lamp("new", brightness=1), "old": lamp("old", brightness=2, colours=["r"])}},
    }


def test_what_failed_is_not_told_as_done() -> None:
    steps = plan(FAMILY, [lamp("a"), lamp("b")], [])
    report = converge(steps, lambda steps: [ItemError("lamp", "b", "No socket.")], check_mode=False, diff=True)
    result = report.result()
    assert (result["failed"], result["msg"], result["lamps"]["created"]) == (True, "No socket.", ["a"])
    assert list(result["diff"]["after"]["lamps"]) == ["a"]


def test_what_was_not_tried_is_no_success_and_no_reason() -> None:
    steps = plan(FAMILY, [lamp("a"), lamp("b")], [])
    errors = [ItemError.of(steps[0], "No socket."), ItemError.of(steps[1], "Not tried.", Failure.NOT_TRIED)]
    report = converge(steps, lambda steps: errors, check_mode=False, diff=False)
    assert (report.changed, report.message) == (False, "No socket.")
    assert [error["id"] for error in report.result()["errors"]] == ["a", "b"]


def test_half_done_is_changed() -> None:
    steps = plan(FAMILY, [lamp("a", socket="E14")], [lamp("a", socket="E27")], recreate=True)
    error = ItemError.of(steps[0], "No socket.", Failure.HALF_DONE)
    report = converge(steps, lambda steps: [error], check_mode=False, diff=False)
    assert (report.changed, report.message) == (True, "Lamp 'a' was removed and is not made anew: No socket.")


def test_a_change_keeps_what_is_not_asked_for() -> None:
    room = [lamp("a", brightness=1, colours=["r"], lit=True)]
    step = plan(FAMILY, [lamp("a", brightness=2, colours=None, code="x")], room)[0]
    assert step.whole == lamp("a", brightness=2, colours=["r"], code="x")
    assert step.after == lamp("a", brightness=2, colours=["r"], lit=True)


def test_asking_one_way_gives_up_the_other() -> None:
    family = Family("shelf", (Field("size", instead_of="books"), Field("books", instead_of="size")))
    there = [{"id": "a", "size": 2, "books": ["x", "y"]}]
    assert plan(family, [{"id": "a", "size": 3}], there)[0].whole == {"id": "a", "size": 3}
    assert plan(family, [{"id": "a", "books": ["x"]}], there)[0].whole == {"id": "a", "books": ["x"]}
    assert plan(family, [{"id": "a", "size": 1, "books": ["x"]}], there)[0].whole == {
        "id": "a",
        "size": 1,
        "books": ["x"],
    }


def test_a_diff_gives_what_has_no_order_one() -> None:
    steps = plan(FAMILY, [lamp("a", colours=["r", "g"])], [lamp("a", colours=["r", "b"])])
    diff = converge(steps, never, check_mode=True, diff=True).diff
    assert diff is not None
    assert diff["before"]["lamps"]["a"]["colours"] == ["b", "r"]
    assert diff["after"]["lamps"]["a"]["colours"] == ["g", "r"]


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


@given(wanted=LAMPS, actual=LAMPS, absent=st.sets(st.sampled_from("abcdef")))
def test_after_a_plan_is_carried_out_nothing_is_left_to_do(
    wanted: list[dict[str, Any]], actual: list[dict[str, Any]], absent: set[str]
) -> None:
    room = {item["id"]: item for item in actual}

    def writer(steps: list[Step]) -> list[ItemError]:
        for step in steps:
            if step.wanted is None:
                del room[step.key]
            else:  # a writer replaces; the code cannot be read back
                room[step.key] = {name: value for name, value in step.whole.items() if name != "code"}
        return []

    steps = plan(FAMILY, wanted, actual, absent, recreate=True)
    told = converge(steps, never, check_mode=True, diff=True).result()
    assert told == converge(steps, writer, check_mode=False, diff=True).result()
    again = plan(FAMILY, wanted, list(room.values()), absent, recreate=True)
    assert {step.action for step in again} <= {Action.NONE}
    keys = {item["id"] for item in wanted}
    assert not (absent - keys) & room.keys()
    assert keys <= room.keys()


@given(wanted=LAMPS, actual=LAMPS)
def test_a_plan_loses_nothing_that_it_was_not_asked_about(
    wanted: list[dict[str, Any]], actual: list[dict[str, Any]]
) -> None:
    there = {item["id"]: item for item in actual}
    for step in plan(FAMILY, wanted, actual, recreate=True):
        if step.action is Action.CHANGE:
            asked = {f.name for f in FAMILY.fields if f.asked(step.wanted or {})}
            for name, value in there[step.key].items():
                assert name in asked or value is None or step.whole[name] == value


@given(wanted=LAMPS, actual=LAMPS, mine=st.sets(st.sampled_from("abcdef")))
def test_pruning_takes_what_it_owns_and_nobody_wants(
    wanted: list[dict[str, Any]], actual: list[dict[str, Any]], mine: set[str]
) -> None:
    steps = plan(FAMILY, wanted, actual, prune=lambda item: item["id"] in mine, recreate=True)
    gone = {step.key for step in steps if step.action is Action.DELETE}
    assert gone == ({item["id"] for item in actual} & mine) - {item["id"] for item in wanted}


@given(
    colours=st.lists(st.sampled_from("rgbcmyk"), unique=True).flatmap(
        lambda c: st.tuples(st.just(c), st.permutations(c))
    )
)
def test_a_set_has_no_order(colours: tuple[list[str], list[str]]) -> None:
    ours, theirs = colours
    assert plan(FAMILY, [lamp("a", colours=ours)], [lamp("a", colours=theirs)])[0].action is Action.NONE


@given(wanted=LAMPS, actual=LAMPS)
def test_the_order_of_what_is_there_does_not_matter(wanted: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    assert plan(FAMILY, wanted, actual, recreate=True) == plan(FAMILY, wanted, actual[::-1], recreate=True)
