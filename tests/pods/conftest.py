# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane with a node that runs real pods, and the chart. The tests run in the namespaces of the node."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from openipu.process import log
from openipu.shared.vipu.contract import admin
from openipu.vipu.api.addresses import ListenAddress
from tests.integration.vipu_servers import InProcess, Machines, pod
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.pods import jobs, registry
from tests.waiting import until
from tools.kubernetes import isolation, programs
from tools.kubernetes.control_plane import ControlPlane
from tools.kubernetes.images import WORKER, ensure_images
from tools.kubernetes.node import Node
from tools.kubernetes.site import NODE_ADDRESS, STATE
from tools.locks import folder_lock

MACHINES = 8  # 32 IPUs, as in the published transcripts
VIPU_PORT = 8090
NAMESPACE = "ipu"  # of the release
WAIT = ("--wait", "--timeout", "300s")  # options of Helm, for a busy machine
TEST_SECONDS = 900  # with the start of the node
UP_SECONDS = 60.0  # until all agents have responded

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the timeout of these tests."""
    for each in items:
        if each.path.parent == Path(__file__).parent:
            each.add_marker(pytest.mark.timeout(TEST_SECONDS))


def install(release: Release) -> None:
    """Install the chart as its documentation says, and wait until its pods are ready."""
    release.install("--set", f"vipuControllers={NODE_ADDRESS}:{VIPU_PORT}:ipunode=node1", *WAIT)


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Log warnings and errors only."""
    log.configure("text", "warning")


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a new control plane and its node. A registry has the image of the published examples."""
    if isolation.GROUP_VARIABLE not in os.environ:
        pytest.skip("real pods need root and the namespaces of a node: run 'make test-pods' as root")
    folder = programs.ensure_programs(print)
    images = ensure_images(folder, print)
    plane = ControlPlane(STATE.with_name("pods"), address=NODE_ADDRESS)
    with folder_lock(STATE.with_name("pods-lock")):
        plane.down()  # of a killed run
        plane.up(folder)
        node = Node(plane, folder, registry=registry.ADDRESS)
        node.up(images.values())
        served = registry.start(tmp_path_factory.mktemp("registry") / "files")
        registry.push(node.socket, WORKER, "resnet:latest")
        yield Cluster(folder / "kubectl", plane.site.kubeconfig())
        served.stop()  # all other processes end with the namespaces


@pytest.fixture(scope="session")
def vipu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """Start a V-IPU controller that pods reach, and the agents of a twin with 32 IPUs."""
    machines = Machines(MACHINES)
    database = tmp_path_factory.mktemp("vipu") / "vipu.db"
    server = InProcess(database, user=ListenAddress(NODE_ADDRESS, VIPU_PORT))
    pod(server, machines)
    until(lambda: agent_states(server) == {admin.AGENT_STATE_UP}, UP_SECONDS)
    yield server
    server.stop()
    machines.stop()


def agent_states(server: InProcess) -> set[int]:
    """Return the states of all agents of a V-IPU controller."""
    return {each.state for each in server.admin.ListAgents(admin.ListAgentsRequest()).agents}


@pytest.fixture(scope="session")
def release(node: Cluster, vipu: InProcess) -> Release:
    """Return an installed release, which all tests share."""
    node.kubectl("create", "namespace", NAMESPACE)
    found = Release(replace(node, namespace=NAMESPACE))
    install(found)
    return found


@pytest.fixture
def cluster(node: Cluster, release: Release) -> Iterator[Cluster]:
    """Yield the cluster with a namespace for one test, whose jobs and pods are deleted at the end."""
    name = f"test-{next(_numbers)}"
    node.kubectl("create", "namespace", name)
    found = replace(node, namespace=name)
    until(lambda: found.run("get", "serviceaccount", "default").returncode == 0)
    yield found
    jobs.delete(found, "ipujobs,pods")
