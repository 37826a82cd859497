# SPDX-License-Identifier: GPL-3.0-or-later
"""Advertisement of IPUs: nodes with the label of a V-IPU controller get the extended resource ``graphcore.ai/ipu``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from openipu.kubernetes.cluster.client import NODES, ApiError, Client, Object
from openipu.kubernetes.domain import reserved, visibility
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.visibility import Policy
from openipu.kubernetes.proxy.nodes import needed

_log = structlog.get_logger("openipu.kubernetes.proxy.advertisement")

_RETRY_SECONDS = 5.0
_PARALLEL = 8  # requests to the API server at the same time


class Advertisement:
    """Writer of the resource of all nodes. ``changed`` starts a round."""

    def __init__(
        self,
        client: Client,
        nodes: Callable[[], list[Object] | None],
        usable: Callable[[], Mapping[Controller, int | None]],
        policy: Policy,
    ) -> None:
        """``nodes``: returns all nodes, None if they are not known yet. ``usable``: see ``Survey.usable``."""
        self._client = client
        self._nodes = nodes
        self._usable = usable
        self._policy = policy
        self._wake = asyncio.Event()
        self._failed = ""

    def changed(self) -> None:
        """Start a round, because nodes or the numbers of IPUs may have changed."""
        self._wake.set()

    async def run(self) -> None:
        """Advertise until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not await self._round():
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def _round(self) -> bool:
        """Change all nodes that need it. Return whether this succeeded."""
        nodes = self._nodes()
        if nodes is None:
            return True
        usable = self._usable()
        slots = asyncio.Semaphore(_PARALLEL)

        async def write(node: Object) -> str:
            change = visibility.change(node, usable, self._policy)
            if change is None:
                return ""
            async with slots:
                return await self._patch(node, change)

        failures = [each for each in await asyncio.gather(*map(write, nodes)) if each]
        if failures and failures[0] != self._failed:
            _log.warning("cannot advertise IPUs", error=failures[0], nodes=len(failures))
        self._failed = failures[0] if failures else ""
        return not failures

    async def _patch(self, node: Object, change: Object) -> str:
        """Patch the status of a node. Return the error, empty for success."""
        name, ipus = node["metadata"]["name"], change["status"]["capacity"][reserved.IPU_RESOURCE]
        try:
            await self._client.patch(NODES, "", name, change, "status")
        except ApiError as error:
            return "" if error.is_missing else str(error)
        if ipus is None:
            _log.info("node no longer advertises IPUs", node=name)
        else:
            _log.info("node advertises IPUs", node=name, ipus=int(ipus))
        return ""


class Withdrawal:
    """Removal of the resource from the nodes to which a former proxy of this namespace has added it."""

    def __init__(self, client: Client, owner: str) -> None:
        """``owner``: namespace of the proxy."""
        self._client = client
        self._policy = Policy(owner, enabled=False)

    async def run(self) -> None:
        """Remove it once, and then wait until cancelled."""
        while not await self._remove():
            await asyncio.sleep(_RETRY_SECONDS)
        await asyncio.Event().wait()

    async def _remove(self) -> bool:
        try:
            nodes, _ = await self._client.list(NODES, keep=needed)
            for node in nodes:
                change = visibility.change(node, {}, self._policy)
                if change is not None:
                    await self._client.patch(NODES, "", node["metadata"]["name"], change, "status")
                    _log.info("node no longer advertises IPUs", node=node["metadata"]["name"])
        except ApiError as error:
            if error.is_forbidden:  # this proxy never had the right to advertise
                return True
            _log.warning("cannot remove the advertised IPUs", error=str(error))
            return False
        return True
