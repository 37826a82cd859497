# SPDX-License-Identifier: GPL-3.0-or-later
"""Log of revisions: durable with its changes, bounded, and never confused with another database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.vipu.domain.history import Changed, merge
from openipu.vipu.domain.model import Agent, Delete, Kind, Put
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import backup, event_log
from openipu.vipu.storage.event_log import CompactedError, EventLog
from openipu.vipu.storage.position import Position
from openipu.vipu.storage.store import Store, StoreError
from openipu.vipu.storage.writer import RecordWriter
from tests.unit.vipu.storage import first_version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    initialise(tmp_path / "records.db")
    return tmp_path / "records.db"


@contextlib.contextmanager
def running(path: Path) -> Iterator[RecordWriter]:
    writer = RecordWriter(Store(path))
    writer.start()
    yield writer
    writer.stop()


def put(writer: RecordWriter, number: int) -> int:
    """Create an agent in a transaction of its own, and return the revision."""
    agent = Agent(f"ag{number}", "10.0.0.1", number + 1)
    writer.submit(lambda state: ([Put(agent)], None)).result(10)
    return writer.events.revision


def changed(*numbers: int) -> Changed:
    return {(Kind.AGENT, f"ag{number}"): None for number in numbers}


def test_each_transaction_has_the_next_revision(path: Path) -> None:
    with running(path) as writer:
        start = writer.events.revision
        assert [put(writer, number) for number in range(3)] == [start + 1, start + 2, start + 3]


def test_rejected_commands_and_reads_have_no_revision(path: Path) -> None:
    with running(path) as writer:
        start = writer.events.revision
        writer.submit(lambda state: ([], None)).result(10)
        writer.submit(lambda state: ([Delete(Kind.AGENT, "none")], None)).result(10)
        with pytest.raises(ZeroDivisionError):
            writer.submit(lambda state: ([], 1 // 0)).result(10)
        assert writer.events.revision == start


def test_revisions_survive_a_restart(path: Path) -> None:
    with running(path) as writer:
        start = writer.events.revision
        put(writer, 1)
        writer.submit(lambda state: ([Delete(Kind.AGENT, "ag1"), Put(Agent("ag2", "10.0.0.2"))], None)).result(10)
        expected = writer.events.since(start)
    with running(path) as writer:
        assert writer.events.revision == start + 2
        assert writer.events.since(start) == expected
        assert writer.events.since(start + 2) == {}
        assert put(writer, 3) == start + 3


def test_a_failed_transaction_has_no_revision(path: Path) -> None:
    with running(path) as writer:
        start = put(writer, 1)
        taken = Agent("ag2", "10.0.0.1", 2)  # the endpoint of ag1
        with pytest.raises(StoreError):
            writer.submit(lambda state: ([Put(taken)], None)).result(10)
        assert put(writer, 3) == start + 1
        assert list(writer.events.since(start)) == [(Kind.AGENT, "ag3")]


def test_old_changes_are_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 10)
    log = EventLog(100)
    for revision in range(101, 151):
        log.append(revision, changed(revision, -revision))
    assert log.compacted == 145
    assert log.since(145) == merge((n, changed(n, -n)) for n in range(146, 151))
    for revision in (0, 144, 151):
        with pytest.raises(CompactedError, match=rf"^Cannot continue after revision {revision}: compacted, .*again"):
            log.since(revision)


def test_one_large_transaction_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 10)
    log = EventLog(100)
    log.append(101, changed(*range(1000)))
    assert len(log.since(100)) == 1000
    log.append(102, changed(1))
    assert log.compacted == 100


def test_the_table_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 10)
    monkeypatch.setattr(event_log, "_EXPIRED_ENTRIES", 5)
    with running(path) as writer:
        start = writer.events.revision
        for number in range(40):
            put(writer, number)
        assert writer.events.compacted == start + 30
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM revisions").fetchone()[0] <= 16
    with running(path) as writer:
        assert writer.events.compacted == start + 30
        assert len(writer.events.since(start + 30)) == 10


def test_a_new_database_does_not_continue_an_earlier_one(path: Path, tmp_path: Path) -> None:
    with running(path) as writer:
        old = put(writer, 1)
    initialise(tmp_path / "new.db")
    with running(tmp_path / "new.db") as writer:
        assert writer.events.revision > old
        with pytest.raises(CompactedError):
            writer.events.since(old)


def test_a_restored_database_does_not_repeat_revisions(path: Path, tmp_path: Path) -> None:
    with running(path) as writer:
        put(writer, 1)
        archive, _ = backup.create(path, tmp_path / "none", tmp_path / "backup.tar.gz")
        later = [put(writer, number) for number in (2, 3)]
    backup.restore(archive, path, None, overwrite=True)
    with running(path) as writer:
        assert set(writer.state.agents) == {"ag1"}
        assert writer.events.revision > later[-1]
        for revision in later:
            with pytest.raises(CompactedError):
                writer.events.since(revision)


def test_a_restore_continues_after_its_own_revisions_when_the_clock_was_set_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(Store(path)) as store:
        store.load()
        last = store.events.revision
        monkeypatch.setattr(event_log, "first_revision", lambda: 5)
        store.reset_revisions()
        store.load()
        assert store.events.revision == last + 1
        store.reset_revisions(Position(0, last + 20))  # of the replaced database
        store.load()
        assert store.events.revision == last + 21


def test_a_database_of_the_first_version_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    first_version.create(path)
    with running(path) as writer:
        start = writer.events.revision
        assert put(writer, 2) == start + 1


def test_a_database_without_a_revision_is_damaged(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM revisions")
    with contextlib.closing(Store(path)) as store, pytest.raises(StoreError, match=r"The log of revisions is empty\. "):
        store.load()


@pytest.mark.parametrize("changes", ["[" * 100_000, "{", "[[1]]", '[["agent"]]'])
def test_damaged_changes_are_reported(path: Path, changes: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO revisions SELECT max(revision) + 1, ? FROM revisions", (changes,))
        (last,) = connection.execute("SELECT max(revision) FROM revisions").fetchone()
    fault = rf"it is damaged\. Revision {last} in the log cannot be read: .+\. Restore a backup\."
    with contextlib.closing(Store(path)) as store, pytest.raises(StoreError, match=fault):
        store.load()
