# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane for all tests of a worker, and a namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.process import log
from tests.integration.vipu_servers import InProcess, InstantLife, pod
from tests.kubernetes.cluster import CRD, Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import Operator
from tests.kubernetes.planes import own_plane, started
from tests.kubernetes.proxies import OPERATOR, Proxy

MACHINES = 8  # 32 IPUs, as in the published transcripts

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Log warnings and errors only."""
    log.configure("text", "warning")


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """Start a new control plane with the custom resource."""
    with started(own_plane()) as cluster:
        cluster.kubectl("apply", "--filename", CRD)
        cluster.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai", "--timeout=30s")
        yield cluster


@pytest.fixture
def cluster(control_plane: Cluster) -> Cluster:
    """Return the control plane with a namespace for one test."""
    name = f"test-{next(_numbers)}"
    found = replace(control_plane, namespace=name)
    found.create_namespace()
    return found


@pytest.fixture
def vipu(tmp_path: Path) -> Iterator[Callable[..., InProcess]]:
    """Yield a factory of V-IPU controllers with 32 IPUs."""
    numbers, servers = itertools.count(), []

    def make(machines: int = MACHINES, **settings: Any) -> InProcess:
        server = InProcess(tmp_path / f"vipu-{next(numbers)}.db", InstantLife, **settings)
        servers.append(server)
        pod(server, machines)
        return server

    yield make
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def node(control_plane: Cluster) -> Iterator[HollowNode]:
    """Yield a node without processes."""
    node = HollowNode(control_plane.kubeconfig)
    node.start()
    yield node
    node.stop()


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]) -> Iterator[Proxy]:
    """Yield a proxy with one V-IPU controller, ``proxy.vipu``."""
    cluster.create_account(OPERATOR)
    made = Proxy(cluster, tmp_path, vipu())
    made.controllers.write_text(f"{made.vipu.address}:ipunode=node1\n")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def operator(proxy: Proxy) -> Iterator[Operator]:
    """Yield an operator with its proxy."""
    made = Operator(proxy.cluster, proxy)
    made.start()
    yield made
    made.kill()
