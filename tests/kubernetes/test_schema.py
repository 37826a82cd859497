# SPDX-License-Identifier: GPL-3.0-or-later
"""The custom resource at a real API server: published examples, columns, scaling and rejected fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import CRD, EXAMPLES, Cluster
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers

CLIENT_SIDE_APPLY_LIMIT = 262_144  # bytes of an annotation


def in_namespace(cluster: Cluster, ipujob: dict[str, Any], name: str = "sample") -> dict[str, Any]:
    return {**ipujob, "metadata": {"name": name, "namespace": cluster.namespace}}


@pytest.mark.parametrize("example", ["single-gcd-sample", "interactive-job", "single-gcd-sample-nfs"])
def test_published_examples_are_accepted_unchanged(cluster: Cluster, example: str) -> None:
    file = EXAMPLES / f"{example}.yaml"
    cluster.kubectl("apply", "--filename", file)
    (given,) = (each for each in yaml.safe_load_all(file.read_text()) if each and each["kind"] == "IPUJob")
    found = cluster.get("ipujob", given["metadata"]["name"])["spec"]
    defaults = {"cleanPodPolicy": "None", "restartPolicy": {"type": "Never", "backOffLimit": 3}}
    assert found == {**defaults, **given["spec"]}
    cluster.run("delete", "persistentvolume", "nfs-shared-storage", "--ignore-not-found", "--wait=false")


def test_columns(cluster: Cluster) -> None:
    cluster.create(in_namespace(cluster, first_form()))
    status = {
        "launcherStatus": "Running",
        "currentReplicas": 1,
        "desiredReplicas": 1,
        "lastMessage": "IPUJob default/sample is running.",
    }
    write_status(cluster, "sample", status)
    header, line = cluster.kubectl("get", "ipujobs.graphcore.ai").splitlines()
    assert header.split() == ["NAME", "STATUS", "AGE"]
    assert line.split()[:2] == ["sample", "Running"]
    header, line = cluster.kubectl("get", "ipujobs", "--output=wide").splitlines()
    assert header.split() == ["NAME", "STATUS", "CURRENT", "DESIRED", "LASTMESSAGE", "AGE"]
    assert line.split()[:4] == ["sample", "Running", "1", "1"]
    assert cluster.kubectl("get", "ij", "--output=name") == "ipujob.graphcore.ai/sample\n"


def test_users_cannot_write_the_status_with_the_job(cluster: Cluster) -> None:
    cluster.create({**in_namespace(cluster, first_form()), "status": {"launcherStatus": "Succeeded"}})
    assert "status" not in cluster.get("ipujob", "sample")


@pytest.mark.parametrize("ipujob", [first_form(), second_form()])
def test_jobs_of_both_forms_can_be_scaled(cluster: Cluster, ipujob: dict[str, Any]) -> None:
    cluster.create(in_namespace(cluster, ipujob))
    cluster.kubectl("scale", "ipujob/sample", "--replicas=3")
    spec = cluster.get("ipujob", "sample")["spec"]
    assert spec == {**ipujob["spec"], "jobInstances": 3}


def test_numbers_may_be_integers(cluster: Cluster) -> None:
    cluster.create(in_namespace(cluster, first_form(modelReplicas=4, ipusPerModelReplica=1)))
    assert cluster.get("ipujob", "sample")["spec"]["modelReplicas"] == 4


@pytest.mark.parametrize(
    ("ipujob", "message"),
    [
        (first_form(modelReplicas="four"), "spec.modelReplicas"),
        (first_form(modelReplicas="0"), "spec.modelReplicas"),
        (first_form(restartPolicy={"type": "Sometimes"}), 'spec.restartPolicy.type: Unsupported value: "Sometimes"'),
        (first_form(cleanPodPolicy="Some"), 'spec.cleanPodPolicy: Unsupported value: "Some"'),
        (first_form(workers=workers(0)), "spec.workers.replicas"),
        (first_form(workers={"replicas": 1}), "spec.workers.template: Required value"),
        (first_form(workers={"template": {"spec": {}}}), "spec.workers.template.spec.containers: Required value"),
        (first_form(workers={"template": {"spec": {"containers": []}}}), "spec.workers.template.spec.containers"),
        (first_form(interactive={"ttl": 0}), "spec.interactive.ttl"),
        (first_form(jobInstances=-1), "spec.jobInstances"),
    ],
)
def test_invalid_fields_are_named(cluster: Cluster, ipujob: dict[str, Any], message: str) -> None:
    error = cluster.rejection(in_namespace(cluster, ipujob))
    assert 'The IPUJob "sample" is invalid' in error
    assert message in error


def test_unknown_fields_of_pods_are_kept(cluster: Cluster) -> None:
    template = workers(container={"resources": {"limits": {"cpu": "1"}}}, hostIPC=True, tolerations=[{"key": "ipu"}])
    cluster.create(in_namespace(cluster, first_form(workers=template)))
    assert cluster.get("ipujob", "sample")["spec"]["workers"] == template


def test_explain_reads_well(cluster: Cluster) -> None:
    text = " ".join(cluster.kubectl("explain", "ipujob.spec.workers.replicas").split())
    assert "Number of workers of each instance." in text


def test_every_field_has_a_description() -> None:
    schema = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = schema["properties"]
    missing = [*undescribed(properties["spec"], "spec"), *undescribed(properties["status"], "status")]
    assert missing == []


def undescribed(schema: dict[str, Any], path: str) -> list[str]:
    """Return the paths of the fields without a description that ends like a sentence."""
    found = [] if schema.get("description", "").endswith(".") else [path]
    for name, inner in schema.get("properties", {}).items():
        found += undescribed(inner, f"{path}.{name}")
    if "items" in schema and schema["items"]["type"] == "object":
        found += undescribed(schema["items"], f"{path}[]")
    return found


def test_the_resource_can_be_applied_at_the_client() -> None:
    assert len(json.dumps(yaml.safe_load(CRD.read_text()))) < CLIENT_SIDE_APPLY_LIMIT


def write_status(cluster: Cluster, name: str, status: dict[str, Any]) -> None:
    """Replace the status of a job, as the operator does."""
    ipujob = cluster.get("ipujob", name)
    path = f"/apis/graphcore.ai/v1alpha1/namespaces/{cluster.namespace}/ipujobs/{name}/status"
    cluster.kubectl("replace", "--raw", path, "--filename=-", stdin=json.dumps({**ipujob, "status": status}))
