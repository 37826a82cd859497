# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart without an API server: names, rights, versions of Kubernetes, and mistakes in values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.charts import (
    FULLNAME,
    MANAGER,
    OWN_CERTIFICATE,
    PROGRAMS,
    PROXY,
    RELEASE,
    VALUES,
    Objects,
    arguments,
    controller_list,
    field,
    find,
    grants,
    pod,
    ports,
    rejection,
    render,
)
from tools.kubernetes import generated, helm

VERSIONS = [f"1.{minor}" for minor in range(20, 35)]


@pytest.fixture(scope="module")
def default() -> Objects:
    """Return the objects of a release with the default values."""
    return render()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_chart_renders_for_all_versions(version: str) -> None:
    objects = render({"controller.replicas": 2, "extendedScheduler.enabled": True}, "--kube-version", version)
    budget = find(objects, "PodDisruptionBudget", f"{FULLNAME}-{MANAGER}")
    assert budget is not None
    minor = int(version.split(".")[1])
    assert budget["apiVersion"] == ("policy/v1beta1" if minor == 20 else "policy/v1")
    scheduler = field("ConfigMap", f"{FULLNAME}-scheduler", "data scheduler.yaml")(objects)
    expected = "v1beta1" if minor < 22 else "v1beta2" if minor < 25 else "v1"
    assert yaml.safe_load(scheduler)["apiVersion"] == f"kubescheduler.config.k8s.io/{expected}"
    webhooks = field("MutatingWebhookConfiguration", FULLNAME, "webhooks")(objects)
    conditions = {each["name"]: "matchConditions" in each for each in webhooks}
    assert conditions == {"mipujob.graphcore.ai": False, "mpod.graphcore.ai": minor >= 30}


def test_older_servers_are_rejected() -> None:
    assert "chart requires kubeVersion: >=1.20.0-0" in rejection("--kube-version", "1.19")


def test_lint_accepts_the_chart() -> None:
    for settings in ([], ["--values", str(helm.CHART / "values-1.2.0.yaml")]):
        done = helm.run("lint", "--strict", helm.CHART, *settings)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("component", PROGRAMS)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"admissionWebhooks.enabled": False, "ipuVisibility.enabled": False, "worker.hostNetwork": False},
        {
            **OWN_CERTIFICATE,
            "controller.watchNamespaces": ["a"],
            "global.imagePullSecrets": ["s"],
            "vipuClusterName": "c",
        },
        {"worker.requestIpus": True, "ipuVisibility.advertiseOnMaster": True, "extendedScheduler.enabled": True},
    ],
)
def test_programs_accept_their_arguments(component: str, values: dict[str, Any]) -> None:
    given = arguments(render(values), component)
    context = PROGRAMS[component].make_context(component, list(given))
    assert context.params["namespace"] == "$(POD_NAMESPACE)"
    probe = pod(component, "containers 0 livenessProbe httpGet")(render(values))
    name = "health_port" if component == MANAGER else "port"
    assert ports(component)(render(values))[probe["port"]] == context.params[name]


def test_first_transcript_has_its_names(default: Objects) -> None:
    assert {each["metadata"]["name"] for each in default if each["kind"] == "Deployment"} == {
        "gc-ipu-operator-controller-manager",
        "gc-ipu-operator-vipu-proxy",
    }
    reader = find(default, "ClusterRole", "gc-metrics-reader")
    assert reader is not None
    assert reader["metadata"]["labels"]["component"] == "metrics-reader"
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert find(default, "ConfigMap", "gc-ipu-operator-vipu-controllers") is not None


def test_preset_has_the_names_of_the_published_chart() -> None:
    objects = render(None, "--values", str(helm.CHART / "values-1.2.0.yaml"))
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert {
        ("Deployment", "ipu-operator-controller-manager"),
        ("Deployment", "ipu-operator-vipu-proxy"),
        ("Service", "ipu-operator-vipu-proxy"),
        ("Service", "ipu-operator-webhook-svc"),
        ("ConfigMap", "ipu-operator-vipu-controllers"),
        ("ClusterRole", "gc-metrics-reader"),
    } <= names


def test_webhooks_are_as_published(default: Objects) -> None:
    found = {
        each["name"]: each
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for each in field(kind, FULLNAME, "webhooks")(default)
    }
    paths = {name: each["clientConfig"]["service"]["path"] for name, each in found.items()}
    assert paths == {
        "mipujob.graphcore.ai": "/mutate-graphcore-ai-v1alpha1-ipujob",
        "vipujob.graphcore.ai": "/validate-graphcore-ai-v1alpha1-ipujob",
        "mpod.graphcore.ai": "/mutate-v1-pod",
    }
    for each in found.values():
        assert each["admissionReviewVersions"] == ["v1", "v1beta1"]
        assert (each["sideEffects"], each["failurePolicy"], each["timeoutSeconds"]) == ("None", "Fail", 30)
        assert "caBundle" not in each["clientConfig"]  # an upgrade must not replace that of the operator
    [excluded] = found["mpod.graphcore.ai"]["namespaceSelector"]["matchExpressions"]
    assert (excluded["operator"], excluded["values"]) == ("NotIn", ["kube-system", "default"])


def test_cert_manager_provides_the_certificate_and_its_ca() -> None:
    objects = render({"admissionWebhooks.certManager.enabled": True})
    name = f"{FULLNAME}-webhook-certificate"
    certificate = field("Certificate", name, "spec")(objects)
    service = f"{FULLNAME}-webhook-svc.default.svc"  # as the API server verifies it
    assert certificate["dnsNames"] == [service, f"{service}.cluster.local"]
    assert certificate["issuerRef"] == {"kind": "Issuer", "name": name}
    assert field("Issuer", name, "spec")(objects) == {"selfSigned": {}}
    # The programs read the Secret that cert-manager writes.
    volume = {"name": "certificates", "secret": {"secretName": certificate["secretName"], "defaultMode": 0o440}}
    assert volume in pod(MANAGER, "volumes")(objects)
    [mount] = [each for each in pod(MANAGER, "containers 0 volumeMounts")(objects) if each["name"] == "certificates"]
    assert f"--webhook-certificates={mount['mountPath']}" in arguments(objects, MANAGER)
    # cert-manager writes the CA to both configurations, and the operator needs no rights for that.
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = field(kind, FULLNAME, "metadata annotations")(objects)
        assert annotations == {"cert-manager.io/inject-ca-from": f"default/{name}"}
        assert not any("caBundle" in each["clientConfig"] for each in field(kind, FULLNAME, "webhooks")(objects))
    rights = grants(objects)
    assert {each[2:] for each in rights if each[1] == "secrets"} == {("", "create")}
    assert {each[3] for each in rights if each[1].endswith("webhookconfigurations")} == {"get"}  # of that job
    # This job waits for the webhooks, and verifies this certificate.
    assert find(objects, "Job", f"{FULLNAME}-admission") is not None
    other = render({"admissionWebhooks.certManager": {"enabled": True, "issuerRef": {"name": "i", "kind": "Issuer"}}})
    assert find(other, "Issuer", name) is None


def test_the_pod_webhook_leaves_out_the_pods_of_the_chart() -> None:
    objects = render({"admissionWebhooks.scope": "a"})
    selector = field("MutatingWebhookConfiguration", FULLNAME, "webhooks 1 objectSelector matchExpressions")(objects)
    assert {"key": "app.kubernetes.io/part-of", "operator": "NotIn", "values": ["ipu-operator"]} in selector
    for each in objects:
        if each["kind"] in ("Deployment", "Job"):
            assert each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "ipu-operator"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "pod001:8090:ipunode=node1,pod002:8091:ipunode=node2",
            [("pod001:8090", ("ipunode", "node1")), ("pod002:8091", ("ipunode", "node2"))],
        ),
        (
            "10.1.1.1:8090:ipunode=1,10.1.1.2:8091:ipunode=2,10.1.1.3:8091:ipunode=03",
            [
                ("10.1.1.1:8090", ("ipunode", "1")),
                ("10.1.1.2:8091", ("ipunode", "2")),
                ("10.1.1.3:8091", ("ipunode", "03")),
            ],
        ),
        (
            "a:1:k=v,pod.example.com:8090:example.com/rack=true",
            [("a:1", ("k", "v")), ("pod.example.com:8090", ("example.com/rack", "true"))],
        ),
    ],
)
@pytest.mark.parametrize("value", ["vipuControllers", "global.vipuControllers"])
def test_a_list_that_helm_splits_is_put_together(value: str, text: str, expected: list[Any]) -> None:
    split = [each if index == 0 or "." not in value else f"global.{each}" for index, each in enumerate(text.split(","))]
    assert controller_list(render(None, "--set", f"{value}={','.join(split)}")) == expected
    assert controller_list(render({value: text})) == expected


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("controller.imgae.tag=x", "controller: Additional property imgae is not allowed"),
        ("controler.image.tag=x", "Unknown value 'controler.image.tag'"),
        ("vipuServerAdr=x", "Unknown value 'vipuServerAdr'"),
        ("global.vipuController=x", "Unknown value 'global.vipuController'"),
        ("b:2:k=v", "Unknown value 'b:2:k'"),
        ("admissionWebhooks.failurePolicy=Fial", 'must be one of the following: "Fail", "Ignore"'),
        ("vipuProxy.logLevel=7", "vipuProxy.logLevel: Must be less than or equal to 6"),
        ("service.type=clusterip1", "service.type must be one of the following"),
        ("vipuControllers=pod001", "'pod001' is no V-IPU controller. Write it as host:port:key=value"),
        ("vipuControllers=a:1,vipuServerAddr=b", "vipuControllers and vipuServerAddr exclude each other"),
        ("admissionWebhooks.patch.enabled=false", "Set admissionWebhooks.certificateSecret"),
        ("admissionWebhooks.certificateSecret=s", "needs admissionWebhooks.patch.enabled=false"),
        (
            "admissionWebhooks.certificateSecret=s,admissionWebhooks.patch.enabled=false",
            "admissionWebhooks.caCertificate is missing",
        ),
        (
            "admissionWebhooks.certificateSecret=s,admissionWebhooks.certManager.enabled=true",
            "admissionWebhooks.certManager.enabled and admissionWebhooks.certificateSecret exclude each other",
        ),
    ],
)
def test_mistakes_are_rejected(settings: str, sentence: str) -> None:
    assert sentence in rejection("--set", settings)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ("vipuProxi={}", "vipuProxi"),
        ('controler={"image":{}}', "controler.image"),
        ("global.vipuController={}", "global.vipuController"),
        ("tolerations_=[]", "tolerations_"),
        ("a:1:k={}", "a:1:k"),
    ],
)
def test_unknown_values_without_content_are_rejected(settings: str, name: str) -> None:
    assert f"Unknown value '{name}'" in rejection("--set-json", settings)


def test_another_chart_may_have_global_values_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/ipu-operator").symlink_to(helm.CHART)
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 0.1.0\n")
    values = {
        "global": {"storageClass": "fast", "labels": {}},
        "ipu-operator": {"enabled": True, "vipuControllers": "a:1:k=v"},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    done = helm.run("template", RELEASE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert controller_list([each for each in yaml.safe_load_all(done.stdout) if each]) == [("a:1", ("k", "v"))]


def test_names_stay_within_the_limit() -> None:
    release = "r" * 53
    names = {each["metadata"]["name"] for each in render(release=release) if each["kind"] in ("Service", "Deployment")}
    assert max(map(len, names)) <= 63
    other = {each["metadata"]["name"] for each in render(release=release[:-1] + "s") if each["kind"] == "Service"}
    assert not names & other


def test_rights_are_limited(default: Objects) -> None:
    found = grants(default)
    assert not {verb for *_, verb in found} & {"*", "escalate", "bind", "impersonate", "deletecollection"}
    assert not [each for each in found if "*" in each[1]]
    secrets = {each[2:] for each in found if each[1] == "secrets"}
    assert secrets == {("", "create"), (f"{FULLNAME}-admission", "get"), (f"{FULLNAME}-admission", "update")}
    configurations = {each[2:] for each in found if each[1].endswith("webhookconfigurations")}
    assert configurations == {(FULLNAME, "get"), (FULLNAME, "update")}
    assert ("nodes/status", "patch") in {(each[1], each[3]) for each in found}
    hidden = grants(render({"ipuVisibility.enabled": False, "admissionWebhooks.enabled": False}))
    assert not {each[1] for each in hidden} & {"nodes", "nodes/status", "mutatingwebhookconfigurations"}
    assert {each[2:] for each in hidden if each[1] == "secrets"} == {("", "create")}


def test_rights_in_some_namespaces_only() -> None:
    objects = render({"controller.watchNamespaces": ["a", "b"]})
    role = f"{FULLNAME}-{MANAGER}"
    bound = [each for each in objects if each.get("roleRef", {}).get("name") == role]
    assert [(each["kind"], each["metadata"]["namespace"]) for each in bound] == [
        ("RoleBinding", "a"),
        ("RoleBinding", "b"),
    ]


def test_every_pod_runs_without_privileges(default: Objects) -> None:
    pods = [each["spec"]["template"]["spec"] for each in default if each["kind"] in ("Deployment", "Job")]
    pods += [each["spec"] for each in default if each["kind"] == "Pod"]
    assert len(pods) == 4
    for each in pods:
        assert each["securityContext"]["runAsNonRoot"]
        assert each["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in each["containers"]:
            context = container["securityContext"]
            assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_credentials_are_in_the_folder_of_their_controller() -> None:
    objects = render({"vipuProxy.credentials": [{"controller": "pod001:8090", "secretName": "s"}]})
    mounts = pod(PROXY, "containers 0 volumeMounts")(objects)
    assert "/etc/vipu-credentials/pod001_8090" in {each["mountPath"] for each in mounts}
    assert pod(MANAGER, "containers 0 volumeMounts")(objects) == pod(MANAGER, "containers 0 volumeMounts")(render())


def test_schema_has_every_value() -> None:
    schema = json.loads((helm.CHART / "values.schema.json").read_text())
    missing = []
    for name in VALUES:
        part = schema
        for key in name.split("."):
            reference = part.get("$ref", "").rpartition("/")[2]
            part = (schema["definitions"][reference] if reference else part)["properties"].get(key, {})
        if not part:
            missing.append(name)
    assert missing == []
    templates = (helm.CHART / "templates/_values.tpl").read_text()
    known = templates.partition('"ipu-operator.known" -}}')[2].partition("{{-")[0].split()
    assert known == sorted(schema["properties"])
    known = templates.partition('"ipu-operator.knownGlobals" -}}')[2].partition("{{-")[0].split()
    assert known == sorted(schema["properties"]["global"]["properties"])


def test_generated_files_are_up_to_date() -> None:
    assert generated.stale() == []
