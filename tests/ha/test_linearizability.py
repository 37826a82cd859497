# SPDX-License-Identifier: GPL-3.0-or-later
"""The checker of linearizability accepts what one correct controller could do, and finds planted violations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ha.linearizability import Action, Call, Result, linearizable

CREATE, REMOVE, READ = Action
DONE, PRESENT, ABSENT, UNKNOWN = Result


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [Call(READ, ABSENT, 0, 1), Call(CREATE, DONE, 2, 3), Call(READ, PRESENT, 4, 5), Call(REMOVE, DONE, 6, 7)],
        # Reads during a change may see either state.
        [Call(CREATE, DONE, 0, 10), Call(READ, ABSENT, 1, 2), Call(READ, PRESENT, 3, 4)],
        [Call(CREATE, DONE, 0, 1), Call(REMOVE, DONE, 2, 9), Call(READ, ABSENT, 3, 4), Call(READ, ABSENT, 5, 6)],
        # One of two calls creates it, in either order of their responses.
        [Call(CREATE, PRESENT, 0, 4), Call(CREATE, DONE, 1, 5)],
        # A call without a response is executed late, or never.
        [Call(CREATE, UNKNOWN, 0), Call(READ, ABSENT, 1, 2), Call(READ, PRESENT, 3, 4)],
        [Call(CREATE, UNKNOWN, 0), Call(READ, ABSENT, 1, 2), Call(REMOVE, ABSENT, 3, 4)],
        [Call(CREATE, DONE, 0, 1), Call(REMOVE, UNKNOWN, 2), Call(READ, PRESENT, 3, 4), Call(READ, ABSENT, 5, 6)],
        # Two calls wait for one removal.
        [Call(CREATE, DONE, 0, 1), Call(REMOVE, DONE, 2, 9), Call(REMOVE, DONE, 3, 8), Call(READ, ABSENT, 10, 11)],
    ],
)
def test_histories_of_a_correct_controller_are_accepted(calls: list[Call]) -> None:
    assert all(linearizable(order) for order in itertools.permutations(calls))


@pytest.mark.parametrize(
    ("violation", "calls"),
    [
        ("lost", [Call(CREATE, DONE, 0, 1), Call(READ, ABSENT, 2, 3)]),
        ("lost, by the response to its removal", [Call(CREATE, DONE, 0, 1), Call(REMOVE, ABSENT, 2, 3)]),
        ("acknowledged twice", [Call(CREATE, DONE, 0, 4), Call(CREATE, DONE, 1, 5)]),
        ("back", [Call(CREATE, DONE, 0, 1), Call(REMOVE, DONE, 2, 3), Call(READ, PRESENT, 4, 5)]),
        ("never created", [Call(READ, PRESENT, 0, 1), Call(CREATE, DONE, 2, 3)]),
        ("rejected by nothing", [Call(CREATE, PRESENT, 0, 1)]),
        ("seen and unseen", [Call(CREATE, DONE, 0, 9), Call(READ, PRESENT, 1, 2), Call(READ, ABSENT, 3, 4)]),
        (
            "seen, unseen and seen, with one change of unknown result",
            [Call(CREATE, UNKNOWN, 0), Call(READ, PRESENT, 1, 2), Call(READ, ABSENT, 3, 4), Call(READ, PRESENT, 5, 6)],
        ),
        (
            "stale read after a removal",
            [Call(CREATE, DONE, 0, 1), Call(REMOVE, DONE, 2, 9), Call(READ, ABSENT, 3, 4), Call(READ, PRESENT, 5, 6)],
        ),
    ],
)
def test_planted_violations_are_found(violation: str, calls: list[Call]) -> None:
    assert not any(linearizable(order) for order in itertools.permutations(calls)), violation


@st.composite
def executions(draw: st.DrawFn) -> list[Call]:
    """Return the history of a correct controller: each call takes effect at one time between start and end."""
    calls, exists = [], False
    for at in range(draw(st.integers(1, 12))):
        action = draw(st.sampled_from(Action))
        start, end = at - draw(st.floats(0, 5)), at + draw(st.floats(0, 5))
        if action is READ:
            result = PRESENT if exists else ABSENT
        elif action is CREATE:
            result, exists = PRESENT if exists else DONE, True
        else:
            result, exists = DONE if exists else ABSENT, False
        if action is not READ and draw(st.booleans()):
            calls.append(Call(action, UNKNOWN, start))
        else:
            calls.append(Call(action, result, start, end))
    return draw(st.permutations(calls))


@given(executions())
def test_random_executions_are_accepted(calls: list[Call]) -> None:
    assert linearizable(calls)


@given(executions())
def test_contradicting_reads_after_all_calls_are_found(calls: list[Call]) -> None:
    present, absent = Call(READ, PRESENT, 100, 101), Call(READ, ABSENT, 102, 103)
    assert linearizable([*calls, present]) or linearizable([*calls, absent])
    # Without an open-ended call, nothing can change between the two reads.
    ended = [call for call in calls if call.result is not UNKNOWN]
    assert not linearizable([*ended, present, absent])


def explained(calls: list[Call], exists: bool = False) -> bool:
    """Return what ``linearizable`` does, by trying every order."""
    if all(call.result is UNKNOWN for call in calls):
        return True
    first_end = min(call.end for call in calls)
    return any(
        explained([*calls[:number], *calls[number + 1 :]], after)
        for number, call in enumerate(calls)
        if call.start <= first_end and (after := effect(call, exists)) is not None
    )


def effect(call: Call, exists: bool) -> bool | None:
    """Return whether the partition exists after a call, None when its result contradicts that it existed or not."""
    if call.result in (PRESENT, ABSENT):
        return exists if exists == (call.result is PRESENT) else None
    if call.action is CREATE and call.result is DONE and exists:
        return None
    return call.action is CREATE


@st.composite
def histories(draw: st.DrawFn) -> list[Call]:
    """Return calls with any results, linearizable or not."""
    results = {CREATE: (DONE, PRESENT, UNKNOWN), REMOVE: (DONE, ABSENT, UNKNOWN), READ: (PRESENT, ABSENT)}
    calls = []
    for _ in range(draw(st.integers(1, 6))):
        action = draw(st.sampled_from(Action))
        result, start = draw(st.sampled_from(results[action])), draw(st.integers(0, 8))
        end = () if result is UNKNOWN else (start + draw(st.integers(1, 8)) - 0.5,)
        calls.append(Call(action, result, start, *end))
    return calls


@given(histories())
def test_the_search_omits_no_order_that_matters(calls: list[Call]) -> None:
    assert linearizable(calls) == explained(calls)


@pytest.mark.timeout(60)
def test_many_calls_at_once_are_checked() -> None:
    """Clients that have lost their network leave many calls on one partition open, or with unknown results."""
    reads = [Call(READ, PRESENT, 2, 9 + number) for number in range(40)]
    unknown = [Call(action, UNKNOWN, number) for action in (CREATE, REMOVE) for number in range(2, 42)]
    calls = [Call(CREATE, DONE, 0, 1), *reads, *unknown]
    assert linearizable([*calls, Call(READ, ABSENT, 60, 61), Call(READ, PRESENT, 62, 63)])
    acknowledged_twice = Call(CREATE, DONE, 0, 1)
    assert not linearizable([*calls, acknowledged_twice])
    creates = [call for call in unknown if call.action is CREATE]
    assert not linearizable([Call(CREATE, DONE, 0, 1), *reads, *creates, Call(READ, ABSENT, 60, 61)])
