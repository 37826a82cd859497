# SPDX-License-Identifier: GPL-3.0-or-later
"""BMC for tests: sushy-emulator serves Redfish, a stand-in serves the REST interface of OpenBMC.

The stand-in implements only the resource for remote logging, from its documentation. No server of OpenBMC is
available.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from openipu.vipu.tls import issue, load
from tests import ROOT
from tests.ports import free_port
from tests.waiting import until

EMULATOR = Path(os.environ.get("OPENIPU_REDFISH", ROOT / ".cache/redfish")) / "bin" / "sushy-emulator"
LOGGING = "/xyz/openbmc_project/logging/config/remote"
USER, PASSWORD = "root", "bmc-of-a-test"
HTPASSWD = f"{USER}:$2b$04$YkPVvMYJfM2hsYFQmPs8IOfvGIJPDBlMBqFMuA2RX5S.SLdgAdir2\n"


class Bmc:
    """BMC on a port of 127.0.0.1. ``ca`` is the CA certificate."""

    def __init__(self, folder: Path, redfish: int) -> None:
        issue.create(folder / "tls", ["127.0.0.1"])
        self.ca = folder / "tls" / "ca" / load.CA
        self.logs: dict[str, Any] = {"Address": "", "Port": 0}
        self.writes: list[str] = []
        self.rest = True  # whether the REST interface of OpenBMC is available
        bmc, login = self, "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.startswith("/redfish"):
                    self._logging(lambda: {"data": bmc.logs})
                    return
                backend = http.client.HTTPConnection("127.0.0.1", redfish, timeout=20)
                with contextlib.closing(backend):
                    headers = {"Authorization": value} if (value := self.headers["Authorization"]) else {}
                    backend.request("GET", self.path, headers=headers)
                    reply = backend.getresponse()
                    self._respond(reply.status, reply.read())

            def do_PUT(self) -> None:
                def write() -> dict[str, Any]:
                    name = self.path.removeprefix(f"{LOGGING}/attr/")
                    assert type(body["data"]) is type(bmc.logs[name]), body
                    bmc.logs[name] = body["data"]
                    bmc.writes.append(name)
                    return {"data": None}

                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._logging(write)

            def _logging(self, operation: Any) -> None:
                if self.headers["Authorization"] != login:
                    self._respond(401, b"{}")
                elif not bmc.rest or not self.path.startswith(LOGGING):
                    self._respond(404, b"{}")
                else:
                    self._respond(200, json.dumps({**operation(), "message": "200 OK", "status": "ok"}).encode())

            def _respond(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server = folder / "tls" / "server"
        context.load_cert_chain(server / "server.crt", server / "server.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._redfish = redfish

    def power(self, action: str) -> None:
        """Execute a Redfish reset, On or ForceOff, and wait for its completion."""
        path = json.loads(self._request("GET", "/redfish/v1/Systems"))["Members"][0]["@odata.id"]
        target = "On" if action == "On" else "Off"
        self._request("POST", f"{path}/Actions/ComputerSystem.Reset", json.dumps({"ResetType": action}))
        until(lambda: json.loads(self._request("GET", path))["PowerState"] == target, 30)

    def _request(self, method: str, path: str, body: str | None = None) -> bytes:
        login = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._redfish, timeout=20)) as backend:
            backend.request(method, path, body, headers)
            reply = backend.getresponse()
            assert reply.status < 300, reply.read()
            return reply.read()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextlib.contextmanager
def openbmc(folder: Path) -> Iterator[Bmc]:
    """Run a BMC with one system."""
    assert EMULATOR.exists(), f"No sushy-emulator in {EMULATOR.parent}: run 'make test-peers'."
    (folder / "htpasswd").write_text(HTPASSWD)
    settings = folder / "emulator.py"
    state = json.dumps(str(folder / "state"))
    (folder / "state").mkdir()
    settings.write_text(
        f"SUSHY_EMULATOR_AUTH_FILE = {json.dumps(str(folder / 'htpasswd'))}\nSUSHY_EMULATOR_STATE_DIR = {state}\n"
    )
    port = free_port()
    command = [EMULATOR, "--fake", "--interface", "127.0.0.1", "--port", str(port), "--config", settings]
    with (folder / "emulator.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as emulator:
        try:
            until(lambda: _listens(port) or emulator.poll() is not None, 30)
            assert emulator.poll() is None, (folder / "emulator.log").read_text()
            bmc = Bmc(folder, port)
            try:
                yield bmc
            finally:
                bmc.close()
        finally:
            emulator.terminate()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
