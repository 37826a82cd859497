# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces of the writer of records, and of the stores that make them durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.history import Changed
from openipu.vipu.domain.model import Change
from openipu.vipu.domain.state import State
from openipu.vipu.storage.event_log import EventLog

Result = TypeVar("Result")
Command = Callable[[State], tuple[Sequence[Change], Result]]
"""Function of a state, which it must not change, to changes and a result; it may raise.

It must have no other effects, because its transaction may still fail. Such effects belong to the callbacks of the
future.
"""


class StoppedError(Exception):
    """Raised for requests to a controller that is stopping."""

    error_code = "OPU611"

    def __init__(self) -> None:
        super().__init__("The controller is stopping. Try again after its restart.")


class StoreError(Exception):
    """Raised when the records cannot be opened, read or written."""

    error_code = "OPU612"


class NotLeaderError(StoreError):
    """Raised by a controller that does not lead, and changed nothing."""

    error_code = "OPU624"

    def __init__(self, leader: str = "") -> None:
        """``leader``: address of the controller that leads, empty if unknown."""
        super().__init__(
            f"Cannot complete the call: this controller does not lead. Nothing was changed. Call {leader}."
            if leader
            else "Cannot complete the call: no controller leads at present. Nothing was changed. "
            "Try again in a few seconds."
        )
        self.leader = leader


class LeadershipLostError(StoreError):
    """Raised when a controller no longer leads, and does not know whether a change was made."""

    error_code = "OPU625"

    def __init__(self) -> None:
        super().__init__(
            "Cannot complete the call: this controller no longer leads. A change may or may not have been made. "
            "Read the object again from the new leader."
        )


class Transaction(Protocol):
    """Changes that are written together, in the order of their addition."""

    def add(self, changes: Sequence[Change], state: State) -> None:
        """Add changes that have just been applied to ``state``."""

    def log(self, events: EventLog, changed: Changed) -> None:
        """Add the changed objects to the log of revisions."""

    def commit(self) -> int:
        """Make all changes durable, or none of them. Return the new revision, 0 when no object was changed.

        Raises StoreError, and other exceptions for records that the store cannot contain.
        """


class RecordStore(Protocol):
    """Durable records of one controller, which no other process can write meanwhile.

    Call ``load`` first. Then use one ``transaction`` at a time, from one thread at a time.
    """

    events: EventLog
    """Log of the revisions, which transactions write and the writer keeps up to date."""

    group_seconds: float
    """Seconds that a transaction waits for the next commands of the callers of the last one; 0: no wait."""

    def load(self) -> State:
        """Return the state of all records, each verified; raises StoreError when they are damaged."""

    def begin_epoch(self) -> Deployment:
        """Return the identity of a starting controller, with an epoch of its own; raises StoreError."""

    def transaction(self) -> Transaction:
        """Return an empty transaction, which uses the store only when it is committed."""

    def verify(self) -> None:
        """Raise StoreError when this process can no longer write the records, and from then on."""

    @property
    def lost(self) -> bool:
        """True after ``verify`` has failed."""

    def flush(self) -> None:
        """Complete delayed work, when no transaction is to be committed for a while."""

    def close(self) -> None:
        """Release the records for other processes. Repeated calls have no effect."""


class Records(Protocol):
    """Interface of the writer for the lifecycle of partitions."""

    @property
    def deployment(self) -> Deployment:
        """Identity of this controller."""

    @property
    def state(self) -> State:
        """Committed records. Single lookups and ``list(table.values())`` need no lock."""

    def reading(self) -> AbstractContextManager[State]:
        """Return a context for consistent reads of the committed records, which blocks commits: keep it short."""

    def submit(self, command: Command[Result]) -> Future[Result]:
        """Run a command in the writer thread; the future is done when its changes are durable.

        It fails with the exception of the command, with ``StoreError`` when the changes could not be
        written, and with StoppedError after the end.
        """

    def subscribe(self, callback: Callable[[Sequence[Change]], None]) -> None:
        """Register a callback for the changes of each commit, in the writer thread. It must return at once."""
