# SPDX-License-Identifier: GPL-3.0-or-later
"""Replacement of files: its journal, and errors of the completion. Attacks kill it at each step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openipu.vipu.storage.replacement import BackupError, Replacement, encode, journal_of, recover


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "vipu.db"


def interrupted(database: Path) -> Path:
    """Write the journal of a replacement that was killed before its first move. Return the new file."""
    folder = database.parent / ".restore.1"
    folder.mkdir()
    new = folder / "new.db"
    new.write_text("new")
    lines = [{"folder": str(folder)}, {"moves": [[str(new), str(database), new.stat().st_ino]]}]
    journal_of(database).write_bytes(b"".join(map(encode, lines)))
    return new


def test_recovery_completes_the_moves_and_removes_the_folders(database: Path) -> None:
    interrupted(database)
    recover(database)
    recover(database)
    assert [path.name for path in database.parent.iterdir()] == [database.name]
    assert database.read_text() == "new"


def test_an_incomplete_line_moves_nothing(database: Path) -> None:
    interrupted(database)
    journal = journal_of(database)
    journal.write_bytes(journal.read_bytes()[:-1])
    recover(database)
    assert not list(database.parent.iterdir())


def test_a_journal_that_is_not_complete_on_disk_moves_nothing(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk can take a part of a line without an error."""
    new = database.with_suffix(".new")
    new.write_text("new")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:5]))
    with Replacement(database) as replacement, pytest.raises(OSError, match="No space left on device"):
        replacement.move([(new, database)])
    assert [path.name for path in database.parent.iterdir()] == [new.name]


def test_recovery_never_overwrites_a_file(database: Path) -> None:
    new = interrupted(database)
    database.write_text("other")
    with pytest.raises(BackupError) as caught:
        recover(database)
    assert str(caught.value) == (
        f"Cannot complete an interrupted restore: {str(new)!r} cannot be moved to {str(database)!r}, because one of "
        "them was changed meanwhile. Put the right files in place, remove the journal with suffix '.restore', and "
        "start again."
    )
    assert (database.read_text(), new.read_text()) == ("other", "new")
    database.unlink()
    recover(database)
    assert database.read_text() == "new"


@pytest.mark.parametrize("text", ["{", "5", "[]", '{"folder": 5}', '{"moves": [[]]}', 100_000 * "["])
def test_a_damaged_journal_is_reported(database: Path, text: str) -> None:
    journal_of(database).write_text(f"{text}\n")
    with pytest.raises(BackupError, match=r"its journal '.*vipu\.db\.restore' is damaged\. Remove the journal"):
        recover(database)


def test_no_file_moves_according_to_a_changed_journal(database: Path) -> None:
    new = interrupted(database)
    journal = journal_of(database)
    content = journal.read_bytes()
    for at in range(0, len(content) - 1, 7):
        journal.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(BackupError, match="is damaged"):
            recover(database)
        assert new.read_text() == "new"
        assert not database.exists()


def test_a_running_replacement_is_not_disturbed(database: Path) -> None:
    with Replacement(database) as running:
        folder = running.folder(database)
        with pytest.raises(BackupError, match=r"a restore of it is running\. Wait until it has ended\."):
            recover(database)
        assert folder.is_dir()
    assert not list(database.parent.iterdir())
