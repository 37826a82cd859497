# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of unfinished calls and threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from openipu.vipu.api.admission import Admission, Group, Immediate, Limits
from openipu.vipu.domain.errors import Code, RuleError
from tests.waiting import until


@pytest.fixture
def admission() -> Iterator[Admission]:
    made = Admission({Group.USERS: Limits(4, 4, 3, 2), Group.ADMINISTRATORS: Limits(1, 1, 1, 1)})
    yield made
    made.shutdown()


def rejected(admission: Admission, group: Group, user: str) -> str:
    with pytest.raises(RuleError) as caught:
        admission.admit(group, user, slow=False)
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    return caught.value.message


def test_calls_of_users_and_groups_are_limited(admission: Admission) -> None:
    tickets = [admission.admit(Group.USERS, "alice", slow=False) for _ in range(3)]
    assert rejected(admission, Group.USERS, "alice") == (
        "Cannot accept the call: you have 3 unfinished calls, which is the limit. Try again later."
    )
    tickets.append(admission.admit(Group.USERS, "bob", slow=True))
    assert "users have 4 unfinished calls" in rejected(admission, Group.USERS, "bob")
    tickets.append(admission.admit(Group.ADMINISTRATORS, "root", slow=False))
    assert "administrators have 1 unfinished calls" in rejected(admission, Group.ADMINISTRATORS, "root")
    assert admission.unfinished() == 5
    for ticket in tickets:
        ticket.release()
    assert admission.unfinished() == 0
    admission.admit(Group.USERS, "alice", slow=False).release()


def test_a_further_call_of_a_replacing_group_cancels_the_oldest_running_one() -> None:
    admission = Admission({Group.HEALTH: Limits(2, 2, 2, 2, replaces=True)})
    cancelled: list[int] = []
    tickets = [admission.admit(Group.HEALTH, "", slow=False) for _ in range(2)]
    assert "health checks have 2 unfinished calls" in rejected(admission, Group.HEALTH, "")  # none runs yet
    for number, ticket in enumerate(tickets):
        ticket.hold(partial(cancelled.append, number))
    tickets += [admission.admit(Group.HEALTH, user, slow=False) for user in ("", "alice")]
    assert cancelled == [0, 1]
    assert "health checks have 2 unfinished calls" in rejected(admission, Group.HEALTH, "")  # each is cancelled once
    for ticket in (*tickets, *tickets[:2]):
        ticket.release()
    assert admission.unfinished() == 0
    admission.shutdown()


def test_a_call_counts_until_its_last_holder_has_released_it(admission: Admission) -> None:
    ticket = admission.admit(Group.ADMINISTRATORS, "root", slow=True)
    ticket.hold()
    ticket.release()
    assert "1 unfinished calls" in rejected(admission, Group.ADMINISTRATORS, "root")
    ticket.release()
    admission.admit(Group.ADMINISTRATORS, "root", slow=True).release()


def test_tasks_of_a_user_run_in_a_part_of_the_threads(admission: Admission) -> None:
    release, running = threading.Event(), []

    def task(name: str) -> None:
        running.append(name)
        release.wait(10)

    alice = [admission.admit(Group.USERS, "alice", slow=False).pool.submit(task, "alice") for _ in range(3)]
    bob = admission.admit(Group.USERS, "bob", slow=False).pool.submit(task, "bob")
    until(lambda: "bob" in running)
    assert sorted(running) == ["alice", "alice", "bob"]
    release.set()
    for future in (*alice, bob):
        future.result(10)
    assert running.count("alice") == 3


def test_few_calls_of_a_user_read_agents_at_a_time() -> None:
    admission = Admission({Group.USERS: Limits(16, 8, 16, 4, readings_per_user=2)})
    release, running = threading.Event(), []

    def task(name: str) -> None:
        running.append(name)
        release.wait(10)

    def submit(user: str, *, reads_agents: bool) -> Future[None]:
        pool = admission.admit(Group.USERS, user, slow=True, reads_agents=reads_agents).pool
        return pool.submit(task, f"{user} {'reads' if reads_agents else 'removes'}")

    futures = [submit("alice", reads_agents=True) for _ in range(5)]
    futures += [submit("alice", reads_agents=False) for _ in range(5)]
    futures.append(submit("bob", reads_agents=True))
    until(lambda: len(running) == 5)
    assert sorted(running) == [*["alice reads"] * 2, *["alice removes"] * 2, "bob reads"]
    release.set()
    for future in futures:
        future.result(10)
    assert running.count("alice reads") == 5
    admission.shutdown()


def test_a_failed_task_does_not_block_its_user(admission: Admission) -> None:
    pool = admission.admit(Group.USERS, "alice", slow=False).pool
    for _ in range(6):
        pool.submit(int, "x").result(10)


def test_immediate_tasks_run_in_the_calling_thread() -> None:
    assert Immediate().submit(threading.get_ident).result(0) == threading.get_ident()
