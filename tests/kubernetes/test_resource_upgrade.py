# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrade of the custom resource below a running operator and its jobs, as the README of the chart describes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import CRD, Cluster
from tests.kubernetes.operators import SECONDS, Operator, partitions, submit
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")


def former() -> dict[str, Any]:
    """Return the custom resource without fields that a former release did not have."""
    found: dict[str, Any] = yaml.safe_load(CRD.read_text())
    [version] = found["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["suspend"], spec["launcher"]["properties"]["remoteShell"], spec["cleanPodPolicy"]["default"]
    version["additionalPrinterColumns"] = version["additionalPrinterColumns"][:1]
    return found


def is_served(cluster: Cluster, field: str) -> bool:
    """Return whether the API server serves the schema with a field of the specification."""
    return cluster.run("explain", f"ipujob.spec.{field}").returncode == 0


@pytest.fixture
def former_resource(cluster: Cluster) -> Iterator[None]:
    """Install the former custom resource, and the present one at the end: other tests need it."""
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(former()))
    until(lambda: not is_served(cluster, "suspend"), SECONDS)
    yield
    cluster.kubectl("apply", "--filename", CRD)
    until(lambda: is_served(cluster, "suspend"), SECONDS)


@pytest.mark.usefixtures("former_resource")
def test_jobs_live_on_when_the_custom_resource_is_upgraded(operator: Operator) -> None:
    cluster = operator.cluster
    suspended = ("patch", "ipujob", "job", "--type=merge", '--patch={"spec": {"suspend": true}}')
    job = submit(operator, first_form())
    job.wait("Running")
    before = {name: each["metadata"]["uid"] for name, each in job.pods().items()}
    cluster.kubectl(*suspended)
    assert "suspend" not in job.thing["spec"]  # the API server removes unknown fields
    cluster.kubectl("apply", "--filename", CRD)
    until(lambda: is_served(cluster, "suspend"), SECONDS)
    until(lambda: cluster.kubectl("get", "ipujobs").split()[:3] == ["NAME", "STATUS", "AGE"], SECONDS)
    assert job.wait("Running")["restartCount"] == 0
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == before
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    job.delete()
    # Kubernetes follows the changed custom resource after half a minute or more, and then deletes the objects.
    kinds, selector = "configmaps,roles,rolebindings,serviceaccounts", "--selector=graphcore.ai/ipujob=job"
    left = ("get", kinds, selector, "--output=name")
    until(lambda: cluster.kubectl(*left) == "", 180)
    # The operator and new jobs use the new fields, without a restart.
    again = submit(operator, first_form())
    again.wait("Running")
    cluster.kubectl(*suspended)
    again.wait("Suspended")
    until(lambda: not again.pods() and not partitions(operator), SECONDS, lambda: operator.log[-3000:])
