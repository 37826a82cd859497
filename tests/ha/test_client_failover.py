# SPDX-License-Identifier: GPL-3.0-or-later
"""Failover of modules, streams of changes and the event source between two controllers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from tests.events.source import Source
from tests.ha.controllers import Controller, Controllers, agent_state, create, put_rack
from tests.integration.collection.playbook import results
from tests.integration.vipu_servers import Machines
from tests.waiting import until

UP = admin.AGENT_STATE_UP


@pytest.fixture
def machines() -> Iterator[Machines]:
    made = Machines(2)
    yield made
    made.stop()


def prepare(controllers: Controllers, machines: Machines) -> Controller:
    """Apply the rack and return the leader, which reaches all agents."""
    leader = controllers.wait_leader()
    put_rack(leader.address, machines.agents)
    for agent in machines.agents:
        until(lambda id=agent.id: agent_state(leader.address, id) == UP, 60, controllers.logs)
    return leader


def hosts(controllers: Controllers, first: Controller) -> str:
    """Return the addresses of all controllers in the form of ``api_host``."""
    return ",".join([first.address, *(each.address for each in controllers.all if each is not first)])


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_modules_continue_when_the_leader_is_killed(
    controllers: Controllers, machines: Machines, tmp_path: Path, fast_path: bool
) -> None:
    """The play kills the leader. Each further task begins with its address."""
    leader = prepare(controllers, machines)
    assert leader.process is not None
    partition = {"allocation": "a1", "size": 1, "wait_timeout": 60}
    folder = tmp_path / "play"
    folder.mkdir()
    before, made, info, again = results(  # without that of the command, which is text
        folder,
        [
            {"openipu.pod.vipu_partition": {"id": "before", **partition}},
            {"ansible.builtin.command": {"argv": ["kill", "-KILL", str(leader.process.pid)]}},
            {"openipu.pod.vipu_partition": {"id": "after", **partition}},
            {"openipu.pod.vipu_info": {}},
            {"openipu.pod.vipu_partition": {"id": "after", **partition}},
        ],
        controller={"api_host": hosts(controllers, leader), "timeout": 60},
        openipu_fast_path=fast_path,
    )
    leader.kill()
    assert [each["failed"] for each in (before, made, info, again)] == [False] * 4, (made, info, again)
    assert [each["changed"] for each in (before, made, again)] == [True, True, False]
    assert {(each["id"], each["state"]) for each in info["partitions"]} == {("before", "ACTIVE"), ("after", "ACTIVE")}
    assert controllers.wait_leader() is not leader


class Watcher:
    """Thread that follows a stream of changes of agents."""

    def __init__(self, host: str) -> None:
        self.steps: list[tuple[int, list[str]]] = []  # revision, and the ids in the events up to it
        self.error: VipuError | None = None
        self.calls: list[Any] = []
        self._client = Client(Connection(host, timeout=60))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def ids(self) -> list[str]:
        return [id for _revision, ids in list(self.steps) for id in ids]

    def _run(self) -> None:
        ids: list[str] = []
        try:
            for reply in self._client.watch("AdminService", admin.WatchRequest(), "watch agents", self.calls.append):
                ids += [event.id for event in reply.events]
                if reply.revision:
                    self.steps.append((reply.revision, ids))
                    ids = []
        except VipuError as error:
            self.error = error

    def wait(self, id: str) -> None:
        """Wait until the stream has reported an agent."""
        until(lambda: id in self.ids or self.error, 60, lambda: str(self.steps))
        assert self.error is None

    def close(self) -> None:
        """Cancel the stream. The thread ends."""
        self.calls[-1].cancel()
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._client.close()


ENDS: dict[str, Callable[[Controller], object]] = {
    "kill": lambda leader: leader.kill(),
    "stop": lambda leader: leader.stop(),
    "cut": lambda leader: leader.relay.cut(),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_stream_neither_loses_nor_repeats_revisions(controllers: Controllers, end: str) -> None:
    leader = controllers.wait_leader()
    connection = Connection(hosts(controllers, leader), timeout=60)
    watcher = Watcher(connection.host)
    acknowledged, unknown = [], []
    with Client(connection) as client:
        for number in range(40):
            id = f"a{number}"
            if number == 20:
                watcher.wait("a10")
                ENDS[end](leader)
            try:
                agent = admin.AgentSpec(id=id, host=f"{id}.invalid")
                assert client.call(client.admin.Apply, admin.ApplyRequest(agents=[agent])).applied
                acknowledged.append(id)
            except VipuError as error:
                assert error.code in ("UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED")
                unknown.append(id)
        watcher.wait(acknowledged[-1])
        listed = {each.spec.id for each in client.call(client.admin.ListAgents, admin.ListAgentsRequest()).agents}
    watcher.close()
    assert len(watcher.calls) > 1, "the stream had no other controller"
    assert controllers.wait_leader() is not leader
    # The bookmark at the begin of the continued stream has the last revision again, without events.
    assert watcher.steps == sorted(watcher.steps, key=lambda step: step[0])
    revisions = [revision for revision, ids in watcher.steps if ids]
    assert len(revisions) == len(set(revisions)), f"a revision was repeated: {watcher.steps}"
    assert len(watcher.ids) == len(set(watcher.ids)), "an event was repeated"
    assert set(acknowledged) <= set(watcher.ids) == listed <= {*acknowledged, *unknown}
    assert len(unknown) <= 1


def test_the_event_source_continues_at_the_next_controller(
    controllers: Controllers, machines: Machines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leader = prepare(controllers, machines)
    (other,) = (each for each in controllers.all if each is not leader)
    file = tmp_path / "state.json"
    source = Source(api_host=hosts(controllers, leader), poll_seconds=0.1, state_file=str(file))
    try:
        create(leader.address, "p1")
        source.wait("partition_ready", "p1")
        until(lambda: json.loads(file.read_text())["agents_known"])
        leader.kill()
        until(other.leads, 60, controllers.logs)
        create(other.address, "p2")
        source.wait("partition_ready", "p2")
    finally:
        source.stop()
    assert source.types() == [("partition_ready", "p1"), ("partition_ready", "p2")]
    assert "Trying again" not in caplog.text, "the takeover is shorter than the timeout"
    # The state of the source is valid with the addresses in another order, and continues at its revision.
    create(other.address, "p3")
    again = Source(api_host=hosts(controllers, other), poll_seconds=0.1, state_file=str(file))
    try:
        again.wait("partition_ready", "p3")
    finally:
        again.stop()
    assert again.types() == [("partition_ready", "p3")]
