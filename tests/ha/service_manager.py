# SPDX-License-Identifier: GPL-3.0-or-later
"""Substitute for systemd: a program ``systemctl`` that starts and stops units, and logs what it did.

A unit is a JSON file with the command, in the folder of the program. Its process ID is next to it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from tests import ROOT
from tests.waiting import until

_PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.ha.service_manager import main
main(__file__, *sys.argv[1:])
"""


def install(folder: Path) -> None:
    """Create the program in a folder for PATH."""
    program = folder / "systemctl"
    program.write_text(_PROGRAM)
    program.chmod(0o755)


class Unit:
    """Process of a unit, whose parent may be another program."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._id = folder / f"{name}.pid"

    def define(self, *command: str) -> None:
        (self.folder / f"{self.name}.json").write_text(json.dumps(command))

    def active(self) -> bool:
        try:
            status = Path("/proc", self._id.read_text(), "stat").read_text()
        except FileNotFoundError:
            return False
        return status.rpartition(")")[2].split()[0] != "Z"

    def start(self) -> None:
        self.log("start")
        command = json.loads((self.folder / f"{self.name}.json").read_text())
        log = os.open(self.folder / f"{self.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        self._id.write_text(str(os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.log("stop")
        if self.active():
            os.kill(int(self._id.read_text()), number)
            until(lambda: not self.active(), 30, f"{self.name} ends")

    def log(self, action: str) -> None:
        with (self.folder / "actions").open("a") as log:
            log.write(f"{action} {self.name}\n")


def main(program: str, action: str, name: str = "") -> None:
    unit = Unit(Path(program).parent, name.strip("'"))
    if action == "is-active":
        print("active" if unit.active() else "inactive")
    elif action == "show":
        print(f"LoadState=loaded\nActiveState={'active' if unit.active() else 'inactive'}")
    elif action in ("start", "stop"):
        getattr(unit, action)()
    elif action != "daemon-reload":
        raise SystemExit(f"unknown action {action}")
