# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured: a ``vipu-server`` process and the rack that it drives, on loopback."""

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
from typing import Any

import grpc
import psutil
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc

from openipu.limits import raise_file_limit
from openipu.vipu.initialise import initialise

MACHINES_PER_POD = 16
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


@dataclass(frozen=True)
class Machine:
    """An IPU-Machine of the twin, as the controller is told of it."""

    agent_id: str
    host: str
    port: int


class Processes:
    """What runs beside the benchmark, and ends with it: ``folder`` is theirs, once the stack has opened it."""

    folder: Path

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._stack = contextlib.ExitStack()

    def __exit__(self, *exception: object) -> None:
        """End it all."""
        self._stack.close()

    def _open_folder(self) -> None:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))

    def _start_rack(self, config: dict[str, Any]) -> None:
        """Start a rack twin and wait until it listens; raises RuntimeError with what it said."""
        file, socket = self.folder / "rack.json", self.folder / "rack.sock"
        file.write_text(json.dumps(config))
        rack = self._start("openipu.twin.rack", ["--config", str(file), "--socket", str(socket)])
        _wait(lambda: socket.is_socket() or rack.poll() is not None, "the rack listens")
        if rack.poll() is not None:
            raise RuntimeError(f"the rack did not start: {self._said('openipu.twin.rack')}")

    def _start(self, module: str, options: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{module}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *options], stdout=subprocess.PIPE, stderr=log, env=_environment()
            )
        self._stack.callback(_end, process)
        return process

    def _said(self, module: str) -> str:
        return (self.folder / f"{module}.log").read_text() or "nothing was said"


class Lab(Processes):
    """A controller and PODs of 16 machines each; a context manager.

    With ``one_core`` the controller has the first core for itself, and the rack and this process share
    the others (all of them share the same core where there is only one).
    """

    def __init__(self, pods: int, *, one_core: bool = False) -> None:
        """Nothing is started yet."""
        super().__init__()
        self.pods = pods
        self._cores = sorted(os.sched_getaffinity(0))
        self._one_core = one_core
        self.machines: list[Machine] = []
        self.address = ""
        self._network = f"127.{own_octet()}"

    @property
    def host(self) -> str:
        """Where the controller listens."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.address.rpartition(":")[2])

    def __enter__(self) -> Lab:
        """Start everything, and wait until it is ready; raises RuntimeError with what it said."""
        raise_file_limit()  # inherited by the processes
        with self._stack:
            if self._one_core:
                self._stack.callback(os.sched_setaffinity, 0, self._cores)
                os.sched_setaffinity(0, self._cores[1:] or self._cores)
            self._open_folder()
            self._start_server()
            self._start_rack(self._rack())
            channel = self._stack.enter_context(self.channel())
            self._admin = admin.stub(channel, "AdminService")
            self._user = virmgrpc.stub(channel, "UserService")
            self._stack = self._stack.pop_all()
        return self

    def server_cpu(self) -> float:
        """Seconds of CPU that the controller has taken so far."""
        times = self._server.cpu_times()
        return float(times.user + times.system)

    def rest(self) -> None:
        """Wait until the controller is done with what came before."""
        _wait(lambda: bool(self._server.cpu_percent(interval=0.2) < 10), "the controller is at rest")

    def channel(self) -> grpc.Channel:
        """A new channel to the controller; close it."""
        return grpc.insecure_channel(self.address, options=_OPTIONS)

    def apply_pods(self, count: int, partitions: int = 0) -> None:
        """Register PODs as agents, cluster ``cN`` (torus) and allocation ``aN``; one-IPU partitions ``qN`` over all."""
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
        """Remove every record."""
        agents = self._admin.ListAgents(admin.ListAgentsRequest()).agents
        self._apply(
            admin.ApplyRequest(
                removals=[admin.ObjectRef(kind=admin.KIND_AGENT, id=agent.spec.id, force=True) for agent in agents]
            )
        )

    def wait_agents_up(self) -> None:
        """Wait until the controller reaches every agent that it knows."""

        def everywhere() -> bool:
            agents = self._admin.ListAgents(admin.ListAgentsRequest()).agents
            return all(agent.state == admin.AGENT_STATE_UP for agent in agents)

        _wait(everywhere, "all agents are up")

    def wait_active(self, count: int) -> None:
        """Wait until so many partitions are there, and all of them are ACTIVE."""

        def active() -> bool:
            partitions = self._user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
            return len(partitions) == count and all(
                partition.ready_state == virmgrpc.PS_ACTIVE for partition in partitions
            )

        _wait(active, f"{count} partitions are ACTIVE")

    def _apply(self, request: Any) -> None:
        reply = self._admin.Apply(request, timeout=60)
        if not reply.applied:
            raise RuntimeError(next(result.error for result in reply.results if result.error))

    def _start_server(self) -> None:
        database = self.folder / "vipu-server.db"
        initialise(database)
        options = ["--host", f"{self._network}.0.1", "--port", "0", "--database", str(database)]
        options += ["--log-level", "warning"]
        server = self._start("openipu.vipu.server", options)
        self._server = psutil.Process(server.pid)
        if self._one_core:  # before it has any thread; all of them inherit it
            os.sched_setaffinity(server.pid, self._cores[:1])
        line = server.stdout.readline().decode() if server.stdout else ""
        if " listening on " not in line:
            raise RuntimeError(f"vipu-server did not start: {self._said('openipu.vipu.server')}")
        self.address = line.split(" listening on ")[1].strip()

    def _rack(self) -> dict[str, Any]:
        clusters = []
        for pod in range(self.pods):
            machines = [
                Machine(f"ag{pod:03}.{unit:02}", f"{self._network}.{pod + 1}.{unit}", 8080)
                for unit in range(1, MACHINES_PER_POD + 1)
            ]
            self.machines += machines
            clusters.append({"topology": "torus", "machines": [vars(machine) for machine in machines]})
        return {"clusters": clusters}


def own_octet() -> int:
    """The second number of the part of 127/8 that this process has for itself, so that two of them do not meet."""
    return 128 + os.getpid() % 96


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("VIPU_")}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def _wait(condition: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Not within {seconds:.0f} s: {what}.")
        time.sleep(0.02)
