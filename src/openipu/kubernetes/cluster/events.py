# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of objects, as ``kubectl describe`` prints them."""

from __future__ import annotations

import datetime
import os
from collections import OrderedDict
from dataclasses import dataclass

import structlog

from openipu.kubernetes.cluster.client import EVENTS, ApiError, Client, Object

_log = structlog.get_logger("openipu.kubernetes.cluster.events")

_REMEMBERED = 4096  # events that are counted instead of repeated
_SUBJECTS = {"IPUJob": "job", "Pod": "pod"}  # fields of log lines


@dataclass(slots=True)
class _Known:
    name: str
    count: int


class EventRecorder:
    """Writes events. The same event about the same object is counted, not repeated."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._known: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()

    async def record(self, thing: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Write an event, and log it unless it is a repeated warning.

        Failures are logged only: events must not stop work.
        """
        metadata = thing["metadata"]
        identity = metadata["uid"], reason, message
        name = f"{metadata['namespace']}/{metadata['name']}"
        if not warning or identity not in self._known:
            log = _log.warning if warning else _log.info
            log(reason, **{_SUBJECTS.get(thing["kind"], "object"): name}, message=message)
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            known = self._known.get(identity)
            if known is not None:
                self._known.move_to_end(identity)
                known.count += 1
                patch = {"count": known.count, "lastTimestamp": now}
                await self._client.patch(EVENTS, metadata["namespace"], known.name, patch)
                return
            event = f"{metadata['name'][:200]}.{os.urandom(8).hex()}"
            await self._client.create(EVENTS, self._event(thing, event, reason, message, now, warning))
            self._known[identity] = _Known(event, 1)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        except ApiError as error:
            self._known.pop(identity, None)
            _log.warning("event not written", object=name, reason=reason, error=str(error))

    def _event(self, thing: Object, name: str, reason: str, message: str, now: str, warning: bool) -> Object:
        metadata = thing["metadata"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": thing["apiVersion"],
                "kind": thing["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if warning else "Normal",
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
