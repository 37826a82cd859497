# SPDX-License-Identifier: GPL-3.0-or-later
"""Free ports for servers of tests."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Below the ports that Linux assigns to connections and to servers with port 0 (net.ipv4.ip_local_port_range).
RANGE = range(10_000, 30_000)


class Ports:
    """Ports that this process holds until its end, so that other test processes of this user get different ones.

    A server of a test starts long after its port was chosen. Without the lock, a server of another run could take the
    port meanwhile, and answer in its place. One byte of a file stands for each port, and POSIX locks protect it.
    """

    def __init__(self, ports: range = RANGE, folder: Path | None = None) -> None:
        self._ports = ports
        self._path = (folder or Path(tempfile.gettempdir())) / f"openipu-test-ports-{os.getuid()}"
        self._owner, self._file, self._held = 0, -1, set[int]()

    def take(self, host: str, kind: socket.SocketKind) -> int:
        """Hold and return a port of an address on which no program listens. Raises OSError when none is free."""
        if self._owner != os.getpid():  # the locks of a parent are not those of its fork
            self._owner, self._held = os.getpid(), set()
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        for port in random.SystemRandom().sample(self._ports, len(self._ports)):
            if port not in self._held and self._lock(port):
                if _is_free(host, port, kind):
                    self._held.add(port)
                    return port
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, port)
        raise OSError(f"Cannot find a free port of {host}: all of {self._ports} are in use.")

    def _lock(self, port: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except (BlockingIOError, PermissionError):
            return False
        return True


def _is_free(host: str, port: int, kind: socket.SocketKind) -> bool:
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
