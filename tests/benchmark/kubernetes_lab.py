# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes under measurement: a Kubernetes control plane on loopback, the operator and its proxy.

Pods are hollow: they report that they run, without any process.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from openipu.kubernetes.cluster.client import IPUJOBS, NAMESPACES, Client, Object, open_client
from openipu.kubernetes.cluster.informer import Informer, Key, key
from openipu.kubernetes.domain import status as statuses
from openipu.shared.vipu.client import Client as VipuConnection
from openipu.shared.vipu.client import Connection, VipuError
from openipu.shared.vipu.contract import admin
from tests.integration.vipu_servers import Client as VipuClient
from tests.kubernetes.cluster import CRD, Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import Operator
from tests.kubernetes.proxies import OPERATOR, Proxy
from tools.kubernetes import programs
from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.site import STATE

from .lab import Lab

HOME = "bench"  # namespace of operator and proxy
_CLIENT_RATE = 1000  # requests per second of controller manager and scheduler
_REQUESTS = 50  # at the same time
_SECONDS = 900.0  # for a measurement
# Intervals are the defaults of the programs. Those of the tests are shorter.
_PROXY_OPTIONS = ("--survey-seconds", "10", "--sweep-seconds", "60", "--log-level", "warning")
_OPERATOR_OPTIONS = ("--watch-namespaces", "", "--watch-seconds", "5", "--retry-seconds", "5", "--back-off-scale", "1")


def cpu(*pids: int) -> float:
    """Return the seconds of CPU, user and system, that processes have used."""
    times = [psutil.Process(each).cpu_times() for each in pids]
    return float(sum(each.user + each.system for each in times))


def peak_memory(pid: int) -> float:
    """Return the largest resident set of a process in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if found is None:
        raise RuntimeError(f"Cannot read the memory of process {pid}.")
    return int(found[1]) / 1000


@dataclass
class Board:
    """List of all jobs with their states at the API server. It passes each new state to ``changed``."""

    client: Client
    changed: Callable[[Key, str], None] = lambda name, state: None
    jobs: dict[Key, Object] = field(default_factory=dict)
    states: dict[Key, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Follow the jobs until cancelled."""

        def seen(job: Object) -> None:
            name = key(job)
            if informer.get(name) is None:
                self.jobs.pop(name, None)
                self.states.pop(name, None)
                return
            state = statuses.state(job.get("status") or {})
            self.jobs[name] = job
            if state is not None and self.states.get(name) != state.value:
                self.states[name] = state.value
                self.changed(name, state.value)

        informer = Informer(self.client, IPUJOBS, seen)
        await informer.run()

    def all_in(self, state: str, count: int) -> bool:
        """Return whether there are ``count`` jobs, and all are in a state."""
        return len(self.jobs) == len(self.states) == count and set(self.states.values()) == {state}


@dataclass
class KubernetesLab:
    """A control plane with a hollow node. ``client`` and ``board`` belong to the loop of ``open_lab``."""

    plane: ControlPlane
    cluster: Cluster
    client: Client
    board: Board

    @property
    def peers(self) -> list[int]:
        """Return the processes of controller manager and scheduler."""
        services = (self.plane.service(name) for name in ("kube-controller-manager", "kube-scheduler"))
        return [process.pid for service in services if (process := service.running()) is not None]

    async def each(self, work: list[Awaitable[Any]]) -> None:
        """Make requests, many at the same time."""
        limit = asyncio.Semaphore(_REQUESTS)

        async def one(request: Awaitable[Any]) -> None:
            async with limit:
                await request

        await asyncio.gather(*map(one, work))

    async def create_namespace(self, name: str) -> None:
        """Create a namespace and wait until pods may be created in it."""
        await self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        arguments = ("get", "serviceaccount", "default", f"--namespace={name}")
        await wait(lambda: self.cluster.run(*arguments).returncode == 0, f"namespace {name} is ready")

    async def delete_jobs(self) -> None:
        """Delete all jobs and wait until they are gone."""
        await self.each([self.client.delete(IPUJOBS, *name) for name in list(self.board.jobs)])
        await wait(lambda: not self.board.jobs, "all jobs are deleted")


@contextlib.asynccontextmanager
async def open_lab() -> Any:
    """Start a control plane without jobs, and stop it at the end."""
    plane = ControlPlane(STATE.with_name("benchmark"), _CLIENT_RATE)
    plane.down()  # of a killed run
    folder = programs.ensure_programs(print)
    try:
        plane.up(folder)
        cluster = Cluster(folder / "kubectl", plane.site.kubeconfig(), HOME)
        cluster.kubectl("apply", "--filename", CRD)
        cluster.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai", "--timeout=30s")
        node = HollowNode(cluster.kubeconfig)
        node.start()
        try:
            async with await open_client(str(cluster.kubeconfig)) as client:
                board = Board(client)
                following = asyncio.create_task(board.run())
                lab = KubernetesLab(plane, cluster, client, board)
                await lab.create_namespace(HOME)
                cluster.kubectl("create", "serviceaccount", OPERATOR)
                yield lab
                following.cancel()
        finally:
            node.stop()
    finally:
        plane.down()


@contextlib.contextmanager
def open_operator(lab: KubernetesLab, racks: int) -> Iterator[Operator]:
    """Start an operator, its proxy, a V-IPU controller and the twin of its racks with 64 IPUs each."""
    with Lab(racks) as vipu, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        vipu.apply_pods(racks)
        vipu.wait_agents_up()
        proxy = Proxy(lab.cluster, Path(folder), VipuClient(vipu.address), _PROXY_OPTIONS, forked=False)
        proxy.controllers.write_text(f"{vipu.address}:ipunode=node1\n")
        operator = Operator(lab.cluster, proxy, _OPERATOR_OPTIONS, forked=False)
        try:
            proxy.start()
            operator.start()
            yield operator
        finally:
            operator.kill()
            proxy.kill()
            proxy.vipu.close()


class Creations:
    """Context manager that notes in which order a V-IPU controller creates its partitions."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._client = VipuConnection(Connection(host, int(port)))
        self._order: dict[str, int] = {}
        self._calls: list[Any] = []
        self._thread = threading.Thread(target=self._follow, name="creations")

    def __enter__(self) -> Creations:
        """Start to follow the partitions."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop."""
        for call in self._calls:
            call.cancel()
        self._thread.join()
        self._client.close()

    def order(self) -> dict[str, int]:
        """Return partition id -> number of the change with which it appeared. Changes are numbered upwards."""
        return dict(self._order)

    def _follow(self) -> None:
        request = admin.WatchRequest(kinds=[admin.KIND_PARTITION])
        with contextlib.suppress(VipuError):  # of the cancelled call
            for number, reply in enumerate(self._client.watch("TenantService", request, started=self._calls.append)):
                for event in reply.events:
                    if event.type == admin.Event.PUT:
                        self._order.setdefault(event.id, number)


async def wait(condition: Callable[[], bool], description: str) -> None:
    """Wait until a condition holds. Raises RuntimeError."""
    deadline = asyncio.get_running_loop().time() + _SECONDS
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise RuntimeError(f"Timeout after {_SECONDS:.0f} s while waiting until {description}.")
        await asyncio.sleep(0.02)
