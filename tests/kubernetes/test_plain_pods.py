# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain pods with IPUs: the webhook, the operator, the proxy and the init container together.

Nodes are hollow. The test runs the init container as a process, with a token as kubelet mounts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.domain import pod_injection
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess, listed
from tests.kubernetes import forked, webhooks
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import SECONDS, Operator, patch_status
from tests.kubernetes.program import Process
from tests.kubernetes.proxies import OPERATOR, Proxy, token
from tests.kubernetes.webhooks import WebhookSetup, plain_pod
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

NODES = ("node1", "node2")


@pytest.fixture(scope="module", autouse=True)
def nodes(control_plane: Cluster) -> Iterator[None]:
    """Run a node for each V-IPU controller, and one without IPUs."""
    labels: list[dict[str, str]] = [*({"ipunode": name} for name in NODES), {"role": "plain"}]
    made = [
        HollowNode(control_plane.kubeconfig, f"pods-{number}", each, init_containers={pod_injection.INIT_CONTAINER})
        for number, each in enumerate(labels)
    ]
    for each in made:
        each.start()
    yield
    for each in made:
        each.stop()


@dataclass(frozen=True)
class Site:
    """An operator with a V-IPU controller for each node. ``users``: namespace of pods."""

    setup: WebhookSetup
    operator: Operator
    controllers: tuple[InProcess, ...]

    @property
    def users(self) -> Cluster:
        return self.setup.users

    @property
    def proxy(self) -> Proxy:
        return self.operator.proxy

    def partitions(self, number: int = 0) -> set[str]:
        """Return the ids of the partitions at a controller."""
        return listed(self.controllers[number])

    def reserved(self, count: int, number: int = 0) -> None:
        """Wait until a controller has a number of partitions."""
        until(lambda: len(self.partitions(number)) == count, SECONDS, lambda: self.operator.log[-3000:])

    def create(self, name: str, ipus: str, node: str | None = "node1", **fields: Any) -> None:
        """Create a pod on a node."""
        pod = plain_pod(self.users, name, ipus)
        if node is not None:
            pod["spec"]["nodeSelector"] = {"ipunode": node}
        pod["spec"].update(fields)
        self.users.create(pod)

    def phase(self, name: str) -> str:
        return str(self.users.get("pod", name)["status"]["phase"])

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return reason and message of the events of a pod."""
        found = self.users.get("events", fields=f"involvedObject.name={name},source=ipu-operator")
        return [(each["reason"], each["message"]) for each in found["items"]]

    def wait_for_event(self, name: str, reason: str, text: str = "") -> None:
        until(
            lambda: any(each[0] == reason and text in each[1] for each in self.events(name)),
            SECONDS,
            lambda: f"{self.events(name)} {self.operator.log[-3000:]}",
        )

    def init(self, name: str, folder: Path) -> Process:
        """Start the init container of a pod as a process."""
        pod = self.users.get("pod", name)
        container = pod["spec"]["initContainers"][0]
        assert container["name"] == pod_injection.INIT_CONTAINER
        file = folder / f"{name}.token"
        file.write_text(token(self.users, pod["spec"]["serviceAccountName"], pod=pod))
        variables = {each["name"]: each["value"] for each in container["env"]}
        own = {"IPU_POD_TOKEN": str(file), "IPU_POD_FILE": str(folder / f"{name}.conf")}
        log = folder / f"{name}.log"
        log.touch()
        environment = {**os.environ, **variables, **own}
        return forked.start("openipu.kubernetes.launcher.main", container["args"], log, environment)

    def run(self, name: str, folder: Path) -> dict[str, Any]:
        """Run the init container and report that the pod runs. Return the IPUoF configuration."""
        process = self.init(name, folder)
        assert process.wait(SECONDS) == 0, (folder / f"{name}.log").read_text()
        patch_status(self.users, name, {"phase": "Running"})
        config: dict[str, Any] = json.loads((folder / f"{name}.conf").read_text())
        return config


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path, vipu: Callable[..., InProcess]) -> Iterator[Site]:
    """Yield an operator with two V-IPU controllers of 32 IPUs each."""
    cluster.create_account(OPERATOR)
    controllers = tuple(vipu() for _ in NODES)
    proxy = Proxy(cluster, tmp_path, controllers[0])
    lines = [f"{each.address}:ipunode={name}\n" for each, name in zip(controllers, NODES, strict=True)]
    proxy.controllers.write_text("".join(lines))
    setup = webhooks.make_setup(cluster)
    operator = Operator(cluster, proxy, setup.options())
    try:
        proxy.start()
        setup.install()
        webhooks.start(operator, setup)
        setup.wait()
        yield Site(setup, operator, controllers)
    finally:
        setup.remove()
        operator.kill()
        proxy.kill()


@pytest.mark.parametrize(("node", "number"), [("node1", 0), ("node2", 1)])
def test_a_pod_receives_ipus_of_its_node(site: Site, tmp_path: Path, node: str, number: int) -> None:
    site.create("pod", "4", node)
    config = site.run("pod", tmp_path)
    assert len(config["devices"]) == 4
    assert site.partitions(number) == {f"p-pod-{site.users.namespace}-0"}
    assert site.partitions(1 - number) == set()
    assert (tmp_path / "pod.conf").stat().st_mode & 0o777 == 0o644  # the other containers have other users
    site.wait_for_event("pod", "IPUsReserved", "with 4 IPUs.")
    (record,) = site.proxy.records().values()
    assert (record["kind"], record["name"], record["size"]) == ("Pod", "pod", 4)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ipus_are_released_when_the_pod_ends(site: Site, tmp_path: Path, phase: str) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    patch_status(site.users, "pod", {"phase": phase})
    site.reserved(0)
    until(lambda: site.proxy.records() == {}, SECONDS)
    assert site.phase("pod") == phase


def test_ipus_are_released_when_the_pod_is_deleted(site: Site, tmp_path: Path) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    site.users.kubectl("delete", "pod", "pod", "--timeout=50s")
    site.reserved(0)


def test_a_pod_waits_for_ipus(site: Site, tmp_path: Path) -> None:
    site.create("first", "32")
    site.run("first", tmp_path)
    site.create("second", "16")
    site.wait_for_event("second", "IPUsPending", "No V-IPU controller has 16 free IPUs")
    process = site.init("second", tmp_path)
    until(lambda: "has no partition" in (tmp_path / "second.log").read_text(), SECONDS)
    assert process.poll() is None
    assert site.phase("second") == "Pending"
    patch_status(site.users, "first", {"phase": "Succeeded"})
    assert process.wait(SECONDS) == 0
    assert site.partitions() == {f"p-second-{site.users.namespace}-0"}


def test_a_waiting_pod_that_is_deleted_receives_nothing(site: Site, tmp_path: Path) -> None:
    site.create("first", "32")
    site.run("first", tmp_path)
    for name in ("second", "third"):
        site.create(name, "32")
        site.wait_for_event(name, "IPUsPending") if name == "second" else None
    site.users.kubectl("delete", "pod", "second", "--timeout=50s")
    site.users.kubectl("delete", "pod", "first", "--timeout=50s")
    until(lambda: site.partitions() == {f"p-third-{site.users.namespace}-0"}, SECONDS)


def test_pods_receive_ipus_in_the_order_of_their_creation(site: Site, tmp_path: Path) -> None:
    site.create("taken", "16")
    site.run("taken", tmp_path)
    site.create("a-large", "32")
    site.wait_for_event("a-large", "IPUsPending")
    site.create("small", "1")
    site.create("elsewhere", "1", "node2")
    site.reserved(1, 1)  # another controller has its own queue
    assert site.partitions() == {f"p-taken-{site.users.namespace}-0"}  # the small pod has not overtaken the large one
    site.users.kubectl("delete", "pod", "taken", "--timeout=50s")
    until(lambda: site.partitions() == {f"p-a-large-{site.users.namespace}-0"}, SECONDS)
    assert site.phase("small") == "Pending"


def test_a_pod_waits_for_older_jobs_of_its_namespace(site: Site, tmp_path: Path) -> None:
    for number, node in enumerate(NODES):
        site.create(f"taken-{number}", "16", node)
        site.run(f"taken-{number}", tmp_path)
    ipujob = first_form(modelReplicas="32", ipusPerModelReplica="1")
    site.users.create({**ipujob, "metadata": {"name": "job", "namespace": site.users.namespace}})
    until(lambda: "Position 1" in str(site.users.get("ipujob", "job").get("status")), SECONDS)
    created = site.users.get("ipujob", "job")["metadata"]["creationTimestamp"]
    numbers = iter(range(1000))

    def younger() -> str | None:  # timestamps have whole seconds
        name = f"pod-{next(numbers)}"
        site.create(name, "8")
        is_younger = site.users.get("pod", name)["metadata"]["creationTimestamp"] > created
        if not is_younger:
            site.users.kubectl("delete", "pod", name, "--timeout=50s")
        return name if is_younger else None

    pod = until(younger)
    site.wait_for_event(pod, "IPUsPending", f"Job {site.users.namespace}/job is older and comes first.")
    site.users.kubectl("delete", "pod", "taken-1", "--timeout=50s")
    until(lambda: f"p-job-{site.users.namespace}-0" in site.partitions(1), SECONDS)
    site.wait_for_event(pod, "IPUsReserved")


def test_a_denied_job_does_not_delay_pods(site: Site) -> None:
    users = site.users
    hard = {"requests.example.com/device": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": users.namespace}}
    users.apply({**quota, "spec": {"hard": hard}})
    until(lambda: users.get("resourcequota", "q").get("status", {}).get("hard") == hard, SECONDS)
    denied = first_form(workers=workers(container={"resources": {"limits": {"example.com/device": "1"}}}))
    users.create({**denied, "metadata": {"name": "job", "namespace": users.namespace}})
    until(lambda: "exceeded quota" in str(users.get("ipujob", "job").get("status")), SECONDS)
    created = users.get("ipujob", "job")["metadata"]["creationTimestamp"]
    numbers = iter(range(1000))

    def reserved_for_a_younger_pod() -> bool:  # timestamps have whole seconds
        name = f"pod-{next(numbers)}"
        site.create(name, "1")
        site.wait_for_event(name, "IPUsReserved")
        return bool(users.get("pod", name)["metadata"]["creationTimestamp"] > created)

    until(reserved_for_a_younger_pod)


def test_a_pod_that_no_controller_can_hold_blocks_nobody(site: Site) -> None:
    site.create("a-large", "64")
    site.wait_for_event("a-large", "IPUsPending", "The largest possible one has 32.")
    site.create("small", "1")
    site.wait_for_event("small", "IPUsReserved")


def test_a_node_without_a_controller(site: Site) -> None:
    pod = plain_pod(site.users, "pod", "4")
    pod["spec"]["nodeSelector"] = {"role": "plain"}
    site.users.create(pod)
    site.wait_for_event("pod", "IPUsPending", "Node pods-2 has the label of no V-IPU controller.")
    assert site.proxy.records() == {}


def test_a_pod_that_ends_while_the_operator_is_gone(site: Site, tmp_path: Path) -> None:
    site.create("ended", "4")
    site.create("deleted", "4")
    for name in ("ended", "deleted"):
        site.run(name, tmp_path)
    site.create("kept", "4")
    site.run("kept", tmp_path)
    site.proxy.kill()  # its own search for orphans must not help
    site.proxy.options = ("--sweep-seconds", "3600")
    site.operator.kill()
    patch_status(site.users, "ended", {"phase": "Succeeded"})
    site.users.kubectl("delete", "pod", "deleted", "--timeout=50s")
    site.proxy.start()
    site.operator.start()
    until(lambda: site.partitions() == {f"p-kept-{site.users.namespace}-0"}, SECONDS)
    site.users.kubectl("delete", "pod", "kept", "--timeout=50s")
    site.reserved(0)


def test_the_proxy_releases_without_the_operator(site: Site, tmp_path: Path) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    site.operator.kill()
    patch_status(site.users, "pod", {"phase": "Failed"})
    site.reserved(0)


def test_a_pod_keeps_its_ipus_without_its_label_and_annotation(site: Site, tmp_path: Path) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    site.users.kubectl("annotate", "pod", "pod", "graphcore.ai/ipu=32", "--overwrite")
    site.users.kubectl("label", "pod", "pod", "graphcore.ai/role-")
    site.create("other", "4")  # proves that the operator has seen the changes
    site.run("other", tmp_path)
    sizes = {each["name"]: each["size"] for each in site.proxy.records().values()}
    assert sizes == {"pod": 4, "other": 4}
    site.users.kubectl("delete", "pod", "pod", "--timeout=50s")
    until(lambda: site.partitions() == {f"p-other-{site.users.namespace}-0"}, SECONDS)


def test_a_lost_partition_is_reported(site: Site, tmp_path: Path) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    (id,) = site.partitions()
    site.controllers[0].user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id))
    site.wait_for_event("pod", "PartitionLost", f"Partition {id} was removed or has failed.")


@pytest.mark.parametrize("with_operator", [True, False])
def test_a_partition_lost_before_the_start_is_created_again(site: Site, tmp_path: Path, with_operator: bool) -> None:
    site.create("pod", "4", "node2")
    site.wait_for_event("pod", "IPUsReserved")
    if not with_operator:
        site.operator.kill()
    (id,) = site.partitions(1)
    site.controllers[1].user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id))
    assert len(site.run("pod", tmp_path)["devices"]) == 4
    assert len(site.partitions(1)) == 1
    assert site.partitions(0) == set()  # the first controller of the list, which the node of the pod does not reach


@pytest.mark.parametrize(("advertised", "kept"), [(True, "4"), (False, None)])
@pytest.mark.parametrize("limit", [None, "4"])
def test_the_limit_follows_what_nodes_advertise(
    site: Site, advertised: bool, kept: str | None, limit: str | None
) -> None:
    site.operator.kill()
    site.operator.options += ("--request-ipus" if advertised else "--no-request-ipus",)
    site.operator.start()
    site.setup.wait()
    site.users.create(plain_pod(site.users, "pod", "4", limit))
    resources = site.users.get("pod", "pod")["spec"]["containers"][0]["resources"]
    assert resources.get("limits", {}).get("graphcore.ai/ipu") == kept
    assert resources.get("requests", {}).get("graphcore.ai/ipu") == kept


def test_other_pods_cannot_read_a_configuration(site: Site, tmp_path: Path) -> None:
    site.create("pod", "4")
    site.run("pod", tmp_path)
    site.users.create(plain_pod(site.users, "other"))
    bound = token(site.users, "default", pod=site.users.get("pod", "other"))
    assert site.proxy.call("GET", "/v1/self/ipuof", token=bound)[0] == 403
    assert site.proxy.call("GET", "/v1/controllers", token=bound)[0] == 403
    path = f"/v1/pods/{site.users.namespace}/other/partition"
    body = {"uid": "1", "size": 4, "nodeLabels": {}}
    assert site.proxy.call("PUT", path, body, bound)[0] == 403
    assert site.proxy.call("DELETE", f"{path}?uid=1", token=bound)[0] == 403
