# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares in quarantine: which are released at once, and what an administrator may release."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.errors import RuleError
from openipu.vipu.fleet.agent_messages import HeldShare
from openipu.vipu.lifecycle.quarantine import Quarantine, may_be_other, may_release

DEPLOYMENT = Deployment("abc", epoch=9, complete_since=5)
OURS = HeldShare("ours", frozenset({3, 2}), "abc", 5)
OLD = HeldShare("old", frozenset({0}), "abc", 4)
FOREIGN = HeldShare("foreign", frozenset({1}), "def", 9)
LATER = HeldShare("later", frozenset({1}), "abc", 10)  # of a process whose clock was ahead, before a restore
UNKNOWN = HeldShare("unknown", frozenset({1}), "", 0)


class Queue:
    """Queue of an agent that records the releases."""

    def __init__(self, up: bool = True, on_release: Callable[[str], None] = lambda id: None) -> None:
        self.connection = SimpleNamespace(id="ag01", up=up)
        self.release = on_release


@pytest.fixture
def quarantine() -> Quarantine:
    made = Quarantine(DEPLOYMENT)
    assert made.update("ag01", [OURS, OLD])
    return made


def release(quarantine: Quarantine, queue: Any, partition: str = "", timeout: float = 5.0) -> list[str]:
    async def body() -> list[str]:
        return [share.partition_id for share in await quarantine.release(queue, partition, timeout)]

    return asyncio.run(body())


def failure(call: Callable[[], object]) -> str:
    with pytest.raises(RuleError) as caught:
        call()
    return caught.value.message


@pytest.mark.parametrize(
    ("share", "expected"), [(OURS, True), (OLD, False), (FOREIGN, False), (LATER, False), (UNKNOWN, False)]
)
def test_shares_of_removed_records_are_released_at_once(share: HeldShare, expected: bool) -> None:
    assert may_release(share, DEPLOYMENT) is expected


@pytest.mark.parametrize(
    ("share", "expected"), [(OURS, False), (OLD, True), (FOREIGN, True), (LATER, True), (UNKNOWN, True)]
)
def test_shares_that_may_belong_to_another_partition_of_that_name(share: HeldShare, expected: bool) -> None:
    assert may_be_other(share, DEPLOYMENT) is expected


@pytest.mark.parametrize(("share", "expected"), [(OURS, False), (OLD, False), (FOREIGN, True), (UNKNOWN, False)])
def test_records_that_were_never_restored_explain_shares(share: HeldShare, expected: bool) -> None:
    assert may_be_other(share, Deployment("abc", epoch=9)) is expected


def test_shares_and_bits(quarantine: Quarantine) -> None:
    assert [(each.partition_id, each.ipus, each.releasing) for each in quarantine.shares()] == [
        ("old", (0,), False),
        ("ours", (2, 3), True),
    ]
    assert quarantine.releasing("ag01") == ["ours"]
    before = quarantine.ipus
    assert before == {"ag01": 0b1101}
    assert not quarantine.update("ag01", [OLD, OURS]), "nothing has changed"
    assert quarantine.update("ag02", [FOREIGN])
    assert quarantine.ipus == {"ag01": 0b1101, "ag02": 0b0010}
    assert quarantine.update("ag01", [])
    assert quarantine.ipus == {"ag02": 0b0010}
    assert before == {"ag01": 0b1101}, "other threads may still read it"


def test_only_its_ipus_are_blocked(quarantine: Quarantine) -> None:
    blocking = quarantine.blocking("ag01", "new", [0, 1])
    assert blocking is not None
    assert blocking.partition_id == "old"
    assert quarantine.blocking("ag01", "new", [1]) is None
    assert quarantine.blocking("ag02", "new", [0]) is None
    assert quarantine.blocking("ag01", "old", [1]) is blocking, "an agent has one share of each partition"
    assert quarantine.blocking("ag02", "old", [1]) is None


def test_a_release_ends_when_the_agent_no_longer_holds_the_share(quarantine: Quarantine) -> None:
    def on_release(id: str) -> None:
        assert id == "old"
        assert sorted(quarantine.releasing("ag01")) == ["old", "ours"]
        asyncio.get_running_loop().call_soon(quarantine.update, "ag01", [OURS])

    assert release(quarantine, Queue(on_release=on_release), "old") == ["old"]
    assert [share.partition_id for share in quarantine.shares()] == ["ours"]
    quarantine.update("ag01", [OLD])
    assert quarantine.releasing("ag01") == [], "the permission was for the released share"


def test_a_permission_remains_until_the_share_is_released(quarantine: Quarantine) -> None:
    assert "is down. Its shares are released later." in failure(lambda: release(quarantine, Queue(up=False), "old"))
    quarantine.update("ag01", [OLD])
    assert quarantine.releasing("ag01") == ["old"]


def in_loop(call: Callable[[], Any]) -> Callable[[str], None]:
    return lambda id: asyncio.get_running_loop().call_soon(call) and None


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda quarantine: quarantine.fail("ag01", "old", "the agent rejected it: busy"), "rejected it: busy."),
        (lambda quarantine: quarantine.drop("ag01"), "it was removed, or its endpoint has changed."),
        (lambda quarantine: None, "it did not confirm the release within 0.05 seconds. Try again."),
    ],
)
def test_a_release_that_fails(quarantine: Quarantine, end: Callable[[Quarantine], None], reason: str) -> None:
    queue = Queue(on_release=in_loop(lambda: end(quarantine)))
    message = failure(lambda: release(quarantine, queue, "old", 0.05))
    assert message.startswith("Cannot release the quarantine of agent 'ag01': ")
    assert message.endswith(reason)


@pytest.mark.parametrize(("partition", "reason"), [("p", "partition 'p' has no IPUs there"), ("", "it holds no IPUs")])
def test_nothing_to_release(partition: str, reason: str) -> None:
    assert reason in failure(lambda: release(Quarantine(DEPLOYMENT), Queue(), partition))
