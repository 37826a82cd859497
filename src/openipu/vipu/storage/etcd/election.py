# SPDX-License-Identifier: GPL-3.0-or-later
"""The right to write the records: a key with a lease of etcd, which one controller at a time has."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError, EtcdUnavailableError
from openipu.vipu.storage.etcd.keys import Keys
from openipu.vipu.storage.interface import LeadershipLostError

DEFAULT_TTL = 3  # seconds
MIN_TTL = 2  # seconds; etcd itself grants no shorter leases
_RENEWALS = 3  # per time to live
_DRIFT = 0.1  # largest difference in the speed of two clocks; the lease counts as expired so much earlier

_log = structlog.get_logger("openipu.vipu.storage.etcd")


class Leadership:
    """Lease and leader key of this controller."""

    def __init__(self, client: EtcdClient, keys: Keys, addresses: Mapping[str, str], ttl: int = DEFAULT_TTL) -> None:
        """Prepare a candidate. ``addresses``: value of the leader key, for clients of followers. ``ttl``: seconds."""
        self._client = client
        self._keys = keys
        self._value = json.dumps(dict(addresses)).encode()
        self._ttl = ttl
        self._lease = 0
        self._expiry = 0.0  # monotonic time until which no other controller can lead
        self._lost = threading.Event()
        self._stopping = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._keep_alive, name="lease", daemon=True)
        self.token = 0
        """Revision of etcd that created the leader key, 0 for a candidate. Each write compares it."""

    @property
    def key(self) -> bytes:
        """The leader key."""
        return self._keys.leader

    @property
    def lost(self) -> bool:
        """True after another controller may lead."""
        return self._lost.is_set()

    def wait(self, seconds: float) -> None:
        """Wait this long, or until the leadership is lost."""
        self._lost.wait(seconds)

    def campaign(self) -> bool:
        """Try once to become the leader. Return whether this controller leads now. Raises EtcdError."""
        sent = time.monotonic()
        lease = self._client.call("Lease", "LeaseGrant", rpc.LeaseGrantRequest(TTL=self._ttl)).ID
        won = False
        try:
            # Only one candidate can create the key. The lease in it shows whether an earlier attempt succeeded.
            request = rpc.TxnRequest(
                compare=[
                    rpc.Compare(key=self.key, target=rpc.Compare.CREATE, result=rpc.Compare.EQUAL, create_revision=0)
                ],
                success=[_put(self.key, self._value, lease)],
                failure=[rpc.RequestOp(request_range=rpc.RangeRequest(key=self.key))],
            )
            response = self._client.call("KV", "Txn", request)
            token = response.header.revision
            if not response.succeeded:
                found = response.responses[0].response_range.kvs
                if not found or found[0].lease != lease:
                    return False
                token = found[0].mod_revision
            won = True
        finally:
            if not won:
                self._revoke(lease)
        self._lease, self.token = lease, token
        self._expiry = sent + self._ttl * (1 - _DRIFT)
        self._thread.start()
        return True

    def on_loss(self, callback: Callable[[], None]) -> None:
        """Register a callback for the loss, in any thread. It must not raise."""
        self._callbacks.append(callback)

    def check(self) -> None:
        """Raise LeadershipLostError when another controller may lead now.

        After a pause of this process, its clock shows that before any other thread has noticed the loss.
        """
        if self.lost or time.monotonic() >= self._expiry:
            raise LeadershipLostError

    def lose(self) -> None:
        """Give up, because another controller leads."""
        if not self._lost.is_set():
            self._lost.set()
            self._stopping.set()
            if self.token:
                _log.warning("leadership lost")
            for callback in self._callbacks:
                callback()

    def resign(self) -> None:
        """End the leadership, so that another controller leads at once. Repeated calls have no effect."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._lost.set()
        if self._lease:
            self._revoke(self._lease)
            self._lease = 0

    def _keep_alive(self) -> None:
        interval = self._ttl / _RENEWALS
        renewed = self._expiry - self._ttl * (1 - _DRIFT)
        pause = max(0.0, renewed + interval - time.monotonic())  # less after a slow election
        while not self._stopping.wait(pause):
            sent = time.monotonic()
            pause = interval
            try:
                if self._client.keep_alive(self._lease, interval) <= 0:
                    self.lose()
                    return
                renewed = sent
                self._expiry = sent + self._ttl * (1 - _DRIFT)
            except EtcdUnavailableError as error:
                _log.warning("lease not renewed", reason=error.details)
                pause = 0.1
            except EtcdError as error:
                _log.warning("lease rejected", reason=error.details)
                pause = 0.1
            if time.monotonic() >= renewed + self._ttl:
                self.lose()
                return

    def _revoke(self, lease: int) -> None:
        try:
            self._client.call("Lease", "LeaseRevoke", rpc.LeaseRevokeRequest(ID=lease))
        except EtcdError as error:
            _log.info("lease not revoked; it expires", reason=error.details)


def _put(key: bytes, value: bytes, lease: int) -> Any:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=value, lease=lease))
