# SPDX-License-Identifier: GPL-3.0-or-later
"""Backup and restore of a controller."""

from __future__ import annotations

import errno
import io
import os
import pty
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.storage import backup, replacement
from openipu.vipu.storage.replacement import Replacement, journal_of
from openipu.vipu.storage.store import Store, StoreError
from tests.integration.vipu.maintenance_support import Start, mode
from tests.integration.vipu_servers import (
    Client,
    InProcess,
    InstantLife,
    command,
    environment,
    partition,
    pod,
    run,
)


def records(client: Client) -> tuple[list[str], list[str]]:
    partitions = client.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    agents = client.admin.ListAgents(admin.ListAgentsRequest()).agents
    return sorted(each.id for each in partitions), sorted(each.spec.id for each in agents)


@pytest.fixture
def busy(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a running controller with records of all kinds."""
    server = vipu_server(life=InstantLife)
    pod(server, 16, {"a1": 8, "a2": 8})
    for name in ("p1", "p2", "p3"):
        server.user.CreatePartition(partition(name, 4, "a1"))
    return server


def test_backup_of_a_running_controller_and_restore_on_an_empty_host(
    busy: InProcess, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    (tmp_path / "backups").mkdir()
    database = tmp_path / "vipu-server.db"
    options = ("--database", str(database), "--certs", str(certs))
    made = run("backup", *options, "--keep", "2", str(tmp_path / "backups"))
    (file,) = (tmp_path / "backups").iterdir()
    counts = "16 agents, 1 cluster, 2 allocations, 3 partitions and 0 users"
    assert (made.returncode, made.stdout) == (0, f"Backup written: {file} ({counts})\n"), made.stderr
    assert mode(file) == 0o600
    busy.user.CreatePartition(partition("later", 4, "a1"))
    before = records(busy)
    with closing(sqlite3.connect(database)) as reader:
        (deployment,) = reader.execute("SELECT id FROM deployment").fetchone()
    assert run("check", *options[:2]).stdout == (
        f"Sound: {database} ({counts.replace('3 p', '4 p')})\nDeployment: {deployment}\n"
    )

    host = tmp_path / "empty" / "host"
    restored = run("restore", "--database", str(host / "vipu-server.db"), "--certs", str(host / "certs"), str(file))
    assert restored.stdout == f"Restored: {host / 'vipu-server.db'} ({counts})\n", restored.stderr
    assert mode(host) == 0o700
    assert mode(host / "vipu-server.db") == 0o600
    assert mode(host / "certs" / "ca" / "ca.key") == 0o600
    assert mode(host / "certs" / "server") == 0o700
    for each in ("ca/ca.key", "server/server.crt", "client/client.key"):
        assert (host / "certs" / each).read_bytes() == (certs / each).read_bytes()
    assert not list(host.glob(".restore*"))
    again = vipu_server(database=host / "vipu-server.db", life=InstantLife)
    assert records(again) == (["p1", "p2", "p3"], before[1])
    assert records(busy) == before


def test_keep_removes_old_backups_only(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    foreign = [folder / "notes.txt", folder / "vipu-1.18.0.tar.gz", folder / "vipu-20261121T031700Z.tar.gz"]
    for file in foreign:
        file.write_text("mine")
    files = [backup.create(tmp_path / "vipu-server.db", certs, folder)[0] for _ in range(3)]
    assert backup.prune(folder, 2, files[-1]) == files[:1]
    assert sorted(folder.iterdir()) == sorted([*foreign, *files[1:]])
    rejected = run("backup", "--database", str(tmp_path / "vipu-server.db"), "--keep", "3", str(folder / "one.tar.gz"))
    assert rejected.returncode == 2
    assert "Cannot use --keep with" in rejected.stderr


def test_keep_does_not_remove_the_new_backup(busy: InProcess, tmp_path: Path) -> None:
    """A clock that was ahead gave the earlier backups later names."""
    (tmp_path / "backups").mkdir()
    later = [tmp_path / "backups" / f"vipu-2999010{day}T000000.000000Z.tar.gz" for day in (1, 2, 3)]
    for file in later:
        file.touch()
    done = run("backup", "--database", str(tmp_path / "vipu-server.db"), "--keep", "2", str(tmp_path / "backups"))
    (new,) = set((tmp_path / "backups").iterdir()) - {later[-1]}
    assert done.stdout.startswith(f"Backup written: {new} (")
    backup.restore(new, tmp_path / "restored.db", None)


def test_restore_overwrites_only_on_request_and_keeps_the_old_files(
    busy: InProcess, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    database = tmp_path / "vipu-server.db"
    file, _ = backup.create(database, certs, tmp_path)
    busy.user.CreatePartition(partition("later", 4, "a1"))
    options = ("--database", str(database), "--certs", str(certs))
    rejected = run("restore", *options, str(file))
    assert rejected.returncode == 1
    assert rejected.stderr == (
        f"Error OPU613: Cannot restore '{file}': '{database}' already exists. Nothing was restored. "
        "Give --overwrite to replace it, or another --database and --certs.\n"
    )
    running = run("restore", *options, "--overwrite", str(file))
    assert running.returncode == 1
    assert "another vipu-server uses it" in running.stderr
    assert "later" in records(busy)[0]
    busy.stop()
    old_key = (certs / "server" / "server.key").read_bytes()
    for lost in (True, False):  # the second restore renames the files of the first
        restored = run("restore", *options, "--overwrite", *(["--yes"] if lost else []), str(file))
        assert restored.returncode == 0, restored.stderr
        assert ("Partitions that are not in the backup: later\n" in restored.stdout) is lost
    assert records(vipu_server(life=InstantLife))[0] == ["p1", "p2", "p3"]
    assert (certs / "server" / "server.key").read_bytes() == old_key
    assert Path(f"{certs}{backup.ASIDE}").is_dir()


LISTED = (
    "Partitions that are not in the backup: later\n"
    "Partitions on other IPUs or agents in the backup: p2, p3\n"
    "Their records are replaced. Jobs continue: IPUs that machines hold for these partitions will be in quarantine.\n"
)


@dataclass
class Lost:
    """Stopped controller with three partitions that a backup has differently, or not at all."""

    database: Path
    archive: Path

    @property
    def arguments(self) -> list[str]:
        return ["restore", "--records-only", "--overwrite", "--database", str(self.database), str(self.archive)]

    def partitions(self) -> set[str]:
        with closing(Store(self.database)) as store:
            return set(store.load().partitions)

    def at_terminal(self, answer: bytes) -> tuple[int, str]:
        """Restore with this answer at a terminal; return the exit status and the output."""
        terminal, inside = pty.openpty()
        try:
            process = subprocess.Popen(
                command(*self.arguments),
                stdin=inside,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(),
            )
            os.write(terminal, answer)
            output, _ = process.communicate(timeout=30)
        finally:
            os.close(terminal)
            os.close(inside)
        return process.returncode, output


@pytest.fixture
def lost(busy: InProcess, certs: Path, tmp_path: Path) -> Lost:
    database = tmp_path / "vipu-server.db"
    archive, _ = backup.create(database, certs, tmp_path)
    busy.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p2"))
    busy.user.CreatePartition(partition("later", 4, "a1"))  # on the IPUs of p2
    busy.user.CreatePartition(partition("p2", 4, "a2"))
    busy.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p3"))
    busy.user.CreatePartition(partition("p3", 2, "a1"))
    busy.stop()
    return Lost(database, archive)


def test_a_restore_without_a_terminal_needs_yes_to_lose_partitions(lost: Lost) -> None:
    before = lost.partitions()
    rejected = run(*lost.arguments)
    assert (rejected.returncode, rejected.stdout) == (1, LISTED)
    assert rejected.stderr == (
        f"Error OPU623: Cannot restore '{lost.archive}': partitions would lose their records: later, p2, p3. Nothing "
        "was restored. Pass --yes to restore anyway.\n"
    )
    assert lost.partitions() == before
    assert not list(lost.database.parent.glob("*.restore*"))
    restored = run(*lost.arguments, "--yes")
    assert (restored.returncode, restored.stderr) == (0, "")
    assert restored.stdout.startswith(f"{LISTED}Restored: ")
    assert lost.partitions() == {"p1", "p2", "p3"}
    again = run(*lost.arguments)
    assert (again.returncode, again.stdout.startswith("Restored: ")) == (0, True), "nothing is lost any more"


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"], ids=["no", "default", "end"])
def test_a_restore_asks_at_a_terminal(lost: Lost, answer: bytes) -> None:
    before = lost.partitions()
    status, output = lost.at_terminal(answer)
    assert status == 1
    assert output.startswith(f"{LISTED}Continue? [y/N]: "), output
    assert output.rstrip().endswith("Nothing was restored."), output
    assert lost.partitions() == before


def test_a_restore_continues_after_yes_at_a_terminal(lost: Lost) -> None:
    status, output = lost.at_terminal(b"y\n")
    assert (status, output.startswith(f"{LISTED}Continue? [y/N]: Restored: ")) == (0, True), output
    assert lost.partitions() == {"p1", "p2", "p3"}


def test_a_restore_over_a_damaged_database_asks_too(lost: Lost) -> None:
    lost.database.write_bytes(b"not a database")
    rejected = run(*lost.arguments)
    assert rejected.returncode == 1
    assert rejected.stdout.startswith("Cannot read the existing records: ")
    assert rejected.stderr.endswith(
        ": partitions may lose their records. Nothing was restored. Pass --yes to restore anyway.\n"
    )
    assert lost.database.read_bytes() == b"not a database"
    assert run(*lost.arguments, "--yes").returncode == 0
    assert lost.partitions() == {"p1", "p2", "p3"}


def test_a_question_of_a_restore_keeps_controllers_from_starting(lost: Lost) -> None:
    def start(losses: object) -> None:
        started = run("--database", str(lost.database), "--port", "0")
        assert "a restore of it is running" in started.stderr

    backup.restore(lost.archive, lost.database, None, overwrite=True, confirm=start)


def test_a_start_completes_an_interrupted_restore(
    vipu_process: Start, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "vipu-server.db"
    server = vipu_process()
    pod(server, 4)
    file, _ = backup.create(database, certs, tmp_path)
    server.admin.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="later", host="127.0.9.99")))
    assert server.stop() == 0
    with monkeypatch.context() as patch:  # as after a kill before the first move
        patch.setattr(replacement, "_complete", Mock(side_effect=KeyboardInterrupt))
        patch.setattr(Replacement, "_end_moves", Mock())
        patch.setattr(Replacement, "close", lambda self: os.close(self._descriptor))
        with pytest.raises(KeyboardInterrupt):
            backup.restore(file, database, certs, overwrite=True)
    assert journal_of(database).exists()
    assert records(vipu_process())[1] == ["ag01", "ag02", "ag03", "ag04"]
    assert not journal_of(database).exists()


def test_a_log_of_the_old_database_is_not_applied_to_the_restored_one(
    vipu_process: Start, certs: Path, tmp_path: Path, vipu_server: Callable[..., InProcess]
) -> None:
    """A killed controller leaves a write-ahead log."""
    server = vipu_process()
    pod(server, 4)
    file, _ = backup.create(tmp_path / "vipu-server.db", certs, tmp_path)
    server.admin.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="later", host="127.0.9.99")))
    server.kill()
    assert (tmp_path / "vipu-server.db-wal").stat().st_size > 0
    backup.restore(file, tmp_path / "vipu-server.db", certs, overwrite=True)
    four = ["ag01", "ag02", "ag03", "ag04"]
    assert records(vipu_server(life=InstantLife))[1] == four
    aside = Store(Path(f"{tmp_path / 'vipu-server.db'}{backup.ASIDE}"))
    assert sorted(aside.load().agents) == [*four, "later"]
    aside.close()


def test_invalid_backups_are_rejected_without_changes(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    good, _ = backup.create(database, certs, tmp_path)
    busy.stop()
    before = database.read_bytes()
    garbage, cut, flipped, other, missing = (
        tmp_path / name for name in ("garbage", "cut", "flipped", "other.tar", "missing")
    )
    garbage.write_bytes(b"nothing of the sort")
    cut.write_bytes(good.read_bytes()[:-2000])
    content = bytearray(good.read_bytes())
    content[-8] ^= 1  # the checksum of gzip: the same as a damaged certificate with the right checksum
    flipped.write_bytes(content)
    with tarfile.open(other, "w") as tar:
        tar.add(good, "something")
    for file in (garbage, cut, flipped, other):
        with pytest.raises(
            backup.BackupError, match=r"it is not a backup of a controller, or it is damaged\. Use another"
        ):
            backup.restore(file, database, certs, overwrite=True)
    with pytest.raises(backup.BackupError, match=f"Cannot restore '{missing}' to '{database}': no such file"):
        backup.restore(missing, database, certs, overwrite=True)
    assert database.read_bytes() == before
    assert not list(tmp_path.glob(".restore*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("", b""),
        (".", b""),
        ("./", b""),
        (f"certs/{1200 * 'a/'}file", b""),
        ("backup.json", 200_000 * b"["),
        ("backup.json", 200_000 * b'{"a":'),
        ("backup.json", b'{"format": 1, "contents": {}}'),
    ],
    ids=["empty", "dot", "folder", "nested", "list", "dictionary", "no database"],
)
def test_hostile_backups_are_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    with tarfile.open(tmp_path / "hostile.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    done = run("restore", "--database", str(tmp_path / "vipu.db"), str(tmp_path / "hostile.tar"))
    assert done.stderr == (
        f"Error OPU613: Cannot restore '{tmp_path / 'hostile.tar'}': it is not a backup of a controller, or it is "
        "damaged. Use another backup.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["hostile.tar"]


def test_a_damaged_database_is_not_backed_up(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    busy.stop()
    content = bytearray(database.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)  # all pages except the first
    database.write_bytes(content)
    with pytest.raises((backup.BackupError, StoreError)):
        backup.create(database, certs, tmp_path)
    assert not list(tmp_path.glob(backup.PATTERN))
    checked = run("check", "--database", str(database))
    assert (checked.returncode, checked.stderr.count("\n")) == (1, 1)
    assert checked.stderr.startswith("Error OPU6")


def test_a_loop_of_links_is_not_backed_up(busy: InProcess, certs: Path, tmp_path: Path) -> None:
    (certs / "server" / "server.crt").unlink()
    (certs / "server" / "server.crt").symlink_to("server.crt")
    with pytest.raises(backup.BackupError, match=r"too many levels of symbolic links\. No backup was created"):
        backup.create(tmp_path / "vipu-server.db", certs, tmp_path)
    assert not list(tmp_path.glob(backup.PATTERN))


def test_full_disk(busy: InProcess, certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backups").mkdir()
    first, _ = backup.create(tmp_path / "vipu-server.db", certs, tmp_path / "backups")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(backup.BackupError, match=r"no space left on device\. No backup was created\. Older"):
        backup.create(tmp_path / "vipu-server.db", certs, tmp_path / "backups")
    assert list((tmp_path / "backups").iterdir()) == [first]
