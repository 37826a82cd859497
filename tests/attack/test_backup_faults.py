# SPDX-License-Identifier: GPL-3.0-or-later
"""Backups of unusual files, and restores that fail or are killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import backup, replacement

Files = dict[str, bytes | str]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "vipu.db"
    path.parent.mkdir()
    initialise(path)
    return path


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    """Return a folder of certificates with links to files, of links to folders, and of two names of one file."""
    issuer = tmp_path / "issuer"
    (issuer / "client").mkdir(parents=True)
    (issuer / "client" / "client.crt").write_text("client")
    (issuer / "server.crt").write_text("server")
    folder = tmp_path / "keys" / "certs"
    for name in ("server", "users/alice"):
        (folder / name).mkdir(parents=True)
    (folder / "server" / "server.crt").symlink_to("../../../issuer/server.crt")
    (folder / "client").symlink_to(issuer / "client")
    (folder / "users" / "alice" / "alice.key").write_text("alice")
    os.link(folder / "users" / "alice" / "alice.key", folder / "server" / "copy.key")
    return folder


def files(*folders: Path) -> Files:
    """Return the contents of all files by path. Links of folders are followed."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for parent, _, names in os.walk(folder, followlinks=True)
        for path in (Path(parent, name) for name in names)
    }


def by_name(certs: Path) -> Files:
    return {str(Path(path).relative_to(certs)): content for path, content in files(certs).items()}


@pytest.mark.defence("openipu.vipu.storage.backup._DEREFERENCE", False)
def test_linked_certificates_are_restored(database: Path, certs: Path, tmp_path: Path) -> None:
    try:
        archive, _ = backup.create(database, certs, tmp_path / "backup.tar.gz")
    except backup.BackupError as error:
        pytest.fail(str(error))
    backup.restore(archive, tmp_path / "new" / "vipu.db", tmp_path / "new" / "certs")
    assert by_name(tmp_path / "new" / "certs") == by_name(certs)
    assert not any(path.is_symlink() for path in (tmp_path / "new").rglob("*"))


def without_missing(certs: Path) -> dict[str, Path]:
    """Omit links to missing files, in place of ``_certificates``."""
    return {str(backup.CERTS / path.relative_to(certs)): path for path in backup._walk(certs) if path.exists()}


@pytest.mark.defence("openipu.vipu.storage.backup._certificates", without_missing)
def test_a_link_to_a_missing_certificate_is_no_backup(database: Path, certs: Path, tmp_path: Path) -> None:
    (tmp_path / "issuer" / "server.crt").unlink()
    with pytest.raises(backup.BackupError) as error:
        backup.create(database, certs, tmp_path / "backup.tar.gz")
    assert str(error.value) == (
        f"Cannot back up certificate {str(certs / 'server' / 'server.crt')!r}: it is a link to a missing file. "
        "Correct or remove the link."
    )
    assert not (tmp_path / "backup.tar.gz").exists()


class Disk:
    """Renames of this process, of which number ``fails_at`` fails."""

    def __init__(self) -> None:
        self.renames, self.fails_at, self.rename = 0, -1, Path.rename

    def fail(self, source: Path, target: Path) -> Path:
        self.renames += 1
        if self.renames == self.fails_at:
            raise OSError(16, "Device or resource busy")
        return self.rename(source, target)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk()
    monkeypatch.setattr(Path, "rename", lambda source, target: made.fail(source, target))
    yield made
    monkeypatch.undo()


@pytest.mark.defence("openipu.vipu.storage.replacement._move_back", print)
def test_a_failing_restore_changes_nothing(database: Path, certs: Path, tmp_path: Path, disk: Disk) -> None:
    archive, _ = backup.create(database, certs, tmp_path / "backup.tar.gz")
    for _ in range(3):  # each one moves the files that the previous one has kept
        disk.renames = 0
        for suffix in ("-wal", "-revision"):
            Path(f"{database}{suffix}").touch()
        (certs / "server" / "server.crt").write_text("newer")
        backup.restore(archive, database, certs, overwrite=True)
    renames = disk.renames
    for suffix in ("-wal", "-revision"):
        Path(f"{database}{suffix}").touch()
    before = files(database.parent, certs.parent)
    for fails_at in range(1, renames + 1):
        disk.renames, disk.fails_at = 0, fails_at
        with pytest.raises(backup.BackupError, match=r"device or resource busy\. Nothing was restored\."):
            backup.restore(archive, database, certs, overwrite=True)
        assert files(database.parent, certs.parent) == before
    assert renames == 10


STEPS = ("fsync", "ftruncate", "mkdir", "rename", "rmdir", "unlink", "write")  # functions of module os


def killed(step: int, run: Callable[[], object]) -> bool:
    """Run a function in a child process that is killed before its given step; return whether it was."""
    child = os.fork()
    if child == 0:
        steps = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **keywords: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **keywords)

            return call

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            run()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def forget_moves(self: Any) -> None:
    """Remove the temporary folders only."""
    for line in self._content().splitlines():
        shutil.rmtree(json.loads(line.partition(b" ")[2]).get("folder", ""), ignore_errors=True)


@pytest.mark.defence("openipu.vipu.storage.replacement.Replacement._recover", forget_moves)
@pytest.mark.parametrize("again", [False, True], ids=["start", "another restore"])
@pytest.mark.long
def test_a_killed_restore_is_completed_or_undone(database: Path, certs: Path, tmp_path: Path, again: bool) -> None:
    archive, _ = backup.create(database, certs, tmp_path / "backup.tar.gz")
    folders = database.parent, certs.parent
    step, undone, completed = 0, 0, 0
    while True:
        step += 1
        (certs / "server" / "server.crt").write_text(f"newer {step}")
        Path(f"{database}-wal").touch()
        before = files(*folders)
        if not killed(step, lambda: backup.restore(archive, database, certs, overwrite=True)):
            break
        if again:
            backup.restore(archive, database, certs, overwrite=True)
        else:
            replacement.recover(database)
        after = files(*folders)
        assert not [path for folder in folders for path in folder.iterdir() if ".restore" in path.name]
        if after == before:
            undone += 1
            continue
        completed += 1
        assert after[str(certs / "server" / "server.crt")] == b"server"
        assert backup.check(database)
        aside = {f"{certs}.before-restore/server/server.crt", f"{database}.before-restore"}
        assert aside <= after.keys()
        if not again:
            assert {after[path] for path in aside} == {f"newer {step}".encode(), before[str(database)]}
    assert completed >= 8
    assert again or undone >= 8
