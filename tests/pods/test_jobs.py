# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs in real pods: mpirun on two workers, exit codes, sessions, release of the IPUs."""

from __future__ import annotations

import json
import re
from typing import Any

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.waiting import until
from tools.kubernetes.images import WORKER

SECONDS = 90.0
_PROGRAM = (
    'echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE: $IPUOF_VIPU_API_PARTITION_ID'
    ' GCD $IPUOF_VIPU_API_GCD_ID offset $POPDIST_REPLICA_INDEX_OFFSET"'
)


def job(command: list[str], **spec: Any) -> dict[str, Any]:
    """Return a job with two workers of four IPUs and two replicas each."""
    container = {"name": "main", "image": WORKER, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": "job"},
        "spec": {
            "ipusPerJobInstance": "8",
            "workersPerJobInstance": "2",
            "modelReplicasPerWorker": "2",
            "launcher": {"command": command},
            "workers": {"template": {"spec": {"containers": [container]}}},
            **spec,
        },
    }


def mpirun(program: str) -> list[str]:
    """Return the command of a launcher that runs a shell command on all slots."""
    return ["mpirun", "--bind-to", "none", "--mca", "btl_tcp_if_include", "lo,node0,eth0", "sh", "-c", program]


def wait(cluster: Cluster, name: str, *states: str) -> dict[str, Any]:
    """Wait until a job has one of the states, and return it."""

    def found() -> dict[str, Any] | None:
        thing: dict[str, Any] = cluster.get("ipujob", name)
        return thing if (thing.get("status") or {}).get("launcherStatus") in states else None

    until(found, SECONDS, lambda: cluster.kubectl("describe", "ipujob,pods"))
    thing = found()
    assert thing is not None
    return thing


def partitions(vipu: InProcess) -> set[str]:
    """Return the ids of all partitions."""
    return {each.id for each in vipu.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions}


def test_each_rank_of_mpirun_receives_its_ipus(cluster: Cluster, vipu: InProcess) -> None:
    cluster.create(job(mpirun(_PROGRAM)))
    found = wait(cluster, "job", "Succeeded", "Failed")
    printed = cluster.kubectl("logs", "job-launcher")
    assert found["status"]["launcherStatus"] == "Succeeded", printed
    partition = f"p-job-{cluster.namespace}-0"
    expected = [f"rank {rank} of 4: {partition} GCD {rank // 2} offset {rank // 2 * 2}" for rank in range(4)]
    assert sorted(line for line in printed.splitlines() if line.startswith("rank")) == expected
    assert partition in partitions(vipu)
    cluster.kubectl("delete", "ipujob", "job", "--timeout=60s")
    assert partition not in partitions(vipu)


def test_a_job_starts_again_after_an_exit_code(cluster: Cluster) -> None:
    program = mpirun("exit 3")
    policy = {"type": "ExitCode", "exitCodes": "3", "backOffLimit": 1}
    cluster.create(job(program, restartPolicy=policy))
    found = wait(cluster, "job", "Failed")
    assert found["status"]["restartCount"] == 1
    assert "ended with exit code 3" in found["status"]["lastMessage"]


def test_a_session_runs_commands_on_the_workers(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--filename", EXAMPLES / "interactive-job.yaml")
    wait(cluster, "interactive-sample-job", "Running")
    run = ["exec", "interactive-sample-job-launcher", "--"]
    until(lambda: cluster.run(*run, "true").returncode == 0, SECONDS)
    printed = cluster.kubectl(*run, "mpirun", "--allow-run-as-root", "-np", "1", "sh", "-c", _PROGRAM)
    assert printed.startswith(f"rank 0 of 1: p-interactive-sample-job-{cluster.namespace}-0 GCD 0 ")
    # Launchers reach their workers only.
    denied = cluster.run(*run, "/opt/ipujob/kubectl", "get", "secrets")
    assert denied.returncode != 0
    assert "secrets is forbidden" in denied.stderr


def test_the_published_example_reaches_the_printed_states(cluster: Cluster) -> None:
    applied = cluster.kubectl("apply", "--filename", EXAMPLES / "single-gcd-sample.yaml")
    assert applied == "ipujob.graphcore.ai/ipujob-sample created\n"
    wait(cluster, "ipujob-sample", "Running")
    until(lambda: "rank 0" in cluster.run("logs", "ipujob-sample-launcher").stdout, SECONDS)
    pods = cluster.kubectl("get", "pods")
    assert re.search(r"^ipujob-sample-launcher +1/1 +Running +0 ", pods, re.MULTILINE), pods
    assert re.search(r"^ipujob-sample-worker-0 +1/1 +Running +0 ", pods, re.MULTILINE), pods
    header, line = cluster.kubectl("get", "ipujobs.graphcore.ai").splitlines()
    assert header.split() == ["NAME", "STATUS", "AGE"]
    assert line.split()[:2] == ["ipujob-sample", "Running"]
    cluster.kubectl("exec", "ipujob-sample-worker-0", "--", "touch", "/tmp/finish")
    wait(cluster, "ipujob-sample", "Succeeded")


def test_a_volume_without_a_claim_is_the_reason_of_a_pending_job(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--filename", EXAMPLES / "single-gcd-sample-nfs.yaml")
    try:
        until(lambda: "unbound" in json.dumps(cluster.get("ipujob", "ipujob-sample").get("status")), SECONDS)
        assert cluster.get("ipujob", "ipujob-sample")["status"]["launcherStatus"] == "Pending"
    finally:
        cluster.kubectl("delete", "ipujob", "ipujob-sample", "--timeout=60s")
        cluster.kubectl("delete", "persistentvolume", "nfs-shared-storage", "--wait=false")
