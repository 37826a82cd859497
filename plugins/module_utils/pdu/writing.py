# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to a PDU: few requests, and then a look at what it made of them."""

from __future__ import annotations

import time
import typing as t

from ..reconcile import Failure, ItemError, Step
from . import mib
from .client import Agent, Oid, PduError, Refused
from .resources import Config, Write, writes

_PAUSE = 0.5  # seconds between two looks at an outlet
_TOLD = 6  # variables that a sentence names
_STATE = mib.OUTLET_STATUS["State"]
_PENDING = mib.OUTLET_STATUS["CommandPending"]


class Writer:
    """Carries steps out: settings in as few requests as they fit, then commands to outlets."""

    def __init__(self, agent: Agent, there: Config, wait_timeout: float) -> None:
        self._agent = agent
        self._there = there
        self._wait_timeout = wait_timeout

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write, and read it back; what is not there as it was asked for is an error of its step."""
        asked = writes(steps, self._there)
        settings = [write for write in asked if not write.command]
        commands = [write for write in asked if write.command]
        trouble = self._set(settings, once=False)
        missing, unread = self._unkept(settings)
        if trouble is None and unread is None and not missing and commands:
            trouble = self._set(commands, once=True)
            # A command whose answer was lost may have been carried out all the same: the outlets tell.
            if trouble is None or trouble.lost:
                missing, unread = self._unfinished(commands)
            else:
                missing = commands
        else:
            missing = [*missing, *commands]
        if unread is not None:
            return self._unknown(asked, unread)
        if not missing:
            return []
        return self._errors(asked, missing, trouble)

    def _set(self, asked: list[Write], once: bool) -> PduError | None:
        if not asked:
            return None
        try:
            self._agent.set([(write.oid, write.value) for write in asked], once=once)
        except PduError as error:
            return error
        return None

    def _unkept(self, asked: list[Write]) -> tuple[list[Write], PduError | None]:
        """What the PDU does not hold as it was written, and why that cannot be known, if so."""
        if not asked:
            return [], None
        try:
            found = self._agent.get([write.oid for write in asked])
        except PduError as error:
            return asked, error
        # A secret that cannot be read back is as good as written when nothing was refused.
        return [
            write
            for write in asked
            if found.get(write.oid) != write.value and not (write.secret and _hidden(found.get(write.oid)))
        ], None

    def _unfinished(self, asked: list[Write]) -> tuple[list[Write], PduError | None]:
        """Wait for outlets to do what they were told; those that did not."""
        deadline = time.monotonic() + self._wait_timeout
        left = asked
        while True:
            rows = [write.oid[-1] for write in left]
            try:
                found = self._agent.get([column.at(row) for row in rows for column in (_STATE, _PENDING)])
            except PduError as error:
                return asked, error
            left = [write for write in left if not _done(write, found)]
            if not left or time.monotonic() + _PAUSE > deadline:
                return left, None
            time.sleep(_PAUSE)

    def _unknown(self, asked: list[Write], unread: PduError) -> list[ItemError]:
        sentence = "Whether %s has %s is not known: look at it with state gathered. %s" % (
            self._there.name,
            _list([write.what for write in asked]),
            unread.sentence,
        )
        keys = dict.fromkeys((write.family.kind, write.key) for write in asked)
        return [ItemError(kind, key, sentence, Failure.REFUSED) for kind, key in keys]

    def _errors(self, asked: list[Write], missing: list[Write], trouble: PduError | None) -> list[ItemError]:
        """One error for each object of which something is missing; the first tells the whole story."""
        done = [write for write in asked if write not in missing]
        culprit = missing[0]
        if isinstance(trouble, Refused):
            culprit = next((write for write in missing if write.oid == trouble.oid), culprit)
        others = [write.what for write in missing if write is not culprit]
        story = "%s%s%s" % (
            self._cause(culprit, trouble),
            " Not done: %s." % _list(others) if others else "",
            " Done: %s." % _list([write.what for write in done]) if done else " Nothing was changed.",
        )
        touched = {(write.family.kind, write.key) for write in done}
        keys = dict.fromkeys(
            [(culprit.family.kind, culprit.key), *((write.family.kind, write.key) for write in missing)]
        )
        found = []
        for kind, key in keys:
            first = (kind, key) == (culprit.family.kind, culprit.key)
            failure = Failure.REFUSED if first else Failure.NOT_TRIED
            if (kind, key) in touched:
                failure = Failure.HALF_DONE
            found.append(ItemError(kind, key, story, failure))
        return found

    def _cause(self, culprit: Write, trouble: PduError | None) -> str:
        if isinstance(trouble, Refused):
            return "%s refused %s: %s." % (self._there.name, culprit.what, trouble.reason)
        if trouble is not None:
            return trouble.sentence
        if culprit.command:
            return "%s did not finish %s within %g seconds: look at its event log, or allow more with wait_timeout." % (
                self._there.name,
                culprit.what,
                self._wait_timeout,
            )
        return "%s took %s without a word and does not keep it: look at its event log." % (
            self._there.name,
            culprit.what,
        )


def _hidden(value: t.Any) -> bool:
    return not str(value or "").strip("*")


def _done(write: Write, found: dict[Oid, t.Any]) -> bool:
    """Whether an outlet has done what it was told: a rebooted one is on again."""
    row = write.oid[-1]
    pending = found.get(_PENDING.at(row)) == _PENDING.names["commandPending"]
    state = _STATE.names["off" if write.command == "off" else "on"]
    return not pending and found.get(_STATE.at(row)) == state


def _list(names: t.Sequence[str]) -> str:
    more = " and %d more" % (len(names) - _TOLD) if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more
