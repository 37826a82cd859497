# SPDX-License-Identifier: GPL-3.0-or-later
"""Database files that are deleted, replaced or shared while a controller runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.contract import virmgrpc
from openipu.vipu.server.health import NotServingError, wait
from openipu.vipu.server.initialise import initialise
from tests.integration.vipu_servers import InProcess, InstantLife, partition, pod

LOST = "openipu.vipu.storage.database_file.DatabaseFile.lost"
LOCK = "openipu.vipu.storage.database_file._lock"
OFF = str  # called without arguments, it returns no reason

Attack = Callable[[Path], object]


def delete(database: Path) -> None:
    database.unlink()


def delete_log(database: Path) -> None:
    Path(f"{database}-wal").unlink()


def move(database: Path) -> None:
    database.rename(database.with_suffix(".moved"))


def replace_by_copy(database: Path) -> None:
    copy = database.with_suffix(".copy")
    shutil.copy(database, copy)
    copy.replace(database)


def empty(database: Path) -> None:
    os.truncate(database, 0)


def truncate(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def remove_folder(database: Path) -> None:
    shutil.rmtree(database.parent)


@pytest.mark.defence(LOST, OFF)
@pytest.mark.parametrize("attack", [delete, delete_log, move, replace_by_copy, empty, truncate, remove_folder])
def test_changes_of_a_lost_database_are_not_acknowledged(
    vipu_server: Callable[..., InProcess], tmp_path: Path, attack: Attack
) -> None:
    (tmp_path / "data").mkdir()
    server = vipu_server(database=tmp_path / "data" / "vipu.db", life=InstantLife)
    pod(server, 4)
    attack(tmp_path / "data" / "vipu.db")
    for id in ("p1", "p2"):
        with pytest.raises(grpc.RpcError) as caught:
            server.user.CreatePartition(partition(id), timeout=10)
        assert re.search(r"was (deleted|replaced|truncated)", str(caught.value.details()))
        assert "put the original file back or restore a backup" in str(caught.value.details())
    assert not server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    with pytest.raises(NotServingError, match="its health is NOT_SERVING"):
        wait(server.endpoints[0], None, 0)


class Starter:
    """Process that opens a database on request, and keeps it open."""

    SCRIPT = """
import pathlib, sys
from tests.attack.defences import switch_off
from openipu.vipu.storage.store import Store, StoreError
switch_off()
print("ready", flush=True)
sys.stdin.readline()
try:
    store = Store(pathlib.Path(sys.argv[1]))
    print(len(store.load().agents), "agents", flush=True)
except StoreError as error:
    print(error, flush=True)
sys.stdin.readline()
"""

    def __init__(self, database: Path) -> None:
        command = [sys.executable, "-c", self.SCRIPT, str(database)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin and self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout

    def open(self) -> None:
        assert self.output.readline() == "ready\n"
        self.input.write("open\n")
        self.input.flush()

    def result(self) -> str:
        return self.output.readline()


@pytest.fixture
def starter() -> Iterator[Callable[[Path], Starter]]:
    started: list[Starter] = []

    def make(database: Path) -> Starter:
        started.append(Starter(database))
        return started[-1]

    yield make
    for each in started:
        each.process.communicate("end\n", timeout=20)


@pytest.mark.long
@pytest.mark.defence(LOCK, OFF)
def test_a_second_controller_cannot_use_the_database(
    vipu_server: Callable[..., InProcess], starter: Callable[[Path], Starter], tmp_path: Path
) -> None:
    database = tmp_path / "vipu.db"
    pod(vipu_server(database=database, life=InstantLife), 4)
    for file in set(tmp_path.iterdir()) - {Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm")}:
        file.unlink()
    second = starter(database)
    second.open()
    assert "another vipu-server uses it" in second.result()


@pytest.mark.long
@pytest.mark.defence(LOCK, OFF)
def test_one_of_several_starting_controllers_wins(starter: Callable[[Path], Starter], tmp_path: Path) -> None:
    database = tmp_path / "vipu.db"
    initialise(database)
    starters = [starter(database) for _ in range(3)]
    for each in starters:
        each.open()
    results = sorted(each.result() for each in starters)
    assert results[0] == "0 agents\n"
    assert all("another vipu-server uses it" in result for result in results[1:])
