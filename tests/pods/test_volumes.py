# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes of jobs: the published example, whose volume has another class than its claim, and a corrected copy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.pods.jobs import SECONDS, delete, wait
from tests.waiting import until

EXAMPLE = EXAMPLES / "single-gcd-sample-nfs.yaml"
MOUNT = "/mnt/sample"


def corrected(folder: Path) -> list[dict[str, Any]]:
    """Return the objects of the example with one class, and with a folder of the node instead of an NFS server.

    The kernels of test machines may lack NFS. Recycling a volume would need an image of Kubernetes.
    """
    volume, claim, job = (each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each)
    volume["spec"]["storageClassName"] = claim["spec"]["storageClassName"]
    volume["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
    del volume["spec"]["mountOptions"], volume["spec"]["nfs"]
    volume["spec"]["hostPath"] = {"path": str(folder), "type": "Directory"}
    return [volume, claim, job]


def test_a_volume_without_a_claim_is_the_reason_of_a_pending_job(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--filename", EXAMPLE)
    try:
        until(lambda: "unbound" in json.dumps(cluster.get("ipujob", "ipujob-sample").get("status")), SECONDS)
        assert cluster.get("ipujob", "ipujob-sample")["status"]["launcherStatus"] == "Pending"
    finally:
        delete(cluster)
        cluster.kubectl("delete", "persistentvolume", "nfs-shared-storage")


def test_a_job_with_a_volume_runs_to_its_end(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "dataset").write_text("cifar-10\n")
    cluster.create(*corrected(tmp_path))
    try:
        wait(cluster, "ipujob-sample", "Running")
        until(lambda: "rank 0" in cluster.run("logs", "ipujob-sample-launcher").stdout, SECONDS)
        # The launcher and the worker have the same volume, and files outlive their pods.
        for name in ("launcher", "worker-0"):
            run = ["exec", f"ipujob-sample-{name}", "--", "sh", "-c"]
            assert cluster.kubectl(*run, f"cat {MOUNT}/dataset") == "cifar-10\n"
            cluster.kubectl(*run, f"echo model >{MOUNT}/{name}.checkpoint")
        cluster.kubectl("exec", "ipujob-sample-worker-0", "--", "touch", "/tmp/finish")
        wait(cluster, "ipujob-sample", "Succeeded")
        delete(cluster)
        assert sorted(each.name for each in tmp_path.glob("*.checkpoint")) == [
            "launcher.checkpoint",
            "worker-0.checkpoint",
        ]
    finally:
        delete(cluster, "ipujobs,persistentvolumeclaims")
        cluster.kubectl("delete", "persistentvolume", "nfs-shared-storage")
