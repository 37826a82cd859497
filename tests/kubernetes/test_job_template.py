# SPDX-License-Identifier: GPL-3.0-or-later
"""Job template of the operator: in the execution environment, with a kubeconfig as AWX gives it to the job."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.ee.conftest import image
from tests.ee.desk import Desk
from tests.kubernetes.cluster import CRD, ROOT, Cluster
from tests.kubernetes.releases import CompletingNode
from tests.kubernetes.roles import ACCESS_KEY, Role
from tests.kubernetes.test_role import POD, remove_crd
from tests.unit.collection.awx.content import load
from tools.ee.image import Image
from tools.ee.jobs import Controller

__all__ = ["image"]

pytestmark = pytest.mark.timeout(1800)  # with the build of the image
NODE = "hollow-job-1"
CREDENTIAL = "POD Kubernetes"
MACHINES = "name,unit,bmc_mac,gw_mac,rnic_mac\nm1,1,02:00:00:00:00:01,02:00:00:00:00:02,02:00:00:00:00:03\n"
SOURCE = "inventory/pod/pod.yml"


@pytest.fixture
def role(control_plane: Cluster, tmp_path: Path) -> Iterator[Role]:
    """Yield the role with a node, and remove at the end what it has installed."""
    node = CompletingNode(control_plane.kubeconfig, name=NODE, labels={})
    node.start()
    variables = {
        "ipu_operator_credentials": [{"user_id": "jobs", "access_key": ACCESS_KEY}],
        # The API server does not reach the webhooks of hollow pods.
        "ipu_operator_values": {"admissionWebhooks": {"scope": ["elsewhere"]}},
        "ipu_operator_verify": False,
        "ipu_operator_timeout": 60,
    }
    made = Role(control_plane, tmp_path, "role-job", variables)
    remove_crd(made)
    try:
        yield made
        controllers = [{"host": "10.3.1.101", "port": 8090, "label": "ipunode=pod1", "nodes": [NODE]}]
        made.apply(ipu_operator_state="absent", ipu_operator_controllers=controllers)
    finally:
        node.stop()
        # Other tests need the custom resource.
        control_plane.kubectl("apply", "--filename", CRD)
        control_plane.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai", "--timeout=30s")


@pytest.fixture
def desk(image: Image, role: Role, tmp_path: Path) -> Desk:
    """Return an AWX with the POD and the variables of the role, without a kubeconfig."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "playbooks", project / "playbooks")
    shutil.copy(ROOT / "ansible.cfg", project)
    folder = project / "inventory" / "pod"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "machines.csv").write_text(MACHINES)
    (folder / "pod.yml").write_text(f"{POD}kubernetes: {{label: ipunode=pod1, node_names: {{server2: {NODE}}}}}\n")
    variables = {**role.variables, "ipu_operator_namespace": role.namespace}
    (folder / "group_vars" / "all.yml").write_text(yaml.safe_dump(variables))
    content = load(awx_pod_file=SOURCE)
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    # The job gets the content of a file, and no other file of this machine.
    config = role.cluster.kubectl("config", "view", "--raw", "--flatten")
    controller = Controller(image, project, jobs, content.credential_types)
    return Desk(controller, {CREDENTIAL: {"kubeconfig": config}}, content, SOURCE)


def test_a_job_installs_the_operator(desk: Desk, role: Role) -> None:
    template, before = "Kubernetes operator", role.versions()
    assert desk.run(template, job_type="check").changed > 0
    assert role.versions() == before
    assert desk.run(template).changed > 0
    assert role.labels(NODE)["ipunode"] == "pod1"
    config = role.release.get("configmap", "gc-ipu-operator-vipu-controllers")
    assert config["data"]["controllers.yaml"] == "- 10.3.1.101:8090:ipunode=pod1\n"
    assert desk.run(template).changed == 0
