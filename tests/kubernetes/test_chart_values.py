# SPDX-License-Identifier: GPL-3.0-or-later
"""Every value of the chart has its effect, under all of its names."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from tests.kubernetes.charts import (
    CA,
    FULLNAME,
    MANAGER,
    OWN_CERTIFICATE,
    PROXY,
    RELEASE,
    VALUES,
    Field,
    Objects,
    controller_list,
    deployment,
    exists,
    field,
    grants,
    option,
    pod,
    ports,
    render,
)
from tools.kubernetes import generated, helm

TOLERATION = {"key": "ipu", "operator": "Exists"}
# Values of Graphcore's chart that belong to an image which this chart does not use.
WITHOUT_EFFECT = {f"admissionWebhooks.patch.image.{each}" for each in ("repository", "tag", "pullPolicy")}


def service(name: str, path: str) -> Field:
    return field("Service", f"{FULLNAME}-{name}", path)


def webhook(path: str) -> Field:
    return field("MutatingWebhookConfiguration", FULLNAME, f"webhooks 0 {path}")


def job(path: str) -> Field:
    return field("Job", f"{FULLNAME}-admission", f"spec template {path}")


def port(component: str, name: str) -> Field:
    return lambda objects: ports(component)(objects).get(name)


def account(name: str, path: str) -> Field:
    return field("ServiceAccount", name, path)


def rights(role: str) -> Field:
    return lambda objects: any(each[0] == role for each in grants(objects))


def extender_resource(objects: Objects) -> Any:
    """Return the resource for which the scheduler calls the proxy, None if it does not."""
    text = field("ConfigMap", f"{FULLNAME}-scheduler", "data scheduler.yaml")(objects)
    return None if text is None else yaml.safe_load(text)["extenders"][0]["managedResources"][0]


def may_change_nodes(objects: Objects) -> bool:
    return any(each[1:] == ("nodes/status", "", "patch") for each in grants(objects))


def first_container(path: str) -> Field:
    return job(f"spec containers 0 {path}")


def volume_secret(component: str, name: str) -> Field:
    """Return a function that returns the Secret of a volume."""
    return lambda objects: next(
        (each["secret"]["secretName"] for each in pod(component, "volumes")(objects) if each["name"] == name), None
    )


def alert(name: str, path: str) -> Field:
    """Return a function that returns a field of an alert, None if there is no such alert."""

    def value(objects: Objects) -> Any:
        groups = field("PrometheusRule", FULLNAME, "spec groups")(objects) or []
        found: Any = next((rule for group in groups for rule in group["rules"] if rule["alert"] == name), None)
        for key in path.split():
            found = (found or {}).get(key)
        return found

    return value


def threshold(name: str, operator: str = " > ") -> Field:
    """Return a function that returns the number with which an alert compares, or what else follows an operator."""
    return lambda objects: (alert(name, "expr")(objects) or "").rpartition(operator)[2]


def of_pods(value: str, component: str, older: str = "") -> list[tuple[str, Any, Field, Any]]:
    """Return the effects of the values that each Deployment has."""
    security = older and {"podSecurityContext": "podSecurityPolicyContext"}
    prefix = "" if older else f"{value}."
    name = (lambda each: (security or {}).get(each, each)) if older else (lambda each: each)
    annotations = deployment(component, "spec template metadata annotations a")
    return [
        (prefix + name("podAnnotations"), {"a": "b"}, annotations, "b"),
        (prefix + name("podSecurityContext"), {"runAsUser": 7}, pod(component, "securityContext runAsUser"), 7),
        (
            prefix + name("securityContext"),
            {"privileged": True},
            pod(component, "containers 0 securityContext privileged"),
            True,
        ),
        (
            prefix + name("resources"),
            {"limits": {"cpu": "2"}},
            pod(component, "containers 0 resources limits cpu"),
            "2",
        ),
        (prefix + name("nodeSelector"), {"disk": "ssd"}, pod(component, "nodeSelector disk"), "ssd"),
        (prefix + name("tolerations"), [TOLERATION], pod(component, "tolerations"), [TOLERATION]),
        (prefix + name("affinity"), {"podAffinity": {}}, pod(component, "affinity"), {"podAffinity": {}}),
    ]


# Value, what it is set to, a function that returns its effect, and the effect.
EFFECTS: list[tuple[str, Any, Field, Any]] = [
    ("nameOverride", "other", exists("Deployment", "gc-other-controller-manager"), True),
    ("fullnameOverride", "other", exists("Deployment", "other-controller-manager"), True),
    ("fullNameOverride", "other", exists("Service", "other-vipu-proxy"), True),
    ("vipuControllers", "a:1:k=v,b:2", controller_list, [("a:1", ("k", "v")), ("b:2", None)]),
    ("vipuControllers", ["a:1:k=v", "b:2"], controller_list, [("a:1", ("k", "v")), ("b:2", None)]),
    ("vipuServerAddr", "10.0.0.1", controller_list, [("10.0.0.1:8090", None)]),
    ("vipuClusterName", "c1", option(PROXY, "--cluster"), "c1"),
    ("vipuCLusterName", "c1", option(PROXY, "--cluster"), "c1"),
    ("global.vipuControllers", "a:1:k=v", controller_list, [("a:1", ("k", "v"))]),
    ("global.imagePullSecrets", ["a"], pod(PROXY, "imagePullSecrets"), [{"name": "a"}]),
    ("global.imagePullSecrets", [{"name": "a"}, {"name": "b"}], option(MANAGER, "--pull-secrets"), "a,b"),
    ("global.imagePullSecrets", {"name": "a"}, pod(MANAGER, "imagePullSecrets"), [{"name": "a"}]),
    ("global.imagePullSecrets", ["a"], job("spec imagePullSecrets"), [{"name": "a"}]),
    ("global.launcherImage", "registry:5000/a", option(MANAGER, "--launcher-image"), "registry:5000/a:0.1.0"),
    ("global.launcherImage", "launcher:latest", option(MANAGER, "--launcher-image"), "launcher:latest"),
    ("global.launcherImage", "a@sha256:0", option(MANAGER, "--launcher-image"), "a@sha256:0"),
    ("global.launcherImageTag", "t", option(MANAGER, "--launcher-image"), "localhost/openipu/gc-launcher:t"),
    ("global.launcherImagePullPolicy", "Always", option(MANAGER, "--launcher-pull-policy"), "Always"),
    (
        "global.kubectlVersion",
        "1.30.1",
        option(MANAGER, "--launcher-image"),
        "localhost/openipu/gc-launcher:0.1.0-kubectl1.30.1",
    ),
    ("global.listenAddress", "::", option(MANAGER, "--host"), "::"),
    ("global.listenAddress", "::", option(MANAGER, "--webhook-host"), "::"),
    ("global.listenAddress", "::", option(MANAGER, "--metrics-host"), "::"),
    ("global.listenAddress", "::", option(PROXY, "--host"), "::"),
    ("controller.replicas", 2, deployment(MANAGER, "spec replicas"), 2),
    ("controller.replicas", 2, exists("PodDisruptionBudget", f"{FULLNAME}-{MANAGER}"), True),
    ("controller.replicas", 2, pod(MANAGER, "topologySpreadConstraints 0 topologyKey"), "kubernetes.io/hostname"),
    ("controller.image.repository", "a", pod(MANAGER, "containers 0 image"), "a:0.1.0"),
    ("controller.image.repository", "a", first_container("image"), "a:0.1.0"),
    ("controller.image.tag", "t", pod(MANAGER, "containers 0 image"), "localhost/openipu/ipu-operator:t"),
    ("controller.image.pullPolicy", "Always", pod(MANAGER, "containers 0 imagePullPolicy"), "Always"),
    ("controller.develLogs", True, option(MANAGER, "--log-level"), "debug"),
    ("controller.develLogs", True, option(MANAGER, "--log-format"), "text"),
    ("controller.watchNamespaces", ["a", "b"], option(MANAGER, "--watch-namespaces"), "a,b"),
    ("controller.watchNamespaces", "a,b", option(MANAGER, "--webhook-namespaces"), "a,b"),
    ("controller.hostNetwork", True, pod(MANAGER, "hostNetwork"), True),
    ("controller.hostNetwork", True, pod(MANAGER, "dnsPolicy"), "ClusterFirstWithHostNet"),
    ("controller.hostNetwork", True, deployment(MANAGER, "spec strategy rollingUpdate maxSurge"), 0),
    ("controller.dnsPolicy", "Default", pod(MANAGER, "dnsPolicy"), "Default"),
    ("controller.serviceAccount.create", False, exists("ServiceAccount", f"{FULLNAME}-{MANAGER}"), False),
    ("controller.serviceAccount.create", False, pod(MANAGER, "serviceAccountName"), "default"),
    (
        "controller.serviceAccount.annotations",
        {"a": "b"},
        account(f"{FULLNAME}-{MANAGER}", "metadata annotations a"),
        "b",
    ),
    ("controller.serviceAccount.name", "mine", pod(MANAGER, "serviceAccountName"), "mine"),
    ("controller.serviceAccount.name", "mine", option(PROXY, "--operator-account"), "mine"),
    ("controllers.serviceAccount.name", "mine", exists("ServiceAccount", "mine"), True),
    ("controller.rbac.create", False, rights(f"{FULLNAME}-{MANAGER}"), False),
    ("controller.rbac.create", False, exists("ClusterRole", f"{RELEASE}-metrics-reader"), False),
    ("controller.service.type", "NodePort", service("metrics", "spec type"), "NodePort"),
    ("controller.service.port", 9000, service("metrics", "spec ports 0 port"), 9000),
    ("controller.service.port", 9000, option(MANAGER, "--metrics-port"), "9000"),
    ("controller.service.port", 9000, port(MANAGER, "metrics"), 9000),
    ("controller.metricsCertificateSecret", "s", option(MANAGER, "--metrics-certificates"), "/etc/metrics-certificate"),
    ("controller.metricsCertificateSecret", "s", volume_secret(MANAGER, "metrics-certificate"), "s"),
    *of_pods("controller", MANAGER),
    ("vipuProxy.image.repository", "a", pod(PROXY, "containers 0 image"), "a:0.1.0"),
    ("vipuProxy.image.tag", "t", pod(PROXY, "containers 0 image"), "localhost/openipu/gc-proxy:t"),
    ("vipuProxy.image.pullPolicy", "Always", pod(PROXY, "containers 0 imagePullPolicy"), "Always"),
    ("vipuProxy.proxyPartitionTrackerConfigMap", "other", option(PROXY, "--tracker"), "other"),
    ("vipuProxy.proxyPort", 8000, option(PROXY, "--port"), "8000"),
    ("vipuProxy.proxyPort", 8000, port(PROXY, "http"), 8000),
    ("vipuProxy.hostNetwork", True, pod(PROXY, "hostNetwork"), True),
    ("vipuProxy.hostNetwork", True, pod(PROXY, "dnsPolicy"), "ClusterFirstWithHostNet"),
    ("vipuProxy.proxyWriteTimeoutSeconds", 5, option(PROXY, "--write-timeout"), "5"),
    ("vipuProxy.proxyReadTimeoutSeconds", 5, option(PROXY, "--read-timeout"), "5"),
    ("vipuProxy.proxyIdleTimeoutSeconds", 5, option(PROXY, "--idle-timeout"), "5"),
    ("vipuProxy.logLevel", 1, option(PROXY, "--log-level"), "warning"),
    ("vipuProxy.logLevel", 4, option(PROXY, "--log-level"), "debug"),
    (
        "vipuProxy.credentials",
        [{"controller": "pod001:8090", "secretName": "s"}],
        volume_secret(PROXY, "credentials-0"),
        "s",
    ),
    ("vipuProxy.serviceAccount.create", False, exists("ServiceAccount", f"{FULLNAME}-{PROXY}"), False),
    ("vipuProxy.serviceAccount.annotations", {"a": "b"}, account(f"{FULLNAME}-{PROXY}", "metadata annotations a"), "b"),
    ("vipuProxy.serviceAccount.name", "mine", pod(PROXY, "serviceAccountName"), "mine"),
    ("vipuProxy.rbac.create", False, rights(f"{FULLNAME}-{PROXY}"), False),
    ("vipuProxy.service.type", "LoadBalancer", service(PROXY, "spec type"), "LoadBalancer"),
    ("vipuProxy.service.port", 8081, service(PROXY, "spec ports 0 port"), 8081),
    (
        "vipuProxy.service.port",
        8081,
        option(MANAGER, "--proxy"),
        f"http://{FULLNAME}-{PROXY}.$(POD_NAMESPACE).svc:8081",
    ),
    *of_pods("vipuProxy", PROXY),
    ("proxyPort", 8000, option(PROXY, "--port"), "8000"),
    ("service.type", "NodePort", service(PROXY, "spec type"), "NodePort"),
    ("service.port", 8081, service(PROXY, "spec ports 0 port"), 8081),
    *of_pods("", PROXY, older="yes"),
    ("worker.hostNetwork", False, option(MANAGER, "--host-network"), False),
    ("worker.requestIpus", True, option(MANAGER, "--request-ipus"), True),
    ("worker.sshPorts", "30000-30999", option(MANAGER, "--ssh-ports"), "30000-30999"),
    ("ipuVisibility.enabled", False, option(PROXY, "--advertise"), False),
    ("ipuVisibility.advertiseOnMaster", True, option(PROXY, "--advertise-on-control-plane"), True),
    ("userRoles.enabled", True, exists("ClusterRole", f"{FULLNAME}-edit"), True),
    ("userRoles.enabled", True, exists("ClusterRole", f"{FULLNAME}-view"), True),
    ("extendedScheduler.enabled", True, option(PROXY, "--scheduler-extender"), True),
    ("extendedScheduler.maxRequestMiB", 48, option(PROXY, "--extender-max-mib"), "48"),
    ("extendedScheduler.enabled", True, exists("ConfigMap", f"{FULLNAME}-scheduler"), True),
    ("admissionWebhooks.enabled", False, exists("MutatingWebhookConfiguration", FULLNAME), False),
    ("admissionWebhooks.enabled", False, exists("ValidatingWebhookConfiguration", FULLNAME), False),
    ("admissionWebhooks.enabled", False, option(MANAGER, "--webhook-port"), "0"),
    ("admissionWebhooks.scope", "a,b", webhook("namespaceSelector matchExpressions 0 values"), ["a", "b"]),
    ("admissionWebhooks.scope", ["a"], option(MANAGER, "--webhook-namespaces"), "a"),
    ("admissionWebhooks.timeoutSeconds", 5, webhook("timeoutSeconds"), 5),
    ("admissionWebhooks.failurePolicy", "Ignore", webhook("failurePolicy"), "Ignore"),
    ("admissionWebhooks.port", 9000, option(MANAGER, "--webhook-port"), "9000"),
    ("admissionWebhooks.port", 9000, port(MANAGER, "webhooks"), 9000),
    ("admissionWebhooks.service.annotations", {"a": "b"}, service("webhook-svc", "metadata annotations a"), "b"),
    ("admissionWebhooks.service.servicePort", 444, service("webhook-svc", "spec ports 0 port"), 444),
    ("admissionWebhooks.service.servicePort", 444, webhook("clientConfig service port"), 444),
    ("admissionWebhooks.service.type", "NodePort", service("webhook-svc", "spec type"), "NodePort"),
    ("admissionWebhooks.image.repository", "a", first_container("image"), "a:0.1.0"),
    ("admissionWebhooks.image.tag", "t", first_container("image"), "localhost/openipu/ipu-operator:t"),
    ("admissionWebhooks.image.pullPolicy", "Always", first_container("imagePullPolicy"), "Always"),
    ("admissionWebhooks.patch.priorityClassName", "high", job("spec priorityClassName"), "high"),
    ("admissionWebhooks.patch.podAnnotations", {"a": "b"}, job("metadata annotations a"), "b"),
    ("admissionWebhooks.patch.nodeSelector", {"disk": "ssd"}, job("spec nodeSelector disk"), "ssd"),
    ("admissionWebhooks.patch.tolerations", [TOLERATION], job("spec tolerations"), [TOLERATION]),
    ("admissionWebhooks.patch.runAsUser", 7, job("spec securityContext runAsUser"), 7),
    ("admissionWebhooks.certManager.enabled", True, exists("Certificate", f"{FULLNAME}-webhook-certificate"), True),
    ("serviceMonitor.enabled", True, exists("ServiceMonitor", f"{FULLNAME}-metrics"), True),
    ("prometheusRule.enabled", True, exists("PrometheusRule", FULLNAME), True),
    ("networkPolicy.enabled", False, exists("NetworkPolicy", f"{FULLNAME}-{PROXY}"), False),
    (
        "networkPolicy.metricsFrom",
        [{"namespaceSelector": {}}],
        field("NetworkPolicy", f"{FULLNAME}-{MANAGER}", "spec ingress 0 from"),
        [{"namespaceSelector": {}}],
    ),
    (
        "networkPolicy.proxyFrom",
        [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        field("NetworkPolicy", f"{FULLNAME}-{PROXY}", "spec ingress 0 from 1"),
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
    ),
]
# Values whose effect depends on others: values, a function that returns the effect, and the effect.
DEPENDENT: list[tuple[dict[str, Any], Field, Any]] = [
    *(
        ({"serviceMonitor.enabled": True, name: given}, field("ServiceMonitor", f"{FULLNAME}-metrics", path), expected)
        for name, given, path, expected in [
            ("serviceMonitor.labels", {"a": "b"}, "metadata labels a", "b"),
            ("serviceMonitor.interval", "15s", "spec endpoints 0 interval", "15s"),
            ("serviceMonitor.tlsConfig", {"serverName": "x"}, "spec endpoints 0 tlsConfig serverName", "x"),
        ]
    ),
    *(
        ({"prometheusRule.enabled": True, name: given}, effect, expected)
        for name, given, effect, expected in [
            ("prometheusRule.labels", {"a": "b"}, field("PrometheusRule", FULLNAME, "metadata labels a"), "b"),
            (
                "prometheusRule.job",
                "x",
                threshold("IpuOperatorDown", " or "),
                'absent(up{job="x", namespace="default"})',
            ),
            (
                "prometheusRule.runbook",
                "http://x",
                alert("IpuOperatorDown", "annotations runbook_url"),
                "http://x#ipuoperatordown",
            ),
            ("prometheusRule.thresholds.waitSeconds", 7, threshold("IpuJobWaitsLong"), "7"),
            ("prometheusRule.thresholds.handlerSeconds", 7, threshold("IpuOperatorStuck"), "7"),
            ("prometheusRule.thresholds.errorRatio", 0.5, threshold("IpuOperatorErrors"), "0.5"),
        ]
    ),
    ({"vipuServerAddr": "a", "vipuServerPort": 8191}, controller_list, [("a:8191", None)]),
    (
        {"ipuVisibility.enabled": False, "extendedScheduler.enabled": True},
        extender_resource,
        {"name": "graphcore.ai/ipu", "ignoredByScheduler": True},
    ),
    (
        {"ipuVisibility.enabled": False, "ipuVisibility.withdraw": True},
        lambda objects: (option(PROXY, "--advertise")(objects), may_change_nodes(objects)),
        (False, True),
    ),
    (OWN_CERTIFICATE, exists("Job", f"{FULLNAME}-admission"), False),
    (OWN_CERTIFICATE, option(MANAGER, "--webhook-certificates"), "/etc/webhook-certificates"),
    (OWN_CERTIFICATE, volume_secret(MANAGER, "certificates"), "mine"),
    (OWN_CERTIFICATE, webhook("clientConfig caBundle"), base64.b64encode(CA.encode()).decode()),
    (
        {"admissionWebhooks.certManager": {"enabled": True, "issuerRef": {"name": "i", "kind": "ClusterIssuer"}}},
        field("Certificate", f"{FULLNAME}-webhook-certificate", "spec issuerRef"),
        {"name": "i", "kind": "ClusterIssuer"},
    ),
]


@pytest.fixture(scope="module")
def default() -> Objects:
    """Return the objects of a release with the default values."""
    return render()


@pytest.mark.parametrize(
    ("value", "given", "effect", "expected"),
    EFFECTS,
    ids=[f"{name}-{index}" for index, (name, *_) in enumerate(EFFECTS)],
)
def test_values_have_effects(default: Objects, value: str, given: Any, effect: Field, expected: Any) -> None:
    assert effect(default) != expected
    assert effect(render({value: given})) == expected


@pytest.mark.parametrize(("values", "effect", "expected"), DEPENDENT)
def test_values_have_effects_together(default: Objects, values: dict[str, Any], effect: Field, expected: Any) -> None:
    assert effect(default) != expected
    assert effect(render(values)) == expected


def test_every_value_has_a_test_of_its_effect() -> None:
    dependent = {name for values, *_ in DEPENDENT for name in values}
    nested = {
        f"{name}.{key}"
        for values, *_ in DEPENDENT
        for name, value in values.items()
        if isinstance(value, dict)
        for key in value
    }
    assert set(VALUES) - {name for name, *_ in EFFECTS} - dependent - nested == WITHOUT_EFFECT


def test_values_without_effect_say_so(default: Objects) -> None:
    assert render(dict.fromkeys(WITHOUT_EFFECT - {"admissionWebhooks.patch.image.pullPolicy"}, "x")) == default
    descriptions = dict(generated.described_values((helm.CHART / "values.yaml").read_text()))
    assert {name for name, text in descriptions.items() if text.startswith("Without effect")} == WITHOUT_EFFECT


@pytest.mark.parametrize("spelling", ["clusterIP", "ClusterIP"])
def test_service_types_have_several_spellings(default: Objects, spelling: str) -> None:
    assert render({"service.type": spelling, "admissionWebhooks.service.type": spelling}) == default
