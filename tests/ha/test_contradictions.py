# SPDX-License-Identifier: GPL-3.0-or-later
"""The final check of the fault tests finds planted violations. The controllers, etcd and the rack are stand-ins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from openipu.vipu.domain.model import Partition, PlacedIpu
from openipu.vipu.storage.interface import StoreError
from tests.ha import audit, contradictions
from tests.ha.checked_load import CheckedLoad, Client
from tests.ha.linearizability import Action, Call, Result

URL = "etcd://127.0.0.1:9/planted"


def partition(id: str, *ipus: int) -> Partition:
    placed = tuple(PlacedIpu(0, 0, ipu, number) for number, ipu in enumerate(ipus))
    return Partition(id, "a1", "cl0", placed)


@dataclass
class World:
    """Reports of all parts, consistent until a test changes them."""

    stored: list[Partition] = field(default_factory=lambda: [partition("p1", 0, 1), partition("p2", 3, 4)])
    found: dict[str, int] = field(default_factory=lambda: {"p1": 2, "p2": 2})
    held: dict[str, set[str]] = field(default_factory=lambda: {"ag01": {"p1", "p2"}, "ag02": {"p2"}, "ag03": set()})
    acknowledged: dict[str, int] = field(default_factory=lambda: {"p1": 2, "p2": 2})
    removed: set[str] = field(default_factory=lambda: {"p0"})
    calls: list[tuple[str, Call]] = field(default_factory=list)
    history: audit.Findings = field(default_factory=lambda: audit.Findings(transactions=1))
    damage: str = ""

    def read(self, location: object) -> SimpleNamespace:
        """Return the records in etcd."""
        if self.damage:
            raise StoreError(self.damage)
        return SimpleNamespace(records=self.stored)

    def load(self) -> CheckedLoad:
        """Return a load that has stopped."""
        load = CheckedLoad([], 0, 0)
        client = Client(0, ["127.0.0.1:9"], 0, threading.Event(), [])
        client.record.present |= self.acknowledged
        client.record.removed |= self.removed
        client.record.acknowledged = 1
        client.calls += self.calls
        load.clients.append(client)
        return load

    def rack(self) -> SimpleNamespace:
        """Return the rack, whose agents have the order of their ids."""
        machines = [SimpleNamespace(agent_id=id, partition_ids=sorted(held)) for id, held in self.held.items()]
        return SimpleNamespace(agents=[SimpleNamespace(id=id) for id in self.held], machines=lambda: machines)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(contradictions, "AGENT_SECONDS", 0.0)
    monkeypatch.setattr(contradictions, "settled", lambda address: True)
    monkeypatch.setattr(contradictions, "listed", lambda address: made.found)
    monkeypatch.setattr(contradictions.content, "read", made.read)
    monkeypatch.setattr(audit, "replay", lambda location, start: made.history)
    return made


def found(world: World, rack: SimpleNamespace | None = None) -> list[str]:
    controllers = SimpleNamespace(wait_leader=lambda: SimpleNamespace(address="127.0.0.1:9"))
    return contradictions.check(controllers, world.load(), rack or world.rack(), URL, 0)  # type: ignore[arg-type]


def use_an_ipu_twice(world: World) -> None:
    world.stored[1] = partition("p2", 1, 4)


def use_an_ipu_twice_in_a_partition(world: World) -> None:
    world.stored[0] = partition("p1", 0, 0)


def hold_a_stray_share(world: World) -> None:
    world.held["ag02"].add("p1")


def hold_a_removed_partition(world: World) -> None:
    world.held["ag03"].add("p0")


def lose_a_share(world: World) -> None:
    world.held["ag02"].clear()


def lose_a_create(world: World) -> None:
    del world.stored[0], world.found["p1"]
    world.held["ag01"].remove("p1")


def lose_a_removal(world: World) -> None:
    world.stored.append(partition("p0", 8))
    world.found["p0"] = 1
    world.held["ag03"].add("p0")


def create_with_another_size(world: World) -> None:
    world.acknowledged["p1"] = 4


def invent_a_partition(world: World) -> None:
    world.stored.append(partition("p9", 8))
    world.found["p9"] = 1
    world.held["ag03"].add("p9")


def list_an_old_partition(world: World) -> None:
    world.found["p0"] = 1


def store_another_size(world: World) -> None:
    world.stored[1] = partition("p2", 3, 4, 5)


def read_stale(world: World) -> None:
    world.calls += [("p1", Call(Action.CREATE, Result.DONE, 0, 1)), ("p1", Call(Action.READ, Result.ABSENT, 2, 3))]


def write_without_leading(world: World) -> None:
    world.history.foreign.append("revision 7: leader 1 wrote, 2 led")


def use_an_ipu_twice_for_some_time(world: World) -> None:
    world.history.shared.append("revision 8: IPU 1 in domain 0 of cl0 is used by p1 and p2")


def damage_a_record(world: World) -> None:
    world.damage = "checksum of p1"


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (use_an_ipu_twice, "IPU (0, 1) is used 2 times"),
        (use_an_ipu_twice_in_a_partition, "IPU (0, 0) is used 2 times"),
        (hold_a_stray_share, "ag02 holds p1 without a record"),
        (hold_a_removed_partition, "ag03 holds p0 without a record"),
        (lose_a_share, "ag02 lacks p2"),
        (lose_a_create, "p1 was acknowledged and is lost"),
        (lose_a_removal, "p0 was removed and is back"),
        (create_with_another_size, "p1 has 2 IPUs instead of 4"),
        (invent_a_partition, "p9 was never created"),
        (list_an_old_partition, "the leader lists 1 IPUs for p0, etcd has None"),
        (store_another_size, "the leader lists 2 IPUs for p2, etcd has 3"),
        (read_stale, "p1 has no linearizable history"),
        (write_without_leading, "revision 7: leader 1 wrote, 2 led"),
        (use_an_ipu_twice_for_some_time, "revision 8: IPU 1 in domain 0 of cl0 is used by p1 and p2"),
        (damage_a_record, "checksum of p1"),
    ],
)
def test_planted_violations_are_found(world: World, plant: Callable[[World], None], message: str) -> None:
    assert found(world) == []
    plant(world)
    assert any(fault.startswith(message) for fault in found(world)), found(world)


def test_a_share_that_agents_remove_in_time_is_accepted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradictions, "AGENT_SECONDS", 30.0)
    late = [SimpleNamespace(agent_id=id, partition_ids=["p8"]) for id in world.held]
    answers = iter([late, late])
    in_time = world.rack()
    rack = SimpleNamespace(agents=in_time.agents, machines=lambda: next(answers, in_time.machines()))
    assert found(world, rack) == []
    assert next(answers, None) is None
