# SPDX-License-Identifier: GPL-3.0-or-later
"""Relay of TCP connections: a stopped relay process is a network without packets, with open connections.

Each argument is the address of a target, HOST:PORT. The process prints the ports of the relays on 127.0.0.1,
in the same order, and runs until its standard input is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections.abc import Awaitable, Callable

Copy = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Address = tuple[str, int]
Tls = tuple[ssl.SSLContext, ssl.SSLContext]  # for clients, and as a client of the target


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side closes the connection, then close the other."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def relay(target: str, make_copy: Callable[[Address], Copy] = lambda client: copy, tls: Tls | None = None) -> int:
    """Start a relay to a target and return its port.

    ``make_copy`` is called for each connection, with the address of the client. Its result copies the bytes of both
    directions, with ``tls`` in clear.
    """
    accept, connect = tls or (None, None)
    host, _, port = target.rpartition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection(host, int(port), ssl=connect)
        except OSError:
            writer.close()
            return
        forward = make_copy(writer.get_extra_info("peername"))
        with contextlib.suppress(asyncio.CancelledError):  # the end of the process
            await asyncio.gather(forward(reader, other_writer), forward(other_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=accept)
    return int(server.sockets[0].getsockname()[1])


async def main(targets: list[str]) -> None:
    """Run all relays until standard input is closed."""
    print(*[await relay(target) for target in targets], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
