# SPDX-License-Identifier: GPL-3.0-or-later
"""Process that holds idle connections: ``hold_connections.py ADDRESS CONNECTIONS``."""

from __future__ import annotations

import socket
import sys

from openipu.process.limits import raise_file_limit

# The preface of an HTTP/2 client, with an empty SETTINGS frame.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def main(address: str, connections: int) -> None:
    """Connect, print a line, and wait until standard input is closed."""
    raise_file_limit()
    host, _, port = address.rpartition(":")
    held = []
    for number in range(connections):
        held.append(socket.create_connection((host, int(port)), timeout=30))
        if number % 2:
            held[-1].sendall(PREFACE)
    print("connected", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
