# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers on one etcd as processes, each behind a relay to its nodes that can be cut."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.shared.vipu.contract import admin, virmgrpc
from tests.ha.target_network import TargetNetwork
from tests.integration.vipu_servers import environment, run
from tests.ports import free_port
from tests.waiting import until

SERVER, UNFENCED, SHIFTED = "openipu.vipu.server.main", "tests.ha.unfenced", "tests.ha.shifted_clock"
START_SECONDS = 90.0  # of processes on a busy machine


class Relay(TargetNetwork):
    """Process between a controller and all nodes of etcd."""

    def cut(self) -> None:
        """Lose all packets, with open connections."""
        self._process.send_signal(signal.SIGSTOP)

    def heal(self) -> None:
        self._process.send_signal(signal.SIGCONT)


class Controller:
    """Process of one controller on a port that it keeps."""

    def __init__(
        self,
        name: str,
        folder: Path,
        targets: Sequence[str],
        prefix: str,
        module: str,
        *options: str,
        host: str = "127.0.0.1",
        port: int = 0,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """``port``: 0 for a free one. ``credentials``: of health checks, None without TLS."""
        self.name = name
        self._credentials = credentials
        self.host, self.port, self.metrics_port = host, port or free_port(), free_port()
        self.relay = Relay(targets)
        url = f"etcd://{','.join(self.relay.addresses)}{prefix}"
        endpoints = ("--host", host, "--port", str(self.port), "--metrics-port", str(self.metrics_port))
        self._command = [sys.executable, "-m", module, *endpoints, "--store", url, *options]
        self.log = folder / f"{name}.log"
        self._clock = folder / f"{name}.clock"  # of tests.ha.shifted_clock
        self.process: subprocess.Popen[bytes] | None = None
        self.paused = False

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=environment() | {"OPENIPU_HA_CLOCK": str(self._clock)}
            )

    def shift_clock(self, seconds: float) -> None:
        """Set the distance of the wall clock from the true one. Only the program ``SHIFTED`` uses it."""
        complete = self._clock.with_suffix(".new")
        complete.write_text(str(seconds))
        complete.replace(self._clock)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def stop(self) -> int:
        """Stop it as a service manager does, and return the exit status."""
        assert self.process is not None
        self.process.terminate()
        status = self.process.wait(30)
        self.process = None
        return status

    def health(self) -> int | None:
        """Return the status of the health service, None without a response.

        Raises AssertionError when the process has ended: then another program may listen on the port.
        """
        if self.process is None:
            return None
        assert self.process.poll() is None, f"{self.name} has ended: {self.log.read_text()}"
        target, credentials = self.address, self._credentials
        with grpc.secure_channel(target, credentials) if credentials else grpc.insecure_channel(target) as channel:
            try:
                reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
            except grpc.RpcError:
                return None
        return int(reply.status)

    def metrics(self) -> dict[str, float]:
        """Return the samples of a scrape, by name and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as response:
            text = response.read().decode()
        return {name: float(value) for name, value in re.findall(r"(?m)^([a-z]\S*) (\S+)$", text)}

    def leads(self) -> bool:
        return self.health() == health_pb2.HealthCheckResponse.SERVING

    def follows(self) -> bool:
        return self.health() == health_pb2.HealthCheckResponse.NOT_SERVING


class Controllers:
    """Several controllers on the prefix of one etcd, initialised and running."""

    def __init__(
        self,
        folder: Path,
        store: str,
        count: int = 3,
        module: str = SERVER,
        options: Sequence[str] = (),
        hosts: Sequence[str] = (),
        initialise: bool = True,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """``hosts``: those of controllers on a common port. Without them, each has its own port of one host."""
        match = re.fullmatch(r"etcd://([^/]+)(/.*)?", store)
        assert match
        targets, prefix = match[1].split(","), match[2] or ""
        if initialise:
            created = run("--init", "--store", store)
            assert created.returncode == 0, created.stderr
        self.store = store
        port = free_port() if hosts else 0
        self.all = [
            Controller(
                f"c{n}", folder, targets, prefix, module, *options, host=host, port=port, credentials=credentials
            )
            for n, host in enumerate(hosts or ["127.0.0.1"] * count)
        ]
        try:
            for controller in self.all:
                controller.start()
            self.wait_leader()
            until(lambda: all(each.leads() or each.follows() for each in self.all), START_SECONDS, "all respond")
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> list[str]:
        return [each.address for each in self.all]

    def leader(self) -> Controller | None:
        """Return the controller that serves and is not paused."""
        return next((each for each in self.all if each.process and not each.paused and each.leads()), None)

    def wait_leader(self, seconds: float = START_SECONDS) -> Controller:
        found: Controller = until(self.leader, seconds, lambda: f"a controller leads: {self.logs()}")
        return found

    def logs(self) -> str:
        return "\n".join(f"{each.name}: {each.log.read_text()[-1500:]}" for each in self.all if each.log.exists())

    def close(self) -> None:
        for each in self.all:
            each.kill()
            each.relay.close()


def put_rack(address: str, agents: Sequence[object]) -> None:
    """Apply agents, cluster cl0 and allocation a1 with all of them."""
    names = [agent.id for agent in agents]  # type: ignore[attr-defined]
    with grpc.insecure_channel(address) as channel:
        reply = admin.stub(channel, "AdminService").Apply(
            admin.ApplyRequest(
                agents=agents,
                clusters=[admin.ClusterSpec(id="cl0", agent_ids=names, ipu_link_topology=2)],
                allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", agent_ids=names)],
            ),
            timeout=30,
        )
    assert reply.applied, reply.results


def agent_state(address: str, id: str) -> int:
    """Return the state of an agent at a controller."""
    with grpc.insecure_channel(address) as channel:
        agents = admin.stub(channel, "AdminService").ListAgents(admin.ListAgentsRequest(), timeout=10).agents
    return next(int(agent.state) for agent in agents if agent.spec.id == id)


def create(address: str, id: str, size: int = 1, timeout: float = 10) -> None:
    """Create a partition. Raises grpc.RpcError."""
    requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id="a1")
    with grpc.insecure_channel(address) as channel:
        virmgrpc.stub(channel, "UserService").CreatePartition(
            virmgrpc.CreatePartitionRequest(requirements=requirements), timeout=timeout
        )


def listed(address: str) -> dict[str, int]:
    """Return the sizes of all partitions."""
    with grpc.insecure_channel(address) as channel:
        reply = virmgrpc.stub(channel, "UserService").ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10)
    return {each.id: len(each.spec.ipus) for each in reply.partitions}


def seconds_until(condition: object, limit: float, what: str) -> float:
    """Return the seconds until a condition is true."""
    start = time.monotonic()
    until(condition, limit, what)  # type: ignore[arg-type]
    return time.monotonic() - start
