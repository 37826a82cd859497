# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ``ipu_operator`` with hollow nodes: labels, credentials, release, check mode, removal, errors."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import CRD, ROOT, Cluster
from tests.kubernetes.releases import NO_WEBHOOK_CALLS, CompletingNode, uninstalled
from tests.kubernetes.roles import ACCESS_KEY, Role
from tests.kubernetes.servers import Answering
from tests.ports import free_port

pytestmark = pytest.mark.timeout(1800)  # each test runs Ansible several times
NODES = ("hollow-role-1", "hollow-role-2")
JOB = {
    "apiVersion": "graphcore.ai/v1alpha1",
    "kind": "IPUJob",
    "metadata": {"name": "live"},
    "spec": {
        "ipusPerJobInstance": "1",
        "workers": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}},
    },
}

_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def nodes(control_plane: Cluster) -> Iterator[None]:
    """Start two nodes without labels, on which the pods of the chart run.

    The tests remove the custom resource, which other tests need again.
    """
    started = [CompletingNode(control_plane.kubeconfig, name=name, labels={}) for name in NODES]
    for node in started:
        node.start()
    yield
    for node in started:
        node.stop()
    control_plane.kubectl("apply", "--filename", CRD)
    control_plane.kubectl("wait", "--for=condition=Established", "crd/ipujobs.graphcore.ai", "--timeout=30s")


@pytest.fixture
def idle(control_plane: Cluster, tmp_path: Path) -> Role:
    """Return the role with a controller of the first node and a namespace that does not exist yet."""
    variables = {
        "ipu_operator_controllers": [controller(NODES[0])],
        "ipu_operator_credentials": [{"user_id": "jobs", "access_key": ACCESS_KEY}],
        # The API server does not reach the webhooks of hollow pods.
        "ipu_operator_values": {"admissionWebhooks": {"scope": ["elsewhere"]}},
        "ipu_operator_verify": False,
        "ipu_operator_timeout": 60,
    }
    return Role(control_plane, tmp_path, f"role-{next(_numbers)}", variables)


@pytest.fixture
def role(idle: Role) -> Iterator[Role]:
    """Yield the role without a custom resource, and remove at the end what it has installed."""
    remove_crd(idle)
    yield idle
    remove_jobs(idle)
    idle.apply(ipu_operator_state="absent", ipu_operator_force=True)


def remove_crd(role: Role) -> None:
    """Remove the custom resource and all jobs."""
    remove_jobs(role)
    role.cluster.kubectl("delete", "crd", "ipujobs.graphcore.ai", "--ignore-not-found")


def remove_jobs(role: Role) -> None:
    """Remove all jobs, such as those of tests that have stopped their operator."""
    cluster = role.cluster
    for each in cluster.get("ipujobs", everywhere=True)["items"] if role.has_crd() else ():
        name, here = each["metadata"]["name"], f"--namespace={each['metadata']['namespace']}"
        cluster.kubectl("patch", "ipujob", name, here, "--type=merge", '--patch={"metadata": {"finalizers": null}}')
        cluster.kubectl("delete", "ipujob", name, here, "--ignore-not-found")


def controller(*nodes: str, **options: Any) -> dict[str, Any]:
    return {"host": "10.0.0.1", "port": 8090, "label": "ipunode=node1", "nodes": list(nodes), **options}


def test_a_life_of_the_operator(role: Role) -> None:
    cluster, here = role.cluster, f"--namespace={role.namespace}"
    before = role.versions()
    assert role.apply("--check") > 0
    assert role.versions() == before

    assert role.apply() > 0
    assert role.labels(NODES[0])["ipunode"] == "node1"
    assert "ipunode" not in role.labels(NODES[1])
    [secret] = role.secrets()
    assert {key: base64.b64decode(text).decode() for key, text in secret.items()} == {
        "user-id": "jobs",
        "access-key": ACCESS_KEY,
    }
    config = role.release.get("configmap", "gc-ipu-operator-vipu-controllers")
    assert config["data"]["controllers.yaml"] == "- 10.0.0.1:8090:ipunode=node1\n"
    deployments = role.release.get("deployments")["items"]
    assert [each["status"]["readyReplicas"] for each in deployments] == [1, 1]

    before = role.versions()
    assert role.apply() == 0
    assert role.apply("--check") == 0
    assert role.versions() == before

    # A change by hand is drift, which the role repairs.
    cluster.kubectl("scale", "deployment", "gc-ipu-operator-vipu-proxy", "--replicas=0", here)
    changed = role.run("--check")
    assert changed.changed == 1
    assert "+ replicas: 1" in changed.text
    assert role.apply() == 1
    assert role.release.get("deployment", "gc-ipu-operator-vipu-proxy")["spec"]["replicas"] == 1

    before = role.versions()
    assert role.apply("--check", ipu_operator_state="absent") > 0
    assert role.versions() == before
    assert role.apply(ipu_operator_state="absent") > 0
    assert not role.has_crd()
    assert role.namespace not in cluster.kubectl("get", "namespaces")
    assert "ipunode" not in role.labels(NODES[0])
    assert role.apply(ipu_operator_state="absent") == 0


def test_changed_ports_upgrade_the_release(role: Role) -> None:
    assert role.apply() > 0
    values = {**role.variables["ipu_operator_values"], "vipuProxy": {"proxyPort": 8081, "service": {"port": 81}}}
    checked = role.run("--check", "--diff", ipu_operator_values=values)
    assert (checked.failed, checked.changed) == (False, 1), checked.text[-6000:]
    # kubectl merges the old port with the new one, which has the same name.
    assert "kubectl cannot show all changes: " in checked.text
    assert role.apply(ipu_operator_values=values) == 1
    [container] = role.release.get("deployment", "gc-ipu-operator-vipu-proxy")["spec"]["template"]["spec"]["containers"]
    assert [each["containerPort"] for each in container["ports"]] == [8081]
    assert role.apply(ipu_operator_values=values) == 0


def test_labels_follow_the_list_and_those_of_others_stay(role: Role) -> None:
    cluster = role.cluster
    cluster.kubectl("label", "node", NODES[1], "ipunode=node1")
    try:
        role.apply(ipu_operator_controllers=[controller(*NODES)])
        assert [role.labels(name)["ipunode"] for name in NODES] == ["node1", "node1"]
        # Another key for the first node, and the second one is no longer listed.
        changed = [controller(NODES[0], label="ipunode=node1b"), controller(NODES[0], host="10.0.0.2", label="more=b")]
        assert role.apply("--check", ipu_operator_controllers=changed) == 2  # labels and release
        role.apply(ipu_operator_controllers=changed)
        assert (role.labels(NODES[0])["ipunode"], role.labels(NODES[0])["more"]) == ("node1b", "b")
        assert role.labels(NODES[1])["ipunode"] == "node1"
        wrong = role.rejection(ipu_operator_controllers=[controller(*NODES, label="ipunode=other")])
        assert f"Cannot label nodes: {NODES[1]} has ipunode=node1 instead of ipunode=other" in wrong
        role.apply(ipu_operator_state="absent")
        assert not {"ipunode", "more"} & set(role.labels(NODES[0]))
        assert role.labels(NODES[1])["ipunode"] == "node1"
    finally:
        cluster.kubectl("label", "node", NODES[1], "ipunode-")


def test_credentials_change_and_disappear(role: Role) -> None:
    role.apply()
    revisions = [name for name in role.versions() if "helm.release" in name]
    ca = role.folder / "ca.crt"
    ca.write_text("certificate\n")
    changed = [{"user_id": "jobs", "access_key": ACCESS_KEY, "ca": str(ca)}]
    assert role.apply("--check", ipu_operator_credentials=changed) == 1
    assert "ca.crt" not in role.secrets()[0]
    assert role.apply(ipu_operator_credentials=changed) == 1
    assert base64.b64decode(role.secrets()[0]["ca.crt"]) == b"certificate\n"
    assert [name for name in role.versions() if "helm.release" in name] == revisions
    assert role.apply(ipu_operator_credentials=[]) == 2  # the release, then the Secret
    assert role.secrets() == []


def test_live_jobs_prevent_the_removal(role: Role) -> None:
    role.apply()
    role.cluster.create(JOB)
    rejected = role.rejection(ipu_operator_state="absent")
    assert "1 IPUJobs or pods with IPUs live (IPUJob default/live). Nothing was changed." in rejected
    assert "Nothing was changed" in role.rejection("--check", ipu_operator_state="absent")
    role.apply(ipu_operator_state="absent", ipu_operator_force=True)
    assert not role.has_crd()


FINALIZERS = ["ipu.finalizers.graphcore.ai"]


def existing_job(cluster: Cluster, name: str, namespace: str, state: str) -> None:
    """Create a job in the state that an operator has left it."""
    job = {**JOB, "metadata": {"name": name, "namespace": namespace, "finalizers": ["example.org/first", *FINALIZERS]}}
    path = f"/apis/graphcore.ai/v1alpha1/namespaces/{namespace}/ipujobs"
    made = cluster.request("POST", path, job)
    cluster.request("PUT", f"{path}/{name}/status", {**made, "status": {"launcherStatus": state}})


def jobs(cluster: Cluster) -> dict[str, list[str]]:
    """Return the finalizers of all jobs by name."""
    found = cluster.get("ipujobs", everywhere=True)["items"]
    return {each["metadata"]["name"]: each["metadata"].get("finalizers", []) for each in found}


def test_ended_jobs_stay_with_the_custom_resource_of_others(role: Role) -> None:
    cluster = role.cluster
    cluster.kubectl("apply", "--server-side", "--field-manager=others", "--filename", CRD)
    role.apply()
    existing_job(cluster, "ended", "default", "Succeeded")
    before = role.versions()
    assert role.apply("--check", ipu_operator_state="absent") > 0
    assert role.versions() == before
    role.apply(ipu_operator_state="absent")
    assert role.has_crd()
    assert jobs(cluster) == {"ended": ["example.org/first"]}  # which no operator would remove
    assert role.apply(ipu_operator_state="absent") == 0


def test_jobs_of_other_releases_stay(role: Role, cluster: Cluster) -> None:
    """The release of the role watches all namespaces, and the other one that of the test."""
    role.apply()
    with uninstalled(cluster, "other") as other:
        other.install("--skip-crds", *NO_WEBHOOK_CALLS, "--set", f"controller.watchNamespaces={cluster.namespace}")
        for name, state in (("live-there", "Running"), ("ended-there", "Failed")):
            existing_job(cluster, name, cluster.namespace, state)
        existing_job(cluster, "ended-here", "default", "Succeeded")
        role.apply(ipu_operator_state="absent", ipu_operator_force=True)
        assert jobs(cluster) == {
            "live-there": ["example.org/first", *FINALIZERS],
            "ended-there": ["example.org/first", *FINALIZERS],
            "ended-here": ["example.org/first"],
        }
        assert other.objects()


def test_a_namespace_and_objects_of_others_stay(role: Role) -> None:
    cluster, here = role.cluster, f"--namespace={role.namespace}"
    cluster.kubectl("create", "namespace", role.namespace)
    cluster.kubectl("create", "secret", "generic", "mine", here)
    role.apply()
    role.apply(ipu_operator_state="absent")
    left = [each["metadata"]["name"] for kind in ("secrets", "configmaps") for each in role.release.get(kind)["items"]]
    assert [name for name in left if not name.startswith(("default-token", "kube-root-ca"))] == ["mine"]
    cluster.kubectl("delete", "namespace", role.namespace, "--wait=false")


def test_quotas_of_namespaces_follow_the_list(role: Role, cluster: Cluster) -> None:
    def hard() -> dict[str, str]:
        found: dict[str, str] = cluster.get("resourcequota", "gc-ipus")["spec"]["hard"]
        return found

    before = role.versions()
    given = [{"namespace": cluster.namespace, "ipus": 8}]
    missing = role.rejection(ipu_operator_quotas=[*given, {"namespace": "no-such", "ipus": 4}])
    assert "Cannot set the quota of namespace 'no-such': Kubernetes has no such namespace." in missing
    cluster.kubectl("create", "quota", "gc-ipus", "--hard=pods=10")
    foreign = role.rejection(ipu_operator_quotas=given)
    assert f"Cannot set the quotas of namespaces {cluster.namespace}: ResourceQuota 'gc-ipus' exists" in foreign
    assert hard() == {"pods": "10"}
    cluster.kubectl("delete", "quota", "gc-ipus")
    role.apply("--check", ipu_operator_quotas=given)
    assert role.versions() == before
    role.apply(ipu_operator_quotas=given)
    assert hard() == {"requests.graphcore.ai/ipu": "8"}
    assert "--request-ipus" in str(role.release.get("deployments"))
    assert role.apply(ipu_operator_quotas=given) == 0
    cluster.kubectl("patch", "quota", "gc-ipus", '--patch={"spec": {"hard": {"requests.graphcore.ai/ipu": "64"}}}')
    assert role.apply("--check", ipu_operator_quotas=given) == 1
    assert role.apply(ipu_operator_quotas=given) == 1
    assert hard() == {"requests.graphcore.ai/ipu": "8"}
    cluster.kubectl("create", "quota", "others", "--hard=pods=10")
    role.apply(ipu_operator_state="absent", ipu_operator_quotas=given)
    assert [each["metadata"]["name"] for each in cluster.get("resourcequotas")["items"]] == ["others"]


POD = """plugin: openipu.pod.pod
name: pod1
racks:
  - name: rack1
    number: 1
    servers:
      - {name: admin, roles: [controller]}
      - {name: server2}
clusters: []
"""


@pytest.mark.parametrize(("playbook", "options"), [("kubernetes", []), ("site", ["--tags", "kubernetes"])])
def test_the_playbooks_read_the_nodes_from_pod_yml(role: Role, playbook: str, options: list[str]) -> None:
    path, pod = ROOT / f"playbooks/{playbook}.yml", role.folder / "pod.yml"
    (role.folder / "machines.csv").write_text(
        "name,unit,bmc_mac,gw_mac,rnic_mac\nm1,1,02:00:00:00:00:01,02:00:00:00:00:02,02:00:00:00:00:03\n"
    )
    del role.variables["ipu_operator_controllers"]
    pod.write_text(POD)
    before = role.versions()
    assert role.play(path, pod, *options).changed == 0
    assert role.versions() == before
    pod.write_text(f"{POD}kubernetes: {{label: ipunode=pod1, node_names: {{server2: {NODES[1]}}}}}\n")
    done = role.play(path, pod, *options)
    assert not done.failed, done.text[-6000:]
    assert role.labels(NODES[1])["ipunode"] == "pod1"
    config = role.release.get("configmap", "gc-ipu-operator-vipu-controllers")
    assert config["data"]["controllers.yaml"] == "- 10.3.1.101:8090:ipunode=pod1\n"


def kubeconfig(cluster: Cluster, path: Path, **changes: Any) -> str:
    """Write a configuration with other settings of the API server, and return its path."""
    config: Any = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= changes
    path.write_text(yaml.safe_dump(config))
    return str(path)


BAD = [
    ({"ipu_operator_controllers": []}, "ipu_operator_controllers is empty. Add the key 'kubernetes' to pod.yml"),
    (
        {"ipu_operator_controllers": [controller(label="node1")]},
        "Cannot use label 'node1' of V-IPU controller 10.0.0.1 in ipu_operator_controllers: write it as key=value.",
    ),
    (
        {"ipu_operator_controllers": [controller("a"), controller("a", host="b", label="ipunode=b")]},
        "Cannot label node 'a': two V-IPU controllers in ipu_operator_controllers have it",
    ),
    (
        {"ipu_operator_controllers": [controller("missing")]},
        "Cannot label node 'missing': Kubernetes has no node with this name. Known are hollow-role-1, hollow-role-2.",
    ),
    (
        {"ipu_operator_credentials": [{"controller": "10.0.0.9:8090", "user_id": "a"}]},
        "Cannot use the credentials of V-IPU controller '10.0.0.9:8090' in ipu_operator_credentials: this controller "
        "is unknown. Known are 10.0.0.1:8090 and default.",
    ),
    (
        {"ipu_operator_credentials": [{"ca": "/nowhere/ca.crt"}]},
        "Cannot read '/nowhere/ca.crt', option 'ca' of ipu_operator_credentials: the file does not exist",
    ),
    (
        {"ipu_operator_kubeconfig": "/nowhere/config"},
        "Cannot read the kubeconfig '/nowhere/config' on localhost (local): the file does not exist. Copy it there, or",
    ),
    (
        {
            "ipu_operator_quotas": [{"namespace": "default", "ipus": 4}],
            "ipu_operator_values": {"worker": {"requestIpus": False}},
        },
        "Cannot set the quotas of namespaces: worker.requestIpus in ipu_operator_values is false",
    ),
    ({"ipu_operator_kubectl": "/nowhere/kubectl"}, "Cannot run '/nowhere/kubectl' on localhost: "),
    ({"ipu_operator_helm": "/nowhere/helm"}, "Cannot use '/nowhere/helm' on localhost: it is not Helm 3.17 or later"),
    ({"ipu_operator_chart": "/nowhere/chart"}, "Cannot read the chart '/nowhere/chart' on localhost: "),
    ({"ipu_operator_context": "other"}, "Cannot reach the Kubernetes API server of kubeconfig"),
    ({"ipu_operator_values": {"controler": {"replicas": 2}}}, "Cannot install chart"),
]


@pytest.mark.parametrize(("variables", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_gives_one_message_and_no_change(idle: Role, variables: dict[str, Any], message: str) -> None:
    assert message in idle.rejection(**variables)


def test_an_unreachable_api_server(idle: Role) -> None:
    file = kubeconfig(idle.cluster, idle.folder / "config", server=f"https://127.0.0.1:{free_port()}")
    text = idle.rejection(ipu_operator_kubeconfig=file)
    assert f"Cannot reach the Kubernetes API server of kubeconfig '{file}': " in text
    assert "The connection to the server 127.0.0.1:" in text


def test_an_old_api_server(idle: Role) -> None:
    with Answering({"major": "1", "minor": "19+", "gitVersion": "v1.19.16"}) as server:
        file = idle.folder / "config"
        file.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "old", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
                    "contexts": [{"name": "old", "context": {"cluster": "old", "user": ""}}],
                    "current-context": "old",
                }
            )
        )
        text = idle.rejection(ipu_operator_kubeconfig=str(file))
    assert f"the API server of kubeconfig '{file}' has Kubernetes 1.19. Upgrade it to 1.20 or later." in text
