# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of controllers and etcd nodes, one at a time, and their repair."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from openipu.shared.vipu.contract import admin
from tests.ha.controllers import Controllers, agent_state
from tests.ha.disks import SlowFlushes, SmallDisk, can_delay_flushes
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.machine_network import MachineNetwork
from tests.waiting import until

_DAY = 86_400
_QUORUM_SECONDS = 4.0  # without a quorum: longer than the lease
_SEPARATION_SECONDS = 3.0  # of two nodes: longer than the election timeout of etcd, after which it has an effect


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``quorum``: etcd cannot write until the repair. ``lasts``: shortest time until the repair."""

    kind: str
    place: str
    repair: Callable[[], object]
    quorum: bool = False
    lasts: float = 0.2  # seconds

    def __str__(self) -> str:
        return f"{self.kind} {self.place}"


class Faults:
    """Source of faults. ``seed`` decides their kinds and places."""

    def __init__(
        self, controllers: Controllers, machines: MachineNetwork, etcd: EtcdCluster, disk: SmallDisk | None, seed: int
    ) -> None:
        """``disk``: that of the first node of etcd, None without the right to fill one."""
        self._controllers = controllers
        self._machines = machines
        self._etcd = etcd
        self._disk = disk
        self._random = random.Random(seed)
        self.kinds: list[Callable[[], Fault]] = [
            self._kill_leader,
            self._pause_leader,
            self._cut_leader,
            self._cut_machine,
            self._kill_node,
            self._pause_node,
            self._kill_follower,
            self._stop_leader,
            self._shift_clocks,
            self._lose_quorum,
        ]
        if etcd.network is not None:
            self.kinds.append(self._separate_nodes)
        if disk is not None:
            self.kinds.append(self._fill_disk)
        if can_delay_flushes():
            self.kinds.append(self._slow_disk)
        self._next: list[Callable[[], Fault]] = []  # every kind once before any kind twice

    def make(self) -> Fault:
        """Make a fault."""
        if not self._next:
            self._next = self.kinds.copy()
            self._random.shuffle(self._next)
        return self._next.pop()()

    def seconds(self, fault: Fault) -> float:
        """Return how long a fault lasts at least."""
        return fault.lasts + self._random.uniform(0.0, 0.8)

    def _kill_leader(self) -> Fault:
        leader = self._controllers.wait_leader()
        leader.kill()
        return Fault("kill -9 of the leader", leader.name, leader.start)

    def _stop_leader(self) -> Fault:
        leader = self._controllers.wait_leader()
        leader.stop()
        return Fault("stop of the leader", leader.name, leader.start)

    def _pause_leader(self) -> Fault:
        leader = self._controllers.wait_leader()
        leader.pause()
        return Fault("SIGSTOP of the leader", leader.name, leader.resume)

    def _cut_leader(self) -> Fault:
        leader = self._controllers.wait_leader()
        leader.relay.cut()
        return Fault("network to etcd of the leader", leader.name, leader.relay.heal)

    def _cut_machine(self) -> Fault:
        """Cut the network between the leader and one machine, which other controllers still reach."""
        leader, number = self._controllers.wait_leader(), self._random.randrange(len(self._machines.agents))
        assert leader.process is not None
        self._machines.separate(leader.process.pid, number)
        name = self._machines.agents[number].id
        until(lambda: agent_state(leader.address, name) == admin.AGENT_STATE_DOWN, 60, f"{name} is Down")
        return Fault("network to a machine of the leader", f"{leader.name} and {name}", self._machines.join)

    def _kill_follower(self) -> Fault:
        leader = self._controllers.wait_leader()
        follower = self._random.choice([each for each in self._controllers.all if each is not leader])
        follower.kill()
        return Fault("kill -9 of the follower", follower.name, follower.start)

    def _shift_clocks(self) -> Fault:
        """Change all clocks, and let another controller lead, whose epoch depends on its clock."""
        leader, everyone = self._controllers.wait_leader(), self._controllers.all
        seconds = [self._random.randint(-_DAY, _DAY) for _ in everyone]
        for controller, each in zip(everyone, seconds, strict=True):
            controller.shift_clock(each)
        leader.kill()

        def repair() -> None:
            for controller in everyone:
                controller.shift_clock(0)
            leader.start()

        return Fault("kill -9 of the leader after clock jumps by", f"{', '.join(map(str, seconds))} s", repair)

    def _kill_node(self) -> Fault:
        node = self._random.choice(self._etcd.nodes)
        node.kill()
        return Fault("kill -9 of etcd", node.name, lambda: self._etcd.start(node))

    def _pause_node(self) -> Fault:
        node = self._random.choice(self._etcd.nodes)
        node.signal(signal.SIGSTOP)
        return Fault("SIGSTOP of etcd", node.name, lambda: node.signal(signal.SIGCONT))

    def _separate_nodes(self) -> Fault:
        """Cut the network between two nodes. Both still reach the third one."""
        assert self._etcd.network is not None
        first, second = self._random.sample(range(len(self._etcd.nodes)), 2)
        self._etcd.network.separate(first, second)
        nodes = self._etcd.nodes
        place, repair = f"{nodes[first].name} and {nodes[second].name}", self._etcd.network.join
        return Fault("network between", place, repair, lasts=_SEPARATION_SECONDS)

    def _lose_quorum(self) -> Fault:
        nodes = self._random.sample(self._etcd.nodes, 2)
        for node in nodes:
            node.signal(signal.SIGSTOP)

        def repair() -> None:
            for node in nodes:
                node.signal(signal.SIGCONT)

        place = " and ".join(node.name for node in nodes)
        return Fault("SIGSTOP of etcd, quorum lost,", place, repair, quorum=True, lasts=_QUORUM_SECONDS)

    def _fill_disk(self) -> Fault:
        assert self._disk is not None
        disk, node = self._disk, self._etcd.nodes[0]
        disk.fill()
        until(lambda: node.process is not None and node.process.poll() is not None, 60, "etcd stops without space")

        def repair() -> None:
            disk.empty()
            node.kill()
            self._etcd.start(node)

        return Fault("full disk of etcd", node.name, repair)

    def _slow_disk(self) -> Fault:
        node, seconds = self._random.choice(self._etcd.nodes), self._random.uniform(0.1, 0.4)
        assert node.process is not None
        slow = SlowFlushes(node.process.pid, seconds)
        return Fault("slow disk of etcd", f"{node.name}, {seconds:.1f} s for each flush", slow.end)


def pause(seconds: float) -> None:
    """Wait while a fault lasts."""
    threading.Event().wait(seconds)
