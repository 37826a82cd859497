# SPDX-License-Identifier: GPL-3.0-or-later
"""Checker of linearizability for the history of one partition id, after Wing and Gong with Lowe's memory of states.

The model is one bit: the partition exists or not. Calls overlap, so the checker searches for an order of them that
respects their times and that the model accepts. Histories of different ids are independent, and checked one by one.
Reductions of the search keep it short for the many open calls after a network has been cut: see ``_choices``.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass


class Action(enum.Enum):
    """Method of a call."""

    CREATE = "create"
    REMOVE = "remove"
    READ = "read"


class Result(enum.Enum):
    """Response of a controller. ``UNKNOWN``: none, so the call may have been executed, or may still be."""

    DONE = "done"
    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Call:
    """One call. ``start`` and ``end``: times of one clock. A call with unknown result never ends."""

    action: Action
    result: Result
    start: float
    end: float = math.inf

    def __str__(self) -> str:
        end = "" if self.result is Result.UNKNOWN else f"{self.end:.3f}"
        return f"{self.action.value} {self.result.value} {self.start:.3f}…{end}"


# Result of executing a call, by existence of the partition before; a missing one contradicts the model. A removal of a
# missing partition is done too: several calls can wait for the same removal.
_EFFECTS: dict[tuple[Action, Result], dict[bool, bool]] = {
    (Action.CREATE, Result.DONE): {False: True},
    (Action.CREATE, Result.PRESENT): {True: True},
    (Action.CREATE, Result.UNKNOWN): {False: True, True: True},
    (Action.REMOVE, Result.DONE): {False: False, True: False},
    (Action.REMOVE, Result.ABSENT): {False: False},
    (Action.REMOVE, Result.UNKNOWN): {False: False, True: False},
    (Action.READ, Result.PRESENT): {True: True},
    (Action.READ, Result.ABSENT): {False: False},
}


def linearizable(calls: Sequence[Call]) -> bool:
    """Return whether some order of the calls explains all results, beginning without the partition.

    The order keeps each call that ended before another one started before that one. Calls with unknown result may be
    missing in it.
    """
    every = (1 << len(calls)) - 1
    open_ended = sum(1 << number for number, call in enumerate(calls) if call.result is Result.UNKNOWN)
    stack, seen = [(every, False)], {(every, False)}  # calls not in the order yet, and existence after the others
    while stack:
        remaining, exists = stack.pop()
        if not remaining & ~open_ended:
            return True
        for number in _choices(calls, _candidates(calls, remaining), exists):
            after = _EFFECTS[calls[number].action, calls[number].result][exists]
            following = (remaining & ~(1 << number), after)
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return False


def _choices(calls: Sequence[Call], candidates: Sequence[int], exists: bool) -> list[int]:
    """Return the calls that the search must try next.

    * A call whose result is possible in the present state only, and which keeps it, comes at once: it helps no other
      call to wait.
    * An open-ended call that keeps the state can as well be missing.
    * Open-ended calls of one action are interchangeable, so the one that started first is used first.
    """
    choices, open_ended = [], dict[Action, int]()
    for number in candidates:
        call = calls[number]
        effects = _EFFECTS[call.action, call.result]
        if effects == {exists: exists}:
            return [number]
        if call.result is Result.UNKNOWN:
            first = open_ended.get(call.action, number)
            if effects[exists] != exists and call.start <= calls[first].start:
                open_ended[call.action] = number
        elif exists in effects:
            choices.append(number)
    return [*open_ended.values(), *choices]


def _candidates(calls: Sequence[Call], remaining: int) -> list[int]:
    """Return the calls that can come next: no other remaining call ended before they started."""
    left = [number for number in range(len(calls)) if remaining >> number & 1]
    first_end = min(calls[number].end for number in left)
    return [number for number in left if calls[number].start <= first_end]
