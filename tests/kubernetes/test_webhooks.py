# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the webhooks, as the real API server requests them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.vipu_servers import InProcess, InstantLife
from tests.integration.vipu_servers import pod as vipu_pod
from tests.kubernetes import webhooks
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.kubernetes.conftest import MACHINES
from tests.kubernetes.operators import SECONDS, Operator
from tests.kubernetes.proxies import OPERATOR, Proxy
from tests.kubernetes.webhooks import WebhookSetup, plain_pod
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers
from tests.waiting import until

MEBIBYTE = 1024 * 1024
_numbers = itertools.count()


@dataclass(frozen=True)
class Site:
    """An operator whose webhooks the API server calls."""

    setup: WebhookSetup
    operator: Operator


@pytest.fixture(scope="module", params=[("v1", "v1beta1"), ("v1beta1",)], ids=["v1", "v1beta1"])
def site(
    control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Site]:
    """Yield one operator for all tests, for current API servers and for those that know v1beta1 only."""
    # A worker of pytest-xdist can leave this module and return to it, so the fixture can run twice.
    cluster = replace(control_plane, namespace=f"webhooks-{request.param[0]}-{next(_numbers)}")
    cluster.create_namespace()
    cluster.create_account(OPERATOR)
    folder = tmp_path_factory.mktemp("webhooks")
    vipu = InProcess(folder / "vipu.db", InstantLife)
    vipu_pod(vipu, MACHINES)
    proxy = Proxy(cluster, folder, vipu)
    proxy.controllers.write_text(f"{vipu.address}:ipunode=node1\n")
    setup = webhooks.make_setup(cluster, versions=request.param)
    operator = Operator(cluster, proxy, setup.options())
    try:
        proxy.start()
        setup.install()
        webhooks.start(operator, setup)
        setup.wait()
        yield Site(setup, operator)
    finally:
        setup.remove()
        operator.kill()
        proxy.kill()
        vipu.stop()


@pytest.fixture
def users(site: Site) -> Cluster:
    """Return the namespace of users."""
    return site.setup.users


@pytest.fixture
def has_warnings(site: Site) -> bool:
    """Return whether answers may have warnings."""
    return "v1" in site.setup.versions


def in_namespace(cluster: Cluster, ipujob: dict[str, Any], name: str = "job") -> dict[str, Any]:
    return {**ipujob, "metadata": {"name": name, "namespace": cluster.namespace}}


@pytest.mark.parametrize(
    ("ipujob", "sentence"),
    [
        (
            first_form(modelReplicas="3"),
            "spec.modelReplicas × spec.ipusPerModelReplica is 3, but the size of a partition is a power of two. "
            "Use 1, 2, 4, 8, 16, 32 or 64.",
        ),
        (
            second_form(ipusPerJobInstance="128"),
            "spec.ipusPerJobInstance is 128, but a partition has at most 64 IPUs. Use fewer, or more job instances.",
        ),
        (
            first_form(ipusPerJobInstance="4"),
            "spec.modelReplicas and spec.ipusPerJobInstance belong to different forms. Use modelReplicas with "
            "ipusPerModelReplica, or ipusPerJobInstance.",
        ),
        (
            first_form(interactive={"ttl": 60}),
            "spec.interactive and spec.launcher.command exclude each other. An interactive job runs no command.",
        ),
        (
            first_form(workers=workers(container={"imagePullPolicy": "Sometimes"})),
            'spec.workers.template is invalid: spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes"',
        ),
        (
            first_form(workers=workers(container={"ports": "8080"})),
            'spec.workers.template is invalid: Pod in version "v1" cannot be handled as a Pod:',
        ),
        (
            first_form(workers=workers(container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]})),
            'spec.workers.template is invalid: spec.containers[0].volumeMounts[0].name: Not found: "data"',
        ),
        (
            first_form(launcher={"command": ["mpirun"], "env": [{"name": "A=B", "value": "C"}]}),
            'The launcher is invalid: spec.containers[0].env[0].name: Invalid value: "A=B"',
        ),
    ],
)
def test_bad_input_is_one_sentence(users: Cluster, ipujob: dict[str, Any], sentence: str) -> None:
    error = users.rejection(in_namespace(users, ipujob))
    assert f'admission webhook "vipujob.graphcore.ai" denied the request: {sentence}' in error


@pytest.mark.parametrize(
    ("ipujob", "message"),
    [
        (first_form(restartPolicy={"type": "Sometimes"}), 'spec.restartPolicy.type: Unsupported value: "Sometimes"'),
        (first_form(workers=workers(0)), "spec.workers.replicas in body should be greater than or equal to 1"),
        (first_form(workers={"replicas": 1}), "spec.workers.template: Required value"),
    ],
)
def test_the_schema_rejects_what_it_can(users: Cluster, ipujob: dict[str, Any], message: str) -> None:
    assert message in users.rejection(in_namespace(users, ipujob))


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap"])
def test_names_that_collide(users: Cluster, kind: str) -> None:
    name = "taken-worker-0" if kind == "Pod" else "taken-config"
    thing = plain_pod(users, name)
    if kind == "ConfigMap":
        thing = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": users.namespace}}
    users.create(thing)
    error = users.rejection(in_namespace(users, first_form(), "taken"))
    sentence = f"{kind} {users.namespace}/{name} exists and belongs to no IPUJob. Delete it, or choose another name"
    assert f"denied the request: {sentence} for the job." in error
    users.kubectl("delete", kind, name, "--grace-period=0", "--force")


@pytest.mark.parametrize("example", ["single-gcd-sample", "interactive-job"])
def test_published_examples_are_accepted(users: Cluster, example: str) -> None:
    file = EXAMPLES / f"{example}.yaml"
    users.kubectl("apply", "--filename", file)
    given = yaml.safe_load(file.read_text())
    found = users.get("ipujob", given["metadata"]["name"])["spec"]
    defaults = {"cleanPodPolicy": "None", "restartPolicy": {"type": "Never", "backOffLimit": 3}}
    assert found == {**defaults, **given["spec"]}


def test_fixed_fields_cannot_be_changed(users: Cluster) -> None:
    users.create(in_namespace(users, first_form(), "fixed"))

    def patch(spec: dict[str, Any]) -> str:
        """Return the error of a change, empty for one that was made, perhaps with a warning."""
        done = users.run("patch", "ipujob", "fixed", "--type=merge", "--patch", json.dumps({"spec": spec}))
        return done.stderr if done.returncode else ""

    assert "spec.modelReplicas cannot be changed while the job exists, unless it is suspended." in patch(
        {"modelReplicas": "8"}
    )
    assert "spec.workers.replicas cannot be changed while the job exists" in patch({"workers": {"replicas": 2}})
    assert patch({"suspend": True}) == ""
    assert patch({"modelReplicas": "8", "workers": {"replicas": 2}}) == ""
    assert "the size of a partition is a power of two" in patch({"modelReplicas": "7"})
    users.kubectl("scale", "ipujob/fixed", "--replicas=2")


def test_a_warning_about_the_network_interface(users: Cluster, has_warnings: bool) -> None:
    ipujob = json.dumps(in_namespace(users, first_form(workers=workers(2))))
    done = users.run("create", "--dry-run=server", "--filename=-", stdin=ipujob)
    assert done.returncode == 0
    text = "Warning: spec.launcher.command runs mpirun on several workers without a network interface."
    assert (text in done.stderr) == has_warnings


def test_a_quota_delays_jobs_with_a_warning(users: Cluster, has_warnings: bool) -> None:
    users.kubectl("create", "quota", "none", "--hard=pods=0")
    try:
        until(lambda: "hard" in users.get("quota", "none").get("status", {}))
        ipujob = json.dumps(in_namespace(users, first_form()))
        done = users.run("create", "--dry-run=server", "--filename=-", stdin=ipujob)
        assert done.returncode == 0
        text = "Warning: The pods are denied at present, and the job waits until they are not:"
        assert (text in done.stderr) == has_warnings
    finally:
        users.kubectl("delete", "quota", "none")


def test_dry_runs_reserve_nothing(site: Site, users: Cluster) -> None:
    before = site.operator.proxy.records()
    users.create(in_namespace(users, first_form(), "dry"), dry_run=True)
    users.create(plain_pod(users, "dry", "4"), dry_run=True)
    assert users.run("get", "pod", "dry").returncode == users.run("get", "ipujob", "dry").returncode == 1
    assert site.operator.proxy.records().keys() <= before.keys()


def test_invalid_jobs_from_before_the_webhooks_can_be_deleted(site: Site, users: Cluster) -> None:
    setup = site.setup
    setup.remove()
    try:
        invalid = json.dumps(in_namespace(users, first_form(modelReplicas="3"), "invalid"))
        until(lambda: users.run("create", "--filename=-", stdin=invalid).returncode == 0)
    finally:
        setup.install()
        setup.wait()
    until(lambda: "finalizers" in users.get("ipujob", "invalid")["metadata"], SECONDS)
    users.kubectl("label", "ipujob", "invalid", "team=a")
    users.kubectl("delete", "ipujob", "invalid", "--timeout=50s")


@pytest.mark.parametrize(
    ("ipus", "limit", "sentence"),
    [
        ("3", None, "is 3, but the size of a partition is a power of two. Use 1, 2, 4, 8, 16, 32 or 64."),
        ("128", None, "is 128, but a partition has at most 64 IPUs. Use fewer."),
        ("two", None, "is 'two', which is no number of IPUs. Use 1, 2, 4, 8, 16, 32 or 64."),
        ("", None, "is '', which is no number of IPUs. Use 1, 2, 4, 8, 16, 32 or 64."),
        ("0", None, "is 0, but the size of a partition is a power of two. Use 1, 2, 4, 8, 16, 32 or 64."),
        ("4", "2", "is 4, but the limits graphcore.ai/ipu of the containers request 2. Use the same number."),
    ],
)
def test_bad_pods_are_one_sentence(users: Cluster, ipus: str, limit: str | None, sentence: str) -> None:
    error = users.rejection(plain_pod(users, "pod", ipus, limit))
    denial = 'admission webhook "mpod.graphcore.ai" denied the request: The annotation graphcore.ai/ipu'
    assert f"{denial} {sentence}" in error


@pytest.mark.parametrize("limit", [None, "4"])
def test_pods_without_the_annotation_stay_untouched(site: Site, users: Cluster, limit: str | None) -> None:
    without_webhooks = replace(users, namespace=f"{users.namespace}-without")
    if without_webhooks.run("get", "namespace", without_webhooks.namespace).returncode:
        without_webhooks.create_namespace()
    name = f"untouched-{limit or 0}"
    contents = []
    for cluster in (users, without_webhooks):
        cluster.create(plain_pod(cluster, name, limit=limit))
        contents.append(content(cluster, name))
    assert contents[0] == contents[1]


def content(cluster: Cluster, name: str) -> str:
    """Return the text of a pod, without the fields that differ between any two pods."""
    pod = cluster.get("pod", name)
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"):
        pod["metadata"].pop(field, None)
    del pod["status"]
    pod["spec"].pop("nodeName", None)
    text = json.dumps(pod, sort_keys=True)
    (token,) = (each["name"] for each in pod["spec"]["volumes"])  # of the service account
    return text.replace(token, "token")


def test_pods_of_the_release_stay_untouched(site: Site) -> None:
    cluster = site.setup.cluster
    cluster.create(plain_pod(cluster, "release", "3"))
    assert "initContainers" not in cluster.get("pod", "release")["spec"]


def test_an_injected_pod_can_be_created_again(users: Cluster) -> None:
    users.create(plain_pod(users, "again", "4", "4"))
    stored = users.get("pod", "again")
    assert stored["metadata"]["annotations"]["graphcore.ai/status"] == "injected"
    users.kubectl("delete", "pod", "again", "--grace-period=0", "--force")
    kept = ("name", "namespace", "labels", "annotations")
    users.create({**stored, "metadata": {name: stored["metadata"][name] for name in kept}})
    assert users.get("pod", "again")["spec"]["initContainers"] == stored["spec"]["initContainers"]


def test_invalid_bodies_are_one_sentence(site: Site) -> None:
    port, authorities = site.setup.ports[0], site.setup.bundle()

    def call(body: bytes) -> tuple[int, str]:
        reply = webhooks.post(port, "/mutate-v1-pod", body, authorities)
        return reply.status, reply.body["message"]

    status, text = call(b"nonsense")
    assert status == 400
    assert text.startswith("The body is no AdmissionReview: JSONDecodeError")
    assert call(json.dumps({"apiVersion": "v1", "kind": "Pod", "request": {}}).encode()) == (
        400,
        "The body is Pod v1. Send an AdmissionReview admission.k8s.io/v1 or v1beta1.",
    )
    assert call(b"[" * 100_000)[0] == 400
    too_large = (413, "The body has more than 8388608 bytes. Send a smaller one.")
    assert call(b" " * (8 * MEBIBYTE + 1)) == too_large
    assert "Traceback" not in site.operator.log


@pytest.mark.parametrize(
    ("path", "thing"),
    [
        ("/mutate-v1-pod", plain_pod(Cluster(Path(), Path()), "pod", "3")),
        ("/mutate-graphcore-ai-v1alpha1-ipujob", first_form(cleanPodPolicy=None)),
        ("/validate-graphcore-ai-v1alpha1-ipujob", first_form(modelReplicas="3")),
    ],
)
def test_other_namespaces_are_left_alone(site: Site, path: str, thing: dict[str, Any]) -> None:
    def answer(namespace: str, operation: str = "CREATE") -> Any:
        request = {"uid": "1", "operation": operation, "namespace": namespace, "object": thing}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        reply = webhooks.post(site.setup.ports[0], path, json.dumps(review).encode(), site.setup.bundle())
        assert reply.status == 200
        return reply.body["response"]

    untouched = {"uid": "1", "allowed": True}
    assert answer(site.setup.users.namespace) != untouched
    assert answer("elsewhere") == untouched
    assert answer("kube-system") == untouched
    assert answer(site.setup.users.namespace, "DELETE") == untouched
