# SPDX-License-Identifier: GPL-3.0-or-later
"""Network between clients and several targets, in which all clients can be separated from one target.

A relay is in front of each target. Packets of separated ones wait until they are joined again, and connections stay
open.

As a program, its arguments are the addresses of the targets. It prints the ports of the relays, then runs commands
from standard input. ``separate NUMBER`` is for a target, ``separate`` for the one that sent or received data last.
``join`` ends all separations.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from tests.ha.relay_process import Gate, RelayProcess, serve
from tests.integration.faults.relay import relay


class TargetNetwork(RelayProcess):
    """Process of the relays."""

    def __init__(self, targets: Sequence[str]) -> None:
        super().__init__("tests.ha.target_network", targets)

    @property
    def addresses(self) -> list[str]:
        """Addresses of the relays, in the order of the targets."""
        return [f"127.0.0.1:{port}" for port in self.ports]

    def separate(self, target: int) -> None:
        """Lose all packets from and to one target, with open connections."""
        self.run(f"separate {target}")

    def separate_used(self) -> None:
        """Lose all packets from and to the target that sent or received data last."""
        self.run("separate")


class _Relays:
    """State of all relays."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.separated: set[int] = set()
        self.used = 0

    async def start(self, number: int, target: str) -> int:
        """Start the relay in front of a target, and return its port."""

        async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.gate.copy(reader, writer, lambda: number not in self.separated, lambda data: self._use(number))

        return await relay(target, lambda client: copy)

    async def run(self, command: str, words: list[str]) -> None:
        """Run a command."""
        if command == "separate":
            self.separated.add(int(words[0]) if words else self.used)
        else:
            self.separated.clear()
        await self.gate.changed()

    def _use(self, number: int) -> None:
        self.used = number


async def main(targets: list[str]) -> None:
    """Run the relays until standard input is closed."""
    relays = _Relays()
    await serve([await relays.start(number, target) for number, target in enumerate(targets)], relays.run)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
