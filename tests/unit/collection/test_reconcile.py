# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine: what it plans, what it writes, what it tells."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import (
    Action,
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
    whole = converge(steps, lambda steps: [ItemError("lamp", "", "No power.")], check_mode=False, diff=False)
    assert (whole.changed, whole.message) == (False, "No power.")


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
            after = step.after
            if after is None:
                del room[step.key]
            else:
                room[step.key] = after
        return []

    converge(plan(FAMILY, wanted, actual, absent, recreate=True), writer, check_mode=False, diff=False)
    again = plan(FAMILY, wanted, list(room.values()), absent, recreate=True)
    assert {step.action for step in again} <= {Action.NONE}
    keys = {item["id"] for item in wanted}
    assert not (absent - keys) & room.keys()
    assert keys <= room.keys()


@given(wanted=LAMPS, actual=LAMPS)
def test_the_order_of_what_is_there_does_not_matter(wanted: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    assert plan(FAMILY, wanted, actual, recreate=True) == plan(FAMILY, wanted, actual[::-1], recreate=True)
