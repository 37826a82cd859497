# SPDX-License-Identifier: GPL-3.0-or-later
"""A separate twin: the POD of inventory/twin on other loopback addresses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests import ROOT

BIN = Path(sys.executable).parent


@dataclass
class OwnTwin:
    """A POD and the folder of its twin; ``octet`` is added to the x of 127.x.y.z."""

    inventory: Path
    state: Path
    octet: int

    @property
    def controller(self) -> str:
        return f"127.{3 + self.octet}.1.101"

    def twin(self, command: str, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        more = ("--inventory", str(self.inventory)) if command == "up" else ()
        return run(BIN / "twin", command, "--state-dir", str(self.state), *more, *options, check=check)

    def status(self) -> dict[str, Any]:
        return json.loads(self.twin("status", "--json").stdout)

    def playbook(
        self, name: str, *options: str, check: bool = True, seconds: float = 100
    ) -> subprocess.CompletedProcess[str]:
        command = (BIN / "ansible-playbook", ROOT / "playbooks" / name, "-i", self.inventory)
        return run(*command, *options, check=check, state=self.state, seconds=seconds)

    def pid(self, name: str) -> int:
        return int(json.loads((self.state / f"{name}.pid").read_text())["pid"])

    def processes(self) -> list[psutil.Process]:
        """Return the processes with this folder on their command lines."""
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            words = process.info["cmdline"] or []
            if process.info["status"] != psutil.STATUS_ZOMBIE and any(str(self.state) in word for word in words):
                found.append(process)
        return found


def run(
    program: Path, *arguments: object, check: bool = True, state: Path | None = None, seconds: float = 100
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    if state:
        environment["TWIN_STATE_DIR"] = str(state)
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def changed(done: subprocess.CompletedProcess[str]) -> int:
    """Return the number of changed tasks, over all hosts."""
    counts = re.findall(r"changed=(\d+)", done.stdout)
    assert counts, done.stdout
    return sum(map(int, counts))


def octet(first: int) -> int:
    """Return the octet of a twin, ``first`` or a multiple of 10 above it.

    Workers of a test run have different octets, and test runs at the same time mostly too.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    slot = os.getppid() + int(worker.removeprefix("gw")) if worker else os.getpid()
    return first + slot % 23 * 10


def make(folder: Path) -> OwnTwin:
    """Return the POD of inventory/twin on other addresses."""
    shift = octet(10)  # a developer's own twin has 127.1 to 127.5
    inventory = folder / "inventory"
    shutil.copytree(ROOT / "inventory/twin", inventory)
    pod = inventory / "pod.yml"
    pod.write_text(re.sub(r"127\.(\d)\.0\.0", lambda match: f"127.{int(match[1]) + shift}.0.0", pod.read_text()))
    return OwnTwin(pod, folder / "state", shift)
