# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of changes: one thread serves all watchers of the controller.

A watcher has no buffer of events, only its position in the log of revisions. When its client has room, it receives
everything that changed since that position, in the present form of the objects. So a slow client costs no memory,
skips intermediate states, and never misses a last one. It is ended when its position is compacted, or when it takes
no reply for a long time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import structlog
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.api import watch_messages
from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import KINDS, Message
from openipu.vipu.api.reply_stream import ReplyStream
from openipu.vipu.domain.context import Allowed
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.domain.history import Event, Key, Merged, View, rights_of, snapshot, transition
from openipu.vipu.domain.model import Kind
from openipu.vipu.domain.state import State
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters, Samples
from openipu.vipu.storage.event_log import CompactedError
from openipu.vipu.storage.interface import StoppedError
from openipu.vipu.storage.writer import RecordWriter

_log = structlog.get_logger("openipu.vipu.api.watch")

ALL_KINDS = frozenset(KINDS.values())
TENANT_KINDS = frozenset({Kind.ALLOCATION, Kind.PARTITION})

_MAX_STREAMS = 2048
_MAX_STREAMS_OF_USERS = 1024  # all users together; the others are for administrators
_MAX_STREAMS_PER_USER = 32

_CHUNK = 100  # events of one reply
_BOOKMARK_SECONDS = 60.0  # without an event
_RECHECK_SECONDS = 10.0  # between checks of a caller, whose certificate may expire during the stream
_STALL_SECONDS = 30.0  # until a client must have taken a reply
_STOP_SECONDS = 1.0  # the same, while the controller stops
_TICK_SECONDS = 1.0  # between searches for late clients and due bookmarks
_PAUSE_SECONDS = 0.01  # between rounds, in which further changes share the next one
_LARGEST_SHARE = 0.1  # of one core, for rounds


class _RightsChangedError(CompactedError):
    """Raised when the role of a watching user changed, or a right changed before all events were sent."""

    def __init__(self, revision: int) -> None:
        super().__init__(revision, "the rights of the user have changed")


@dataclass(eq=False, slots=True)
class _Watcher:
    """Stream of one client. Only the thread of ``Watches`` uses it, except for ``sending``."""

    stream: ReplyStream
    user: str
    administrator: bool
    allocation: str  # filter, empty for all
    view: View  # at ``position``
    position: int  # revision of the last events; 0 before the snapshot
    synced: bool = False  # whether a reply with a revision was sent
    verified: int = 0  # revision at which ``allowed`` was read
    allowed: Allowed | None = frozenset()
    pending: deque[Event | Message] = field(default_factory=deque)  # up to ``position``
    sending: bool = False
    last: float = 0.0  # time of the last reply
    checked: float = 0.0  # time at which ``allowed`` was read
    failure: Exception | None = None

    def visible(self, allowed: Allowed | None) -> Allowed | None:
        """Return the visible allocations of a caller with these rights."""
        if not self.allocation:
            return allowed
        return frozenset({self.allocation} if allowed is None or self.allocation in allowed else ())


class Watches(Collector):
    """All streams of changes."""

    def __init__(self, records: RecordWriter, confirm: Callable[[], None] | None = None) -> None:
        """Serve the changes of ``records``, after ``start``. ``confirm`` raises an error when they may be outdated."""
        self._records = records
        self._confirm = confirm
        self._watchers: set[_Watcher] = set()
        self._counts: Counter[str] = Counter()  # of streams, by user; administrators have the key ""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._deltas: dict[tuple[int, int], dict[Key, Merged]] = {}
        self._meters = Meters(CONTROLLER)
        self._sent = self._meters.counter("vipu_watch_events_total")
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Start to serve."""
        self._records.subscribe(self._committed)
        self._thread.start()

    def stop(self) -> None:
        """End all streams with the reason, and cancel those without room for it. Repeated calls have no effect."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        end = time.monotonic() + _STOP_SECONDS
        while True:
            self._wake.clear()
            for watcher in self._open():
                self._end(watcher, StoppedError())
            remaining = end - time.monotonic()
            if remaining <= 0 or not self._open():
                break
            self._wake.wait(remaining)
        for watcher in self._open():
            watcher.stream.cancel()

    def collect(self) -> Iterator[Family]:
        """Return the metrics of the streams."""
        samples = Samples(CONTROLLER, ["vipu_watch_streams"])
        samples.add("vipu_watch_streams", len(self._watchers))
        yield from samples.families()
        yield from self._meters.collect()

    def watch(self, request: Message, caller: Caller, stream: ReplyStream, served: frozenset[Kind]) -> None:
        """Start a stream and return. ``served``: kinds of the service. Raises RuleError and StoppedError."""
        kinds = watch_messages.kinds(request, served)
        watcher = _Watcher(
            stream,
            caller.user,
            caller.administrator,
            request.allocation_id,
            View(frozenset(), kinds, frozenset(request.ids)),
            request.since_revision,
        )
        with self._lock:
            if self._stopping.is_set():
                raise StoppedError
            self._admit(watcher)
            self._watchers.add(watcher)
        if not stream.on_end(lambda: self._forget(watcher)):
            self._forget(watcher)
        self._wake.set()

    def _admit(self, watcher: _Watcher) -> None:
        """Count a stream. Raises RuleError at a limit."""
        total = self._counts.total()
        limits = [(total, _MAX_STREAMS, "the controller has")]
        if not watcher.administrator:
            limits += [
                (total - self._counts[""], _MAX_STREAMS_OF_USERS, "all users have"),
                (self._counts[watcher.user], _MAX_STREAMS_PER_USER, "you have"),
            ]
        for count, limit, owner in limits:
            if count >= limit:
                raise RuleError(
                    Code.RESOURCE_EXHAUSTED,
                    f"Cannot watch: {owner} {limit} streams, which is the limit. End a stream, or try again later.",
                )
        self._counts["" if watcher.administrator else watcher.user] += 1

    def _forget(self, watcher: _Watcher) -> None:
        with self._lock:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
                key = "" if watcher.administrator else watcher.user
                self._counts[key] -= 1
                if not self._counts[key]:
                    del self._counts[key]

    def _committed(self, changes: object) -> None:
        if self._watchers:
            self._wake.set()

    def _open(self) -> list[_Watcher]:
        with self._lock:
            return list(self._watchers)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_TICK_SECONDS)
            self._wake.clear()
            now, used = time.monotonic(), time.thread_time()
            for watcher in self._open():
                try:
                    self._serve(watcher, now)
                except Exception as error:  # noqa: BLE001 - the stream ends with its status
                    self._end(watcher, error)
            self._deltas.clear()
            # CPU time: a round that waited, or a process that was paused, must not delay the next round.
            self._stopping.wait(max(_PAUSE_SECONDS, (time.thread_time() - used) / _LARGEST_SHARE))

    def _serve(self, watcher: _Watcher, now: float) -> None:
        """Send the next reply of a watcher, if there is one and the client has room."""
        if watcher.sending and now - watcher.last > _STALL_SECONDS:
            _log.warning(
                "watcher cancelled: it takes no replies",
                user=watcher.user,
                seconds=_STALL_SECONDS,
                party=f"user {watcher.user}",
            )
            watcher.stream.cancel()
            return
        if watcher.failure is not None:
            self._end(watcher, watcher.failure)
            return
        bookmark = not watcher.sending and now - watcher.last > _BOOKMARK_SECONDS
        due = bookmark or not watcher.synced
        check = due or now - watcher.checked > _RECHECK_SECONDS
        # Reading a number needs no lock: a later commit starts another round.
        if check or not watcher.verified == watcher.position == self._records.events.revision:
            with self._records.reading() as state:
                self._verify(watcher, always=check)
                if not watcher.sending and not watcher.pending:
                    self._advance(watcher, state)
        if not watcher.sending and (watcher.pending or due):
            self._send(watcher, now)

    def _verify(self, watcher: _Watcher, *, always: bool) -> None:
        """Read the rights of the user again, when a user has changed. Raises the error of a rejected caller."""
        revision = self._records.events.revision
        changed = always or any(key[0] is Kind.USER for key in self._changes(watcher.verified))
        if changed:
            allowed = watcher.stream.identify().allowed
            if watcher.pending and allowed != watcher.allowed:
                raise _RightsChangedError(watcher.position)
            watcher.allowed = allowed
            watcher.checked = time.monotonic()
        watcher.verified = revision

    def _advance(self, watcher: _Watcher, state: State) -> None:
        """Collect the events that bring a watcher up to date."""
        revision = self._records.events.revision
        new = replace(watcher.view, allowed=watcher.visible(watcher.allowed))
        if not watcher.position:
            events = snapshot(state, new, revision)
        else:
            merged = self._changes(watcher.position)
            if not watcher.synced:
                watcher.view = replace(new, allowed=watcher.visible(self._former_rights(watcher, merged)))
            elif (watcher.view.allowed is None) != (new.allowed is None):
                raise _RightsChangedError(watcher.position)
            events = transition(state, merged, watcher.view, new, revision)
        watcher.pending.extend(watch_messages.prepare(state, event) for event in events)
        watcher.view, watcher.position = new, revision

    def _former_rights(self, watcher: _Watcher, merged: dict[Key, Merged]) -> Allowed | None:
        """Return the rights that the user had at its position. Raises CompactedError when its role has changed."""
        own = merged.get((Kind.USER, watcher.user))
        if own is None:
            return watcher.allowed
        former = rights_of(own.before or ())
        if own.before is None or (former is None) != (watcher.allowed is None):
            raise _RightsChangedError(watcher.position)
        return former

    def _changes(self, position: int) -> dict[Key, Merged]:
        """Return the changes since a revision. Watchers of one round mostly share it. Raises CompactedError."""
        key = position, self._records.events.revision
        found = self._deltas.get(key)
        if found is None:
            found = self._deltas[key] = self._records.events.since(position)
        return found

    def _send(self, watcher: _Watcher, now: float) -> None:
        if self._confirm is not None:  # a reply also means that nothing else has changed up to now
            self._confirm()
        pending = watcher.pending
        events = [pending.popleft() for _ in range(min(_CHUNK, len(pending)))]
        reply = watch_messages.reply(events, 0 if pending else watcher.position)
        watcher.sending, watcher.last = True, now
        watcher.synced = watcher.synced or not pending
        self._sent.inc(len(events))

        def sent() -> None:
            watcher.sending = False
            self._wake.set()

        if not watcher.stream.send(reply, sent):
            watcher.sending = False

    def _end(self, watcher: _Watcher, error: Exception) -> None:
        """End a stream with the status of an error, as soon as no reply is on its way."""
        watcher.failure = error
        watcher.pending.clear()
        if not watcher.sending:
            self._forget(watcher)
            try:
                watcher.stream.fail(error)
            except Exception:  # noqa: BLE001 - one stream must not end the others
                _log.exception("stream not ended", user=watcher.user, party=f"user {watcher.user}")
