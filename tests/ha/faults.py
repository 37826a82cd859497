# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of controllers, etcd nodes and networks, one at a time, and their repair.

Clocks jump in the code of the controllers only, see ``tests.ha.shifted_clock``. Leases and timeouts use the monotonic
clock, which never jumps.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from openipu.shared.vipu.contract import admin
from tests.ha.checked_load import CALL_SECONDS
from tests.ha.controllers import Controller, Controllers, agent_state
from tests.ha.disks import SlowFlushes, SmallDisk, can_delay_flushes
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.machine_network import MachineNetwork
from tests.ha.target_network import TargetNetwork
from tests.waiting import until

FULL_DISK = "full disk of etcd, which needs the right to mount a tmpfs"
SLOW_FLUSHES = "slow disk of etcd, which needs strace and the right to trace other processes"
_DAY = 86_400
_LEASE_SECONDS = 4.0  # longer than the lease
_SEPARATION_SECONDS = 3.0  # of two nodes: longer than the election timeout of etcd, after which it has an effect


def missing(disk: SmallDisk | None) -> list[str]:
    """Return the kinds of faults that this machine cannot make. ``disk``: that of the first node of etcd, if any."""
    possible = {FULL_DISK: disk is not None, SLOW_FLUSHES: can_delay_flushes()}
    return [kind for kind, is_possible in possible.items() if not is_possible]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``stops``: nothing can be written until the repair. ``lasts``: shortest time until the repair."""

    kind: str
    place: str
    repair: Callable[[], object]
    stops: bool = False
    lasts: float = 0.2  # seconds

    def __str__(self) -> str:
        return f"{self.kind} {self.place}"


class Faults:
    """Source of faults. ``seed`` decides their order and places. Each round has every kind once, in random order."""

    def __init__(
        self,
        controllers: Controllers,
        machines: MachineNetwork,
        clients: TargetNetwork,
        etcd: EtcdCluster,
        disk: SmallDisk | None,
        seed: int,
    ) -> None:
        """``clients``: network between clients and controllers. ``disk``: see ``missing``."""
        self._controllers = controllers
        self._machines = machines
        self._clients = clients
        self._etcd = etcd
        self._disk = disk
        self._random = random.Random(seed)
        without = missing(disk)
        self.kinds: list[Callable[[], Fault]] = [
            self._kill_leader,
            self._pause_leader,
            self._stop_leader,
            self._cut_leader,
            self._cut_leader_from_node,
            self._cut_machine,
            self._cut_clients,
            self._kill_follower,
            self._cut_follower,
            self._shift_clocks,
            self._shift_leader_clock,
            self._kill_node,
            self._pause_node,
            self._separate_nodes,
            self._lose_quorum,
            *([] if FULL_DISK in without else [self._fill_disk]),
            *([] if SLOW_FLUSHES in without else [self._slow_disk]),
        ]
        self._round: list[Callable[[], Fault]] = []

    def make(self) -> Fault:
        """Make a fault."""
        if not self._round:
            self._round = self.kinds.copy()
            self._random.shuffle(self._round)
        return self._round.pop()()

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

    def _cut_leader_from_node(self) -> Fault:
        """Cut the network between the leader and the node that it uses. It still reaches the others."""
        leader = self._controllers.wait_leader()
        leader.relay.separate_used()
        place, repair = leader.name, leader.relay.join
        return Fault("network to one etcd node of the leader", place, repair, lasts=_LEASE_SECONDS)

    def _cut_follower(self) -> Fault:
        follower = self._follower()
        follower.relay.cut()
        repair = follower.relay.heal
        return Fault("network to etcd of the follower", follower.name, repair, lasts=_LEASE_SECONDS)

    def _cut_clients(self) -> Fault:
        """Cut the network between all clients and the leader, which continues to lead, until calls have timed out."""
        leader = self._controllers.wait_leader()
        self._clients.separate(self._controllers.all.index(leader))
        repair = self._clients.join
        return Fault("network to all clients of the leader", leader.name, repair, stops=True, lasts=CALL_SECONDS + 1)

    def _cut_machine(self) -> Fault:
        """Cut the network between the leader and one machine, which other controllers still reach."""
        leader, number = self._controllers.wait_leader(), self._random.randrange(len(self._machines.agents))
        assert leader.process is not None
        self._machines.separate(leader.process.pid, number)
        name = self._machines.agents[number].id
        until(lambda: agent_state(leader.address, name) == admin.AGENT_STATE_DOWN, 60, f"{name} is Down")
        return Fault("network to a machine of the leader", f"{leader.name} and {name}", self._machines.join)

    def _kill_follower(self) -> Fault:
        follower = self._follower()
        follower.kill()
        return Fault("kill -9 of the follower", follower.name, follower.start)

    def _follower(self) -> Controller:
        leader = self._controllers.wait_leader()
        return self._random.choice([each for each in self._controllers.all if each is not leader])

    def _shift_leader_clock(self) -> Fault:
        """Change the clock of the leader, which continues to lead, and change it back."""
        leader, seconds = self._controllers.wait_leader(), self._random.randint(-_DAY, _DAY)
        leader.shift_clock(seconds)
        return Fault("clock jump of the leader", f"{leader.name} by {seconds} s", lambda: leader.shift_clock(0))

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
        return Fault("network between etcd nodes", place, repair, lasts=_SEPARATION_SECONDS)

    def _lose_quorum(self) -> Fault:
        nodes = self._random.sample(self._etcd.nodes, 2)
        for node in nodes:
            node.signal(signal.SIGSTOP)

        def repair() -> None:
            for node in nodes:
                node.signal(signal.SIGCONT)

        place = " and ".join(node.name for node in nodes)
        return Fault("loss of the quorum by SIGSTOP of", place, repair, stops=True, lasts=_LEASE_SECONDS)

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
