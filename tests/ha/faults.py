# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults of controllers and etcd nodes, one at a time, and their repair."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable

from tests.ha.controllers import Controllers
from tests.ha.etcd_nodes import EtcdCluster

Repair = Callable[[], None]


class Faults:
    """Source of faults. ``seed`` decides their kinds and places."""

    def __init__(self, controllers: Controllers, etcd: EtcdCluster, seed: int) -> None:
        self._controllers = controllers
        self._etcd = etcd
        self._random = random.Random(seed)
        # Every kind once before any kind twice.
        self._kinds: list[Callable[[], tuple[str, Repair]]] = []

    def make(self) -> tuple[str, Repair]:
        """Make a fault. Return its description, and the function that ends it."""
        if not self._kinds:
            self._kinds = [
                self._kill_leader,
                self._pause_leader,
                self._cut_leader,
                self._kill_node,
                self._pause_node,
                self._kill_follower,
                self._stop_leader,
            ]
            self._random.shuffle(self._kinds)
        return self._kinds.pop()()

    def seconds(self) -> float:
        """Return how long the fault lasts after the service is back."""
        return self._random.uniform(0.2, 1.0)

    def _kill_leader(self) -> tuple[str, Repair]:
        leader = self._controllers.wait_leader()
        leader.kill()
        return f"kill -9 of the leader {leader.name}", leader.start

    def _stop_leader(self) -> tuple[str, Repair]:
        leader = self._controllers.wait_leader()
        leader.stop()
        return f"stop of the leader {leader.name}", leader.start

    def _pause_leader(self) -> tuple[str, Repair]:
        leader = self._controllers.wait_leader()
        leader.pause()
        return f"SIGSTOP of the leader {leader.name}", leader.resume

    def _cut_leader(self) -> tuple[str, Repair]:
        leader = self._controllers.wait_leader()
        leader.relay.cut()
        return f"network of the leader {leader.name} to etcd", leader.relay.heal

    def _kill_follower(self) -> tuple[str, Repair]:
        leader = self._controllers.wait_leader()
        follower = self._random.choice([each for each in self._controllers.all if each is not leader])
        follower.kill()
        return f"kill -9 of the follower {follower.name}", follower.start

    def _kill_node(self) -> tuple[str, Repair]:
        node = self._random.choice(self._etcd.nodes)
        node.kill()
        return f"kill -9 of etcd {node.name}", lambda: self._etcd.start(node)

    def _pause_node(self) -> tuple[str, Repair]:
        node = self._random.choice(self._etcd.nodes)
        node.signal(signal.SIGSTOP)
        return f"SIGSTOP of etcd {node.name}", lambda: node.signal(signal.SIGCONT)


def pause(seconds: float) -> None:
    """Wait while a fault lasts."""
    threading.Event().wait(seconds)
