# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in as an HTTPS server in a thread of the tests."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from types import TracebackType

import uvicorn

from openipu.vipu.tls import issue
from tests.awx.standin.app import StandIn
from tests.waiting import until


class Server:
    """Context manager of a running stand-in. ``url``: its address, ``ca``: the certificate that clients trust.

    ``listener`` is a socket that listens already, in a network in which the stand-in has the name ``host``.
    """

    def __init__(
        self, folder: Path, projects: dict[str, Path], listener: socket.socket | None = None, host: str = "localhost"
    ) -> None:
        self.awx = StandIn(projects)
        certificates = folder / "certificates"
        issue.create(certificates, [host])
        self.ca = certificates / "server/ca.crt"
        self._socket = listener or socket.create_server(("127.0.0.1", 0))
        self.url = f"https://{host}:{self._socket.getsockname()[1]}"
        configuration = uvicorn.Config(
            self.awx.application(),
            log_level="error",
            lifespan="off",
            ssl_certfile=certificates / "server/server.crt",
            ssl_keyfile=certificates / "server/server.key",
        )
        self._server = uvicorn.Server(configuration)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="awx stand-in")

    def __enter__(self) -> Server:
        self._thread.start()
        until(lambda: self._server.started, what="start of the stand-in")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
