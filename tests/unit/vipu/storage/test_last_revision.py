# SPDX-License-Identifier: GPL-3.0-or-later
"""The last revision that a disk has after a power cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from openipu.vipu.domain.model import Agent, Put
from openipu.vipu.storage import last_revision, writer
from openipu.vipu.storage.last_revision import LastRevision
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.waiting import until


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function with the revision in the file as of the last flush."""
    flushed = tmp_path / "flushed.db"
    copy = LastRevision(flushed).path

    def flush(descriptor: int) -> None:
        source = Path(f"/proc/self/fd/{descriptor}").resolve()
        if source == LastRevision(tmp_path / "vipu.db").path:
            copy.write_bytes(source.read_bytes())
        os.fsync(descriptor)

    monkeypatch.setattr(os, "fdatasync", flush)
    return LastRevision(flushed).read


def test_commits_flush_the_last_revision_once_per_second(
    tmp_path: Path, on_disk: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("openipu.vipu.storage.last_revision.time.monotonic", lambda: now)
    last = LastRevision(tmp_path / "vipu.db")
    last.begin(1)
    found = []
    for revision in range(2, 10):
        last.write(revision)
        found.append(on_disk())
        now += 0.4
    last.close()
    assert found == [2, 2, 2, 5, 5, 5, 8, 8]


def test_an_idle_writer_flushes_the_last_revision(
    tmp_path: Path, on_disk: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_revision, "FLUSH_SECONDS", 1e9)
    monkeypatch.setattr(writer, "_IDLE_CHECK", 0.01)
    records = RecordWriter(Store(tmp_path / "vipu.db", create=True))
    records.start()
    try:
        records.submit(lambda state: ([Put(Agent("ag01", "127.2.1.1"))], None)).result(10)
        until(lambda: on_disk() == records.events.revision)
    finally:
        records.stop()
