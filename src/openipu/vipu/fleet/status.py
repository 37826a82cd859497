# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of agents, as supervision and discovery report it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from openipu.vipu.fleet.agent_messages import MachineInfo


class AgentState(enum.StrEnum):
    """Reachability of an agent."""

    UNKNOWN = "unknown"  # registered, not reached yet
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """Result of the supervision of an agent.

    ``reason``: clause that explains why it is not up. ``info``: None until the first connection. ``losses``: number of
    changes from Up to Down. ``rejects``: another deployment, controller or agent uses its machine.
    """

    state: AgentState = AgentState.UNKNOWN
    reason: str = ""
    info: MachineInfo | None = None
    losses: int = 0
    rejects: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveredAgent:
    """Agent that announced itself by multicast."""

    host: str
    port: int
    interface: str  # network interface that received the message
    age: float  # seconds since its last message

    @property
    def auto_id(self) -> str:
        """Id under which the agent is registered automatically."""
        return f"{self.host}-{self.port}"


@dataclass(frozen=True, slots=True)
class QuarantinedShare:
    """IPUs of a machine that a partition holds, but that the records do not explain.

    ``deployment`` and ``epoch`` are those of the controller that configured it, if they are known.
    ``releasing``: the controller releases it; otherwise it waits for an administrator.
    """

    agent_id: str
    partition_id: str
    ipus: tuple[int, ...]  # numbers, sorted
    deployment: str
    epoch: int
    releasing: bool
