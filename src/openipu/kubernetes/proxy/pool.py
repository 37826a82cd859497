# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU controllers of a list in a file or a ConfigMap, which may change at any time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import structlog

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.domain import controllers
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.proxy.controller import ControllerClient
from openipu.shared.vipu.client import Connection

_log = structlog.get_logger("openipu.kubernetes.proxy.pool")

_INTERVAL_SECONDS = 10.0  # between reads of the list
_TIMEOUT_SECONDS = 20.0  # of calls, except removals
_REPLACED_SECONDS = 120.0  # until a client with former credentials is closed; its calls have ended then

# Files of a Secret -> fields of a connection.
_TLS_FILES = {"ca.crt": "ca_path", "tls.crt": "client_cert", "tls.key": "client_key"}
_TEXT_FILES = {"user-id": "user_id", "access-key": "access_key"}


class Pool:
    """Clients of all controllers in the order of the list.

    ``credentials``: a folder with a folder for each controller, ``HOST_PORT`` or ``default``, that holds the files of
    its Secret: ca.crt, tls.crt, tls.key, user-id and access-key. Changed credentials are used for new calls.
    """

    def __init__(
        self, file: Path, credentials: Path, cluster: str = "", fetch: Callable[[], Awaitable[str]] | None = None
    ) -> None:
        """Read the list.

        ``cluster``: V-IPU cluster of new partitions, empty for any. ``fetch``: reads later lists instead of the file,
        because a kubelet updates the files of a ConfigMap only every 60 to 90 s. Raises ValueError for an invalid list.
        """
        self._file = file
        self._fetch = fetch
        self._credentials = credentials
        self._cluster = cluster
        self._clients: dict[Controller, ControllerClient] = {}
        self._marks: dict[str, str] = {}  # address -> digest of the credentials of its client
        self._retired: dict[str, ControllerClient] = {}
        self._replaced: list[ControllerClient] = []
        self._text = ""
        self.reload(_text(file))

    def __iter__(self) -> Iterator[ControllerClient]:
        """Iterate over the clients in the order of the list."""
        return iter(list(self._clients.values()))

    def __len__(self) -> int:
        return len(self._clients)

    def find(self, address: str) -> ControllerClient | None:
        """Return the client of a controller, also of one that has left the list and still has partitions."""
        return next((each for each in self if each.controller.address == address), self._retired.get(address))

    def reload(self, text: str) -> None:
        """Use this list, and read the credentials. Raises ValueError and OSError; the previous list remains then."""
        listed = controllers.parse(text)
        clients = {each: self._unchanged(each) or self._open(each) for each in listed}
        for controller, client in self._clients.items():
            if controller not in clients:
                self._retired[controller.address] = client
            elif clients[controller] is not client:
                self._replace(client)
        for client in clients.values():
            self._retired.pop(client.controller.address, None)
        self._clients, self._text = clients, text

    async def run(self) -> None:
        """Follow changes of the list until cancelled."""
        failed = ""
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            try:
                await self.follow()
                failed = ""
            except (ApiError, OSError, ValueError) as error:
                if str(error) != failed:
                    _log.error("cannot use the list of controllers", file=str(self._file), error=str(error))
                failed = str(error)

    async def follow(self) -> bool:
        """Use a changed list and changed credentials, and return whether there were any.

        Raises:
            ApiError, OSError, ValueError: the list cannot be read or is invalid. The previous list remains in use.
        """
        failure: ApiError | None = None
        try:
            text = await self._fetch() if self._fetch else _text(self._file)
        except ApiError as error:
            text, failure = self._text, error  # changed credentials are used nevertheless
        if text == self._text and all(self._unchanged(each) for each in self._clients):
            if failure is not None:
                raise failure
            return False
        self.reload(text)
        _log.info("controllers read again", controllers=[each.controller.address for each in self])
        return True

    def close(self) -> None:
        """Close all connections."""
        for client in (*self._clients.values(), *self._retired.values(), *self._replaced):
            client.close()

    def _unchanged(self, controller: Controller) -> ControllerClient | None:
        """Return the client of a controller, None if there is none with the present credentials."""
        is_same = self._marks.get(controller.address) == _digest(self._folder(controller))
        return self._clients.get(controller) if is_same else None

    def _replace(self, client: ControllerClient) -> None:
        """Close a client later: its calls go on."""
        self._replaced.append(client)

        def close() -> None:
            self._replaced.remove(client)
            client.close()

        asyncio.get_running_loop().call_later(_REPLACED_SECONDS, close)

    def _folder(self, controller: Controller) -> Path | None:
        """Return the folder with the credentials of a controller."""
        own = self._credentials / controller.address.replace(":", "_")
        return next((each for each in (own, self._credentials / "default") if each.is_dir()), None)

    def _open(self, controller: Controller) -> ControllerClient:
        fields: dict[str, str] = {}
        folder = self._folder(controller)
        self._marks[controller.address] = _digest(folder)
        if folder is not None:
            fields = {field: str(folder / name) for name, field in _TLS_FILES.items() if (folder / name).exists()}
            for name, field in _TEXT_FILES.items():
                if (folder / name).exists():
                    fields[field] = _text(folder / name).strip()
        connection = Connection(controller.hosts, controller.port, timeout=_TIMEOUT_SECONDS, **fields)  # type: ignore[arg-type]
        return ControllerClient(controller, connection, self._cluster)


def _text(file: Path) -> str:
    """Return the contents of a file. Raises OSError and ValueError."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"Cannot read {str(file)!r}: it is not UTF-8 text. Save it as UTF-8.") from None


def _digest(folder: Path | None) -> str:
    """Return a digest of all credentials in a folder."""
    digest = hashlib.sha256()
    for name in (*_TLS_FILES, *_TEXT_FILES):
        file = None if folder is None else folder / name
        if file is not None and file.exists():
            digest.update(f"{name}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
