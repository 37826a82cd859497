# SPDX-License-Identifier: GPL-3.0-or-later
"""Process that begins calls of a controller without a pause and never finishes them, until it is terminated."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.attack import http2

_CONNECTIONS = 8
_BATCH = 256  # calls in one write


def main() -> None:
    """Flood a controller. Arguments: its address, a method, and the folder of a client certificate."""
    address, path, folder = sys.argv[1:]
    files = {name: str(Path(folder) / name) for name in ("ca.crt", "client.crt", "client.key")}
    tls = ssl.create_default_context(cafile=files["ca.crt"])
    tls.load_cert_chain(files["client.crt"], files["client.key"])
    tls.set_alpn_protocols(["h2"])
    headers = http2.request_headers(path)
    flows = [_flow(address, tls, headers) for _ in range(_CONNECTIONS)]
    while True:
        for flow in flows:
            next(flow)


def _flow(address: str, tls: ssl.SSLContext, headers: bytes) -> Iterator[None]:
    """Yield after each batch of calls on one connection, which is replaced when the server closes it."""
    while True:
        connection = http2.Connection(address, tls=tls)
        try:
            for first in range(1, 1 << 30, 2 * _BATCH):
                calls = range(first, first + 2 * _BATCH, 2)
                connection.send(b"".join(http2.unfinished_call(number, headers) for number in calls))
                connection.discard()
                yield
        except OSError:
            connection.close()


if __name__ == "__main__":
    main()
