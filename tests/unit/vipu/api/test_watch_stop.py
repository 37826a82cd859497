# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of changes end with the reason when the controller stops, also while a reply is on its way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import watch
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR
from openipu.vipu.domain.model import Kind
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.interface import StoppedError
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.waiting import until


class Stream:
    """Stream whose client takes a reply when the test calls ``taken``."""

    def __init__(self) -> None:
        self.sending = threading.Event()
        self.taken: Callable[[], None]
        self.results: list[Any] = []

    def identify(self) -> Any:
        return UNAUTHENTICATED_ADMINISTRATOR

    def on_end(self, callback: Callable[[], None]) -> bool:
        return True

    def send(self, reply: Any, sent: Callable[[], None]) -> bool:
        self.taken = sent
        self.sending.set()
        return True

    def fail(self, error: Exception) -> None:
        self.results.append(type(error))

    def cancel(self) -> None:
        self.results.append("cancelled")


@pytest.fixture
def watches(tmp_path: Path) -> Iterator[watch.Watches]:
    database = tmp_path / "records.db"
    initialise(database)
    records = RecordWriter(Store(database))
    records.start()
    made = watch.Watches(records)
    made.start()
    yield made
    made.stop()
    records.stop()


@pytest.fixture
def stream(watches: watch.Watches) -> Stream:
    made = Stream()
    watches.watch(admin.WatchRequest(), UNAUTHENTICATED_ADMINISTRATOR, made, frozenset(Kind))  # type: ignore[arg-type]
    assert made.sending.wait(10)
    return made


def test_a_stream_ends_with_the_reason_when_its_reply_is_taken(watches: watch.Watches, stream: Stream) -> None:
    (watcher,) = watches._open()
    stopping = threading.Thread(target=watches.stop)
    stopping.start()
    until(lambda: watcher.failure is not None or not stopping.is_alive(), what="the stop reaches the stream")
    stream.taken()
    stopping.join(10)
    assert stream.results == [StoppedError]


def test_a_stream_without_room_is_cancelled(
    watches: watch.Watches, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STOP_SECONDS", 0.1, raising=False)
    watches.stop()
    assert stream.results == ["cancelled"]
