# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches for cyclic garbage."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from openipu.process import memory


class Node:
    """Object that refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def reduced() -> Iterator[None]:
    """Reduce the searches of this process during a test."""
    thresholds = gc.get_threshold()
    memory.reduce_collections()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.usefixtures("reduced")
def test_garbage_of_calls_is_still_collected() -> None:
    first = weakref.ref(Node())
    nodes = 0
    while first() is not None:
        Node()
        nodes += 1
        assert nodes <= memory.YOUNG_OBJECTS, "no search has started"
    assert nodes > 700, "the searches are as frequent as in any program"


@pytest.mark.usefixtures("reduced")
def test_objects_of_the_start_are_not_searched() -> None:
    before = gc.get_freeze_count()
    assert before > 10_000
    kept = [Node() for _ in range(100)]
    gc.collect()
    assert gc.get_freeze_count() <= before
    assert kept[0] in gc.get_objects()


def test_objects_of_the_start_are_freed_when_they_are_replaced(request: pytest.FixtureRequest) -> None:
    record = threading.Event()
    freed = weakref.ref(record)
    request.getfixturevalue("reduced")
    assert freed() is record
    del record
    assert freed() is None
