# SPDX-License-Identifier: GPL-3.0-or-later
"""Relay from the network of the user to a twin in a network namespace with loopback only.

The relay listens on the endpoints of the twin outside of the namespace, and connects inside of it. So users reach the
twin at its usual addresses, and nothing in the namespace reaches another host.

The program starts outside and reads one line of JSON from standard input: state folder, process of the twin, and
endpoints. It answers with one line: empty when the relay works, an error otherwise. Then it runs in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import cast

from openipu.process import network_namespace
from openipu.process.background import Endpoint, ProcessError, Service, check_free
from openipu.process.signals import stop_signal

_CHUNK = 65536  # bytes
_CLIENTS = 64  # of one UDP endpoint; the oldest is replaced
_COMMAND = (sys.executable, "-m", "openipu.twin.launch.relay")


def service(folder: Path) -> Service:
    """Return the relay of a state folder."""
    return Service("the relay to the twin", folder / "relay.pid", folder / "relay.log", _COMMAND)


class Starter:
    """A relay that waits outside of the namespace until its twin runs."""

    def __init__(self) -> None:
        """Start the process, which must happen before the caller enters the namespace."""
        self._process = subprocess.Popen(  # noqa: S603  this module
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def start(self, folder: Path, pid: int, endpoints: Iterable[Endpoint]) -> str:
        """Start the relay to a twin, in place of an earlier one; return the error, empty for none."""
        order = {"folder": str(folder), "pid": pid, "endpoints": list(endpoints)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.close()
        answer = self._process.stdout.readline()
        self._process.stdout.close()
        return answer.strip() if answer else "the relay has ended"

    def cancel(self) -> None:
        """End the process, unless it relays."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()


def listen(endpoint: Endpoint) -> socket.socket:
    """Return a bound socket, which listens if it is of TCP. Raises OSError."""
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if endpoint.udp else socket.SOCK_STREAM)
    try:
        if not endpoint.udp:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((endpoint.host, endpoint.port))
        if not endpoint.udp:
            found.listen()
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


class _Datagrams(asyncio.DatagramProtocol):
    """Relay of one UDP endpoint: each client has a socket of its own inside of the namespace."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._clients: dict[tuple[str, int], socket.socket] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # it is no instance of this class

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        inside = self._clients.get(addr) or self._connect(addr)
        with contextlib.suppress(OSError):  # rejected, or full: the client repeats a datagram
            inside.send(data)

    def _connect(self, client: tuple[str, int]) -> socket.socket:
        if len(self._clients) >= _CLIENTS:
            self._close(next(iter(self._clients)))
        inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        inside.setblocking(False)
        inside.connect(self._endpoint[:2])
        asyncio.get_running_loop().add_reader(inside, self._answer, client, inside)
        self._clients[client] = inside
        return inside

    def _answer(self, client: tuple[str, int], inside: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._transport.sendto(inside.recv(_CHUNK), client)

    def _close(self, client: tuple[str, int]) -> None:
        inside = self._clients.pop(client)
        asyncio.get_running_loop().remove_reader(inside)
        inside.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until its end."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _relay(endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Relay one connection of TCP."""
    with contextlib.suppress(OSError), contextlib.closing(writer):
        inner_reader, inner_writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        with contextlib.closing(inner_writer):
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def serve(sockets: Iterable[tuple[Endpoint, socket.socket]]) -> None:
    """Relay until a signal. The sockets are outside of the namespace of this process."""
    loop = asyncio.get_running_loop()
    for endpoint, outside in sockets:
        if endpoint.udp:
            await loop.create_datagram_endpoint(partial(_Datagrams, endpoint), sock=outside)
        else:
            await asyncio.start_server(partial(_relay, endpoint), sock=outside)
    await stop_signal()


def main() -> None:
    """Run the relay that standard input requests."""
    line = sys.stdin.readline()
    if not line:
        return
    order = json.loads(line)
    relay, endpoints = service(Path(order["folder"])), [Endpoint(*each) for each in order["endpoints"]]
    try:
        relay.stop()
        check_free(endpoints)
        sockets = [(endpoint, listen(endpoint)) for endpoint in endpoints]
        if not network_namespace.join(int(order["pid"])):
            raise ProcessError("Cannot enter the network namespace of the twin. Restart the twin.")
        relay.record(os.getpid())
        with relay.log.open("ab") as log:
            os.dup2(log.fileno(), sys.stderr.fileno())
    except (OSError, ProcessError) as error:
        print(error, flush=True)
        return
    print(flush=True)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        for number in (0, 1):
            os.dup2(nothing.fileno(), number)
    asyncio.run(serve(sockets))


if __name__ == "__main__":
    main()
