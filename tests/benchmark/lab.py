# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes under measurement: ``vipu-server`` and a rack twin on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc
import psutil

from openipu.process.limits import raise_file_limit
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.server.initialise import initialise

MACHINES_PER_POD = 16
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


@dataclass(frozen=True)
class Machine:
    """IPU-Machine of the twin, with its id and address for the controller."""

    agent_id: str
    host: str
    port: int


class Processes:
    """Processes that end with the benchmark. ``folder`` holds their files and exists after ``_open_folder``."""

    folder: Path

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __exit__(self, *exception: object) -> None:
        """Stop all processes and remove the folder."""
        self._stack.close()

    def _open_folder(self) -> None:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))

    def _start_rack(self, config: dict[str, Any], name: str = "rack") -> subprocess.Popen[bytes]:
        """Start a rack twin and wait until it listens. Raises RuntimeError with its log."""
        file, socket = self.folder / f"{name}.json", self.folder / f"{name}.sock"
        file.write_text(json.dumps(config))
        socket.unlink(missing_ok=True)  # of an earlier process that was killed
        rack = self._start("openipu.twin.rack.main", ["--config", str(file), "--socket", str(socket)], name)
        wait_until(lambda: socket.is_socket() or rack.poll() is not None, "the rack twin listens")
        if rack.poll() is not None:
            raise RuntimeError(f"Cannot start the rack twin: {self._log_text(name)}")
        return rack

    def _start(self, module: str, options: list[str], name: str = "") -> subprocess.Popen[bytes]:
        """Start a module as a process. ``name``: of its log, if several processes run it."""
        with (self.folder / f"{name or module}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *options], stdout=subprocess.PIPE, stderr=log, env=_environment()
            )
        self._stack.callback(stop_process, process)
        return process

    def _log_text(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text() or "its log is empty"


class Lab(Processes):
    """Context manager for a controller and PODs of 16 machines each.

    With ``one_core`` the controller runs on the first core, the rack twin and this process on the others. On a
    machine with one core, all share it. ``network``: number of the network, for two labs at the same time.
    """

    def __init__(self, pods: int, *, one_core: bool = False, network: int = 0) -> None:
        super().__init__()
        self.pods = pods
        self._cores = sorted(os.sched_getaffinity(0))
        self._one_core = one_core
        self.machines: list[Machine] = []
        self.address = ""
        self._network = f"127.{own_octet(network)}"
        self._server_host = f"{self._network}.0.1"

    @property
    def host(self) -> str:
        """Address of the controller."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """Port of the controller."""
        return int(self.address.rpartition(":")[2])

    def __enter__(self) -> Self:
        """Start all processes and wait until they are ready. Raises RuntimeError with a log."""
        raise_file_limit()  # inherited by the processes
        with self._stack:
            if self._one_core:
                self._stack.callback(os.sched_setaffinity, 0, self._cores)
                os.sched_setaffinity(0, self._cores[1:] or self._cores)
            self._open_folder()
            self._start_server()
            self._start_machines()
            self._connect()
            self._stack = self._stack.pop_all()
        return self

    def server_cpu(self) -> float:
        """Return the seconds of CPU that the controller has used."""
        times = self._server.cpu_times()
        return float(times.user + times.system)

    def wait_idle(self) -> None:
        """Wait until the controller has completed background work and uses less than 10 % of a core."""
        wait_until(lambda: bool(self._server.cpu_percent(interval=0.2) < 10), "the controller is idle")

    def channel(self) -> grpc.Channel:
        """Return a new channel to the controller, which the caller must close."""
        return grpc.insecure_channel(self.address, options=_OPTIONS)

    def _connect(self) -> None:
        channel = self._stack.enter_context(self.channel())
        self._admin = admin.stub(channel, "AdminService")
        self._user = virmgrpc.stub(channel, "UserService")

    def apply_pods(self, count: int, partitions: int = 0) -> None:
        """Create agents, cluster ``cN`` (torus) and allocation ``aN`` per POD, and one-IPU partitions ``qN`` in all."""
        request = admin.ApplyRequest()
        for pod in range(count):
            machines = self.machines[pod * MACHINES_PER_POD : (pod + 1) * MACHINES_PER_POD]
            ids = [machine.agent_id for machine in machines]
            request.agents.extend(admin.AgentSpec(id=m.agent_id, host=m.host, port=m.port) for m in machines)
            request.clusters.append(
                admin.ClusterSpec(id=f"c{pod}", agent_ids=ids, ipu_link_topology=admin.IPU_LINK_TOPOLOGY_TORUS)
            )
            request.allocations.append(admin.AllocationSpec(id=f"a{pod}", cluster_id=f"c{pod}", agent_ids=ids))
        for number in range(partitions):
            requirements = virmgrpc.PartitionRequirements(
                id=f"q{number:05}", size=1, allocation_id=f"a{number % count}"
            )
            request.partitions.append(admin.PartitionSpec(requirements=requirements))
        self._apply(request)

    def clear(self) -> None:
        """Remove all records."""
        agents = self._admin.ListAgents(admin.ListAgentsRequest()).agents
        self._apply(
            admin.ApplyRequest(
                removals=[admin.ObjectRef(kind=admin.KIND_AGENT, id=agent.spec.id, force=True) for agent in agents]
            )
        )

    def wait_agents_up(self) -> None:
        """Wait until all agents are up."""

        def all_up() -> bool:
            agents = self._admin.ListAgents(admin.ListAgentsRequest()).agents
            return all(agent.state == admin.AGENT_STATE_UP for agent in agents)

        wait_until(all_up, "all agents are up")

    def wait_active(self, count: int) -> None:
        """Wait until there are ``count`` partitions and all are ACTIVE."""

        wait_until(lambda: self.are_active(count), f"{count} partitions are ACTIVE")

    def are_active(self, count: int) -> bool:
        """Return whether there are ``count`` partitions and all are ACTIVE."""
        partitions = self._user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
        return len(partitions) == count and all(partition.ready_state == virmgrpc.PS_ACTIVE for partition in partitions)

    def _apply(self, request: Any) -> None:
        reply = self._admin.Apply(request, timeout=60)
        if not reply.applied:
            raise RuntimeError(next(result.error for result in reply.results if result.error))

    def _start_machines(self) -> None:
        self._start_rack({"clusters": self._clusters()})

    def _server_options(self) -> list[str]:
        return []

    def _start_server(self, port: int = 0) -> None:
        database = self.folder / "vipu-server.db"
        if not database.exists():
            initialise(database)
        options = ["--host", self._server_host, "--port", str(port), "--database", str(database)]
        options += ["--log-level", "warning", *self._server_options()]
        server = self._start("openipu.vipu.server.main", options, name := f"vipu-server-{self._server_host}")
        self._server, self._server_process = psutil.Process(server.pid), server
        if self._one_core:  # set early: all threads inherit the affinity
            os.sched_setaffinity(server.pid, self._cores[:1])
        line = server.stdout.readline().decode() if server.stdout else ""
        if " listening on " not in line:
            raise RuntimeError(f"Cannot start vipu-server: {self._log_text(name)}")
        self.address = line.split(" listening on ")[1].strip()

    def _clusters(self) -> list[dict[str, Any]]:
        clusters: list[dict[str, Any]] = []
        for pod in range(self.pods):
            machines = [
                Machine(f"ag{pod:03}.{unit:02}", f"{self._network}.{pod + 1}.{unit}", 8080)
                for unit in range(1, MACHINES_PER_POD + 1)
            ]
            self.machines += machines
            clusters.append({"topology": "torus", "machines": [vars(machine) for machine in machines]})
        return clusters


def own_octet(network: int = 0) -> int:
    """Return the second octet of the loopback addresses of a network, so that concurrent runs differ."""
    return 128 + (os.getpid() + 48 * network) % 96


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("VIPU_")}


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """End a process with SIGTERM, after 20 s with SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def wait_until(condition: Callable[[], bool], description: str, seconds: float = 90.0, interval: float = 0.02) -> None:
    """Wait for a condition. Raises RuntimeError with the description after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Timeout after {seconds:.0f} s while waiting until {description}.")
        time.sleep(interval)
