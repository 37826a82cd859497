# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that wait for the removal of partitions."""

from __future__ import annotations

from concurrent.futures import Future

from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.storage.interface import StoppedError


class Removals:
    """Futures of the calls, by partition. Use it in the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Future[None]]] = {}

    def __contains__(self, id: str) -> bool:
        """Return whether calls wait for a partition."""
        return id in self._waiting

    def add(self, id: str, done: Future[None]) -> None:
        """Complete a future when the removal of a partition ends."""
        self._waiting.setdefault(id, []).append(done)

    def complete(self, id: str) -> None:
        """Complete the calls: the partition is removed."""
        for future in self._waiting.pop(id, ()):
            future.set_result(None)

    def fail(self, id: str, reason: str) -> None:
        """Fail the calls. ``reason``: sentences."""
        for future in self._waiting.pop(id, ()):
            future.set_exception(error(id, reason))

    def stop(self) -> None:
        """Fail all calls, because the controller stops."""
        for waiting in self._waiting.values():
            for future in waiting:
                future.set_exception(StoppedError())


def error(id: str, reason: str) -> RuleError:
    """Return the error of a removal that did not complete."""
    return RuleError(Code.FAILED_PRECONDITION, f"Cannot remove partition {quoted(id)}: {reason}")
