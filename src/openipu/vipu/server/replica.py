# SPDX-License-Identifier: GPL-3.0-or-later
"""One of several controllers on etcd: it follows the records, leads, and follows again when it has lost that."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from importlib import metadata
from typing import NoReturn

import click
import structlog

from openipu.process.notify import notify
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.endpoints import Endpoints
from openipu.vipu.api.standby import reject_calls
from openipu.vipu.metrics.exporter import Exporter
from openipu.vipu.server.controller import STOP_SIGNALS, Server, Settings, addresses_text, announce
from openipu.vipu.server.replica_metrics import ReplicaMetrics
from openipu.vipu.storage.etcd import mirror
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys, Location
from openipu.vipu.storage.etcd.store import EtcdStore, check_version
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoreError

_POLL_SECONDS = 0.1  # between two checks of the leader key of the mirror, the loss of leadership and stop signals
_LEASES = 3  # times of a lease after which the leader key cannot be that of an earlier run
_START_SECONDS = 30.0  # for etcd to respond at the start
_RETRY_SECONDS = 1.0  # between two attempts to read

_log = structlog.get_logger("vipu-server")


class Replica:
    """This process as a controller on etcd."""

    def __init__(self, settings: Settings, location: Location, ttl: int, advertise: str) -> None:
        """Prepare to follow. ``ttl``: seconds of the lease. ``advertise``: host for clients, empty for the bound one.

        Raises StoreError and TlsError.
        """
        self._settings = settings
        self._location = location
        self._ttl = ttl
        self._advertise = advertise
        self._client = EtcdClient(location)
        self._keys = Keys(location.prefix)
        self._mirror = mirror.Mirror(self._client, self._keys)
        self._own: dict[str, str] = {}  # addresses for clients
        self._same_address = 0, 0.0  # token of a leader with these addresses, 0 for none, and when it is not this one
        self._stop = StopSignals()
        self._leading = threading.Event()
        self._metrics: Exporter | None = None
        if settings.metrics is not None:
            self._metrics = Exporter(settings.metrics, [ReplicaMetrics(self._mirror, self._leading.is_set)])

    def run(self) -> None:
        """Follow and lead until a stop signal. Raises StoreError and ListenError.

        A leader that has lost the lease starts its program again: nothing of its work can continue then.
        """
        endpoints = Endpoints(self._settings.endpoints())
        bound = endpoints.bind()
        self._own = self._addresses(bound)
        try:
            reject_calls(endpoints, self._leader_address)
            endpoints.start()
            if self._metrics is not None:
                self._metrics.bind()
                self._metrics.start()
            if not self._read():
                return
            click.echo(f"vipu-server {metadata.version('openipu')} listening on {addresses_text(bound)}")
            notify("READY=1")
            leadership = Leadership(self._client, self._keys, self._own, self._ttl)
            if self._follow(leadership):
                self._lead(leadership, endpoints, bound)
        finally:
            endpoints.stop(0)
            if self._metrics is not None:
                self._metrics.stop()

    def _read(self) -> bool:
        """Read the records. Return false after a stop signal. Raises StoreError when etcd does not respond."""
        deadline = time.monotonic() + _START_SECONDS
        pause = 0.0  # a former run of this program may have received a stop signal
        while not self._stop.wait(pause):
            try:
                self._mirror.start()
                check_version(self._mirror.content)
            except EtcdError as error:
                if time.monotonic() >= deadline:
                    raise StoreError(
                        f"Cannot use the store {str(self._location)!r}: {error.details}. Check the addresses, that "
                        "etcd runs there, and the options for TLS and users."
                    ) from None
                pause = _RETRY_SECONDS
            else:
                return True
        return False

    def _follow(self, leadership: Leadership) -> bool:
        """Return true when this controller leads, and false after a stop signal. Raises StoreError."""
        _log.info("following", leader=self._leader_address(0))
        while not self._stop.wait(_POLL_SECONDS):
            self._check_addresses()
            if self._mirror.wait(lambda content: content.leader is None, 0):
                try:
                    if leadership.campaign() and not self._stop.wait(0):
                        return True
                except EtcdError as error:
                    _log.warning("election failed", reason=error.details)
        self._end(leadership)
        return False

    def _end(self, leadership: Leadership) -> None:
        """Stop following, and give up a leadership that was won."""
        self._mirror.stop()
        leadership.resign()
        self._client.close()

    def _check_addresses(self) -> None:
        """Raise StoreError when another controller with the same addresses leads: no client could find it.

        The leader key of an earlier run of this program has these addresses too, but only until its lease ends. A new
        leader of etcd extends leases once, hence the longer time. etcd can grant longer leases than requested.
        """
        leader = self._mirror.content.leader
        if leader is None or leader.addresses != self._own:
            self._same_address = 0, 0.0
            return
        try:
            if leader.token != self._same_address[0]:
                seconds = _LEASES * self._client.granted_seconds(leader.lease)
                self._same_address = leader.token, time.monotonic() + seconds
            if time.monotonic() < self._same_address[1]:
                return
            self._same_address = 0, 0.0
            present = mirror.read(self._client, self._keys).leader
        except StoreError as error:
            _log.warning("leader not read", reason=str(error))
            self._stop.wait(_RETRY_SECONDS)
            return
        if present is not None and present.token == leader.token:
            address = self._own["user"]
            raise StoreError(
                f"Cannot follow in the store {str(self._location)!r}: another controller leads with the address "
                f"{address}, which is that of this one. Set --advertise or --host to an own address on each machine."
            )

    def _lead(self, leadership: Leadership, endpoints: Endpoints, bound: list[ListenAddress]) -> None:
        """Serve on the endpoints of the follower, whose connections stay open."""
        lost = threading.Event()
        leadership.on_loss(lost.set)
        admin = bound[1] if len(bound) > 1 else None
        settings = replace(self._settings, user=bound[0], admin=admin)
        try:
            store = EtcdStore(self._client, self._keys, self._mirror, leadership)
            server = Server(settings, store=store, confirm=leadership.check, metrics=self._metrics, endpoints=endpoints)
            self._leading.set()
            server.start()
        except (NotLeaderError, LeadershipLostError):
            if not self._stop.wait(0):
                restart()
            self._end(leadership)
            return
        except BaseException:
            self._end(leadership)
            raise
        announce(server, settings)
        _log.info("leading", epoch=server.controller.deployment.epoch)
        while not self._stop.wait(_POLL_SECONDS):
            if lost.is_set():
                restart()
        server.stop()
        _log.info("stopped")

    def _addresses(self, bound: list[ListenAddress]) -> dict[str, str]:
        named = [replace(each, host=self._advertise or each.host) for each in bound]
        return {"user": str(named[0]), "admin": str(named[-1])}

    def _leader_address(self, number: int) -> str:
        """Return the address of an endpoint on another controller that leads, empty without one.

        The own address is one of an earlier run of this program, or of one that does not serve yet.
        """
        leader = self._mirror.content.leader
        if leader is None or leader.addresses == self._own:
            return ""
        return leader.addresses.get("admin" if number else "user", "")


def restart() -> NoReturn:
    """Replace this process by a new run of its program, with the same process id, command line and pending signals."""
    _log.warning("starting again as a follower")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606


class StopSignals:
    """Stop signals of this process, which must be blocked in all threads.

    They stay pending, so a new run of the program receives one that arrives just before. Hence they are polled:
    ``sigwait`` and ``sigtimedwait`` remove a signal.
    """

    def __init__(self) -> None:
        """Prepare to wait."""
        self._reported = False

    def wait(self, seconds: float) -> bool:
        """Return whether a signal arrives within ``seconds``, or has arrived."""
        deadline = time.monotonic() + seconds
        while not (received := signal.sigpending() & STOP_SIGNALS):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            time.sleep(min(remaining, _POLL_SECONDS))
        if not self._reported:
            self._reported = True
            notify("STOPPING=1")
            _log.info("stopping", signal=signal.Signals(min(received)).name)
        return True
