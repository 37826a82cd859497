# SPDX-License-Identifier: GPL-3.0-or-later
"""Network between controllers and IPU-Machines, in which a controller can be separated from one machine.

A relay is in front of each agent. The kernel shows which process has a connection to a relay, so other controllers
still reach the machine. Packets of separated ones wait until they are joined again, and connections stay open.

As a program, its arguments are the addresses of the agents. It prints the ports of the relays, then runs commands
from standard input. ``separate PID NUMBER`` is for a controller and a machine, and ``join`` ends all separations.
``hold TEXT`` waits until a packet with the text is held back.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import psutil

from openipu.vipu.domain.model import Agent
from tests.ha.relay_process import Gate, RelayProcess, serve
from tests.integration.faults.relay import Address, Copy, relay

_HOLD_SECONDS = 30.0  # until a packet is held back


class MachineNetwork(RelayProcess):
    """Process of the relays."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        super().__init__("tests.ha.machine_network", [f"{each.host}:{each.port}" for each in agents])
        self.agents = [
            replace(agent, host="127.0.0.1", port=port) for agent, port in zip(agents, self.ports, strict=True)
        ]
        """The agents, with the addresses of their relays."""

    def separate(self, pid: int, machine: int) -> None:
        """Lose all packets between the process of a controller and a machine, with open connections."""
        self.run(f"separate {pid} {machine}")

    def wait_held(self, text: str) -> None:
        """Wait until the network holds back a packet with a text."""
        self.run(f"hold {text}")


class _Relays:
    """State of all relays."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.separated: dict[tuple[int, int], set[Address]] = {}  # addresses of clients, by process and machine
        self._held = b""  # packets of separated controllers and machines
        self._more = asyncio.Event()  # set after each of these packets

    async def start(self, machine: int, target: str) -> int:
        """Start the relay in front of a machine, and return its port."""

        def connection(client: Address) -> Copy:
            def is_open() -> bool:
                return self._is_open(client, machine)

            def see(data: bytes) -> None:
                if not is_open():
                    self._held += data
                    self._more.set()

            async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                received = asyncio.StreamReader()  # the gate reads nothing while it holds back an earlier packet
                receiving = asyncio.create_task(_receive(reader, received, see))
                try:
                    await self.gate.copy(received, writer, is_open)
                finally:
                    receiving.cancel()

            return copy

        return await relay(target, connection)

    async def run(self, command: str, words: list[str]) -> None:
        """Run a command."""
        if command == "separate":
            pid, machine = map(int, words)
            self.separated[pid, machine] = addresses(pid)
        elif command == "hold":
            async with asyncio.timeout(_HOLD_SECONDS):
                while words[0].encode() not in self._held:
                    self._more.clear()
                    await self._more.wait()
        else:
            self.separated.clear()
        await self.gate.changed()

    def _is_open(self, client: Address, machine: int) -> bool:
        for (pid, other), known in self.separated.items():
            if other == machine and client not in known:
                known |= addresses(pid)  # of new connections; closed ones stay
            if other == machine and client in known:
                return False
        return True


async def _receive(reader: asyncio.StreamReader, received: asyncio.StreamReader, see: Callable[[bytes], None]) -> None:
    """Pass on bytes at once, until the end of the connection."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            see(data)
            received.feed_data(data)
    received.feed_eof()


def addresses(pid: int) -> set[Address]:
    """Return the own addresses of the connections of a process. gRPC uses IPv6 sockets for IPv4 too."""
    try:
        found = [each.laddr for each in psutil.Process(pid).net_connections("tcp")]
        return {(address.ip.removeprefix("::ffff:"), address.port) for address in found}
    except psutil.NoSuchProcess:
        return set()


async def main(targets: list[str]) -> None:
    """Run the relays until standard input is closed."""
    relays = _Relays()
    await serve([await relays.start(machine, target) for machine, target in enumerate(targets)], relays.run)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
