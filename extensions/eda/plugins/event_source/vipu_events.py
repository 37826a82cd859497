# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event source of ansible-rulebook: events of a V-IPU controller.

Two threads read the controller, one its stream of partitions, one its agents and cluster tests. They put updates into
a bounded queue. Only the event loop applies them, passes on the events, and stores the state.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import threading
import time
import typing as t
from pathlib import Path

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

try:
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import client as vipu_client
except ImportError:  # ansible-rulebook does not configure the import of collections
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import client as vipu_client

from ansible_collections.openipu.pod.plugins.module_utils.atomic_files import write_private
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin
from ansible_collections.openipu.pod.plugins.module_utils.vipu.controller_events import Event, Tracker
from ansible_collections.openipu.pod.plugins.module_utils.vipu.names import KIND
from ansible_collections.openipu.pod.plugins.module_utils.vipu.ports import CONTROLLER_PORT

DOCUMENTATION = r"""
---
module: vipu_events
short_description: Receive events of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reports changes of partitions, agents and cluster tests over gRPC.
  - Each event is under the key C(vipu), with C(type), C(kind), C(id), C(key), C(time), C(controller) and C(object).
  - The types are C(partition_ready), C(partition_error), C(partition_stuck), C(partition_removed), C(agent_up),
    C(agent_down), C(agent_lost) and C(cluster_test_done).
  - At the first start, only failed partitions and agents cause events. After a restart with O(state_file), the source
    continues at the revision that it stored.
  - Requires grpcio and protobuf in the Python of ansible-rulebook.
options:
  api_host:
    description:
      - Host name or address of the controller.
      - For several controllers of one deployment, a comma-separated list of C(HOST) or C(HOST:PORT). The source
        follows the one that leads, and continues at the next one without lost or repeated revisions.
    type: str
    default: localhost
  api_port:
    description: Port of the endpoint of O(api).
    type: int
    default: 8090
  api_user_id:
    description: User name. Omit for anonymous access.
    type: str
  api_access_key_file:
    description: File with the access key of the user. Omit for access without a key.
    type: path
  ca_path:
    description: File with the certificate authority of the controller, in PEM format. Setting it enables TLS.
    type: path
  client_cert:
    description: File with the client certificate, in PEM format. Requires O(client_key).
    type: path
  client_key:
    description: File with the private key of the client certificate.
    type: path
  insecure_network:
    description: Whether the access key may be sent without TLS to addresses other than loopback.
    type: bool
    default: false
  timeout:
    description: Timeout of each request, in seconds. Streams have none.
    type: float
    default: 30.0
  api:
    description:
      - V(admin) reports all objects, and requires an administrator.
      - V(tenant) reports only the partitions that the user may use.
    type: str
    choices: [admin, tenant]
    default: admin
  allocation:
    description: Report only partitions of this allocation. Omit to report all.
    type: str
  state_file:
    description:
      - File with the revision and the last states. Omit to start without knowledge of earlier events.
      - It stays valid when O(api_host) changes, as long as one of the controllers stays the same.
    type: path
  lost_seconds:
    description: Time for which an agent must be down before the event C(agent_lost), in seconds.
    type: float
    default: 300.0
  stuck_seconds:
    description:
      - Time for which a partition must not be ACTIVE before the event C(partition_stuck), in seconds.
      - After the same time again, a second and last event has C(object.attempt) 2.
    type: float
    default: 120.0
  poll_seconds:
    description: Pause between two requests for agents and the last cluster test, in seconds. Not used with V(tenant).
    type: float
    default: 5.0
  queue_size:
    description: Largest number of updates that wait for the rules. A full queue stops the reading of the stream.
    type: int
    default: 100
"""

EXAMPLES = r"""
- openipu.pod.vipu_events:
    api_host: 10.3.1.101
    api_user_id: admin
    api_access_key_file: /etc/eda/vipu.key
    ca_path: /etc/eda/vipu-ca.crt
    client_cert: /etc/eda/vipu.crt
    client_key: /etc/eda/vipu-client.key
    state_file: /var/lib/eda/vipu-events.json
    lost_seconds: 300
"""

OPTIONS: dict[str, dict[str, t.Any]] = {
    "api_host": {"type": "str", "default": "localhost"},
    "api_port": {"type": "int", "default": CONTROLLER_PORT},
    "api_user_id": {"type": "str"},
    "api_access_key_file": {"type": "path"},
    "ca_path": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path"},
    "insecure_network": {"type": "bool", "default": False},
    "timeout": {"type": "float", "default": 30.0},
    "api": {"type": "str", "choices": ["admin", "tenant"], "default": "admin"},
    "allocation": {"type": "str"},
    "state_file": {"type": "path"},
    "lost_seconds": {"type": "float", "default": 300.0},
    "stuck_seconds": {"type": "float", "default": 120.0},
    "poll_seconds": {"type": "float", "default": 5.0},
    "queue_size": {"type": "int", "default": 100},
}
_AT_LEAST = {"timeout": 0.1, "lost_seconds": 0.0, "stuck_seconds": 0.1, "poll_seconds": 0.1, "queue_size": 1}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds between attempts to connect
_STOP_SECONDS = 10.0
# Status codes after which the same request can succeed. Others need a change of the configuration.
_TEMPORARY = frozenset({"UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL", "UNKNOWN"})

log = logging.getLogger("openipu.pod.vipu_events")

Update = t.Callable[[Tracker], list[Event]]


class Feed:
    """The threads that read a controller, and the queue of their updates."""

    def __init__(self, options: dict[str, t.Any], revision: int) -> None:
        self.updates: asyncio.Queue[Update] = asyncio.Queue(options["queue_size"])
        self._options = options
        self._connection = connection(options)
        self._revision = revision
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._call: t.Any = None
        self._puts: set[asyncio.Task[t.Any]] = set()
        loops = [self._follow, self._poll] if options["api"] == "admin" else [self._follow]
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name=f"vipu_events{each.__name__}", daemon=True)
            for each in loops
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    async def stop(self) -> None:
        """Cancel the stream and wait for the threads, which can be in a request, for a limited time."""
        self._stopped.set()
        if self._call is not None:
            self._call.cancel()
        for task in self._puts:
            task.cancel()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, _STOP_SECONDS)

    def _run(self, work: t.Callable[[], None]) -> None:
        with contextlib.suppress(concurrent.futures.CancelledError):
            try:
                work()
            except Exception as error:  # the event loop raises it
                self._deliver(_failure(error))

    def _deliver(self, update: Update) -> None:
        """Put an update into the queue, and wait until it has room. Raises CancelledError after ``stop``."""
        asyncio.run_coroutine_threadsafe(self._put(update), self._loop).result()

    async def _put(self, update: Update) -> None:
        if self._stopped.is_set():
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        self._puts.add(task)
        try:
            await self.updates.put(update)
        finally:
            self._puts.discard(task)

    def _started(self, call: t.Any) -> None:
        self._call = call
        if self._stopped.is_set():  # stop() did not see the call
            call.cancel()

    def _follow(self) -> None:
        """Deliver the steps of the stream. Connect again after errors, and list all objects again if necessary."""
        pause, connected = _FIRST_PAUSE, True
        with vipu_client.Client(self._connection) as client:
            while not self._stopped.is_set():
                try:
                    for _reply in self._steps(client):
                        if not connected:
                            log.info("Connected to the controller at %s.", self._connection.address)
                        pause, connected = _FIRST_PAUSE, True
                except vipu_client.VipuError as error:
                    if self._stopped.is_set():
                        return
                    if error.code == "OUT_OF_RANGE" and self._revision:
                        log.warning("%s Listing all partitions.", error)
                        self._revision = 0
                        continue
                    if error.code not in _TEMPORARY:
                        raise
                    if connected:
                        log.warning("%s Trying again.", error)
                        connected = False
                self._stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _steps(self, client: vipu_client.Client) -> t.Iterator[None]:
        """Deliver the complete steps of one call. Yield after each reply."""
        service = "AdminService" if self._options["api"] == "admin" else "TenantService"
        request = admin.WatchRequest(
            since_revision=self._revision,
            kinds=[KIND.number("partition")],
            allocation_id=self._options["allocation"] or "",
        )
        held: list[objects.Object] = []
        snapshot = not self._revision
        for reply in client.watch(service, request, "watch partitions", self._started):
            held += [objects.event(event) for event in reply.events]
            if reply.revision:
                self._deliver(_partitions(held, reply.revision, snapshot))
                self._revision, held, snapshot = reply.revision, [], False
            yield

    def _poll(self) -> None:
        """Deliver agents and the last cluster test. Lost connections are reported by ``_follow`` only."""
        reported: set[str] = set()
        with vipu_client.Client(self._connection) as client:
            while not self._stopped.is_set():
                for read in (_agents, _test):
                    try:
                        self._deliver(read(client))
                    except vipu_client.VipuError as error:
                        if error.code not in _TEMPORARY:
                            raise
                        if error.code != "UNAVAILABLE" and str(error) not in reported:
                            reported.add(str(error))
                            log.warning("%s Trying again.", error)
                self._stopped.wait(self._options["poll_seconds"])


def _failure(error: Exception) -> Update:
    def update(_tracker: Tracker) -> list[Event]:
        raise error

    return update


def _partitions(changes: list[objects.Object], revision: int, snapshot: bool) -> Update:
    now = time.time()
    return lambda tracker: tracker.partitions(changes, revision, now, snapshot)


def _agents(client: vipu_client.Client) -> Update:
    reply = client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents")
    agents, now = [objects.agent(each) for each in reply.agents], time.time()
    return lambda tracker: tracker.agents(agents, now)


def _test(client: vipu_client.Client) -> Update:
    reply = client.call(client.admin.GetClusterTest, admin.GetClusterTestRequest(), "read the last cluster test")
    run, now = objects.test_run(reply.run), time.time()
    return lambda tracker: tracker.test(run, now)


def checked(args: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the options of the source with their types and defaults. Raises ValueError."""
    # Rulebooks cannot omit an option, so an empty text means the default.
    given = {name: value for name, value in args.items() if name != "eda_feedback_queue" and value != ""}
    result = ArgumentSpecValidator(OPTIONS, required_together=[("client_cert", "client_key")]).validate(given)
    if result.error_messages:
        raise ValueError(f"Cannot use the options of vipu_events: {' '.join(result.error_messages)}")
    options: dict[str, t.Any] = result.validated_parameters
    for name, least in _AT_LEAST.items():
        if options[name] < least:
            raise ValueError(f"Cannot use {name} {options[name]} of vipu_events: the minimum is {least}.")
    return options


def connection(options: dict[str, t.Any]) -> vipu_client.Connection:
    """Return the connection to the controller. Raises ValueError when the file of the access key is not readable."""
    key = None
    if options["api_access_key_file"]:
        try:
            key = Path(options["api_access_key_file"]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"Cannot read api_access_key_file: {error}") from None
    same = ("user_id", "ca_path", "client_cert", "client_key", "timeout", "insecure_network")
    return vipu_client.Connection(
        host=options["api_host"],
        port=options["api_port"],
        access_key=key,
        **{name: options["api_user_id" if name == "user_id" else name] for name in same},
    )


def load(options: dict[str, t.Any]) -> Tracker:
    """Return the tracker with the stored state, if there is one. Raises ValueError and VipuError."""
    path, saved = options["state_file"], None
    several = "," in options["api_host"]
    address = connection(options).address if several else "{api_host}:{api_port}".format(**options)
    controller = f"{address}/{options['api']}"
    if options["allocation"]:
        controller += f"/{options['allocation']}"
    try:
        if path and Path(path).exists():
            saved = json.loads(Path(path).read_text(encoding="utf-8"))
        return Tracker(controller, options["lost_seconds"], options["stuck_seconds"], saved)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"Cannot read state file '{path}': {error}. Remove it to start without knowledge of earlier events."
        ) from None


async def next_events(feed: Feed, tracker: Tracker) -> list[Event]:
    """Wait for an update or for the next limit, apply all waiting updates, and return their events."""
    due = tracker.next_due()
    try:
        async with asyncio.timeout(None if due is None else max(0.0, due - time.time())):
            update = await feed.updates.get()
    except TimeoutError:
        return tracker.due(time.time())
    found = update(tracker)
    while not feed.updates.empty():
        found += feed.updates.get_nowait()(tracker)
    return found + tracker.due(time.time())


async def main(queue: asyncio.Queue[t.Any], args: dict[str, t.Any]) -> None:
    """Put the events of a controller into the queue until the task is cancelled."""
    options = checked(args)
    tracker = load(options)
    feed = Feed(options, tracker.revision)
    stored = tracker.state()
    feed.start()
    try:
        while True:
            for event in await next_events(feed, tracker):
                await queue.put({"vipu": event})
            state = tracker.state()
            if options["state_file"] and state != stored:
                # After the events, so a crash can repeat events but never loses them. Not in a thread: a cancelled task
                # must not end between the last event and its record.
                write_private(Path(options["state_file"]), json.dumps(state))
                stored = state
    finally:
        await feed.stop()
