# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane and its node as one background process, in namespaces of their own."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from openipu.process.background import ProcessError, Service, private_folder

from . import helm, programs
from .control_plane import ControlPlane
from .images import ensure_images
from .isolation import check_requirements
from .node import Node
from .site import CHECKOUT, NODE_ADDRESS

_READY_SECONDS = 300.0  # enough on a busy machine; a process that ends is noticed at once


class IsolatedCluster:
    """Cluster whose files are in a folder, which is removed with it."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._plane = ControlPlane(state / "cluster", address=NODE_ADDRESS)
        self._ready = state / "ready"

    @property
    def _service(self) -> Service:
        tool = [sys.executable, "-m", "tools.kubernetes"]
        command = [*tool, "isolate", *tool, "run-node", f"--state-dir={self._state}"]
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        return Service("the node", self._state / "node.json", self._state / "node.log", command, environment)

    def up(self, report: Callable[[str], None]) -> None:
        """Start it if it does not run, and wait until it is ready. Raises ProcessError."""
        check_requirements()
        service = self._service
        if service.running() and self._ready.exists():
            return
        ensure_images(programs.ensure_programs(report), report)
        if not private_folder(self._state) and any(self._state.iterdir()) and not service.pid_file.exists():
            raise ProcessError(
                f"Cannot use {self._state}: it holds other files. Choose another folder with --state-dir."
            )
        self.down()
        private_folder(self._state)
        service.start()
        service.wait_ready(self._ready.exists, _READY_SECONDS)

    def run(self) -> None:
        """Run the cluster in the namespaces of this process until it is ended. Raises ProcessError."""
        folder = programs.ensure_programs(print)
        self._plane.up(folder)
        Node(self._plane, folder).up(ensure_images(folder, print).values())
        self._ready.touch()
        signal.pause()

    def down(self) -> bool:
        """End it and remove its files. Return whether there was one. Raises ProcessError."""
        if not self._service.pid_file.exists():
            return False
        self._service.stop()
        shutil.rmtree(self._state)
        return True

    def entered(self, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Return a command that runs another one in the namespaces, and its environment. Raises ProcessError."""
        process = self._service.running()
        if process is None or not self._ready.exists():
            raise ProcessError(
                "Cannot enter the node: it does not run. Start it with python -m tools.kubernetes up --node."
            )
        [holder] = process.children()  # unshare
        [first] = holder.children()
        script = 'cd "$1" && shift && exec "$@"'
        namespaces = ["nsenter", f"--target={first.pid}", "--net", "--mount", "--pid", "--ipc", "--uts"]
        folders = [str(programs.ensure_programs(print)), str(helm.program().parent), os.environ["PATH"]]
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._plane.site.kubeconfig()),
            "PATH": os.pathsep.join(folders),
        }
        return [*namespaces, "sh", "-c", script, "sh", str(Path.cwd()), *command], environment
