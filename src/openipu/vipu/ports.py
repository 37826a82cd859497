# SPDX-License-Identifier: GPL-3.0-or-later
"""What the services and the partition life ask of each other; both sides depend on this file only."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from openipu.vipu.model import DISCOVERY_GROUP, DISCOVERY_PORT, Change, State

if TYPE_CHECKING:
    from openipu.vipu.cluster_test.plan import Test
    from openipu.vipu.cluster_test.runs import Results, Run
    from openipu.vipu.metrics.meters import Meters

Result = TypeVar("Result")
Command = Callable[[State], tuple[Sequence[Change], Result]]
"""Looks at a state, without changing it, and says what to change and what to answer; or raises."""


class StoppedError(Exception):
    """The controller is stopping, and does not do any more of what it was asked for."""

    def __init__(self) -> None:
        """The sentence is always the same."""
        super().__init__("The controller is stopping; try again when it is back.")


class Records(Protocol):
    """The controller as the partition life sees it."""

    @property
    def state(self) -> State:
        """The committed records. Single look-ups and ``list(table.values())`` need no lock."""

    def submit(self, command: Command[Result]) -> Future[Result]:
        """Have the writer thread run a command; the future is done when its changes are durable.

        It fails with whatever the command raised, and with ``StoreError`` when the changes could not
        be written, and with StoppedError after the end.
        """

    def subscribe(self, callback: Callable[[Sequence[Change]], None]) -> None:
        """Call back in the writer thread after each commit, with its changes. Must return at once."""


class AgentState(enum.StrEnum):
    """Whether the controller reaches an agent."""

    UNKNOWN = "unknown"  # registered, not reached yet
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """What the supervision knows of an agent.

    ``reason`` says why it is not up; ``info`` is the last ``MachineInfo`` message, None until it was
    reached for the first time. ``losses``: how often it was up, and then was not.
    """

    state: AgentState = AgentState.UNKNOWN
    reason: str = ""
    info: Any = None
    losses: int = 0


@dataclass(frozen=True, slots=True)
class DiscoveredAgent:
    """An agent that told of itself by multicast."""

    host: str
    port: int
    interface: str  # network interface that heard it
    age: float  # seconds since it was heard last

    @property
    def auto_id(self) -> str:
        """The id under which it is added when nobody chose one."""
        return f"{self.host}-{self.port}"


@dataclass(frozen=True, slots=True)
class AgentTls:
    """PEM contents for mutual TLS with the agents."""

    ca: bytes
    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class LifecycleOptions:
    """Settings of supervision, partition life and discovery; times in seconds."""

    heartbeat: float = 2.0  # interval; silence of 2.5 of them is Down
    partition_timeout: float = 60.0  # how long agents may take to configure or release a partition
    max_auto_reset_retries: int = 3
    agent_tls: AgentTls | None = None
    discovery_interfaces: tuple[str, ...] = ()  # none: no discovery
    discovery_group: str = DISCOVERY_GROUP
    discovery_port: int = DISCOVERY_PORT


class Lifecycle(Protocol):
    """Partition life and agent supervision as the services see them.

    Calls come from any thread. Futures fail with ``RuleError`` for what the caller can cure.
    """

    def start(self) -> None:
        """Supervise all agents and take up every operation that was interrupted."""

    def stop(self) -> None:
        """End all work at once, leaving operations to be taken up at the next start.

        Futures that callers still wait for fail with StoppedError.
        """

    def agent_status(self, agent_id: str) -> AgentStatus:
        """What is known of an agent; UNKNOWN for a stranger."""

    def unavailable(self) -> frozenset[str]:
        """The agents that are Down: no partition is placed on them. Cheap: called for every create."""

    def under_test(self) -> str:
        """The cluster that is tested now; empty for none. Cheap: called for every create."""

    def start_cluster_test(self, cluster_id: str, tests: tuple[Test, ...]) -> Future[Run]:
        """Begin tests, in that order; done when the run is known to whoever asks."""

    def cluster_test(self) -> Run | None:
        """The last run, of whatever cluster."""

    @property
    def meters(self) -> Sequence[Meters]:
        """What it counts."""

    def cluster_test_results(self) -> Mapping[str, Results]:
        """What is known of all clusters that were tested since the start, by cluster."""

    def wait_cluster_test(self, known: int, seconds: float) -> Run | None:
        """The last run, once it is over or has more verdicts than ``known``, or after so many seconds."""

    def stop_cluster_test(self, run_id: str = "") -> Future[Run | None]:
        """Stop the run in progress, if it is this one or none is named; done when it is over, with the last run."""

    def remove_partition(self, id: str, force: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        """Remove a partition; done when its IPUs are free and its record is gone.

        ``allowed`` as in ``rules.Context``: to such a caller, partitions of other allocations are
        NOT_FOUND.
        """

    def reset_partition(self, id: str, relocatable: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        """Reset a partition; done when RESETTING is durable. ``relocatable`` allows to move it this time."""

    def ipu_attributes(self, agent_ids: Iterable[str]) -> Future[dict[str, dict[int, dict[str, str]]]]:
        """Attributes by agent, IPU number and name; agents that cannot be asked are left out."""

    def discovered(self) -> list[DiscoveredAgent]:
        """The agents that were heard lately, in order of address and port."""
