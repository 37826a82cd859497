# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of unfinished calls and of threads, by group of callers, so that no group takes those of another."""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from openipu.vipu.domain.errors import Code, RuleError


class Group(enum.Enum):
    """Groups of calls with separate threads."""

    ANONYMOUS = "clients without credentials"
    USERS = "users"
    ADMINISTRATORS = "administrators"
    HEALTH = "health checks"
    REFLECTION = "reflection"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a group, and of each user in it. Calls above the number of threads wait, further ones are rejected.

    ``readings_per_user``: calls of a user that read agents at the same time, None for all its threads. Each may call
    many agents, so the calls of one user could keep the agents and the event loop from those of others.
    ``replaces``: a further call of the group cancels the oldest one instead. Such a group needs a thread for each call.
    """

    calls: int
    threads: int
    calls_per_user: int
    threads_per_user: int
    readings_per_user: int | None = None
    replaces: bool = False


# A write blocks its thread until the disk flush, which it shares with other writes. Streams of health checks and of
# reflection keep their threads. Health checks need no credentials, so idle ones must not keep others out.
LIMITS: Mapping[Group, Limits] = {
    Group.ANONYMOUS: Limits(256, 16, 256, 16),
    Group.USERS: Limits(1024, 128, 256, 32, readings_per_user=2),
    Group.ADMINISTRATORS: Limits(1024, 128, 1024, 128),
    Group.HEALTH: Limits(64, 64, 64, 64, replaces=True),
    Group.REFLECTION: Limits(16, 16, 4, 4),
}


class LimitedPool(ThreadPoolExecutor):
    """Part of a thread pool that runs at most ``width`` tasks at a time. It has no threads of its own."""

    def __init__(self, pool: ThreadPoolExecutor, width: int) -> None:
        super().__init__(1)
        self._pool = pool
        self._width = width
        self._running = 0
        self._waiting: deque[tuple[Future[None], Callable[[], Any]]] = deque()
        self._guard = threading.Lock()

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Run a task as soon as fewer than ``width`` run. Its result and exception are ignored."""
        future: Future[None] = Future()
        work = future, lambda: task(*arguments, **keywords)
        with self._guard:
            if self._running >= self._width:
                self._waiting.append(work)
                return future
            self._running += 1
        self._pool.submit(self._run, work)
        return future

    def _run(self, work: tuple[Future[None], Callable[[], Any]]) -> None:
        future, task = work
        try:
            task()
        finally:
            future.set_result(None)
            with self._guard:
                following = self._waiting.popleft() if self._waiting else None
                if following is None:
                    self._running -= 1
            if following is not None:
                self._pool.submit(self._run, following)  # behind the tasks of others


class Immediate(ThreadPoolExecutor):
    """Pool that runs tasks in the calling thread, for tasks that never block."""

    def __init__(self) -> None:
        super().__init__(1)

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Run a task now."""
        future: Future[Any] = Future()
        future.set_result(task(*arguments, **keywords))
        return future


@dataclass(slots=True)
class _UserCalls:
    """Unfinished calls of a user, and the threads for them."""

    key: tuple[Group, str]
    fast: ThreadPoolExecutor
    slow: ThreadPoolExecutor
    readings: ThreadPoolExecutor
    calls: int = 0


class Ticket:
    """Permission for a call to run in ``pool``.

    ``release`` it when its thread has returned, and once more for each ``hold``. A client can cancel a call whose
    thread waits; the call counts until both have ended, so that cancelled calls cannot take further threads.
    """

    __slots__ = ("_admission", "_cancel", "holders", "of_user", "pool")

    def __init__(self, admission: Admission, of_user: _UserCalls, pool: ThreadPoolExecutor) -> None:
        self._admission = admission
        self.of_user = of_user
        self.pool = pool
        self.holders = 1
        self._cancel: Callable[[], Any] | None = None

    def hold(self, cancel: Callable[[], Any] | None = None) -> None:
        """Require one more ``release``. Call it before the last one. ``cancel`` ends the call for a newer one."""
        self._admission.hold(self)
        self._cancel = cancel

    def take_cancel(self) -> Callable[[], Any] | None:
        """Return the function that ends the call, the first time only."""
        cancel, self._cancel = self._cancel, None
        return cancel

    def release(self) -> None:
        """Count the call as ended, unless it is still held."""
        self._admission.release(self)


class Admission:
    """Unfinished calls of all endpoints, and the threads that run them."""

    def __init__(self, limits: Mapping[Group, Limits] | None = None) -> None:
        self._limits = LIMITS if limits is None else limits
        self._lock = threading.Lock()
        self._calls = dict.fromkeys(Group, 0)
        self._users: dict[tuple[Group, str], _UserCalls] = {}
        self._replaceable: dict[Group, dict[Ticket, None]] = {  # the oldest first
            group: {} for group, limit in self._limits.items() if limit.replaces
        }
        self._pools = {
            group: tuple(ThreadPoolExecutor(limit.threads, f"{group.name.lower()}-{kind}") for kind in ("fast", "slow"))
            for group, limit in self._limits.items()
        }

    def admit(self, group: Group, user: str, *, slow: bool, reads_agents: bool = False) -> Ticket:
        """Count a call. Raises RuleError.

        ``slow`` selects the threads for calls that wait for IPU-Machines, ``reads_agents`` few of them.
        """
        limits = self._limits[group]
        key = group, user
        cancel = None
        with self._lock:
            of_user = self._users.get(key)
            if self._calls[group] >= limits.calls:
                cancel = self._oldest(group)
                if cancel is None:
                    raise _exhausted(f"{group.value} have {limits.calls} unfinished calls, which is the limit")
            elif of_user is not None and of_user.calls >= limits.calls_per_user:
                raise _exhausted(f"you have {limits.calls_per_user} unfinished calls, which is the limit")
            if of_user is None:
                of_user = self._users[key] = self._new_user(key, limits)
            of_user.calls += 1
            self._calls[group] += 1
            pool = of_user.readings if reads_agents else of_user.slow if slow else of_user.fast
            ticket = Ticket(self, of_user, pool)
            if group in self._replaceable:
                self._replaceable[group][ticket] = None
        if cancel is not None:
            cancel()
        return ticket

    def _oldest(self, group: Group) -> Callable[[], Any] | None:
        """Return the function that ends the oldest call of a group that was not cancelled yet, None without one."""
        cancels = (ticket.take_cancel() for ticket in self._replaceable.get(group, ()))
        return next((cancel for cancel in cancels if cancel is not None), None)

    def hold(self, ticket: Ticket) -> None:
        """Require one more release of a ticket."""
        with self._lock:
            ticket.holders += 1

    def release(self, ticket: Ticket) -> None:
        """Count a call as ended at the last release of its ticket."""
        of_user = ticket.of_user
        with self._lock:
            ticket.holders -= 1
            if ticket.holders:
                return
            group = of_user.key[0]
            ticket.take_cancel()
            self._calls[group] -= 1
            if group in self._replaceable:
                self._replaceable[group].pop(ticket, None)
            of_user.calls -= 1
            if not of_user.calls:
                self._users.pop(of_user.key, None)

    def unfinished(self) -> int:
        """Return the number of unfinished calls."""
        return sum(self._calls.values())

    def shutdown(self) -> None:
        """End the threads, without waiting for them."""
        for pools in self._pools.values():
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)

    def _new_user(self, key: tuple[Group, str], limits: Limits) -> _UserCalls:
        fast, slow = self._pools[key[0]]
        if limits.threads_per_user < limits.threads:
            fast, slow = LimitedPool(fast, limits.threads_per_user), LimitedPool(slow, limits.threads_per_user)
        readings = LimitedPool(slow, limits.readings_per_user) if limits.readings_per_user else slow
        return _UserCalls(key, fast, slow, readings)


def _exhausted(reason: str) -> RuleError:
    return RuleError(Code.RESOURCE_EXHAUSTED, f"Cannot accept the call: {reason}. Try again later.")
