# SPDX-License-Identifier: GPL-3.0-or-later
"""``vipu watch`` and ``vipu-admin watch`` as processes."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import event_log
from tests.integration.cli.cli_support import BIN, Cli
from tests.integration.vipu_servers import InProcess, InstantLife, ListenAddress, partition, pod, wait_active
from tests.waiting import until

# Sends SIGINT while a finalizer runs. Python ignores exceptions there.
INTERRUPTS_ITSELF = """
import os, signal
from openipu.shared.vipu import objects
from openipu.vipu.cli.user import main

class Interrupt:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def event(message, event=objects.event, interrupts=[Interrupt()]):
    interrupts.clear()
    return event(message)

objects.event = event
main()
"""


class Running:
    """A command that runs until ``stop``."""

    def __init__(self, cli: Cli, line: str) -> None:
        program, *arguments = line.split()
        if program == "python":
            program, arguments = sys.executable, ["-c", INTERRUPTS_ITSELF, *arguments]
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.process = subprocess.Popen(
            [str(BIN / program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cli.home,
            env=cli.environment,
        )
        for stream, found in ((self.process.stdout, self.lines), (self.process.stderr, self.errors)):
            threading.Thread(target=self._read, args=(stream, found), daemon=True).start()

    @staticmethod
    def _read(stream: Any, found: list[str]) -> None:
        for line in stream:
            found.append(line.rstrip("\n"))

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    def wait(self, condition: Callable[[], Any]) -> None:
        until(condition, what=lambda: "\n".join([*self.lines, *self.errors]))

    def stop(self) -> int:
        """Interrupt the command and return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[InProcess, str], Running]]:
    with contextlib.ExitStack() as stack:

        def make(server: InProcess, line: str) -> Running:
            running = Running(Cli(tmp_path, server.address), line)
            stack.callback(running.process.wait)
            stack.callback(running.process.kill)
            return running

        yield make


@pytest.fixture
def server(instant_server: InProcess) -> InProcess:
    pod(instant_server, 4, {"a1": 2, "a2": 1})
    return instant_server


def test_lines_of_text(server: InProcess, start: Callable[..., Running]) -> None:
    running = start(server, "vipu-admin watch all")
    running.wait(lambda: len(running.lines) == 7)
    revision = server.server.controller.events.revision
    assert running.lines[0] == f"{revision} | put | agent | ag01 | 127.0.9.1:8080"
    assert running.lines[4] == f"{revision} | put | cluster | cl0 | ag01 ag02 ag03 ag04"
    assert running.lines[5] == f"{revision} | put | allocation | a1 | ag01 ag02 (8 free IPUs)"
    server.user.CreatePartition(partition("p1"))
    running.wait(lambda: running.lines[-1].endswith(" | put | partition | p1 | ACTIVE IDLE"))
    server.admin.RemoveAllocation(admin.RemoveRequest(id="a2"))
    running.wait(lambda: any(line.endswith(" | delete | allocation | a2") for line in running.lines))
    assert running.stop() == 0


def test_json_of_a_user_with_filters(server: InProcess, start: Callable[..., Running]) -> None:
    running = start(server, "vipu watch partitions p1 --allocation a1 -o json")
    running.wait(lambda: len(running.lines) == 1)
    first = running.json[0]
    assert first == {"type": "bookmark", "revision": server.server.controller.events.revision}
    server.user.CreatePartition(partition("p2"))
    server.user.CreatePartition(partition("p1"))
    running.wait(lambda: any(line.get("object", {}).get("state") == "ACTIVE" for line in running.json))
    assert {line["id"] for line in running.json if "id" in line} == {"p1"}
    since = start(server, f"vipu watch partitions --since {first['revision']} -o json")
    since.wait(lambda: {line["id"] for line in since.json if "id" in line} == {"p1", "p2"})


def test_it_continues_after_a_restart_and_lists_again_when_compacted(
    vipu_server: Callable[..., InProcess],
    start: Callable[..., Running],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = tmp_path / "records.db"
    first = vipu_server(database, life=InstantLife)
    pod(first, 4)
    port = first.endpoints[0].port
    running = start(first, "vipu watch partitions -o json")
    running.wait(lambda: running.lines)
    first.server.stop(1)
    running.wait(lambda: running.errors)
    assert running.errors[0].endswith("Trying again.")
    second = vipu_server(database, life=InstantLife, user=ListenAddress("127.0.0.1", port))
    second.user.CreatePartition(partition("p1"))
    wait_active(second, "p1")
    running.wait(lambda: any(line.get("id") == "p1" for line in running.json))
    assert not any(line["type"] == "reset" for line in running.json)
    second.server.stop(1)
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 1)
    (tmp_path / "records.db").unlink()
    initialise(database)
    third = vipu_server(database, life=InstantLife, user=ListenAddress("127.0.0.1", port))
    pod(third, 4)
    running.wait(lambda: any(line["type"] == "reset" for line in running.json))
    running.wait(lambda: any("compacted" in line and line.endswith("all objects.") for line in running.errors))


def test_it_fails_when_no_controller_responds(tmp_path: Path) -> None:
    cli = Cli(tmp_path, "127.0.0.1:1")
    assert cli.failed("vipu watch partitions").startswith("watch (partitions): failed: ")


def test_an_interrupt_inside_a_finalizer_ends_the_command(server: InProcess, start: Callable[..., Running]) -> None:
    running = start(server, "python watch allocations")
    assert running.process.wait(10) == 0
    assert not running.errors


def test_a_second_interrupt_ends_a_command_whose_output_blocks(instant_server: InProcess, tmp_path: Path) -> None:
    pod(instant_server, 32)
    cli = Cli(tmp_path, instant_server.address)
    command = [str(BIN / "vipu-admin"), "watch", "all", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cli.home, env=cli.environment) as process:
        try:
            assert process.stdout is not None
            size = fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
            unread = array.array("i", [0])
            until(lambda: fcntl.ioctl(process.stdout, termios.FIONREAD, unread) == 0 and unread[0] > size - 1024)

            def interrupted() -> bool:
                process.send_signal(signal.SIGINT)
                return process.poll() is not None

            until(interrupted)
            assert process.returncode == -signal.SIGTERM
        finally:
            process.kill()
