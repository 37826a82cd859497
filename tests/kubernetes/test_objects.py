# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of jobs at a real API server, which checks them and grants their rights."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from openipu.kubernetes.domain import job, manifests, pods, validation
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.pods import PodOptions
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers

OPTIONS = PodOptions(launcher_image="launcher:1", proxy="http://proxy", pull_secrets=("secret",), ipu_resource=True)


def created(cluster: Cluster, ipujob: dict[str, Any]) -> Job:
    """Create a job and return it as the operator reads it."""
    name = ipujob["metadata"]["name"]
    cluster.create({**ipujob, "metadata": {"name": name, "namespace": cluster.namespace}})
    found = cluster.get("ipujob", name)
    assert validation.problems(found) == []
    return job.read(found)


def objects(found: Job) -> list[dict[str, Any]]:
    """Return all objects of a job."""
    partitions = [
        Partition(f"p{instance}", "10.1.5.1", 8090, ("ipunode", "node1")) for instance in range(found.instances)
    ]
    return [
        *manifests.launcher_rights(found),
        *(manifests.config_map(found, instance) for instance in range(found.instances)),
        *(
            pods.worker(found, instance, index, partition, 0, OPTIONS)
            for instance, partition in enumerate(partitions)
            for index in range(found.shape.workers)
        ),
        *(pods.launcher(found, instance, partition, 0, OPTIONS) for instance, partition in enumerate(partitions)),
    ]


def example(name: str) -> dict[str, Any]:
    return next(
        each
        for each in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
        if each and each["kind"] == "IPUJob"
    )


@pytest.mark.parametrize(
    "ipujob",
    [
        example("single-gcd-sample"),
        example("interactive-job"),
        example("single-gcd-sample-nfs"),
        first_form(jobInstances=2, workers=workers(2)),
        second_form(workersPerJobInstance="2", interactive={"ttl": 60}),
        {**first_form(), "metadata": {"name": f"{'long-name.' * 24}x"}},
    ],
)
def test_the_api_server_accepts_all_objects(cluster: Cluster, ipujob: dict[str, Any]) -> None:
    found = created(cluster, ipujob)
    wanted = objects(found)
    cluster.create(*wanted)
    label = wanted[0]["metadata"]["labels"]["graphcore.ai/ipujob"]
    assert len(members(cluster, label)) == len(wanted)


def test_a_deleted_job_takes_its_objects_along(cluster: Cluster) -> None:
    found = created(cluster, first_form())
    cluster.create(*objects(found))
    cluster.kubectl("delete", "ipujob", "sample", "--cascade=foreground", "--timeout=50s")
    assert members(cluster, "sample") == []


def members(cluster: Cluster, label: str) -> list[Any]:
    """Return the objects with the label of a job."""
    kinds = ("configmap", "serviceaccount", "role", "rolebinding", "pod")
    return [each for kind in kinds for each in cluster.get(kind, selector=f"graphcore.ai/ipujob={label}")["items"]]


@pytest.mark.parametrize(
    ("action", "allowed"),
    [
        (("list", "pods"), True),
        (("watch", "pods"), True),
        (("create", "pods/sample-worker-0", "--subresource=exec"), True),
        (("get", "pods/sample-worker-0", "--subresource=exec"), True),
        (("create", "pods/sample-worker-1", "--subresource=exec"), False),
        (("get", "pods/sample-worker-1", "--subresource=exec"), False),
        (("create", "pods/other", "--subresource=exec"), False),
        (("delete", "pods"), False),
        (("get", "secrets"), False),
        (("create", "pods"), False),
    ],
)
def test_rights_of_the_launcher(cluster: Cluster, action: tuple[str, ...], allowed: bool) -> None:
    cluster.create(*manifests.launcher_rights(created(cluster, first_form())))
    account = f"system:serviceaccount:{cluster.namespace}:sample-launcher"
    answer = cluster.run("auth", "can-i", *action, f"--as={account}").stdout.strip()
    assert answer == ("yes" if allowed else "no")
