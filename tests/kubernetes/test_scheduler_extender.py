# SPDX-License-Identifier: GPL-3.0-or-later
"""A real kube-scheduler that filters nodes with the proxy."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.nodes import ApiNode, api_node, node_of, obstacle, pod
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.kubernetes.test_proxy import release, reserve
from tests.ports import free_port
from tests.waiting import until
from tools.kubernetes import programs
from tools.kubernetes.control_plane import LAST_INSECURE

SECONDS = 60.0  # for a pod; after a failed attempt, the next one follows after 10 s at most


@dataclass
class Scheduler:
    """Process ``kube-scheduler`` that schedules the pods that name it."""

    cluster: Cluster
    folder: Path
    extender: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return f"{self.cluster.namespace}-scheduler"

    @property
    def log(self) -> str:
        return (self.folder / "scheduler.log").read_text()

    def start(self) -> None:
        version = programs.minor_version(self.cluster.kubectl_program.parent)
        configuration = {
            "apiVersion": f"kubescheduler.config.k8s.io/{_api(version)}",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.cluster.kubeconfig.with_name("kube-scheduler.kubeconfig"))},
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": self.name}],
            "extenders": [self.extender],
        }
        file = self.folder / "scheduler.yaml"
        file.write_text(yaml.safe_dump(configuration))
        program = self.cluster.kubectl_program.with_name("kube-scheduler")
        command = [program, f"--config={file}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--v=2"]
        command += ["--port=0"] if version <= LAST_INSECURE else []
        with (self.folder / "scheduler.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _api(minor_version: int) -> str:
    return "v1" if minor_version >= 25 else "v1beta2" if minor_version >= 22 else "v1beta1"


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]) -> Iterator[Proxy]:
    """Yield a proxy with a V-IPU controller of 32 IPUs and one of 16."""
    cluster.create_account(OPERATOR)
    made = Proxy(cluster, tmp_path, vipu(), options=("--scheduler-extender",))
    made.controllers.write_text(
        f"{made.vipu.address}:ipunode={cluster.namespace}-large\n{vipu(4).address}:ipunode={cluster.namespace}-small\n"
    )
    made.start()
    yield made
    made.kill()


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[dict[str, ApiNode]]:
    """Yield a node for each controller, and one without."""
    space = cluster.namespace
    with (
        api_node(cluster, "large", ipunode=f"{space}-large", space=space) as large,
        api_node(cluster, "small", ipunode=f"{space}-small", space=space) as small,
        api_node(cluster, "plain", space=space) as plain,
    ):
        yield {"large": large, "small": small, "plain": plain}


@pytest.fixture
def start(cluster: Cluster, proxy: Proxy, tmp_path: Path) -> Iterator[Callable[..., Scheduler]]:
    """Yield a function that starts a scheduler with fields of its extender."""
    made: list[Scheduler] = []

    def start(**fields: Any) -> Scheduler:
        extender = {"urlPrefix": f"{proxy.url}/scheduler", "filterVerb": "filter", "httpTimeout": "5s", **fields}
        scheduler = Scheduler(cluster, tmp_path, extender)
        made.append(scheduler)
        scheduler.start()
        return scheduler

    yield start
    for each in made:
        each.kill()


def submit(scheduler: Scheduler, name: str, ipus: int = 0, annotation: str = "", **selector: str) -> None:
    """Create a pod. It may run on the nodes of this test."""
    cluster = scheduler.cluster
    found = pod(
        cluster,
        name,
        ipus,
        schedulerName=scheduler.name,
        nodeSelector={"space": cluster.namespace, **selector},
    )
    found["metadata"]["annotations"] = {"graphcore.ai/ipu": annotation} if annotation else {}
    cluster.create(found)


def runs_on(scheduler: Scheduler, name: str, node: ApiNode) -> None:
    """Wait until a pod is scheduled to a node."""
    until(lambda: node_of(scheduler.cluster, name), SECONDS, lambda: scheduler.log[-3000:])
    assert node_of(scheduler.cluster, name) == node.name


def test_pods_wait_for_room(
    cluster: Cluster, proxy: Proxy, nodes: dict[str, ApiNode], start: Callable[..., Scheduler]
) -> None:
    resource = {"name": "graphcore.ai/ipu", "ignoredByScheduler": True}  # nodes do not advertise it
    scheduler = start(nodeCacheCapable=True, managedResources=[resource])
    submit(scheduler, "first", 32)
    runs_on(scheduler, "first", nodes["large"])
    status, found = reserve(proxy, "job", 32)
    assert (status, found["nodeLabel"]["value"]) == (200, f"{cluster.namespace}-large")
    submit(scheduler, "second", 16)
    runs_on(scheduler, "second", nodes["small"])
    submit(scheduler, "third", 32)
    expected = "2 V-IPU controller of node has no room for a partition of 32 IPUs"
    until(lambda: expected in obstacle(cluster, "third"), SECONDS, lambda: obstacle(cluster, "third"))
    assert "1 node carries the label of no V-IPU controller" in obstacle(cluster, "third")
    uid = cluster.get("ipujob", "job")["metadata"]["uid"]
    assert release(proxy, uid) == 204
    until(lambda: proxy.call("GET", "/stats")[1]["total"]["available"] == 48)
    nodes["large"].label("changed=1")  # schedulers try again when a node changes
    runs_on(scheduler, "third", nodes["large"])


def test_annotations_in_requests_with_whole_nodes(nodes: dict[str, ApiNode], start: Callable[..., Scheduler]) -> None:
    scheduler = start()
    submit(scheduler, "large", annotation="32")
    runs_on(scheduler, "large", nodes["large"])
    submit(scheduler, "impossible", annotation="3")
    text = "a partition cannot have 3 IPUs, only a power of two up to 64"
    until(lambda: text in obstacle(scheduler.cluster, "impossible"), SECONDS)


def test_pods_without_ipus_run_anywhere(nodes: dict[str, ApiNode], start: Callable[..., Scheduler]) -> None:
    scheduler = start()
    nodes["plain"].label("only=plain")
    submit(scheduler, "plain", only="plain")
    runs_on(scheduler, "plain", nodes["plain"])


def test_a_controller_that_does_not_respond_has_no_room(
    proxy: Proxy, nodes: dict[str, ApiNode], start: Callable[..., Scheduler]
) -> None:
    proxy.vipu.stop()
    until(lambda: "controller does not respond" in proxy.log)
    scheduler = start(nodeCacheCapable=True)
    submit(scheduler, "waiting", annotation="32")
    expected = "V-IPU controller of node does not respond"
    until(lambda: expected in obstacle(scheduler.cluster, "waiting"), SECONDS)
    assert node_of(scheduler.cluster, "waiting") == ""


@pytest.mark.parametrize(
    "body",
    [
        {"Pod": {}, "NodeNames": ["a"]},
        {"Pod": {"metadata": 1, "spec": {}}, "NodeNames": ["a"]},
        {"Pod": {"metadata": {}, "spec": {}}, "Nodes": {"items": [{}]}},
    ],
)
def test_incomplete_objects_are_one_sentence(proxy: Proxy, body: dict[str, Any]) -> None:
    status, answer = proxy.call("POST", "/scheduler/filter", body)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert "incomplete" in answer["message"]
    assert "Traceback" not in proxy.log


def test_requests_of_large_clusters_do_not_fill_the_memory(proxy: Proxy) -> None:
    proxy.kill()
    proxy.forked = False  # a forked process has the memory of the tests
    proxy.start()
    process = proxy.process
    assert process is not None

    def most_memory() -> int:
        """Return the highest memory of the proxy in MiB."""
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return int(next(each for each in lines if each.startswith("VmHWM:")).split()[1]) // 1024

    names = [f"node-{number:05}.{'x' * 40}.example.org" for number in range(5000)]
    request: dict[str, Any] = {"Pod": pod(proxy.cluster, "pod", 4)}
    before = most_memory()
    status, answer = proxy.call("POST", "/scheduler/filter", {**request, "NodeNames": names})
    assert (status, answer["NodeNames"], len(answer["FailedNodes"])) == (200, [], 5000)
    items = [{"metadata": {"name": each}, "status": {"images": "x" * 14_000}} for each in names]
    for count in (100, 5000):  # the larger one is rejected before it has arrived
        nodes = {"metadata": {}, "items": items[:count]}
        with contextlib.suppress(OSError):
            assert proxy.call("POST", "/scheduler/filter", {**request, "Nodes": nodes})[0] == 413
    assert proxy.serves()
    assert most_memory() < before + 24
    proxy.kill()
    proxy.options = (*proxy.options, "--extender-max-mib", "2")
    proxy.start()
    nodes = {"metadata": {}, "items": items[:100]}
    assert proxy.call("POST", "/scheduler/filter", {**request, "Nodes": nodes})[0] == 200


def test_without_the_option_there_is_no_such_call(proxy: Proxy) -> None:
    body = {"Pod": pod(proxy.cluster, "pod", 4), "NodeNames": []}
    assert proxy.call("POST", "/scheduler/filter", body)[0] == 200
    assert "/scheduler/filter" in proxy.call("GET", "/openapi.json")[1]["paths"]
    proxy.kill()
    proxy.options = ()
    proxy.start()
    assert proxy.call("POST", "/scheduler/filter", body)[0] == 404
    assert "/scheduler/filter" not in proxy.call("GET", "/openapi.json")[1]["paths"]
