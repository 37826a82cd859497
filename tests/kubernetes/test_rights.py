# SPDX-License-Identifier: GPL-3.0-or-later
"""Operator and proxy with exactly the rights and the arguments of the chart. They run as processes; pods are hollow."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from openipu.kubernetes.domain import pod_injection
from openipu.kubernetes.domain.pods import PodOptions
from tests.integration.vipu_servers import InProcess, listed
from tests.kubernetes.charts import FULLNAME, MANAGER, PROXY
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import SECONDS, Operator, RunningJob
from tests.kubernetes.proxies import Proxy, token
from tests.kubernetes.releases import (
    NO_WEBHOOK_CALLS,
    CompletingNode,
    Release,
    account_kubeconfig,
    account_token,
    uninstalled,
)
from tests.kubernetes.webhooks import plain_pod
from tests.ports import free_port
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

ACCOUNT = "ipu-operator"  # of the operator; that of the proxy has its default name


@pytest.fixture(scope="module", autouse=True)
def node(control_plane: Cluster) -> Iterator[None]:
    """Start a node on which the checks of the chart end, and plain pods wait for their IPUs."""
    waiting = {pod_injection.INIT_CONTAINER}
    node = CompletingNode(control_plane.kubeconfig, name="hollow-rights", init_containers=waiting)
    node.start()
    yield
    node.stop()


@dataclass
class Installation:
    """A release whose programs run as processes."""

    release: Release
    proxy: Proxy
    operator: Operator
    metrics_port: int = field(default_factory=free_port)

    def start(self) -> None:
        cluster, folder = self.release.cluster, self.proxy.folder
        self.proxy.controllers.write_text(self.release.controllers())
        kubeconfig = account_kubeconfig(cluster, f"{FULLNAME}-{PROXY}", folder / "proxy.kubeconfig")
        ports = ("--port", str(self.proxy.port), "--host", "127.0.0.1")
        paths = ("--controllers", str(self.proxy.controllers), "--credentials", str(folder / "credentials"))
        self.proxy.options = (*self.arguments(PROXY), "--kubeconfig", str(kubeconfig), *ports, *paths)
        self.proxy.start()
        kubeconfig = account_kubeconfig(cluster, ACCOUNT, folder / "operator.kubeconfig")
        (folder / "operator.token").write_text(token(cluster, ACCOUNT))
        ports = ("--health-port", str(self.operator.port), "--metrics-port", str(self.metrics_port))
        ports = (*ports, "--webhook-port", str(free_port()), "--proxy", self.proxy.url)
        everywhere = ("--watch-namespaces", "")  # the default, unless the chart has another one
        self.operator.options = (*everywhere, *self.arguments(MANAGER), "--kubeconfig", str(kubeconfig), *ports)
        self.operator.start()

    def arguments(self, component: str) -> list[str]:
        """Return the arguments of a program, as kubelet passes them."""
        cluster = self.release.cluster
        found = cluster.get("deployment", f"{FULLNAME}-{component}")["spec"]["template"]["spec"]["containers"][0][
            "args"
        ]
        variables = {"$(POD_NAMESPACE)": cluster.namespace, "$(POD_NAME)": "operator"}
        for name, value in variables.items():
            found = [each.replace(name, value) for each in found]
        return found

    def kill(self) -> None:
        self.operator.kill()
        self.proxy.kill()

    def submit(self, name: str = "job", **spec: object) -> RunningJob:
        cluster = self.release.cluster
        cluster.create({**first_form(**spec), "metadata": {"name": name, "namespace": cluster.namespace}})
        return RunningJob(self.operator, name)

    def partitions(self) -> set[str]:
        return listed(self.proxy.vipu)

    def scrape(self, bearer: str) -> int:
        """Return the status of a scrape of the metrics."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.metrics_port}/metrics")
        request.add_header("Authorization", f"Bearer {bearer}")
        context = ssl._create_unverified_context()  # the certificate is self-signed
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def check_logs(self) -> None:
        """Check that the API server has denied nothing."""
        for log in (self.operator.log, self.proxy.log):
            assert "forbidden" not in log.lower(), log


def remove_jobs(control_plane: Cluster) -> None:
    """Remove the jobs of other tests: this operator serves all namespaces."""
    for each in control_plane.get("ipujobs", everywhere=True)["items"]:
        name, namespace = each["metadata"]["name"], f"--namespace={each['metadata']['namespace']}"
        control_plane.kubectl(
            "patch", "ipujob", name, namespace, "--type=merge", '--patch={"metadata":{"finalizers":[]}}'
        )
        control_plane.kubectl("delete", "ipujob", name, namespace, "--ignore-not-found")


@pytest.fixture
def installation(
    cluster: Cluster,
    control_plane: Cluster,
    tmp_path: Path,
    vipu: Callable[..., InProcess],
    request: pytest.FixtureRequest,
) -> Iterator[Installation]:
    """Yield a release with running programs. Parameter: whether the operator serves the namespace of the test only."""
    remove_jobs(control_plane)
    with uninstalled(cluster) as release:
        proxy = Proxy(cluster, tmp_path, vipu())
        made = Installation(release, proxy, Operator(cluster, proxy))
        settings = [f"vipuControllers={proxy.vipu.address}:ipunode=node1", f"controller.serviceAccount.name={ACCOUNT}"]
        if request.param:
            settings.append(f"controller.watchNamespaces[0]={cluster.namespace}")
        release.install(*NO_WEBHOOK_CALLS, *(word for each in settings for word in ("--set", each)))
        made.start()
        yield made
        made.kill()


@pytest.mark.parametrize("installation", [False, True], indirect=True, ids=["all namespaces", "one namespace"])
def test_a_job_lives_with_the_rights_of_the_chart(installation: Installation) -> None:
    job = installation.submit(restartPolicy={"type": "OnFailure", "backOffLimit": 2}, workers=workers(replicas=2))
    job.wait("Running")
    assert installation.release.cluster.get("role", "job-launcher")["rules"]
    job.end("job-launcher", 1)
    until(lambda: job.status["restartCount"] == 1, SECONDS, lambda: installation.operator.log[-3000:])
    job.wait("Running")
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    expected = {"IPUJobRunning", "IPUJobSucceeded", "PodsCreated"}
    until(lambda: expected <= {reason for reason, _ in job.events()}, SECONDS)  # written after the status
    job.delete()
    assert installation.partitions() == set()
    installation.check_logs()


@pytest.mark.parametrize("installation", [False, True], indirect=True, ids=["all namespaces", "one namespace"])
def test_a_job_is_scaled_with_the_rights_of_the_chart(installation: Installation) -> None:
    job = installation.submit()
    job.wait("Running")
    installation.release.cluster.kubectl("scale", "ipujob", "job", "--replicas=2")
    until(lambda: job.status["currentReplicas"] == 2, SECONDS, lambda: installation.operator.log[-3000:])
    assert len(installation.partitions()) == 2
    bearer = token(installation.release.cluster, "job-launcher", pod=job.pods()["job-launcher"])
    assert installation.proxy.call("GET", "/v1/self/partition", token=bearer)[0] == 200
    installation.check_logs()


@pytest.mark.parametrize("installation", [False, True], indirect=True, ids=["all namespaces", "one namespace"])
def test_ssh_and_lost_objects_need_no_other_rights(installation: Installation) -> None:
    cluster = installation.release.cluster
    policy = {"type": "OnFailure", "backOffLimit": 2}
    launcher = {"command": ["mpirun", "train"], "remoteShell": "SSH"}
    job = installation.submit(restartPolicy=policy, launcher=launcher, workers=workers(replicas=2))
    job.wait("Running")
    selector = "graphcore.ai/ipujob=job"
    [keys] = cluster.get("secrets", selector=selector)["items"]
    # The next attempt writes them again.
    for kind in ("configmaps", "roles", "secrets"):
        cluster.kubectl("delete", kind, "--selector", selector)
    job.end("job-launcher", 1)
    until(lambda: job.status["restartCount"] == 1, SECONDS, lambda: installation.operator.log[-3000:])
    job.wait("Running")
    for kind in ("configmaps", "roles"):
        assert len(cluster.get(kind, selector=selector)["items"]) == 1, kind
    [new] = cluster.get("secrets", selector=selector)["items"]
    assert new["metadata"]["uid"] != keys["metadata"]["uid"]
    job.delete()
    installation.check_logs()


@pytest.mark.parametrize("installation", [False], indirect=True)
def test_plain_pods_need_no_other_rights(installation: Installation) -> None:
    cluster = installation.release.cluster
    users = replace(cluster, namespace=f"{cluster.namespace}-users")  # pods of the release's namespace stay untouched
    users.create_namespace()
    options = PodOptions("launcher:1", installation.proxy.url)
    plain = plain_pod(users, "plain", "2")
    plain["spec"]["nodeSelector"] = {"ipunode": "node1"}  # there may be nodes of other tests
    users.create(pod_injection.inject(plain, options))
    until(lambda: len(installation.partitions()) == 1, SECONDS, lambda: installation.operator.log[-3000:])
    fields = "involvedObject.name=plain,source=ipu-operator"
    until(lambda: "IPUsReserved" in {each["reason"] for each in users.get("events", fields=fields)["items"]}, SECONDS)
    users.kubectl("delete", "pod", "plain")
    until(lambda: installation.partitions() == set(), SECONDS, lambda: installation.operator.log[-3000:])
    installation.check_logs()


@pytest.mark.parametrize("installation", [True], indirect=True)
def test_readers_of_metrics_need_the_published_role(installation: Installation) -> None:
    cluster = installation.release.cluster
    bearer = account_token(cluster, "default")
    assert (installation.scrape("wrong"), installation.scrape(bearer)) == (401, 403)
    subject = f"--serviceaccount={cluster.namespace}:default"
    cluster.kubectl("create", "clusterrolebinding", "metrics", "--clusterrole=gc-metrics-reader", subject)
    try:
        until(lambda: installation.scrape(bearer) == 200, SECONDS)
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "metrics")
    installation.check_logs()


@pytest.mark.parametrize("installation", [False], indirect=True)
def test_the_next_installation_continues(installation: Installation) -> None:
    release, cluster = installation.release, installation.release.cluster
    settings = installation.release.helm("get", "values", "gc", "--output=json")
    job = installation.submit()
    job.wait("Running")
    [partition] = installation.partitions()
    uids = {name: each["metadata"]["uid"] for name, each in job.pods().items()}
    installation.kill()
    release.helm("uninstall", "gc")
    assert job.status["launcherStatus"] == "Running"
    assert set(installation.proxy.records()) == installation.partitions() == {partition}
    values = installation.proxy.folder / "values.json"
    values.write_text(settings)
    release.install("--values", values)
    installation.start()
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == uids
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    job.delete()
    assert (installation.partitions(), installation.proxy.records()) == (set(), {})
    installation.check_logs()
    assert cluster.get("configmap", "ipu-partitions-tracker")


@pytest.mark.parametrize("installation", [True], indirect=True)
def test_accounts_have_no_other_rights(installation: Installation, control_plane: Cluster) -> None:
    cluster = installation.release.cluster
    accounts = {MANAGER: ACCOUNT, PROXY: f"{FULLNAME}-{PROXY}"}

    def can(component: str, *action: str) -> bool:
        account = f"--as=system:serviceaccount:{cluster.namespace}:{accounts[component]}"
        return control_plane.run("auth", "can-i", *action, account).stdout.strip() == "yes"

    here, elsewhere = f"--namespace={cluster.namespace}", "--namespace=default"
    assert can(MANAGER, "create", "pods", here)
    assert can(MANAGER, "get", f"secrets/{FULLNAME}-admission", here)
    assert can(PROXY, "patch", "configmaps/ipu-partitions-tracker", here)
    denied = [
        (MANAGER, "create", "pods", elsewhere),
        (MANAGER, "get", "secrets/other", here),
        (MANAGER, "list", "secrets", here),
        (MANAGER, "delete", "ipujobs", here),
        (MANAGER, "escalate", "roles", here),
        (MANAGER, "bind", "roles", here),
        (MANAGER, "create", "clusterroles"),
        (MANAGER, "patch", "nodes"),
        (MANAGER, "update", "mutatingwebhookconfigurations/other"),
        (MANAGER, "get", "configmaps", elsewhere),
        (PROXY, "patch", "configmaps/other", here),
        (PROXY, "get", f"secrets/{FULLNAME}-admission", here),
        (PROXY, "create", "pods", here),
        (PROXY, "create", "pods/exec", here),
        (PROXY, "patch", "nodes"),
    ]
    assert [each for each in denied if can(*each)] == []


@pytest.mark.parametrize("installation", [True], indirect=True)
def test_the_operator_grants_no_rights_that_it_does_not_have(installation: Installation) -> None:
    cluster = installation.release.cluster
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "too-much"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }
    account = f"--as=system:serviceaccount:{cluster.namespace}:{ACCOUNT}"
    done = cluster.run("create", "--filename=-", account, stdin=json.dumps(role))
    assert done.returncode != 0
    assert "attempting to grant RBAC permissions not currently held" in done.stderr
