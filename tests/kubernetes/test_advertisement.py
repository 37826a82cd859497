# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that advertise IPUs, at a real API server with its real scheduler and real V-IPU controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess, InstantLife, partition
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.nodes import ApiNode, api_node, node_of, obstacle, pod
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.kubernetes.test_proxy import release, reserve
from tests.waiting import until

LINE = "node advertises IPUs"
CONTROL_PLANE = {"node-role.kubernetes.io/master": ""}


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]) -> Iterator[Proxy]:
    """Yield a proxy that advertises the IPUs of one V-IPU controller. It is not started."""
    cluster.create_account(OPERATOR)
    made = Proxy(cluster, tmp_path, vipu(), options=("--advertise",))
    made.controllers.write_text(f"{made.vipu.address}:ipunode={cluster.namespace}\n")
    yield made
    made.kill()


@pytest.fixture
def worker(cluster: Cluster) -> Iterator[ApiNode]:
    """Yield a node with the label of the controller."""
    with api_node(cluster, "worker", ipunode=cluster.namespace) as node:
        yield node


def advertises(node: ApiNode, ipus: str | None) -> None:
    """Wait until a node advertises IPUs, None for no resource."""
    until(lambda: node.ipus == (ipus, ipus), what=lambda: str(node.thing["status"]["capacity"]))


def test_labelled_workers_advertise(cluster: Cluster, proxy: Proxy, worker: ApiNode) -> None:
    labels: dict[str, Any] = {"ipunode": cluster.namespace}
    with api_node(cluster, "other") as other, api_node(cluster, "master", **labels, **CONTROL_PLANE) as master:
        proxy.start()
        advertises(worker, "32")
        assert worker.thing["metadata"]["annotations"]["graphcore.ai/advertised-by"] == cluster.namespace
        assert worker.thing["status"]["capacity"]["cpu"] == "64"
        assert other.ipus == (None, None)
        other.label(f"ipunode={cluster.namespace}")
        advertises(other, "32")  # each node of a controller has all its IPUs
        assert master.ipus == (None, None)  # this was a later round, and rounds do not overlap
        other.label("ipunode-")
        advertises(other, None)
        assert "graphcore.ai/advertised-by" not in other.thing["metadata"].get("annotations", {})
        proxy.kill()
        proxy.options = ("--advertise", "--advertise-on-control-plane")
        proxy.start()
        advertises(master, "32")


def test_partitions_of_jobs_do_not_change_the_value_but_those_of_others_do(proxy: Proxy, worker: ApiNode) -> None:
    proxy.options = ("--advertise", "--sweep-seconds", "3600")  # these jobs do not exist
    proxy.start()
    advertises(worker, "32")
    version = worker.thing["metadata"]["resourceVersion"]
    uids = [reserve(proxy, f"job-{number}", 8, f"uid-{number}", 0)[0] for number in range(4)]
    assert uids == [200] * 4
    until(lambda: proxy.call("GET", "/stats")[1]["total"]["available"] == 0)
    assert release(proxy, "uid-0", "job-0") == 204
    until(lambda: proxy.call("GET", "/stats")[1]["total"]["available"] == 8)
    assert (worker.ipus, proxy.log.count(LINE)) == (("32", "32"), 1)
    assert worker.thing["metadata"]["resourceVersion"] == version
    proxy.vipu.user.CreatePartition(partition("foreign", 4))
    advertises(worker, "28")
    proxy.vipu.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="foreign"))
    advertises(worker, "32")


def test_the_value_of_a_silent_controller_is_kept(proxy: Proxy, worker: ApiNode, tmp_path: Path) -> None:
    proxy.start()
    advertises(worker, "32")
    address = proxy.vipu.endpoints[0]
    proxy.vipu.stop()
    until(lambda: "controller does not respond" in proxy.log)
    proxy.kill()
    proxy.start()  # it knows nothing of the controller
    until(lambda: proxy.log.count("controller does not respond") == 2)
    again = InProcess(tmp_path / "vipu-0.db", InstantLife, user=address)
    try:
        until(lambda: "controller responds again" in proxy.log)
        assert (worker.ipus, proxy.log.count(LINE)) == (("32", "32"), 1)
    finally:
        again.stop()


def test_the_value_of_a_controller_that_stays_silent_becomes_zero(
    proxy: Proxy, worker: ApiNode, tmp_path: Path
) -> None:
    proxy.options = ("--advertise", "--advertise-keep-seconds", "1")
    proxy.start()
    advertises(worker, "32")
    address = proxy.vipu.endpoints[0]
    proxy.vipu.stop()
    advertises(worker, "0")
    again = InProcess(tmp_path / "vipu-0.db", InstantLife, user=address)
    try:
        advertises(worker, "32")
    finally:
        again.stop()


def test_the_list_of_controllers_decides(proxy: Proxy, worker: ApiNode, vipu: Callable[..., InProcess]) -> None:
    proxy.start()
    advertises(worker, "32")
    second, label = vipu(4), proxy.cluster.namespace
    proxy.controllers.write_text(f"{proxy.vipu.address}:ipunode={label},{second.address}:ipunode={label}\n")
    until(lambda: worker.ipus == ("48", "48"), 40)
    proxy.controllers.write_text(f"{second.address}:ipunode=elsewhere\n")
    until(lambda: worker.ipus == (None, None), 40)


def test_only_own_values_are_removed_when_it_is_switched_off(cluster: Cluster, proxy: Proxy, worker: ApiNode) -> None:
    with api_node(cluster, "plugin") as plugin:
        plugin.patch_status({"capacity": {"graphcore.ai/ipu": "4"}, "allocatable": {"graphcore.ai/ipu": "4"}})
        proxy.start()
        advertises(worker, "32")
        proxy.kill()
        proxy.options = ("--no-advertise",)
        proxy.start()
        advertises(worker, None)
        assert plugin.ipus == ("4", "4")


def test_the_scheduler_uses_the_value(cluster: Cluster, proxy: Proxy, worker: ApiNode) -> None:
    proxy.start()
    advertises(worker, "32")
    # Elsewhere, nodes of other tests may advertise IPUs.
    here = {"nodeSelector": {"ipunode": cluster.namespace}}
    cluster.create(pod(cluster, "fits", 32, **here), pod(cluster, "late", 1, **here))
    until(lambda: node_of(cluster, "fits") == worker.name, what=lambda: obstacle(cluster, "fits"))
    until(lambda: "Insufficient graphcore.ai/ipu" in obstacle(cluster, "late"))
    cluster.kubectl("delete", "pod", "fits", "--force", "--grace-period=0")
    until(lambda: node_of(cluster, "late") == worker.name, 60)
