# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for partitions whose owners no longer exist, for example because their finalizer was removed by force."""

from __future__ import annotations

import asyncio

import structlog

from openipu.kubernetes.cluster.client import IPUJOBS, PODS, ApiError, Client, Object, Resource
from openipu.kubernetes.domain.tracking import Phase
from openipu.kubernetes.proxy.reservations import Reservations
from openipu.kubernetes.proxy.tracker import Tracker, TrackerError

_log = structlog.get_logger("openipu.kubernetes.proxy.sweep")

_RESOURCES = {"IPUJob": IPUJOBS, "Pod": PODS}
_ENDED = frozenset({"Succeeded", "Failed"})  # phases of pods


class Sweep:
    """Releases partitions without owners. An owner must be missing twice in a row, so that no new one is affected."""

    def __init__(self, client: Client, tracker: Tracker, reservations: Reservations, seconds: float = 60.0) -> None:
        """``seconds``: between searches."""
        self._client = client
        self._tracker = tracker
        self._reservations = reservations
        self._seconds = seconds
        self._missing: set[str] = set()

    async def run(self) -> None:
        """Search until cancelled."""
        while True:
            try:
                await self.search()
            except (ApiError, TrackerError) as error:
                _log.warning("cannot search for partitions without owners", error=str(error))
            await asyncio.sleep(self._seconds)

    async def search(self) -> None:
        """Search once. Raises ApiError and TrackerError."""
        # The records are read first: an owner that is created after the lists has no record yet.
        records = [each for each in self._tracker if each.phase is not Phase.RELEASING]
        existing: set[str] = set()
        for kind, resource in _RESOURCES.items():
            if any(each.owner.kind == kind for each in records):
                existing |= await self._uids(resource)
        gone = {each.owner.uid: each.owner for each in records if each.owner.uid not in existing}
        for uid in gone.keys() & self._missing:
            _log.warning("partitions without an owner are released", owner=str(gone[uid]))
            await self._reservations.release(uid, seconds=0)
        self._missing = set(gone)

    async def _uids(self, resource: Resource) -> set[str]:
        objects, _ = await self._client.list(resource, keep=_needed)
        return {each["uid"] for each in objects if resource is not PODS or each["phase"] not in _ENDED}


def _needed(owner: Object) -> Object:
    """Return UID and phase of an object. All pods of a cluster would fill the memory of the proxy."""
    return {"uid": owner["metadata"]["uid"], "phase": (owner.get("status") or {}).get("phase", "")}
