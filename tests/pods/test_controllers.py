# SPDX-License-Identifier: GPL-3.0-or-later
"""V-IPU controllers that are added to the ConfigMap of a running release."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.api.addresses import ListenAddress
from tests.integration.vipu_servers import InProcess, InstantLife
from tests.integration.vipu_servers import pod as add_machines
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.pods.conftest import VIPU_PORT
from tests.pods.jobs import SECONDS, delete, job, partitions, wait
from tests.waiting import until
from tools.kubernetes.site import NODE, NODE_ADDRESS

PROXY_SECONDS = 10.0  # between reads of the ConfigMap
CONFIG_MAP = "gc-ipu-operator-vipu-controllers"
FIRST = f"{NODE_ADDRESS}:{VIPU_PORT}:ipunode=node1"


@pytest.fixture
def second(tmp_path: Path) -> Iterator[InProcess]:
    """Yield a V-IPU controller with four IPUs, which the release does not know."""
    server = InProcess(tmp_path / "vipu.db", InstantLife, user=ListenAddress(NODE_ADDRESS, VIPU_PORT + 1))
    add_machines(server, 1)
    yield server
    server.stop()


def edit(cluster: Cluster, old: str, new: str) -> None:
    """Replace a text in the ConfigMap with kubectl edit."""
    options = [f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}"]
    command: list[str | Path] = [cluster.kubectl_program, *options, "edit", "configmap", CONFIG_MAP]
    environment = {**os.environ, "KUBE_EDITOR": f"sed --in-place 's|{old}|{new}|'"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == f"configmap/{CONFIG_MAP} edited\n", done.stderr


def session(name: str, ipus: int, **spec: Any) -> dict[str, Any]:
    """Return an interactive job with one worker."""
    spec = {"interactive": {"ttl": 600}, "launcher": {}, "workersPerJobInstance": "1", **spec}
    made = job([], ipusPerJobInstance=str(ipus), modelReplicasPerWorker="1", **spec)
    return {**made, "metadata": {"name": name}}


def test_an_added_controller_receives_partitions(
    cluster: Cluster, release: Release, vipu: InProcess, second: InProcess
) -> None:
    added = f"{NODE_ADDRESS}:{VIPU_PORT + 1}:rack=pod002"
    cluster.create(session("full", 32))
    wait(cluster, "full", "Running")
    cluster.create(session("next", 4))
    until(lambda: cluster.get("ipujob", "next").get("status", {}).get("lastMessage"), SECONDS)
    assert partitions(vipu) == {f"p-full-{cluster.namespace}-0"}
    printed = cluster.kubectl("label", "nodes", NODE, "rack=pod002")
    assert printed == f"node/{NODE} labeled\n"
    edit(release.cluster, FIRST, f"{FIRST},{added}")
    try:
        until(lambda: partitions(second), PROXY_SECONDS + SECONDS, lambda: cluster.kubectl("describe", "ipujobs"))
        wait(cluster, "next", "Running")
        assert partitions(second) == {f"p-next-{cluster.namespace}-0"}
        selectors = cluster.get("pod", "next-worker-0")["spec"]["nodeSelector"]
        assert selectors == {"rack": "pod002"}
    finally:
        delete(cluster)
        edit(release.cluster, f"{FIRST},{added}", FIRST)
        cluster.kubectl("label", "nodes", NODE, "rack-")
    assert partitions(vipu) | partitions(second) == set()
