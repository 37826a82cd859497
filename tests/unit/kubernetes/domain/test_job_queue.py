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


def test_few_positions_are_reported() -> None:
    reported, reports = 0, 0
    for position in range(1000, 0, -1):
        if is_reportable(position, reported):
            reported, reports = position, reports + 1
    assert reported == 1
    assert reports < 40


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 5), st.booleans()), max_size=60))
def test_positions_count_from_one_without_gaps(steps: list[tuple[str, int, int, bool]]) -> None:
    found, members = JobQueue(), {}
    for namespace, number, created, added in steps:
        name = (namespace, f"job{number}")
        if added:
            found.add(name, str(created), 0.0)
            members.setdefault(name, str(created))
        else:
            assert found.remove(name) == (members.pop(name, None) is not None)
    for namespace in "ab":
        ordered = sorted((created, name) for name, created in members.items() if name[0] == namespace)
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
