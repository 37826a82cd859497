# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of both published charts of Graphcore: names, defaults, and whole files of values."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.kubernetes.domain.controllers import parse
from tests.kubernetes.charts import PROGRAMS, VALUES, Objects, field, render
from tools.kubernetes import helm

# Table of the preview release: name -> default as printed.
PREVIEW: dict[str, Any] = {
    "global.launcherImage": "launcher:latest",
    "global.imagePullSecrets": [],
    "nameOverride": "",
    "fullNameOverride": "",
    "controller.hostNetwork": True,
    "controller.dnsPolicy": "ClusterFirstWithHostNet",
    "controller.image.repository": "",
    "controller.image.pullPolicy": "Always",
    "controller.image.tag": "",
    "controller.serviceAccount.create": True,
    "controller.serviceAccount.annotations": {},
    "controllers.serviceAccount.name": "",
    "controller.rbac.create": True,
    "vipuServerAddr": "example.com",
    "vipuServerPort": 8191,
    "vipuClusterName": "test",
    "proxyPort": 8080,
    "ipuVisibility.advertiseOnMaster": False,
    "podAnnotations": {},
    "podSecurityPolicyContext": {},
    "securityContext": {},
    "service.type": "clusterIP",
    "service.port": 80,
    "resources": {},
    "nodeSelector": {},
    "tolerations": {},
    "affinity": {},
    "extendedScheduler.enabled": False,
    "admissionWebhooks.scope": "",
    "admissionWebhooks.timeoutSeconds": 30,
    "admissionWebhooks.image.repository": "localhost:5000/gc-webhook",
    "admissionWebhooks.image.tag": "v0.2.0",
    "admissionWebhooks.image.pullPolicy": "IfNotPresent",
    "admissionWebhooks.failurePolicy": "Fail",
    "admissionWebhooks.port": 8443,
    "admissionWebhooks.service.annotations": {},
    "admissionWebhooks.service.servicePort": 443,
    "admissionWebhooks.service.type": "clusterIP",
    "admissionWebhooks.patch.enabled": True,
    "admissionWebhooks.patch.image.repository": "docker.io/jettech/kube-webhook-certgen",
    "admissionWebhooks.patch.image.tag": "v1.3.0",
    "admissionWebhooks.patch.image.pullPolicy": "IfNotPresent",
    "admissionWebhooks.patch.priorityClassName": "",
    "admissionWebhooks.patch.podAnnotations": {},
    "admissionWebhooks.patch.nodeSelector": {},
    "admissionWebhooks.patch.tolerations": [],
    "admissionWebhooks.patch.runAsUser": 2000,
}
# Chart 1.2.0. Repositories of images are those of a private registry.
CHART: dict[str, Any] = {
    "nameOverride": "",
    "fullnameOverride": "ipu-operator",
    "global.imagePullSecrets": [],
    "global.vipuControllers": "vipu-server:8090:vipu-ctrl=vctl1",
    "global.launcherImage": "registry.example/ipu-operator-launcher",
    "global.launcherImageTag": "",
    "global.launcherImagePullPolicy": "IfNotPresent",
    "global.kubectlVersion": "",
    "controller.develLogs": False,
    "controller.image.repository": "registry.example/ipu-operator-controller",
    "controller.image.pullPolicy": "Always",
    "controller.image.tag": "",
    "controller.serviceAccount.create": True,
    "controller.serviceAccount.annotations": {},
    "controller.serviceAccount.name": "",
    "controller.rbac.create": True,
    "controller.service.type": "ClusterIP",
    "controller.service.port": 8443,
    "controller.resources": {"limits": {"memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "512Mi"}},
    "controller.podAnnotations": {},
    "controller.podSecurityContext": {"runAsUser": 65532},
    "controller.securityContext": {},
    "controller.nodeSelector": {},
    "controller.tolerations": [],
    "controller.affinity": {},
    "vipuProxy.image.repository": "registry.example/ipu-operator-vipu-proxy",
    "vipuProxy.image.pullPolicy": "Always",
    "vipuProxy.image.tag": "",
    "vipuProxy.proxyPartitionTrackerConfigMap": "ipu-partitions-tracker",
    "vipuProxy.proxyWriteTimeoutSeconds": 300,
    "vipuProxy.proxyReadTimeoutSeconds": 30,
    "vipuProxy.proxyIdleTimeoutSeconds": 60,
    "vipuProxy.proxyPort": 8080,
    "vipuProxy.logLevel": 2,
    "vipuProxy.serviceAccount.create": True,
    "vipuProxy.serviceAccount.annotations": {},
    "vipuProxy.serviceAccount.name": "",
    "vipuProxy.rbac.create": True,
    "vipuProxy.service.type": "ClusterIP",
    "vipuProxy.service.port": 80,
    "vipuProxy.resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "100m"}},
    "vipuProxy.podAnnotations": {},
    "vipuProxy.podSecurityContext": {},
    "vipuProxy.securityContext": {},
    "vipuProxy.nodeSelector": {},
    "vipuProxy.tolerations": {},
    "vipuProxy.affinity": {},
    "admissionWebhooks.timeoutSeconds": 30,
    "admissionWebhooks.failurePolicy": "Fail",
    "admissionWebhooks.port": 9443,
    "admissionWebhooks.service.annotations": {},
    "admissionWebhooks.service.servicePort": 443,
    "admissionWebhooks.service.type": "ClusterIP",
    "worker.hostNetwork": True,
}
DEFAULTS: dict[str, Any] = yaml.safe_load((helm.CHART / "values.yaml").read_text())


def default(name: str) -> Any:
    """Return the default of a value of this chart."""
    return reduce(lambda found, key: found[key], name.split("."), DEFAULTS)


def file(folder: Path, values: dict[str, Any]) -> Path:
    """Write values to a file as users have it, and return its path."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        *parents, last = name.split(".")
        reduce(lambda found, key: found.setdefault(key, {}), parents, nested)[last] = value
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(nested))
    return path


# Values with another default than published. README.md of the chart describes the differences.
DIFFERENT = {
    "preview": {
        "global.launcherImage",
        "controller.hostNetwork",
        "controller.dnsPolicy",
        "controller.image.repository",
        "controller.image.pullPolicy",
        "vipuServerAddr",
        "vipuServerPort",
        "vipuClusterName",
        "admissionWebhooks.image.repository",
        "admissionWebhooks.image.tag",
        "admissionWebhooks.port",
        # Another spelling.
        "admissionWebhooks.service.type",
        # Older names, which count only if they are set.
        "proxyPort",
        "service.type",
        "service.port",
        # Empty, but a list.
        "tolerations",
    },
    "1.2.0": {
        "fullnameOverride",
        "global.launcherImage",
        "controller.image.repository",
        "controller.image.pullPolicy",
        "controller.podSecurityContext",
        "controller.securityContext",
        "vipuProxy.image.repository",
        "vipuProxy.image.pullPolicy",
        "vipuProxy.podSecurityContext",
        "vipuProxy.securityContext",
        "vipuProxy.resources",
        # Empty, but a list.
        "vipuProxy.tolerations",
    },
}


@pytest.mark.parametrize("published", [PREVIEW, CHART], ids=list(DIFFERENT))
def test_every_published_value_has_its_name(published: dict[str, Any]) -> None:
    assert set(published) - set(VALUES) == set()


@pytest.mark.parametrize(("release", "published"), list(zip(DIFFERENT, [PREVIEW, CHART], strict=True)))
def test_defaults_are_as_published(release: str, published: dict[str, Any]) -> None:
    assert {name for name, value in published.items() if default(name) != value} == DIFFERENT[release]


def containers(objects: Objects) -> dict[str, dict[str, Any]]:
    """Return component -> container of its Deployment, whatever its name is."""
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"]["spec"]["containers"][0]
        for each in objects
        if each["kind"] == "Deployment"
    }


@pytest.mark.parametrize(
    ("values", "name", "controllers"),
    [
        (PREVIEW, "gc-ipu-operator-vipu-controllers", [("example.com:8191", None)]),
        (CHART, "ipu-operator-vipu-controllers", [("vipu-server:8090", ("vipu-ctrl", "vctl1"))]),
    ],
    ids=list(DIFFERENT),
)
def test_a_file_with_all_published_values_works(
    tmp_path: Path, values: dict[str, Any], name: str, controllers: list[Any]
) -> None:
    objects = render(None, "--values", str(file(tmp_path, values)))
    found = containers(objects)
    assert found.keys() == PROGRAMS.keys()
    for component, program in PROGRAMS.items():
        program.make_context(component, list(found[component]["args"]))
        repository, tag = found[component]["image"].rsplit(":", 1)
        assert repository and tag
    text = field("ConfigMap", name, "data controllers.yaml")(objects)
    assert [(each.address, each.node_label) for each in parse(text)] == controllers


def test_empty_repositories_select_the_images_of_the_chart() -> None:
    empty = dict.fromkeys(("controller.image.repository", "vipuProxy.image.repository"), "")
    assert render(empty) == render()
