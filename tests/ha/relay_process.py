# SPDX-License-Identifier: GPL-3.0-or-later
"""Relays in a process of their own, which runs commands from its standard input."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence


class RelayProcess:
    """Process of the relays in a module, whose program calls ``serve``."""

    def __init__(self, module: str, targets: Sequence[str]) -> None:
        """``targets``: addresses behind the relays, in the order of ``ports``."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *targets], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.ports = [int(port) for port in self._process.stdout.readline().split()]

    def run(self, command: str) -> None:
        """Run a command, and wait until it has an effect."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n", command

    def join(self) -> None:
        """End all separations."""
        self.run("join")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Gate:
    """Condition of connections: they pass on data while they are open, and keep it until then."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()

    async def changed(self) -> None:
        """Check again which connections are open."""
        async with self._condition:
            self._condition.notify_all()

    async def copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_open: Callable[[], bool],
        see: Callable[[bytes], object] = lambda data: None,
    ) -> None:
        """Copy bytes until one side closes the connection, then close the other. ``see`` receives them first."""
        try:
            while data := await reader.read(1 << 16):
                see(data)
                async with self._condition:
                    await self._condition.wait_for(is_open)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


async def serve(ports: Sequence[int], run: Callable[[str, list[str]], Awaitable[None]]) -> None:
    """Print the ports, then run commands with their words until standard input is closed."""
    print(*ports, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, *words = line.split()
        await run(command, words)
        print("done", flush=True)
