# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of Ansible without the time of their imports, half a second of CPU time for each start.

They are the same programs in a process of their own, with the given environment. Only the imports are shared: each
process is a fork of a server that has already imported Ansible. Settings that Ansible or Python reads at its start come
from the server, except ANSIBLE_*.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PROGRAM = Path(__file__).with_name("ansible_server.py")


def run(
    program: str, *arguments: str | Path, environment: Mapping[str, str], folder: Path | None = None, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible in a folder, by default the current one.

    Raises subprocess.TimeoutExpired if it runs longer.
    """
    # Ansible reads its settings during its imports.
    settings = {name: value for name, value in environment.items() if name.startswith("ANSIBLE_")}
    return _server(tuple(sorted(settings.items()))).run(
        [program, *map(str, arguments)], dict(environment), folder or Path.cwd(), seconds
    )


class Server:
    """A process that has imported Ansible with some settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._home = tempfile.TemporaryDirectory()  # it has no settings of the user
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM],
            env={**inherited, **settings, "HOME": self._home.name},
            cwd=self._home.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self.close)

    def run(
        self, command: list[str], environment: dict[str, str], folder: Path, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin
        with tempfile.NamedTemporaryFile("r") as stdout, tempfile.NamedTemporaryFile("r") as stderr:
            request = {
                "program": command[0],
                "arguments": command[1:],
                "environment": environment,
                "folder": str(folder),
                "stdout": stdout.name,
                "stderr": stderr.name,
            }
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            status = self._reply(command, seconds)
            return subprocess.CompletedProcess(command, status, stdout.read(), stderr.read())

    def _reply(self, command: list[str], seconds: float) -> int:
        assert self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                os.killpg(self._process.pid, signal.SIGKILL)
                _server.cache_clear()
                raise subprocess.TimeoutExpired(command, seconds)
        reply = self._process.stdout.readline()
        if not reply:
            _server.cache_clear()
        assert reply, f"The server of Ansible has ended: {self._process.wait()}"
        return int(reply)

    def close(self) -> None:
        self._process.communicate()
        self._home.cleanup()


@cache
def _server(settings: tuple[tuple[str, str], ...]) -> Server:
    return Server(dict(settings))
