# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller and racks that fail: one rack and all others are separate processes, which end without a farewell."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from openipu.shared.vipu.contract import admin, virmgrpc

from .lab import MACHINES_PER_POD, Lab, wait_until

POLL = 0.05  # seconds
METRICS_PORT = 9321
_STEADY = 0.9  # of the share of the interval before: less means that it still falls


@dataclass(frozen=True)
class Restart:
    """Seconds of a restart. ``waited``: for a core, in the main thread, which other programs cause."""

    cpu: float
    wall: float
    waited: float


class FleetLab(Lab):
    """Context manager for a controller and racks. The first rack fails alone, or together with all others."""

    def _start_machines(self) -> None:
        clusters = self._clusters()
        self._configs = {"first": {"clusters": clusters[:1]}}
        if clusters[1:]:
            self._configs["others"] = {"clusters": clusters[1:]}
        self._racks: dict[str, subprocess.Popen[bytes]] = {}
        self.start_racks()

    def _server_options(self) -> list[str]:
        return ["--metrics-host", self._server_host, "--metrics-port", str(METRICS_PORT)]

    def start_racks(self) -> None:
        """Start the racks that do not run. Returns when all of their agents listen."""
        for name, config in self._configs.items():
            if name not in self._racks:
                self._racks[name] = self._start_rack(config, name)

    def kill_racks(self, *, all_racks: bool = False) -> None:
        """End the first rack or all racks with SIGKILL."""
        names = self._names(all_racks)
        for name in names:
            self._racks[name].kill()
        for name in names:
            self._racks.pop(name).wait()

    def freeze_racks(self, *, all_racks: bool = False) -> None:
        """Stop the first rack or all racks without closing their connections, as when their power fails.

        Attempts to connect do not fail, but have no response.
        """
        for name in self._names(all_racks):
            self._racks[name].send_signal(signal.SIGSTOP)

    def thaw_first_rack(self) -> None:
        """Continue the first rack."""
        self._racks["first"].send_signal(signal.SIGCONT)

    def _names(self, all_racks: bool) -> list[str]:
        return list(self._racks) if all_racks else ["first"]

    def restart_server(self) -> Restart:
        """Kill the controller and start it again. Return the time until its first list of partitions."""
        before = len(self._user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)
        self._server_process.kill()
        self._server_process.wait()
        start = time.perf_counter()
        self._start_server(self.port)
        self._connect()
        partitions = self._user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=30).partitions
        restart = Restart(self.server_cpu(), time.perf_counter() - start, _seconds_without_core(self._server.pid))
        if len(partitions) != before:
            raise RuntimeError(f"Cannot measure the restart: {len(partitions)} of {before} partitions remain.")
        return restart

    def memory(self) -> float:
        """Return the resident memory of the controller in MB."""
        return float(self._server.memory_info().rss) / 1e6

    def idle_cpu(self, seconds: float) -> float:
        """Return the share of a core that the controller uses while nothing changes.

        Intervals of this length are measured until the share falls no more: the work after a change must end first.
        """
        share = self._cpu_share(seconds)
        while (next_share := self._cpu_share(seconds)) < _STEADY * share:
            share = next_share
        return next_share

    def _cpu_share(self, seconds: float) -> float:
        before, start = self.server_cpu(), time.perf_counter()
        time.sleep(seconds)  # the measured interval
        return (self.server_cpu() - before) / (time.perf_counter() - start)

    def wait_down(self, racks: int) -> float:
        """Wait until the agents of the first ``racks`` are Down and their partitions ERROR. Return the seconds."""
        start = time.perf_counter()
        lost = {machine.agent_id for machine in self.machines[: racks * MACHINES_PER_POD]}

        def down() -> bool:
            agents = self._admin.ListAgents(admin.ListAgentsRequest()).agents
            if any(agent.state != admin.AGENT_STATE_DOWN for agent in agents if agent.spec.id in lost):
                return False
            partitions = self._user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
            return all(
                partition.ready_state == virmgrpc.PS_ERROR
                for partition in partitions
                if int(partition.id.removeprefix("q")) % self.pods < racks
            )

        wait_until(down, f"the agents of {racks} racks are Down", interval=POLL)
        return time.perf_counter() - start

    def configure_calls(self) -> float:
        """Return the number of Configure calls since the start of the controller, from its metrics."""
        series = self.metrics("vipu_agent_request_duration_seconds_count")
        return sum(value for name, value in series.items() if "Configure" in name)

    def metrics(self, metric: str) -> dict[str, float]:
        """Return the series of a metric of the controller."""
        with urllib.request.urlopen(f"http://{self.host}:{METRICS_PORT}/metrics", timeout=10) as page:
            samples = (line.rpartition(" ") for line in page.read().decode().splitlines())
        return {name: float(value) for name, _, value in samples if name.partition("{")[0] == metric}


def _seconds_without_core(pid: int) -> float:
    """Return how long the main thread of a process was ready to run and waited for a core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


class Probe:
    """Context manager that calls the controller all the time. ``longest``: the longest call in seconds."""

    def __init__(self, lab: Lab) -> None:
        self.longest = 0.0
        self._lab = lab
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Probe:
        """Start to call."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop to call."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with self._lab.channel() as channel:
            user = virmgrpc.stub(channel, "UserService")
            while not self._ended.wait(POLL):
                start = time.perf_counter()
                user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="q00000"), timeout=60)
                self.longest = max(self.longest, time.perf_counter() - start)
