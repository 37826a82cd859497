# SPDX-License-Identifier: GPL-3.0-or-later
"""Webhook configurations as the chart installs them, with addresses of replicas instead of a Service."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import SECONDS, Operator
from tests.ports import free_port
from tests.waiting import until

RELEASE_LABEL = "app.kubernetes.io/name"
KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
_NAME_LABEL = "kubernetes.io/metadata.name"


@dataclass
class WebhookSetup:
    """Operators with webhooks for the namespace of users. ``cluster`` has the namespace of the release."""

    cluster: Cluster
    users: Cluster
    versions: Sequence[str] = ("v1", "v1beta1")
    ports: list[int] = field(default_factory=lambda: [free_port()])

    @property
    def name(self) -> str:
        """Name of the webhook configurations."""
        return f"ipu-operator-{self.cluster.namespace}"

    def options(self, replica: int = 0, seconds: float = 0.5) -> tuple[str, ...]:
        """Return the options of a replica."""
        settings = {
            "watch-namespaces": self.users.namespace,
            "webhook-host": "127.0.0.1",
            "webhook-port": self.ports[replica],
            "webhook-secret": "admission",
            "webhook-configuration": self.name,
            "webhook-seconds": seconds,
        }
        return tuple(text for name, value in settings.items() for text in (f"--{name}", str(value)))

    def install(self) -> None:
        """Create the webhook configurations."""
        for cluster in (self.cluster, self.users):
            cluster.kubectl("label", "--overwrite", "namespace", cluster.namespace, f"webhooks={self.name}")
        self.cluster.create(
            self._configuration("MutatingWebhookConfiguration", "m"),
            self._configuration("ValidatingWebhookConfiguration", "v"),
        )

    def remove(self) -> None:
        for kind in KINDS:
            self.cluster.kubectl("delete", kind, self.name, "--ignore-not-found")

    def bundle(self) -> bytes:
        """Return the CAs of the configurations, once all webhooks have the same."""
        return until(self._bundle, SECONDS)

    def wait(self) -> None:
        """Wait until the API server calls the webhooks with success."""
        pod = {**plain_pod(self.users, "probe"), "spec": {"containers": [{"name": "main", "image": "image"}]}}
        until(lambda: self.users.run("create", "--dry-run=server", "-f-", stdin=json.dumps(pod)).returncode == 0, 30)

    def _bundle(self) -> bytes | None:
        found = {
            each["clientConfig"].get("caBundle", "")
            for kind in KINDS
            for each in self.cluster.get(kind, self.name)["webhooks"]
        }
        return base64.b64decode(found.pop()) if len(found) == 1 else None

    def _configuration(self, kind: str, letter: str) -> dict[str, Any]:
        verb = "mutate" if letter == "m" else "validate"
        path = f"/{verb}-graphcore-ai-v1alpha1-ipujob"
        webhooks = []
        for port in self.ports:
            job = self._webhook(f"{letter}ipujob", port, path, ("graphcore.ai", "v1alpha1", "ipujobs"))
            webhooks.append(job)
            if letter == "m":
                webhooks.append(self._webhook("mpod", port, "/mutate-v1-pod", ("", "v1", "pods")))
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": self.name},
            "webhooks": webhooks,
        }

    def _webhook(self, name: str, port: int, path: str, resource: tuple[str, str, str]) -> dict[str, Any]:
        group, version, plural = resource
        operations = ["CREATE"] if plural == "pods" else ["CREATE", "UPDATE"]
        excluded = {"key": _NAME_LABEL, "operator": "NotIn", "values": ["kube-system", self.cluster.namespace]}
        return {
            "name": f"{name}.graphcore.ai" if len(self.ports) == 1 else f"{name}-{port}.graphcore.ai",
            "clientConfig": {"url": f"https://127.0.0.1:{port}{path}"},
            "rules": [
                {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations}
            ],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": list(self.versions),
            "timeoutSeconds": 30,
            "namespaceSelector": {"matchLabels": {"webhooks": self.name}, "matchExpressions": [excluded]},
            "objectSelector": {
                "matchExpressions": [{"key": RELEASE_LABEL, "operator": "NotIn", "values": ["ipu-operator"]}]
            },
        }


def make_setup(cluster: Cluster, **fields: Any) -> WebhookSetup:
    """Return a setup with a namespace for users."""
    users = replace(cluster, namespace=f"{cluster.namespace}-users")
    users.create_namespace()
    return WebhookSetup(cluster, users, **fields)


def plain_pod(cluster: Cluster, name: str, ipus: str | None = None, limit: str | None = None) -> dict[str, Any]:
    """Return a pod as users write it."""
    resources = {"limits": {"graphcore.ai/ipu": limit}} if limit is not None else {}
    annotations = {"graphcore.ai/ipu": ipus} if ipus is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": cluster.namespace, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "image", "resources": resources}],
        },
    }


@dataclass(frozen=True)
class Reply:
    """Answer of a webhook server, and the serial number of its certificate."""

    status: int
    body: Any
    serial: str


def post(port: int, path: str, body: bytes, authorities: bytes, headers: dict[str, str] | None = None) -> Reply:
    """Call a webhook server with a new connection, and verify its certificate."""
    context = ssl.create_default_context(cadata=authorities.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request("POST", path, body, headers or {"Content-Type": "application/json"})
        certificate = connection.sock.getpeercert()  # type: ignore[union-attr]
        answer = connection.getresponse()
        return Reply(answer.status, json.loads(answer.read()), str(certificate["serialNumber"]))
    finally:
        connection.close()


def start(operator: Operator, setup: WebhookSetup, *, leads: bool = True) -> None:
    """Start an operator and wait until the API server can call its webhooks."""
    operator.start(leads=leads)
    until(lambda: "certificate in use" in operator.log, SECONDS, lambda: operator.log[-3000:])
    setup.bundle()
