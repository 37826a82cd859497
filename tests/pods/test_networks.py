# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of MPI on several workers, in the network of hosts and in that of pods, with both remote shells."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.pods.conftest import WAIT
from tests.pods.jobs import job, wait
from tools.kubernetes.site import NODE, NODE_ADDRESS

PODS = ipaddress.ip_network("10.244.0.0/24")
PROGRAM = (Path(__file__).parent / "allreduce.py").read_text()


@pytest.fixture(scope="module")
def pod_network(release: Release) -> Iterator[None]:
    """Put the pods of jobs into the network of pods, as with SR-IOV, for the last tests of this module."""
    release.upgrade("--reuse-values", "--set", "worker.hostNetwork=false", *WAIT)
    yield
    release.helm("rollback", release.name, *WAIT)


def run(cluster: Cluster, interface: str, remote_shell: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Run the program on two workers with two ranks each. Return the printed lines and the pods."""
    command = ["mpirun", "--bind-to", "none", "--mca", "btl_tcp_if_include", interface, "python3", "-c", PROGRAM]
    cluster.create(job([], launcher={"command": command, "remoteShell": remote_shell}))
    state = wait(cluster, "job", "Succeeded", "Failed")["status"]["launcherStatus"]
    printed = cluster.kubectl("logs", "job-launcher")
    assert state == "Succeeded", printed
    found = cluster.get("pods", selector="graphcore.ai/ipujob=job")["items"]
    return sorted(line for line in printed.splitlines() if line.startswith("rank ")), found


def lines(cluster: Cluster, hosts: list[str], shell: str) -> list[str]:
    """Return the lines that the program prints on these hosts."""
    return [f"rank {rank} on {hosts[rank // 2]} by {shell}: sum 10, p-job-{cluster.namespace}-0" for rank in range(4)]


def test_workers_of_one_host_have_different_ssh_ports(cluster: Cluster) -> None:
    printed, pods = run(cluster, "lo", "SSH")
    assert printed == lines(cluster, [NODE, NODE], "ssh")
    assert {each["status"]["podIP"] for each in pods} == {NODE_ADDRESS}
    # The launcher has no right to run commands in pods, and the operator has made its keys.
    rules = cluster.get("role", "job-launcher")["rules"]
    assert [rule["resources"] for rule in rules] == [["pods"]]


@pytest.mark.usefixtures("pod_network")
@pytest.mark.parametrize(("remote_shell", "shell"), [("KubeExec", "exec"), ("SSH", "ssh")])
def test_workers_reach_each_other_in_the_network_of_pods(cluster: Cluster, remote_shell: str, shell: str) -> None:
    printed, pods = run(cluster, "eth0", remote_shell)
    assert printed == lines(cluster, ["job-worker-0", "job-worker-1"], shell)
    addresses = {ipaddress.ip_address(each["status"]["podIP"]) for each in pods}
    assert len(addresses) == 3
    assert all(each in PODS for each in addresses)
