# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ``ipu_operator`` with real pods: installation, verification with an IPUJob, and removal.

It replaces the release of the other tests, so this file must be the last one in the order of names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.kubernetes.roles import Role
from tests.pods.conftest import NAMESPACE, VIPU_PORT
from tests.pods.test_jobs import SECONDS, job, partitions, wait
from tests.waiting import until
from tools.kubernetes import helm
from tools.kubernetes.site import NODE, NODE_ADDRESS

pytestmark = pytest.mark.timeout(1800)  # each test runs Ansible several times
LABEL = "vipu-ctrl=pod1"
CLOSED_PORT = 8091  # no V-IPU controller


@pytest.fixture
def role(node: Cluster, vipu: InProcess, tmp_path: Path) -> Iterator[Role]:
    """Yield the role for the controller of the tests, without another release."""
    other = Release(replace(node, namespace=NAMESPACE))
    if node.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
        withdrawal = "--set=ipuVisibility.enabled=false,ipuVisibility.withdraw=true"
        other.helm("upgrade", other.name, helm.CHART, "--reuse-values", "--skip-crds", withdrawal, "--wait")
        until(lambda: advertised(node) == "", SECONDS)
        other.helm("uninstall", other.name, "--wait")
        node.kubectl("delete", "namespace", NAMESPACE, "--timeout=50s")
    node.kubectl("delete", "crd", "ipujobs.graphcore.ai", "--ignore-not-found", "--timeout=50s")  # which Helm has left
    made = Role(node, tmp_path, "ipu-operator", {"ipu_operator_controllers": [controller(VIPU_PORT)]})
    yield made
    made.apply(ipu_operator_state="absent", ipu_operator_force=True)


def controller(port: int) -> dict[str, object]:
    return {"host": NODE_ADDRESS, "port": port, "label": LABEL, "nodes": [NODE]}


def advertised(cluster: Cluster) -> str:
    """Return the number of IPUs that the node advertises, empty if it advertises none."""
    status = cluster.get("node", NODE)["status"]
    return str(status["capacity"].get("graphcore.ai/ipu", ""))


def test_the_role_installs_verifies_and_removes_the_operator(role: Role, vipu: InProcess) -> None:
    cluster = role.cluster
    assert role.apply() > 0
    assert cluster.kubectl("get", "ipujobs", "--all-namespaces") == ""
    assert partitions(vipu) == set()
    until(lambda: advertised(cluster) == "32", SECONDS)

    before = role.versions()
    assert role.apply() == 0
    assert role.versions() == before

    live = job(["sh", "-c", "trap exit TERM; sleep 600 & wait"])
    live["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {"vipu-ctrl": "pod1"}
    cluster.create(live)
    wait(cluster, "job", "Running")
    assert "1 IPUJobs or pods with IPUs live (IPUJob default/job)" in role.rejection(ipu_operator_state="absent")
    cluster.kubectl("delete", "ipujob", "job", "--wait=false")
    until(lambda: not cluster.kubectl("get", "ipujob", "job", "--ignore-not-found"), 2 * SECONDS)

    assert role.apply(ipu_operator_state="absent") > 0
    assert advertised(cluster) == ""
    assert "vipu-ctrl" not in role.labels(NODE)
    assert not role.has_crd()
    assert "ipu-operator" not in cluster.kubectl("get", "namespaces,clusterroles,mutatingwebhookconfigurations")
    assert role.apply(ipu_operator_state="absent") == 0


def test_a_failed_verification_is_repeated(role: Role, vipu: InProcess) -> None:
    broken = {"ipu_operator_controllers": [controller(CLOSED_PORT)], "ipu_operator_timeout": 45}
    for _ in range(2):
        failed = role.run(**broken)
        assert failed.failed
        assert f"The verification of V-IPU controller {LABEL} failed: its IPUJob is Pending" in failed.text
        assert role.cluster.kubectl("get", "ipujobs", "--all-namespaces") == ""
    assert role.apply() > 0
    assert partitions(vipu) == set()
