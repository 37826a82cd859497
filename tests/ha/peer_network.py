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
import sys
from collections.abc import Sequence

from tests.ha.relay_process import Gate, RelayProcess, serve
from tests.integration.faults.relay import relay

_SENDER = re.compile(rb"X-Server-From: ([0-9a-f]+)\r\n")


class PeerNetwork(RelayProcess):
    """Process of the relays."""

    def __init__(self, targets: Sequence[str]) -> None:
        """``targets``: peer addresses of the nodes, in the order of their numbers."""
        super().__init__("tests.ha.peer_network", targets)

    def name(self, member: int, number: int) -> None:
        """Set the member id of a node."""
        self.run(f"member {member:x} {number}")

    def separate(self, first: int, second: int) -> None:
        """Lose all packets between two nodes, with open connections."""
        self.run(f"separate {first} {second}")


class _Relays:
    """State of all relays."""

    def __init__(self) -> None:
        self.members: dict[bytes, int] = {}
        self.separated: set[frozenset[int]] = set()
        self.gate = Gate()

    async def start(self, number: int, target: str) -> int:
        """Start the relay before a node, and return its port."""
        return await relay(target, lambda client: _Connection(self, number).copy)

    async def run(self, command: str, words: list[str]) -> None:
        """Run a command."""
        if command == "member":
            self.members[words[0].encode()] = int(words[1])
        elif command == "separate":
            self.separated.add(frozenset(map(int, words)))
        else:
            self.separated.clear()
        await self.gate.changed()


class _Connection:
    """Connection to a node. Its sender is unknown until the first request that names it."""

    def __init__(self, relays: _Relays, target: int) -> None:
        self._relays = relays
        self._target = target
        self._sender = b""

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes until one side closes the connection, then close the other."""
        await self._relays.gate.copy(reader, writer, self._is_open, self._find_sender)

    def _find_sender(self, data: bytes) -> None:
        if found := _SENDER.search(data):
            self._sender = found[1]

    def _is_open(self) -> bool:
        sender = self._relays.members.get(self._sender)
        return sender is None or frozenset((sender, self._target)) not in self._relays.separated


async def main(targets: list[str]) -> None:
    """Run the relays until standard input is closed."""
    relays = _Relays()
    await serve([await relays.start(number, target) for number, target in enumerate(targets)], relays.run)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
