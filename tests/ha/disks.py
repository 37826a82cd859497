# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the disk of a process: no space left, and slow flushes. Both need root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until

_SIZE = 2 << 30  # bytes; only used ones take memory
_MARGIN = 64 << 10  # bytes that stay free on a full disk


class SmallDisk:
    """File system in memory, whose size changes while it is in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave no space, except a few pages."""
        until(lambda: self._resize(self._used() + _MARGIN), 5, "the disk can be made smaller")

    def empty(self) -> None:
        """Return the space."""
        assert self._resize(_SIZE)

    def _used(self) -> int:
        found = os.statvfs(self.folder)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _resize(self, size: int) -> bool:
        """Return false when a process has written more than that meanwhile."""
        command = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        return subprocess.run(command, capture_output=True).returncode == 0


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk | None]:
    """Return a context with a disk at a new folder, None without the right to mount one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class SlowFlushes:
    """Delay of each flush of a process, until ``end``."""

    def __init__(self, pid: int, seconds: float) -> None:
        calls = "fsync,fdatasync"
        self._tracer = subprocess.Popen(
            [
                *("strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid)),
                *("-e", f"trace={calls}", "-e", f"inject={calls}:delay_exit={round(seconds * 1e6)}"),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: self._tracer.poll() is not None or _tracer(pid) == self._tracer.pid, 10, "strace is attached")
            assert self._tracer.poll() is None, "strace may not trace the process"
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Detach from the process, which continues."""
        self._tracer.terminate()
        self._tracer.wait()


def can_delay_flushes() -> bool:
    """Return whether strace is installed and may trace a process that it did not start."""
    if not shutil.which("strace"):
        return False
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            SlowFlushes(other.pid, 0.1).end()
        except AssertionError:
            return False
        finally:
            other.kill()
    return True


def _tracer(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("TracerPid:")[2].split()[0])
