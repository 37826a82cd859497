# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers under measurement that have their records in etcd."""

from __future__ import annotations

import time

import grpc
import psutil

from openipu.shared.vipu.contract import admin, virmgrpc

from .fleet_lab import FleetLab
from .lab import Lab, wait_until


class EtcdLab(Lab):
    """Lab whose controller has its records in etcd."""

    def __init__(self, pods: int, url: str, *, network: int = 0) -> None:
        super().__init__(pods, network=network)
        self._url = url

    def _server_options(self) -> list[str]:
        return [*super()._server_options(), "--store", self._url]

    def _connect(self) -> None:
        super()._connect()
        wait_until(self._leads, "the controller leads")

    def _leads(self) -> bool:
        try:
            self._admin.ListAgents(admin.ListAgentsRequest(), timeout=10)
        except grpc.RpcError:
            return False
        return True


class TakeoverLab(EtcdLab, FleetLab):
    """Context manager for a leader, racks and a follower that takes over."""

    def start_follower(self) -> None:
        """Start a controller that follows, and wait until it has read all records."""
        leader = self._server, self._server_process, self.address
        revision = self.metrics("vipu_store_revision")["vipu_store_revision"]
        self._server_host = f"{self._network}.0.2"
        self._start_server()
        wait_until(
            lambda: self.metrics("vipu_follower_revision").get("vipu_follower_revision", 0) >= revision,
            "the follower has read all records",
        )
        self.wait_idle()
        self._follower = self._server, self._server_process, self.address
        self._server, self._server_process, self.address = leader

    def follower_memory(self) -> float:
        """Return the resident memory of the follower in MB."""
        process: psutil.Process = self._follower[0]
        return float(process.memory_info().rss) / 1e6

    def take_over(self) -> tuple[float, float]:
        """Kill the leader. Return the seconds until the first list of the follower, and until all agents are up."""
        before = len(self._user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)
        start = time.perf_counter()
        self._server_process.kill()
        self._server_process.wait()
        self._server, self._server_process, self.address = self._follower
        self._connect()
        partitions = self._user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=30).partitions
        listed = time.perf_counter() - start
        if len(partitions) != before:
            raise RuntimeError(f"Cannot measure the takeover: {len(partitions)} of {before} partitions remain.")
        self.wait_agents_up()
        return listed, time.perf_counter() - start
