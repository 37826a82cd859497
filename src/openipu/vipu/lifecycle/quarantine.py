# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUs in quarantine: agents report that partitions hold them, but the records do not explain these shares.

Nothing is placed on these IPUs. Shares that the records are known to lack are released at once: the deployment
configured them, and its records are complete since then. Other shares may belong to running jobs, for example after
the restore of an older backup or after a takeover. So only an administrator releases them. ``reported`` decides which
shares the records explain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import structlog

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.fleet.agent_messages import HeldShare
from openipu.vipu.fleet.status import QuarantinedShare
from openipu.vipu.lifecycle.agent_queue import AgentQueue

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


def may_release(share: HeldShare, deployment: Deployment) -> bool:
    """Return whether an unknown share may be released without an administrator.

    A later epoch than that of this process is of a process that the records do not know.
    """
    return share.deployment == deployment.id and deployment.complete_since <= share.epoch <= deployment.epoch


def may_be_other(share: HeldShare, deployment: Deployment) -> bool:
    """Return whether a share may belong to another partition than the recorded one with its id.

    Agents that were restarted report no deployment. Then it is another partition only if a backup was restored.
    """
    if share.deployment not in ("", deployment.id):
        return True
    return deployment.complete_since > 0 and not may_release(share, deployment)


class Quarantine:
    """Unexplained shares, by agent and partition. Use it in the event loop, except ``ipus``."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._shares: dict[str, dict[str, QuarantinedShare]] = {}
        self._approved: set[tuple[str, str]] = set()  # agent and partition, released by an administrator
        self._waiting: dict[tuple[str, str], list[asyncio.Future[None]]] = {}
        # Agent -> one bit for each IPU in quarantine. It is replaced, never changed, so any thread may read it.
        self.ipus: Mapping[str, int] = MappingProxyType({})

    def shares(self) -> list[QuarantinedShare]:
        """Return all shares, sorted by agent and partition."""
        return [share for _, held in sorted(self._shares.items()) for _, share in sorted(held.items())]

    def update(self, agent_id: str, unknown: Iterable[HeldShare]) -> bool:
        """Replace the shares of an agent by those that it holds now; return whether they differ."""
        before = self._shares.get(agent_id, {})
        after = {share.partition_id: self._quarantined(agent_id, share) for share in unknown}
        if after == before:
            return False
        for id, share in after.items():
            if id not in before:
                log = _log.info if share.releasing else _log.warning
                log("IPUs in quarantine", agent=agent_id, partition=id, ipus=share.ipus, releasing=share.releasing)
        self._replace(agent_id, after)
        for id in before.keys() - after.keys():
            self._approved.discard((agent_id, id))
            for future in self._pop_waiting(agent_id, id):
                future.set_result(None)
        return True

    def drop(self, agent_id: str) -> None:
        """Drop all shares of an agent that is not supervised any more."""
        for id in self._shares.get(agent_id, ()):
            self.fail(agent_id, id, "it was removed, or its endpoint has changed")
            self._approved.discard((agent_id, id))
        self._replace(agent_id, {})

    def releasing(self, agent_id: str) -> list[str]:
        """Return the partitions that the agent is to release."""
        return [id for id, share in self._shares.get(agent_id, {}).items() if share.releasing]

    def blocking(self, agent_id: str, partition_id: str, ipus: Collection[int]) -> QuarantinedShare | None:
        """Return a share that a new share of a partition would replace, None when there is none.

        It has the same partition id or one of the IPUs.
        """
        held = self._shares.get(agent_id)
        if not held:
            return None
        if partition_id in held:
            return held[partition_id]
        return next((share for share in held.values() if not set(ipus).isdisjoint(share.ipus)), None)

    async def release(self, queue: AgentQueue, partition_id: str, timeout: float) -> list[QuarantinedShare]:
        """Release a share, or all shares of an agent when ``partition_id`` is empty.

        Returns them when the agent no longer holds them. Raises RuleError after ``timeout`` seconds, when there is no
        such share, and when the agent rejects the release. The controller tries again then.
        """
        agent_id = queue.connection.id
        held = self._shares.get(agent_id, {})
        found = [share for id, share in held.items() if partition_id in ("", id)]
        if not found:
            reason = "it holds no IPUs that are in quarantine"
            if partition_id:
                reason = f"partition {quoted(partition_id)} has no IPUs there that are in quarantine"
            raise release_error(Code.NOT_FOUND, agent_id, reason)
        self._approved.update((agent_id, share.partition_id) for share in found)
        self._replace(agent_id, {**held, **{share.partition_id: replace(share, releasing=True) for share in found}})
        if not queue.connection.up:
            raise release_error(Code.FAILED_PRECONDITION, agent_id, "it is down. Its shares are released later")
        futures = []
        for share in found:
            futures.append(asyncio.get_running_loop().create_future())
            self._waiting.setdefault((agent_id, share.partition_id), []).append(futures[-1])
            queue.release(share.partition_id)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.gather(*futures)
        except TimeoutError:
            reason = f"it did not confirm the release within {timeout:g} seconds. Try again"
            raise release_error(Code.FAILED_PRECONDITION, agent_id, reason) from None
        return found

    def fail(self, agent_id: str, partition_id: str, reason: str) -> None:
        """Fail the calls that wait for the release of a share. ``reason`` is a clause."""
        for future in self._pop_waiting(agent_id, partition_id):
            future.set_exception(release_error(Code.FAILED_PRECONDITION, agent_id, reason))

    def _pop_waiting(self, agent_id: str, partition_id: str) -> list[asyncio.Future[None]]:
        return [future for future in self._waiting.pop((agent_id, partition_id), ()) if not future.done()]

    def _quarantined(self, agent_id: str, share: HeldShare) -> QuarantinedShare:
        id = share.partition_id
        releasing = (agent_id, id) in self._approved or may_release(share, self._deployment)
        return QuarantinedShare(agent_id, id, tuple(sorted(share.ipus)), share.deployment, share.epoch, releasing)

    def _replace(self, agent_id: str, shares: dict[str, QuarantinedShare]) -> None:
        self._shares.pop(agent_id, None)
        if shares:
            self._shares[agent_id] = shares
        bits = sum(1 << ipu for share in shares.values() for ipu in share.ipus)
        if self.ipus.get(agent_id, 0) != bits:
            others = {agent: held for agent, held in self.ipus.items() if agent != agent_id}
            self.ipus = MappingProxyType({**others, agent_id: bits} if bits else others)


def release_error(code: Code, agent_id: str, reason: str) -> RuleError:
    """Return the error of a release that is not possible. ``reason`` is a clause."""
    return RuleError(code, f"Cannot release the quarantine of agent {quoted(agent_id)}: {reason}.")


def describe(share: QuarantinedShare) -> str:
    """Return why the IPUs of a share cannot be used. Tenants read it, so it does not name the partition."""
    numbers = ", ".join(map(str, share.ipus))
    subject, verb = (f"IPUs {numbers}", "are") if len(share.ipus) > 1 else (f"IPU {numbers}", "is")
    return (
        f"{subject} of agent {quoted(share.agent_id)} {verb} in quarantine. An administrator can release them with "
        f"'vipu-admin release quarantine {share.agent_id}', and you can reset the partition then."
    )
