# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writer of a PDU: few requests, and verification of the result."""

from __future__ import annotations

import time
import typing as t

from ..reconcile import Failure, ItemError, Step
from . import mib
from .client import PduClient, RequestRejected
from .resources import Config, Write, writes
from .session import Oid, PduError

_PAUSE = 0.5  # s between two polls of an outlet
_LISTED = 6  # maximum number of variables in a message
_STATE = mib.OUTLET_STATUS["State"]
_PENDING = mib.OUTLET_STATUS["CommandPending"]


class Writer:
    """Writer of a plan: settings with as few requests as possible, then commands to outlets."""

    def __init__(self, client: PduClient, actual: Config, wait_timeout: float) -> None:
        self._client = client
        self._actual = actual
        self._wait_timeout = wait_timeout

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write all steps and read them back; return an error for each object that does not have the desired value."""
        requested = writes(steps, self._actual)
        settings = [write for write in requested if not write.command]
        commands = [write for write in requested if write.command]
        error = self._set(settings, once=False)
        missing, read_error = self._not_applied(settings)
        if error is None and read_error is None and not missing and commands:
            error = self._set(commands, once=True)
            # A command whose response was lost may still have run: check the outlets.
            if error is None or error.lost:
                missing, read_error = self._wait_for_outlets(commands)
            else:
                missing = commands
        else:
            missing = [*missing, *commands]
        if read_error is not None:
            return self._unknown(requested, read_error)
        if not missing:
            return []
        return self._errors(requested, missing, error)

    def _set(self, requested: list[Write], once: bool) -> PduError | None:
        if not requested:
            return None
        try:
            self._client.set([(write.oid, write.value) for write in requested], once=once)
        except PduError as error:
            return error
        return None

    def _not_applied(self, requested: list[Write]) -> tuple[list[Write], PduError | None]:
        """Return the values that the PDU did not apply, and the error if they cannot be read."""
        if not requested:
            return [], None
        try:
            found = self._client.get([write.oid for write in requested])
        except PduError as error:
            return requested, error
        # A secret that cannot be read back counts as written if the request succeeded.
        return [
            write
            for write in requested
            if found.get(write.oid) != write.value and not (write.secret and _hidden(found.get(write.oid)))
        ], None

    def _wait_for_outlets(self, requested: list[Write]) -> tuple[list[Write], PduError | None]:
        """Wait until the outlets have run their commands; return those that have not, and a read error."""
        deadline = time.monotonic() + self._wait_timeout
        unfinished = requested
        while True:
            rows = [write.oid[-1] for write in unfinished]
            try:
                found = self._client.get([column.at(row) for row in rows for column in (_STATE, _PENDING)])
            except PduError as error:
                return requested, error
            unfinished = [write for write in unfinished if not _done(write, found)]
            if not unfinished or time.monotonic() + _PAUSE > deadline:
                return unfinished, None
            time.sleep(_PAUSE)

    def _unknown(self, requested: list[Write], read_error: PduError) -> list[ItemError]:
        message = "Cannot verify %s on %s. %s Then check the PDU with state gathered." % (
            _list([write.description for write in requested]),
            self._actual.name,
            read_error.message,
        )
        keys = dict.fromkeys((write.family.kind, write.key) for write in requested)
        return [ItemError(kind, key, message, Failure.REJECTED, read_error.error_code) for kind, key in keys]

    def _errors(self, requested: list[Write], missing: list[Write], error: PduError | None) -> list[ItemError]:
        """Return one error for each object with missing values, all with the same complete message."""
        done = [write for write in requested if write not in missing]
        failed = missing[0]
        if isinstance(error, RequestRejected):
            failed = next((write for write in missing if write.oid == error.oid), failed)
        others = [write.description for write in missing if write is not failed]
        message = "%s%s%s" % (
            self._cause(failed, error),
            " Not set: %s." % _list(others) if others else "",
            " Set: %s." % _list([write.description for write in done]) if done else " Nothing was changed.",
        )
        touched = {(write.family.kind, write.key) for write in done}
        keys = dict.fromkeys([(failed.family.kind, failed.key), *((write.family.kind, write.key) for write in missing)])
        found = []
        for kind, key in keys:
            first = (kind, key) == (failed.family.kind, failed.key)
            failure = Failure.REJECTED if first else Failure.NOT_TRIED
            if (kind, key) in touched:
                failure = Failure.HALF_DONE
            found.append(ItemError(kind, key, message, failure, PduError.error_code))
        return found

    def _cause(self, failed: Write, error: PduError | None) -> str:
        if isinstance(error, RequestRejected):
            return "Cannot set %s on %s: %s." % (failed.description, self._actual.name, error.reason)
        if error is not None:
            return error.message
        if failed.command:
            return "Cannot set %s on %s: not finished within %g s. Check its event log, or increase wait_timeout." % (
                failed.description,
                self._actual.name,
                self._wait_timeout,
            )
        return "Cannot set %s on %s: the PDU accepted it but did not apply it. Check its event log." % (
            failed.description,
            self._actual.name,
        )


def _hidden(value: t.Any) -> bool:
    return not str(value or "").strip("*")


def _done(write: Write, found: dict[Oid, t.Any]) -> bool:
    """Return whether an outlet has run its command; a rebooted outlet is on again."""
    row = write.oid[-1]
    pending = found.get(_PENDING.at(row)) == _PENDING.names["commandPending"]
    state = _STATE.names["off" if write.command == "off" else "on"]
    return not pending and found.get(_STATE.at(row)) == state


def _list(names: t.Sequence[str]) -> str:
    more = " and %d more" % (len(names) - _LISTED) if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
