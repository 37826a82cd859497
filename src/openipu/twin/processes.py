# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that outlive the command that started them: started, found again, and ended, by pid file.

A pid file also holds when its process was started (in the kernel's own ticks, and in which boot), so
that a number which the system has given to somebody else since is never taken for ours.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

STOP_SECONDS = 10.0  # that a process has for ending itself, before it is killed
_POLL_SECONDS = 0.02


class Endpoint(NamedTuple):
    """Where something listens."""

    host: str
    port: int
    udp: bool = False


class ProcessError(Exception):
    """What is in the way, as one sentence."""


@dataclass(frozen=True)
class Service:
    """A process that the twin consists of: its pid file, its log, what runs and in which environment."""

    title: str
    pid_file: Path
    log: Path
    command: Sequence[str]
    environment: Mapping[str, str] | None = None  # none: that of who starts it

    def running(self) -> psutil.Process | None:
        """The process, when it runs."""
        pid, mark = self._record()
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if _start_mark(pid) == mark and _alive(process):
                return process
        return None

    def members(self) -> list[psutil.Process]:
        """Itself and what it started in its session, also when itself has ended: the system gives no
        process the number of a session that still has members."""
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
        """What the pid file says; no process has the number 0."""
        try:
            record = json.loads(self.pid_file.read_text())
            return int(record["pid"]), str(record["started"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, ""

    def start(self) -> None:
        """Start it in a session of its own. Raises ProcessError."""
        with self.log.open("ab") as log:
            try:
                process = subprocess.Popen(  # noqa: S603  the command is the twin's own
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
            self.pid_file.write_text(json.dumps({"pid": process.pid, "started": _start_mark(process.pid)}) + "\n")
        except OSError as error:
            process.kill()
            process.wait()
            raise ProcessError(f"Cannot write {self.pid_file}: {error.strerror}.") from None

    def wait_ready(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until it answers. Raises ProcessError when it ends or does not in time."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.running() is None:
                raise ProcessError(f"{self.title} ended at once: {self.last_words()} (its log: {self.log})")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.title} did not answer within {seconds:.0f} s: look into {self.log}.")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End it, if it runs, and remove its pid file. Raises ProcessError when it cannot be ended."""
        process = self.running()
        if process is not None:
            try:
                ended = _end(process)
            except psutil.AccessDenied:
                raise ProcessError(f"{self.title} (process {process.pid}) is not yours to stop.") from None
            if not ended:
                raise ProcessError(f"{self.title} (process {process.pid}) cannot be ended.")
        self.pid_file.unlink(missing_ok=True)

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it said nothing"


def check_free(
    endpoints: Iterable[Endpoint],
    remedy: str = "stop it, or take a twin of other addresses (twin up --offset 10, or another pod.yml)",
) -> None:
    """Raise ProcessError when somebody listens on one of these, or no address of this machine is there."""
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
                    who = owner(host, port, udp)
                    raise ProcessError(f"Port {port} on {host} is taken by {who}: {remedy}.") from None
                raise ProcessError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None


def owner(host: str, port: int, udp: bool = False) -> str:
    """Who listens on a port, for a sentence."""
    listening = psutil.CONN_NONE if udp else psutil.CONN_LISTEN
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="udp" if udp else "tcp"):
            local = connection.laddr
            if connection.status == listening and local.port == port and local.ip in (host, "0.0.0.0", "::"):  # noqa: S104
                if connection.pid:
                    return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
                break
    return "a process of somebody else"


def _end(process: psutil.Process) -> bool:
    """Ask a process to end, make it end when it does not; whether it has ended."""
    for ask in (process.terminate, process.kill):
        with contextlib.suppress(psutil.NoSuchProcess):
            ask()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            if not _alive(process):
                return True
            time.sleep(_POLL_SECONDS)
    return False


def _alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and that its parent has not looked after yet does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _start_mark(pid: int) -> str | None:
    """When a process was started, unique for this pid; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may hold anything; the start is the 22nd field of all.
    fields = stat[stat.rindex(")") + 2 :].split()
    return f"{boot} {fields[19]}"


def private_folder(path: Path) -> bool:
    """Make a folder that only its owner can enter; whether it was made now. Raises ProcessError."""
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise ProcessError(f"{path} is not a folder: name another with --state-dir.") from None
        if path.stat().st_uid != os.getuid():
            raise ProcessError(f"{path} belongs to somebody else: name another with --state-dir.") from None
        path.chmod(0o700)
        return False
    except OSError as error:
        raise ProcessError(f"Cannot make {path}: {error.strerror}.") from None
    return True


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other command is in this on the same folder, which is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
