# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that the tests kill and start again: V-IPU controller, API server, operator and proxy."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from openipu.vipu.server.initialise import initialise
from tests.integration.vipu_servers import Client, Machines, Process, pod
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import Operator
from tests.kubernetes.planes import own_plane
from tests.kubernetes.program import Program
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.ports import free_port
from tools.kubernetes import programs
from tools.kubernetes.control_plane import ControlPlane

MACHINES = 8  # 32 IPUs
_LEASE_SECONDS = 3
_API_SERVER = "kube-apiserver"


class Victim(Protocol):
    """A program to kill. Both methods return when it is done."""

    def kill(self) -> None:
        """Kill the process, as a power cut would."""

    def start(self) -> None:
        """Start it again, and wait until it serves."""


@dataclass
class VipuController:
    """A V-IPU controller with a database and real agents, always at the same address."""

    folder: Path
    port: int = field(default_factory=free_port)
    _process: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        database = self.folder / "vipu.db"
        if not database.exists():
            initialise(database)
        self._process = Process("--database", str(database), "--port", str(self.port), "--log-level", "warning")

    def kill(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process.kill()


@dataclass
class ApiServer:
    """The API server of the control plane of the tests."""

    plane: ControlPlane

    def start(self) -> None:
        if self.plane.service(_API_SERVER).running() is None:
            self.plane.start(_API_SERVER, programs.ensure_programs(print))

    def kill(self) -> None:
        process = self.plane.service(_API_SERVER).running()
        if process is not None:
            process.kill()
            process.wait()


@dataclass
class Replica:
    """An operator, which may lead or not after its start."""

    operator: Operator

    def start(self) -> None:
        self.operator.start(leads=False)

    def kill(self) -> None:
        self.operator.kill()


@dataclass
class Frozen:
    """An operator that is stopped until its lease has ended, and then goes on."""

    operator: Operator

    def kill(self) -> None:
        send(self.operator, signal.SIGSTOP)

    def start(self) -> None:
        time.sleep(1.5 * _LEASE_SECONDS)  # of the fault: the lease ends meanwhile
        send(self.operator, signal.SIGCONT)


def send(program: Program, number: signal.Signals) -> None:
    """Send a signal to a program, unless it was killed."""
    assert program.process is not None
    program.process.send_signal(number)


@dataclass
class Site:
    """All victims in the namespace of a test."""

    cluster: Cluster
    vipu: VipuController
    api_server: ApiServer
    proxy: Proxy
    operators: list[Operator]


@contextlib.contextmanager
def open_site(
    cluster: Cluster, folder: Path, replicas: int = 1, operator_options: tuple[str, ...] = ()
) -> Iterator[Site]:
    """Start a V-IPU controller with agents, a proxy and operators, and kill them at the end."""
    machines = Machines(MACHINES)
    vipu = VipuController(folder)
    options = ("--lease-seconds", str(_LEASE_SECONDS), *operator_options)
    cluster.create_account(OPERATOR)
    client = Client(vipu.address)
    api_server = ApiServer(own_plane())
    proxy = Proxy(cluster, folder, client)
    first = Operator(cluster, proxy, options, "operator-0")
    operators = [first, *(replace(first, name=f"operator-{number}", port=free_port()) for number in range(1, replicas))]
    try:
        vipu.start()
        pod(client, machines)
        proxy.controllers.write_text(f"{vipu.address}:ipunode=node1\n")
        proxy.start()
        for number, each in enumerate(operators):
            each.start(leads=number == 0)
        yield Site(cluster, vipu, api_server, proxy, operators)
    finally:
        api_server.start()  # later tests need it
        for program in (*operators, proxy, vipu):
            program.kill()
        client.close()
        machines.stop()
