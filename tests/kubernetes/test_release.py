# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart at a real API server: install, test, upgrade, rollback and uninstall. Pods are hollow."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.kubernetes.cluster import CRD, Cluster
from tests.kubernetes.releases import NO_WEBHOOK_CALLS, CompletingNode, Release, account_token, uninstalled
from tests.kubernetes.servers import TlsServer
from tests.ports import free_port
from tests.waiting import until
from tools.kubernetes import generated, helm

FULLNAME = "gc-ipu-operator"
TRACKER = "ipu-partitions-tracker"


@pytest.fixture(scope="module", autouse=True)
def node(control_plane: Cluster) -> Iterator[CompletingNode]:
    """Yield a node on which the checks of the chart end."""
    node = CompletingNode(control_plane.kubeconfig, name="hollow-release")
    node.start()
    yield node
    node.stop()


@pytest.fixture
def release(cluster: Cluster) -> Iterator[Release]:
    """Yield a release that is not installed yet."""
    with uninstalled(cluster) as made:
        yield made


def test_published_commands(release: Release, tmp_path: Path) -> None:
    helm.run("package", helm.CHART, "--destination", tmp_path)
    [archive] = tmp_path.glob("*.tgz")
    cluster = release.cluster
    settings = ["vipuServerAddr=10.0.0.1", "vipuServerPort=8191", "vipuCLusterName=c1"]
    settings += ["controller.image.repository=a", "vipuProxy.image.repository=b"]
    words = [word for each in settings for word in ("--set", each)]
    printed = release.helm("install", "gc", archive, *words)
    assert "kubectl explain ipujob.spec" in printed
    assert "ipujobs.graphcore.ai" in cluster.kubectl("get", "crd")
    listed = release.helm("ls").splitlines()
    assert re.fullmatch(r"gc\s+test-\d+\s+1\s+.*\sdeployed\s+ipu-operator-0\.1\.0\s+0\.1\.0\s*", listed[1])
    reader = cluster.kubectl("get", "clusterrole", "-l", "component=metrics-reader").splitlines()
    assert [line.split()[0] for line in reader] == ["NAME", "gc-metrics-reader"]
    until(lambda: cluster.kubectl("get", "pods").count(" Running ") == 2)
    pods = [line.split() for line in cluster.kubectl("get", "pods").splitlines()[1:]]
    assert [re.sub(r"-[a-z0-9]+-[a-z0-9]{5}$", "", name) for name, *_ in pods] == [
        "gc-ipu-operator-controller-manager",
        "gc-ipu-operator-vipu-proxy",
    ]
    assert [ready for _, ready, *_ in pods] == ["1/1", "1/1"]
    assert release.controllers() == "- 10.0.0.1:8191\n"
    images = {
        each["spec"]["template"]["spec"]["containers"][0]["image"] for each in cluster.get("deployments")["items"]
    }
    assert images == {"a:0.1.0", "b:0.1.0"}
    cluster.kubectl(
        "create", "clusterrolebinding", "metrics", "--clusterrole=gc-metrics-reader", "--serviceaccount=a:b"
    )
    assert cluster.kubectl("auth", "can-i", "get", "/metrics", "--as=system:serviceaccount:a:b").strip() == "yes"
    cluster.kubectl("delete", "clusterrolebinding", "metrics")


def test_helm_test_checks_the_release(release: Release, node: CompletingNode) -> None:
    release.install(*NO_WEBHOOK_CALLS)
    assert "Phase:          Succeeded" in release.helm("test", "gc")
    node.failing = True
    try:
        done = release.run("test", "gc")
    finally:
        node.failing = False
    assert done.returncode != 0
    assert "gc-ipu-operator-test failed" in done.stderr


def test_install_fails_if_the_webhooks_do_not_respond(release: Release, node: CompletingNode) -> None:
    node.failing = True
    try:
        done = release.run("install", "gc", helm.CHART, *NO_WEBHOOK_CALLS)
    finally:
        node.failing = False
    assert done.returncode != 0
    assert "BackoffLimitExceeded" in done.stderr
    release.upgrade(*NO_WEBHOOK_CALLS)


def test_changes_of_the_controllers_stay(release: Release) -> None:
    cluster = release.cluster
    release.install(*NO_WEBHOOK_CALLS, "--set", "vipuControllers=a:1:k=v\\,b:2:k=w")
    assert release.controllers() == "- a:1:k=v\n- b:2:k=w\n"
    patch = json.dumps({"data": {"controllers.yaml": "- c:3:k=x\n"}})
    cluster.kubectl("patch", "configmap", f"{FULLNAME}-vipu-controllers", "--type=merge", "--patch", patch)
    release.upgrade("--reuse-values", "--set", "controller.develLogs=true")
    assert release.controllers() == "- c:3:k=x\n"
    release.upgrade("--reuse-values", "--set", "vipuControllers=d:4:k=y")
    assert release.controllers() == "- d:4:k=y\n"
    release.helm("rollback", "gc", "1", "--timeout", "60s")
    assert release.controllers() == "- a:1:k=v\n- b:2:k=w\n"


def test_upgrade_and_rollback_keep_what_the_operator_writes(release: Release) -> None:
    cluster = release.cluster
    release.install(*NO_WEBHOOK_CALLS)
    kinds = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
    for kind in kinds:
        count = len(cluster.get(kind, FULLNAME)["webhooks"])
        path = [
            {"op": "add", "path": f"/webhooks/{each}/clientConfig/caBundle", "value": "Y2E="} for each in range(count)
        ]
        cluster.kubectl("patch", kind, FULLNAME, "--type=json", "--patch", json.dumps(path))
    cluster.kubectl("create", "secret", "generic", f"{FULLNAME}-admission", "--from-literal=ca=ca")
    cluster.kubectl("create", "configmap", TRACKER, "--from-literal=p-a=record")
    release.upgrade(*NO_WEBHOOK_CALLS, "--set", "admissionWebhooks.timeoutSeconds=10")
    assert cluster.get(kinds[1], FULLNAME)["webhooks"][0]["timeoutSeconds"] == 10
    release.helm("rollback", "gc", "--timeout", "60s")
    for kind in kinds:
        for each in cluster.get(kind, FULLNAME)["webhooks"]:
            assert (each["timeoutSeconds"], each["clientConfig"]["caBundle"]) == (30, "Y2E=")
    assert cluster.get("secret", f"{FULLNAME}-admission")["data"] == {"ca": "Y2E="}
    assert cluster.get("configmap", TRACKER)["data"] == {"p-a": "record"}


def test_uninstall_removes_everything_but_the_state(release: Release) -> None:
    cluster = release.cluster
    release.install(*NO_WEBHOOK_CALLS, "--set", "controller.replicas=2")
    objects = release.objects()
    cluster.kubectl("create", "configmap", TRACKER)
    release.helm("uninstall", "gc")
    left = {
        (each["kind"], each["metadata"]["name"])
        for each in objects
        if cluster.run("get", each["kind"].lower(), each["metadata"]["name"]).returncode == 0
    }
    assert left == set()
    assert cluster.get("configmap", TRACKER)
    assert cluster.get("crd", "ipujobs.graphcore.ai")
    until(lambda: not cluster.get("pods")["items"])


def test_two_releases_exclude_each_other_by_name_only(release: Release, control_plane: Cluster) -> None:
    release.install(*NO_WEBHOOK_CALLS)
    other = Release(control_plane, "other")  # in another namespace
    try:
        other.install(*NO_WEBHOOK_CALLS)
        done = Release(control_plane).run("install", "gc", helm.CHART)
        assert "exists and cannot be imported into the current release" in done.stderr
    finally:
        other.run("uninstall", "other")


def test_users_with_the_roles_of_kubernetes_may_use_jobs(release: Release, control_plane: Cluster) -> None:
    release.install(*NO_WEBHOOK_CALLS, "--set", "userRoles.enabled=true")
    cluster = release.cluster
    for role in ("edit", "view"):
        cluster.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}-user")

    def can(found: Cluster, user: str, *action: str) -> bool:
        return found.run("auth", "can-i", *action, f"--as={user}").stdout.strip() == "yes"

    # The controller manager adds the rules to the roles.
    until(lambda: can(cluster, "edit-user", "create", "ipujobs") and can(cluster, "view-user", "list", "ipujobs"))
    assert can(cluster, "edit-user", "patch", "ipujobs", "--subresource=scale")
    assert not can(cluster, "edit-user", "patch", "ipujobs", "--subresource=status")
    assert not can(cluster, "view-user", "create", "ipujobs")
    assert not can(control_plane, "edit-user", "create", "ipujobs")  # in another namespace
    release.helm("uninstall", "gc")
    until(lambda: not can(cluster, "edit-user", "create", "ipujobs"))


@pytest.mark.parametrize(
    "settings",
    [
        ["controller.replicas=2", "extendedScheduler.enabled=true", "controller.hostNetwork=true"],
        ["admissionWebhooks.enabled=false", "ipuVisibility.enabled=false", "global.imagePullSecrets[0]=s"],
        ["networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.a=b", "admissionWebhooks.scope=a"],
        ["vipuProxy.credentials[0].controller=a:1", "vipuProxy.credentials[0].secretName=s"],
        ["proxyPort=8000", "service.type=NodePort", "nodeSelector.a=b", "podSecurityPolicyContext.runAsUser=7"],
    ],
)
def test_the_api_server_accepts_the_objects(cluster: Cluster, settings: list[str]) -> None:
    words = [word for each in settings for word in ("--set", each)]
    done = helm.run(
        "template", "gc", helm.CHART, "--namespace", cluster.namespace, "--kube-version", "1.20", "--skip-tests", *words
    )
    assert done.returncode == 0, done.stderr
    cluster.kubectl("apply", "--dry-run=server", "--filename=-", stdin=done.stdout)


def test_notes_name_the_next_steps(release: Release) -> None:
    words = ["--set", "extendedScheduler.enabled=true", "--set", "vipuControllers=a:1:k=v,b:2:k=w"]
    printed = release.install(*NO_WEBHOOK_CALLS, *words)
    assert "   - a:1:k=v\n   - b:2:k=w\n" in printed
    assert "kubectl label namespace elsewhere kubernetes.io/metadata.name=elsewhere" in printed  # of 1.20
    namespace = release.cluster.namespace
    lines = [line.strip().partition(" >")[0] for line in printed.replace("\\\n", "").splitlines()]
    commands = [line for line in lines if line.startswith("kubectl get ")]
    assert len(commands) == 4
    for command in commands:
        release.cluster.kubectl(*shlex.split(command)[1:])
    config = yaml.safe_load(release.cluster.get("configmap", f"{FULLNAME}-scheduler")["data"]["scheduler.yaml"])
    assert config["extenders"][0]["urlPrefix"] == f"http://{FULLNAME}-vipu-proxy.{namespace}.svc:80/scheduler"


def test_the_custom_resource_can_be_installed_first(cluster: Cluster, tmp_path: Path) -> None:
    assert CRD.stat().st_size < 262_144  # the most that client-side apply can store in its annotation
    assert "unchanged" in cluster.kubectl("apply", "--filename", CRD)
    done = helm.run("show", "crds", helm.CHART)
    assert yaml.safe_load(done.stdout) == yaml.safe_load(CRD.read_text())


def test_manifests_for_kustomize(control_plane: Cluster) -> None:
    cluster = replace(control_plane, namespace=generated.NAMESPACE)
    try:
        cluster.kubectl("apply", "--kustomize", generated.KUSTOMIZE)
        assert cluster.kubectl("get", "deployments", "--output=name").split() == [
            "deployment.apps/ipu-operator-controller-manager",
            "deployment.apps/ipu-operator-vipu-proxy",
        ]
    finally:
        objects = yaml.safe_dump_all(generated.manifests())
        cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "--filename=-", stdin=objects)


def check(release: Release, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the checks as in a pod: with the token of their service account."""
    cluster = release.cluster
    config = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    server = urlsplit(config["server"])
    (folder / "token").write_text(account_token(cluster, f"{FULLNAME}-admission"))
    (folder / "ca.crt").write_text(Path(config["certificate-authority"]).read_text())
    command = [sys.executable, "-I", helm.CHART / "files/check.py", "--account", folder, "--seconds=0", *arguments]
    environment = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_check_waits_for_webhooks_with_the_right_certificate(release: Release, tmp_path: Path) -> None:
    port = free_port()
    release.install(*NO_WEBHOOK_CALLS, "--set", f"admissionWebhooks.service.servicePort={port}")
    arguments = (f"--webhooks={FULLNAME}", "--address=127.0.0.1")
    done = check(release, tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert "webhook mipujob.graphcore.ai has no CA certificate yet" in done.stderr
    host = f"{FULLNAME}-webhook-svc.{release.cluster.namespace}.svc"
    with TlsServer(host, port) as server:
        for authority, expected in ((TlsServer("other").bundle, 1), (server.bundle, 0)):
            for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
                found = release.cluster.get(kind, FULLNAME)
                for each in found["webhooks"]:
                    each["clientConfig"]["caBundle"] = authority
                release.cluster.kubectl("replace", "--filename=-", stdin=json.dumps(found))
            done = check(release, tmp_path, *arguments)
            assert done.returncode == expected, done.stderr
            assert ("CERTIFICATE_VERIFY_FAILED" in done.stderr) == bool(expected)
    assert check(release, tmp_path, *arguments).returncode == 1  # nothing listens any more


def test_the_check_reports_a_missing_proxy(release: Release, tmp_path: Path) -> None:
    release.install(*NO_WEBHOOK_CALLS)
    done = check(release, tmp_path, f"--proxy=http://127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "The release does not respond: V-IPU proxy" in done.stderr
