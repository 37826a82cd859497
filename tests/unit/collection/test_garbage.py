# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches for cyclic garbage: none while objects are created that stay, and none of them later."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.garbage import large_import, without_collections

Context = Callable[[], contextlib.AbstractContextManager[None]]


class Node:
    """Object that refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.parametrize("context", [without_collections, large_import])
def test_nothing_is_searched_in_the_block(context: Context) -> None:
    with context():
        first = weakref.ref(Node())
        for _ in range(30 * gc.get_threshold()[0]):
            Node()
        assert first() is not None
    assert gc.isenabled()


@pytest.mark.parametrize("context", [without_collections, large_import])
def test_the_setting_of_the_process_is_restored(context: Context) -> None:
    with contextlib.suppress(ImportError), context():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    with context():
        pass
    assert not gc.isenabled()


def test_garbage_of_the_block_is_collected_later() -> None:
    with without_collections():
        node = weakref.ref(Node())
    gc.collect()
    assert node() is None


def test_imported_objects_are_not_searched_later() -> None:
    with large_import():
        imported = [Node() for _ in range(100)]
    assert gc.get_freeze_count() >= len(imported)
    later = [Node() for _ in range(100)]
    found = gc.get_objects()
    assert later[0] in found
    assert imported[0] not in found
    del imported
