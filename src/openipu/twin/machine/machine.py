# SPDX-License-Identifier: GPL-3.0-or-later
"""An IPU-Machine of a rack twin with its agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openipu.shared.vipu.ports import AGENT_PORT
from openipu.twin.machine.hardware import TwinHardware
from openipu.vipu.agent.presence import Announcer
from openipu.vipu.agent.server import AgentServer


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """Settings of one IPU-Machine of the twin; port 0 selects a free one."""

    agent_id: str
    host: str
    port: int = AGENT_PORT
    rnic_address: str = ""  # empty: equal to host
    serial: str = ""  # of the board; empty: derived from the id
    metrics_port: int | None = None  # on its host; None: no metrics


class Machine:
    """A machine with its agent, which ``ControlServer`` starts and stops.

    ``interfaces`` are those on which it announces its presence.
    """

    def __init__(self, id: str, hardware: TwinHardware, server: AgentServer, interfaces: Sequence[str]) -> None:
        self.id = id
        self.hardware = hardware
        self.server = server
        self._announcer = Announcer(server.host, lambda: server.port, lambda: hardware.boot_id, interfaces)

    async def start(self) -> None:
        """Boot the machine unless it runs: a new boot id, no partitions. Raises OSError."""
        if not self.server.running:
            self.hardware.reboot()
            await self.server.start()
            self.hardware.powered = True
            self._announcer.start()

    async def stop(self) -> None:
        """Close its connections and its endpoint at once, as a loss of power does."""
        self.hardware.powered = False
        await self._announcer.stop()
        await self.server.stop()
