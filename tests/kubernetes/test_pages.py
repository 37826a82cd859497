# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the pages of Kubernetes work as printed, each page with a control plane of its own.

Pods are hollow, so no program of the operator runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.docs.blocks import blocks
from tests.docs.shell import Shell, run_page
from tests.kubernetes.charts import MONITORING
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.pages import page_shell
from tests.kubernetes.planes import new_plane, started
from tests.kubernetes.releases import CompletingNode

pytestmark = pytest.mark.timeout(1800)  # a page runs Ansible several times
HOW_TO = ROOT / "docs/how-to/kubernetes.md"
NODES = ("poplar1", "server2", "server3")  # of the pages
NAMESPACE = "ipu-operator"  # of the role and the pages. That of the shell is ``default``.
DELETED_JOB = "tests/kubernetes/deleted_job.yml"
# Variables of the inventory that the page does not have: its key is in a vault, and hollow pods run no job.
VARIABLES = "\nvault_vipu_access_key: secret\nipu_operator_verify: false\n"


@pytest.fixture
def empty() -> Iterator[Cluster]:
    """Yield a new cluster with the nodes of the pages."""
    with started(new_plane()) as cluster:
        nodes = [CompletingNode(cluster.kubeconfig, name=name, labels={}) for name in NODES]
        for node in nodes:
            node.start()
        yield cluster
        for node in nodes:
            node.stop()


@pytest.mark.parametrize("page", ["charts/ipu-operator/README.md", "docs/reference/kubernetes-operator.md"])
def test_the_commands_of_a_page_work(page: str, empty: Cluster, tmp_path: Path) -> None:
    with page_shell(empty, tmp_path) as shell:
        run_page(ROOT / page, shell)


def test_the_commands_of_the_alerts_work(empty: Cluster, tmp_path: Path) -> None:
    empty.create(*(custom_resource(kind) for kind in MONITORING))
    for kind in MONITORING:
        empty.kubectl("wait", "--for=condition=Established", f"crd/{kind.lower()}s.monitoring.coreos.com")
    with page_shell(empty, tmp_path) as shell:
        shell.run(f"helm install gc charts/ipu-operator --namespace {NAMESPACE} --create-namespace", 240)
        run_page(ROOT / "docs/how-to/kubernetes-alerts.md", shell)
        assert releases(shell) == [("gc", NAMESPACE)]
    for kind in MONITORING:
        found = empty.get(f"{kind.lower()}s", everywhere=True)["items"]
        assert [each["metadata"]["namespace"] for each in found] == [NAMESPACE]


def test_the_commands_of_the_how_to_work(empty: Cluster, tmp_path: Path) -> None:
    with page_shell(empty, tmp_path, (DELETED_JOB,)) as shell:
        write_inventory(tmp_path / "openipu.pod/inventory")
        home = tmp_path / "home"
        for name, content in ((".kube/pod64", empty.kubeconfig.read_text()), ("vipu/ca.crt", "certificate\n")):
            (home / name).parent.mkdir()
            (home / name).write_text(content)
        run_page(HOW_TO, shell, 600)
        assert releases(shell) == []  # the role removes those of its namespace only
    assert empty.get("ipujobs")["items"] == []


def releases(shell: Shell) -> list[tuple[str, str]]:
    """Return name and namespace of all Helm releases."""
    listed = json.loads(shell.run("helm list --all-namespaces --output json 2>/dev/null", 60))
    return [(each["name"], each["namespace"]) for each in listed]


def custom_resource(kind: str) -> dict[str, Any]:
    """Return a custom resource of the Prometheus operator, which accepts all fields."""
    group, plural = "monitoring.coreos.com", f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def write_inventory(folder: Path) -> None:
    """Write an inventory with the YAML of the page: to ``pod.yml``, and to the variables of the controllers."""
    shutil.copytree(folder / "pod64", folder / "mine")
    pod, variables, *_ = [each.text for each in blocks(HOW_TO) if each.language == "yaml"]
    for name, text in (("pod.yml", pod), ("group_vars/controllers.yml", variables), ("group_vars/all.yml", VARIABLES)):
        with (folder / "mine" / name).open("a") as file:
            file.write(text)
