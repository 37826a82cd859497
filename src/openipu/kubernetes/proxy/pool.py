# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU controllers of the list in a file, which may change at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import structlog

from openipu.kubernetes.domain import controllers
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.proxy.controller import ControllerClient
from openipu.shared.vipu.client import Connection

_log = structlog.get_logger("openipu.kubernetes.proxy.pool")

_INTERVAL_SECONDS = 10.0  # between reads of the list; a kubelet updates mounted files within about 45 s
_TIMEOUT_SECONDS = 20.0  # of calls, except removals

# Files of a Secret -> fields of a connection.
_TLS_FILES = {"ca.crt": "ca_path", "tls.crt": "client_cert", "tls.key": "client_key"}
_TEXT_FILES = {"user-id": "user_id", "access-key": "access_key"}


class Pool:
    """Clients of all controllers in the order of the list.

    ``credentials``: a folder with a folder for each controller, ``HOST_PORT`` or ``default``, that holds the files of
    its Secret: ca.crt, tls.crt, tls.key, user-id and access-key.
    """

    def __init__(self, file: Path, credentials: Path, cluster: str = "") -> None:
        """``cluster``: V-IPU cluster of new partitions, empty for any. Raises ValueError for an invalid list."""
        self._file = file
        self._credentials = credentials
        self._cluster = cluster
        self._clients: dict[Controller, ControllerClient] = {}
        self._retired: dict[str, ControllerClient] = {}
        self._text = ""
        self.reload()

    def __iter__(self) -> Iterator[ControllerClient]:
        """Iterate over the clients in the order of the list."""
        return iter(list(self._clients.values()))

    def __len__(self) -> int:
        return len(self._clients)

    def find(self, address: str) -> ControllerClient | None:
        """Return the client of a controller, also of one that has left the list and still has partitions."""
        return next((each for each in self if each.controller.address == address), self._retired.get(address))

    def reload(self) -> None:
        """Read the list again. Raises ValueError and OSError; the previous list remains in use then."""
        text = self._file.read_text(encoding="utf-8")
        listed = controllers.parse(text)
        clients = {each: self._clients.get(each) or self._open(each) for each in listed}
        for controller, client in self._clients.items():
            if controller not in clients:
                self._retired[controller.address] = client
        for client in clients.values():
            self._retired.pop(client.controller.address, None)
        self._clients, self._text = clients, text

    async def run(self) -> None:
        """Follow changes of the list until cancelled."""
        failed = ""
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            try:
                if self._file.read_text(encoding="utf-8") != self._text:
                    self.reload()
                    _log.info("controllers read again", controllers=[each.controller.address for each in self])
                failed = ""
            except (OSError, ValueError) as error:
                if str(error) != failed:
                    _log.error("cannot use the list of controllers", file=str(self._file), error=str(error))
                failed = str(error)

    def close(self) -> None:
        """Close all connections."""
        for client in (*self._clients.values(), *self._retired.values()):
            client.close()

    def _open(self, controller: Controller) -> ControllerClient:
        fields: dict[str, str] = {}
        for folder in (self._credentials / controller.address.replace(":", "_"), self._credentials / "default"):
            if folder.is_dir():
                fields = {field: str(folder / name) for name, field in _TLS_FILES.items() if (folder / name).exists()}
                for name, field in _TEXT_FILES.items():
                    if (folder / name).exists():
                        fields[field] = (folder / name).read_text(encoding="utf-8").strip()
                break
        connection = Connection(controller.host, controller.port, timeout=_TIMEOUT_SECONDS, **fields)  # type: ignore[arg-type]
        return ControllerClient(controller, connection, self._cluster)
