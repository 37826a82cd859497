# SPDX-License-Identifier: GPL-3.0-or-later
"""Free ports for servers of tests."""

from __future__ import annotations

import fcntl
import os
import random
import socket
from pathlib import Path

# Not the folder for temporary files: sessions with different values of TMPDIR must exclude each other.
FOLDER = Path("/var/tmp")
_ENOUGH = 1000  # ports


def unassigned(first: int, last: int) -> range:
    """Return ports outside of ``first`` to ``last``, which Linux assigns to connections and to servers with port 0."""
    below, above = range(10_000, min(30_000, first)), range(max(10_000, last + 1), 65_536)
    return below if len(below) >= _ENOUGH else above if len(above) >= _ENOUGH else range(10_000, 30_000)


RANGE = unassigned(*map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()))


class Locks:
    """Numbers that this process holds until its end, so that no other process of this user gets them.

    One byte of a file stands for each number, and POSIX locks protect it. The locks of a process are not those of its
    forks.
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self._path = (folder or FOLDER) / f"openipu-test-{name}-{os.getuid()}"
        self._owner, self._file, self._held = 0, -1, set[int]()

    def take(self, number: int) -> bool:
        """Hold a number. Return false when this process or another one holds it."""
        if self._owner != os.getpid():
            self._owner, self._held = os.getpid(), set()
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if number in self._held:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        self._held.add(number)
        return True

    def release(self, number: int) -> None:
        """Release a held number."""
        self._held.discard(number)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)


class Ports:
    """Ports that other test processes do not get.

    A server of a test starts long after its port was chosen. Without the lock, a server of another run could take the
    port meanwhile, and answer in its place.
    """

    def __init__(self, ports: range = RANGE, folder: Path | None = None) -> None:
        self._ports = ports
        self._locks = Locks("ports", folder)

    def take(self, host: str, kind: socket.SocketKind) -> int:
        """Hold and return a port of an address on which no program listens. Raises OSError when none is free."""
        for port in random.SystemRandom().sample(self._ports, len(self._ports)):
            if self._locks.take(port):
                if is_free(host, port, kind):
                    return port
                self._locks.release(port)
        raise OSError(f"Cannot find a free port of {host}: all of {self._ports} are in use.")


def is_free(host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> bool:
    """Return whether no program listens on a port."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as found:
        try:
            found.bind((host, port))
        except OSError:
            return False
    return True


_PORTS = Ports()


def free_port(host: str = "127.0.0.1", kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port of an address on which no program listens, and which no other test process gets."""
    return _PORTS.take(host, kind)
