# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes ``ansible-rulebook`` for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.events.environment import BIN
from tests.waiting import until

# Limits detect hanging processes only: a busy machine needs long to start Java and Ansible.
START_SECONDS = 120.0
ACTION_SECONDS = 180.0


class Rulebook:
    """A running rulebook. ``folder`` has its variables, its state and its output."""

    def __init__(
        self,
        rulebook: str | Path,
        folder: Path,
        inventory: Path,
        twin_state: Path | None = None,
        options: Sequence[str] = (),
        **variables: Any,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.output = folder / "output.log"
        file = folder / "variables.yml"
        file.write_text(yaml.safe_dump(variables))
        environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            **({"TWIN_STATE_DIR": str(twin_state)} if twin_state else {}),
        }
        command = [BIN / "ansible-rulebook", "--rulebook", str(rulebook), "--vars", file, "--inventory", inventory]
        with self.output.open("a") as output:
            # In a session of its own, so that the group has exactly the rulebook and its playbooks.
            self.process = subprocess.Popen(
                list(map(str, [*command, "--shutdown-delay", "1", *options])),
                env=environment,
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def text(self) -> str:
        """Return the output so far."""
        return self.output.read_text()

    def until(self, condition: Callable[[], Any], what: str, seconds: float = ACTION_SECONDS) -> Any:
        """Wait for a condition while the rulebook runs."""

        def holds() -> Any:
            assert self.process.poll() is None, self.text()
            return condition()

        return until(holds, seconds, lambda: f"{what}\n{self.text()[-3000:]}")

    def shown(self, text: str, seconds: float = ACTION_SECONDS) -> None:
        """Wait until the output contains a text."""
        self.until(lambda: text in self.text(), f"output {text!r}", seconds)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End the process and its playbooks."""
        if self.process.poll() is None:
            self.process.send_signal(by)
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise

    def kill(self) -> None:
        """Kill the process and its playbooks, if they still run."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def state(path: Path) -> dict[str, Any]:
    """Return the state file of the event source, empty when it does not exist yet."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return found
