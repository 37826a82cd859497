# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface between the gRPC services and the partition life. Both sides depend on this file only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from openipu.shared.vipu.ports import DISCOVERY_PORT
from openipu.vipu.agent_api.multicast import DISCOVERY_GROUP
from openipu.vipu.tls.load import ClientCredentials

if TYPE_CHECKING:
    from openipu.vipu.cluster_test.model import Test
    from openipu.vipu.cluster_test.results import Results, Run
    from openipu.vipu.domain.context import Allowed
    from openipu.vipu.domain.errors import RuleError
    from openipu.vipu.fleet.status import AgentStatus, DiscoveredAgent, QuarantinedShare
    from openipu.vipu.metrics.meters import Meters


@dataclass(frozen=True, slots=True)
class LifecycleOptions:
    """Settings of supervision, partition life and discovery; times in seconds."""

    heartbeat: float = 2.0  # interval; see ``fleet.supervisor.MAX_SILENT_INTERVALS``
    partition_timeout: float = 60.0  # limit for agents to configure or release a partition
    max_auto_reset_retries: int = 3
    relocation_delay: float = 60.0  # time that an agent must be Down before relocatable partitions move
    agent_tls: ClientCredentials | None = None
    discovery_interfaces: tuple[str, ...] = ()  # empty: no discovery
    discovery_group: str = DISCOVERY_GROUP
    discovery_port: int = DISCOVERY_PORT


class Lifecycle(Protocol):
    """Partition life and agent supervision, as the services use them.

    Methods may be called in any thread. Futures fail with ``RuleError`` for errors that the caller can fix.
    """

    def start(self) -> None:
        """Start to supervise all agents and resume interrupted operations. Raises OSError with a message."""

    def stop(self) -> None:
        """End all work at once. Unfinished operations resume at the next start.

        Pending futures fail with StoppedError.
        """

    def agent_status(self, agent_id: str) -> AgentStatus:
        """Return the status of an agent, UNKNOWN for one that is not registered."""

    def take_over(self, agent_ids: Iterable[str], other_agents: bool = False) -> Future[dict[str, RuleError]]:
        """Make this deployment the owner of agents.

        ``other_agents``: also of machines that hold partitions of other agents of this deployment.
        The future completes when all of them have responded, with the errors of those that were not taken over.
        """

    def unavailable(self) -> frozenset[str]:
        """Return the agents that are Down, which receive no partitions. Must be fast: every create calls it."""

    def quarantined(self) -> Mapping[str, int]:
        """Return agent -> one bit for each IPU in quarantine. Must be fast: every create calls it."""

    def quarantine(self) -> Future[list[QuarantinedShare]]:
        """Return the shares in quarantine, sorted by agent and partition."""

    def release_quarantine(self, agent_id: str, partition_id: str) -> Future[list[QuarantinedShare]]:
        """Release a share in quarantine, or all shares of an agent when ``partition_id`` is empty.

        The future completes with the shares when the agent has released them.
        """

    def cluster_under_test(self) -> str:
        """Return the id of the cluster under test, empty for none. Must be fast: every create calls it."""

    def start_cluster_test(self, cluster_id: str, tests: tuple[Test, ...]) -> Future[Run]:
        """Start tests in this order. The future completes once other calls can read the run."""

    def cluster_test(self) -> Run | None:
        """Return the last run of any cluster, None for none."""

    @property
    def meters(self) -> Sequence[Meters]:
        """Instruments of the partition life."""

    def cluster_test_results(self) -> Mapping[str, Results]:
        """Return the results of all clusters that were tested since the start, by cluster."""

    def wait_cluster_test(self, known: int, seconds: float) -> Run | None:
        """Return the last run when it has ended or has more than ``known`` verdicts, or after ``seconds``."""

    def stop_cluster_test(self, run_id: str = "") -> Future[Run | None]:
        """Stop the run in progress, if its id is ``run_id`` or that is empty. Return the last run once it has ended."""

    def remove_partition(self, id: str, force: bool, allowed: Allowed | None = None) -> Future[None]:
        """Remove a partition. The future completes when its IPUs are free and its record is deleted.

        With ``force`` it completes when the record is deleted; agents that are up release the partition
        afterwards. ``allowed`` as in ``domain.context.Context``: partitions of other allocations are
        NOT_FOUND for this caller.
        """

    def reset_partition(self, id: str, relocatable: bool, allowed: Allowed | None = None) -> Future[None]:
        """Reset a partition. The future completes when the state RESETTING is durable.

        With ``relocatable`` the partition moves when one of its machines is Down or out of service, and other IPUs are
        free.
        """

    def ipu_attributes(self, agent_ids: Iterable[str]) -> Future[dict[str, dict[int, dict[str, str]]]]:
        """Return attributes by agent, IPU number and name. Agents that do not respond are omitted."""

    def discovered(self) -> list[DiscoveredAgent]:
        """Return the agents that announced themselves recently, sorted by address and port."""
