# SPDX-License-Identifier: GPL-3.0-or-later
"""Network between the nodes of an etcd cluster, in which any two of them can be separated.

A relay is in front of the peer port of each node. The requests of etcd name their sender in the header
``X-Server-From``, so a relay knows both ends of a connection. Packets between separated nodes wait until they are
joined again, and connections stay open.

As a program, its arguments are the peer addresses of the nodes. It prints the ports of the relays, then runs commands
from standard input: ``member ID NUMBER`` names a node, ``separate NUMBER NUMBER``, and ``join`` ends all separations.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence

from tests.integration.faults.relay import relay

_SENDER = re.compile(rb"X-Server-From: ([0-9a-f]+)\r\n")


class PeerNetwork:
    """Process of the relays."""

    def __init__(self, targets: Sequence[str]) -> None:
        """``targets``: peer addresses of the nodes, in the order of their numbers."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.ha.peer_network", *targets],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.ports = [int(port) for port in self._process.stdout.readline().split()]

    def name(self, member: int, number: int) -> None:
        """Set the member id of a node."""
        self._run(f"member {member:x} {number}")

    def separate(self, first: int, second: int) -> None:
        """Lose all packets between two nodes, with open connections."""
        self._run(f"separate {first} {second}")

    def join(self) -> None:
        """End all separations."""
        self._run("join")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _run(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n", command


class _Relays:
    """State of all relays."""

    def __init__(self) -> None:
        self.members: dict[bytes, int] = {}
        self.separated: set[frozenset[int]] = set()
        self.changed = asyncio.Condition()

    async def start(self, number: int, target: str) -> int:
        """Start the relay before a node, and return its port."""
        return await relay(target, lambda: _Connection(self, number).copy)

    async def run(self, line: str) -> None:
        """Run a command."""
        command, *words = line.split()
        async with self.changed:
            if command == "member":
                self.members[words[0].encode()] = int(words[1])
            elif command == "separate":
                self.separated.add(frozenset(map(int, words)))
            else:
                self.separated.clear()
            self.changed.notify_all()


class _Connection:
    """Connection to a node. Its sender is unknown until the first request that names it."""

    def __init__(self, relays: _Relays, target: int) -> None:
        self._relays = relays
        self._target = target
        self._sender = b""

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes until one side closes the connection, then close the other."""
        try:
            while data := await reader.read(1 << 16):
                if found := _SENDER.search(data):
                    self._sender = found[1]
                async with self._relays.changed:
                    await self._relays.changed.wait_for(self._is_open)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _is_open(self) -> bool:
        sender = self._relays.members.get(self._sender)
        return sender is None or frozenset((sender, self._target)) not in self._relays.separated


async def main(targets: list[str]) -> None:
    """Run the relays until standard input is closed."""
    relays = _Relays()
    print(*[await relays.start(number, target) for number, target in enumerate(targets)], flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        await relays.run(line)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
