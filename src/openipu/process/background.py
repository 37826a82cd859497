# SPDX-License-Identifier: GPL-3.0-or-later
"""Background processes that outlive the command that started them, controlled by a pid file.

A pid file also holds the start time of its process (in kernel ticks, with the boot id). So a reused
process id is never taken for the service.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

STOP_SECONDS = 10.0  # from SIGTERM until SIGKILL
PROGRESS_SECONDS = 4.0  # between two lines about a process that is not ready yet
_POLL_SECONDS = 0.02


class Endpoint(NamedTuple):
    """Address on which a process listens."""

    host: str
    port: int
    udp: bool = False


class ProcessError(Exception):
    """Raised when a process cannot be started, checked or stopped."""

    error_code = "OPU803"


@dataclass(frozen=True)
class Service:
    """One background process: its title within a sentence, pid file, log, command and environment."""

    title: str
    pid_file: Path
    log: Path
    command: Sequence[str]
    environment: Mapping[str, str] | None = None  # None: that of the caller

    def running(self) -> psutil.Process | None:
        """Return the process, None when it does not run."""
        pid, mark = self._record()
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if _start_mark(pid) == mark and _alive(process):
                return process
        return None

    def members(self) -> list[psutil.Process]:
        """Return all processes of its session, even when the first one has ended.

        The kernel does not reuse the id of a session that still has members.
        """
        pid, mark = self._record()
        if not pid or _start_mark(pid) not in (mark, None):
            return []
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getsid(process.pid) == pid and _alive(process):
                    found.append(process)
        return found

    def _record(self) -> tuple[int, str]:
        """Return pid and start mark from the pid file, pid 0 when it is missing or invalid."""
        try:
            record = json.loads(self.pid_file.read_text())
            return int(record["pid"]), str(record["started"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, ""

    def start(self) -> None:
        """Start the process in a new session. Raises ProcessError."""
        with self.log.open("ab") as log:
            try:
                process = subprocess.Popen(  # noqa: S603  the command comes from this project
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=self.environment,
                    cwd=self.pid_file.parent,
                )
            except OSError as error:
                raise ProcessError(f"Cannot start {self.command[0]}: {error.strerror}.") from None
        try:
            self.record(process.pid)
        except ProcessError:
            process.kill()
            process.wait()
            raise

    def record(self, pid: int) -> None:
        """Write the pid file of a process. Raises ProcessError."""
        try:
            self.pid_file.write_text(json.dumps({"pid": pid, "started": _start_mark(pid)}) + "\n")
        except OSError as error:
            raise ProcessError(f"Cannot write {self.pid_file}: {error.strerror}.") from None

    def open_files(self) -> int:
        """Return the number of its open files and sockets, 0 when it does not run."""
        process = self.running()
        with contextlib.suppress(psutil.Error):
            return process.num_fds() if process else 0
        return 0

    def wait_ready(
        self,
        ready: Callable[[], bool],
        seconds: float,
        report: Callable[[str], None] | None = None,
        progress: Callable[[], int] | None = None,
    ) -> None:
        """Wait until ``ready`` returns true.

        ``report`` receives a line about the progress every few seconds. Raises ProcessError when the process ends or
        the time is over. If the value of ``progress`` has grown until then, the time starts again.
        """
        started = reported = time.monotonic()
        deadline = started + seconds
        reached = progress() if progress else 0
        while not ready():
            if report and time.monotonic() >= reported + PROGRESS_SECONDS:
                reported = time.monotonic()
                report(f"{reported - started:5.0f} s  Waiting for {self.title}")
            if self.running() is None:
                line = self.last_log_line().removesuffix(".")
                raise ProcessError(f"Cannot start {self.title}: it exited immediately: {line}. See {self.log}.")
            if time.monotonic() > deadline:
                former, reached = reached, progress() if progress else 0
                if reached <= former:
                    missing = "progress" if progress else "response"
                    raise ProcessError(f"Cannot start {self.title}: no {missing} within {seconds:g} s. See {self.log}.")
                deadline = time.monotonic() + seconds
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop the process, if it runs, and remove its pid file. Raises ProcessError when that fails."""
        process = self.running()
        if process is not None:
            try:
                ended = _end(process)
            except psutil.AccessDenied:
                raise ProcessError(
                    f"Cannot stop {self.title} (process {process.pid}): it belongs to another user. Use that account."
                ) from None
            if not ended:
                raise ProcessError(
                    f"Cannot stop {self.title} (process {process.pid}): it survives SIGKILL. "
                    "Wait for the end of its I/O, or restart the host."
                )
        self.pid_file.unlink(missing_ok=True)

    def last_log_line(self) -> str:
        """Return the last line of its log, a note when the log is empty."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "its log is empty"


def check_free(
    endpoints: Iterable[Endpoint],
    remedy: str = "Stop it, or start the twin on other addresses (twin up --offset 10, or another pod.yml).",
) -> None:
    """Raise ProcessError when an endpoint is in use, or its address is not one of this machine."""
    for host, port, udp in endpoints:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as probe:
            try:
                if not udp:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
                if not udp:
                    probe.listen(1)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    process = port_owner(host, port, udp)
                    raise ProcessError(f"Cannot use {host}:{port}: {process} listens there. {remedy}") from None
                raise ProcessError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None


def port_owner(host: str, port: int, udp: bool = False) -> str:
    """Return a description of the process that listens on a port, for messages."""
    listening = psutil.CONN_NONE if udp else psutil.CONN_LISTEN
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="udp" if udp else "tcp"):
            local = connection.laddr
            address = local.ip.removeprefix("::ffff:")  # gRPC listens on IPv4 addresses with IPv6 sockets
            if connection.status == listening and local.port == port and address in (host, "0.0.0.0", "::"):  # noqa: S104
                if connection.pid:
                    return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
                break
    return "a process of another user"


def _end(process: psutil.Process) -> bool:
    """Send SIGTERM, then SIGKILL. Return whether the process has ended."""
    for send_signal in (process.terminate, process.kill):
        with contextlib.suppress(psutil.NoSuchProcess):
            send_signal()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if not _alive(process):
                return True
            time.sleep(_POLL_SECONDS)
    return False


def _alive(process: psutil.Process) -> bool:
    """Return whether a process runs. A zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _start_mark(pid: int) -> str | None:
    """Return a mark of the start of a process, unique for this pid; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may hold any character; the start time is field 22 of the whole line.
    fields = stat[stat.rindex(")") + 2 :].split()
    return f"{boot} {fields[19]}"


def private_folder(path: Path) -> bool:
    """Create a folder that only its owner can enter. Return whether it is new. Raises ProcessError."""
    remedy = "Choose another folder with --state-dir."
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise ProcessError(f"Cannot use {path}: it is not a folder. {remedy}") from None
        if path.stat().st_uid != os.getuid():
            raise ProcessError(f"Cannot use {path}: it belongs to another user. {remedy}") from None
        path.chmod(0o700)
        return False
    except OSError as error:
        raise ProcessError(f"Cannot create {path}: {error.strerror}.") from None
    return True
