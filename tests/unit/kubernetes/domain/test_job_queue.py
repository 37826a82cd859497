# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of the jobs that wait for IPUs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openipu.kubernetes.domain.job_queue import PATIENCE_SECONDS, JobQueue, is_reportable


def queue(*jobs: tuple[str, str, str], since: float = 0.0) -> JobQueue:
    """Return a queue of jobs: namespace, name and time of creation."""
    found = JobQueue()
    for namespace, name, created in jobs:
        found.add((namespace, name), created, since)
    return found


def test_the_oldest_job_of_a_namespace_is_first() -> None:
    found = queue(("a", "late", "2"), ("a", "early", "1"), ("b", "other", "0"))
    assert found.first("a") == ("a", "early")
    assert [found.position(("a", name)) for name in ("early", "late")] == [1, 2]
    assert list(found.behind("a")) == [("a", "late")]
    assert found.namespaces() == ["b", "a"]
    assert found.remove(("a", "early"))
    assert not found.remove(("a", "early"))
    assert found.first("a") == ("a", "late")
    assert found.remove(("a", "late"))
    assert found.first("a") is None
    assert ("b", "other") in found
    assert len(found) == 1


def test_a_job_keeps_its_position() -> None:
    found = queue(("a", "x", "1"), ("a", "y", "2"))
    found.add(("a", "y"), "0", 5.0)
    assert found.first("a") == ("a", "x")


def test_a_job_that_waits_for_long_blocks_later_ones_of_other_namespaces() -> None:
    found = queue(("a", "large", "1"))
    found.add(
        (
            "a",
            "next",
        ),
        "2",
        0.0,
    )
    found.add(("b", "small"), "3", 0.0)
    assert found.blocked_by(("b", "small"), PATIENCE_SECONDS - 1) is None
    assert found.blocked_by(("b", "small"), PATIENCE_SECONDS) == ("a", "large")
    assert found.blocked_by(("a", "large"), PATIENCE_SECONDS) is None
    found.add(("c", "older"), "0", 0.0)
    assert found.blocked_by(("c", "older"), PATIENCE_SECONDS) is None


def test_a_job_that_cannot_run_blocks_nobody() -> None:
    found = queue(("a", "huge", "1"), ("a", "small", "2"), ("b", "other", "3"))
    found.set_schedulable(("a", "huge"), schedulable=False)
    assert found.first("a") == ("a", "small")
    assert found.position(("a", "small")) == 1
    assert list(found.behind("a")) == []
    assert found.blocked_by(("b", "other"), PATIENCE_SECONDS) == ("a", "small")
    found.remove(("a", "small"))
    assert found.blocked_by(("b", "other"), PATIENCE_SECONDS) is None
    assert (len(found), ("a", "huge") in found, found.namespaces()) == (2, True, ["a", "b"])


def test_a_job_that_cannot_run_is_tried_in_its_turn() -> None:
    found = queue(("a", "first", "1"), ("a", "second", "2"), ("a", "third", "3"), ("a", "fourth", "4"))
    for name in ("first", "fourth"):
        found.set_schedulable(("a", name), schedulable=False)
    assert found.candidates("a") == [("a", "first"), ("a", "second")]
    found.remove(("a", "second"))
    found.remove(("a", "third"))
    assert found.candidates("a") == [("a", "first"), ("a", "fourth")]
    assert found.first("a") is None
    assert found.candidates("b") == []


def test_a_job_that_can_run_again_takes_its_place() -> None:
    found = queue(("a", "early", "1"), ("a", "late", "2"))
    found.set_schedulable(("a", "early"), schedulable=False)
    assert not found.is_schedulable(("a", "early"))
    assert found.longest_wait(10.0) == 10.0
    found.remove(("a", "late"))
    assert found.longest_wait(10.0) == 0.0
    found.add(("a", "late"), "2", 5.0)
    found.set_schedulable(("a", "early"), schedulable=True)
    assert found.is_schedulable(("a", "early"))
    assert [found.position(("a", name)) for name in ("early", "late")] == [1, 2]
    assert found.remove(("a", "early"))
    assert found.first("a") == ("a", "late")


def test_a_job_without_a_controller_does_not_block_other_namespaces() -> None:
    """No other job can use the IPUs of a controller that does not respond, so nothing is gained when others wait."""
    found = queue(("a", "waits", "1"), ("b", "other", "2"), ("c", "last", "3"))
    assert found.blocked_by(("b", "other"), PATIENCE_SECONDS, {("a", "waits")}) is None
    assert found.blocked_by(("c", "last"), PATIENCE_SECONDS, {("a", "waits")}) == ("b", "other")


def test_few_positions_are_reported() -> None:
    reported, reports = 0, 0
    for position in range(1000, 0, -1):
        if is_reportable(position, reported):
            reported, reports = position, reports + 1
    assert reported == 1
    assert reports < 40


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(0, 9),
            st.integers(0, 5),
            st.sampled_from(["add", "remove", "park", "restore"]),
        ),
        max_size=60,
    )
)
def test_positions_count_from_one_without_gaps(steps: list[tuple[str, int, int, str]]) -> None:
    found, members, parked = JobQueue(), {}, set()
    for namespace, number, created, step in steps:
        name = (namespace, f"job{number}")
        if step == "add":
            found.add(name, str(created), 0.0)
            members.setdefault(name, str(created))
        elif step == "remove":
            assert found.remove(name) == (members.pop(name, None) is not None)
            parked.discard(name)
        elif name in members:
            found.set_schedulable(name, schedulable=step == "restore")
            parked = parked | {name} if step == "park" else parked - {name}
    assert found.unschedulable == len(parked)
    for namespace in "ab":
        everything = sorted((created, name) for name, created in members.items() if name[0] == namespace)
        ordered = [each for each in everything if each[1] not in parked]
        until = everything.index(ordered[0]) + 1 if ordered else len(everything)
        assert found.candidates(namespace) == [name for _, name in everything[:until]]
        assert [found.position(name) for _, name in ordered] == list(range(1, len(ordered) + 1))
        assert found.first(namespace) == (ordered[0][1] if ordered else None)


def test_the_longest_wait() -> None:
    queue = JobQueue()
    assert queue.longest_wait(100.0) == 0.0
    queue.add(("a", "young"), "2026-01-01T00:00:00Z", 90.0)
    queue.add(("b", "old"), "2026-01-02T00:00:00Z", 70.0)
    assert queue.longest_wait(100.0) == 30.0
    queue.remove(("b", "old"))
    assert queue.longest_wait(100.0) == 10.0
