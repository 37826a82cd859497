# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface of the writer of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Change
from openipu.vipu.domain.state import State

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
