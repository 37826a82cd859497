# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs with SSH at a real API server. Pods are hollow: ``test_ssh.py`` runs sshd, ssh and mpirun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.init_containers import InitContainer
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, patch_status, submit
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")


def ssh_job(**spec: Any) -> dict[str, Any]:
    return first_form(launcher={"command": ["mpirun"], "remoteShell": "SSH"}, workers=workers(2), **spec)


def ports(job: RunningJob) -> set[int]:
    """Return the ports that the workers of a job have on their node."""
    return {
        each["hostPort"]
        for name, pod in job.pods().items()
        if "-worker-" in name
        for each in pod["spec"]["containers"][0]["ports"]
    }


def secrets(cluster: Cluster) -> dict[str, str]:
    """Return the UIDs of the Secrets with keys by name."""
    listed = cluster.get("secrets", selector="graphcore.ai/ipujob")["items"]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in listed}


def test_keys_live_as_long_as_the_job(operator: Operator) -> None:
    job = submit(operator, ssh_job(restartPolicy={"type": "OnFailure"}))
    job.wait("Running")
    keys, before = secrets(operator.cluster), ports(job)
    assert len(keys) == 1 and next(iter(keys)).startswith("job-ssh-")
    job.end("job-launcher", 1)
    until(lambda: job.status.get("restartCount") == 1, SECONDS)
    job.wait("Running")
    assert secrets(operator.cluster) == keys
    assert not ports(job) & before  # a port that another program uses does not stop the job for good
    job.delete()
    until(lambda: not secrets(operator.cluster), SECONDS)


def test_workers_of_all_jobs_have_different_ports(operator: Operator) -> None:
    jobs = [submit(operator, ssh_job(), name) for name in ("job", "other")]
    for each in jobs:
        each.wait("Running")
    operator.kill()
    operator.start()  # the ports are known from the pods
    jobs.append(submit(operator, ssh_job(), "third"))
    jobs[-1].wait("Running")
    found = [port for each in jobs for port in ports(each)]
    assert len(found) == len(set(found)) == 6


def test_the_remote_shell_can_change_while_the_job_is_suspended(operator: Operator) -> None:
    job = submit(operator, first_form(workers=workers(2)))
    job.wait("Running")
    change(job, suspend=True)
    job.wait("Suspended")
    until(lambda: not job.pods(), SECONDS)
    change(job, suspend=False, launcher={"remoteShell": "SSH"})
    job.wait("Running")
    rules = operator.cluster.get("role", "job-launcher")["rules"]
    assert [rule["resources"] for rule in rules] == [["pods"]]
    assert "sshd.sh" in operator.cluster.get("configmap", "job-config")["data"]
    assert len(secrets(operator.cluster)) == 1


def change(job: RunningJob, **spec: Any) -> None:
    """Merge fields into the specification of a job."""
    job.cluster.kubectl("patch", "ipujob", job.name, "--type=merge", "--patch", json.dumps({"spec": spec}))


@pytest.fixture
def init_container(operator: Operator, tmp_path: Path) -> Iterator[InitContainer]:
    """Yield the init container of a job with SSH, which has not started."""
    job = submit(operator, ssh_job())
    job.wait("Running")
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("identity", "known_hosts"):
        (keys / name).write_text(f"{name} of the job\n")
    made = InitContainer(job, tmp_path, options=("--ssh-keys", str(keys)))
    yield made
    made.kill()


def test_the_init_container_delivers_keys_and_addresses(init_container: InitContainer) -> None:
    job = init_container.job
    expected = ""
    for index in range(2):
        address, name = f"10.5.0.{index}", f"job-worker-{index}"
        patch_status(job.cluster, name, {"podIP": address, "podIPs": [{"ip": address}]})
        port = job.pods()[name]["metadata"]["labels"]["graphcore.ai/ssh-port"]
        expected += f"Host {name}\n  HostName {address}\n  Port {port}\n"
    init_container.start()
    assert init_container.wait() == 0, init_container.log
    assert (init_container.tools / "ssh_config").read_text().startswith(expected + "Host *\n")
    for name in ("identity", "known_hosts"):
        assert (init_container.tools / name).read_text() == f"{name} of the job\n"
    assert not (init_container.tools / "kubectl").exists()


def test_the_init_container_ignores_workers_that_are_being_deleted(init_container: InitContainer) -> None:
    job = init_container.job
    cluster = job.cluster
    for index in range(2):
        patch_status(cluster, f"job-worker-{index}", {"podIP": "10.5.0.9", "podIPs": [{"ip": "10.5.0.9"}]})
    # A finalizer keeps the worker, as kubelet does until its containers have ended.
    cluster.kubectl("patch", "pod", "job-worker-1", "--patch", '{"metadata":{"finalizers":["example.com/kept"]}}')
    cluster.kubectl("delete", "pod", "job-worker-1", "--wait=false")
    former = cluster.get("pod", "job-worker-1")
    assert former["metadata"]["deletionTimestamp"]
    init_container.start()
    until(lambda: "waiting for workers" in init_container.log, SECONDS, lambda: init_container.log)
    assert "job-worker-1" in init_container.log
    cluster.kubectl("patch", "pod", "job-worker-1", "--patch", '{"metadata":{"finalizers":null}}')
    # The operator creates the worker again.
    until(lambda: _uid(job.pods().get("job-worker-1")) not in ("", former["metadata"]["uid"]), SECONDS)
    patch_status(cluster, "job-worker-1", {"podIP": "10.5.0.7", "podIPs": [{"ip": "10.5.0.7"}]})
    assert init_container.wait() == 0, init_container.log
    assert "HostName 10.5.0.7" in (init_container.tools / "ssh_config").read_text()


def _uid(pod: dict[str, Any] | None) -> str:
    return "" if pod is None else str(pod["metadata"]["uid"])
