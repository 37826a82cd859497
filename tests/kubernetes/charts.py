# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that Helm renders from the chart, and the programs in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from openipu.kubernetes.domain import controllers
from openipu.kubernetes.operator.main import main as operator
from openipu.kubernetes.proxy.main import main as proxy
from tools.kubernetes import generated, helm

RELEASE, FULLNAME = "gc", "gc-ipu-operator"
MANAGER, PROXY = "controller-manager", "vipu-proxy"
PROGRAMS: dict[str, click.Command] = {MANAGER: operator, PROXY: proxy}
VALUES = [name for name, _ in generated.described_values((helm.CHART / "values.yaml").read_text())]
# Kinds of the Prometheus operator, which an API server has only with its custom resources.
MONITORING = ("ServiceMonitor", "PrometheusRule")
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
OWN_CERTIFICATE = {
    "admissionWebhooks.patch.enabled": False,
    "admissionWebhooks.certificateSecret": "mine",
    "admissionWebhooks.caCertificate": CA,
}

Objects = list[dict[str, Any]]
Field = Callable[[Objects], Any]


def render(values: dict[str, Any] | None = None, *arguments: str, **settings: Any) -> Objects:
    """Return the objects of a release in a cluster with the Prometheus operator. ``values``: dotted name -> value."""
    apis = [word for kind in MONITORING for word in ("--api-versions", f"monitoring.coreos.com/v1/{kind}")]
    given = [word for name, value in (values or {}).items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    return helm.template(*apis, *given, *arguments, **settings)


def rejection(*arguments: str) -> str:
    """Return the error with which Helm rejects values."""
    done = helm.run("template", RELEASE, helm.CHART, *arguments)
    assert done.returncode != 0, done.stdout
    return done.stderr


def find(objects: Objects, kind: str, name: str) -> dict[str, Any] | None:
    """Return an object, None if there is none."""
    return next((each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)), None)


def field(kind: str, name: str, path: str) -> Field:
    """Return a function that returns a field of an object, None if there is none. ``path``: keys with blanks."""

    def value(objects: Objects) -> Any:
        found: Any = find(objects, kind, name)
        for key in path.split():
            if isinstance(found, list):
                found = found[int(key)] if int(key) < len(found) else None
            else:
                found = (found or {}).get(key)
        return found

    return value


def deployment(component: str, path: str) -> Field:
    """Return a function that returns a field of a Deployment."""
    return field("Deployment", f"{FULLNAME}-{component}", path)


def pod(component: str, path: str) -> Field:
    """Return a function that returns a field of the pods of a Deployment."""
    return deployment(component, f"spec template spec {path}")


def arguments(objects: Objects, component: str) -> list[str]:
    """Return the arguments of the program of a Deployment."""
    found: list[str] = pod(component, "containers 0 args")(objects)
    return found


def option(component: str, name: str) -> Field:
    """Return a function that returns the value of an option of a program, or whether a flag is given."""

    def value(objects: Objects) -> Any:
        for each in arguments(objects, component):
            given, separator, text = each.partition("=")
            if given in (name, name.replace("--", "--no-", 1)):
                return text if separator else given == name
        return None

    return value


def exists(kind: str, name: str) -> Field:
    """Return a function that returns whether an object exists."""
    return lambda objects: find(objects, kind, name) is not None


def grants(objects: Objects, kinds: Iterable[str] = ("Role", "ClusterRole")) -> set[tuple[str, str, str, str]]:
    """Return role, resource, name of an object (empty for all) and verb of all rights."""
    return {
        (each["metadata"]["name"], resource, name, verb)
        for each in objects
        if each["kind"] in kinds
        for rule in each["rules"]
        for resource in rule.get("resources", [])
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def controller_list(objects: Objects) -> Any:
    """Return the V-IPU controllers as the proxy reads them."""
    found = field("ConfigMap", f"{FULLNAME}-vipu-controllers", "data controllers.yaml")(objects)
    return [(each.address, each.node_label) for each in controllers.parse(found)]


def ports(component: str) -> Field:
    """Return a function that returns the ports of a container by name."""
    return lambda objects: {
        each["name"]: each["containerPort"] for each in pod(component, "containers 0 ports")(objects)
    }
